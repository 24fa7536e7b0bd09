/* What an applet is. One file in src/applets/ defines one and registers it by its file name in
 * meson.build; prototype, table, symlinks, help and the tests' list derive from that word.
 *
 *   const struct applet applet_host_local = { .name = "host-local", ... };
 *
 * The variable is applet_ and the file's name with '-' as '_'. */
#pragma once

#include "base/err.h"
#include "base/undo.h"
#include "cni/request.h"
#include "result/result.h"

#include <stdbool.h>

enum applet_kind { APPLET_MAIN, APPLET_IPAM, APPLET_META, APPLET_TOOL };

/* What an ADD fills in: the result in our own form, which the runner converts to the config's
 * version and prints, and the inverse of every completed step, which the runner runs when
 * anything, printing included, fails. */
struct reply {
	struct result result;
	struct undo undo;
};

struct attach_type;

struct applet {
	const char *name;
	const char *help; /* one line, no full stop */
	enum applet_kind kind;
	const char *min_version; /* oldest spec version supported; NULL: 0.1.0 */

	/* The verbs. Environment, config, name and versions are checked before they are called;
	 * the namespace is known not to be our own (ADD, DEL). Each returns 0, or -1 with e set.
	 * A missing verb succeeds and does nothing. */
	int (*add)(const struct request *req, struct reply *reply, struct err *e);
	int (*del)(const struct request *req, struct err *e);
	int (*check)(const struct request *req, struct err *e);
	int (*gc)(const struct request *req, struct err *e);
	int (*status)(const struct request *req, struct err *e);

	/* How it attaches a container, where attach/attach.h has the verbs. NULL: it does not. */
	const struct attach_type *attach;

	/* A program of its own, beside the plugin (dhcp is its own daemon) or instead of one
	 * (APPLET_TOOL, which has nothing else): it runs when the applet is called with arguments
	 * and without CNI_COMMAND. NULL: none. Returns the exit status, or -1 for arguments that
	 * are none of its own: the applet then says what it is. */
	int (*program)(int argc, char **argv);
};

/* Whether it has verbs. */
static inline bool applet_is_plugin(const struct applet *a)
{
	return a->kind != APPLET_TOOL;
}

/* All applets, sorted by name; NULL-terminated. Generated. */
extern const struct applet *const applets[];

/* By name, or NULL. */
const struct applet *applet_find(const char *name);
