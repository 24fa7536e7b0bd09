#include "netlink/ct.h"

#include "base/cleanup.h"
#include "base/trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <string.h>

#define HDR sizeof(struct nfgenmsg)

/* Bits of CTA_FILTER_ORIG_FLAGS and _REPLY_FLAGS: which members of the tuple count. The kernel has
 * them in net/netfilter/nf_internals.h only, although they are what user space must send. */
enum {
	TUPLE_IP_SRC = 1 << 0,
	TUPLE_IP_DST = 1 << 1,
	TUPLE_ZONE = 1 << 2,
	TUPLE_PROTO = 1 << 3,
	TUPLE_SPORT = 1 << 4,
	TUPLE_DPORT = 1 << 5,
};

static void *ct_msg(struct nl_req *r, uint16_t type, uint16_t flags, uint8_t family)
{
	struct nfgenmsg *g = nl_msg(r, (uint16_t)(NFNL_SUBSYS_CTNETLINK << 8 | type), flags, HDR);

	g->nfgen_family = family;
	g->version = NFNETLINK_V0;
	return g;
}

/* The members that `flags` names. */
static void put_tuple(struct nl_req *r, uint16_t attr, const struct ct_tuple *t, unsigned flags)
{
	bool v4 = t->src.family == AF_INET || t->dst.family == AF_INET;
	size_t tuple = nl_nest(r, attr), nest;

	if (flags & (TUPLE_IP_SRC | TUPLE_IP_DST)) {
		nest = nl_nest(r, CTA_TUPLE_IP);
		if (flags & TUPLE_IP_SRC)
			nl_put_ip(r, v4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, &t->src);
		if (flags & TUPLE_IP_DST)
			nl_put_ip(r, v4 ? CTA_IP_V4_DST : CTA_IP_V6_DST, &t->dst);
		nl_nest_end(r, nest);
	}
	nest = nl_nest(r, CTA_TUPLE_PROTO);
	nl_put_u8(r, CTA_PROTO_NUM, t->proto);
	if (flags & TUPLE_SPORT)
		nl_put_u16(r, CTA_PROTO_SRC_PORT, htons(t->sport));
	if (flags & TUPLE_DPORT)
		nl_put_u16(r, CTA_PROTO_DST_PORT, htons(t->dport));
	nl_nest_end(r, nest);
	nl_nest_end(r, tuple);
}

static void put_filter(struct nl_req *r, const struct ct_filter *f)
{
	struct ct_tuple orig = {.proto = f->proto, .dport = f->orig_dport};
	struct ct_tuple reply = {.proto = f->proto, .src = f->reply_src};
	unsigned of = TUPLE_PROTO | (f->orig_dport ? TUPLE_DPORT : 0);
	unsigned rf = f->reply_src.family ? TUPLE_PROTO | TUPLE_IP_SRC : 0;
	size_t nest;

	put_tuple(r, CTA_TUPLE_ORIG, &orig, of);
	if (rf)
		put_tuple(r, CTA_TUPLE_REPLY, &reply, rf);
	nest = nl_nest(r, CTA_FILTER);
	nl_put_u32(r, CTA_FILTER_ORIG_FLAGS, of);
	nl_put_u32(r, CTA_FILTER_REPLY_FLAGS, rf);
	nl_nest_end(r, nest);
}

static bool take_ip(struct ip *ip, const struct nlattr *v4, const struct nlattr *v6)
{
	const struct nlattr *a = v4 ? v4 : v6;

	*ip = (struct ip){.family = v4 ? AF_INET : AF_INET6};
	if (!a || nl_len(a) < ip_size(ip))
		return false;
	memcpy(ip->bytes, nl_data(a), ip_size(ip));
	return true;
}

static bool take_tuple(const struct nlattr *nest, struct ct_tuple *t)
{
	const struct nlattr *a[CTA_TUPLE_MAX + 1], *ip[CTA_IP_MAX + 1], *p[CTA_PROTO_MAX + 1];

	if (!nest)
		return false;
	nl_parse_nested(nest, a, CTA_TUPLE_MAX);
	if (!a[CTA_TUPLE_IP] || !a[CTA_TUPLE_PROTO])
		return false;
	nl_parse_nested(a[CTA_TUPLE_IP], ip, CTA_IP_MAX);
	nl_parse_nested(a[CTA_TUPLE_PROTO], p, CTA_PROTO_MAX);
	t->proto = nl_u8(p[CTA_PROTO_NUM]);
	t->sport = ntohs(nl_u16(p[CTA_PROTO_SRC_PORT]));
	t->dport = ntohs(nl_u16(p[CTA_PROTO_DST_PORT]));
	return take_ip(&t->src, ip[CTA_IP_V4_SRC], ip[CTA_IP_V6_SRC]) &&
	       take_ip(&t->dst, ip[CTA_IP_V4_DST], ip[CTA_IP_V6_DST]);
}

struct search {
	const struct ct_filter *f;
	bool (*doomed)(const struct ct_flow *flow, void *arg);
	void *arg;
	struct ct_flow *list;
	size_t len;
	size_t cap;
	size_t from; /* where this listing began */
};

