/* The runtime's result cache, in libcni's place and format: results/NETWORK-CONTAINER-IFNAME below
 * the cache directory, one compact JSON object. reference/protocol.md 3.5. */
#pragma once

#include "base/err.h"
#include "result/result.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_DIR "/var/lib/cni"

/* What an ADD found before it called the first plugin: nobody who cleans up after it may take what
 * was there. libcni has no such key; it is gone when the ADD has its result. */
struct attempt {
	bool occupied; /* the namespace had an interface of that name */
	int64_t netns; /* its identity; 0: there was no namespace, -1: not known */
};

struct cache_entry {
	char *network, *id, *ifname, *netns;
	char *args;     /* CNI_ARGS, pairs joined by ';'; "" when none */
	json *cap_args; /* object or NULL */
	char *config;   /* the list's bytes, decoded */
	size_t config_len;
	json *result;           /* as it stands in the file, or NULL: an ADD that never returned */
	struct attempt attempt; /* of an entry without a result */
};

/* One call at a time for a container (CNI spec, section 2): the DEL after a failed ADD must not
 * meet an ADD that went well. GC (id NULL) is alone: it must not take an attachment in the making
 * for a stale one. Waits. Returns a descriptor that holds the lock until it is closed, or -1: a
 * cache that cannot be locked is no reason to fail a DEL. */
int cache_lock(const char *dir, const char *id);

/* One more thing that only one call at a time may work on, under the same descriptor (-1: none):
 * always taken after the container's, so that no two calls wait for each other. */
void cache_lock_also(int lock, const char *key);

/* Writes (replaces) an entry: to a temporary name, flushed if asked, renamed. Directories are 0700,
 * the file 0600. */
int cache_write(const char *dir, const struct cache_entry *c, bool flush, struct err *e);

/* Reads the entry of an attachment. Returns 0, 1 when there is none (or none that can be used:
 * torn, of another kind, of another attachment with the same file name; then *why, when not NULL,
 * is set to the reason), -1 with e set when the directory itself cannot be used. */
int cache_read(const char *dir, const char *network, const char *id, const char *ifname,
	struct cache_entry *c, struct err *why, struct err *e);

/* Removes it; nothing there is fine. */
int cache_remove(
	const char *dir, const char *network, const char *id, const char *ifname, struct err *e);

/* Calls fn for every usable entry, in bytewise order of the files; stops when fn returns non-zero.
 * A missing directory has none. Returns fn's value, or -1 with e set when the directory, or in the
 * end an entry that may be usable, could not be read. */
int cache_each(const char *dir, int (*fn)(const struct cache_entry *c, void *arg), void *arg,
	struct err *e);

/* Frees what it holds. */
void cache_entry_free(struct cache_entry *c);
#define autoentry __attribute__((cleanup(cache_entry_free))) struct cache_entry
