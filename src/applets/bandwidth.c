/* bandwidth: limits what a container receives and sends. A chained plugin for veth pairs.
 *
 * Into the container ("ingress"): a token bucket at the root of the veth's host end. Out of it
 * ("egress"): a redirect of all the host end receives to an IFB link with a token bucket of its
 * own. Both are out of the container's reach. reference/portmap-bandwidth.md, sections 11 to 18. */
#include "attach/peer.h"
#include "bandwidth/ifb.h"
#include "bandwidth/limits.h"
#include "base/cleanup.h"
#include "base/mac.h"
#include "cni/applet.h"
#include "netlink/link.h"
#include "netlink/netns.h"
#include "netlink/tc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The host's end of the container's veth pair, for ADD and CHECK: the result so far must know it
 * too. */
static int need_host_veth(const struct request *req, const struct result *prev, struct nl *nl,
	struct link *veth, struct err *e)
{
	autoclose int netns = -1;

	if (!prev->ifaces_len)
		return err_set(e, ERR_INVALID_CONFIG, "no interfaces provided");
	if (netns_open(req->netns, &netns, e) != NETNS_OK)
		return -1;
	if (peer_find(nl, netns, req->ifname, veth, e))
		return -1;
	for (size_t i = 0; i < prev->ifaces_len; i++)
		if (!prev->ifaces[i].sandbox && !strcmp(prev->ifaces[i].name, veth->name))
			return 0;
	return err_set(e, ERR_INVALID_CONFIG,
		"no veth peer of container interface found in host ns: %s, the peer of %s, is not "
		"among the interfaces of prevResult",
		veth->name, req->ifname);
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

static int make_ifb(struct nl *nl, struct undo *undo, const struct owner *o,
	const struct link *veth, const struct tbf *tbf, struct link *ifb, struct err *e)
{
	char name[IFNAMSIZ], alias[256];
	struct link_set set = {.alias = alias};
	int ret = ifb_find(nl, o, veth, ifb, name);

	if (ret && ret != -ENODEV)
		return err_sys(e, -ret, ERR_SYSTEM, "get ifb device: \"%s\"", name);
	if (ret && (ifb_create(nl, o, name, veth->mtu, ifb, e) ||
			   push(undo, (struct inverse_of){DEL_IFB, ifb->index}, e)))
		return -1;
	owner_comment(o, alias, sizeof(alias));
	set.index = ifb->index;
	if (ifb->mtu != veth->mtu)
		ifb->mtu = set.mtu = veth->mtu;
	ret = link_apply(nl, &set);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to set the alias of %s", ifb->name);
	if (set_bucket(nl, undo, ifb, tbf, e))
		return err_wrap(e, "create ifb qdisc");
	ret = link_apply(nl, &(struct link_set){.index = ifb->index, .flags_set = IFF_UP});
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to set %s up", ifb->name) : 0;
}

/* Whether there is a redirect to the IFB already: 1, 0, or -1 with e set. One whose target is gone
 * drops all it gets, and goes; one to another link is somebody else's. */
static int is_redirected(struct nl *nl, const struct link *veth, uint32_t parent,
	const struct link *ifb, struct err *e)
{
	struct redirect old;
	int ret = tc_redirect_get(nl, veth->index, parent, 0, &old);

	while (!ret && !old.to) {
		ret = tc_redirect_del(nl, veth->index, parent, &old);
		if (!ret)
			ret = tc_redirect_get(nl, veth->index, parent, 0, &old);
	}
	if (!ret && old.to == ifb->index)
		return 1;
	if (!ret)
		return err_set(e, ERR_CONFLICT,
			"add filter: what link %s receives is already redirected to the link with "
			"index %u",
			veth->name, old.to);
	if (tc_is_absent(ret))
		return 0;
	return err_sys(
		e, -ret, ERR_SYSTEM, "add filter: failed to look at those of link %s", veth->name);
}

/* Sends all the veth receives to the IFB. */
static int redirect(struct nl *nl, struct undo *undo, const struct link *veth,
	const struct link *ifb, struct err *e)
{
	char ext[256] = "";
	uint32_t parent;
	bool created;
	int ret;

	if (tc_ingress_ensure(nl, veth->index, veth->name, &parent, &created, e))
		return -1;
	if (created && push(undo, (struct inverse_of){DEL_INGRESS, veth->index}, e))
		return -1;
	ret = created ? 0 : is_redirected(nl, veth, parent, ifb, e);
	if (ret)
		return ret < 0 ? -1 : 0;
	ret = tc_redirect_add(nl, veth->index, parent, ifb->index, ext, sizeof(ext));
	if (ret)
		return err_kernel(e, -ret, ext, ERR_SYSTEM, "add filter: on link %s", veth->name);
	return push(undo, (struct inverse_of){DEL_REDIRECT, veth->index, parent, ifb->index}, e);
}

static int shape_out(struct nl *nl, const struct request *req, struct reply *reply,
	const struct link *veth, const struct tbf *tbf, struct err *e)
{
	char mac[MAC_STRLEN];
	struct iface *iface;
	struct link ifb;

	/* The redirect comes last: until then packets pass, never do they vanish. */
	if (make_ifb(nl, &reply->undo, &req->owner, veth, tbf, &ifb, e) ||
		redirect(nl, &reply->undo, veth, &ifb, e))
		return -1;
	iface = result_add_iface(&reply->result, ifb.name, mac_format(ifb.mac, mac), NULL, e);
	if (!iface)
		return -1;
	if (!strcmp(req->version, "1.1.0"))
		iface->mtu = ifb.mtu;
	return 0;
}

static int add(const struct request *req, struct reply *reply, struct err *e)
{
	struct limits limits;
	struct link veth;
	struct tbf tbf;
	autonl *nl = NULL;
	bool present;

	if (limits_read(req, &limits, e))
		return -1;
	if (request_prev_result(
		    req, &reply->result, &present, "must be called as chained plugin", e))
		return -1;
	if (!limits.in.rate && !limits.out.rate)
		return 0;
	if (nl_open(&nl, NETLINK_ROUTE, e) || need_host_veth(req, &reply->result, nl, &veth, e))
		return -1;
	if (limits.in.rate) {
		tbf = limit_bucket(&limits.in, limits.latency, veth.mtu);
		if (set_bucket(nl, &reply->undo, &veth, &tbf, e))
			return -1;
	}
	if (!limits.out.rate)
		return 0;
	tbf = limit_bucket(&limits.out, limits.latency, veth.mtu);
	return shape_out(nl, req, reply, &veth, &tbf, e);
}

/* ---- DEL and GC ---- */

/* A failed deletion, unless there was nothing to delete. */
static void failed(struct err *e, int ret, const char *what, const char *name)
{
	autoerr one = {0};

	if (!ret || tc_is_absent(ret))
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
	if (limits_read(req, &limits, &invalid) || !limits.in.rate)
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
		!peer_find(nl, netns, req->ifname, veth, &why))
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
	ret = ifb_find(nl, &req->owner, have_veth ? &veth : NULL, &ifb, name);
	have_ifb = !ret;
	failed(e, ret, "IFB", name);
	if (have_veth)
		release_veth(nl, req, &veth, have_ifb ? &ifb : NULL, e);
	if (have_ifb)
		failed(e, link_del(nl, ifb.index), "IFB", ifb.name);
	return e->set ? -1 : 0;
}

