#include "netlink/sysctl.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
