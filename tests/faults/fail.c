/* Lanes that make one of the call's system calls fail. */
#include "node.h"
#include "stage.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char c2_valid[] = "[{\"containerID\":\"c2\",\"ifname\":\"eth0\"}]";

/* The result without what differs from one ADD to the next: addresses, MACs, names made at random.
 */
static char *shape_of(const char *text)
{
	char *out = strdup(text), *to = out;

	for (const char *at = text; *at;) {
		size_t n = *at == '"' ? strcspn(at + 1, "\"") : 0;
		const char *v = at + 1;
		bool mac = n == 17 && v[2] == ':' && v[5] == ':' && v[14] == ':';
		bool ip = (n && v[n - 3] == '/') && (!strncmp(v, "10.", 3) || !strncmp(v, "fd", 2));
		bool veth = n > 4 && !strncmp(v, "veth", 4);

		if (mac || ip || veth) {
			to += sprintf(to, "\"%s\"", mac ? "M" : ip ? "A" : "V");
			at += n + 2;
		} else {
			*to++ = *at++;
		}
	}
	*to = '\0';
	return out;
}

/* Standard output itself failed: then there is no error object, only a line on standard error. */
static bool lost_output(const struct stage *s, const struct ran *r)
{
	long nr = r->at.nr;

	(void)s;
	return r->hit && r->at.arg == 1 && (nr == SYS_write || nr == SYS_writev) &&
	       WIFEXITED(r->status) && WEXITSTATUS(r->status) == 1 && *r->err;
}

/* cnitool's errors are text for people. */
static const char *tool_verdict(const struct ran *r, int *code)
{
	*code = 0;
	if (r->timed_out)
		return "hangs";
	if (!WIFEXITED(r->status) || WEXITSTATUS(r->status) > 1)
		return "ended by a signal or with a strange status";
	if (!WEXITSTATUS(r->status))
		return NULL;
	*code = 1;
	if (r->out_len)
		return "failed, and printed something on standard output";
	return *r->err ? NULL : "failed without a word";
}

/* The attacked call; GOOD means that *code says how it ended. */
static enum outcome strike(
	struct stage *s, const char *valid, int *code, struct ran *r, char **what)
{
	const struct injection inj = {.how = INJECT_FAIL,
		.at = s->n,
		.error = s->error,
		.sticky = s->lane->sticky,
		.from_main = true};
	const char *wrong;

	call(s->lane->verb, s->lane->plugin, &s->c1, valid, &inj, r);
	s->at = r->at;
	wrong = s->lane->plugin == CNITOOL ? tool_verdict(r, code) : verdict(r, code);
	if (wrong && lost_output(s, r)) {
		*code = 5;
		wrong = NULL;
	}
	/* Descriptors 0 to 2 cannot be secured, or nothing can be said. */
	if (wrong && s->lane->sticky && WIFEXITED(r->status) && WEXITSTATUS(r->status) == 1)
		wrong = NULL, *code = *code ? *code : 5;
	/* Who cannot get back into the namespace of the node had better do nothing at all. */
	if (wrong && s->lane->sticky && r->at.nr == SYS_setns && WIFSIGNALED(r->status) &&
		WTERMSIG(r->status) == SIGABRT)
		wrong = NULL, *code = 5;
	if (wrong) {
		*what = format("%s: status %#x, printed: %s%s", wrong, (unsigned)r->status, r->out,
			r->err);
		return BAD;
	}
	if (!r->hit && *code) {
		*what = format("untouched, it failed: %s%s", r->out, r->err);
		return BAD;
	}
	return r->hit ? GOOD : END;
}

static bool again(struct stage *s, const char *verb, const char *valid, char **what)
{
	return must(verb, s->lane->plugin, &s->c1, valid, what);
}

static bool is_chain(const struct stage *s)
{
	return s->lane->plugin < CHAIN;
}

/* From "attached up to this plugin" back to "attached up to the one before". */
static bool unwind(struct stage *s, char **what)
{
	bool ok;

	/* This node is not used again. */
	if (s->fresh && s->n % 4)
		return true;
	ok = again(s, s->lane->plugin == CNITOOL ? "del" : "DEL", NULL, what);
	keep_result(&s->c1, s->prev);
	ok = ok && is_state(s, "left after DEL", s->unloaded, NULL, what);
	if (ok && plugins[s->lane->plugin].remains)
		ok = again(s, s->lane->plugin == CNITOOL ? "gc" : "GC", "[]", what);
	return ok;
}

/* An ADD that fails has printed one error object and left nothing; the next one works. One that
 * succeeds nevertheless has done all of it. */
static enum outcome fail_add(struct stage *s, char **what)
{
	bool tool = s->lane->plugin == CNITOOL;
	enum outcome end;
	struct ran r;
	char *shape;
	int code;

	end = strike(s, NULL, &code, &r, what);
	if (end != BAD && !code) {
		shape = shape_of(r.out);
		if (strcmp(shape, s->shape) != 0) {
			*what = format("a different result: %s", r.out);
			end = BAD;
		}
		free(shape);
		if (plugins[s->lane->plugin].result)
			keep_result(&s->c1, r.out);
	}
	ran_free(&r);
	if (end == BAD)
		return BAD;
	if (code) {
		if (s->lane->sticky && !again(s, tool ? "del" : "DEL", NULL, what))
			return BAD;
		if (!is_state(s, "left by an ADD that failed", s->base,
			    s->lane->sticky || tool ? s->unloaded : NULL, what) ||
			!again(s, tool ? "add" : "ADD", NULL, what))
			return BAD;
	}
	if (!again(s, tool ? "check" : "CHECK", NULL, what) || !unwind(s, what))
		return BAD;
	return end;
}

