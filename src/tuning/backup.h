/* What a container's link had before tuning changed it: a file for each attachment, so that DEL can
 * give it back to a link that outlives the container. Name, place and form are the Go plugin's:
 * <dir>/<container id>_<ifname>.json, one object, keys only for what was changed; "network" and
 * "netns" are ours, its reader passes over them. reference/meta.md, section 1.4. */
#pragma once

#include "base/err.h"
#include "tuning/linkstate.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BACKUP_DIR "/run/cni/tuning"

struct backup {
	struct linkstate link;
	const char *network; /* borrowed from doc; NULL: the Go plugin wrote it */
	int64_t netns;       /* identity of the namespace the link is in; 0: likewise */
	json *doc;
	char *text; /* what was read, NULL: nothing */
	size_t len;
};

/* Frees what it holds and leaves an empty one. */
void backup_free(struct backup *b);
#define autobackup __attribute__((cleanup(backup_free))) struct backup

/* Opens the directory of backups: a descriptor, or -errno. */
int backup_dir(const char *path);

/* The file name of an attachment. Its parts have been checked: no slash in either. Owned by the
 * caller, NULL without memory. */
char *backup_name(const char *id, const char *ifname);

/* Whether a directory entry may be a backup: not hidden, ending in .json. */
bool backup_is_name(const char *name);

/* Reads dir/name. Returns 0, -ENOENT, -EBADMSG for something that is no backup, or -errno; b is
 * empty then. */
int backup_read(int dir, const char *name, struct backup *b);

/* Whether backup_read() says that what is there is no backup, or no file at all (a symlink to
 * itself, a socket), and never will be: nothing can be learned from it, it may be removed. */
bool backup_is_rubbish(int ret);

/* Whether it may be about a link in this namespace. Container IDs and paths are used
 * again; what a link had in one namespace is not what its like has in another. The Go plugin's does
 * not say. */
bool backup_is_of(const struct backup *b, int netns);

/* Replaces dir/name, not flushed to the disk: a link does not survive a reboot. Returns 0 or
 * -errno. */
int backup_write(int dir, const char *name, const struct linkstate *link, const char *network,
	uint64_t netns);
