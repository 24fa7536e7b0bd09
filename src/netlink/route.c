#include "netlink/route.h"

#include "base/vec.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

static struct rtmsg *start_route(
	struct nl_req *req, uint16_t type, uint16_t flags, const struct route_spec *r)
{
	struct rtmsg *hdr = nl_msg(req, type, (uint16_t)(NLM_F_ACK | flags), sizeof(*hdr));

	hdr->rtm_family = r->dst.ip.family;
	hdr->rtm_dst_len = r->dst.len;
	hdr->rtm_scope = r->scope;
	hdr->rtm_table = r->table && r->table < 256 ? (uint8_t)r->table : RT_TABLE_UNSPEC;
	if (!r->table)
		hdr->rtm_table = RT_TABLE_MAIN;
	return hdr;
}

static void put_route(struct nl_req *req, const struct route_spec *r)
{
	struct ip network = prefix_network(&r->dst);

	if (r->dst.len)
		nl_put_ip(req, RTA_DST, &network);
	if (r->table > 255)
		nl_put_u32(req, RTA_TABLE, r->table);
	if (r->gw.family)
		nl_put_ip(req, RTA_GATEWAY, &r->gw);
	if (r->src.family)
		nl_put_ip(req, RTA_PREFSRC, &r->src);
	if (r->index)
		nl_put_u32(req, RTA_OIF, r->index);
	if (r->priority)
		nl_put_u32(req, RTA_PRIORITY, r->priority);
}

void route_put(struct nl_req *req, const struct route_spec *r, uint16_t flags)
{
	struct rtmsg *hdr = start_route(req, RTM_NEWROUTE, (uint16_t)(NLM_F_CREATE | flags), r);
	size_t nest;

	hdr->rtm_type = r->type ? r->type : RTN_UNICAST;
	hdr->rtm_protocol = RTPROT_BOOT;
	if (r->onlink)
		hdr->rtm_flags |= RTNH_F_ONLINK;
	put_route(req, r);
	if (!r->mtu && !r->advmss)
		return;
	nest = nl_nest(req, RTA_METRICS);
	if (r->mtu)
		nl_put_u32(req, RTAX_MTU, r->mtu);
	if (r->advmss)
		nl_put_u32(req, RTAX_ADVMSS, r->advmss);
	nl_nest_end(req, nest);
}

