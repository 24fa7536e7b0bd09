/* bandwidth: limits what a container receives and sends. A chained plugin for veth pairs.
 *
 * Into the container ("ingress"): a token bucket at the root of the veth's host end. Out of it
 * ("egress"): a redirect of all the host end receives to an IFB link with a token bucket of its
 * own. Both are out of the container's reach. reference/portmap-bandwidth.md, sections 11 to 18. */
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/mac.h"
#include "cni/applet.h"
#include "netlink/kind.h"
#include "netlink/link.h"
#include "netlink/netns.h"
#include "netlink/tc.h"

#include <errno.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- configuration ---- */

/* One direction: bits per second and bits. Rate 0: no limit. */
struct limit {
	uint64_t rate;
	uint64_t burst;
};

struct limits {
	struct limit in;  /* into the container */
	struct limit out; /* out of it */
	int64_t latency;  /* ms, 0: not configured */
};

#define MAX_BURST   (4294967294u * UINT64_C(8) + 7)
#define MAX_LATENCY 60000

/* Whether any of the limits stands in the config itself: even null or 0 there switches off what the
 * runtime says, all of it. */
static bool has_static_limits(const json *conf)
{
	static const char *const keys[] = {
		"ingressRate", "ingressBurst", "egressRate", "egressBurst"};

	for (void *it = json_iter(conf); it; it = json_iter_next(conf, it))
		for (size_t i = 0; i < array_len(keys); i++)
			if (!strcasecmp(json_iter_key(it), keys[i]))
				return true;
	return false;
}

static int check_limit(const struct limit *l, const char *direction, struct err *e)
{
	if (l->rate && !l->burst)
		return err_set(e, ERR_INVALID_CONFIG, "%s: if rate is set, burst must also be set",
			direction);
	if (l->burst && !l->rate)
		return err_set(e, ERR_INVALID_CONFIG, "%s: if burst is set, rate must also be set",
			direction);
	if (l->burst > MAX_BURST)
		return err_set(
			e, ERR_INVALID_CONFIG, "%s: burst cannot be more than 4GB", direction);
	if (l->rate && (l->rate < 8 || l->burst < 8))
		return err_set(e, ERR_INVALID_CONFIG,
			"%s: rate and burst must be at least 8 bits, which is one byte", direction);
	return 0;
}

static int read_limits(const struct request *req, struct limits *l, struct err *e)
{
	const json *from = req->conf, *runtime = NULL;

	*l = (struct limits){0};
	if (json_get_int(req->conf, "latency", 1, MAX_LATENCY, &l->latency, e))
		return -1;
	if (!has_static_limits(req->conf)) {
		if (request_runtime_config(req, &runtime, e))
			return -1;
		from = NULL;
		if (runtime && json_get_object(runtime, "bandwidth", &from, e))
			return -1;
	}
	if (!from)
		return 0;
	if (json_get_u64(from, "ingressRate", UINT64_MAX, &l->in.rate, e) ||
		json_get_u64(from, "ingressBurst", UINT64_MAX, &l->in.burst, e) ||
		json_get_u64(from, "egressRate", UINT64_MAX, &l->out.rate, e) ||
		json_get_u64(from, "egressBurst", UINT64_MAX, &l->out.burst, e))
		return -1;
	return check_limit(&l->in, "ingress", e) || check_limit(&l->out, "egress", e) ? -1 : 0;
}

/* Any packet up to this size fits into the queue, segmentation offload included, as long as the
 * burst lets it pass at all. */
#define QUEUE_FLOOR 131072u

/* The bucket for a limit. The queue holds 25 ms worth of the rate and the burst, as the Go plugin
 * has it, except that the burst counts for at most a second: runtimes send 512 MB or 4 GB where the
 * user gave none, and packets would wait for minutes. */
static struct tbf bucket(const struct limit *l, int64_t latency)
{
	uint64_t rate = l->rate / 8, burst = l->burst / 8;
	uint64_t bound = rate > QUEUE_FLOOR ? rate : QUEUE_FLOOR;
	uint64_t limit = rate / 40 + (burst < bound ? burst : bound);

