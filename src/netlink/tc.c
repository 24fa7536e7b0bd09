#include "netlink/tc.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ffff:, the handle of ingress and clsact, and what the filters of clsact's ingress side hang on.
 */
#define INGRESS_HANDLE 0xffff0000u
#define CLSACT_INGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)

/* Priority and protocol of the redirect, in the kernel's packing. */
#define REDIRECT_INFO TC_H_MAKE(1u << 16, htons(ETH_P_ALL))

/* net/sched keeps time in ticks of 1 << 6 ns. include/net/pkt_sched.h, PSCHED_SHIFT. */
#define TICK_SHIFT   6
#define NSEC_PER_SEC 1000000000u

static struct tcmsg *start(
	struct nl_req *req, uint16_t type, uint16_t flags, uint32_t index, uint32_t parent)
{
	struct tcmsg *t = nl_msg(req, type, flags, sizeof(*t));

	t->tcm_family = AF_UNSPEC;
	t->tcm_ifindex = (int)index;
	t->tcm_parent = parent;
	return t;
}

static const struct tcmsg *header(const struct nlmsghdr *msg)
{
	return (const void *)((const char *)msg + NLMSG_HDRLEN);
}

/* ---- queueing disciplines ---- */

static void read_tbf(const struct nlattr *options, struct qdisc *q)
{
	const struct nlattr *a[TCA_TBF_MAX + 1];
	struct tc_tbf_qopt opt;

	nl_parse_nested(options, a, TCA_TBF_MAX);
	if (nl_len(a[TCA_TBF_PARMS]) < sizeof(opt))
		return;
	memcpy(&opt, nl_data(a[TCA_TBF_PARMS]), sizeof(opt));
	q->rate = a[TCA_TBF_RATE64] ? nl_u64(a[TCA_TBF_RATE64]) : opt.rate.rate;
	q->limit = opt.limit;
	q->buffer = opt.buffer;
}

static int read_qdisc(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[TCA_MAX + 1];
	struct qdisc *q = arg;

	nl_parse(msg, sizeof(struct tcmsg), a, TCA_MAX);
	*q = (struct qdisc){.handle = header(msg)->tcm_handle};
	snprintf(q->kind, sizeof(q->kind), "%s", nl_str(a[TCA_KIND]));
	if (!strcmp(q->kind, "tbf") && a[TCA_OPTIONS])
		read_tbf(a[TCA_OPTIONS], q);
	return 0;
}

int tc_qdisc_get(struct nl *nl, uint32_t index, uint32_t parent, struct qdisc *out)
{
	autoreq req = {0};
	int ret;

	*out = (struct qdisc){0};
	/* Without ECHO the kernel tells everybody but us; without ACK silence would have no end. */
	start(&req, RTM_GETQDISC, NLM_F_ECHO | NLM_F_ACK, index, parent);
	ret = nl_query(nl, &req, read_qdisc, NULL, out);
	/* Depending on version and place the kernel says EINVAL, or answers nothing. */
	if (ret == -EINVAL || (!ret && !out->kind[0]))
		return -ENOENT;
	return ret;
}

