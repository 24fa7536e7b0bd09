/* Running a list of plugins as a runtime does: each in this process when the file found on CNI_PATH
 * is this very binary, executed otherwise, mixed at will. reference/protocol.md 3.3 to 3.8. */
#pragma once

#include "runtime/conflist.h"
#include "runtime/report.h"

/* The runtime's side of a call. Strings are borrowed, "" when not given. */
struct attach {
	const char *path; /* CNI_PATH */
	const char *id;
	const char *netns;
	const char *ifname;
	const char *args;             /* CNI_ARGS */
	const json *cap_args;         /* object or NULL */
	int timeout;                  /* milliseconds for an executed plugin, 0: none */
	const struct report *remarks; /* may be NULL */
};

/* ADD in order, each plugin given the result of the one before; *r is the last one's, in the list's
 * version. On failure the plugins that were called get a DEL, in reverse and with the last result
 * there was; e tells of the first failure, *clean whether nothing of the ADD can be left.
 *
 * `occupied`: the namespace had an interface of that name before. The plugin that refused to go on
 * then gets no DEL: it has undone what it did, and what its DEL would delete was never its own. */
int list_add(const struct conflist *l, const struct attach *a, bool occupied, struct result *r,
	bool *clean, struct err *e);

/* DEL in reverse order, every plugin, also after a failure; e tells of the first. prev may be NULL.
 */
int list_del(
	const struct conflist *l, const struct attach *a, const struct result *prev, struct err *e);

/* CHECK in order; stops at the first failure, which is not wrapped. */
int list_check(
	const struct conflist *l, const struct attach *a, const struct result *prev, struct err *e);

/* GC in order with the valid set (an array of attachment objects), every plugin; STATUS in order,
 * stopping at the first failure. */
int list_gc(
	const struct conflist *l, const struct attach *a, const json *attachments, struct err *e);
int list_status(const struct conflist *l, const struct attach *a, struct err *e);

/* What the plugin answers to VERSION, as one line "0.3.0, 0.4.0"; fails when it cannot be found or
 * does not list the list's version. */
int list_version(const struct conflist *l, size_t plugin, const struct attach *a, struct buf *out,
	struct err *e);
