/* The undo stack of an ADD: each completed step pushes its inverse; undo_run() runs them newest
 * first, undo_commit() forgets them. Commit comes after the result was written and flushed, since
 * printing is the last step that can fail. */
#pragma once

#include "base/err.h"

typedef void undo_fn(void *arg);

/* One inverse. */
struct undo_step {
	undo_fn *run;
	undo_fn *release; /* frees arg whether run or not; NULL when there is nothing to free */
	void *arg;
};

/* The stack: all zero is an empty one. */
struct undo {
	struct undo_step *steps; /* owned, oldest first */
	size_t len;
};

/* Pushes an inverse. Takes ownership of arg. When it cannot be remembered (no memory), it is run
 * at once and the error is set. Returns 0 or -1. */
int undo_push(struct undo *u, undo_fn *run, undo_fn *release, void *arg, struct err *e);

/* Runs all inverses, newest first, and empties the stack. The inverses report nothing. */
void undo_run(struct undo *u);

/* Forgets all inverses without running them. */
void undo_commit(struct undo *u);
