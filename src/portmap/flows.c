#include "portmap/flows.h"

#include "netlink/ct.h"
#include "netlink/nftmap.h"
#include "netlink/route.h"

#include <netinet/in.h>

#define LOOPBACK_INDEX 1 /* of lo, in every network namespace: where the host's addresses lead */

struct flush {
	struct nl *rt;
	const struct port_record *m;
	bool stale;
	struct ip last; /* the answer to the last question */
	bool last_local;
};

static bool is_local(struct flush *f, const struct ip *ip)
{
	uint32_t index;

	if (f->last.family && !ip_cmp(ip, &f->last))
		return f->last_local;
	f->last = *ip;
	f->last_local = !route_lookup(f->rt, ip, &index) && index == LOOPBACK_INDEX;
	return f->last_local;
}

static bool is_mapped_udp(const struct port_mapping *p)
{
	return p->proto == IPPROTO_UDP && !p->yielded;
}

static bool doomed(const struct ct_flow *flow, void *arg)
{
	struct flush *f = arg;

	for (size_t i = 0; i < f->m->len; i++) {
		const struct port_mapping *p = &f->m->list[i];
		bool here;

		if (!is_mapped_udp(p) || p->host_port != flow->orig.dport ||
			p->addr.family != flow->orig.dst.family)
			continue;
		here = !ip_cmp(&flow->reply.src, &p->addr) && flow->reply.sport == p->port;
		if (!ip_is_any(&p->host) && ip_cmp(&p->host, &flow->orig.dst))
			continue;
		/* The container's own address and port are no mapping. */
		if (!f->stale && here && ip_cmp(&flow->orig.dst, &p->addr))
			return true;
		if (f->stale && !here && (!ip_is_any(&p->host) || is_local(f, &flow->orig.dst)))
			return true;
	}
	return false;
}

/* The kernel looks through its whole hash table for each question, which takes milliseconds: one
 * question for everything, as narrow as one can be. */
int flows_flush(struct nft *n, struct nl *rt, const struct port_record *m, bool stale)
{
	struct ct_filter want = {.proto = IPPROTO_UDP};
	struct flush f = {.rt = rt, .m = m, .stale = stale};
	const struct port_mapping *first = NULL;

	for (size_t i = 0; i < m->len; i++) {
		const struct port_mapping *p = &m->list[i];

		if (!is_mapped_udp(p))
			continue;
		if (!first) {
			first = p;
			want.family = p->addr.family;
			want.orig_dport = p->host_port;
			continue;
		}
		want.family = want.family == p->addr.family ? want.family : AF_UNSPEC;
		want.orig_dport = want.orig_dport == p->host_port ? want.orig_dport : 0;
	}
	if (!first)
		return 0;
	if (!stale && want.family)
		want.reply_src = first->addr;
	return ct_flush(nft_socket(n), &want, doomed, &f, NULL);
}
