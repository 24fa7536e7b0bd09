#include "netlink/nft.h"

#include "base/cleanup.h"
#include "base/trace.h"
#include "netlink/netns.h"
#include "netlink/nftmap.h"
#include "netlink/nftpriv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Closing a socket after something was deleted, by whomever, waits for the kernel to free it, an
 * RCU grace period of 5 to 20 ms, with all other transactions of the namespace locked out meanwhile
 * (nf_tables_api.c, nft_rcv_nl_event()). Nobody needs to wait for that. So the last reference is
 * left to the kernel's garbage collector for sockets in flight, which closes it a moment later from
 * a worker: a message that holds the socket, waiting to be received from a socket that only that
 * same message holds (unix(7), SCM_RIGHTS). Where it cannot be sent, closing simply takes its time.
 */
static void close_later(int fd)
{
	union {
		char space[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int pair[2], both[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair)) {
		close(fd);
		return;
	}
	both[0] = fd;
	both[1] = pair[1];
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(both));
	memcpy(CMSG_DATA(c), both, sizeof(both));
	sendmsg(pair[0], &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* Of the references to the netlink socket ours goes first, so that the last one is the
	 * message's, which ends with the collector's run and not here. */
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

static void close_socket(struct nl **nl)
{
	int fd = *nl ? fcntl(nl_fd(*nl), F_DUPFD_CLOEXEC, 0) : -1;

	nl_close(nl);
	if (fd >= 0)
		close_later(fd);
}

/* Even so, a lock is held meanwhile that every change of rules and every deletion of a link in the
 * namespace waits for. So there is one socket a process, handed from user to user. */
static struct {
	struct nl *nl;
	uint64_t netns;
} spare;

static void close_spare(void)
{
	close_socket(&spare.nl);
}

int nft_open(struct nft **out, struct err *e)
{
	uint64_t netns = netns_own_inode();
	struct nft *n = calloc(1, sizeof(*n));
	autoerr failed = {0};

	if (!n)
		return err_memory(e);
	if (spare.nl && netns && spare.netns == netns) {
		n->nl = spare.nl;
		spare.nl = NULL;
	} else if (nl_open(&n->nl, NETLINK_NETFILTER, &failed)) {
		free(n);
		if (failed.sys == EPROTONOSUPPORT)
			return err_sys(e, failed.sys, ERR_SYSTEM,
				"the kernel lacks nfnetlink (module nfnetlink)");
		err_merge(e, &failed);
		return -1;
	}
	n->netns = netns;
	*out = n;
	return 0;
}

int nft_renew(struct nft *n)
{
	autoerr ignored = {0};
	struct nl *nl;

	if (nl_open(&nl, NETLINK_NETFILTER, &ignored))
		return ignored.sys ? -ignored.sys : -ENOMEM;
	close_socket(&n->torn);
	n->torn = n->nl;
	n->nl = nl;
	return 0;
}

void nft_close(struct nft **n)
{
	static bool at_exit;

	if (!*n)
		return;
	nl_req_free(&(*n)->batch);
	close_socket(&(*n)->torn);
	at_exit = at_exit || !atexit(close_spare);
	if (at_exit && !spare.nl && !nl_is_torn((*n)->nl)) {
		spare.nl = (*n)->nl;
		spare.netns = (*n)->netns;
	} else {
		close_socket(&(*n)->nl);
	}
	free(*n);
	*n = NULL;
}

/* ---- batches ---- */

static void batch_mark(struct nft *n, uint16_t type)
{
	struct nfgenmsg *g = nl_msg(&n->batch, type, 0, sizeof(*g));

	g->version = NFNETLINK_V0;
	g->res_id = htons(NFNL_SUBSYS_NFTABLES);
}

void nft_begin(struct nft *n, uint32_t genid)
{
	n->batch.len = 0;
	n->batch.msg = NULL;
	n->batch.overflow = false;
	n->count = 0;
	n->fail = 0;
	memset(&n->rule, 0, sizeof(n->rule));
	batch_mark(n, NFNL_MSG_BATCH_BEGIN);
	if (genid)
		nl_put_be32(&n->batch, NFNL_BATCH_GENID, genid);
}

void nft_question(struct nl_req *r, uint16_t type, uint16_t flags, uint8_t family)
{
	struct nfgenmsg *g;

	g = nl_msg(r, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, sizeof(*g));
	g->nfgen_family = family;
	g->version = NFNETLINK_V0;
}

int nft_message(struct nft *n, uint16_t type, uint16_t flags, uint8_t family)
{
	if (!n->batch.len)
		nft_begin(n, 0);
	nft_question(&n->batch, type, flags, family);
	return n->count++;
}

void nft_put_name(struct nft *n, uint16_t attr, const char *name)
{
	size_t len = strlen(name);

	if ((!len || len >= NFT_NAME_MAXLEN) && !n->fail)
		n->fail = len ? -ENAMETOOLONG : -EINVAL;
	nl_put_str(&n->batch, attr, name);
}

/* What a batch does, for the trace: "newtable 1, newchain 2, newrule 5". */
static void summary(const struct nft *n, char *out, size_t size)
{
	static const char *const names[] = {
		[NFT_MSG_NEWTABLE] = "newtable",
		[NFT_MSG_DELTABLE] = "deltable",
		[NFT_MSG_NEWCHAIN] = "newchain",
		[NFT_MSG_DELCHAIN] = "delchain",
		[NFT_MSG_NEWRULE] = "newrule",
		[NFT_MSG_DELRULE] = "delrule",
		[NFT_MSG_NEWSET] = "newset",
		[NFT_MSG_DELSET] = "delset",
		[NFT_MSG_NEWSETELEM] = "newelem",
		[NFT_MSG_DELSETELEM] = "delelem",
	};
	unsigned counts[array_len(names)] = {0};
	const struct nlmsghdr *m;
	size_t used = 0;

	for (size_t at = 0; at + sizeof(*m) <= n->batch.len; at += NLMSG_ALIGN(m->nlmsg_len)) {
		m = (const void *)(n->batch.buf + at);
		if (m->nlmsg_type >> 8 == NFNL_SUBSYS_NFTABLES &&
			(m->nlmsg_type & 0xff) < array_len(names))
			counts[m->nlmsg_type & 0xff]++;
	}
	out[0] = '\0';
	for (size_t i = 0; i < array_len(names) && used < size; i++)
		if (counts[i] && names[i])
			used += (size_t)snprintf(out + used, size - used, "%s%s %u",
				used ? ", " : "", names[i], counts[i]);
}

/* A batch is one datagram, whatever its size: make the socket accept it. And should very many
 * messages be refused, the first refusals are what matters, not that the later ones got lost. */
static void make_room(struct nft *n)
{
	int fd = nl_fd(n->nl), one = 1, want;

	if (n->batch.len > 64 * 1024 && n->batch.len < INT_MAX / 2) {
		want = (int)n->batch.len + 4096;
		/* Without the capability, in a user namespace, as far as net.core.wmem_max goes. */
		if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &want, sizeof(want)))
			setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want));
	}
	if (n->count > 64)
		setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &one, sizeof(one));
}

