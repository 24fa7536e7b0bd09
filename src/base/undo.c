#include "base/undo.h"

#include "base/vec.h"

#include <stdlib.h>

int undo_push(struct undo *u, undo_fn *run, undo_fn *release, void *arg, struct err *e)
{
	struct undo_step *s = vec_add(u->steps, u->len);

	if (!s) {
		run(arg);
		if (release)
			release(arg);
		return err_memory(e);
	}
	*s = (struct undo_step){run, release, arg};
	return 0;
}

static void empty(struct undo *u, bool run)
{
	while (u->len) {
		struct undo_step *s = &u->steps[--u->len];

		if (run)
			s->run(s->arg);
		if (s->release)
			s->release(s->arg);
	}
	free(u->steps);
	*u = (struct undo){0};
}

void undo_run(struct undo *u)
{
	empty(u, true);
}

void undo_commit(struct undo *u)
{
	empty(u, false);
}
