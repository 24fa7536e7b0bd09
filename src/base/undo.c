#include "base/undo.h"

#include <stdlib.h>

int undo_push(struct undo *u, undo_fn *run, undo_fn *release, void *arg, struct err *e)
{
	if (u->len == u->cap) {
		size_t cap = u->cap ? u->cap * 2 : 8;
		struct undo_step *p = reallocarray(u->steps, cap, sizeof(*p));

		if (!p) {
			run(arg);
			if (release)
				release(arg);
			return err_memory(e);
		}
		u->steps = p;
		u->cap = cap;
	}
	u->steps[u->len++] = (struct undo_step){run, release, arg};
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
