/* bridge: puts a container on a Linux bridge through a veth pair; with IPAM and isGateway the
 * bridge becomes the containers' router. reference/bridge-ptp.md, sections 2 and 3; docs/bridge.md.
 */
#include "attach/attach.h"
#include "attach/gateway.h"
#include "attach/portvlan.h"
#include "attach/verify.h"
#include "attach/veth.h"
#include "base/cleanup.h"
#include "base/mac.h"
#include "base/vec.h"
#include "cni/names.h"
#include "filter/spoof.h"
#include "netlink/addr.h"
#include "netlink/sysctl.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/if_bridge.h>
#include <stdio.h>
#include <string.h>

/* How long the host's end may take to come up: as long as the Go plugin waits. */
#define PORT_TIMEOUT_MS 2550

/* How often a bridge is made anew that an ADD failing beside this one has just removed. */
#define BRIDGE_ATTEMPTS 4

/* The mark of a bridge (or of its VLAN interface) that we made, so that GC may take it away. */
#define BRIDGE_ALIAS "cnibox bridge"

struct bridge {
	const char *name;
	bool is_gateway, is_default_gateway, force_address;
	bool hairpin, promisc, macspoofchk, enabledad, disabled, isolation;
	struct portvlan vlans;

	/* What ADD has made, or CHECK has found. */
	struct link link; /* the bridge */
	struct veth veth; /* ADD only */
};

static const struct json_key keys[] = {
	JSON_KEY_STR(struct bridge, "bridge", name),
	JSON_KEY_BOOL(struct bridge, "isGateway", is_gateway),
	JSON_KEY_BOOL(struct bridge, "isDefaultGateway", is_default_gateway),
	JSON_KEY_BOOL(struct bridge, "forceAddress", force_address),
	JSON_KEY_BOOL(struct bridge, "hairpinMode", hairpin),
	JSON_KEY_BOOL(struct bridge, "promiscMode", promisc),
	JSON_KEY_BOOL(struct bridge, "macspoofchk", macspoofchk),
	JSON_KEY_BOOL(struct bridge, "enabledad", enabledad),
	JSON_KEY_BOOL(struct bridge, "disableContainerInterface", disabled),
	JSON_KEY_BOOL(struct bridge, "portIsolation", isolation),
	/* Read by portvlan_read(). */
	JSON_KEY_KNOWN("vlan"),
	JSON_KEY_KNOWN("vlanTrunk"),
	JSON_KEY_KNOWN("preserveDefaultVlan"),
	JSON_KEYS_END,
};

/* ---- config ---- */

static bool has_vlan_gateway(const struct attach *a)
{
	const struct bridge *b = a->own;

	return b->is_gateway && b->vlans.vlan && a->conf.ipam;
}

/* The interface that the gateway has then. */
static int vlan_gateway(const struct bridge *b, char name[static IFNAMSIZ], struct err *e)
{
	if (snprintf(name, IFNAMSIZ, "%s.%u", b->name, b->vlans.vlan) < IFNAMSIZ)
		return 0;
	return err_set(e, ERR_INVALID_CONFIG, "the VLAN interface's name \"%s.%u\" is too long",
		b->name, b->vlans.vlan);
}

static int check_combinations(const struct attach *a, struct err *e)
{
	const struct bridge *b = a->own;
	const char *details, *wrong = ifname_invalid(b->name, &details);

	if (wrong)
		return err_set(e, ERR_INVALID_CONFIG, "failed to create bridge \"%s\": %s", b->name,
			wrong);
	if (ifname_is_template(b->name))
		return err_set(e, ERR_INVALID_CONFIG,
			"failed to create bridge \"%s\": a name with %% is a template to the kernel",
			b->name);
	if (b->hairpin && b->promisc)
		return err_set(e, ERR_INVALID_CONFIG,
			"cannot set hairpin mode and promiscuous mode at the same time");
	if (a->conf.ipam && b->disabled)
		return err_set(e, ERR_INVALID_CONFIG,
			"cannot use IPAM when DisableContainerInterface flag is set");
	return 0;
}

/* First that of the config; then, since that may be an alternative one, the name of the link there
 * is: other names are made of it, and rules look for it. */
