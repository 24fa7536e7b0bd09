#include "store/store.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* How many are looked at in one call, four system calls each: on a node with thousands of networks
 * no container shall wait for all of them. */
#define SWEEP_MAX 64

/* Whether the index describes a store that is not where it was. What cannot be looked at stays; a
 * file of another format is nobody's any more. */
static bool is_dead(int dir, const char *name)
{
	autoclose int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct index_origin from;
	struct stat st;
	int ret;

	if (fd < 0)
		return false;
	ret = index_origin(fd, &from);
	if (ret)
		return ret == -EINVAL;
	/* Relative paths, and such that did not fit, lead nowhere from here. */
	if (*from.path != '/')
		return false;
	if (stat(from.path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR;
	return st.st_dev != from.dev || st.st_ino != from.ino;
}

void store_sweep(const char *index_dir)
{
	autoclose int dir = open(index_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autonames names = {0};
	struct timespec now = {0};

	if (dir < 0 || file_names(dir, &names))
		return;
	/* From anywhere on, or it would be the same ones each time. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (size_t i = 0; i < names.len && i < SWEEP_MAX; i++) {
		const char *name = names.list[((size_t)now.tv_nsec + i) % names.len];
		const char *end = strrchr(name, '.');

		if (end && !strcmp(end, ".index") && is_dead(dir, name))
			file_remove(dir, name);
	}
}
