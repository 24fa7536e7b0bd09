#include "netlink/addr.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

/* Lets dumps be filtered by link and table in the kernel (since 4.20); older ones ignore it, and
 * the callers below filter again. */
static void strict(struct nl *nl)
{
	int one = 1;

	setsockopt(nl_fd(nl), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one, sizeof(one));
}

/* ---- addresses ---- */

static void put_addr(
	struct nl_req *req, uint16_t type, uint16_t flags, uint32_t index, const struct prefix *p)
{
	struct ifaddrmsg *hdr = nl_msg(req, type, (uint16_t)(NLM_F_ACK | flags), sizeof(*hdr));

	hdr->ifa_family = p->ip.family;
	hdr->ifa_prefixlen = p->len;
	hdr->ifa_index = index;
	nl_put_ip(req, IFA_LOCAL, &p->ip);
	nl_put_ip(req, IFA_ADDRESS, &p->ip);
}

void addr_put(struct nl_req *req, uint32_t index, const struct prefix *p, bool nodad)
{
	struct ip last = prefix_last(p);

	put_addr(req, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, index, p);
	if (p->ip.family == AF_INET && p->len < 31)
		nl_put_ip(req, IFA_BROADCAST, &last);
	if (p->ip.family == AF_INET6 && nodad)
		nl_put_u32(req, IFA_FLAGS, IFA_F_NODAD);
}

