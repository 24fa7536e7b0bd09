/* bridge: puts a container on a Linux bridge through a veth pair; with IPAM and isGateway the
 * bridge becomes the containers' router. reference/bridge-ptp.md, sections 2 and 3; docs/bridge.md.
 */
#include "attach/addresses.h"
#include "attach/sandbox.h"
#include "attach/veth.h"
#include "base/cleanup.h"
#include "base/mac.h"
#include "cni/applet.h"
#include "cni/args.h"
#include "cni/delegate.h"
#include "cni/names.h"
#include "filter/masquerade.h"
#include "filter/spoof.h"
#include "netlink/addr.h"
#include "netlink/brvlan.h"
#include "netlink/kind.h"
#include "netlink/link.h"
#include "netlink/sysctl.h"

#include <net/if.h>

#include <linux/if.h>
#include <linux/if_bridge.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* How long the host's end may take to come up. */
#define PORT_TIMEOUT_MS 2550

/* Where untagged frames belong on a port with a trunk and no VLAN of its own. */
#define NATIVE_VLAN 1

/* The mark of a bridge (or of its VLAN interface) that we made, so that GC may take it away. */
#define BRIDGE_ALIAS "cnibox bridge"

struct bridge_conf {
	const char *bridge;
	bool is_gateway, is_default_gateway, force_address, ip_masq;
	bool hairpin, promisc, macspoofchk, enabledad, disabled, isolation;
	bool preserve_default_vlan;
	int64_t mtu;
	int64_t vlan;
	bool has_trunk;
	struct vlan_set trunk;
	const char *ipam; /* NULL: layer 2 only */
	struct dns dns;
	bool has_dns;
	bool has_mac;
	uint8_t mac[6];
};

static void conf_free(struct bridge_conf *c)
{
	dns_free(&c->dns);
}
#define autoconf __attribute__((cleanup(conf_free))) struct bridge_conf

/* ---- config ---- */

static bool has_vlans(const struct bridge_conf *c)
{
	return c->vlan || !vlan_set_empty(&c->trunk);
}

static int vlan_id(const json *item, const char *key, int64_t *out, bool *given, struct err *e)
{
	const json *node = json_get(item, key);

	*given = node != NULL;
	if (!node)
		return 0;
	if (!json_is_int(node) || json_int(node) < 1 || json_int(node) > VLAN_MAX)
		return err_set(e, ERR_INVALID_CONFIG,
			"incorrect trunk %s parameter: must be between 1 and %d", key, VLAN_MAX);
	*out = json_int(node);
	return 0;
}

static int read_trunk_item(struct bridge_conf *c, const json *item, struct err *e)
{
	int64_t min = 0, max = 0, id = 0;
	bool has_min, has_max, has_id;

	if (!json_is_object(item))
		return err_set(e, ERR_INVALID_CONFIG, "vlanTrunk: expected object, got %s",
			json_type_name(item));
	if (vlan_id(item, "minID", &min, &has_min, e) ||
		vlan_id(item, "maxID", &max, &has_max, e) || vlan_id(item, "id", &id, &has_id, e))
		return -1;
	if (has_min != has_max)
		return err_set(e, ERR_INVALID_CONFIG,
			"minID and maxID should be configured simultaneously, %s is missing",
			has_min ? "maxID" : "minID");
	if (has_min && min > max)
		return err_set(
			e, ERR_INVALID_CONFIG, "minID is greater than maxID in trunk parameter");
	if (has_min)
		vlan_set_add(&c->trunk, (uint16_t)min, (uint16_t)max);
	if (has_id)
		vlan_set_add(&c->trunk, (uint16_t)id, (uint16_t)id);
	return 0;
}

static int read_vlans(struct bridge_conf *c, const json *conf, struct err *e)
{
	const json *trunk = NULL, *vlan = json_get(conf, "vlan");

	if (vlan && json_is_int(vlan) && (json_int(vlan) < 0 || json_int(vlan) > VLAN_MAX))
		return err_set(e, ERR_INVALID_CONFIG,
			"invalid VLAN ID %lld (must be between 0 and %d)",
			(long long)json_int(vlan), VLAN_MAX);
	if (json_get_int(conf, "vlan", 0, VLAN_MAX, &c->vlan, e) ||
		json_get_array(conf, "vlanTrunk", &trunk, e))
		return -1;
	c->has_trunk = trunk != NULL;
	for (size_t i = 0; i < json_len(trunk); i++)
		if (read_trunk_item(c, json_at(trunk, i), e))
			return -1;
	return 0;
}

/* runtimeConfig beats args beats CNI_ARGS; an empty string does not count. */
static int read_mac(struct bridge_conf *c, const struct request *req, struct err *e)
{
	static const char *const known[] = {"MAC", NULL};
	const json *runtime, *args;
	const char *text = NULL, *more = NULL;
	char *values[1] = {NULL};
	autofree char *from_env = NULL;

	if (request_cni_args(req, known, values, e))
		return -1;
	from_env = values[0];
	if (request_runtime_config(req, &runtime, e) || request_args_cni(req, &args, e))
		return -1;
	if ((runtime && json_get_str(runtime, "mac", &text, e)) ||
		(args && json_get_str(args, "mac", &more, e)))
		return -1;
	if (!text || !*text)
		text = more && *more ? more : from_env;
	if (!text || !*text)
		return 0;
	if (!mac_parse(text, c->mac))
		return err_set(e, ERR_INVALID_CONFIG, "address %s: invalid MAC address", text);
	if (c->mac[0] & 1 || !memcmp(c->mac, (uint8_t[6]){0}, sizeof(c->mac)))
		return err_set(e, ERR_INVALID_CONFIG,
			"address %s: a multicast or zero address cannot be an interface's", text);
	c->has_mac = true;
	return 0;
}

