/* A library to be preloaded: a kernel that lacks parts of nf_tables, or alternative names. LACKING
 * names them, separated by blanks:
 *
 *   nfnetlink     sockets of that protocol
 *   nf_tables     the subsystem
 *   chain:TYPE    base chains of that type, as without the module nft_chain_TYPE
 *   expr:NAME     rules with that expression, as without the module nft_NAME
 *   altnames      alternative names of links, as before 5.5
 *   dellink       an answer to RTM_DELLINK by an alternative name that says "no such device" and
 * not "invalid", as before 5.19
 *
 * With LACKING_SILENT the answers do not say which attribute is meant, as kernels before 5.7 do
 * not. The answers are what Linux 6.1 says: net/netfilter/nfnetlink.c, nf_tables_api.c. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static struct {
	int fd;
	size_t len;
	char bytes[256];
} answer = {.fd = -1};

static bool lacks(const char *kind, const char *name)
{
	const char *list = getenv("LACKING");
	char word[64], all[256];

	snprintf(word, sizeof(word), " %s%s ", kind, name);
	snprintf(all, sizeof(all), " %s ", list ? list : "");
	return strstr(all, word);
}

/* The attribute of that type between two addresses. */
static const struct nlattr *find(const char *at, const char *end, uint16_t type)
{
	while (at + sizeof(struct nlattr) <= end) {
		const struct nlattr *a = (const void *)at;

		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
		at += a->nla_len < NLA_HDRLEN ? NLA_HDRLEN : NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static const char *text(const struct nlattr *a)
{
	return (const char *)a + NLA_HDRLEN;
}

static const char *end_of(const struct nlattr *a)
{
	return (const char *)a + a->nla_len;
}

/* What is lacking for a message, or NULL. */
static const struct nlattr *refused(const struct nlmsghdr *m)
{
	const char *at = (const char *)m + NLMSG_HDRLEN + sizeof(struct nfgenmsg),
		   *end = (const char *)m + m->nlmsg_len;
	const struct nlattr *a = NULL, *name;

	if (m->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN)) {
		a = find(at, end, NFTA_CHAIN_TYPE);
		return a && lacks("chain:", text(a)) ? a : NULL;
	}
	if (m->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE))
		a = find(at, end, NFTA_RULE_EXPRESSIONS);
	for (at = a ? text(a) : NULL; at && at < end_of(a);
		at += NLA_ALIGN(((const struct nlattr *)at)->nla_len)) {
		const struct nlattr *elem = (const void *)at;

		name = find(text(elem), end_of(elem), NFTA_EXPR_NAME);
		if (name && lacks("expr:", text(name)))
			return elem;
	}
	return NULL;
}

static void refuse(int fd, const struct nlmsghdr *m, int error, const struct nlattr *blamed)
{
	struct {
		struct nlmsghdr hdr;
		struct nlmsgerr err;
		struct nlattr offs;
		uint32_t value;
	} *r = (void *)answer.bytes;

	memset(answer.bytes, 0, sizeof(answer.bytes));
	r->hdr = (struct nlmsghdr){
		.nlmsg_type = NLMSG_ERROR, .nlmsg_flags = NLM_F_CAPPED, .nlmsg_seq = m->nlmsg_seq};
	r->err = (struct nlmsgerr){.error = -error, .msg = *m};
	r->hdr.nlmsg_len = NLMSG_LENGTH(sizeof(r->err));
	if (blamed && !getenv("LACKING_SILENT")) {
		r->hdr.nlmsg_flags |= NLM_F_ACK_TLVS;
		r->offs =
			(struct nlattr){.nla_len = NLA_HDRLEN + 4, .nla_type = NLMSGERR_ATTR_OFFS};
		r->value = (uint32_t)((const char *)blamed - (const char *)m);
		r->hdr.nlmsg_len = sizeof(*r);
	}
	answer.len = r->hdr.nlmsg_len;
	answer.fd = fd;
}

