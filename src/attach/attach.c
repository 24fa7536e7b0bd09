#include "attach/attach.h"

#include "attach/addresses.h"
#include "attach/master.h"
#include "attach/verify.h"
#include "base/cleanup.h"
#include "base/mac.h"
#include "cni/delegate.h"
#include "filter/masquerade.h"

#include <stdlib.h>
#include <string.h>

/* RFC 8200, section 5. */
#define IPV6_MIN_MTU 1280

static void attach_free(struct attach *a)
{
	attach_conf_free(&a->conf);
	result_free(&a->prev);
	sandbox_close(&a->sb);
	free(a->own);
}
#define autoattach __attribute__((cleanup(attach_free))) struct attach

static int call(attach_fn *hook, struct attach *a, struct err *e)
{
	return hook ? hook(a, e) : 0;
}

static const char *kind_name(const struct attach_type *t)
{
	return t->kind ? t->kind->name : NULL;
}

/* ---- what the verbs begin with ---- */

static struct attach attach_of(const struct request *req)
{
	return (struct attach){.type = req->applet->attach, .req = req, .sb = SANDBOX_NONE};
}

static int read_conf(struct attach *a, struct err *e)
{
	const struct attach_type *t = a->type;

	a->own = calloc(1, t->conf_size ? t->conf_size : 1);
	if (!a->own)
		return err_memory(e);
	if (attach_conf_read(&a->conf, a->req, t->keys, e) ||
		(t->table && json_read_keys(a->req->conf, t->table, a->own, e)))
		return -1;
	if (t->ipam_required && !a->conf.ipam)
		return err_set(e, ERR_INVALID_CONFIG, "no plugin name provided: %s needs ipam.type",
			a->req->applet->name);
	return call(t->conf, a, e);
}

/* A master that is not named is an interface of the list so far, if that has just one to offer,
 * else the default route's. CHECK cannot know which it was then. */
static int find_master(struct attach *a, struct err *e)
{
	struct nl *nl = a->conf.inside ? a->sb.nl : a->sb.host;
	const char *name = a->conf.master;

	if (!name && a->req->verb != VERB_ADD)
		return 0;
	if (!name)
		name = master_chained(&a->prev, a->conf.inside ? a->req->netns : NULL);
	if (!name && a->type->keys & KEY_CHAINED && a->has_prev)
		return err_set(e, ERR_INVALID_CONFIG,
			"chained master failure. PrevResult lacks a single named interface %s",
			a->conf.inside ? "in the container" : "on the host");
	return master_find(nl, name, &a->master, e);
}

/* Of what came before in the list an ADD may use the interface, and the addresses. */
static int read_prev(struct attach *a, struct err *e)
{
	bool wanted =
		a->type->keys & KEY_CHAINED || (a->type->keys & KEY_MASTER && !a->conf.master);

	if (wanted && request_prev_result(a->req, &a->prev, &a->has_prev, NULL, e))
		return -1;
	if (a->type->keys & KEY_CHAINED && !a->conf.ipam && !a->prev.ips_len)
		return err_set(e, ERR_INVALID_CONFIG,
			"no plugin name provided: %s needs ipam.type, or addresses in prevResult",
			a->req->applet->name);
	return 0;
}

static int open_inside(struct attach *a, struct err *e)
{
	if (sandbox_open(&a->sb, a->req, e))
		return -1;
	return a->type->keys & KEY_MASTER ? find_master(a, e) : 0;
}

/* Whether the IPAM plugin may want to send and receive through the container's link: dhcp does, of
 * one that is executed it is not known. Our own others only keep books. */
static bool ipam_needs_link(const struct request *req, const char *ipam)
{
	return ipam && (!strcmp(ipam, "dhcp") || !delegate_is_own(req, ipam));
}

/* Whether the container's link gets addresses: those of the list so far are for one that has no
 * IPAM of its own. */
static bool has_layer3(const struct attach *a)
{
	return a->conf.ipam || a->type->keys & KEY_CHAINED;
}

/* ---- ADD ---- */

/* A result without addresses does not exist in the oldest versions: better said before the work. */
static int check_expressible(const struct attach *a, struct err *e)
{
	int cmp;

	if (has_layer3(a))
		return 0;
	if (cni_version_cmp(a->req->version, "0.3.0", &cmp, e))
		return -1;
	return cmp < 0 ? err_set(e, ERR_INVALID_CONFIG, "cannot convert: no valid IP addresses")
		       : 0;
}

/* mac: NULL where there is none, or a longer one. */
static int add_entry(struct attach *a, const char *name, const uint8_t *mac, const char *sandbox,
	uint32_t mtu, struct err *e)
{
	char text[MAC_STRLEN];
	struct iface *entry =
		result_add_iface(a->result, name, mac ? mac_format(mac, text) : NULL, sandbox, e);

	if (!entry)
		return -1;
	iface_set_mtu(entry, a->req->version, mtu);
	return 0;
}

int attach_add_entry(struct attach *a, struct err *e)
{
	return add_entry(a, a->req->ifname, a->link.has_mac ? a->link.mac : NULL, a->req->netns,
		a->link.mtu, e);
}

