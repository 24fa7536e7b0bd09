#include "netlink/netns.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/net_namespace.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* Of whoever asks. "self" would be the process, whose main thread may be in another namespace than
 * the thread that asks. */
#define OWN_NETNS "/proc/thread-self/ns/net"

#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif

/* How long netns_run() tries to come back: a second. */
#define RETURN_TRIES    100
#define RETURN_PAUSE_MS 10

static enum netns_state report(
	struct err *e, enum netns_state state, int sys, const char *what, const char *path)
{
	if (!e)
		return state;
	if (sys)
		err_sys(e, sys, ERR_INVALID_NETNS, "failed to open netns \"%s\": %s", path, what);
	else
		err_set(e, ERR_INVALID_NETNS, "failed to open netns \"%s\": %s", path, what);
	return state;
}

/* Of a path that leads nowhere, for whoever follows it. */
static bool leads_nowhere(int sys)
{
	return sys == ENOENT || sys == ENOTDIR || sys == ELOOP || sys == ENAMETOOLONG;
}

/* Of a socket, or of a device that is not there: files, but never namespaces. */
static bool is_no_file_to_open(int sys)
{
	return sys == ENXIO || sys == ENODEV;
}

enum netns_state netns_open(const char *path, int *out, struct err *e)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct statfs fs;
	int type;

	if (fd < 0 && leads_nowhere(errno)) {
		if (e)
			err_sys(e, errno, ERR_INVALID_NETNS,
				"failed to open netns \"%s\": failed to Statfs \"%s\": no such file or "
				"directory",
				path, path);
		return NETNS_GONE;
	}
	if (fd < 0 && is_no_file_to_open(errno))
		return report(e, NETNS_NOT_A_NETNS, errno, "not a network namespace", path);
	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return report(e, NETNS_ERROR, errno, "cannot be opened", path);
	if (fs.f_type != NSFS_MAGIC && fs.f_type != PROC_SUPER_MAGIC) {
		if (e)
			err_set(e, ERR_INVALID_NETNS,
				"failed to open netns \"%s\": unknown FS magic on \"%s\": %lx",
				path, path, (unsigned long)fs.f_type);
		return NETNS_NOT_A_NETNS;
	}
	type = ioctl(fd, NS_GET_NSTYPE);
	/* A file that is no namespace, in /proc, answers ENOTTY: it is told apart below. */
	if (type < 0 && errno != ENOTTY)
		return report(e, NETNS_ERROR, errno, "cannot be looked at", path);
	if (type != CLONE_NEWNET)
		return report(e, NETNS_NOT_A_NETNS, 0, "not a network namespace", path);
	*out = take_fd(&fd);
	return NETNS_OK;
}

int netns_try(const char *path, int *out, struct err *e)
{
	autoerr why = {0};

	if (netns_open(path, out, &why) == NETNS_OK)
		return 1;
	if (!err_is_passing(why.sys))
		return 0;
	err_merge(e, &why);
	return -1;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool netns_is_own(int fd)
{
	struct stat own, other;

	return stat(OWN_NETNS, &own) < 0 || fstat(fd, &other) < 0 || same_file(&own, &other);
}

uint64_t netns_inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : st.st_ino;
}

uint64_t netns_own_inode(void)
{
	struct stat st;

	return stat(OWN_NETNS, &st) < 0 ? 0 : st.st_ino;
}

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

static int read_cookie(void *arg, struct err *e)
{
	socklen_t len = sizeof(uint64_t);
	autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	(void)e;
	return fd < 0 ? -1 : getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, arg, &len);
}

uint64_t netns_identity(int fd)
{
	autofree char *boot = NULL;
	autoerr ignored = {0};
	char number[24], hash[16];
	uint64_t cookie = 0;

	if (netns_run(fd, read_cookie, &cookie, &ignored) || !cookie ||
		file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &boot, NULL))
		return netns_inode(fd);
	snprintf(number, sizeof(number), "%" PRIu64, cookie);
	hash_hex(hash, 15, boot, number, NULL);
	return strtoull(hash, NULL, 16) | UINT64_C(1) << 60;
}

bool netns_is(int fd, uint64_t identity)
{
	uint64_t now;

	if (!(identity >> 60))
		return identity == netns_inode(fd);
	now = netns_identity(fd);
	return identity == now || !(now >> 60);
}

bool netns_is_another(const char *path, uint64_t identity)
{
	autoclose int fd = -1;
	enum netns_state state = netns_open(path, &fd, NULL);

	if (state == NETNS_OK)
		return identity && netns_inode(fd) && !netns_is(fd, identity);
	return state == NETNS_GONE || state == NETNS_NOT_A_NETNS;
}

