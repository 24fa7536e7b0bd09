/* Files: bounded reading, and writing that appears whole or not at all. Paths are checked by the
 * caller; names handed to the *at functions contain no slash. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

/* Reads a whole regular file (not a FIFO, device or directory; a symlink is followed) of at most
 * max bytes. *data is owned by the caller, NUL-terminated, *len without the NUL (may be NULL).
 * dirfd as for openat(). Returns 0, or -errno (-EFBIG: larger than max, -EINVAL: not a regular
 * file, -ENOMEM) without touching the outputs. */
int file_read(int dirfd, const char *path, size_t max, char **data, size_t *len);

/* The same for an open descriptor of any kind (a pipe too), read to its end. */
int file_read_fd(int fd, size_t max, char **data, size_t *len);

/* Writes all of it, over short writes and EINTR. Returns 0 or -errno. */
int file_write_fd(int fd, const void *data, size_t len);

/* Replaces dirfd/name: written to a file without a name, flushed (fdatasync when flush), and linked
 * there; where there is one already, as ".name.tmp" that is renamed over it. Two writers of one
 * name at once are the caller's to exclude. Returns 0 or -errno; on failure nothing is left behind.
 */
int file_replace(
	int dirfd, const char *name, const void *data, size_t len, mode_t mode, bool flush);

/* Gives an open file without a name (O_TMPFILE) one: 0 or -errno, -EEXIST when it is taken. */
int file_link(int fd, int dirfd, const char *name);

/* Unlinks dirfd/name and a temporary file that a killed file_replace() left. Returns 0, also when
 * there was none, or -errno. */
int file_remove(int dirfd, const char *name);

/* mkdir -p. Returns 0 or -errno; an existing directory is fine. */
int file_mkdirs(const char *path, mode_t mode);

/* The names in a directory, sorted bytewise, without those that begin with a dot. */
struct file_names {
	char **list; /* owned, the strings too */
	size_t len;
};

/* Reads them all; names is empty on failure. Returns 0 or -errno. */
int file_names(int dirfd, struct file_names *names);
void file_names_free(struct file_names *names);
#define autonames __attribute__((cleanup(file_names_free))) struct file_names