/* ipMasqBackend chooses between tools that we do not need; it is checked and otherwise ignored. */
static int read_backend(const struct bridge_conf *c, const json *conf, struct err *e)
{
	const char *backend = NULL;

	if (json_get_str(conf, "ipMasqBackend", &backend, e))
		return -1;
	if (c->ip_masq && backend && strcmp(backend, "iptables") != 0 &&
		strcmp(backend, "nftables") != 0)
		return err_set(e, ERR_INVALID_CONFIG, "unknown ipmasq backend \"%s\"", backend);
	return 0;
}

/* Upstream replaces IPAM's DNS as soon as one of the lists is there, even as []. */
static int read_dns(struct bridge_conf *c, const json *conf, struct err *e)
{
	const json *dns = NULL;
	const char *domain = NULL;

	if (json_get_object(conf, "dns", &dns, e))
		return -1;
	if (!dns)
		return 0;
	if (result_read_dns(&c->dns, dns, ERR_INVALID_CONFIG, e) ||
		json_get_str(dns, "domain", &domain, e))
		return -1;
	c->has_dns = json_get(dns, "nameservers") || json_get(dns, "search") ||
		     json_get(dns, "options") || (domain && *domain);
	return 0;
}

static int check_combinations(const struct bridge_conf *c, struct err *e)
{
	const char *details, *wrong = ifname_invalid(c->bridge, &details);
	char name[32];

	if (wrong)
		return err_set(e, ERR_INVALID_CONFIG, "failed to create bridge \"%s\": %s",
			c->bridge, wrong);
	if (c->mtu > 0 && (c->mtu < ETH_MIN_MTU || c->mtu > ETH_MAX_MTU))
		return err_set(e, ERR_INVALID_CONFIG, "mtu %lld: invalid argument, not %d to %d",
			(long long)c->mtu, ETH_MIN_MTU, ETH_MAX_MTU);
	if (c->hairpin && c->promisc)
		return err_set(e, ERR_INVALID_CONFIG,
			"cannot set hairpin mode and promiscuous mode at the same time");
	if (c->ipam && c->disabled)
		return err_set(e, ERR_INVALID_CONFIG,
			"cannot use IPAM when DisableContainerInterface flag is set");
	if (c->vlan && c->is_gateway && c->ipam &&
		snprintf(name, sizeof(name), "%s.%lld", c->bridge, (long long)c->vlan) >= IFNAMSIZ)
		return err_set(e, ERR_INVALID_CONFIG,
			"the VLAN interface's name \"%s\" is too long", name);
	return 0;
}

static int read_conf(struct bridge_conf *c, const struct request *req, struct err *e)
{
	const json *conf = req->conf;
	const struct {
		const char *key;
		bool *out;
	} flags[] = {
		{"isGateway", &c->is_gateway},
		{"isDefaultGateway", &c->is_default_gateway},
		{"forceAddress", &c->force_address},
		{"ipMasq", &c->ip_masq},
		{"hairpinMode", &c->hairpin},
		{"promiscMode", &c->promisc},
		{"macspoofchk", &c->macspoofchk},
		{"enabledad", &c->enabledad},
		{"disableContainerInterface", &c->disabled},
		{"portIsolation", &c->isolation},
		{"preserveDefaultVlan", &c->preserve_default_vlan},
	};

	*c = (struct bridge_conf){.bridge = "cni0"};
	for (size_t i = 0; i < array_len(flags); i++)
		if (json_get_bool(conf, flags[i].key, flags[i].out, e))
			return -1;
	c->is_gateway = c->is_gateway || c->is_default_gateway;
	if (json_get_str(conf, "bridge", &c->bridge, e) ||
		json_get_int(conf, "mtu", INT32_MIN, INT32_MAX, &c->mtu, e) ||
		delegate_ipam_type(req, &c->ipam, e) || read_vlans(c, conf, e) ||
		read_backend(c, conf, e) || read_dns(c, conf, e) || check_combinations(c, e))
		return -1;
	return read_mac(c, req, e);
}

/* Zero and less mean the kernel's default. */
static uint32_t conf_mtu(const struct bridge_conf *c)
{
	return c->mtu > 0 ? (uint32_t)c->mtu : 0;
}

/* ---- the bridge ---- */

static bool is_ours(const struct link *l)
{
	return !strcmp(l->alias, BRIDGE_ALIAS);
}

/* The ports of a bridge: VLAN gateways of ours, and everything else. */
struct ports {
	uint32_t gateway; /* one of them, 0 when there is none */
	size_t others;
};

