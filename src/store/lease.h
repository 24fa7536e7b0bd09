/* A lease: a file named like the address, with the holder as content, byte for byte that of the Go
 * plugin (reference/ipam.md, section 1.5). On each of ours is the extended attribute
 * "user.cnibox.boot" with the boot it was made in, since no lease outlives the boot. */
#pragma once

#include "store/index.h"

#include <stdbool.h>
#include <stddef.h>

#define LEASE_MAX                                                                                  \
	(128u << 10) /* no id is longer: the kernel bounds a string of the environment             \
		      */

/* Who holds an address. ifname is NULL in leases of very old plugins, which name the container
 * only. Strings are borrowed. */
struct holder {
	const char *id;
	const char *ifname;
};

/* Whether both name the same container and interface; one that names none is like no other. */
bool holder_same(const struct holder *a, const struct holder *b);

enum lease_kind {
	LEASE_NONE,   /* no such file */
	LEASE_DEBRIS, /* an empty file: a writer was killed; the address is free */
	LEASE_HELD,
	LEASE_FOREIGN, /* something else of that name: blocks the address, never removed */
};

/* Reads content in place: white space around it is stripped, the holder points into it. Debris,
 * held or foreign. text has room for a NUL at text[len]. */
enum lease_kind lease_parse(char *text, size_t len, struct holder *out);

/* Reads the file of that name in the directory: an enum lease_kind, or -errno when it could not be
 * read. The holder points into memory that the next call overwrites. *fd receives the descriptor,
 * the caller's to close, or -1. */
int lease_read(int dir, const char *name, struct holder *out, int *fd);

/* The text of a boot id; "": unknown, no lease is stamped or old then. */
struct boot {
	char id[INDEX_BOOT_LEN + 1];
};

/* This boot, for leases in that directory. Unknown on file systems that other machines may share:
 * a lease of another boot may be in use there. Unknown too where the boot id is not the kernel's
 * own word: a container that was given one of its own shares the kernel, and living leases, with
 * those that have another. */
void boot_read(struct boot *b, int dir);

enum lease_age { LEASE_AGE_UNKNOWN, LEASE_OF_THIS_BOOT, LEASE_OF_EARLIER_BOOT };

/* In which boot the lease was made that fd has open. */
enum lease_age lease_age(const struct boot *b, int fd);

/* Best effort: not every file system has user attributes. */
void lease_stamp(const struct boot *b, int fd);