static int gc(const struct request *req, struct err *e)
{
	struct valid_set valid = {0};
	autonl *nl = NULL;
	int ret;

	if (request_valid_set(req, &valid, e))
		return -1;
	ret = nl_open(&nl, NETLINK_ROUTE, e);
	if (!ret) {
		ret = ifb_sweep(nl, &req->owner, &valid);
		if (ret)
			err_sys(e, -ret, ERR_SYSTEM, "failed to remove stale IFBs of network %s",
				req->network);
	}
	valid_set_free(&valid);
	return ret ? -1 : 0;
}

/* ---- CHECK and STATUS ---- */

static int check_bucket(struct nl *nl, const struct link *l, const struct limit *limit,
	int64_t latency, struct err *e)
{
	struct qdisc q;
	int ret = tc_qdisc_get(nl, l->index, TC_H_ROOT, &q);

	if (ret && ret != -ENOENT)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up the qdisc of %s", l->name);
	if (ret || !tc_is_tbf(&q))
		return err_set(e, ERR_CHECK,
			"Failed to find qdisc: the root qdisc of %s is %s, "
			"not our tbf",
			l->name, ret ? "none" : q.kind);
	return limit_check(limit, latency, l, &q, e);
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
	int ret = ifb_find(nl, &req->owner, veth, &ifb, name);

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

	if (limits_read(req, &limits, e))
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

	if (limits_read(req, &limits, e) || nl_open(&nl, NETLINK_ROUTE, e))
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