/* A DEL that fails is repeated. */
static enum outcome fail_del(struct stage *s, char **what)
{
	bool tool = s->lane->plugin == CNITOOL;
	enum outcome end;
	struct ran r;
	int code;

	if (!again(s, tool ? "add" : "ADD", NULL, what))
		return BAD;
	end = strike(s, NULL, &code, &r, what);
	ran_free(&r);
	if (end == BAD)
		return BAD;
	if (!code && s->lane->plugin != TUNING &&
		!is_state(s, "left by a DEL that said it succeeded", s->unloaded, s->backup, what))
		return BAD;
	return unwind(s, what) ? end : BAD;
}

/* A GC that fails is repeated; the valid attachment (c2) stays whole. */
static enum outcome fail_gc(struct stage *s, char **what)
{
	bool tool = s->lane->plugin == CNITOOL;
	enum outcome end;
	struct ran r;
	int code;

	if (!again(s, tool ? "add" : "ADD", NULL, what))
		return BAD;
	end = strike(s, c2_valid, &code, &r, what);
	ran_free(&r);
	keep_result(&s->c1, s->prev);
	if (end == BAD || (code && !again(s, tool ? "gc" : "GC", c2_valid, what)) ||
		!is_state(s,
			code ? "left after a second GC" : "left by a GC that said it succeeded",
			s->unloaded, NULL, what))
		return BAD;
	if (!tool && !must("CHECK", s->lane->plugin, &s->c2, NULL, what))
		return BAD;
	return end;
}

/* A CHECK changes nothing. */
static enum outcome fail_check(struct stage *s, char **what)
{
	enum outcome end;
	struct ran r;
	int code;

	end = strike(s, NULL, &code, &r, what);
	ran_free(&r);
	if (end == BAD || !is_state(s, "changed by a CHECK", s->loaded, NULL, what))
		return BAD;
	return end;
}

enum outcome fail_point(struct stage *s, char **what)
{
	return is_verb(s, "ADD")   ? fail_add(s, what)
	       : is_verb(s, "DEL") ? fail_del(s, what)
	       : is_verb(s, "GC")  ? fail_gc(s, what)
				   : fail_check(s, what);
}

/* A list of four plugins in one process makes 1500. */
#define MANY_CALLS 5000

static bool count_calls(struct stage *s, const char *valid, char **what)
{
	const struct injection inj = {.how = INJECT_COUNT, .from_main = true};

	call(s->lane->verb, s->lane->plugin, &s->c1, valid, &inj, &s->calls);
	if (s->calls.calls_len > MANY_CALLS) {
		*what = format(
			"untouched, it makes %u system calls, %s and %s in the middle: it spins",
			s->calls.calls_len, syscall_name(s->calls.calls[s->calls.calls_len / 2].nr),
			syscall_name(s->calls.calls[s->calls.calls_len / 2 + 1].nr));
		return false;
	}
	if (!s->calls.status)
		return true;
	*what = format("untouched, it failed: %s%s", s->calls.out, s->calls.err);
	return false;
}

/* So many lines from the one that begins so; NULL when there is none. */
static char *line_of(const char *state, const char *begin, int lines)
{
	const char *at = strstr(state, begin);

	return at ? strndup(at, (size_t)first_lines(at, lines)) : NULL;
}

/* Walks through one attachment, noting what the node and the result look like on the way. */
bool prepare_fail(struct stage *s, char **what)
{
	int p = s->lane->plugin;
	bool tool = p == CNITOOL, gc = is_verb(s, "GC");

	if (gc && !tool && !attach(&s->c2, s, what))
		return false;
	for (int q = 0; q < p && is_chain(s); q++)
		if (!must("ADD", q, &s->c1, NULL, what))
			return false;
	s->prev = s->c1.result ? strdup(s->c1.result) : NULL;
	node_set("c1", "net/core/somaxconn", "128");
	if (p == LOOPBACK && (!again(s, "ADD", NULL, what) || !again(s, "DEL", NULL, what)))
		return false;
	s->base = node_state(both, true);
	if (is_verb(s, "ADD") && !count_calls(s, NULL, what))
		return false;
	if (is_verb(s, "ADD"))
		s->shape = shape_of(s->calls.out);
	if (is_verb(s, "ADD") && plugins[p].result)
		keep_result(&s->c1, s->calls.out);
	else if (!is_verb(s, "ADD") && !again(s, tool ? "add" : "ADD", NULL, what))
		return false;
	s->loaded = node_state(both, true);
	s->backup = tool             ? line_of(s->loaded, "file /run/cni/tuning/", 1)
		    : p == BANDWIDTH ? line_of(s->loaded, "qdisc veth", 2)
				     : NULL;
	if (is_verb(s, "CHECK"))
		return count_calls(s, NULL, what);
	if (is_verb(s, "ADD") ? !again(s, tool ? "del" : "DEL", NULL, what)
			      : !count_calls(s, c2_valid, what))
		return false;
	keep_result(&s->c1, s->prev);
	node_set("c1", "net/core/somaxconn", "128");
	s->unloaded = node_state(both, true);
	if (plugins[p].remains && !gc && !again(s, tool ? "gc" : "GC", "[]", what))
		return false;
	/* Their GC leaves the container's own link as it is; that goes with the bridge's GC. */
	if ((p == TUNING || p == BANDWIDTH) && gc)
		return true;
	return is_state(s, "left by an ADD and a DEL that nobody disturbed", s->base, NULL, what);
}
