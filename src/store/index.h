/* The index of a lease store: who holds what, and which address is free next, without reading the
 * store. A cache and nothing more. Every answer is a hint that the store confirms or refutes: a
 * free address is still created exclusively, a lease is read before it is removed.
 *
 * It lives in a file that is mapped, or, before it was first written or where it cannot be, in
 * private memory. Valid for exactly one state of the store's directory: its mtime, which the store
 * sets to a value of our own choice (index_stamp()) that no clock produces, and its ctime. Whoever
 * else creates or removes a lease moves both. While we change things the recorded value is zero, so
 * that a killed process leaves an index that is known to be stale. Whether somebody else changed
 * the directory while we did is for the store to know before it seals (store/watch.h).
 *
 * Two hash tables with linear probing: holders (hash of id and interface -> address, any number per
 * hash) and pages of 512 addresses (taken, and held since an earlier boot), IPv4 as IPv4-mapped
 * IPv6. Every slot, also an empty one, carries a check word. Bytes that make no sense set `broken`;
 * the one who uses the index then builds a new one from the store. */
#pragma once

#include "base/ip.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define INDEX_BOOT_LEN 36 /* text of a boot id */

struct index_head;
struct index_holder;
struct index_page;

struct index {
	struct index_head *head; /* NULL: nothing loaded */
	struct index_holder *holders;
	struct index_page *pages;
	size_t size;
	bool mapped;  /* it is the file; otherwise private memory, to be published */
	bool changed; /* the directory or the index was changed since it was loaded */
	bool broken;  /* inconsistent: not to be used, not to be sealed */
};

/* An empty one in private memory. Returns 0 or -ENOMEM. */
int index_init(struct index *ix);

/* Maps the file if it is whole and describes the directory as st shows it, in this boot. Returns 0,
 * or -errno (-ESTALE: of another state) with ix empty. */
int index_open(struct index *ix, const char *path, const struct stat *st, const char *boot);

/* The same on a mapping: only its shape is checked. Taken over on success. Returns 0 or -EINVAL. */
int index_attach(struct index *ix, void *bytes, size_t size);

/* Unmaps or frees. */
void index_free(struct index *ix);

/* Hash of a holder; ifname NULL for a lease that names only a container. Differs between indexes.
 */
uint64_t index_hash(const struct index *ix, const char *id, const char *ifname);

/* To be called before the directory or the index changes: marks the file as stale. The functions
 * below that change something call it themselves. */
void index_touch(struct index *ix);

/* Address taken by a holder; old: in an earlier boot. Without memory the index becomes broken. */
void index_add(struct index *ix, const struct ip *ip, uint64_t hash, bool old);
/* Address taken by something that is not a lease. */
void index_block(struct index *ix, const struct ip *ip);
/* Address free again; a holder that is not found makes the index broken. */
void index_del(struct index *ix, const struct ip *ip, uint64_t hash);

/* Addresses a holder may hold, one after the other; *pos starts at 0. */
bool index_held(struct index *ix, uint64_t hash, size_t *pos, struct ip *out);
/* All leases there are, in no order; *pos starts at 0. */
bool index_each(struct index *ix, size_t *pos, struct ip *out, uint64_t *hash);

/* Whether no address is taken. */
bool index_is_empty(const struct index *ix);

/* The first address of lo..hi (inclusive, one family) that is free. */
bool index_next_free(struct index *ix, const struct ip *lo, const struct ip *hi, struct ip *out);
/* The first that is held since an earlier boot; only where no more than one address is free, which
 * the caller does not want: the gateway. */
bool index_next_old(struct index *ix, const struct ip *lo, const struct ip *hi, struct ip *out);

/* A stamp for the directory's mtime: one second ago, with nanoseconds that nobody else picks. */
struct timespec index_stamp(const struct index *ix);
/* Makes it valid for the directory as st shows it; store is the path to that. */
void index_seal(struct index *ix, const struct stat *st, const char *boot, const char *store);
/* Writes private memory to dirfd/name, whole or not at all. Returns 0 or -errno. */
int index_publish(const struct index *ix, int dirfd, const char *name);

#define INDEX_STORE_MAX 512

/* Which store an index file was last sealed for. */
struct index_origin {
	uint64_t dev, ino;
	char path[INDEX_STORE_MAX]; /* "": none, or too long to be remembered */
};

/* Reads that. Returns 0, -EINVAL when the file is no index of this format, or -errno. */
int index_origin(int fd, struct index_origin *out);