static int take_name(struct attach *a, const char *name, struct err *e)
{
	struct bridge *b = a->own;
	char gateway[IFNAMSIZ];

	b->name = name;
	if (!has_vlan_gateway(a))
		return 0;
	a->via.bridge = name;
	return vlan_gateway(b, gateway, e);
}

static int conf(struct attach *a, struct err *e)
{
	struct bridge *b = a->own;

	if (!b->name)
		b->name = "cni0";
	b->is_gateway = b->is_gateway || b->is_default_gateway;
	a->dad = b->enabledad;
	a->disabled = b->disabled;
	if (portvlan_read(&b->vlans, a->req->conf, e) || check_combinations(a, e))
		return -1;
	return take_name(a, b->name, e);
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

static int push_unmake(struct attach *a, struct err *e)
{
	const struct bridge *b = a->own;
	char *name = strdup(b->name);

	if (!name) {
		unmake_bridge((void *)b->name);
		return err_memory(e);
	}
	return undo_push(&a->reply->undo, unmake_bridge, free, name, e);
}

static int make_bridge(struct attach *a, struct err *e)
{
	const struct bridge *b = a->own;
	struct bridge_data data = {.vlan_filtering = portvlan_filters(&b->vlans)};
	char ext[256] = "";
	uint8_t mac[6];
	struct link_new new = {
		.kind = &kind_bridge,
		.data = &data,
		.name = b->name,
		.mtu = a->conf.mtu,
		.mac = mac,
		.up = true,
	};
	int ret;

	/* Fixed from the start: a bridge without an address of its own takes its lowest port's, and
	 * changes it as containers come and go. */
	ret = mac_random(mac);
	if (!ret)
		ret = link_create(a->sb.host, &new, BRIDGE_ALIAS, ext, sizeof(ext));
	if (ret == -EEXIST)
		return 0; /* another first ADD was faster */
	if (ret)
		return err_kernel(
			e, -ret, ext, ERR_SYSTEM, "failed to create bridge \"%s\"", b->name);
	return push_unmake(a, e);
}

static int check_kind(const struct bridge *b, const struct bridge_data *data, struct err *e)
{
	if (strcmp(b->link.kind, "bridge") != 0)
		return err_set(e, ERR_CONFLICT,
			"failed to create bridge \"%s\": \"%s\" already exists but is not a bridge",
			b->name, b->name);
	/* Without filtering the kernel would store the VLANs and separate nobody. */
	if (portvlan_any(&b->vlans) && !data->vlan_filtering)
		return err_set(e, ERR_CONFLICT,
			"bridge \"%s\" exists without VLAN filtering, which vlan and vlanTrunk need",
			b->name);
	return 0;
}

static int find_bridge(struct attach *a, struct err *e)
{
	struct bridge *b = a->own;
	struct bridge_data data = {0};
	int ret = link_get_data(a->sb.host, b->name, &kind_bridge, &b->link, &data);

	if (ret == -ENODEV) {
		if (make_bridge(a, e))
			return -1;
		ret = link_get_data(a->sb.host, b->name, &kind_bridge, &b->link, &data);
	}
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up bridge \"%s\"", b->name);
	return check_kind(b, &data, e) || take_name(a, b->link.name, e) ? -1 : 0;
}

static int ensure_bridge(struct attach *a, struct err *e)
{
	struct bridge *b = a->own;
	uint32_t flags = IFF_UP | (b->promisc ? IFF_PROMISC : 0);
	int ret;

	if (find_bridge(a, e))
		return -1;
	gateway_ignore_routers(b->link.name, sysctl_ensure);
	if ((b->link.flags & flags) == flags)
		return 0;
	ret = link_apply(
		a->sb.host, &(struct link_set){.index = b->link.index, .flags_set = flags});
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to bring up bridge \"%s\"", b->name) : 0;
}

/* ---- the port ---- */

static int make_port(struct attach *a, struct err *e)
{
	struct bridge *b = a->own;
	struct veth_spec spec = {
		.ifname = a->req->ifname,
		.mac = a->conf.has_mac ? a->conf.mac : NULL,
		.mtu = a->conf.mtu,
		.master = b->link.index,
		.hairpin = b->hairpin,
		.isolated = b->isolation,
		.up = a->up,
	};

	return veth_create(&a->sb, &a->req->owner, &spec, &a->reply->undo, &b->veth, e);
}

