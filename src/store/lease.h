/* The lease store of host-local, byte for byte that of the Go plugin (reference/ipam.md, section
 * 1.5): a directory per network, a file per address with the holder as content, "lock", and a
 * marker per range set. What is ours is beside it: an index (store/index.h), and on each lease the
 * extended attribute "user.cnibox.boot" with the boot it was made in, since no lease outlives the
 * boot.
 *
 * A lease gets its content, flushed, before it gets its name: there are no empty or torn ones of
 * ours. The name itself is not flushed: losing it in a crash loses nothing, that is a boot too. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "store/index.h"
#include "store/range.h"

#define LEASE_MAX                                                                                  \
	(128u << 10) /* no id is longer: the kernel bounds a string of the environment             \
		      */

/* Who holds an address. ifname is NULL in leases of very old plugins, which name the container
 * only. Strings are borrowed. */
struct holder {
	const char *id;
	const char *ifname;
};

enum lease_kind {
	LEASE_NONE,   /* no such file */
	LEASE_DEBRIS, /* an empty file: a writer was killed; the address is free */
	LEASE_HELD,
	LEASE_FOREIGN, /* something else of that name: blocks the address, never removed */
};

/* Reads content in place: white space around it is stripped, the holder points into it. Debris,
 * held or foreign. text has room for a NUL at text[len]. */
enum lease_kind lease_parse(char *text, size_t len, struct holder *out);

struct store {
	int dir;
	int lock; /* -1: not locked */
	const char *index_dir;
	char index_name[48];
	char boot[INDEX_BOOT_LEN + 1]; /* "": unknown; no lease is stamped or old */
	struct index index;
	bool fresh; /* the index was read from the store in this very call */
};

#define STORE_INIT                                                                                 \
	{                                                                                          \
		.dir = -1, .lock = -1                                                              \
	}
/* Where the index files are. */
#define STORE_INDEX_DIR "/run/cnibox/host-local"

/* Opens the directory; create: makes it, parents too. index_dir stays borrowed. Returns 0, 1 when
 * it does not exist and shall not be made, -1 with e set. */
int store_open(
	struct store *s, const char *path, const char *index_dir, bool create, struct err *e);

/* Waits for the exclusive flock(2) on "lock", which is the one the Go plugin takes, and loads the
 * index. Everything below needs it. Returns 0, or -1 with e set. */
int store_lock(struct store *s, struct err *e);

/* Makes the index valid again, unlocks, closes. Safe on STORE_INIT and after a failure. */
void store_close(struct store *s);
#define autostore __attribute__((cleanup(store_close))) struct store

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
int store_draft(const struct store *s, const struct holder *holder, struct draft *d, struct err *e);
void draft_free(struct draft *d);

/* Publishes the draft under this address. reclaim: also where it is held since an earlier boot.
 * Returns 0, -EEXIST when it is taken, or -errno. */
int store_take(struct store *s, struct draft *d, const struct ip *ip, bool reclaim);

/* Publishes it under the next free address of the set: after `after`, range by range and round to
 * where it began, past each range's own gateway; from the first range when `after` is NULL or not
 * in the set. reclaim: when none is free, the first held since an earlier boot, in the same order.
 * Returns 0 with *out set, -ENOSPC when all are taken, or -errno. */
int store_take_next(struct store *s, struct draft *d, const struct range_set *set,
	const struct ip *after, bool reclaim, struct ip *out);

/* Whether store_take_next() would find one, by the index. */
bool store_has_free(struct store *s, const struct range_set *set, bool reclaim);

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

/* The marker of a range set, "last_reserved_ip.N": where the next search begins. A hint: unreadable
 * is absent, and that it cannot be written fails nothing. */
struct marker {
	int fd;
	size_t len;     /* of its content */
	struct ip last; /* family 0: absent */
};
void marker_read(const struct store *s, size_t n, struct marker *m);
/* Writes in place, as the Go plugin does, and closes. */
void marker_write(struct store *s, size_t n, struct marker *m, const struct ip *ip);
void marker_close(struct marker *m);