/* After a failure further refusals wait in the socket; the next question must not meet them. */
static void drain(struct nft *n)
{
	char buf[256];

	for (int i = 0; i < 65536; i++)
		if (recv(nl_fd(n->nl), buf, sizeof(buf), MSG_DONTWAIT) < 0 && errno != EINTR &&
			errno != ENOBUFS)
			return;
}

/* ---- what the kernel lacks ---- */

/* Statements and matches that are modules of their own; the other ones we use are in nf_tables
 * itself. Those that name a set or a chain (lookup, immediate) are refused with -ENOENT for that,
 * too, and must not be listed. */
static const struct {
	const char *expr, *module;
} modular[] = {
	{"masq", "nft_masq"},
	{"nat", "nft_nat"},
	{"fib", "nft_fib_inet"},
	{"ct", "nft_ct"},
	{"notrack", "nft_ct"},
};

/* The chain type or expression that may be what is missing; blamed: nl_blamed(). */
static bool find_lack(const struct nlmsghdr *msg, uint32_t blamed, struct nft_failure *f)
{
	const struct nlattr *a[NFTA_CHAIN_MAX + 1], *data;
	struct nft_rule_info rule;
	const char *name;

	if (msg->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN)) {
		nl_parse(msg, sizeof(struct nfgenmsg), a, NFTA_CHAIN_MAX);
		if (!a[NFTA_CHAIN_TYPE] ||
			(blamed && (const char *)msg + blamed != (const char *)a[NFTA_CHAIN_TYPE]))
			return false;
		name = nl_str(a[NFTA_CHAIN_TYPE]);
		snprintf(f->lacks, sizeof(f->lacks), "chains of type %s (module nft_chain_%s)",
			name, name);
		return true;
	}
	if (msg->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE))
		return false;
	nft_read_rule(msg, &rule);
	for (const struct nlattr *at = NULL; (at = nft_expr_next(&rule, at, &name, &data));) {
		if (blamed && (const char *)msg + blamed != (const char *)at)
			continue;
		for (size_t i = 0; i < array_len(modular); i++)
			if (!strcmp(name, modular[i].expr)) {
				snprintf(f->lacks, sizeof(f->lacks),
					"the expression %s (module %s)", name, modular[i].module);
				return true;
			}
	}
	return false;
}