static int attach(struct attach *a, struct err *e)
{
	struct bridge *b = a->own;

	for (int attempt = 1; ensure_bridge(a, e) || make_port(a, e); attempt++) {
		/* A failing ADD next to us has just removed the bridge it had made. */
		if (e->sys != ENODEV || attempt == BRIDGE_ATTEMPTS)
			return -1;
		err_clear(e);
	}
	a->link = b->veth.inside;
	gateway_ignore_routers(b->veth.host_name, sysctl_set);
	/* A bridge that is not ours may just have taken over the new port's address. */
	if (!is_ours(&b->link) && link_need(a->sb.host, b->name, &b->link, e))
		return -1;
	return portvlan_set(a->sb.host, &b->vlans, b->veth.host_name, e);
}

static void undo_spoof(void *owner)
{
	autoerr ignored = {0};

	spoof_del(owner, &ignored);
}

static int filter(struct attach *a, struct err *e)
{
	const struct bridge *b = a->own;

	if (!b->macspoofchk)
		return 0;
	if (spoof_add(&a->req->owner, b->veth.host_name, a->link.mac, e))
		return -1;
	return undo_push(&a->reply->undo, undo_spoof, NULL, (void *)&a->req->owner, e);
}

static int entries(struct attach *a, struct err *e)
{
	struct bridge *b = a->own;
	const struct veth *v = &b->veth;

	/* A bridge follows its ports' MTU, the smallest one. */
	if (b->link.mtu != v->inside.mtu && link_need(a->sb.host, b->name, &b->link, e))
		return -1;
	if (attach_add_host_entry(a, b->name, b->link.mac, b->link.mtu, e) ||
		attach_add_host_entry(a, v->host_name, v->host_mac, v->inside.mtu, e))
		return -1;
	return attach_add_entry(a, e);
}

/* With the spanning tree protocol it takes half a minute to forward: nobody waits for that. */
static bool port_ready(const struct link *l)
{
	return l->operstate == IF_OPER_UP && l->port_state != BR_STATE_DISABLED;
}

static int ready(struct attach *a, struct err *e)
{
	const struct bridge *b = a->own;
	const char *name = b->veth.host_name;
	struct link l;
	int ret = link_wait(a->sb.host, -1, name, port_ready, PORT_TIMEOUT_MS, &l);

	if (ret == -ETIMEDOUT && l.operstate != IF_OPER_UP)
		return err_set(e, ERR_TRY_AGAIN,
			"bridge port in error state: operstate %d, state %d", l.operstate,
			l.port_state);
	if (ret && ret != -ETIMEDOUT)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", name);
	/* A bridge is counted empty and deleted in two steps: an ADD that failed next to us may
	 * have counted just before our port came. */
	if (l.master != b->link.index)
		return err_set(e, ERR_TRY_AGAIN, "port \"%s\" has lost its bridge \"%s\"", name,
			b->link.name);
	return 0;
}

/* ---- the gateway ---- */

/* What an ADD that fails takes back, but only while nobody has come to the bridge since: others may
 * count on it by now. */
struct shared {
	char bridge[IFNAMSIZ];
	size_t ports;          /* how many there were, ours included */
	char name[IFNAMSIZ];   /* a VLAN interface, or */
	uint32_t index;        /* the link that has */
	struct prefix address; /* this address, in place of */
	struct prefix *former; /* these */
	size_t former_len;
};

static void shared_free(void *arg)
{
	struct shared *s = arg;

	free(s->former);
	free(s);
}

/* The new address goes first: the former ones of its network would be secondary to it, and go
 * along. */
static void restore_addresses(struct nl *nl, const struct shared *s)
{
	addr_del(nl, s->index, &s->address);
	for (size_t i = 0; i < s->former_len; i++)
		addr_add(nl, s->index, &s->former[i], IFA_F_NODAD);
}