static bool matches(const struct ct_filter *f, const struct ct_flow *flow)
{
	return (!f->family || flow->orig.src.family == f->family) && flow->orig.proto == f->proto &&
	       (!f->orig_dport || flow->orig.dport == f->orig_dport) &&
	       (!f->reply_src.family || !ip_cmp(&flow->reply.src, &f->reply_src));
}

static int collect(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[CTA_MAX + 1];
	struct search *s = arg;
	struct ct_flow flow = {0};

	if (msg->nlmsg_type != (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW))
		return 0;
	nl_parse(msg, HDR, a, CTA_MAX);
	if (!take_tuple(a[CTA_TUPLE_ORIG], &flow.orig) ||
		!take_tuple(a[CTA_TUPLE_REPLY], &flow.reply))
		return 0;
	flow.zone = ntohs(nl_u16(a[CTA_ZONE]));
	flow.id = nl_u32(a[CTA_ID]);
	if (!matches(s->f, &flow) || (s->doomed && !s->doomed(&flow, s->arg)))
		return 0;
	if (s->len == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 16;
		struct ct_flow *p = reallocarray(s->list, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		s->list = p;
		s->cap = cap;
	}
	s->list[s->len++] = flow;
	return 0;
}

static void again(void *arg)
{
	struct search *s = arg;

	s->len = s->from;
}

/* Acks come back one per message; this many fit the default socket buffer with room to spare. */
#define AT_ONCE 64

static int delete_flows(struct nl *nl, const struct ct_flow *list, size_t len)
{
	unsigned all = TUPLE_IP_SRC | TUPLE_IP_DST | TUPLE_PROTO | TUPLE_SPORT | TUPLE_DPORT;
	autoreq r = {0};
	int ret = 0, one;

	for (size_t i = 0; i < len; i++) {
		const struct ct_flow *f = &list[i];

		ct_msg(&r, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, f->orig.src.family);
		put_tuple(&r, CTA_TUPLE_ORIG, &f->orig, all);
		if (f->zone)
			nl_put_u16(&r, CTA_ZONE, htons(f->zone));
		if (f->id)
			nl_put_u32(&r, CTA_ID, f->id);
		if (i + 1 < len && (i + 1) % AT_ONCE)
			continue;
		one = nl_ack(nl, &r, NULL, 0, NULL);
		if (one && one != -ENOENT && !ret)
			ret = one;
	}
	return ret;
}

static int take_entries(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[CTA_STATS_GLOBAL_MAX + 1];

	if (msg->nlmsg_type == (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET_STATS)) {
		nl_parse(msg, HDR, a, CTA_STATS_GLOBAL_MAX);
		*(uint32_t *)arg = nl_be32(a[CTA_STATS_GLOBAL_ENTRIES]);
	}
	return 0;
}

/* How many flows this namespace has: a question of microseconds. Unknown: very many. */
static uint32_t entries(struct nl *nl)
{
	uint32_t n = UINT32_MAX;
	autoreq r = {0};

	/* The answer says that more will come, which never does: the ack ends it. */
	ct_msg(&r, IPCTNL_MSG_CT_GET_STATS, NLM_F_ACK, AF_UNSPEC);
	return nl_query(nl, &r, take_entries, NULL, &n) ? UINT32_MAX : n;
}

/* Up to so many flows are rather copied out than looked for twice. */
#define FEW 4096

/* The kernel walks through its whole hash table for a listing, nearly 10 ms for 262,144 buckets, be
 * they empty or not, and it chooses only within one family. */
static int find(struct nl *nl, struct search *s)
{
	static const uint8_t families[] = {AF_INET, AF_INET6};
	struct ct_filter want = *s->f;
	uint32_t n = entries(nl);
	int ret = 0;

	for (size_t i = 0; i < array_len(families) && !ret && n; i++) {
		autoreq r = {0};

		if (want.family && want.family != families[i])
			continue;
		if (!want.family && n <= FEW) {
			ct_msg(&r, IPCTNL_MSG_CT_GET, NLM_F_DUMP, AF_UNSPEC);
			return nl_query(nl, &r, collect, again, s);
		}
		ct_msg(&r, IPCTNL_MSG_CT_GET, NLM_F_DUMP, families[i]);
		put_filter(&r, &want);
		s->from = s->len;
		ret = nl_query(nl, &r, collect, again, s);
	}
	return ret;
}

int ct_flush(struct nl *nl, const struct ct_filter *f,
	bool (*doomed)(const struct ct_flow *flow, void *arg), void *arg, unsigned *count)
{
	struct search s = {.f = f, .doomed = doomed, .arg = arg};
	uint64_t start = trace_start();
	int ret = find(nl, &s);

	if (!ret)
		ret = delete_flows(nl, s.list, s.len);
	trace_step(start, TRACE_NETLINK, -ret, "conntrack flush: %zu flows", s.len);
	if (count)
		*count = (unsigned)s.len;
	free(s.list);
	return ret;
}
