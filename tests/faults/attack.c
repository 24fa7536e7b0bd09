/* Attacks every plugin call of the chain at each of its system calls.
 *
 *   attack [--every K] [--jobs N] [--loader] [--gone] [--sticky] [--only TEXT] DIR
 *   attack inject [--kill N | --fail N=ERRNO | --sticky N=ERRNO] [--main] -- FILE ARG...
 *
 * DIR has the plugins. A lane is one call (say, ADD of portmap) attacked in one way; its points are
 * the system calls of that call, every K-th of them. After each point the node must be what it
 * would be had the call never been made, or run through, as the comments at kill_point() and
 * fail_point() say. Lanes run side by side, each on a node of its own; after a finding the lane
 * goes on with a new node.
 *
 *   --loader  begin at the exec, not at main
 *   --gone    also with the container's namespace gone before the clean-up
 *   --sticky  also with all later calls of the same kind failing
 *   --only    lanes whose title has TEXT in it
 *
 * The second form runs one program, named by its path, with the environment and standard input of
 * the caller, and lists its system calls or does that one thing to it. */
#include "chain.h"
#include "node.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FINDINGS 5

enum attack { KILL, FAIL };
enum recovery { NONE, BY_DEL, BY_GC, BY_DEL_GONE, BY_GC_GONE };
enum outcome { GOOD, END, BAD };

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

static struct {
	unsigned every;
	unsigned jobs;
	bool loader, gone, sticky;
	const char *only;
} opt = {.every = 1};

/* ---- a node under attack ---- */

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

static const char *const both[] = {"c1", "c2", NULL};
static const char c2_valid[] = "[{\"containerID\":\"c2\",\"ifname\":\"eth0\"}]";

static bool is_verb(const struct stage *s, const char *verb)
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

/* The length of the first so many lines. */
static int first_lines(const char *text, int lines)
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

/* The node is as `want`, or has of `more` (may be NULL) whatever it wants. Links of a namespace
 * that is gone take a moment to go. */