static int count_port(const struct link *l, void *arg)
{
	struct ports *p = arg;

	if (is_ours(l))
		p->gateway = l->index;
	else
		p->others++;
	return 0;
}

/* Removes the bridge and its VLAN gateways unless there is another port. */
static int remove_unused(struct nl *nl, const struct link *br)
{
	for (;;) {
		struct ports p = {0};
		int ret = link_each_port(nl, br->index, count_port, &p);

		if (ret || p.others)
			return ret;
		if (!p.gateway)
			return link_del(nl, br->index);
		ret = link_del(nl, p.gateway);
		if (ret)
			return ret;
	}
}

/* Taken away again when the ADD that made it fails, unless another container is on it by now. */
static void unmake_bridge(void *arg)
{
	autonl *nl = NULL;
	autoerr ignored = {0};
	struct link br;

	if (!nl_open(&nl, NETLINK_ROUTE, &ignored) && !link_get(nl, arg, &br))
		remove_unused(nl, &br);
}

static int make_bridge(struct nl *nl, const struct bridge_conf *c, struct undo *undo, struct err *e)
{
	char ext[256];
	uint8_t mac[6];
	struct bridge_data data = {.vlan_filtering = c->vlan || c->has_trunk};
	struct link_new new = {
		.kind = &kind_bridge,
		.data = &data,
		.name = c->bridge,
		.mtu = conf_mtu(c),
		.mac = mac,
		.up = true,
	};
	int ret;

	/* Fixed from the start: a bridge without an address of its own takes its lowest port's, and
	 * changes it as containers come and go. */
	ret = mac_random(mac);
	if (!ret)
		ret = link_create(nl, &new, BRIDGE_ALIAS, ext, sizeof(ext));
	if (ret == -EEXIST)
		return 0; /* another first ADD was faster */
	if (ret) {
		err_sys(e, -ret, ERR_SYSTEM, "failed to create bridge \"%s\"", c->bridge);
		return *ext ? err_detail(e, "%s", ext) : -1;
	}
	return undo_push(undo, unmake_bridge, NULL, (void *)c->bridge, e);
}

static int check_bridge(const struct bridge_conf *c, const struct link *br,
	const struct bridge_data *data, struct err *e)
{
	if (strcmp(br->kind, "bridge") != 0)
		return err_set(e, ERR_CONFLICT,
			"failed to create bridge \"%s\": \"%s\" already exists but is not a bridge",
			c->bridge, c->bridge);
	/* Without filtering the kernel would store the VLANs and separate nobody. */
	if (has_vlans(c) && !data->vlan_filtering)
		return err_set(e, ERR_CONFLICT,
			"bridge \"%s\" exists without VLAN filtering, which vlan and vlanTrunk need",
			c->bridge);
	return 0;
}

static int ensure_bridge(struct nl *nl, const struct bridge_conf *c, struct undo *undo,
	struct link *br, struct err *e)
{
	struct bridge_data data = {0};
	int ret = link_get_data(nl, c->bridge, &kind_bridge, br, &data);
	char path[64];

	if (ret == -ENODEV) {
		if (make_bridge(nl, c, undo, e))
			return -1;
		ret = link_get_data(nl, c->bridge, &kind_bridge, br, &data);
	}
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up bridge \"%s\"", c->bridge);
	if (check_bridge(c, br, &data, e))
		return -1;
	/* No container may advertise itself to the host as a router. Best effort: there may be no
	 * IPv6. */
	snprintf(path, sizeof(path), "net/ipv6/conf/%s/accept_ra", br->name);
	sysctl_ensure(path, "0");
	uint32_t flags = IFF_UP | (c->promisc ? IFF_PROMISC : 0);
	if ((br->flags & flags) == flags)
		return 0;
	ret = link_apply(nl, &(struct link_set){.index = br->index, .flags_set = flags});
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to bring up bridge \"%s\"", c->bridge)
		   : 0;
}

/* ---- the port ---- */

static int set_port_vlans(
	struct nl *nl, const struct bridge_conf *c, const char *name, struct err *e)
{
	struct port_vlans now = {0};
	autoreq req = {0};
	struct link port;
	int ret = 0;

	if (!has_vlans(c))
		return 0;
	if (link_need(nl, name, &port, e))
		return -1;
	if (!c->preserve_default_vlan)
		ret = brvlan_get(nl, port.index, &now);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to list the VLANs of \"%s\"", name);
	brvlan_put_del(&req, port.index, &now.set);
	brvlan_put_tagged(&req, port.index, &c->trunk);
	/* Last: what it makes untagged the trunk, which may hold the same VLAN, makes tagged. */
	brvlan_put_access(&req, port.index, c->vlan ? (uint16_t)c->vlan : NATIVE_VLAN);
	return nl_do(nl, &req, e, "failed to setup vlan tag on interface \"%s\"", name);
}

static int add_port(const struct sandbox *sb, const struct request *req,
	const struct bridge_conf *c, struct undo *undo, struct link *br, struct veth *v,
	struct err *e)
{
	struct veth_spec spec = {
		.ifname = req->ifname,
		.mac = c->has_mac ? c->mac : NULL,
		.mtu = conf_mtu(c),
		.hairpin = c->hairpin,
		.isolated = c->isolation,
		.down = c->ipam || c->disabled,
	};
	char path[64];