int netns_own_open(void)
{
	return open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
}

int netns_run(int fd, int (*fn)(void *arg, struct err *e), void *arg, struct err *e)
{
	autoclose int own = netns_own_open();
	int ret;

	if (own < 0)
		return err_sys(e, errno, ERR_INVALID_NETNS, "failed to open the own netns");
	if (setns(fd, CLONE_NEWNET) < 0)
		return err_sys(e, errno, ERR_INVALID_NETNS, "failed to enter the netns");
	ret = fn(arg, e);
	/* Short of memory it can fail, for a moment. Everything that follows would change the wrong
	 * namespace. */
	for (int tries = 0; setns(own, CLONE_NEWNET) < 0; tries++) {
		if (tries == RETURN_TRIES)
			abort();
		poll(NULL, 0, RETURN_PAUSE_MS);
	}
	return ret;
}

/* ---- sockets inside ---- */

struct opening {
	struct nl **nl;
	int protocol;
	uint32_t groups;
};

static int open_socket(void *arg, struct err *e)
{
	const struct opening *o = arg;

	return nl_open(o->nl, o->protocol, e);
}

static int open_watch(void *arg, struct err *e)
{
	const struct opening *o = arg;

	return nl_watch(o->nl, o->groups, e);
}

int netns_nl_open(int fd, struct nl **nl, int protocol, struct err *e)
{
	struct opening o = {.nl = nl, .protocol = protocol};

	return fd < 0 ? open_socket(&o, e) : netns_run(fd, open_socket, &o, e);
}

int netns_nl_watch(int fd, struct nl **nl, uint32_t groups, struct err *e)
{
	struct opening o = {.nl = nl, .groups = groups};

	return fd < 0 ? open_watch(&o, e) : netns_run(fd, open_watch, &o, e);
}

/* ---- names of namespaces ---- */

static int read_nsid(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[NETNSA_MAX + 1];

	nl_parse(msg, sizeof(struct rtgenmsg), a, NETNSA_MAX);
	if (a[NETNSA_NSID])
		*(int32_t *)arg = (int32_t)nl_u32(a[NETNSA_NSID]);
	return 0;
}

int netns_id(struct nl *nl, int fd, int32_t *id)
{
	autoreq req = {0};

	*id = NETNSA_NSID_NOT_ASSIGNED;
	nl_msg(&req, RTM_GETNSID, 0, sizeof(struct rtgenmsg));
	nl_put_u32(&req, NETNSA_FD, (uint32_t)fd);
	return nl_query(nl, &req, read_nsid, NULL, id);
}

struct each_id {
	int (*fn)(int32_t id, void *arg);
	void *arg;
};

static int each_id(const struct nlmsghdr *msg, void *arg)
{
	const struct each_id *each = arg;
	int32_t id = NETNSA_NSID_NOT_ASSIGNED;

	read_nsid(msg, &id);
	return id == NETNSA_NSID_NOT_ASSIGNED ? 0 : each->fn(id, each->arg);
}

int netns_each_id(struct nl *nl, int (*fn)(int32_t id, void *arg), void *arg)
{
	struct each_id each = {fn, arg};
	autoreq req = {0};

	nl_msg(&req, RTM_GETNSID, NLM_F_DUMP, sizeof(struct rtgenmsg));
	return nl_query(nl, &req, each_id, NULL, &each);
}

int netns_id_make(struct nl *nl, int fd, int32_t *id)
{
	autoreq req = {0};
	int ret = netns_id(nl, fd, id);

	if (ret || *id != NETNSA_NSID_NOT_ASSIGNED)
		return ret;
	nl_msg(&req, RTM_NEWNSID, NLM_F_ACK, sizeof(struct rtgenmsg));
	nl_put_u32(&req, NETNSA_NSID, (uint32_t)NETNSA_NSID_NOT_ASSIGNED); /* any that is free */
	nl_put_u32(&req, NETNSA_FD, (uint32_t)fd);
	ret = nl_ack(nl, &req, NULL, 0, NULL);
	/* EEXIST: somebody else has just named it. */
	return ret && ret != -EEXIST ? ret : netns_id(nl, fd, id);
}

int netns_id_is_used(struct nl *nl, int32_t id)
{
	autoreq req = {0};
	int32_t same;
	int ret;

	nl_msg(&req, RTM_GETNSID, 0, sizeof(struct rtgenmsg));
	nl_put_u32(&req, NETNSA_NSID, (uint32_t)id);
	ret = nl_query(nl, &req, read_nsid, NULL, &same);
	return ret == -ENOENT ? 0 : ret ? ret : 1;
}
