/* The node's list of sysctls that a configuration may set, /etc/cni/tuning/allowlist.conf: a
 * regular expression a line (regexp.h), unanchored, compared with names as configurations write
 * them, IFNAME included. Blank lines do not count, there are no comments. reference/meta.md,
 * section 1.1. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct allowlist_entry;

struct allowlist {
	bool absent; /* there is no such file: all is allowed */
	char *text;
	char *lines; /* the same, cut into entries */
	struct allowlist_entry *entries;
	size_t len;
};

/* Reads the file; without one all is allowed. Returns 0, or -1 with e set (ERR_IO). */
int allowlist_open(struct allowlist *a, struct err *e);
void allowlist_close(struct allowlist *a);
#define autoallowlist __attribute__((cleanup(allowlist_close))) struct allowlist

/* Returns 0 when a name is allowed, else -1 with e set (ERR_INVALID_CONFIG), the list in the
 * details. An entry that is no expression is an error when the search comes to it: one before it
 * may match. */
int allowlist_check(struct allowlist *a, const char *name, struct err *e);
