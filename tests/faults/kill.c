/* Lanes that kill the call at one of its system calls. */
#include "node.h"
#include "stage.h"

#include <stdlib.h>
#include <string.h>

/* Brings the node to where the attacked call comes. */
static bool before_kill(struct stage *s, char **what)
{
	int p = s->lane->plugin;

	keep_result(&s->c1, NULL);
	if (is_verb(s, "ADD")) {
		for (int q = 0; q < p && p < CHAIN; q++)
			if (!must("ADD", q, &s->c1, NULL, what))
				return false;
		return true;
	}
	if (!attach(&s->c1, s, what))
		return false;
	if (p >= CHAIN)
		return true;
	if (is_verb(s, "GC")) {
		for (int q = 0; q < p; q++)
			if (!must("GC", q, &s->c1, "[]", what))
				return false;
		return true;
	}
	for (int q = CHAIN; q-- > p + 1;)
		if (!must("DEL", q, &s->c1, NULL, what))
			return false;
	return true;
}

static bool recover(struct stage *s, char **what)
{
	bool gone = s->lane->recovery >= BY_DEL_GONE, ok;

	/* The result of an ADD that did not end is nobody's. */
	if (is_verb(s, "ADD"))
		keep_result(&s->c1, NULL);
	if (gone)
		node_netns_gone("c1");
	if (s->lane->recovery == BY_DEL || s->lane->recovery == BY_DEL_GONE)
		ok = detach(&s->c1, s, what);
	else
		ok = finish(s, what);
	if (gone)
		node_netns("c1");
	return ok;
}

static bool works_again(struct stage *s, char **what)
{
	const char *a, *b;

	if (!attach(&s->c1, s, what) || !attach(&s->c2, s, what))
		return false;
	a = s->c1.result ? strstr(s->c1.result, "\"address\": \"10.") : NULL;
	b = s->c2.result ? strstr(s->c2.result, "\"address\": \"10.") : NULL;
	if (a && b && !strncmp(a, b, 13 + strcspn(a + 13, "\""))) {
		*what = format("two containers have the address %.32s", a);
		return false;
	}
	return check(&s->c1, s, what) && check(&s->c2, s, what);
}

enum outcome kill_point(struct stage *s, char **what)
{
	const struct injection inj = {.how = INJECT_KILL, .at = s->n, .from_main = !opt.loader};
	bool by_del = s->lane->recovery == BY_DEL || s->lane->recovery == BY_DEL_GONE;
	struct ran r;
	bool end;

	if (!before_kill(s, what))
		return BAD;
	call(s->lane->verb, s->lane->plugin, &s->c1, "[]", &inj, &r);
	s->at = r.at;
	end = !r.hit;
	if (end && r.status) {
		*what = format("untouched, it failed: %s%s", r.out, r.err);
		ran_free(&r);
		return BAD;
	}
	ran_free(&r);
	if (!recover(s, what) || !is_state(s, by_del ? "left after DEL" : "left after GC", s->empty,
					 by_del ? s->after_del : NULL, what))
		return BAD;
	if (end)
		return END;
	if (!works_again(s, what))
		return BAD;
	/* This node is not used again. */
	if (s->fresh && s->n % 4)
		return GOOD;
	if (!finish(s, what) || !is_state(s, "left at the end", s->empty,
					s->lane->plugin == LOOPBACK ? s->after_del : NULL, what))
		return BAD;
	return GOOD;
}

bool prepare_kill(struct stage *s, char **what)
{
	/* The kernel gives lo addresses when it goes up first, and leaves them. */
	if (s->lane->plugin == LOOPBACK && (!works_again(s, what) || !finish(s, what)))
		return false;
	s->empty = node_state(both, false);
	if (!attach(&s->c1, s, what) || !detach(&s->c1, s, what))
		return false;
	s->after_del = node_state(both, false);
	return finish(s, what) && is_state(s, "left by the chain itself", s->empty, NULL, what);
}