	for (int attempt = 0;; attempt++) {
		if (!ensure_bridge(sb->host, c, undo, br, e)) {
			spec.master = br->index;
			if (!veth_create(sb, &req->owner, &spec, undo, v, e))
				break;
		}
		/* A failing ADD next to us has just removed the bridge it had made. */
		if (e->sys != ENODEV || attempt == 3)
			return -1;
		err_clear(e);
	}
	snprintf(path, sizeof(path), "net/ipv6/conf/%s/accept_ra", v->host_name);
	sysctl_set(path, "0");
	/* A bridge that is not ours may just have taken over the new port's address. */
	if (!is_ours(br) && link_need(sb->host, c->bridge, br, e))
		return -1;
	return set_port_vlans(sb->host, c, v->host_name, e);
}

/* ---- gateway addresses ---- */

struct conflict {
	const struct prefix *want;
	bool same;           /* it is there already */
	struct prefix other; /* one that is in the way; family 0: none */
};

/* Any other IPv4 address is in the way; an IPv6 one only when the networks overlap, and not the one
 * that every link has. */
static int find_conflict(const struct addr *a, void *arg)
{
	struct conflict *f = arg;

	if (a->prefix.len == f->want->len && !ip_cmp(&a->prefix.ip, &f->want->ip))
		f->same = true;
	else if (a->prefix.ip.family == AF_INET ||
		 (a->scope != RT_SCOPE_LINK && (prefix_contains(&a->prefix, &f->want->ip) ||
						       prefix_contains(f->want, &a->prefix.ip))))
		f->other = a->prefix;
	return 0;
}

struct gateway_undo {
	const char *bridge;
	uint32_t index; /* of the link that has it: the bridge or a VLAN interface */
	struct prefix prefix;
};

/* Only while nobody but this attachment is on the bridge: others may count on the address by now.
 */
static void remove_gateway(void *arg)
{
	const struct gateway_undo *g = arg;
	autonl *nl = NULL;
	autoerr ignored = {0};
	struct ports p = {0};
	struct link br;

	if (nl_open(&nl, NETLINK_ROUTE, &ignored) || link_get(nl, g->bridge, &br))
		return;
	if (!link_each_port(nl, br.index, count_port, &p) && p.others <= 1)
		addr_del(nl, g->index, &g->prefix);
}

static int push_gateway(const struct bridge_conf *c, const struct link *l, const struct prefix *gw,
	struct undo *undo, struct err *e)
{
	struct gateway_undo *g = calloc(1, sizeof(*g));

	if (!g)
		return err_memory(e);
	*g = (struct gateway_undo){c->bridge, l->index, *gw};
	return undo_push(undo, remove_gateway, free, g, e);
}

static int scan(struct nl *nl, const struct link *l, struct conflict *f, struct err *e)
{
	int ret;

	f->same = false;
	f->other.ip.family = 0;
	ret = addr_each(nl, l->index, f->want->ip.family, find_conflict, f);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to list addresses of \"%s\"", l->name)
		   : 0;
}

static int add_gateway(struct nl *nl, const struct link *l, const struct prefix *gw, struct err *e)
{
	char text[PREFIX_STRLEN];
	int ret = addr_add(nl, l->index, gw, true);

	if (ret && ret != -EEXIST)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to set bridge addr: %s on \"%s\"",
			prefix_format(gw, text), l->name);
	/* Containers will know the gateway by this MAC address: writing it fixes it. */
	if (!is_ours(l))
		link_apply(nl, &(struct link_set){.index = l->index, .mac = l->mac});
	return 0;
}

/* First add, then delete: running containers are never without their gateway, but for where the
 * kernel deletes it along with a former address of the same network. */
static int replace_addresses(struct nl *nl, const struct link *l, struct conflict *f, struct err *e)
{
	char text[PREFIX_STRLEN];

	while (f->other.ip.family) {
		int ret = addr_del(nl, l->index, &f->other);

		if (ret && ret != -EADDRNOTAVAIL)
			return err_sys(e, -ret, ERR_SYSTEM,
				"failed to set bridge addr: could not remove %s from \"%s\"",
				prefix_format(&f->other, text), l->name);
		if (scan(nl, l, f, e) || (!f->same && add_gateway(nl, l, f->want, e)))
			return -1;
	}
	return 0;
}

static int ensure_address(struct nl *nl, const struct bridge_conf *c, const struct link *l,
	const struct prefix *gw, struct undo *undo, struct err *e)
{
	struct conflict found = {.want = gw};
	char have[PREFIX_STRLEN], want[PREFIX_STRLEN];

	if (scan(nl, l, &found, e))
		return -1;
	if (found.same)
		return 0;
	if (found.other.ip.family && !c->force_address)
		return err_set(e, ERR_CONFLICT,
			"failed to set bridge addr: \"%s\" already has an IP address different "
			"from %s: %s",
			l->name, prefix_format(gw, want), prefix_format(&found.other, have));
	if (add_gateway(nl, l, gw, e) || push_gateway(c, l, gw, undo, e))
		return -1;
	return replace_addresses(nl, l, &found, e);
}