int attach_add_host_entry(struct attach *a, const char *name, const uint8_t mac[static 6],
	uint32_t mtu, struct err *e)
{
	return add_entry(a, name, mac, NULL, mtu, e);
}

static int add_entries(struct attach *a, struct err *e)
{
	return a->type->entries ? a->type->entries(a, e) : attach_add_entry(a, e);
}

/* All addresses are the container's link's. */
static void assign_addresses(struct attach *a)
{
	struct result *r = a->result;
	const struct iface *own = result_find_iface(r, a->req->ifname, a->req->netns);

	for (size_t i = 0; own && i < r->ips_len; i++) {
		r->ips[i].has_iface = true;
		r->ips[i].iface = own - r->ifaces;
	}
}

static void undo_masq(void *owner)
{
	autoerr ignored = {0};

	ipmasq_del(owner, &ignored);
}

/* The addresses of the result that are the container's link's; owned by the caller. */
static struct prefix *own_addresses(const struct attach *a, size_t *len, struct err *e)
{
	const struct result *r = a->result;
	struct prefix *list = calloc(r->ips_len ? r->ips_len : 1, sizeof(*list));

	*len = 0;
	if (!list)
		err_memory(e);
	for (size_t i = 0; list && i < r->ips_len; i++) {
		const struct ip_config *ip = &r->ips[i];

		if (!ip->has_iface || (ip->iface >= 0 && (uint64_t)ip->iface < r->ifaces_len &&
					      !strcmp(r->ifaces[ip->iface].name, a->req->ifname)))
			list[(*len)++] = ip->address;
	}
	return list;
}

static const struct ipmasq_gateway *via_port(const struct attach *a)
{
	return a->via.bridge ? &a->via : NULL;
}

static int masquerade(struct attach *a, struct err *e)
{
	autofree struct prefix *list = NULL;
	size_t len;

	if (!a->conf.ip_masq)
		return 0;
	list = own_addresses(a, &len, e);
	if (!list || ipmasq_add(&a->req->owner, list, len, via_port(a), e))
		return -1;
	return undo_push(&a->reply->undo, undo_masq, NULL, (void *)&a->req->owner, e);
}

/* The kernel takes IPv6 off such a link and then knows none of its settings. */
static int check_mtu(const struct attach *a, struct err *e)
{
	for (size_t i = 0; i < a->result->ips_len; i++) {
		const struct prefix *p = &a->result->ips[i].address;
		char text[PREFIX_STRLEN];

		if (p->ip.family == AF_INET6 && a->link.mtu && a->link.mtu < IPV6_MIN_MTU)
			return err_set(e, ERR_INVALID_CONFIG,
				"mtu %u of \"%s\" is too small for IPv6 address %s, which needs %d",
				a->link.mtu, a->req->ifname, prefix_format(p, text), IPV6_MIN_MTU);
	}
	return 0;
}

/* IPAM's, or those of the list so far. */
static int take_addresses(struct attach *a, struct err *e)
{
	if (a->conf.ipam)
		return delegate_add(a->req, a->conf.ipam, &a->reply->undo, a->result, e);
	*a->result = a->prev;
	a->prev = (struct result){0};
	return 0;
}

static int add_layer3(struct attach *a, struct err *e)
{
	struct ifsetup setup = {
		.ifname = a->req->ifname,
		.index = a->link.index,
		.dad = a->dad,
		.routed = a->routed,
		.ignore_routers = a->no_ra,
	};
	struct result *r = a->result;

	if (take_addresses(a, e))
		return -1;
	if (!r->ips_len)
		return err_set(e, ERR_PLUGIN, "IPAM plugin returned missing IP config");
	result_drop_ifaces(r);
	if (check_mtu(a, e) || add_entries(a, e))
		return -1;
	assign_addresses(a);
	if (call(a->type->complete, a, e) || (!a->no_link && ifsetup(&a->sb, &setup, r, e)))
		return -1;
	return call(a->type->host, a, e) || masquerade(a, e) ? -1 : 0;
}

/* Neighbours are told where the addresses live when the frames that tell them get through. */
static int finish(struct attach *a, struct err *e)
{
	if (!a->type->ready || a->disabled)
		return 0;
	if (a->type->ready(a, e))
		return -1;
	ifsetup_announce(&a->sb, a->link.index, a->link.mac);
	return 0;
}

static void choose_dns(struct attach *a)
{
	if (!a->conf.has_dns && has_layer3(a))
		return;
	dns_free(&a->result->dns);
	a->result->dns = a->conf.dns;
	a->conf.dns = (struct dns){0};
}