int route_add(struct nl *nl, const struct route_spec *r, uint16_t flags)
{
	autoreq req = {0};

	route_put(&req, r, flags);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

/* ---- reading ---- */

/* Of a multipath route the first next hop; *next is where the following one begins. */
static bool read_nexthop(
	const struct nlattr *multi, size_t *next, uint8_t family, uint32_t *index, struct ip *gw)
{
	const char *at = (const char *)nl_data(multi) + *next;
	size_t left = nl_len(multi) - *next, pos = sizeof(struct rtnexthop);
	size_t aligned;
	struct rtnexthop nh;

	if (left < sizeof(nh))
		return false;
	memcpy(&nh, at, sizeof(nh));
	if (nh.rtnh_len < sizeof(nh) || nh.rtnh_len > left)
		return false;
	*index = (uint32_t)nh.rtnh_ifindex;
	gw->family = 0;
	while (pos + NLA_HDRLEN <= nh.rtnh_len) {
		const struct nlattr *a = (const void *)(at + pos);

		if (a->nla_len < NLA_HDRLEN || a->nla_len > nh.rtnh_len - pos)
			break;
		if (nl_type(a) == RTA_GATEWAY)
			nl_ip(a, family, gw);
		pos += NLA_ALIGN(a->nla_len);
	}
	aligned = NLA_ALIGN(nh.rtnh_len);
	*next += aligned < left ? aligned : left;
	return true;
}

static void read_metrics(const struct nlattr *nest, struct route_spec *r)
{
	const struct nlattr *m[RTAX_MAX + 1];

	if (!nest)
		return;
	nl_parse_nested(nest, m, RTAX_MAX);
	r->mtu = nl_u32(m[RTAX_MTU]);
	r->advmss = nl_u32(m[RTAX_ADVMSS]);
}

struct routes {
	uint32_t table;
	int (*fn)(const struct route_spec *r, void *arg);
	void *arg;
};

static int each_nexthop(const struct nlattr *multi, struct route_spec *r, const struct routes *each)
{
	size_t next = 0;
	int ret = 0;

	while (!ret && read_nexthop(multi, &next, r->dst.ip.family, &r->index, &r->gw))
		ret = each->fn(r, each->arg);
	return ret;
}

/* False for what is no route of a table: copies that the kernel keeps of looked-up ones. */
static bool read_spec(const struct rtmsg *hdr, const struct nlattr *const *a, struct route_spec *r)
{
	*r = (struct route_spec){
		.dst = {.ip.family = hdr->rtm_family, .len = hdr->rtm_dst_len},
		.scope = hdr->rtm_scope,
		.type = hdr->rtm_type,
	};
	if (hdr->rtm_flags & RTM_F_CLONED)
		return false;
	if (hdr->rtm_family != AF_INET && hdr->rtm_family != AF_INET6)
		return false;
	r->table = a[RTA_TABLE] ? nl_u32(a[RTA_TABLE]) : hdr->rtm_table;
	nl_ip(a[RTA_DST], hdr->rtm_family, &r->dst.ip);
	nl_ip(a[RTA_GATEWAY], hdr->rtm_family, &r->gw);
	nl_ip(a[RTA_PREFSRC], hdr->rtm_family, &r->src);
	r->priority = nl_u32(a[RTA_PRIORITY]);
	r->index = nl_u32(a[RTA_OIF]);
	r->onlink = hdr->rtm_flags & RTNH_F_ONLINK;
	read_metrics(a[RTA_METRICS], r);
	return true;
}

static int read_route(const struct nlmsghdr *msg, void *arg)
{
	const struct rtmsg *hdr = (const void *)((const char *)msg + NLMSG_HDRLEN);
	const struct nlattr *a[RTA_MAX + 1];
	const struct routes *each = arg;
	struct route_spec r;

	nl_parse(msg, sizeof(*hdr), a, RTA_MAX);
	if (!read_spec(hdr, a, &r) || (each->table && each->table != r.table))
		return 0;
	return a[RTA_MULTIPATH] ? each_nexthop(a[RTA_MULTIPATH], &r, each)
				: each->fn(&r, each->arg);
}

static int dump(struct nl *nl, uint8_t family, uint32_t table, nl_answer_fn *fn,
	void (*reset)(void *), void *arg)
{
	autoreq req = {0};
	struct rtmsg *hdr;
	int ret;

	nl_strict(nl);
	hdr = nl_msg(&req, RTM_GETROUTE, NLM_F_DUMP, sizeof(*hdr));
	hdr->rtm_family = family;
	if (table)
		nl_put_u32(&req, RTA_TABLE, table);
	ret = nl_query(nl, &req, fn, reset, arg);
	/* A table nobody has put a route into yet. */
	return ret == -ENOENT ? 0 : ret;
}

int route_each(struct nl *nl, uint8_t family, uint32_t table,
	int (*fn)(const struct route_spec *r, void *arg), void *arg)
{
	struct routes each = {.table = table, .fn = fn, .arg = arg};

	return dump(nl, family, table, read_route, NULL, &each);
}

static int keep_oif(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[RTA_MAX + 1];
	uint32_t *index = arg;

	nl_parse(msg, sizeof(struct rtmsg), a, RTA_MAX);
	*index = nl_u32(a[RTA_OIF]);
	return 0;
}

int route_lookup(struct nl *nl, const struct ip *dst, uint32_t *index)
{
	autoreq req = {0};
	struct rtmsg *hdr = nl_msg(&req, RTM_GETROUTE, 0, sizeof(*hdr));
	int ret;

	hdr->rtm_family = dst->family;
	hdr->rtm_dst_len = ip_bits(dst);
	nl_put_ip(&req, RTA_DST, dst);
	*index = 0;
	ret = nl_query(nl, &req, keep_oif, NULL, index);
	return ret ? ret : *index ? 0 : -ENETUNREACH;
}

/* ---- copies ---- */

struct copying {
	uint32_t table;
	struct route_list *list;
};

static int copy_route(const struct nlmsghdr *msg, void *arg)
{
	const struct rtmsg *hdr = (const void *)((const char *)msg + NLMSG_HDRLEN);
	const struct nlattr *a[RTA_MAX + 1];
	const struct copying *c = arg;
	struct route_copy *copy;
	struct route_spec spec;
	size_t next = 0;

	nl_parse(msg, sizeof(*hdr), a, RTA_MAX);
	if (!read_spec(hdr, a, &spec) || (c->table && c->table != spec.table))
		return 0;
	if (a[RTA_MULTIPATH])
		read_nexthop(a[RTA_MULTIPATH], &next, spec.dst.ip.family, &spec.index, &spec.gw);
	copy = vec_add(c->list->list, c->list->len);
	if (!copy)
		return -ENOMEM;
	copy->spec = spec;
	copy->msg = malloc(msg->nlmsg_len);
	if (!copy->msg)
		return -ENOMEM;
	memcpy(copy->msg, msg, msg->nlmsg_len);
	return 0;
}

void route_list_free(struct route_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->list[i].msg);
	free(l->list);
	*l = (struct route_list){0};
}

