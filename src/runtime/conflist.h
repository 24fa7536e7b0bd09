/* Network configuration lists: finding, parsing, and what each plugin of one is given on stdin. CNI
 * spec 1.1.0, section 1; reference/protocol.md 3.1 to 3.3. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "result/result.h"
#include "runtime/report.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>

struct plugin_conf {
	const char *type; /* borrowed from conf */
	json *conf;
};

struct conflist {
	char *file; /* where it came from; NULL for one read from the cache */
	char *name;
	char *version; /* the highest of cniVersions; may be "" */
	bool disable_check, disable_gc;
	struct plugin_conf *plugins;
	size_t len;
	char *bytes; /* the list as the result cache keeps it */
	size_t bytes_len;
};

/* Parses a list, or promotes a single plugin configuration to one (`single`). Plugins of the
 * directory dir/NAME/ are appended as the list asks (dir NULL: none). ERR_INVALID_CONFIG, with
 * libcni's texts. */
int conflist_parse(struct conflist *l, const char *text, size_t len, bool single, const char *dir,
	struct err *e);

/* Finds a network by name in a directory: .conflist files first, in bytewise order, then .conf and
 * .json. A broken file is a remark, and skipped; it is named in the error when no other file has
 * the network. */
int conflist_find(struct conflist *l, const char *dir, const char *name,
	const struct report *remarks, struct err *e);

/* Calls fn for every network a directory configures, each name once; lists hide single configs of
 * the same name. Broken files go to `broken` (may be NULL). Stops when fn returns non-zero. */
int conflist_each(const char *dir, int (*fn)(const struct conflist *l, void *arg), void *arg,
	void (*broken)(const char *file, const struct err *why, void *arg), struct err *e);

/* Frees what it holds, and makes it empty. */
void conflist_free(struct conflist *l);
#define autolist __attribute__((cleanup(conflist_free))) struct conflist

/* What goes into a plugin's stdin beside its own object. */
struct plugin_input {
	const struct result *prev;   /* NULL: none */
	const json *capability_args; /* object or NULL: none */
	const json *attachments;     /* GC: the valid set; NULL: no such keys */
};

/* Appends the document for a plugin of the list: name and cniVersion of the list, runtimeConfig
 * from the capabilities it declares, prevResult; `capabilities` is taken out. */
int conflist_stdin(const struct conflist *l, size_t plugin, const struct plugin_input *in,
	const struct report *remarks, struct buf *out, struct err *e);