/* Whether the kernel would not have it; the answer waits then. */
static bool taken(int fd, const char *buf, size_t len)
{
	for (size_t at = 0; at + NLMSG_HDRLEN <= len;) {
		const struct nlmsghdr *m = (const void *)(buf + at);
		const struct nlattr *blamed = refused(m);

		if (lacks("", "nf_tables") && m->nlmsg_type == NFNL_MSG_BATCH_BEGIN)
			return refuse(fd, m, EOPNOTSUPP, NULL), true;
		if (lacks("", "nf_tables") && m->nlmsg_type >> 8 == NFNL_SUBSYS_NFTABLES)
			return refuse(fd, m, EINVAL, NULL), true;
		if (blamed)
			return refuse(fd, m, ENOENT, blamed), true;
		at += NLMSG_ALIGN(m->nlmsg_len);
	}
	return false;
}

/* ---- links ---- */

static struct {
	int fd;
	uint32_t seq;
} dellink = {.fd = -1}; /* the message whose answer is changed */

/* Alternative names become attributes and messages that no kernel knows. */
static void forget_altnames(struct nlmsghdr *m)
{
	char *at = (char *)m + NLMSG_HDRLEN + sizeof(struct ifinfomsg);
	struct nlattr *a;

	if (m->nlmsg_type == RTM_NEWLINKPROP || m->nlmsg_type == RTM_DELLINKPROP)
		m->nlmsg_type = 0x3f0;
	else if ((m->nlmsg_type == RTM_GETLINK || m->nlmsg_type == RTM_DELLINK) &&
		 (a = (struct nlattr *)find(at, (char *)m + m->nlmsg_len, IFLA_ALT_IFNAME)))
		a->nla_type = 0x3f0;
}

/* The buffer is the program's own and not read again after it was sent. */
static void change_links(int fd, char *buf, size_t len)
{
	for (size_t at = 0; at + NLMSG_HDRLEN <= len;) {
		struct nlmsghdr *m = (void *)(buf + at);
		const struct ifinfomsg *i = NLMSG_DATA(m);

		if (m->nlmsg_type == RTM_DELLINK && !i->ifi_index &&
			!find((char *)(i + 1), buf + at + m->nlmsg_len, IFLA_IFNAME))
			dellink.fd = fd, dellink.seq = m->nlmsg_seq;
		if (lacks("", "altnames"))
			forget_altnames(m);
		at += NLMSG_ALIGN(m->nlmsg_len);
	}
}

static void change_answer(int fd, char *buf, ssize_t len)
{
	struct nlmsghdr *m = (void *)buf;
	struct nlmsgerr *e = NLMSG_DATA(m);

	if (len >= NLMSG_LENGTH((ssize_t)sizeof(*e)) && m->nlmsg_type == NLMSG_ERROR &&
		dellink.fd == fd && m->nlmsg_seq == dellink.seq && e->error == -ENODEV &&
		lacks("", "dellink"))
		e->error = -EINVAL;
}

static bool is_netlink(int fd, int wanted)
{
	int domain = 0, protocol = 0;
	socklen_t len = sizeof(int);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_NETLINK &&
	       !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) && protocol == wanted;
}

int socket(int domain, int type, int protocol)
{
	int (*real)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");

	if (domain == AF_NETLINK && protocol == NETLINK_NETFILTER && lacks("", "nfnetlink")) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return real(domain, type, protocol);
}

ssize_t sendto(
	int fd, const void *buf, size_t len, int flags, const struct sockaddr *to, socklen_t size)
{
	ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) =
		(ssize_t(*)(int, const void *, size_t, int, const struct sockaddr *,
			socklen_t))dlsym(RTLD_NEXT, "sendto");

	if (is_netlink(fd, NETLINK_NETFILTER) && taken(fd, buf, len))
		return (ssize_t)len;
	if (is_netlink(fd, NETLINK_ROUTE))
		change_links(fd, (char *)buf, len);
	return real(fd, buf, len, flags, to, size);
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	return sendto(fd, buf, len, flags, NULL, 0);
}

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	ssize_t (*real)(int, void *, size_t, int) =
		(ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");

	if (fd != answer.fd) {
		ssize_t n = real(fd, buf, len, flags);

		if (n > 0 && is_netlink(fd, NETLINK_ROUTE))
			change_answer(fd, buf, n);
		return n;
	}
	answer.fd = -1;
	memcpy(buf, answer.bytes, len < answer.len ? len : answer.len);
	return (ssize_t)answer.len;
}
