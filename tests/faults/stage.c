#include "stage.h"

#include "node.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const char *const both[] = {"c1", "c2", NULL};

bool is_verb(const struct stage *s, const char *verb)
{
	return !strcasecmp(s->lane->verb, verb);
}

/* Every added line must be one of `allowed`. */
static bool only_of(const char *diff, const char *allowed)
{
	char line[1024];

	for (const char *at = diff; *at;) {
		size_t n = strcspn(at, "\n");

		if (*at == '-' || n + 2 > sizeof(line))
			return false;
		snprintf(line, sizeof(line), "%.*s\n", (int)n - 1, at + 1);
		if (!strstr(allowed, line))
			return false;
		at += n + 1;
	}
	return true;
}

int first_lines(const char *text, int lines)
{
	size_t n = 0;

	while (lines-- && text[n])
		n += strcspn(text + n, "\n") + 1;
	return (int)n;
}

/* tuning's DEL never stands in the way, so the link may keep what it got. */
static char *without_own_link(const char *state)
{
	char *out = strdup(state), *to = out;

	for (const char *at = state; *at;) {
		size_t n = strcspn(at, "\n") + 1;

		if (strncmp(at, "c1: link eth0 ", 14) != 0) {
			memcpy(to, at, n);
			to += n;
		}
		at += n;
	}
	*to = '\0';
	return out;
}

bool is_state(
	const struct stage *s, const char *when, const char *want, const char *more, char **what)
{
	bool fine = false, gone = s->lane->recovery >= BY_DEL_GONE;

	/* No DEL gives sysctls back, so what a list did before it failed stays. */
	if (s->lane->attack == FAIL && want != s->loaded &&
		(s->lane->plugin == CNITOOL || want == s->unloaded || s->lane->sticky))
		node_set("c1", "net/core/somaxconn", "128");
	for (int tries = gone ? 200 : 1; tries-- && !fine; usleep(gone && !fine ? 10000 : 0)) {
		char *now = node_state(both, s->lane->attack == FAIL), *diff;

		if (s->lane->attack == FAIL && s->lane->plugin == TUNING && is_verb(s, "DEL")) {
			char *a = without_own_link(want), *b = without_own_link(now);

			diff = state_diff(a, b);
			free(a);
			free(b);
		} else {
			diff = state_diff(want, now);
		}
		fine = more ? only_of(diff, more) : !*diff;
		free(*what);
		*what = fine ? NULL : format("%s:\n%.*s", when, first_lines(diff, 14), diff);
		free(now);
		free(diff);
	}
	return fine;
}

bool finish(const struct stage *s, char **what)
{
	if (s->lane->plugin == CNITOOL)
		return must("gc", CNITOOL, (struct container *)&s->c1, NULL, what);
	if (s->lane->plugin >= CHAIN && plugins[s->lane->plugin].gc)
		return must("GC", s->lane->plugin, (struct container *)&s->c1, "[]", what);
	if (s->lane->plugin >= CHAIN)
		return must("DEL", s->lane->plugin, (struct container *)&s->c1, NULL, what) &&
		       must("DEL", s->lane->plugin, (struct container *)&s->c2, NULL, what);
	return chain_gc(&s->c1, CHAIN, "[]", what);
}

static bool whole(struct container *c, const struct stage *s, const char *verb, const char *command,
	bool (*chain)(struct container *c, int plugins, char **what), char **what)
{
	if (s->lane->plugin == CNITOOL)
		return must(command, CNITOOL, c, NULL, what);
	if (s->lane->plugin >= CHAIN)
		return must(verb, s->lane->plugin, c, NULL, what);
	return chain(c, CHAIN, what);
}

bool attach(struct container *c, const struct stage *s, char **what)
{
	return whole(c, s, "ADD", "add", chain_add, what);
}

bool detach(struct container *c, const struct stage *s, char **what)
{
	return whole(c, s, "DEL", "del", chain_del, what);
}

bool check(struct container *c, const struct stage *s, char **what)
{
	return whole(c, s, "CHECK", "check", chain_check, what);
}