struct vlan_undo {
	const char *bridge;
	char name[IFNAMSIZ];
};

/* As for the gateway's address: only while nobody else is on the bridge. */
static void remove_vlan_link(void *arg)
{
	const struct vlan_undo *v = arg;
	autonl *nl = NULL;
	autoerr ignored = {0};
	struct ports p = {0};
	struct link br;

	if (nl_open(&nl, NETLINK_ROUTE, &ignored) || link_get(nl, v->bridge, &br))
		return;
	if (!link_each_port(nl, br.index, count_port, &p) && p.others <= 1)
		link_del_name(nl, v->name);
}

static int push_vlan_link(
	const struct bridge_conf *c, const char *name, struct undo *undo, struct err *e)
{
	struct vlan_undo *v = calloc(1, sizeof(*v));

	if (!v)
		return err_memory(e);
	v->bridge = c->bridge;
	/* read_conf() has seen to it that it fits. */
	memcpy(v->name, name, strnlen(name, sizeof(v->name) - 1));
	return undo_push(undo, remove_vlan_link, free, v, e);
}

static int set_gateway_vlan(
	struct nl *nl, const struct bridge_conf *c, const char *port, struct err *e)
{
	struct bridge_conf only_vlan = *c;

	only_vlan.trunk = (struct vlan_set){0};
	return set_port_vlans(nl, &only_vlan, port, e);
}

/* The VLAN interface was there already: one that we made may have been made by an ADD that was
 * killed, or is not done yet, before its port was in the VLAN. */
static int settle_vlan_link(
	struct nl *nl, const struct bridge_conf *c, const struct link *l, struct err *e)
{
	struct port_vlans seen = {0};
	struct link port;
	int ret;

	if (!is_ours(l))
		return 0;
	ret = link_get_index(nl, l->peer, &port);
	if (!ret)
		ret = brvlan_get(nl, port.index, &seen);
	if (ret)
		return err_sys(
			e, -ret, ERR_SYSTEM, "failed to look up the port of \"%s\"", l->name);
	return seen.pvid == c->vlan ? 0 : set_gateway_vlan(nl, c, port.name, e);
}

/* With a VLAN the gateway sits on an interface of its own: a veth pair whose one end is a port in
 * that VLAN. Shared by the network's containers, like the bridge, and as lasting. */
static int ensure_vlan_link(struct nl *nl, const struct bridge_conf *c, const struct link *br,
	struct undo *undo, struct link *out, struct err *e)
{
	char name[32], port[IFNAMSIZ], ext[256];
	uint8_t suffix[6], mac[6];
	autoreq req = {0};
	int ret, failed = 0;

	snprintf(name, sizeof(name), "%s.%lld", c->bridge, (long long)c->vlan);
	ret = link_get(nl, name, out);
	if (!ret)
		return settle_vlan_link(nl, c, out, e);
	ret = mac_random(suffix);
	if (!ret)
		ret = mac_random(mac);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to make a random MAC address");
	snprintf(port, sizeof(port), "veth%02x%02x%02x%02x", suffix[2], suffix[3], suffix[4],
		suffix[5]);
	link_put_new(
		&req, &(struct link_new){.kind = &kind_veth,
			      .data = &(struct veth_data){.name = name, .mac = mac, .mtu = br->mtu},
			      .name = port,
			      .mtu = br->mtu,
			      .master = br->index,
			      .up = true});
	link_put(&req, &(struct link_set){.name = port, .alias = BRIDGE_ALIAS});
	link_put(
		&req, &(struct link_set){.name = name, .alias = BRIDGE_ALIAS, .flags_set = IFF_UP});
	ret = nl_ack(nl, &req, ext, sizeof(ext), &failed);
	/* Somebody else's first ADD has just made it. */
	if (ret == -EEXIST && !failed)
		return link_need(nl, name, out, e) ? -1 : settle_vlan_link(nl, c, out, e);
	if (ret) {
		err_sys(e, -ret, ERR_SYSTEM, "failed to create VLAN interface \"%s\"", name);
		return *ext ? err_detail(e, "%s", ext) : -1;
	}
	if (set_gateway_vlan(nl, c, port, e)) {
		link_del_name(nl, port);
		return -1;
	}
	return push_vlan_link(c, name, undo, e) || link_need(nl, name, out, e) ? -1 : 0;
}

static int enable_forwarding(uint8_t family, struct err *e)
{
	const char *path =
		family == AF_INET ? "net/ipv4/ip_forward" : "net/ipv6/conf/all/forwarding";
	int ret = sysctl_ensure(path, "1");

	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to enable forwarding (%s)", path) : 0;
}

static int set_gateways(struct nl *nl, const struct bridge_conf *c, const struct link *l,
	const struct result *r, struct undo *undo, struct err *e)
{
	static const uint8_t families[] = {AF_INET, AF_INET6};

	for (size_t f = 0; f < array_len(families); f++) {
		bool any = false;

		for (size_t i = 0; i < r->ips_len; i++) {
			const struct ip_config *ip = &r->ips[i];
			struct prefix gw = {ip->gateway, ip->address.len};

			if (ip->gateway.family != families[f])
				continue;
			if (ensure_address(nl, c, l, &gw, undo, e))
				return -1;
			any = true;
		}
		if (any && enable_forwarding(families[f], e))
			return -1;
	}
	return 0;
}

