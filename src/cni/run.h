/* One call of an applet, from the environment and stdin to the document on stdout: the order of
 * checks, the version rules, the same-namespace guard. CNI spec 1.1.0, sections 2 and 4;
 * reference/protocol.md, section 1. */
#pragma once

#include "cni/applet.h"

#include <stddef.h>

/* The call as it comes in. Strings are borrowed, "" when unset; text has a NUL behind
 * its len bytes. */
struct call {
	const char *command;
	const char *id;
	const char *netns;
	const char *ifname;
	const char *args;
	const char *path;
	const char *text; /* stdin */
	size_t len;
	const struct request *caller; /* of an applet in this process that delegates, or NULL */
};

/* A call that was carried out in this process. */
struct outcome {
	struct request req; /* what inverses in reply.undo refer to */
	json *conf;
	struct reply reply;
};

/* Runs the verb of the call with all checks a process of its own would make, except VERSION. On
 * success the reply of an ADD is in out->reply, its inverses pending; for the other verbs it is
 * empty. On failure everything was undone and e is set. outcome_free() in either case. */
int call_applet(
	const struct applet *a, const struct call *call, struct outcome *out, struct err *e);

/* Releases it; pending inverses are forgotten, so decide about them before. */
void outcome_free(struct outcome *out);

/* The applet's reply to VERSION, with its newline. */
void write_versions(const struct applet *a, struct buf *out);

/* The applet as a program, called by the name argv[0]: as a plugin, or as its own program where it
 * has one and is not called as a plugin. Returns the exit status. */
int run_applet(const struct applet *a, int argc, char **argv);