static void remove_shared(void *arg)
{
	const struct shared *s = arg;
	autonl *nl = NULL;
	autoerr ignored = {0};
	struct ports p = {0};
	struct link br;

	if (nl_open(&nl, NETLINK_ROUTE, &ignored) || link_get(nl, s->bridge, &br))
		return;
	if (link_each_port(nl, br.index, count_port, &p) || p.others > s->ports)
		return;
	if (*s->name)
		link_del_name(nl, s->name);
	else
		restore_addresses(nl, s);
}

/* Pushes what is to be taken back. Returns it, for more to be added; NULL with e set. */
static struct shared *push_shared(struct attach *a, const struct shared *what, struct err *e)
{
	const struct bridge *b = a->own;
	struct shared *s = malloc(sizeof(*s));
	struct ports p = {0};
	int ret;

	if (!s) {
		err_memory(e);
		return NULL;
	}
	*s = *what;
	memcpy(s->bridge, b->link.name, sizeof(s->bridge));
	ret = link_each_port(a->sb.host, b->link.index, count_port, &p);
	s->ports = p.others;
	if (undo_push(&a->reply->undo, remove_shared, shared_free, s, e))
		return NULL;
	if (!ret)
		return s;
	err_sys(e, -ret, ERR_SYSTEM, "failed to list the ports of \"%s\"", b->name);
	return NULL;
}

static int keep_former(const struct prefix *address, void *arg, struct err *e)
{
	struct shared *s = arg;
	struct prefix *p = vec_add(s->former, s->former_len);

	if (!p)
		return err_memory(e);
	*p = *address;
	return 0;
}

static int put_address(
	struct attach *a, const struct link *l, const struct prefix *gw, struct err *e)
{
	const struct bridge *b = a->own;
	struct shared what = {.index = l->index, .address = *gw}, *s;
	bool added;

	if (gateway_add(a->sb.host, l, gw, b->force_address, &added, e))
		return -1;
	if (!added)
		return 0;
	/* Containers will know the gateway by this MAC address. Setting it, though it is what it
	 * is, makes it the bridge's own, which no longer follows its ports. */
	if (!is_ours(l))
		link_apply(a->sb.host, &(struct link_set){.index = l->index, .mac = l->mac});
	s = push_shared(a, &what, e);
	return s ? gateway_replace(a->sb.host, l, gw, keep_former, s, e) : -1;
}

static int set_gateways(struct attach *a, const struct link *l, struct err *e)
{
	static const uint8_t families[] = {AF_INET, AF_INET6};
	const struct result *r = a->result;

	for (size_t f = 0; f < array_len(families); f++) {
		bool any = false;

		for (size_t i = 0; i < r->ips_len; i++) {
			const struct ip_config *ip = &r->ips[i];
			struct prefix gw = {ip->gateway, ip->address.len};

			if (ip->gateway.family != families[f])
				continue;
			if (put_address(a, l, &gw, e))
				return -1;
			any = true;
		}
		if (any && gateway_forward(families[f], e))
			return -1;
	}
	return 0;
}

/* The port of the VLAN interface is in its VLAN only. */
static int set_gateway_vlan(struct attach *a, const char *port, struct err *e)
{
	const struct bridge *b = a->own;
	struct portvlan only_vlan = {.vlan = b->vlans.vlan, .keep_default = b->vlans.keep_default};

	return portvlan_set(a->sb.host, &only_vlan, port, e);
}

/* The VLAN interface was there already. One of ours may be that of an ADD that was killed, or is
 * not done yet, before its port was in the VLAN. */
static int settle_vlan_link(struct attach *a, const struct link *l, struct err *e)
{
	const struct bridge *b = a->own;
	struct port_vlans now;
	struct link port;
	int ret;

	if (!is_ours(l))
		return 0;
	ret = link_get_index(a->sb.host, l->peer, &port);
	if (!ret)
		ret = brvlan_get(a->sb.host, port.index, &now);
	if (ret)
		return err_sys(
			e, -ret, ERR_SYSTEM, "failed to look up the port of \"%s\"", l->name);
	return now.pvid == b->vlans.vlan ? 0 : set_gateway_vlan(a, port.name, e);
}

/* Both ends in the host's namespace, both marked. Returns 0, -EEXIST when somebody else's first ADD
 * has just made it, or another -errno. */
