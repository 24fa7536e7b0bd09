/* Attachments: a network list and the cache together. What an ADD made is on record, so that DEL,
 * CHECK and GC find it, whatever became of the files or of the process. docs/cnitool.md. */
#pragma once

#include "runtime/conflist.h"
#include "runtime/list.h"
#include "runtime/report.h"

/* What a call works with; everything is borrowed. */
struct runtime {
	const char *conf_dir;
	const char *cache_dir;
	struct attach attach;
	const struct report *remarks; /* may be NULL */
};

/* ADD over the list. `take` receives the result; only when it returns 0 what was done is to stay.
 * What an earlier ADD left that never came to its end is taken down first. An attachment that is
 * there already is refused (ERR_CONFLICT) before anything is done. */
int attachment_add(const struct runtime *rt, const struct conflist *l,
	int (*take)(const struct result *r, const char *version, struct err *e), struct err *e);

/* DEL with the configuration and the arguments of the ADD; what the call itself names wins. Without
 * a cache entry the network's current configuration is used. */
int attachment_del(const struct runtime *rt, const char *network, struct err *e);

/* CHECK with the arguments of the ADD and its result. */
int attachment_check(const struct runtime *rt, const struct conflist *l, struct err *e);

/* DEL of the network's attachments that are in the cache and not in the valid set (see valid.h),
 * then GC of every plugin (from version 1.1.0 on). Nothing where the list says disableGC. */
int attachment_gc(
	const struct runtime *rt, const struct conflist *l, const json *valid, struct err *e);
