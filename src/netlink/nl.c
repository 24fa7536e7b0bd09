#include "netlink/nl.h"

#include "base/cleanup.h"
#include "base/trace.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

struct nl {
	struct mnl_socket *sock;
	uint32_t seq;
	int protocol;
	uint32_t blamed; /* nl_blamed() */
	bool torn;       /* an answer may be left over */
};

/* What the kernel fills at once in a dump; anything smaller costs more system calls. */
#define RECV_SIZE 32768

/* No kernel takes that long for an answer, however many links there are. */
#define RECV_SECONDS 60

int nl_open(struct nl **out, int protocol, struct err *e)
{
	struct nl *nl = calloc(1, sizeof(*nl));
	struct timeval patience = {.tv_sec = RECV_SECONDS};
	int one = 1;

	if (!nl)
		return err_memory(e);
	nl->protocol = protocol;
	nl->sock = mnl_socket_open2(protocol, SOCK_CLOEXEC);
	if (!nl->sock) {
		int sys = errno;

		free(nl);
		return err_sys(e, sys, ERR_SYSTEM, "failed to open a netlink socket");
	}
	/* No bind: the kernel assigns the port at the first send, and nothing here listens to
	 * groups. Both options only improve what errors say and cost; old kernels may lack them. */
	setsockopt(
		mnl_socket_get_fd(nl->sock), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	mnl_socket_setsockopt(nl->sock, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(nl->sock, NETLINK_CAP_ACK, &one, sizeof(one));
	*out = nl;
	return 0;
}

void nl_close(struct nl **nl)
{
	if (!*nl)
		return;
	mnl_socket_close((*nl)->sock);
	free(*nl);
	*nl = NULL;
}

int nl_fd(const struct nl *nl)
{
	return mnl_socket_get_fd(nl->sock);
}

bool nl_is_torn(const struct nl *nl)
{
	return nl->torn;
}

static void reset(struct nl_req *r)
{
	r->len = 0;
	r->msg = NULL;
	r->overflow = r->invalid = false;
}

/* ---- sending and answers ---- */

/* What the trace says a request is: the first message's type. */
static const char *type_name(int protocol, uint16_t type, char text[static 24])
{
#define ROUTE(t, n)                                                                                \
	{                                                                                          \
		NETLINK_ROUTE, t, n                                                                \
	}
#define NFT(t, n)                                                                                  \
	{                                                                                          \
		NETLINK_NETFILTER, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_##t, n                      \
	}
	static const struct {
		uint16_t protocol, type;
		const char *name;
	} names[] = {
		ROUTE(RTM_NEWLINK, "newlink"),
		ROUTE(RTM_DELLINK, "dellink"),
		ROUTE(RTM_GETLINK, "getlink"),
		ROUTE(RTM_SETLINK, "setlink"),
		ROUTE(RTM_NEWADDR, "newaddr"),
		ROUTE(RTM_DELADDR, "deladdr"),
		ROUTE(RTM_GETADDR, "getaddr"),
		ROUTE(RTM_NEWROUTE, "newroute"),
		ROUTE(RTM_DELROUTE, "delroute"),
		ROUTE(RTM_GETROUTE, "getroute"),
		ROUTE(RTM_NEWQDISC, "newqdisc"),
		ROUTE(RTM_DELQDISC, "delqdisc"),
		ROUTE(RTM_GETQDISC, "getqdisc"),
		ROUTE(RTM_NEWTFILTER, "newtfilter"),
		ROUTE(RTM_GETTFILTER, "gettfilter"),
		ROUTE(RTM_DELTFILTER, "deltfilter"),
		ROUTE(RTM_NEWLINKPROP, "newlinkprop"),
		NFT(GETTABLE, "nft gettable"),
		NFT(GETCHAIN, "nft getchain"),
		NFT(GETRULE, "nft getrule"),
		NFT(GETSET, "nft getset"),
		NFT(GETSETELEM, "nft getsetelem"),
		NFT(GETGEN, "nft getgen"),
		{NETLINK_NETFILTER, NFNL_MSG_BATCH_BEGIN, "nft batch"},
		{NETLINK_NETFILTER, NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET, "ct get"},
		{NETLINK_NETFILTER, NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE, "ct delete"},
	};

	for (size_t i = 0; i < array_len(names); i++)
		if (names[i].protocol == protocol && names[i].type == type)
			return names[i].name;
	snprintf(text, 24, "%d/%#x", protocol, type);
	return text;
#undef ROUTE
#undef NFT
}

/* What is sent at once. Acks fill the socket's buffer, so a routing request with many messages goes
 * piece by piece; a transaction cannot be split. */
struct batch {
	size_t at, len; /* where in the request */
	uint32_t first; /* sequence number of the first message */
	size_t count;
	size_t acks; /* how many asked for one */
};

#define ACKS_MAX 64

/* Gives the messages of the next piece their sequence numbers. */
static struct batch stamp(struct nl *nl, struct nl_req *r, size_t at)
{
	struct batch b = {.at = at, .first = nl->seq + 1};
	struct nlmsghdr *m;

	while (at + sizeof(*m) <= r->len && (b.acks < ACKS_MAX || nl->protocol != NETLINK_ROUTE)) {
		m = (struct nlmsghdr *)(void *)(r->buf + at);
		m->nlmsg_seq = ++nl->seq;
		b.count++;
		b.acks += m->nlmsg_flags & NLM_F_ACK ? 1 : 0;
		at += MNL_ALIGN(m->nlmsg_len);
	}
	b.len = at - b.at;
	return b;
}

static int transmit(struct nl *nl, const struct nl_req *r, const struct batch *b)
{
	ssize_t n;

	do
		n = mnl_socket_sendto(nl->sock, r->buf + b->at, b->len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* The kernel has carried a request out before it answers. So a receive that fails, for want of
 * memory say, is tried again: without the answer nobody would know what there is to undo. */
static ssize_t receive(struct nl *nl, char *buf, int flags)
{
	int tries = 3;
	ssize_t n;

	do
		n = recv(mnl_socket_get_fd(nl->sock), buf, RECV_SIZE, flags);
	while (n < 0 && (errno == EINTR || (errno != EAGAIN && --tries)));
	nl->torn = nl->torn || n < 0;
	return n < 0 ? -errno : n;
}

/* What the kernel adds to an error: its sentence, and the offset of the attribute it is about.
 * Either may be missing ("", 0). linux/netlink.h, nlmsgerr_attrs. */
static uint32_t read_refusal(const struct nlmsghdr *msg, char *ext, size_t size)
{
	const struct nlmsgerr *ne = mnl_nlmsg_get_payload(msg);
	const struct nlattr *a[NLMSGERR_ATTR_OFFS + 1];
	size_t offset = sizeof(*ne);

	if (ext && size)
		ext[0] = '\0';
	if (!(msg->nlmsg_flags & NLM_F_ACK_TLVS))
		return 0;
	if (!(msg->nlmsg_flags & NLM_F_CAPPED))
		offset += MNL_ALIGN(ne->msg.nlmsg_len) - sizeof(ne->msg);
	nl_parse(msg, offset, a, NLMSGERR_ATTR_OFFS);
	if (ext && size && a[NLMSGERR_ATTR_MSG])
		snprintf(ext, size, "%.*s", (int)nl_len(a[NLMSGERR_ATTR_MSG]),
			(const char *)nl_data(a[NLMSGERR_ATTR_MSG]));
	return nl_u32(a[NLMSGERR_ATTR_OFFS]);
}

static int ack_error(const struct nlmsghdr *msg)
{
	const struct nlmsgerr *ne = mnl_nlmsg_get_payload(msg);

	return mnl_nlmsg_get_payload_len(msg) < sizeof(*ne) ? -EPROTO : ne->error;
}

/* The kernel works through a request while it is being sent, so every ack is there already when the
 * sending returns; a missing one means that the kernel gave up on the rest. */
static int collect_acks(
	struct nl *nl, const struct batch *b, char *buf, char *ext, size_t size, int *failed)
{
	size_t left = b->acks;
	int ret = 0;

	while (left) {
		const struct nlmsghdr *m = (void *)buf;
		ssize_t got = receive(nl, buf, MSG_DONTWAIT);
		int n = (int)got, err;

		if (got == -EAGAIN)
			return ret ? ret : -EPROTO;
		if (got < 0)
			return (int)got;
		for (; mnl_nlmsg_ok(m, n); m = mnl_nlmsg_next(m, &n)) {
			uint32_t index = m->nlmsg_seq - b->first;

			if (index >= b->count || m->nlmsg_type != NLMSG_ERROR)
				continue;
			err = ack_error(m);
			left -= left ? 1 : 0;
			if (!err || ret)
				continue;
			ret = err;
			nl->blamed = read_refusal(m, ext, size);
			if (failed)
				*failed = (int)index;
		}
	}
	return ret;
}

/* *done: how many messages the pieces before had. */
static int send_pieces(
	struct nl *nl, struct nl_req *r, char *ext, size_t size, int *failed, size_t *done)
{
	/* Before anything is sent: what was carried out is known by its answer only. */
	autofree char *buf = malloc(RECV_SIZE);
	int ret = buf ? 0 : -ENOMEM;

	for (size_t at = 0; !ret && at < r->len;) {
		struct batch b = stamp(nl, r, at);

		ret = transmit(nl, r, &b);
		if (!ret)
			ret = collect_acks(nl, &b, buf, ext, size, failed);
		if (ret && failed)
			*failed += (int)*done;
		*done += b.count;
		at += b.len;
	}
	return ret;
}

int nl_ack(struct nl *nl, struct nl_req *r, char *ext, size_t size, int *failed)
{
	uint64_t start = trace_start();
	char text[24];
	size_t count = 0;
	int ret;

	if (ext && size)
		ext[0] = '\0';
	if (failed)
		*failed = 0;
	nl->blamed = 0;
	if (r->overflow || !r->len) {
		ret = r->invalid ? -EINVAL : r->overflow ? -ENOMEM : 0;
		reset(r);
		return ret;
	}
	ret = send_pieces(nl, r, ext, size, failed, &count);
	if (start)
		trace_step(start, TRACE_NETLINK, -ret, "%s%s, %zu messages",
			type_name(nl->protocol, ((struct nlmsghdr *)(void *)r->buf)->nlmsg_type,
				text),
			count > 1 ? " …" : "", count);
	reset(r);
	return ret;
}

uint32_t nl_blamed(const struct nl *nl)
{
	return nl->blamed;
}

int nl_do(struct nl *nl, struct nl_req *r, struct err *e, const char *fmt, ...)
{
	autofree char *what = NULL;
	char ext[256];
	va_list ap;
	int ret = nl_ack(nl, r, ext, sizeof(ext), NULL);

	if (!ret)
		return 0;
	va_start(ap, fmt);
	if (vasprintf(&what, fmt, ap) < 0)
		what = NULL;
	va_end(ap);
	return err_kernel(e, -ret, ext,
		ret == -EINTR || ret == -EAGAIN ? ERR_TRY_AGAIN : ERR_SYSTEM, "%s",
		what ? what : "netlink request");
}

/* One datagram of answers. Returns 1 to read on, else sets *result and returns 0. */
static int take_answers(const char *buf, size_t len, uint32_t seq, nl_answer_fn *fn, void *arg,
	bool *interrupted, int *result)
{
	const struct nlmsghdr *m = (const void *)buf;
	bool more = true;
	int n = (int)len;

	for (; mnl_nlmsg_ok(m, n); m = mnl_nlmsg_next(m, &n)) {
		if (m->nlmsg_seq != seq)
			continue;
		if (m->nlmsg_flags & NLM_F_DUMP_INTR)
			*interrupted = true;
		if (m->nlmsg_type == NLMSG_DONE || m->nlmsg_type == NLMSG_ERROR) {
			int err = 0;

			if (m->nlmsg_type == NLMSG_ERROR)
				err = ack_error(m);
			else if (mnl_nlmsg_get_payload_len(m) >= sizeof(int))
				memcpy(&err, mnl_nlmsg_get_payload(m), sizeof(err));
			if (!*result)
				*result = err < 0 ? err : 0;
			return 0;
		}
		/* After fn has said stop the rest is still read, so that the socket stays usable.
		 */
		if (!*result)
			*result = fn(m, arg);
		more = more && (m->nlmsg_flags & NLM_F_MULTI);
	}
	return more;
}

static int query_once(
	struct nl *nl, struct nl_req *r, nl_answer_fn *fn, void *arg, bool *intr, char *buf)
{
	struct batch b = stamp(nl, r, 0);
	int result = 0, ret = transmit(nl, r, &b);

	if (ret)
		return ret;
	for (;;) {
		ssize_t got = receive(nl, buf, 0);

		if (got < 0)
			return (int)got;
		if (!take_answers(buf, (size_t)got, b.first, fn, arg, intr, &result))
			return result;
	}
}

int nl_query(struct nl *nl, struct nl_req *r, nl_answer_fn *fn, void (*again)(void *), void *arg)
{
	autofree char *buf = malloc(RECV_SIZE);
	uint64_t start = trace_start();
	char text[24];
	int ret = -ENOMEM;

	for (int tries = 0; buf && !r->overflow && r->len && tries < 5; tries++) {
		bool interrupted = false;

		ret = query_once(nl, r, fn, arg, &interrupted, buf);
		if (!interrupted || ret)
			break;
		ret = -EINTR;
		if (again)
			again(arg);
	}
	if (start && r->len)
		trace_step(start, TRACE_NETLINK, ret < 0 ? -ret : 0, "%s",
			type_name(nl->protocol, ((struct nlmsghdr *)(void *)r->buf)->nlmsg_type,
				text));
	reset(r);
	return ret;
}

/* ---- watching ---- */

void nl_strict(struct nl *nl)
{
	int one = 1;

	setsockopt(nl_fd(nl), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one, sizeof(one));
}

int nl_watch(struct nl **nl, uint32_t groups, struct err *e)
{
	if (nl_open(nl, NETLINK_ROUTE, e))
		return -1;
	if (!mnl_socket_bind((*nl)->sock, groups, MNL_SOCKET_AUTOPID))
		return 0;
	err_sys(e, errno, ERR_SYSTEM, "failed to watch for changes");
	nl_close(nl);
	return -1;
}

void nl_watch_wait(struct nl *watch, int ms)
{
	struct pollfd p = {.fd = nl_fd(watch), .events = POLLIN};
	char buf[8192];

	if (poll(&p, 1, ms) <= 0)
		return;
	for (int i = 0; i < 256 && recv(p.fd, buf, sizeof(buf), MSG_DONTWAIT) >= 0; i++)
		;
}