static int make_vlan_pair(
	struct attach *a, const char *name, char port[static IFNAMSIZ], char *ext, size_t size)
{
	const struct bridge *b = a->own;
	uint8_t port_mac[6], mac[6];
	struct veth_data data = {.name = name, .mac = mac, .mtu = b->link.mtu};
	struct link_new new = {
		.kind = &kind_veth,
		.data = &data,
		.name = port,
		.mac = port_mac,
		.mtu = b->link.mtu,
		.master = b->link.index,
		.up = true,
	};
	autoreq req = {0};
	int failed = 0, ret = mac_random_port(port_mac);

	if (!ret)
		ret = mac_random(mac);
	if (ret)
		return ret;
	snprintf(port, IFNAMSIZ, "veth%02x%02x%02x%02x", port_mac[2], port_mac[3], port_mac[4],
		port_mac[5]);
	link_put_new(&req, &new);
	link_put(&req, &(struct link_set){.name = port, .alias = BRIDGE_ALIAS});
	link_put(
		&req, &(struct link_set){.name = name, .alias = BRIDGE_ALIAS, .flags_set = IFF_UP});
	ret = nl_ack(a->sb.host, &req, ext, size, &failed);
	if (!failed)
		return ret;
	/* The pair is there, but without its marks; -EEXIST means something else then. */
	link_del_name(a->sb.host, port);
	return ret == -EEXIST ? -EINVAL : ret;
}

/* With a VLAN the gateway sits on an interface of its own: a veth pair whose one end is a port in
 * that VLAN. Shared by the network's containers, like the bridge, and as lasting. */
static int ensure_vlan_link(struct attach *a, struct link *out, struct err *e)
{
	const struct bridge *b = a->own;
	char port[IFNAMSIZ] = "", ext[256] = "";
	struct shared s = {0};
	int ret;

	if (vlan_gateway(b, s.name, e))
		return -1;
	ret = link_get(a->sb.host, s.name, out);
	if (!ret)
		return settle_vlan_link(a, out, e);
	ret = make_vlan_pair(a, s.name, port, ext, sizeof(ext));
	if (ret == -EEXIST)
		return link_need(a->sb.host, s.name, out, e) ? -1 : settle_vlan_link(a, out, e);
	if (ret)
		return err_kernel(
			e, -ret, ext, ERR_SYSTEM, "failed to create VLAN interface \"%s\"", s.name);
	if (set_gateway_vlan(a, port, e)) {
		link_del_name(a->sb.host, port);
		return -1;
	}
	return !push_shared(a, &s, e) || link_need(a->sb.host, s.name, out, e) ? -1 : 0;
}

/* ---- IPAM's result ---- */

static int complete(struct attach *a, struct err *e)
{
	const struct bridge *b = a->own;

	return b->is_gateway ? gateway_fill(a->result, b->is_default_gateway, e) : 0;
}

static int host(struct attach *a, struct err *e)
{
	const struct bridge *b = a->own;
	struct link gateway = b->link;

	if (!b->is_gateway)
		return 0;
	if (b->vlans.vlan &&
		(ensure_vlan_link(a, &gateway, e) ||
			attach_add_host_entry(a, gateway.name, gateway.mac, gateway.mtu, e)))
		return -1;
	memcpy(a->via.mac, gateway.mac, sizeof(a->via.mac));
	return set_gateways(a, &gateway, e);
}

/* ---- CHECK ---- */

static int check_bridge(struct attach *a, struct err *e)
{
	struct bridge *b = a->own;
	const struct iface *entry;

	if (link_get(a->sb.host, b->name, &b->link))
		return err_set(e, ERR_CHECK, "Interface name %s not found", b->name);
	if (take_name(a, b->link.name, e))
		return -1;
	entry = ifcheck_host_entry(a->result, b->name);
	if (!entry)
		return err_set(e, ERR_CHECK,
			"Interface name missing: bridge %s not found in prevResult", b->name);
	if (strcmp(b->link.kind, "bridge") != 0)
		return err_set(
			e, ERR_CHECK, "Interface %s does not have link type of bridge", b->name);
	if (b->promisc && !b->link.promiscuity)
		return err_set(e, ERR_CHECK, "bridge %s is not promiscuous", b->name);
	/* That of another's bridge may follow its ports. */
	return is_ours(&b->link) ? ifcheck_mac(entry, &b->link, e) : 0;
}