	if (latency) {
		bound = burst < QUEUE_FLOOR ? burst : QUEUE_FLOOR;
		/* Neither factor comes near 32 bits too many: clamp the rate instead of the
		 * product. */
		limit = (rate < UINT64_MAX / MAX_LATENCY ? rate : UINT64_MAX / MAX_LATENCY) *
			(uint64_t)latency / 1000;
		limit = limit > bound ? limit : bound;
	}
	return (struct tbf){.rate = rate,
		.burst = (uint32_t)burst,
		.limit = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit};
}

/* ---- the veth pair ---- */

struct inside {
	const char *ifname;
	struct link link;
};

static int look_inside(void *arg, struct err *e)
{
	struct inside *in = arg;
	autonl *nl = NULL;
	int ret;

	if (nl_open(&nl, NETLINK_ROUTE, e))
		return -1;
	ret = link_get(nl, in->ifname, &in->link);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM,
			"container interface %s has no veth peer: could not look up \"%s\"",
			in->ifname, in->ifname);
	if (strcmp(in->link.kind, "veth") != 0)
		return err_set(e, ERR_SYSTEM,
			"container interface %s has no veth peer: %s was not a veth interface",
			in->ifname, in->ifname);
	return 0;
}

static int read_nsid(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[NETNSA_MAX + 1];

	nl_parse(msg, sizeof(struct rtgenmsg), a, NETNSA_MAX);
	if (a[NETNSA_NSID])
		*(int32_t *)arg = (int32_t)nl_u32(a[NETNSA_NSID]);
	return 0;
}

/* What our namespace calls the one behind fd: *id is -1 for itself and for one it has no name for.
 * Returns 0 or -errno. */
static int nsid_of(struct nl *nl, int fd, int32_t *id)
{
	autoreq req = {0};

	*id = -1;
	nl_msg(&req, RTM_GETNSID, 0, sizeof(struct rtgenmsg));
	nl_put_u32(&req, NETNSA_FD, (uint32_t)fd);
	return nl_query(nl, &req, read_nsid, NULL, id);
}

/* The host's end of the container's veth pair. That it is the peer is proven from both ends: an
 * index alone may mean another link in another namespace. */
static int find_host_veth(
	const struct request *req, struct nl *nl, int netns, struct link *veth, struct err *e)
{
	struct inside in = {.ifname = req->ifname};
	int32_t nsid = -1;
	int ret;

	if (netns_run(netns, look_inside, &in, e))
		return -1;
	ret = link_get_index(nl, in.link.peer, veth);
	if (!ret)
		ret = nsid_of(nl, netns, &nsid);
	if (ret && ret != -ENODEV)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up the veth peer with index %u",
			in.link.peer);
	if (ret || strcmp(veth->kind, "veth") != 0 || veth->peer != in.link.index ||
		veth->peer_netnsid != nsid)
		return err_set(e, ERR_SYSTEM,
			"container interface %s has no veth peer: veth peer with index %u is not "
			"in host ns",
			req->ifname, in.link.peer);
	return 0;
}

/* The same for ADD and CHECK, where the result so far must know the link too. */
static int need_host_veth(const struct request *req, const struct result *prev, struct nl *nl,
	struct link *veth, struct err *e)
{
	autoclose int netns = -1;

	if (!prev->ifaces_len)
		return err_set(e, ERR_INVALID_CONFIG, "no interfaces provided");
	if (netns_open(req->netns, &netns, e) != NETNS_OK)
		return -1;
	if (find_host_veth(req, nl, netns, veth, e))
		return -1;
	for (size_t i = 0; i < prev->ifaces_len; i++)
		if (!prev->ifaces[i].sandbox && !strcmp(prev->ifaces[i].name, veth->name))
			return 0;
	return err_set(e, ERR_INVALID_CONFIG,
		"no veth peer of container interface found in host ns: %s, the peer of %s, is not "
		"among the interfaces of prevResult",
		veth->name, req->ifname);
}

/* ---- the IFB ---- */

/* The Go plugin names an IFB after network and container alone. We take the same name while it is
 * free, so that either side finds the other's, and one that includes the interface when another
 * interface of the container holds it. */
struct ifb_names {
	char name[2][IFNAMSIZ];
};

static struct ifb_names ifb_names(const struct owner *o)
{
	struct ifb_names n;
	char hex[12 + 1];

