/* A node under attack, and what the lanes do there. */
#pragma once

#include "chain.h"

#include <stdio.h>
#include <sys/types.h>

enum attack { KILL, FAIL };
enum recovery { NONE, BY_DEL, BY_GC, BY_DEL_GONE, BY_GC_GONE };
enum outcome { GOOD, END, BAD };

/* One call attacked in one way. */
struct lane {
	enum attack attack;
	const char *verb;
	int plugin;
	enum recovery recovery;
	bool sticky;
	char title[96];
	/* of the running lane */
	pid_t pid;
	FILE *out;
	struct progress *progress;
};

/* What outlives a node. */
struct progress {
	unsigned next, points, findings, total;
	bool done;
};

struct options {
	unsigned every;
	unsigned jobs;
	bool loader, gone, sticky;
	const char *only;
};
extern struct options opt;

struct stage {
	const struct lane *lane;
	struct container c1, c2;
	char *empty;     /* nothing was ever attached */
	char *after_del; /* all are deleted: the bridge is left */
	char *base;      /* FAIL: before the attacked plugin's turn */
	char *loaded;    /* FAIL: after its ADD */
	char *unloaded;  /* FAIL: after its DEL */
	/* FAIL: what a DEL may leave: tuning never stands in its way, and keeps a record of what it
	 * could not restore; bandwidth need not be able to look into the namespace, and the qdiscs
	 * go with the link. */
	char *backup;
	char *shape;      /* FAIL: of its result */
	char *prev;       /* FAIL: its prevResult */
	struct ran calls; /* FAIL: which system calls it makes */
	unsigned n;
	int error;
	bool fresh; /* each point has a node of its own */
	struct syscall_seen at;
};

/* The two containers' namespaces. */
extern const char *const both[];

bool is_verb(const struct stage *s, const char *verb);

/* The length of the first so many lines. */
int first_lines(const char *text, int lines);

/* The node is as `want`, or has of `more` (may be NULL) whatever it wants. Links of a namespace
 * that is gone take a moment to go. Otherwise false, with the difference in *what, owned by the
 * caller; so do all that follow. */
bool is_state(
	const struct stage *s, const char *when, const char *want, const char *more, char **what);

/* What the lane attacks (the list, a plugin that is one by itself, or the list by cnitool): one
 * verb of the whole of it for a container. */
bool attach(struct container *c, const struct stage *s, char **what);
bool detach(struct container *c, const struct stage *s, char **what);
bool check(struct container *c, const struct stage *s, char **what);

/* Takes away whatever is attached, by GC where there is one. */
bool finish(const struct stage *s, char **what);

/* Brings a new node to where the points begin. */
bool prepare_kill(struct stage *s, char **what);
bool prepare_fail(struct stage *s, char **what);

/* After a call that was killed, DEL of the whole chain (or a GC that knows of no valid attachment)
 * succeeds and leaves nothing but the shared bridge (the GC not even that); and the same container
 * and another one can be attached. */
enum outcome kill_point(struct stage *s, char **what);

/* A call that fails for one of its system calls has said so and done nothing, or done all of it:
 * fail.c says what that is for each verb. */
enum outcome fail_point(struct stage *s, char **what);

/* "attack inject", from its first argument. Returns the exit status. */
int inject(char **argv);