/* Fills in f->lacks and returns the errno as it should be. len: of the batch that was sent. */
static int explain(const struct nft *n, size_t len, int ret, struct nft_failure *f)
{
	const struct nlmsghdr *m = (const void *)n->batch.buf;
	uint32_t blamed = nl_blamed(n->nl);
	size_t at = 0;

	if (ret == -EOPNOTSUPP && f->index < 0)
		snprintf(f->lacks, sizeof(f->lacks), "nf_tables (module nf_tables)");
	if ((ret != -ENOENT && ret != -EOPNOTSUPP) || f->index < 0)
		return ret;
	/* The batch's own begin message comes first. */
	for (int i = -1; i < f->index && at + sizeof(*m) <= len; i++) {
		at += NLMSG_ALIGN(m->nlmsg_len);
		m = (const void *)(n->batch.buf + at);
	}
	if (at + sizeof(*m) <= len && find_lack(m, blamed, f) && blamed)
		return -EOPNOTSUPP;
	return ret;
}

static int finish(struct nft *n, bool keep, struct nft_failure *f)
{
	uint64_t start = trace_start();
	struct nft_failure dummy;
	int ret = n->fail;
	char what[200];
	size_t len;

	f = f ? f : &dummy;
	*f = (struct nft_failure){.index = -1};
	if (!ret && n->count) {
		/* One ack tells that the kernel is through; refusals come without being asked for.
		 */
		if (n->batch.msg)
			n->batch.msg->nlmsg_flags |= NLM_F_ACK;
		/* What has no end is checked and dropped. nfnetlink.c, nfnetlink_rcv_batch(). */
		if (keep)
			batch_mark(n, NFNL_MSG_BATCH_END);
		if (start)
			summary(n, what, sizeof(what));
		make_room(n);
		len = n->batch.len;
		ret = nl_ack(n->nl, &n->batch, f->ext, sizeof(f->ext), &f->index);
		/* The begin message counts as 0 there; what it is blamed for is the whole batch's.
		 */
		f->index = ret && f->index > 0 ? f->index - 1 : -1;
		if (ret) {
			drain(n);
			ret = explain(n, len, ret, f);
		}
		if (start)
			trace_step(start, TRACE_NFT, -ret, "%s: %s%s%s", keep ? "commit" : "check",
				what, f->ext[0] ? ": " : "", f->ext);
	}
	n->batch.len = 0;
	n->batch.msg = NULL;
	n->count = 0;
	n->fail = 0;
	return ret;
}

int nft_commit(struct nft *n, struct nft_failure *f)
{
	return finish(n, true, f);
}

int nft_check(struct nft *n, struct nft_failure *f)
{
	return finish(n, false, f);
}

bool nft_raced(int r)
{
	return r == -ENOENT || r == -EBUSY || r == -ERESTART || r == -EEXIST || r == -EAGAIN ||
	       r == -EINTR;
}

/* ---- userdata and values ---- */

size_t nft_comment_len(const char *comment)
{
	return strnlen(comment, NFT_COMMENT_MAX);
}

size_t nft_udata(uint8_t *out, size_t at, uint8_t type, const void *data, size_t len)
{
	out[at] = type;
	out[at + 1] = (uint8_t)len;
	memcpy(out + at + 2, data, len);
	return at + 2 + len;
}

void nft_put_comment(struct nl_req *r, uint16_t attr, const char *comment)
{
	uint8_t udata[2 + NFT_COMMENT_SIZE];
	char text[NFT_COMMENT_SIZE] = {0};
	size_t len;

	if (!comment || !*comment)
		return;
	len = nft_comment_len(comment);
	memcpy(text, comment, len);
	nl_put(r, attr, udata, nft_udata(udata, 0, UDATA_COMMENT, text, len + 1));
}

void nft_put_verdict(struct nl_req *r, uint16_t attr, int code, const char *chain)
{
	size_t data = nl_nest(r, attr), verdict = nl_nest(r, NFTA_DATA_VERDICT);

	nl_put_be32(r, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain)
		nl_put_str(r, NFTA_VERDICT_CHAIN, chain);
	nl_nest_end(r, verdict);
	nl_nest_end(r, data);
}