/* ---- ADD ---- */

/* The first address of the network, when IPAM names no gateway. */
static struct ip implied_gateway(const struct prefix *address)
{
	return ip_next(prefix_network(address));
}

/* Whether the result has a default route of the family; one without a gateway is as good: the
 * address's gateway fills it in when it is set. */
static bool has_default(const struct result *r, uint8_t family)
{
	for (size_t i = 0; i < r->routes_len; i++)
		if (r->routes[i].dst.ip.family == family && !r->routes[i].dst.len &&
			(!r->routes[i].has_table || !r->routes[i].table))
			return true;
	return false;
}

static int fill_gateways(const struct bridge_conf *c, struct result *r, struct err *e)
{
	for (size_t i = 0; i < r->ips_len; i++) {
		struct ip_config *ip = &r->ips[i];
		uint8_t family = ip->address.ip.family;

		ip->has_iface = true;
		ip->iface = 2;
		if (!ip->gateway.family && c->is_gateway)
			ip->gateway = implied_gateway(&ip->address);
		if (c->is_default_gateway && ip->gateway.family == family &&
			!has_default(r, family)) {
			struct prefix all = {.ip.family = family};
			struct route *route = result_add_route(r, &all, e);

			if (!route)
				return -1;
			route->gw = r->ips[i].gateway;
		}
	}
	return 0;
}

static int add_interfaces(const struct request *req, const struct bridge_conf *c,
	const struct link *br, const struct veth *v, struct result *r, struct err *e)
{
	char mac[MAC_STRLEN];

	if (!result_add_iface(r, c->bridge, mac_format(br->mac, mac), NULL, e) ||
		!result_add_iface(r, v->host_name, mac_format(v->host_mac, mac), NULL, e) ||
		!result_add_iface(r, req->ifname, mac_format(v->mac, mac), req->netns, e))
		return -1;
	return 0;
}

static void undo_spoof(void *owner)
{
	autoerr ignored = {0};

	spoof_del(owner, &ignored);
}

static void undo_masq(void *owner)
{
	autoerr ignored = {0};

	ipmasq_del(owner, &ignored);
}

static int masquerade(
	const struct request *req, const struct result *r, struct undo *undo, struct err *e)
{
	autofree struct prefix *addrs = calloc(r->ips_len ? r->ips_len : 1, sizeof(*addrs));

	if (!addrs)
		return err_memory(e);
	for (size_t i = 0; i < r->ips_len; i++)
		addrs[i] = r->ips[i].address;
	return ipmasq_add(&req->owner, addrs, r->ips_len, e) ||
			       undo_push(undo, undo_masq, NULL, (void *)&req->owner, e)
		       ? -1
		       : 0;
}

static int set_host_side(const struct sandbox *sb, const struct request *req,
	const struct bridge_conf *c, const struct link *br, struct reply *reply, struct err *e)
{
	struct result *r = &reply->result;
	struct link gateway = *br;
	char mac[MAC_STRLEN];

	if (c->is_gateway && c->vlan) {
		if (ensure_vlan_link(sb->host, c, br, &reply->undo, &gateway, e) ||
			!result_add_iface(r, gateway.name, mac_format(gateway.mac, mac), NULL, e))
			return -1;
	}
	if (c->is_gateway && set_gateways(sb->host, c, &gateway, r, &reply->undo, e))
		return -1;
	return c->ip_masq ? masquerade(req, r, &reply->undo, e) : 0;
}

static int add_layer3(const struct sandbox *sb, const struct request *req,
	const struct bridge_conf *c, const struct link *br, const struct veth *v,
	struct reply *reply, struct err *e)
{
	struct result *r = &reply->result;
	struct ifsetup setup = {req->ifname, v->index, c->enabledad};

	if (delegate_add(req, c->ipam, &reply->undo, r, e))
		return -1;
	if (!r->ips_len)
		return err_set(e, ERR_PLUGIN, "IPAM plugin returned missing IP config");
	result_drop_ifaces(r);
	if (add_interfaces(req, c, br, v, r, e) || fill_gateways(c, r, e))
		return -1;
	if (ifsetup(sb, &setup, r, e))
		return -1;
	return set_host_side(sb, req, c, br, reply, e);
}

/* With the spanning tree protocol it takes half a minute to forward: nobody waits for that. */
static bool port_ready(const struct link *l)
{
	return l->operstate == IF_OPER_UP && l->port_state != BR_STATE_DISABLED;
}

/* Neighbours are told where the addresses live when the frames that tell them get through. */
static int wait_for_port(
	const struct sandbox *sb, const struct link *br, const struct veth *v, struct err *e)
{
	struct link l;
	int ret = link_wait(sb->host, -1, v->host_name, port_ready, PORT_TIMEOUT_MS, &l);

	if (ret == -ETIMEDOUT && l.operstate != IF_OPER_UP)
		return err_set(e, ERR_TRY_AGAIN,
			"bridge port in error state: operstate %d, state %d", l.operstate,
			l.port_state);
	if (ret && ret != -ETIMEDOUT)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", v->host_name);
	/* The kernel cannot delete a bridge only if it is empty: an ADD that failed next to us may
	 * have counted its ports just before ours came. */
	if (l.master != br->index)
		return err_set(e, ERR_TRY_AGAIN, "port \"%s\" has lost its bridge \"%s\"",
			v->host_name, br->name);
	ifsetup_announce(sb, v->index, v->mac);
	return 0;
}

