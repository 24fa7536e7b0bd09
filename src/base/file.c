#include "base/file.h"

#include "base/cleanup.h"
#include "base/trace.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A descriptor that a caller left non-blocking is waited for, within reason. */
static bool wait_ready(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	return errno == EINTR || (errno == EAGAIN && poll(&p, 1, 30000) > 0);
}

int file_read_fd(int fd, size_t max, char **data, size_t *len)
{
	size_t cap = 4096, n = 0;
	autofree char *buf = malloc(cap + 1);

	if (!buf)
		return -ENOMEM;
	for (;;) {
		ssize_t got = read(fd, buf + n, cap - n);

		if (got < 0 && wait_ready(fd, POLLIN))
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
		if (n > max)
			return -EFBIG;
		if (n == cap) {
			char *p = realloc(buf, cap * 2 + 1);

			if (!p)
				return -ENOMEM;
			buf = p;
			cap *= 2;
		}
	}
	buf[n] = '\0';
	*data = take_ptr(buf);
	if (len)
		*len = n;
	return 0;
}

int file_read(int dirfd, const char *path, size_t max, char **data, size_t *len)
{
	/* O_NONBLOCK: a FIFO must not hang us before we see that it is one. */
	autoclose int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > 0 && (uintmax_t)st.st_size > max)
		return -EFBIG;
	return file_read_fd(fd, max, data, len);
}

int file_write_fd(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && wait_ready(fd, POLLOUT))
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The temporary name belongs to the final one: whoever writes or removes that next also replaces or
 * removes what a killed writer left. The leading dot keeps it from being taken for an address, a
 * container id or a network by those who scan the directory. */
static int temp_name(const char *name, char temp[static NAME_MAX + 1])
{
	int n = snprintf(temp, NAME_MAX + 1, ".%s.tmp", name);

	return n > NAME_MAX ? -ENAMETOOLONG : 0;
}

static int fill(int fd, const void *data, size_t len, bool flush)
{
	int ret = file_write_fd(fd, data, len);

	return !ret && flush && fdatasync(fd) < 0 ? -errno : ret;
}

int file_link(int fd, int dirfd, const char *name)
{
	char path[32];

	if (!linkat(fd, "", dirfd, name, AT_EMPTY_PATH))
		return 0;
	if (errno == EEXIST)
		return -EEXIST;
	/* Older kernels want a capability for the direct way. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, dirfd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* For filesystems without unnamed files. */
static int write_named(
	int dirfd, const char *temp, const void *data, size_t len, mode_t mode, bool flush)
{
	autoclose int fd = openat(dirfd, temp,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode);

	return fd < 0 ? -errno : fill(fd, data, len, flush);
}

/* A file gets a name when it is complete: a writer that is killed leaves nothing, or, replacing
 * another, at worst a complete file of a temporary name. */
static int replace(
	int dirfd, const char *name, const void *data, size_t len, mode_t mode, bool flush)
{
	autoclose int fd = openat(dirfd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
	char temp[NAME_MAX + 1];
	int ret = temp_name(name, temp);

	if (ret)
		return ret;
	if (fd >= 0) {
		ret = fill(fd, data, len, flush);
		if (!ret)
			ret = file_link(fd, dirfd, name);
		if (ret != -EEXIST)
			return ret;
		unlinkat(dirfd, temp, 0);
		ret = file_link(fd, dirfd, temp);
	} else {
		ret = write_named(dirfd, temp, data, len, mode, flush);
	}
	if (!ret && renameat(dirfd, temp, dirfd, name) < 0)
		ret = -errno;
	if (ret)
		unlinkat(dirfd, temp, 0);
	return ret;
}

int file_replace(int dirfd, const char *name, const void *data, size_t len, mode_t mode, bool flush)
{
	uint64_t start = trace_start();
	int ret = replace(dirfd, name, data, len, mode, flush);

	trace_step(start, TRACE_FILE, -ret, "write %s", name);
	return ret;
}

int file_remove(int dirfd, const char *name)
{
	uint64_t start = trace_start();
	char temp[NAME_MAX + 1];
	int ret = temp_name(name, temp);

	if (!ret) {
		unlinkat(dirfd, temp, 0);
		ret = unlinkat(dirfd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	}
	trace_step(start, TRACE_FILE, -ret, "remove %s", name);
	return ret;
}

int file_mkdirs(const char *path, mode_t mode)
{
	char part[PATH_MAX];
	size_t len = strlen(path);
	struct stat st;

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	/* Usually it is there already. */
	if (!stat(path, &st))
		return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, mode) < 0 && errno != EEXIST)
			return -errno;
	}
	return stat(path, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int bytewise(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(DIR *dir, struct file_names *names)
{
	struct dirent *entry;

	while ((errno = 0, entry = readdir(dir))) {
		char **name;

		if (entry->d_name[0] == '.')
			continue;
		name = vec_add(names->list, names->len);
		if (!name)
			return -ENOMEM;
		*name = strdup(entry->d_name);
		if (!*name)
			return -ENOMEM;
	}
	return -errno;
}

int file_names(int dirfd, struct file_names *names)
{
	autoclose int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int ret = dir ? 0 : -errno;

	*names = (struct file_names){0};
	if (ret)
		return ret;
	take_fd(&fd);
	ret = read_names(dir, names);
	closedir(dir);
	if (ret)
		file_names_free(names);
	else if (names->len)
		qsort(names->list, names->len, sizeof(*names->list), bytewise);
	return ret;
}

void file_names_free(struct file_names *names)
{
	for (size_t i = 0; i < names->len; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct file_names){0};
}