int tc_qdisc_del(struct nl *nl, uint32_t index, uint32_t parent)
{
	autoreq req = {0};

	start(&req, RTM_DELQDISC, NLM_F_ACK, index, parent);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

bool tc_is_absent(int ret)
{
	return ret == -ENODEV || ret == -ENOENT || ret == -EINVAL;
}

bool tc_is_tbf(const struct qdisc *q)
{
	return !strcmp(q->kind, "tbf") && q->handle == TBF_HANDLE;
}

static uint64_t ticks(const struct tbf *tbf)
{
	/* burst * 10^9 / rate ns fit 62 bits: (2^32 - 1) * 10^9, at 1 byte/s. */
	return ((uint64_t)tbf->burst * NSEC_PER_SEC / tbf->rate) >> TICK_SHIFT;
}

uint32_t tbf_ticks(const struct tbf *tbf)
{
	return (uint32_t)ticks(tbf);
}

bool tbf_buffer_is(uint32_t buffer, const struct tbf *tbf)
{
	/* A microsecond is 16 ticks. The kernel divides by multiplying with a reciprocal of 31
	 * bits, which shows in long times. The difference is taken modulo 2^32. */
	uint64_t exact = ticks(tbf), tolerance = 32 + (exact >> 30);
	uint32_t off = buffer - (uint32_t)exact;

	return off <= tolerance || 0u - off <= tolerance;
}

static void put_tbf(struct nl_req *req, const struct tbf *tbf)
{
	struct tc_tbf_qopt opt = {
		.rate.rate = tbf->rate > UINT32_MAX ? UINT32_MAX : (uint32_t)tbf->rate,
		.limit = tbf->limit,
		.buffer = tbf_ticks(tbf),
	};
	size_t nest;

	nl_put_str(req, TCA_KIND, "tbf");
	nest = nl_nest(req, TCA_OPTIONS);
	nl_put(req, TCA_TBF_PARMS, &opt, sizeof(opt));
	/* In bytes: the time in `buffer` wraps for long bursts. */
	nl_put_u32(req, TCA_TBF_BURST, tbf->burst);
	if (tbf->rate > UINT32_MAX)
		nl_put_u64(req, TCA_TBF_RATE64, tbf->rate);
	nl_nest_end(req, nest);
}

static int new_tbf(struct nl *nl, uint32_t index, uint16_t flags, const struct tbf *tbf, char *ext,
	size_t size)
{
	autoreq req = {0};

	flags |= NLM_F_ACK | NLM_F_CREATE;
	start(&req, RTM_NEWQDISC, flags, index, TC_H_ROOT)->tcm_handle = TBF_HANDLE;
	put_tbf(&req, tbf);
	return nl_ack(nl, &req, ext, size, NULL);
}

int tc_tbf_set(struct nl *nl, uint32_t index, const char *name, const struct tbf *tbf,
	bool *created, struct err *e)
{
	char ext[256] = "";
	struct qdisc old;
	int ret = new_tbf(nl, index, NLM_F_EXCL, tbf, ext, sizeof(ext));

	if (created)
		*created = !ret;
	if (ret == -EEXIST && !tc_qdisc_get(nl, index, TC_H_ROOT, &old)) {
		if (!tc_is_tbf(&old))
			return err_set(e, ERR_SYSTEM,
				"create qdisc: link %s already has a root qdisc of kind %s "
				"(handle %x:)",
				name, old.kind, old.handle >> 16);
		ret = new_tbf(nl, index, NLM_F_REPLACE, tbf, ext, sizeof(ext));
	}
	if (!ret)
		return 0;
	return err_kernel(e, -ret, ext, ERR_SYSTEM, "create qdisc: tbf on link %s", name);
}

/* ---- ingress ---- */

int tc_ingress_get(struct nl *nl, uint32_t index, uint32_t *parent, bool *kind_ingress)
{
	struct qdisc q;
	int ret = tc_qdisc_get(nl, index, TC_H_INGRESS, &q);
	bool plain;

	if (ret)
		return ret;
	plain = !strcmp(q.kind, "ingress");
	if (!plain && strcmp(q.kind, "clsact") != 0)
		return -ENOENT;
	*parent = plain ? INGRESS_HANDLE : CLSACT_INGRESS;
	if (kind_ingress)
		*kind_ingress = plain;
	return 0;
}

int tc_ingress_ensure(struct nl *nl, uint32_t index, const char *name, uint32_t *parent,
	bool *created, struct err *e)
{
	autoreq req = {0};
	char ext[256] = "";
	int ret;

	start(&req, RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, index, TC_H_INGRESS)
		->tcm_handle = INGRESS_HANDLE;
	nl_put_str(&req, TCA_KIND, "ingress");
	ret = nl_ack(nl, &req, ext, sizeof(ext), NULL);
	if (created)
		*created = !ret;
	if (!ret)
		*parent = INGRESS_HANDLE;
	else if (ret == -EEXIST && !tc_ingress_get(nl, index, parent, NULL))
		ret = 0;
	if (!ret)
		return 0;
	return err_kernel(e, -ret, ext, ERR_SYSTEM, "create ingress qdisc: on link %s", name);
}

/* ---- redirection ---- */

/* struct tc_u32_sel with one key behind it, whose mask leaves no bit to compare: it always matches.
 */
#define MATCH_ALL_SIZE (sizeof(struct tc_u32_sel) + sizeof(struct tc_u32_key))

static void put_mirred(struct nl_req *req, uint32_t to)
{
	struct tc_mirred parms = {
		.action = TC_ACT_STOLEN, .eaction = TCA_EGRESS_REDIR, .ifindex = to};
	size_t actions = nl_nest(req, TCA_U32_ACT), action = nl_nest(req, 1), options;

	nl_put_str(req, TCA_ACT_KIND, "mirred");
	options = nl_nest(req, TCA_ACT_OPTIONS);
	nl_put(req, TCA_MIRRED_PARMS, &parms, sizeof(parms));
	nl_nest_end(req, options);
	nl_nest_end(req, action);
	nl_nest_end(req, actions);
}

int tc_redirect_add(
	struct nl *nl, uint32_t index, uint32_t parent, uint32_t to, char *ext, size_t size)
{
	struct tc_u32_sel sel = {.flags = TC_U32_TERMINAL, .nkeys = 1};
	char match[MATCH_ALL_SIZE] = {0};
	autoreq req = {0};
	size_t nest;

	start(&req, RTM_NEWTFILTER, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, index, parent)
		->tcm_info = REDIRECT_INFO;
	nl_put_str(&req, TCA_KIND, "u32");
	nest = nl_nest(&req, TCA_OPTIONS);
	memcpy(match, &sel, sizeof(sel));
	nl_put(&req, TCA_U32_SEL, match, sizeof(match));
	put_mirred(&req, to);
	nl_nest_end(&req, nest);
	return nl_ack(nl, &req, ext, size, NULL);
}

/* Where a list of actions redirects to; false when it does not. */
static bool mirred_target(const struct nlattr *actions, uint32_t *to)
{
	const struct nlattr *a[TCA_ACT_MAX + 1], *o[TCA_MIRRED_MAX + 1];
	struct tc_mirred parms;

	nl_for_each_attr (action, actions) {
		nl_parse_nested(action, a, TCA_ACT_MAX);
		if (strcmp(nl_str(a[TCA_ACT_KIND]), "mirred") != 0 || !a[TCA_ACT_OPTIONS])
			continue;
		nl_parse_nested(a[TCA_ACT_OPTIONS], o, TCA_MIRRED_MAX);
		if (nl_len(o[TCA_MIRRED_PARMS]) < sizeof(parms))
			continue;
		memcpy(&parms, nl_data(o[TCA_MIRRED_PARMS]), sizeof(parms));
		if (parms.eaction != TCA_EGRESS_REDIR)
			continue;
		*to = parms.ifindex;
		return true;
	}
	return false;
}

/* Whether a u32 selector lets everything through to its actions. */
static bool matches_all(const struct nlattr *attr)
{
	struct tc_u32_sel sel;
	struct tc_u32_key key;

	if (nl_len(attr) < MATCH_ALL_SIZE)
		return false;
	memcpy(&sel, nl_data(attr), sizeof(sel));
	memcpy(&key, (const char *)nl_data(attr) + sizeof(sel), sizeof(key));
	return sel.nkeys == 1 && !key.mask && !key.val;
}

struct search {
	uint32_t to;
	struct redirect *out;
};

static int match_redirect(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[TCA_MAX + 1], *o[TCA_U32_MAX + 1];
	const struct search *s = arg;
	uint32_t to;

	nl_parse(msg, sizeof(struct tcmsg), a, TCA_MAX);
	if (strcmp(nl_str(a[TCA_KIND]), "u32") != 0 || !a[TCA_OPTIONS])
		return 0;
	nl_parse_nested(a[TCA_OPTIONS], o, TCA_U32_MAX);
	if (!o[TCA_U32_ACT] || !matches_all(o[TCA_U32_SEL]))
		return 0;
	if (!mirred_target(o[TCA_U32_ACT], &to) || (s->to && s->to != to))
		return 0;
	*s->out = (struct redirect){
		.to = to, .handle = header(msg)->tcm_handle, .info = header(msg)->tcm_info};
	return 1;
}

int tc_redirect_get(
	struct nl *nl, uint32_t index, uint32_t parent, uint32_t to, struct redirect *out)
{
	struct search s = {to, out};
	autoreq req = {0};
	int ret;

	start(&req, RTM_GETTFILTER, NLM_F_DUMP, index, parent);
	ret = nl_query(nl, &req, match_redirect, NULL, &s);
	if (ret == 1)
		return 0;
	return !ret || ret == -EINVAL ? -ENOENT : ret;
}

int tc_redirect_del(struct nl *nl, uint32_t index, uint32_t parent, const struct redirect *redirect)
{
	autoreq req = {0};
	struct tcmsg *t = start(&req, RTM_DELTFILTER, NLM_F_ACK, index, parent);

	t->tcm_handle = redirect->handle;
	t->tcm_info = redirect->info;
	nl_put_str(&req, TCA_KIND, "u32");
	return nl_ack(nl, &req, NULL, 0, NULL);
}

static int any(const struct nlmsghdr *msg, void *arg)
{
	(void)msg;
	(void)arg;
	return 1;
}

int tc_has_filters(struct nl *nl, uint32_t index, uint32_t parent)
{
	autoreq req = {0};

	start(&req, RTM_GETTFILTER, NLM_F_DUMP, index, parent);
	return nl_query(nl, &req, any, NULL, NULL);
}

/* ---- what the kernel can ---- */

/* A tbf without parameters: EINVAL from its own code, ENOENT when there is no such code. */
static int probe_tbf(struct nl *nl)
{
	autoreq req = {0};

	start(&req, RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, 1, TC_H_ROOT);
	nl_put_str(&req, TCA_KIND, "tbf");
	return nl_ack(nl, &req, NULL, 0, NULL);
}

/* A redirect without parameters, as an action of its own. */
static int probe_mirred(struct nl *nl)
{
	autoreq req = {0};
	struct tcamsg *t = nl_msg(&req, RTM_NEWACTION, NLM_F_ACK | NLM_F_CREATE, sizeof(*t));
	size_t table, action, options;

	t->tca_family = AF_UNSPEC;
	table = nl_nest(&req, TCA_ACT_TAB);
	action = nl_nest(&req, 1);
	nl_put_str(&req, TCA_ACT_KIND, "mirred");
	options = nl_nest(&req, TCA_ACT_OPTIONS);
	nl_nest_end(&req, options);
	nl_nest_end(&req, action);
	nl_nest_end(&req, table);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

/* An IFB whose address is a multicast one. */
static int probe_ifb(struct nl *nl)
{
	static const uint8_t multicast[6] = {1};
	autoreq req = {0};
	size_t nest;

	nl_msg(&req, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
	nl_put(&req, IFLA_ADDRESS, multicast, sizeof(multicast));
	nest = nl_nest(&req, IFLA_LINKINFO);
	nl_put_str(&req, IFLA_INFO_KIND, "ifb");
	nl_nest_end(&req, nest);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

int tc_probe(struct nl *nl, struct err *e)
{
	static const struct {
		const char *what;
		int (*ask)(struct nl *nl);
		int unknown;
	} parts[] = {
		{"the tbf qdisc (CONFIG_NET_SCH_TBF)", probe_tbf, -ENOENT},
		{"the mirred action (CONFIG_NET_ACT_MIRRED)", probe_mirred, -ENOENT},
		{"IFB links (CONFIG_IFB)", probe_ifb, -EOPNOTSUPP},
	};

	for (size_t i = 0; i < array_len(parts); i++) {
		int ret = parts[i].ask(nl);

		if (ret == parts[i].unknown || ret == -EOPNOTSUPP || ret == -EPERM)
			return err_sys(e, -ret, ERR_NOT_AVAILABLE,
				"shaping is not available: cannot use %s", parts[i].what);
	}
	return 0;
}
