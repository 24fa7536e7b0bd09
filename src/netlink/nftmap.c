#include "netlink/nftmap.h"

#include "base/trace.h"
#include "netlink/nftpriv.h"

#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>

/* The kernel prepares the next datagram of a listing only when one is received, so an abandoned
 * listing has to be read to its end before the socket can be used again. After so many datagrams,
 * some thousand elements, a new socket is cheaper. */
#define PIECES_MAX 16

/* Whether the first datagram of a listing of elements has any: 1, 0 or -errno. */
static int has_elements(const char *buf, size_t len)
{
	const struct nlattr *a[NFTA_SET_ELEM_LIST_MAX + 1];
	const struct nlmsghdr *m = (const void *)buf;
	const struct nlmsgerr *err = (const void *)(buf + NLMSG_HDRLEN);

	if (len < NLMSG_HDRLEN || m->nlmsg_len < NLMSG_HDRLEN)
		return -EIO;
	/* Cut off by our small buffer: so long is a message only when elements are in it. */
	if (m->nlmsg_len > len)
		return 1;
	if (m->nlmsg_type == NLMSG_ERROR && m->nlmsg_len >= NLMSG_HDRLEN + sizeof(*err))
		return err->error;
	if (m->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWSETELEM))
		return 0;
	nl_parse(m, sizeof(struct nfgenmsg), a, NFTA_SET_ELEM_LIST_MAX);
	return a[NFTA_SET_ELEM_LIST_ELEMENTS] && nl_first(a[NFTA_SET_ELEM_LIST_ELEMENTS]);
}

/* Empties the socket of the rest of a listing; false when it was too much. */
static bool read_to_end(struct nl *nl, char *buf, size_t size)
{
	for (int i = 0; i < PIECES_MAX; i++)
		if (recv(nl_fd(nl), buf, size, MSG_DONTWAIT) < 0 && errno != EINTR)
			return errno == EAGAIN;
	return false;
}

/* Asks for a listing, and looks at nothing but its first datagram. */
int nft_set_is_empty(struct nft *n, const struct nft_table *t, const char *set)
{
	uint64_t start = trace_start();
	autoreq r = {0};
	_Alignas(struct nlmsghdr) char buf[512];
	ssize_t got;
	int ret;

	nft_question(&r, NFT_MSG_GETSETELEM, NLM_F_DUMP, t->family);
	nl_put_str(&r, NFTA_SET_ELEM_LIST_TABLE, t->name);
	nl_put_str(&r, NFTA_SET_ELEM_LIST_SET, set);
	if (r.overflow)
		return -ENOMEM;
	if (send(nl_fd(n->nl), r.buf, r.len, 0) < 0)
		return -errno;
	do {
		got = recv(nl_fd(n->nl), buf, sizeof(buf), 0);
	} while (got < 0 && errno == EINTR);
	ret = got < 0 ? -errno : has_elements(buf, (size_t)got);
	if (!read_to_end(n->nl, buf, sizeof(buf))) {
		int failed = nft_renew(n);

		ret = failed ? failed : ret;
	}
	trace_step(start, TRACE_NETLINK, ret < 0 ? -ret : 0, "is %s empty", set);
	return ret < 0 ? ret : !ret;
}

int nft_set_del_empty(struct nft *n, const struct nft_table *t, const char *set)
{
	int index = nft_message(n, NFT_MSG_DELSET, NLM_F_NONREC, t->family);

	nft_put_name(n, NFTA_SET_TABLE, t->name);
	nft_put_name(n, NFTA_SET_NAME, set);
	return index;
}

struct nl *nft_socket(struct nft *n)
{
	return n->nl;
}
