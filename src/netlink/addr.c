#include "netlink/addr.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

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

void addr_put(struct nl_req *req, uint32_t index, const struct prefix *p, uint32_t flags)
{
	struct ip last = prefix_last(p);

	put_addr(req, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, index, p);
	if (p->ip.family == AF_INET && p->len < 31)
		nl_put_ip(req, IFA_BROADCAST, &last);
	if (p->ip.family == AF_INET)
		flags &= ~(uint32_t)IFA_F_NODAD;
	if (flags)
		nl_put_u32(req, IFA_FLAGS, flags);
}

int addr_add(struct nl *nl, uint32_t index, const struct prefix *p, uint32_t flags)
{
	autoreq req = {0};

	addr_put(&req, index, p, flags);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

int addr_del(struct nl *nl, uint32_t index, const struct prefix *p)
{
	autoreq req = {0};

	put_addr(&req, RTM_DELADDR, 0, index, p);
	return nl_ack(nl, &req, NULL, 0, NULL);
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
	struct addr out = {.index = hdr->ifa_index, .scope = hdr->ifa_scope, .msg = msg};

	if (hdr->ifa_family != AF_INET && hdr->ifa_family != AF_INET6)
		return 0;
	if (each->index && each->index != hdr->ifa_index)
		return 0;
	nl_parse(msg, sizeof(*hdr), a, IFA_MAX);
	/* Of a point-to-point address ADDRESS is the far end. */
	if (!nl_ip(a[IFA_LOCAL] ? a[IFA_LOCAL] : a[IFA_ADDRESS], hdr->ifa_family, &out.prefix.ip))
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

	nl_strict(nl);
	hdr = nl_msg(&req, RTM_GETADDR, NLM_F_DUMP, sizeof(*hdr));
	hdr->ifa_family = family;
	hdr->ifa_index = index;
	return nl_query(nl, &req, read_addr, NULL, &each);
}

/* What is asked for when an address is made; the other flags are what has become of it. */
#define ASKED                                                                                      \
	(IFA_F_NODAD | IFA_F_NOPREFIXROUTE | IFA_F_MANAGETEMPADDR | IFA_F_HOMEADDRESS |            \
		IFA_F_MCAUTOJOIN)

void addr_put_copy(struct nl_req *req, uint32_t index, const struct nlmsghdr *msg)
{
	const struct ifaddrmsg *from = (const void *)((const char *)msg + NLMSG_HDRLEN);
	struct ifaddrmsg *hdr =
		nl_msg(req, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sizeof(*hdr));
	const struct nlattr *a[IFA_MAX + 1];

	*hdr = *from;
	hdr->ifa_flags &= (uint8_t)ASKED;
	hdr->ifa_index = index;
	nl_parse(msg, sizeof(*from), a, IFA_MAX);
	for (uint16_t type = 1; type <= IFA_MAX; type++)
		if (a[type] && type != IFA_FLAGS)
			nl_put(req, type, nl_data(a[type]), nl_len(a[type]));
	if (a[IFA_FLAGS])
		nl_put_u32(req, IFA_FLAGS, nl_u32(a[IFA_FLAGS]) & ASKED);
}