static bool is_state(
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

static bool finish(const struct stage *s, char **what)
{
	if (s->lane->plugin == CNITOOL)
		return must("gc", CNITOOL, (struct container *)&s->c1, NULL, what);
	if (s->lane->plugin == LOOPBACK)
		return must("DEL", LOOPBACK, (struct container *)&s->c1, NULL, what) &&
		       must("DEL", LOOPBACK, (struct container *)&s->c2, NULL, what);
	return chain_gc(&s->c1, CHAIN, "[]", what);
}

/* One verb of what the lane attacks: the list, loopback, or the list by cnitool. */
static bool whole(struct container *c, const struct stage *s, const char *verb, const char *command,
	bool (*chain)(struct container *c, int plugins, char **what), char **what)
{
	if (s->lane->plugin == CNITOOL)
		return must(command, CNITOOL, c, NULL, what);
	if (s->lane->plugin == LOOPBACK)
		return must(verb, LOOPBACK, c, NULL, what);
	return chain(c, CHAIN, what);
}

static bool attach(struct container *c, const struct stage *s, char **what)
{
	return whole(c, s, "ADD", "add", chain_add, what);
}

static bool detach(struct container *c, const struct stage *s, char **what)
{
	return whole(c, s, "DEL", "del", chain_del, what);
}

static bool check(struct container *c, const struct stage *s, char **what)
{
	return whole(c, s, "CHECK", "check", chain_check, what);
}

/* ---- killed ---- */

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

/* After a call that was killed, DEL of the whole chain (or a GC that knows of no valid attachment)
 * succeeds and leaves nothing but the shared bridge (the GC not even that); and the same container
 * and another one can be attached. */
static enum outcome kill_point(struct stage *s, char **what)
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

static bool prepare_kill(struct stage *s, char **what)
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

/* ---- failing ---- */

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
	if (ok && s->lane->plugin == BRIDGE)
		ok = again(s, "GC", "[]", what);
	if (ok && s->lane->plugin == CNITOOL)
		ok = again(s, "gc", NULL, what);
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
		if (is_chain(s) || tool)
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

static enum outcome fail_point(struct stage *s, char **what)
{
	return is_verb(s, "ADD")   ? fail_add(s, what)
	       : is_verb(s, "DEL") ? fail_del(s, what)
	       : is_verb(s, "GC")  ? fail_gc(s, what)
				   : fail_check(s, what);
}

static bool count_calls(struct stage *s, const char *valid, char **what)
{
	const struct injection inj = {.how = INJECT_COUNT, .from_main = true};

	call(s->lane->verb, s->lane->plugin, &s->c1, valid, &inj, &s->calls);
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
static bool prepare_fail(struct stage *s, char **what)
{
	int p = s->lane->plugin;
	bool tool = p == CNITOOL, gc = is_verb(s, "GC");

	if (gc && !tool && !chain_add(&s->c2, CHAIN, what))
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
	if (is_verb(s, "ADD") && (is_chain(s) || tool))
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
	if (p == BRIDGE && !gc && !again(s, "GC", "[]", what))
		return false;
	if (tool && !gc && !again(s, "gc", NULL, what))
		return false;
	/* Their GC leaves the container's own link as it is; that goes with the bridge's GC. */
	if ((p == TUNING || p == BANDWIDTH) && gc)
		return true;
	return is_state(s, "left by an ADD and a DEL that nobody disturbed", s->base, NULL, what);
}

/* ---- lanes ---- */

static void report(const struct stage *s, const struct progress *p, const char *what)
{
	printf("# %s, before system call %u of it (%s%s%s%s): %s\n", s->lane->title, p->next,
		p->next ? syscall_name(s->at.nr) : "none", s->error ? " fails with " : "",
		s->error ? errno_name(s->error) : "",
		s->lane->sticky ? ", and all that follow" : "", what ? what : "");
	fflush(stdout);
}

static void new_node(struct stage *s)
{
	node_enter();
	node_netns("c1");
	node_netns("c2");
	node_set("c1", "net/core/somaxconn", "128");
	write_conflist(&s->c1);
}

static enum outcome one_point(struct stage *s, struct progress *p)
{
	char *what = NULL;
	enum outcome end = s->lane->attack == KILL ? kill_point(s, &what) : fail_point(s, &what);

	if (end != END || s->lane->attack == FAIL)
		p->points++;
	if (end == BAD) {
		p->findings++;
		report(s, p, what);
	}
	free(what);
	return end;
}

/* Taking links away is slow, and the kernel does it for one after the other on the whole machine.
 * Forgetting a namespace is cheaper. */
static enum outcome point_on_fresh_node(struct stage *s, struct progress *p)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		new_node(s);
		_exit((int)one_point(s, p));
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) > BAD)
		exit(2);
	return (enum outcome)WEXITSTATUS(status);
}

static bool wants_fresh_nodes(const struct lane *l)
{
	if (l->plugin == LOOPBACK)
		return false;
	if (l->attack == KILL)
		return true;
	return (l->plugin == BRIDGE || l->plugin == CNITOOL) &&
	       (!strcasecmp(l->verb, "ADD") || !strcasecmp(l->verb, "DEL"));
}

/* Everything that the system call may fail with, or one of it where not all is tried. */
static enum outcome all_errors(struct stage *s, struct progress *p)
{
	const int *errors;
	enum outcome end = GOOD;
	size_t count = 0;

	if (s->n > s->calls.calls_len)
		return END;
	errors = syscall_errors(s->calls.calls[s->n - 1].nr);
	while (errors[count])
		count++;
	for (size_t i = 0; i < count && end == GOOD; i++) {
		if (opt.every > 1 && i != s->n / opt.every % count)
			continue;
		/* Signals do not come for ever, and a namespace does not refuse for ever. */
		if (s->lane->sticky && (errors[i] == EINTR || errors == syscall_errors(SYS_setns)))
			continue;
		s->error = errors[i];
		end = s->fresh ? point_on_fresh_node(s, p) : one_point(s, p);
	}
	/* With an earlier failure it may make fewer calls than were counted. */
	return end == END ? GOOD : end;
}