static void forget(void *arg)
{
	route_list_free(((struct copying *)arg)->list);
}

int route_list_get(struct nl *nl, uint8_t family, uint32_t table, struct route_list *out)
{
	struct copying c = {table, out};
	int ret;

	*out = (struct route_list){0};
	ret = dump(nl, family, table, copy_route, forget, &c);
	if (ret)
		route_list_free(out);
	return ret;
}

/* What the kernel says about a route that is not part of it, or that it says a second time: of a
 * route through a next hop object (RTA_NH_ID) it also shows what is in the object, and then wants
 * to hear only the number. */
static bool is_said(uint16_t type, bool by_object)
{
	switch (type) {
	case RTA_CACHEINFO:
	case RTA_TABLE: return false; /* written anew */
	case RTA_OIF:
	case RTA_GATEWAY:
	case RTA_VIA:
	case RTA_MULTIPATH:
	case RTA_ENCAP:
	case RTA_ENCAP_TYPE: return !by_object;
	default: return true;
	}
}

/* Next hop flags are both: RTNH_F_ONLINK was said when the route was made, the others (dead, link
 * down, offloaded) are what has become of it, and are refused. */
static void put_multipath(struct nl_req *req, const struct nlattr *a)
{
	size_t len = nl_len(a), pos = 0;
	char *at;

	nl_put(req, RTA_MULTIPATH, nl_data(a), len);
	if (req->overflow)
		return;
	at = req->buf + req->len - NLA_ALIGN(len);
	while (pos + sizeof(struct rtnexthop) <= len) {
		struct rtnexthop *nh = (void *)(at + pos);

		nh->rtnh_flags &= RTNH_F_ONLINK;
		if (nh->rtnh_len < sizeof(*nh))
			break;
		pos += NLA_ALIGN(nh->rtnh_len);
	}
}

static void put_copy(struct nl_req *req, const struct route_copy *r, uint32_t index)
{
	const struct nlattr *a[RTA_MAX + 1];

	nl_parse(r->msg, sizeof(struct rtmsg), a, RTA_MAX);
	for (uint16_t type = 1; type <= RTA_MAX; type++) {
		if (!a[type] || !is_said(type, a[RTA_NH_ID]))
			continue;
		if (type == RTA_MULTIPATH)
			put_multipath(req, a[type]);
		else if (type == RTA_OIF && index)
			nl_put_u32(req, RTA_OIF, index);
		else
			nl_put(req, a[type]->nla_type, nl_data(a[type]), nl_len(a[type]));
	}
}

void route_put_copy(struct nl_req *req, const struct route_copy *r,
	const struct route_change *change, uint16_t flags)
{
	const struct rtmsg *from = (const void *)((const char *)r->msg + NLMSG_HDRLEN);
	uint32_t table = change->table ? change->table : r->spec.table;
	struct rtmsg *hdr = nl_msg(
		req, RTM_NEWROUTE, (uint16_t)(NLM_F_ACK | NLM_F_CREATE | flags), sizeof(*hdr));

	*hdr = *from;
	hdr->rtm_flags &= RTNH_F_ONLINK;
	hdr->rtm_table = table < 256 ? (uint8_t)table : RT_TABLE_UNSPEC;
	nl_put_u32(req, RTA_TABLE, table);
	put_copy(req, r, change->index);
}