/* A result without addresses does not exist in the oldest versions: better said before the work. */
static int check_expressible(const struct request *req, const struct bridge_conf *c, struct err *e)
{
	int cmp;

	if (c->ipam)
		return 0;
	if (cni_version_cmp(req->version, "0.3.0", &cmp, e))
		return -1;
	return cmp < 0 ? err_set(e, ERR_INVALID_CONFIG, "cannot convert: no valid IP addresses")
		       : 0;
}

static int bridge_add(const struct request *req, struct reply *reply, struct err *e)
{
	autosandbox sb = SANDBOX_NONE;
	struct result *r = &reply->result;
	autoconf c = {0};
	struct link br;
	struct veth v;

	if (read_conf(&c, req, e) || check_expressible(req, &c, e))
		return -1;
	if (sandbox_open(&sb, req, NULL, e) || veth_name_free(&sb, req->ifname, e))
		return -1;
	if (add_port(&sb, req, &c, &reply->undo, &br, &v, e))
		return -1;
	if (c.macspoofchk &&
		(spoof_add(&req->owner, v.host_name, v.mac, e) ||
			undo_push(&reply->undo, undo_spoof, NULL, (void *)&req->owner, e)))
		return -1;
	if (c.ipam ? add_layer3(&sb, req, &c, &br, &v, reply, e)
		   : add_interfaces(req, &c, &br, &v, r, e))
		return -1;
	if (!c.disabled && wait_for_port(&sb, &br, &v, e))
		return -1;
	if (c.has_dns || !c.ipam) {
		dns_free(&r->dns);
		r->dns = c.dns;
		c.dns = (struct dns){0};
	}
	return 0;
}

/* ---- DEL ---- */

/* Every part is tried, whatever the config says now and whatever failed before: the link first, so
 * that nothing passes without its rules, the address last, so that nobody else gets it while this
 * container still has it. */
static int bridge_del(const struct request *req, struct err *e)
{
	const char *ipam = NULL;
	struct err part[4] = {0};

	veth_del(req, &part[0]);
	spoof_del(&req->owner, &part[1]);
	ipmasq_del(&req->owner, &part[2]);
	if (!delegate_ipam_type(req, &ipam, &part[3]) && ipam)
		delegate_call(req, ipam, VERB_DEL, &part[3]);
	for (size_t i = 0; i < array_len(part); i++)
		err_merge(e, &part[i]);
	return e->set ? -1 : 0;
}

/* ---- CHECK ---- */

static const struct iface *host_entry(const struct result *r, const char *name)
{
	for (size_t i = 0; i < r->ifaces_len; i++)
		if (!strcmp(r->ifaces[i].name, name) && !r->ifaces[i].sandbox)
			return &r->ifaces[i];
	return NULL;
}

static int check_mac(const struct iface *entry, const struct link *l, struct err *e)
{
	char mac[MAC_STRLEN];

	if (!entry->mac || !strcasecmp(entry->mac, mac_format(l->mac, mac)))
		return 0;
	return err_set(e, ERR_CHECK, "interface %s Mac doesn't match: %s not found, it is %s",
		entry->name, entry->mac, mac);
}

static int check_bridge_link(const struct sandbox *sb, const struct bridge_conf *c,
	const struct result *r, struct link *br, struct err *e)
{
	const struct iface *entry = host_entry(r, c->bridge);
	int ret;

	if (!entry)
		return err_set(e, ERR_CHECK,
			"Interface name missing: bridge %s not found in "
			"prevResult",
			c->bridge);
	ret = link_get(sb->host, c->bridge, br);
	if (ret)
		return err_set(e, ERR_CHECK, "Interface name %s not found", c->bridge);
	if (strcmp(br->kind, "bridge") != 0)
		return err_set(
			e, ERR_CHECK, "Interface %s does not have link type of bridge", c->bridge);
	if (c->promisc && !br->promiscuity)
		return err_set(e, ERR_CHECK, "bridge %s is not promiscuous", c->bridge);
	/* That of another's bridge may follow its ports. */
	return is_ours(br) ? check_mac(entry, br, e) : 0;
}

static int check_port(const struct sandbox *sb, const struct bridge_conf *c, const struct result *r,
	const struct link *br, const struct link *inside, struct link *port, struct err *e)
{
	const struct iface *entry;

	if (link_get_index(sb->host, inside->peer, port) || port->peer != inside->index ||
		strcmp(port->kind, "veth") != 0 || port->master != br->index)
		return err_set(
			e, ERR_CHECK, "CNI veth created for bridge %s was not found", c->bridge);
	entry = host_entry(r, port->name);
	if (!entry)
		return err_set(
			e, ERR_CHECK, "Interface name %s not found in prevResult", port->name);
	if (c->hairpin != port->hairpin || c->isolation != port->isolated)
		return err_set(e, ERR_CHECK,
			"port %s: hairpin mode or isolation is not what the config says",
			port->name);
	return check_mac(entry, port, e);
}

