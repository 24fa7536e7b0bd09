#include "netlink/netns.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/trace.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* The calling thread's, not the process's: a delegate may run in a thread of its own. */
#define OWN_NETNS "/proc/thread-self/ns/net"

#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif

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

enum netns_state netns_open(const char *path, int *out, struct err *e)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct statfs fs;
	int type;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		if (e)
			err_sys(e, errno, ERR_INVALID_NETNS,
				"failed to open netns \"%s\": failed to Statfs \"%s\": no such file or "
				"directory",
				path, path);
		return NETNS_GONE;
	}
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
	/* What is no namespace at all does not know the question. */
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

bool netns_is_another(const char *path, uint64_t inode)
{
	autoclose int fd = -1;
	enum netns_state state = netns_open(path, &fd, NULL);
	uint64_t now = state == NETNS_OK ? netns_inode(fd) : 0;

	return state == NETNS_GONE || state == NETNS_NOT_A_NETNS || (now && inode && now != inode);
}

int netns_run(int fd, int (*fn)(void *arg, struct err *e), void *arg, struct err *e)
{
	autoclose int own = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
	int ret;

	if (own < 0)
		return err_sys(e, errno, ERR_INVALID_NETNS, "failed to open the own netns");
	if (setns(fd, CLONE_NEWNET) < 0)
		return err_sys(e, errno, ERR_INVALID_NETNS, "failed to enter the netns");
	ret = fn(arg, e);
	/* Short of memory it can fail, for a moment. Everything that follows would change the wrong
	 * namespace. */
	for (int tries = 0; setns(own, CLONE_NEWNET) < 0; tries++) {
		if (tries == 100)
			abort();
		poll(NULL, 0, 10);
	}
	return ret;
}

static int sysctl_path(const char *name, char path[static PATH_MAX])
{
	int n = snprintf(path, PATH_MAX, "/proc/sys/%s", name);

	return n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int write_value(const char *name, const char *value)
{
	char path[PATH_MAX];
	autoclose int fd = -1;
	int ret = sysctl_path(name, path);

	if (ret)
		return ret;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : file_write_fd(fd, value, strlen(value));
}

int sysctl_set(const char *name, const char *value)
{
	uint64_t start = trace_start();
	int ret = write_value(name, value);

	trace_step(start, TRACE_FILE, -ret, "sysctl %s = %s", name, value);
	return ret;
}

int sysctl_get(const char *name, char *value, size_t size)
{
	char path[PATH_MAX];
	autoclose int fd = -1;
	int ret = sysctl_path(name, path);
	ssize_t n;

	if (ret)
		return ret;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, value, size - 1);
	if (n < 0)
		return -errno;
	if (n && value[n - 1] == '\n')
		n--;
	value[n] = '\0';
	return 0;
}

int sysctl_ensure(const char *name, const char *value)
{
	char now[256];

	if (!sysctl_get(name, now, sizeof(now)) && !strcmp(now, value))
		return 0;
	return sysctl_set(name, value);
}

int sysctl_force(const char *name, const char *value)
{
	char now[256];
	int ret = sysctl_set(name, value);

	if (ret && !sysctl_get(name, now, sizeof(now)) && !strcmp(now, value))
		return 0;
	return ret;
}
