/* Finding and executing plugins. reference/protocol.md 3.3. */
#pragma once

#include "base/err.h"
#include "cni/applet.h"
#include "result/result.h"

#include <stdbool.h>
#include <stddef.h>

/* Looks the plugin up in the directories of a CNI_PATH, as libcni does: the first regular file
 * (after symlinks), but one that can be executed comes first, and an empty directory name counts
 * for nothing. *file is owned by the caller. *applet: where the file is the running binary (same
 * device and inode), the plugin of that name, to be run in this process; else NULL, and the file is
 * to be executed. The error texts are libcni's. */
int plugin_find(const char *path, const char *type, char **file, const struct applet **applet,
	struct err *e);

/* What to execute. envp replaces the environment (NULL: our own); timeout in milliseconds, 0 for
 * none, after which the plugin's process group is killed. */
struct plugin_run {
	const char *file;
	const char *type;
	char *const *envp;
	const char *text; /* its stdin */
	size_t len;
	int timeout;
};

/* How far a call of a plugin came. */
enum plugin_end {
	PLUGIN_NOT_CALLED, /* not found, not startable: it has done nothing */
	PLUGIN_REFUSED,    /* it said no */
	PLUGIN_CRASHED,    /* ended by a signal or killed for good reason: may be half done */
	PLUGIN_DONE,       /* it said yes, whatever its result is worth */
};

/* Runs it to its end. On exit 0 *out (may be NULL) receives stdout (owned by the caller,
 * NUL-terminated, at most 16 MB; more is a failure). Otherwise e is set: the error object it
 * printed (code, msg, details), or libcni's sentence about what it did instead, its stderr in the
 * details. stderr passes through as it comes. *end (may be NULL) tells it in one word. */
int plugin_exec(
	const struct plugin_run *run, char **out, size_t *len, enum plugin_end *end, struct err *e);

/* Reads what an ADD printed: `version` is assumed where the result has no label, null is an empty
 * result, an error object printed with exit 0 is an error. */
int plugin_result(
	const char *out, size_t len, const char *version, struct result *r, struct err *e);

/* The environment for a plugin: our own with the six CNI variables of a call. Owned by the caller:
 * one block, free(). NULL when out of memory. Empty values are left out unless `all`. */
struct call;
char **plugin_env(const struct call *call, bool all);