int addr_add(struct nl *nl, uint32_t index, const struct prefix *p, bool nodad)
{
	autoreq req = {0};

	addr_put(&req, index, p, nodad);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

int addr_del(struct nl *nl, uint32_t index, const struct prefix *p)
{
	autoreq req = {0};

	put_addr(&req, RTM_DELADDR, 0, index, p);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

static bool read_ip(const struct nlattr *a, uint8_t family, struct ip *out)
{
	struct ip ip = {.family = family};

	if (nl_len(a) != ip_size(&ip))
		return false;
	memcpy(ip.bytes, nl_data(a), ip_size(&ip));
	*out = ip;
	return true;
}

struct addrs {
	uint32_t index;
	int (*fn)(const struct addr *a, void *arg);
	void *arg;
};

static int read_addr(const struct nlmsghdr *msg, void *arg)
{
	const struct ifaddrmsg *hdr = (const void *)((const char *)msg + NLMSG_HDRLEN);
	const struct nlattr *a[IFA_MAX + 1];
	const struct addrs *each = arg;
	struct addr out = {.index = hdr->ifa_index, .scope = hdr->ifa_scope};

	if (hdr->ifa_family != AF_INET && hdr->ifa_family != AF_INET6)
		return 0;
	if (each->index && each->index != hdr->ifa_index)
		return 0;
	nl_parse(msg, sizeof(*hdr), a, IFA_MAX);
	/* Of a point-to-point address ADDRESS is the far end. */
	if (!read_ip(a[IFA_LOCAL] ? a[IFA_LOCAL] : a[IFA_ADDRESS], hdr->ifa_family, &out.prefix.ip))
		return 0;
	out.prefix.len = hdr->ifa_prefixlen;
	out.flags = a[IFA_FLAGS] ? nl_u32(a[IFA_FLAGS]) : hdr->ifa_flags;
	return each->fn(&out, each->arg);
}

int addr_each(struct nl *nl, uint32_t index, uint8_t family,
	int (*fn)(const struct addr *a, void *arg), void *arg)
{
	struct addrs each = {index, fn, arg};
	autoreq req = {0};
	struct ifaddrmsg *hdr;

	strict(nl);
	hdr = nl_msg(&req, RTM_GETADDR, NLM_F_DUMP, sizeof(*hdr));
	hdr->ifa_family = family;
	hdr->ifa_index = index;
	return nl_query(nl, &req, read_addr, NULL, &each);
}

/* ---- routes ---- */

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

	hdr->rtm_type = RTN_UNICAST;
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

int route_del(struct nl *nl, const struct route_spec *r)
{
	autoreq req = {0};

	start_route(&req, RTM_DELROUTE, 0, r)->rtm_scope = RT_SCOPE_NOWHERE;
	put_route(&req, r);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

struct routes {
	uint32_t table;
	int (*fn)(const struct route_spec *r, void *arg);
	void *arg;
};

/* Next hops of a multipath route, each handed on as a route of its own. */
static int each_nexthop(const struct nlattr *multi, struct route_spec *r, const struct routes *each)
{
	const char *at = nl_data(multi), *end = at + nl_len(multi);
	int ret = 0;

	while (!ret && (size_t)(end - at) >= sizeof(struct rtnexthop)) {
		struct rtnexthop nh;
		const char *attrs, *stop;

		memcpy(&nh, at, sizeof(nh));
		if (nh.rtnh_len < sizeof(nh) || nh.rtnh_len > end - at)
			break;
		r->index = (uint32_t)nh.rtnh_ifindex;
		r->gw.family = 0;
		attrs = at + sizeof(nh);
		stop = at + nh.rtnh_len;
		while ((size_t)(stop - attrs) >= NLA_HDRLEN) {
			const struct nlattr *a = (const void *)attrs;

			if (a->nla_len < NLA_HDRLEN || a->nla_len > stop - attrs)
				break;
			if (nl_type(a) == RTA_GATEWAY)
				read_ip(a, r->dst.ip.family, &r->gw);
			attrs += NLA_ALIGN(a->nla_len);
			if (attrs > stop)
				break;
		}
		ret = each->fn(r, each->arg);
		at += RTNH_ALIGN(nh.rtnh_len);
		if (at > end)
			break;
	}
	return ret;
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

static int read_route(const struct nlmsghdr *msg, void *arg)
{
	const struct rtmsg *hdr = (const void *)((const char *)msg + NLMSG_HDRLEN);
	const struct nlattr *a[RTA_MAX + 1];
	const struct routes *each = arg;
	struct route_spec r = {
		.dst = {.ip.family = hdr->rtm_family, .len = hdr->rtm_dst_len},
		.scope = hdr->rtm_scope,
	};

	if (hdr->rtm_flags & RTM_F_CLONED)
		return 0;
	if (hdr->rtm_family != AF_INET && hdr->rtm_family != AF_INET6)
		return 0;
	nl_parse(msg, sizeof(*hdr), a, RTA_MAX);
	r.table = a[RTA_TABLE] ? nl_u32(a[RTA_TABLE]) : hdr->rtm_table;
	if (each->table && each->table != r.table)
		return 0;
	read_ip(a[RTA_DST], hdr->rtm_family, &r.dst.ip);
	read_ip(a[RTA_GATEWAY], hdr->rtm_family, &r.gw);
	read_ip(a[RTA_PREFSRC], hdr->rtm_family, &r.src);
	r.priority = nl_u32(a[RTA_PRIORITY]);
	r.index = nl_u32(a[RTA_OIF]);
	read_metrics(a[RTA_METRICS], &r);
	return a[RTA_MULTIPATH] ? each_nexthop(a[RTA_MULTIPATH], &r, each)
				: each->fn(&r, each->arg);
}

int route_each(struct nl *nl, uint8_t family, uint32_t table,
	int (*fn)(const struct route_spec *r, void *arg), void *arg)
{
	struct routes each = {table, fn, arg};
	autoreq req = {0};
	struct rtmsg *hdr;
	int ret;

	strict(nl);
	hdr = nl_msg(&req, RTM_GETROUTE, NLM_F_DUMP, sizeof(*hdr));
	hdr->rtm_family = family;
	if (table)
		nl_put_u32(&req, RTA_TABLE, table);
	ret = nl_query(nl, &req, read_route, NULL, &each);
	/* A table nobody has put a route into yet. */
	return ret == -ENOENT ? 0 : ret;
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
