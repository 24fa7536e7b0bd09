/* The lease store of host-local, in the layout of the Go plugin (reference/ipam.md, section 1.5): a
 * directory per network, a file per address (store/lease.h), "lock", and a marker per range set
 * (store/marker.h). What is ours is beside it, an index (store/index.h).
 *
 * A lease gets its content, flushed, before it gets its name: there are no empty or torn ones of
 * ours. The name itself is not flushed: losing it in a crash loses nothing, that is a boot too. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "store/index.h"
#include "store/lease.h"
#include "store/range.h"
#include "store/watch.h"

struct store {
	const char *path, *index_dir; /* borrowed */
	int dir;
	int lock; /* -1: not locked */
	bool create;
	bool made;  /* the directory is of our making */
	bool local; /* the directory is on a file system of this machine: an index can be right */
	bool fresh; /* the index was read from the store in this very call */
	bool doubt; /* others changed the store meanwhile, or may have: the index is not to be kept
		     */
	char index_name[48];
	struct boot boot;
	struct index index;
	struct watch watch;
	struct stat seen; /* the directory as it was when the index was loaded */
};

#define STORE_INIT                                                                                 \
	{                                                                                          \
		.dir = -1, .lock = -1                                                              \
	}
/* Where the index files are. */
#define STORE_INDEX_DIR "/run/cnibox/host-local"

/* Opens the directory; create: makes it, parents too. Both paths stay borrowed. Returns 0, 1 when
 * it does not exist and shall not be made, -1 with e set. */
int store_open(
	struct store *s, const char *path, const char *index_dir, bool create, struct err *e);

/* Waits for the exclusive flock(2) on "lock", which is the one the Go plugin takes, and loads the
 * index. A store that was replaced while we waited (restored from a backup, or removed and made
 * anew) is opened again: path and descriptor are the same directory afterwards. Everything below
 * needs the lock. Returns 0, 1 when the store is gone by now and shall not be made, -1 with e set.
 */
int store_lock(struct store *s, struct err *e);

/* Makes the index valid again, unlocks, closes. Safe on STORE_INIT and after a failure. */
void store_close(struct store *s);
#define autostore __attribute__((cleanup(store_close))) struct store

/* Before anything in the directory or the index is changed. */
void store_change(struct store *s);
/* After: a name appeared in the directory, or went, by our doing. */
void store_changed(struct store *s);

/* Builds the index anew from the store. Returns 0 or -errno. */
int store_reread(struct store *s);

/* The hash under which the index knows a holder. */
uint64_t store_hash(const struct store *s, const struct holder *h);

/* Unlinks a name: 0, also when there was none, or -errno. */
int store_unlink(struct store *s, const char *name);

/* ---- taking addresses (take.c) ---- */

/* A lease without a name: written and flushed, which takes longest, before the lock is taken. Where
 * the filesystem has no unnamed files it is written when it is published. */
struct draft {
	int fd;
	struct holder holder;
	struct buf text;
};
#define DRAFT_INIT                                                                                 \
	{                                                                                          \
		.fd = -1                                                                           \
	}
/* Writes a draft of a lease of that holder, whose strings stay borrowed. Needs no lock. Returns 0,
 * or -1 with e set; to be freed in either case. */
int store_draft(const struct store *s, const struct holder *holder, struct draft *d, struct err *e);
/* Closes it, which removes it unless it was published. Safe on DRAFT_INIT. */
void draft_free(struct draft *d);

/* Publishes the draft under this address. reclaim: also where it is held since an earlier boot.
 * Returns 0, -EEXIST when it is taken, or -errno. */
int store_take(struct store *s, struct draft *d, const struct ip *ip, bool reclaim);

/* Publishes it under the next free address of the set: after `after`, range by range and round to
 * where it began, past each range's own gateway; from the first range when `after` is NULL or not
 * in the set. reclaim: when none is free, the first held since an earlier boot, in the same order.
 * Returns 0 with *out set, 1 when all are taken, or -errno: no lease could be made. */
int store_take_next(struct store *s, struct draft *d, const struct range_set *set,
	const struct ip *after, bool reclaim, struct ip *out);

/* Whether store_take_next() would find one: 1, 0 or -errno. */
int store_has_free(struct store *s, const struct range_set *set, bool reclaim);

/* Whether a lease could be written, now, to the directory at path or, where that does not exist, to
 * the one it would be made in. Leaves nothing. Returns 0 or -errno. */
int store_try_write(const char *path);

/* ---- leases there are (held.c) ---- */

/* Removes the lease of this address if that holder holds it. Returns 0, 1 when not, or -errno. */
int store_release(struct store *s, const struct ip *ip, const struct holder *holder);

struct ip_list {
	struct ip *list; /* owned: free() */
	size_t len;
};

/* Appends to out the addresses this holder holds, each confirmed by its file. Returns 0 or -errno.
 */
int store_held(struct store *s, const struct holder *holder, struct ip_list *out);

/* Whether the address is held since an earlier boot. */
bool store_old(const struct store *s, const struct ip *ip);

/* Removes every lease whose holder is not among keep; one that names only a container stays when
 * some holder has that id. Carries on after failures. Returns 0, or -1 with e set. */
int store_gc(struct store *s, const struct holder *keep, size_t len, struct err *e);

/* ---- indexes of stores that are gone (sweep.c) ---- */

/* Removes index files of stores that are not where they were: of 64 files, where there are more
 * from a random one on. An index is a cache, so nobody is hurt by a race with one that is made;
 * best effort. */
void store_sweep(const char *index_dir);