void nft_put_value(struct nl_req *r, uint16_t attr, const void *data, size_t len)
{
	size_t nest = nl_nest(r, attr);

	nl_put(r, NFTA_DATA_VALUE, data, len);
	nl_nest_end(r, nest);
}

/* ---- tables and chains ---- */

int nft_table_add(struct nft *n, const struct nft_table *t, const char *comment)
{
	int index = nft_message(n, NFT_MSG_NEWTABLE, NLM_F_CREATE, t->family);

	nft_put_name(n, NFTA_TABLE_NAME, t->name);
	nl_put_be32(&n->batch, NFTA_TABLE_FLAGS, 0);
	nft_put_comment(&n->batch, NFTA_TABLE_USERDATA, comment);
	return index;
}

int nft_table_del(struct nft *n, const struct nft_table *t)
{
	int index = nft_message(n, NFT_MSG_DELTABLE, 0, t->family);

	nft_put_name(n, NFTA_TABLE_NAME, t->name);
	return index;
}

static int new_chain(
	struct nft *n, const struct nft_table *t, const struct nft_chain *c, uint16_t flags)
{
	int index = nft_message(n, NFT_MSG_NEWCHAIN, flags, t->family);
	size_t hook;

	nft_put_name(n, NFTA_CHAIN_TABLE, t->name);
	nft_put_name(n, NFTA_CHAIN_NAME, c->name);
	if (c->type) {
		nl_put_str(&n->batch, NFTA_CHAIN_TYPE, c->type);
		nl_put_be32(&n->batch, NFTA_CHAIN_POLICY, c->drop ? NF_DROP : NF_ACCEPT);
		hook = nl_nest(&n->batch, NFTA_CHAIN_HOOK);
		nl_put_be32(&n->batch, NFTA_HOOK_HOOKNUM, c->hook);
		nl_put_be32(&n->batch, NFTA_HOOK_PRIORITY, (uint32_t)c->prio);
		nl_nest_end(&n->batch, hook);
	}
	nft_put_comment(&n->batch, NFTA_CHAIN_USERDATA, c->comment);
	return index;
}

int nft_chain_add(struct nft *n, const struct nft_table *t, const struct nft_chain *c)
{
	return new_chain(n, t, c, NLM_F_CREATE);
}

int nft_chain_create(struct nft *n, const struct nft_table *t, const struct nft_chain *c)
{
	return new_chain(n, t, c, NLM_F_CREATE | NLM_F_EXCL);
}

int nft_chain_flush(struct nft *n, const struct nft_table *t, const char *chain)
{
	int index = nft_message(n, NFT_MSG_DELRULE, 0, t->family);

	nft_put_name(n, NFTA_RULE_TABLE, t->name);
	nft_put_name(n, NFTA_RULE_CHAIN, chain);
	return index;
}

int nft_chain_del(struct nft *n, const struct nft_table *t, const char *chain)
{
	int index = nft_message(n, NFT_MSG_DELCHAIN, 0, t->family);

	nft_put_name(n, NFTA_CHAIN_TABLE, t->name);
	nft_put_name(n, NFTA_CHAIN_NAME, chain);
	return index;
}

void nft_handles_put(struct nft_handles *h, uint64_t handle)
{
	size_t cap = h->cap ? h->cap * 2 : 8;
	uint64_t *list;

	if (h->len == h->cap) {
		list = reallocarray(h->list, cap, sizeof(*list));
		if (!list) {
			h->failed = true;
			return;
		}
		h->list = list;
		h->cap = cap;
	}
	h->list[h->len++] = handle;
}

void nft_handles_free(struct nft_handles *h)
{
	free(h->list);
	*h = (struct nft_handles){0};
}

/* By the handle that the kernel gave it. */
static void put_rule_del(
	struct nft *n, const struct nft_table *t, const char *chain, uint64_t handle)
{
	nft_message(n, NFT_MSG_DELRULE, 0, t->family);
	nft_put_name(n, NFTA_RULE_TABLE, t->name);
	nft_put_name(n, NFTA_RULE_CHAIN, chain);
	nl_put_be64(&n->batch, NFTA_RULE_HANDLE, handle);
}

void nft_rules_del(
	struct nft *n, const struct nft_table *t, const char *chain, const struct nft_handles *h)
{
	if (h->failed && !n->fail)
		n->fail = -ENOMEM;
	for (size_t i = 0; i < h->len; i++)
		put_rule_del(n, t, chain, h->list[i]);
}