	hash_hex(hex, 12, o->network, o->id, NULL);
	snprintf(n.name[0], IFNAMSIZ, "bwp%s", hex);
	snprintf(n.name[1], IFNAMSIZ, "bwp%.12s", o->hash);
	return n;
}

/* The owner in the link's MAC address: the alias cannot be set in the message that creates the
 * link, and a process can be killed between two. Bytes 1 to 4 are of the network, the others of the
 * attachment; the first is locally administered, unicast. */
static void ifb_mac(const struct owner *o, uint8_t mac[static 6])
{
	mac[0] = (uint8_t)((hex_byte(o->hash) & 0xfc) | 2);
	for (int i = 0; i < 4; i++)
		mac[1 + i] = (uint8_t)hex_byte(o->net + 2 * i);
	mac[5] = (uint8_t)hex_byte(o->hash + 2);
}

static bool ifb_mac_of_network(const struct link *l, const struct owner *o)
{
	uint8_t mac[6];

	ifb_mac(o, mac);
	return !memcmp(l->mac + 1, mac + 1, 4);
}

static bool ifb_mac_is(const struct link *l, const struct owner *o)
{
	uint8_t mac[6];

	ifb_mac(o, mac);
	return !memcmp(l->mac, mac, sizeof(mac));
}

/* What a request says when there is no such thing. */
static bool is_absent(int ret)
{
	return ret == -ENODEV || ret == -ENOENT || ret == -EINVAL;
}

/* 1, 0, or -errno. */
static int redirects(struct nl *nl, uint32_t from, uint32_t to)
{
	struct redirect r;
	uint32_t parent;
	int ret = tc_ingress_get(nl, from, &parent, NULL);

	if (!ret)
		ret = tc_redirect_get(nl, from, parent, to, &r);
	return !ret ? 1 : is_absent(ret) ? 0 : ret;
}

struct indexes {
	uint32_t *list;
	size_t len;
};