static int check_vlans(const struct sandbox *sb, const struct bridge_conf *c,
	const struct link *port, struct err *e)
{
	int64_t pvid = c->vlan ? c->vlan : NATIVE_VLAN;
	struct port_vlans seen = {0};
	int ret;

	if (!has_vlans(c))
		return 0;
	ret = brvlan_get(sb->host, port->index, &seen);
	if (ret)
		return err_sys(
			e, -ret, ERR_SYSTEM, "failed to list the VLANs of \"%s\"", port->name);
	if (seen.pvid != pvid)
		return err_set(e, ERR_CHECK, "port %s: VLAN %lld is not its PVID", port->name,
			(long long)pvid);
	for (uint16_t vid = 1; vid <= VLAN_MAX; vid++)
		if (vlan_set_has(&c->trunk, vid) && !vlan_set_has(&seen.set, vid))
			return err_set(e, ERR_CHECK, "port %s: VLAN %u is missing from its trunk",
				port->name, vid);
	return 0;
}

static int check_rules(const struct request *req, const struct bridge_conf *c,
	const struct result *r, const struct link *port, const struct link *inside, struct err *e)
{
	autofree struct prefix *addrs = calloc(r->ips_len ? r->ips_len : 1, sizeof(*addrs));
	size_t n = 0;

	if (!addrs)
		return err_memory(e);
	for (size_t i = 0; i < r->ips_len; i++) {
		const struct iface *iface = result_ip_iface(r, i);

		if (!iface || !strcmp(iface->name, req->ifname))
			addrs[n++] = r->ips[i].address;
	}
	if (c->macspoofchk && spoof_check(&req->owner, port->name, inside->mac, e))
		return -1;
	return c->ip_masq && c->ipam ? ipmasq_check(&req->owner, addrs, n, e) : 0;
}

static int bridge_check(const struct request *req, struct err *e)
{
	autosandbox sb = SANDBOX_NONE;
	autoresult r = {0};
	autoconf c = {0};
	struct link br, inside, port;
	bool present;

	if (read_conf(&c, req, e) ||
		request_prev_result(req, &r, &present, "Required prevResult missing", e) ||
		sandbox_open(&sb, req, NULL, e))
		return -1;
	if (c.ipam && delegate_call(req, c.ipam, VERB_CHECK, e))
		return -1;
	if (check_bridge_link(&sb, &c, &r, &br, e) ||
		ifcheck_link(&sb, req, &r, "veth", &inside, e) ||
		check_port(&sb, &c, &r, &br, &inside, &port, e) || check_vlans(&sb, &c, &port, e))
		return -1;
	if (c.ipam && ifcheck(&sb, req->ifname, &r, e))
		return -1;
	return check_rules(req, &c, &r, &port, &inside, e);
}

/* ---- STATUS, GC ---- */

static int bridge_status(const struct request *req, struct err *e)
{
	autoconf c = {0};

	if (read_conf(&c, req, e) || (c.ip_masq && c.ipam && ipmasq_status(e)) ||
		(c.macspoofchk && spoof_status(e)))
		return -1;
	return c.ipam ? delegate_call(req, c.ipam, VERB_STATUS, e) : 0;
}

/* The bridge goes when it is ours and nobody is left on it. */
static void collect_bridge(const struct request *req, struct err *e)
{
	const char *name = "cni0";
	autonl *nl = NULL;
	struct link br;
	int ret;

	if (json_get_str(req->conf, "bridge", &name, e) || nl_open(&nl, NETLINK_ROUTE, e))
		return;
	ret = link_get(nl, name, &br);
	if (!ret && !strcmp(br.kind, "bridge") && is_ours(&br))
		ret = remove_unused(nl, &br);
	if (ret && ret != -ENODEV)
		err_sys(e, -ret, ERR_SYSTEM, "failed to remove the unused bridge \"%s\"", name);
}

static int bridge_gc(const struct request *req, struct err *e)
{
	struct err part[5] = {0};
	struct valid_set valid;
	const char *ipam = NULL;

	if (request_valid_set(req, &valid, e))
		return -1;
	veth_gc(req, &valid, &part[0]);
	spoof_gc(req, &valid, &part[1]);
	ipmasq_gc(req, &valid, &part[2]);
	if (!valid.len)
		collect_bridge(req, &part[3]);
	if (!delegate_ipam_type(req, &ipam, &part[4]) && ipam)
		delegate_call(req, ipam, VERB_GC, &part[4]);
	valid_set_free(&valid);
	for (size_t i = 0; i < array_len(part); i++)
		err_merge(e, &part[i]);
	return e->set ? -1 : 0;
}

const struct applet applet_bridge = {
	.name = "bridge",
	.help = "Connects a container to a Linux bridge",
	.kind = APPLET_MAIN,
	.add = bridge_add,
	.del = bridge_del,
	.check = bridge_check,
	.gc = bridge_gc,
	.status = bridge_status,
};