/* On one node, until something is found or the lane is through. */
static void attack_node(const struct lane *lane, struct progress *p)
{
	struct stage s = {
		.lane = lane, .c1 = {.name = "c1", .number = 1}, .c2 = {.name = "c2", .number = 2}};
	char *what = NULL;
	enum outcome end = GOOD;

	new_node(&s);
	if (!(lane->attack == KILL ? prepare_kill(&s, &what) : prepare_fail(&s, &what))) {
		p->next = 0;
		report(&s, p, what);
		p->done = true;
		p->findings++;
		return;
	}
	s.fresh = wants_fresh_nodes(lane);
	while (end != END && p->findings < MAX_FINDINGS && (end != BAD || s.fresh)) {
		s.n = p->next;
		end = lane->attack == FAIL ? all_errors(&s, p)
		      : s.fresh            ? point_on_fresh_node(&s, p)
					   : one_point(&s, p);
		p->next += opt.every;
	}
	p->done = end == END;
}

static void run_lane(struct lane *l)
{
	struct progress *p = l->progress;

	dup2(fileno(l->out), STDOUT_FILENO);
	while (!p->done && p->findings < MAX_FINDINGS) {
		unsigned found = p->findings;
		pid_t pid = fork();
		int status;

		if (!pid) {
			attack_node(l, p);
			fflush(stdout);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		if (status) {
			printf("# the attacker itself ended with status %#x\n", (unsigned)status);
			p->findings++;
			p->done = true;
		}
		if (found == p->findings && !p->done)
			p->done = true;
	}
	fflush(stdout);
	_exit(0);
}

static void begin(struct lane *l, unsigned index)
{
	l->progress = mmap(NULL, sizeof(*l->progress), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	l->out = tmpfile();
	if (l->progress == MAP_FAILED || !l->out)
		exit(2);
	/* Not the same places in every lane. */
	l->progress->next = 1 + index * 7 % opt.every;
	fflush(stdout);
	l->pid = fork();
	if (!l->pid)
		run_lane(l);
}

static bool end(struct lane *l, unsigned number)
{
	const struct progress *p = l->progress;
	char line[4096];

	printf("%s %u - %s: %u points%s\n", p->findings ? "not ok" : "ok", number, l->title,
		p->points, p->findings >= MAX_FINDINGS ? ", given up" : "");
	rewind(l->out);
	while (fgets(line, sizeof(line), l->out))
		printf("%s%s", *line == '#' ? "" : "#   ", line);
	fclose(l->out);
	fflush(stdout);
	return !p->findings;
}

static struct lane *lanes;
static unsigned lanes_len;

static void add_lane(
	enum attack attack, const char *verb, int plugin, enum recovery recovery, bool sticky)
{
	static const char *const how[] = {
		[BY_DEL] = ", then DEL",
		[BY_GC] = ", then GC",
		[BY_DEL_GONE] = ", namespace gone, then DEL",
		[BY_GC_GONE] = ", namespace gone, then GC",
	};
	struct lane l = {attack, verb, plugin, recovery, sticky, "", 0, NULL, NULL};

	snprintf(l.title, sizeof(l.title), "%s %s %s%s%s",
		attack == KILL ? "killed anywhere:" : "failing anywhere:", plugin_types[plugin],
		verb, recovery ? how[recovery] : "", sticky ? ", and on from there" : "");
	if (opt.only && !strstr(l.title, opt.only))
		return;
	lanes = realloc(lanes, (lanes_len + 1) * sizeof(l));
	lanes[lanes_len++] = l;
}

static void plan(void)
{
	static const char *const verbs[] = {"ADD", "DEL", "GC", "CHECK"};
	static const char *const commands[] = {"add", "del", "gc", "check"};

	for (int p = 0; p < PLUGINS; p++) {
		const char *const *v = p == CNITOOL ? commands : verbs;

		for (int i = 0; i < 3; i++) {
			if (p == LOOPBACK && i == 2)
				continue;
			for (enum recovery r = BY_DEL; r <= (opt.gone ? BY_GC_GONE : BY_GC); r++)
				if (p != LOOPBACK || r == BY_DEL)
					add_lane(KILL, v[i], p, r, false);
		}
		for (int i = 0; i < 4; i++)
			if (p != LOOPBACK || i != 2)
				add_lane(FAIL, v[i], p, NONE, false);
		for (int i = 0; i < 3 && opt.sticky; i++)
			if (p != LOOPBACK || i != 2)
				add_lane(FAIL, v[i], p, NONE, true);
	}
}

static int attack_all(void)
{
	unsigned begun = 0, ended = 0, running = 0, bad = 0, points = 0;

	plan();
	printf("1..%u\n", lanes_len);
	while (ended < lanes_len) {
		pid_t pid;

		while (begun < lanes_len && running < opt.jobs) {
			begin(&lanes[begun], begun);
			begun++;
			running++;
		}
		pid = wait(NULL);
		for (unsigned i = 0; i < begun; i++) {
			if (lanes[i].pid != pid)
				continue;
			bad += end(&lanes[i], ++ended) ? 0 : 1;
			points += lanes[i].progress->points;
			running--;
		}
	}
	printf("# %u points tried\n", points);
	return bad ? 1 : 0;
}

/* ---- one program ---- */

static int inject_usage(void)
{
	fputs("attack inject [--kill N | --fail N=ERRNO | --sticky N=ERRNO] [--main] -- FILE ARG...\n",
		stderr);
	return 2;
}

static bool parse_fail(const char *text, struct injection *inj)
{
	const char *name = strchr(text, '=');

	inj->how = INJECT_FAIL;
	inj->at = (unsigned)atoi(text);
	for (int e = 1; name && e < 134; e++)
		if (!strcmp(errno_name(e), name + 1))
			inj->error = e;
	return inj->error != 0;
}

static char *all_of_stdin(size_t *len)
{
	char *text = malloc(1 << 20);

	*len = isatty(0) ? 0 : fread(text, 1, 1 << 20, stdin);
	return text;
}

static int inject(char **argv)
{
	struct injection inj = {.how = INJECT_COUNT};
	struct ran r;
	size_t len;
	char *text;

	for (; *argv && strcmp(*argv, "--") != 0; argv++) {
		if (!strcmp(*argv, "--main")) {
			inj.from_main = true;
		} else if (!strcmp(*argv, "--kill") && argv[1]) {
			inj.how = INJECT_KILL;
			inj.at = (unsigned)atoi(*++argv);
		} else if ((!strcmp(*argv, "--fail") || !strcmp(*argv, "--sticky")) && argv[1]) {
			inj.sticky = argv[0][2] == 's';
			if (!parse_fail(*++argv, &inj))
				return inject_usage();
		} else {
			return inject_usage();
		}
	}
	if (!*argv || !argv[1])
		return inject_usage();
	text = all_of_stdin(&len);
	run_program(argv + 1, environ, text, len, &inj, 30000, &r);
	for (unsigned i = 0; i < r.calls_len; i++)
		fprintf(stderr, "%u %s %ld\n", i + 1, syscall_name(r.calls[i].nr), r.calls[i].arg);
	if (inj.how != INJECT_COUNT && !r.hit)
		fputs("attack: it makes fewer system calls\n", stderr);
	fputs(r.err, stderr);
	fwrite(r.out, 1, r.out_len, stdout);
	free(text);
	return WIFEXITED(r.status) ? WEXITSTATUS(r.status) : 128 + WTERMSIG(r.status);
}

static int usage(void)
{
	fputs("attack [--every K] [--jobs N] [--loader] [--gone] [--sticky] [--only TEXT] DIR\n",
		stderr);
	return 2;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "inject"))
		return inject(argv + 2);
	opt.jobs = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) * 2;
	for (argv++; *argv && **argv == '-'; argv++) {
		if (!strcmp(*argv, "--loader"))
			opt.loader = true;
		else if (!strcmp(*argv, "--gone"))
			opt.gone = true;
		else if (!strcmp(*argv, "--sticky"))
			opt.sticky = true;
		else if (!strcmp(*argv, "--every") && argv[1])
			opt.every = (unsigned)atoi(*++argv);
		else if (!strcmp(*argv, "--jobs") && argv[1])
			opt.jobs = (unsigned)atoi(*++argv);
		else if (!strcmp(*argv, "--only") && argv[1])
			opt.only = *++argv;
		else
			return usage();
	}
	if (!*argv || argv[1] || !opt.every || !opt.jobs)
		return usage();
	plugin_dir = realpath(*argv, NULL);
	if (!plugin_dir) {
		perror(*argv);
		return 2;
	}
	return attack_all();
}