static int check_port(struct attach *a, struct link *port, struct err *e)
{
	const struct bridge *b = a->own;
	const struct iface *entry;

	if (link_get_index(a->sb.host, a->link.peer, port) || port->peer != a->link.index ||
		strcmp(port->kind, "veth") != 0 || port->master != b->link.index)
		return err_set(
			e, ERR_CHECK, "CNI veth created for bridge %s was not found", b->name);
	entry = ifcheck_host_entry(a->result, port->name);
	if (!entry)
		return err_set(
			e, ERR_CHECK, "Interface name %s not found in prevResult", port->name);
	if (b->hairpin != port->hairpin || b->isolation != port->isolated)
		return err_set(e, ERR_CHECK,
			"port %s: hairpin mode or isolation is not what the config says",
			port->name);
	return ifcheck_mac(entry, port, e);
}

/* For the masquerading behind it. */
static int find_vlan_gateway(struct attach *a, struct err *e)
{
	const struct bridge *b = a->own;
	struct link gateway;
	char name[IFNAMSIZ];

	if (!has_vlan_gateway(a))
		return 0;
	if (vlan_gateway(b, name, e) || link_need(a->sb.host, name, &gateway, e))
		return -1;
	memcpy(a->via.mac, gateway.mac, sizeof(a->via.mac));
	return 0;
}

static int check(struct attach *a, struct err *e)
{
	const struct bridge *b = a->own;
	struct link port;

	if (check_bridge(a, e) || check_port(a, &port, e) ||
		portvlan_check(a->sb.host, &b->vlans, &port, e) || find_vlan_gateway(a, e))
		return -1;
	return b->macspoofchk ? spoof_check(&a->req->owner, port.name, a->link.mac, e) : 0;
}

static int status(struct attach *a, struct err *e)
{
	const struct bridge *b = a->own;

	return b->macspoofchk ? spoof_status(e) : 0;
}

/* ---- DEL, GC ---- */

static int detach(const struct request *req, struct err *e)
{
	autoerr spoof = {0};

	veth_del(req, e);
	spoof_del(&req->owner, &spoof);
	err_merge(e, &spoof);
	return e->set ? -1 : 0;
}

/* The bridge goes when it is ours and nobody is left on it. */
static int collect_bridge(const struct request *req, struct err *e)
{
	const char *name = "cni0";
	autonl *nl = NULL;
	struct link br;
	int ret;

	if (json_get_str(req->conf, "bridge", &name, e) || nl_open(&nl, NETLINK_ROUTE, e))
		return -1;
	ret = link_get(nl, name, &br);
	if (!ret && !strcmp(br.kind, "bridge") && is_ours(&br))
		ret = remove_unused(nl, &br);
	return ret && ret != -ENODEV ? err_sys(e, -ret, ERR_SYSTEM,
					       "failed to remove the unused bridge \"%s\"", name)
				     : 0;
}

static int collect(const struct request *req, const struct valid_set *valid, struct err *e)
{
	struct err part[2] = {0};

	veth_gc(req, valid, e);
	spoof_gc(req, valid, &part[0]);
	if (!valid->len)
		collect_bridge(req, &part[1]);
	for (size_t i = 0; i < array_len(part); i++)
		err_merge(e, &part[i]);
	return e->set ? -1 : 0;
}

static const struct attach_type type = {
	.kind = &kind_veth,
	.keys = KEY_MTU | KEY_MAC | KEY_MAC_ENV | KEY_MASQ,
	.table = keys,
	.conf_size = sizeof(struct bridge),
	.conf = conf,
	.attach = attach,
	.filter = filter,
	.entries = entries,
	.complete = complete,
	.host = host,
	.ready = ready,
	.check = check,
	.status = status,
	.detach = detach,
	.collect = collect,
};

const struct applet applet_bridge = {
	.name = "bridge",
	.help = "Connects a container to a Linux bridge",
	.kind = APPLET_MAIN,
	ATTACH_VERBS(&type),
};