int attach_add(const struct request *req, struct reply *reply, struct err *e)
{
	autoattach a = attach_of(req);
	bool early;

	a.reply = reply;
	a.result = &reply->result;
	if (read_conf(&a, e) || check_expressible(&a, e) || read_prev(&a, e) ||
		open_inside(&a, e) || sandbox_name_free(&a.sb, kind_name(a.type), req->ifname, e))
		return -1;
	early = has_layer3(&a) && !ipam_needs_link(req, a.conf.ipam);
	a.up = !early && !a.disabled;
	if (call(a.type->attach, &a, e) || call(a.type->filter, &a, e))
		return -1;
	if (a.conf.ipam && !early && call(a.type->ready, &a, e))
		return -1;
	if (has_layer3(&a) ? add_layer3(&a, e) : add_entries(&a, e))
		return -1;
	if (finish(&a, e) || call(a.type->late, &a, e))
		return -1;
	choose_dns(&a);
	return 0;
}

/* ---- DEL, GC: every part is tried, whatever failed before ---- */

static bool has_masq(const struct request *req)
{
	return req->applet->attach->keys & KEY_MASQ;
}

/* Unless IPAM needs the link, that goes first, so that nothing passes without its rules, and the
 * address last, so that nobody else gets it while this container still has it. */
int attach_del(const struct request *req, struct err *e)
{
	const struct attach_type *t = req->applet->attach;
	struct err part[4] = {0};
	const char *ipam = NULL;
	bool first;

	delegate_ipam_type(req, &ipam, &part[0]);
	first = ipam_needs_link(req, ipam);
	if (first)
		delegate_call(req, ipam, VERB_DEL, &part[0]);
	if (t->detach)
		t->detach(req, &part[1]);
	if (has_masq(req))
		ipmasq_del(&req->owner, &part[2]);
	if (ipam && !first)
		delegate_call(req, ipam, VERB_DEL, &part[3]);
	for (size_t i = 0; i < array_len(part); i++)
		err_merge(e, &part[i]);
	return e->set ? -1 : 0;
}

int attach_gc(const struct request *req, struct err *e)
{
	const struct attach_type *t = req->applet->attach;
	struct err part[3] = {0};
	struct valid_set valid;
	const char *ipam = NULL;

	if (request_valid_set(req, &valid, e))
		return -1;
	if (t->collect)
		t->collect(req, &valid, &part[0]);
	if (has_masq(req))
		ipmasq_gc(req, &valid, &part[1]);
	if (!delegate_ipam_type(req, &ipam, &part[2]) && ipam)
		delegate_call(req, ipam, VERB_GC, &part[2]);
	valid_set_free(&valid);
	for (size_t i = 0; i < array_len(part); i++)
		err_merge(e, &part[i]);
	return e->set ? -1 : 0;
}

/* ---- CHECK, STATUS ---- */

static int check_link(struct attach *a, struct err *e)
{
	if (a->no_link)
		return 0;
	if (ifcheck_link(&a->sb, a->req, a->result, kind_name(a->type), &a->link, e))
		return -1;
	if (a->disabled || a->link.flags & IFF_UP)
		return 0;
	return err_set(e, ERR_CHECK, "Interface %s is down", a->req->ifname);
}

static int check_masquerade(const struct attach *a, struct err *e)
{
	autofree struct prefix *list = NULL;
	size_t len;

	if (!a->conf.ip_masq || !a->conf.ipam)
		return 0;
	list = own_addresses(a, &len, e);
	return list ? ipmasq_check(&a->req->owner, list, len, via_port(a), e) : -1;
}

int attach_check(const struct request *req, struct err *e)
{
	autoattach a = attach_of(req);
	autoresult prev = {0};
	bool present;

	a.result = &prev;
	if (read_conf(&a, e) ||
		request_prev_result(req, &prev, &present, "Required prevResult missing", e) ||
		open_inside(&a, e))
		return -1;
	if (a.conf.ipam && delegate_call(req, a.conf.ipam, VERB_CHECK, e))
		return -1;
	if (check_link(&a, e) || call(a.type->check, &a, e))
		return -1;
	if (has_layer3(&a) && !a.no_link && ifcheck(&a.sb, req->ifname, &prev, e))
		return -1;
	return check_masquerade(&a, e);
}

/* Whether the kernel can make the container's link. */
static int check_kernel(const struct attach *a, struct err *e)
{
	const struct link_kind *kind = a->type->kind;
	autonl *nl = NULL;
	int ret;

	if (!kind || kind->by_ioctl)
		return 0;
	if (nl_open(&nl, NETLINK_ROUTE, e))
		return -1;
	ret = link_kind_known(nl, kind);
	if (!ret)
		return err_set(e, ERR_NOT_AVAILABLE,
			"%s is not available: the kernel lacks links of kind %s (module %s)",
			a->req->applet->name, kind->name, kind_module(kind));
	return ret < 0 ? err_sys(e, -ret, ERR_SYSTEM, "failed to ask for links of kind %s",
				 kind->name)
		       : 0;
}

int attach_status(const struct request *req, struct err *e)
{
	autoattach a = attach_of(req);

	if (read_conf(&a, e) || check_kernel(&a, e) || call(a.type->status, &a, e) ||
		(a.conf.ip_masq && a.conf.ipam && ipmasq_status(via_port(&a), e)))
		return -1;
	return a.conf.ipam ? delegate_call(req, a.conf.ipam, VERB_STATUS, e) : 0;
}
