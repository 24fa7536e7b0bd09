#include "store/store.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

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

	if (dir < 0 || file_names(dir, &names))
		return;
	for (size_t i = 0; i < names.len; i++) {
		const char *end = strrchr(names.list[i], '.');

		if (end && !strcmp(end, ".index") && is_dead(dir, names.list[i]))
			file_remove(dir, names.list[i]);
	}
}