static int keep_index(struct indexes *x, uint32_t index)
{
	uint32_t *list = reallocarray(x->list, x->len + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	list[x->len++] = index;
	x->list = list;
	return 0;
}

static int keep_veth(const struct link *l, void *arg)
{
	return keep_index(arg, l->index);
}

/* Whether any veth of the host is redirected there: 1, 0, or -errno. Only asked about an IFB that
 * the Go plugin made, under a name that several interfaces of one container share. */
static int ifb_in_use(struct nl *nl, uint32_t ifb)
{
	struct indexes veths = {0};
	int ret = link_each(nl, "veth", keep_veth, &veths);

	for (size_t i = 0; !ret && i < veths.len; i++)
		ret = redirects(nl, veths.list[i], ifb);
	free(veths.list);
	return ret;
}

/* Whether the link under one of our names is ours: 1, 0, or -errno. veth: the host's end of our
 * pair, NULL when it is not known. */
static int ifb_is_ours(
	struct nl *nl, const struct owner *o, const struct link *l, const struct link *veth)
{
	struct owner_ref ref;
	int ret;

	if (strcmp(l->kind, "ifb") != 0)
		return 0;
	if (owner_parse(l->alias, &ref))
		return !strcmp(ref.hash, o->hash);
	if (ifb_mac_of_network(l, o))
		return ifb_mac_is(l, o);
	/* The Go plugin's: its name is all there is, and without our veth all to go by. */
	if (!veth)
		return 1;
	ret = redirects(nl, veth->index, l->index);
	if (ret)
		return ret;
	ret = ifb_in_use(nl, l->index);
	return ret < 0 ? ret : !ret;
}

/* Our IFB, under either name: first the one that nobody else can have. Returns 0; -ENODEV when
 * there is none, with *name the one to use for a new one; or -errno. */
static int find_ifb(struct nl *nl, const struct owner *o, const struct link *veth, struct link *ifb,
	char name[static IFNAMSIZ])
{
	struct ifb_names names = ifb_names(o);

	for (int i = 1; i >= 0; i--) {
		int ret = link_get(nl, names.name[i], ifb);

		snprintf(name, IFNAMSIZ, "%s", names.name[i]);
		if (ret == -ENODEV)
			continue;
		if (!ret)
			ret = ifb_is_ours(nl, o, ifb, veth);
		if (ret)
			return ret < 0 ? ret : 0;
		if (i == 0)
			snprintf(name, IFNAMSIZ, "%s", names.name[1]);
	}
	return -ENODEV;
}

/* ---- undoing an ADD ---- */

enum inverse { DEL_TBF, DEL_INGRESS, DEL_REDIRECT, DEL_IFB };

struct inverse_of {
	enum inverse what;
	uint32_t index;
	uint32_t parent; /* DEL_REDIRECT */
	uint32_t to;
};

static void undo_one(void *arg)
{
	const struct inverse_of *u = arg;
	struct redirect r;
	autoerr e = {0};
	autonl *nl = NULL;

	if (nl_open(&nl, NETLINK_ROUTE, &e))
		return;
	switch (u->what) {
	case DEL_TBF: tc_qdisc_del(nl, u->index, TC_H_ROOT); break;
	case DEL_INGRESS: tc_qdisc_del(nl, u->index, TC_H_INGRESS); break;
	case DEL_IFB: link_del(nl, u->index); break;
	case DEL_REDIRECT:
		if (!tc_redirect_get(nl, u->index, u->parent, u->to, &r))
			tc_redirect_del(nl, u->index, u->parent, &r);
		break;
	}
}

static int push(struct undo *undo, struct inverse_of what, struct err *e)
{
	struct inverse_of *arg = malloc(sizeof(*arg));

	if (!arg) {
		undo_one(&what);
		return err_memory(e);
	}
	*arg = what;
	return undo_push(undo, undo_one, free, arg, e);
}

/* ---- ADD ---- */

static int set_bucket(struct nl *nl, struct undo *undo, const struct link *l, const struct tbf *tbf,
	struct err *e)
{
	bool created;

	if (tbf->burst < l->mtu + 14)
		fprintf(stderr,
			"bandwidth: burst of %u bytes on %s is smaller than a full packet: "
			"larger packets are dropped\n",
			tbf->burst, l->name);
	if (tc_tbf_set(nl, l->index, l->name, tbf, &created, e))
		return -1;
	return created ? push(undo, (struct inverse_of){DEL_TBF, l->index}, e) : 0;
}

/* Creates the IFB; its owner is in the MAC address from the first moment, in the alias from the
 * second. */
static int create_ifb(struct nl *nl, struct undo *undo, const char *name, const struct owner *o,
	const struct link *veth, struct link *ifb, struct err *e)
{
	uint8_t mac[6];
	struct link_new new = {.name = name, .kind = &kind_ifb, .mtu = veth->mtu, .mac = mac};
	char ext[256] = "";
	int ret;

	ifb_mac(o, mac);
	ret = link_create(nl, &new, NULL, ext, sizeof(ext));
	if (ret) {
		err_sys(e, -ret, ERR_SYSTEM, "adding link: IFB %s", name);
		return ext[0] ? err_detail(e, "%s", ext) : -1;
	}
	ret = link_get(nl, name, ifb);
	if (ret) {
		link_del_name(nl, name);
		return err_sys(e, -ret, ERR_SYSTEM, "get ifb device: \"%s\"", name);
	}
	return push(undo, (struct inverse_of){DEL_IFB, ifb->index}, e);
}

static int make_ifb(struct nl *nl, struct undo *undo, const struct owner *o,
	const struct link *veth, const struct tbf *tbf, struct link *ifb, struct err *e)
{
	char name[IFNAMSIZ], alias[256];
	struct link_set set = {.alias = alias};
	int ret = find_ifb(nl, o, veth, ifb, name);

	if (ret && ret != -ENODEV)
		return err_sys(e, -ret, ERR_SYSTEM, "get ifb device: \"%s\"", name);
	if (ret && create_ifb(nl, undo, name, o, veth, ifb, e))
		return -1;
	owner_comment(o, alias, sizeof(alias));
	set.index = ifb->index;
	if (ifb->mtu != veth->mtu)
		set.mtu = veth->mtu;
	ret = link_apply(nl, &set);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to set the alias of %s", ifb->name);
	if (set_bucket(nl, undo, ifb, tbf, e))
		return err_wrap(e, "create ifb qdisc");
	ret = link_apply(nl, &(struct link_set){.index = ifb->index, .flags_set = IFF_UP});
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to set %s up", ifb->name) : 0;
}

/* Sends all the veth receives to the IFB. A redirect whose target is gone is replaced: it drops. */
static int redirect(struct nl *nl, struct undo *undo, const struct link *veth,
	const struct link *ifb, struct err *e)
{
	char ext[256] = "";
	struct redirect old;
	uint32_t parent;
	bool created;
	int ret;

	if (tc_ingress_ensure(nl, veth->index, veth->name, &parent, &created, e))
		return -1;
	if (created && push(undo, (struct inverse_of){DEL_INGRESS, veth->index}, e))
		return -1;
	while (!created && !tc_redirect_get(nl, veth->index, parent, 0, &old)) {
		if (old.to == ifb->index)
			return 0;
		if (old.to)
			return err_set(e, ERR_CONFLICT,
				"add filter: what link %s receives is already redirected to the "
				"link with index %u",
				veth->name, old.to);
		if (tc_redirect_del(nl, veth->index, parent, &old))
			break;
	}
	ret = tc_redirect_add(nl, veth->index, parent, ifb->index, ext, sizeof(ext));
	if (ret) {
		err_sys(e, -ret, ERR_SYSTEM, "add filter: on link %s", veth->name);
		return ext[0] ? err_detail(e, "%s", ext) : -1;
	}
	return push(undo, (struct inverse_of){DEL_REDIRECT, veth->index, parent, ifb->index}, e);
}

static int shape_out(struct nl *nl, const struct request *req, struct reply *reply,
	const struct link *veth, const struct tbf *tbf, struct err *e)
{
	char mac[MAC_STRLEN];
	struct link ifb;

	/* The redirect comes last: until then packets pass, never do they vanish. */
	if (make_ifb(nl, &reply->undo, &req->owner, veth, tbf, &ifb, e) ||
		redirect(nl, &reply->undo, veth, &ifb, e))
		return -1;
	return result_add_iface(&reply->result, ifb.name, mac_format(ifb.mac, mac), NULL, e) ? 0
											     : -1;
}

static int add(const struct request *req, struct reply *reply, struct err *e)
{
	struct limits limits;
	struct link veth;
	struct tbf tbf;
	autonl *nl = NULL;
	bool present;

	if (read_limits(req, &limits, e))
		return -1;
	if (request_prev_result(
		    req, &reply->result, &present, "must be called as chained plugin", e))
		return -1;
	if (!limits.in.rate && !limits.out.rate)
		return 0;
	if (nl_open(&nl, NETLINK_ROUTE, e) || need_host_veth(req, &reply->result, nl, &veth, e))
		return -1;
	if (limits.in.rate) {
		tbf = bucket(&limits.in, limits.latency);
		if (set_bucket(nl, &reply->undo, &veth, &tbf, e))
			return -1;
	}
	if (!limits.out.rate)
		return 0;
	tbf = bucket(&limits.out, limits.latency);
	return shape_out(nl, req, reply, &veth, &tbf, e);
}

/* ---- DEL and GC ---- */

/* A failed deletion, unless there was nothing to delete. */
static void failed(struct err *e, int ret, const char *what, const char *name)
{
	autoerr one = {0};

	if (!ret || is_absent(ret))
		return;
	err_sys(&one, -ret, ERR_SYSTEM, "failed to lookup/delete %s \"%s\"", what, name);
	err_merge(e, &one);
}

/* Left redirected to a link that is gone the veth would drop all the container sends for as long as
 * it lives. */
static void release_ingress(
	struct nl *nl, const struct link *veth, const struct link *ifb, struct err *e)
{
	struct redirect r;
	uint32_t parent;
	bool plain;
	int ret = tc_ingress_get(nl, veth->index, &parent, &plain);

	if (ret) {
		failed(e, ret, "ingress qdisc of", veth->name);
		return;
	}
	ret = tc_redirect_get(nl, veth->index, parent, 0, &r);
	/* Also one that lost its target to an earlier DEL, which may have failed to go on. */
	if (!ret && (!r.to || (ifb && r.to == ifb->index)))
		ret = tc_redirect_del(nl, veth->index, parent, &r);
	failed(e, ret, "filter of", veth->name);
	ret = plain ? tc_has_filters(nl, veth->index, parent) : 1;
	failed(e, ret < 0 ? ret : 0, "filter of", veth->name);
	if (!ret)
		failed(e, tc_qdisc_del(nl, veth->index, TC_H_INGRESS), "ingress qdisc of",
			veth->name);
}

/* Frees the veth's host end, when it still exists. */
static void release_veth(struct nl *nl, const struct request *req, const struct link *veth,
	const struct link *ifb, struct err *e)
{
	struct limits limits;
	autoerr invalid = {0};
	struct qdisc q;
	int ret;

	release_ingress(nl, veth, ifb, e);
	/* The bucket at the root has no owner but the config. */
	if (read_limits(req, &limits, &invalid) || !limits.in.rate)
		return;
	ret = tc_qdisc_get(nl, veth->index, TC_H_ROOT, &q);
	if (!ret && tc_is_tbf(&q))
		ret = tc_qdisc_del(nl, veth->index, TC_H_ROOT);
	failed(e, ret, "qdisc of", veth->name);
}

/* Deleting must not depend on the netns: it is only looked into when it is there. A DEL that is
 * repeated may find the next container in it. */
static bool known_veth(const struct request *req, struct nl *nl, struct link *veth, struct err *e)
{
	autoclose int netns = -1;
	struct owner_ref ref;
	autoerr why = {0};

	if (*req->netns && netns_open(req->netns, &netns, &why) == NETNS_OK &&
		!find_host_veth(req, nl, netns, veth, &why))
		return !owner_parse(veth->alias, &ref) || !strcmp(ref.hash, req->owner.hash);
	if (err_is_passing(why.sys))
		err_merge(e, &why);
	return false;
}

static int del(const struct request *req, struct err *e)
{
	char name[IFNAMSIZ] = "";
	autonl *nl = NULL;
	struct link veth, ifb;
	bool have_veth, have_ifb;
	int ret;

	if (nl_open(&nl, NETLINK_ROUTE, e))
		return -1;
	have_veth = known_veth(req, nl, &veth, e);
	ret = find_ifb(nl, &req->owner, have_veth ? &veth : NULL, &ifb, name);
	have_ifb = !ret;
	failed(e, ret, "IFB", ifb_names(&req->owner).name[0]);
	if (have_veth)
		release_veth(nl, req, &veth, have_ifb ? &ifb : NULL, e);
	if (have_ifb)
		failed(e, link_del(nl, ifb.index), "IFB", ifb.name);
	return e->set ? -1 : 0;
}

struct sweep {
	const struct request *req;
	struct valid_set valid;
	struct indexes stale;
};

static bool looks_like_ifb(const char *name)
{
	return strlen(name) == 15 && !strncmp(name, "bwp", 3) &&
	       strspn(name + 3, "0123456789abcdef") == 12;
}

/* Ours to judge are the IFBs that carry this network. What the Go plugin made carries nothing. */
static int keep_stale(const struct link *l, void *arg)
{
	struct sweep *s = arg;
	const struct owner *o = &s->req->owner;
	struct owner_ref ref;

	if (!looks_like_ifb(l->name))
		return 0;
	if (owner_parse(l->alias, &ref)) {
		if (strcmp(ref.net, o->net) != 0 || valid_set_has_hash(&s->valid, ref.hash))
			return 0;
		return keep_index(&s->stale, l->index);
	}
	if (l->alias[0] || !ifb_mac_of_network(l, o))
		return 0;
	for (size_t i = 0; i < s->valid.len; i++)
		if (ifb_mac_is(l, &s->valid.owners[i]))
			return 0;
	return keep_index(&s->stale, l->index);
}

static int gc(const struct request *req, struct err *e)
{
	struct sweep s = {.req = req};
	autonl *nl = NULL;
	int ret;

	if (request_valid_set(req, &s.valid, e))
		return -1;
	ret = nl_open(&nl, NETLINK_ROUTE, e);
	if (!ret) {
		ret = link_each(nl, "ifb", keep_stale, &s);
		if (!ret && s.stale.len)
			ret = link_del_many(nl, s.stale.list, s.stale.len);
		if (ret)
			err_sys(e, -ret, ERR_SYSTEM, "failed to remove stale IFBs of network %s",
				req->network);
	}
	free(s.stale.list);
	valid_set_free(&s.valid);
	return ret ? -1 : 0;
}

/* ---- CHECK and STATUS ---- */

static int check_bucket(struct nl *nl, const struct link *l, const struct limit *limit,
	int64_t latency, struct err *e)
{
	struct tbf tbf = bucket(limit, latency);
	/* What the Go plugin sets, which adds up in 32 bits. */
	uint32_t theirs = (uint32_t)(tbf.rate / 40 + tbf.burst);
	struct qdisc q;
	int ret = tc_qdisc_get(nl, l->index, TC_H_ROOT, &q);

	if (ret && ret != -ENOENT)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up the qdisc of %s", l->name);
	if (ret || !tc_is_tbf(&q))
		return err_set(e, ERR_CHECK,
			"Failed to find qdisc: the root qdisc of %s is %s, "
			"not our tbf",
			l->name, ret ? "none" : q.kind);
	if (q.rate != tbf.rate)
		return err_set(e, ERR_CHECK, "Rate doesn't match: %s has %llu bytes/s, not %llu",
			l->name, (unsigned long long)q.rate, (unsigned long long)tbf.rate);
	if (q.limit != tbf.limit && q.limit != theirs)
		return err_set(e, ERR_CHECK, "Limit doesn't match: %s has %u bytes, not %u",
			l->name, q.limit, tbf.limit);
	if (!tbf_buffer_is(q.buffer, &tbf))
		return err_set(e, ERR_CHECK, "Buffer doesn't match: %s has %u ticks, not %u",
			l->name, q.buffer, tbf_ticks(&tbf));
	return 0;
}

static int check_redirect(
	struct nl *nl, const struct link *veth, const struct link *ifb, struct err *e)
{
	struct redirect r;
	uint32_t parent;
	int ret = tc_ingress_get(nl, veth->index, &parent, NULL);

	if (ret)
		return err_sys(e, -ret, ERR_CHECK, "Failed to find qdisc: %s has no ingress qdisc",
			veth->name);
	ret = tc_redirect_get(nl, veth->index, parent, ifb->index, &r);
	return ret ? err_sys(e, -ret, ERR_CHECK,
			     "Failed to find filter: %s is not redirected to %s", veth->name,
			     ifb->name)
		   : 0;
}

static int check_out(struct nl *nl, const struct request *req, const struct link *veth,
	const struct limits *limits, struct err *e)
{
	char name[IFNAMSIZ] = "";
	struct link ifb;
	int ret = find_ifb(nl, &req->owner, veth, &ifb, name);

	if (ret)
		return err_sys(e, -ret, ERR_CHECK, "get ifb device: Link not found: \"%s\"", name);
	if (check_bucket(nl, &ifb, &limits->out, limits->latency, e))
		return -1;
	if (!(ifb.flags & IFF_UP))
		return err_set(e, ERR_CHECK, "IFB %s is down", ifb.name);
	return check_redirect(nl, veth, &ifb, e);
}

static int check(const struct request *req, struct err *e)
{
	autoresult prev = {0};
	struct limits limits;
	struct link veth;
	autonl *nl = NULL;
	bool present;

	if (read_limits(req, &limits, e))
		return -1;
	if (request_prev_result(req, &prev, &present, "must be called as a chained plugin", e))
		return -1;
	if (!limits.in.rate && !limits.out.rate)
		return 0;
	if (nl_open(&nl, NETLINK_ROUTE, e) || need_host_veth(req, &prev, nl, &veth, e))
		return -1;
	if (limits.in.rate && check_bucket(nl, &veth, &limits.in, limits.latency, e))
		return -1;
	return limits.out.rate ? check_out(nl, req, &veth, &limits, e) : 0;
}

static int status(const struct request *req, struct err *e)
{
	struct limits limits;
	autonl *nl = NULL;

	if (read_limits(req, &limits, e) || nl_open(&nl, NETLINK_ROUTE, e))
		return -1;
	return tc_probe(nl, e);
}

const struct applet applet_bandwidth = {
	.name = "bandwidth",
	.help = "limit the rate of a container's traffic, chained",
	.kind = APPLET_META,
	.min_version = "0.3.0",
	.add = add,
	.del = del,
	.check = check,
	.gc = gc,
	.status = status,
};
