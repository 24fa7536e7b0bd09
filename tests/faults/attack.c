/* Attacks every plugin call of the chain at each of its system calls.
 *
 *   attack [--every K] [--jobs N] [--loader] [--gone] [--sticky] [--only TEXT] DIR
 *   attack inject [--kill N | --fail N=ERRNO | --sticky N=ERRNO] [--main] -- FILE ARG...
 *
 * DIR has the plugins. A lane is one call (say, ADD of portmap) attacked in one way; its points are
 * the system calls of that call, every K-th of them. After each point the node must be what it
 * would be had the call never been made, or run through, as stage.h and fail.c say. Lanes run side
 * by side, each on a node of its own; after a finding the lane goes on with a new node.
 *
 *   --loader  begin at the exec, not at main
 *   --gone    also with the container's namespace gone before the clean-up
 *   --sticky  also with all later calls of the same kind failing
 *   --only    lanes whose title has TEXT in it
 *
 * The second form runs one program, named by its path, with the environment and standard input of
 * the caller, and lists its system calls or does that one thing to it. */
#include "node.h"
#include "stage.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FINDINGS 5

struct options opt = {.every = 1};

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
	if (plugins[s->lane->plugin].master)
		node_master();
	if (plugins[s->lane->plugin].devices)
		node_devices();
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
	if (l->attack == KILL)
		return l->plugin != LOOPBACK;
	return plugins[l->plugin].links &&
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
static const char *absent[PLUGINS]; /* kinds of links that this kernel lacks */
static unsigned absent_len;

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
		attack == KILL ? "killed anywhere:" : "failing anywhere:", plugins[plugin].type,
		verb, recovery ? how[recovery] : "", sticky ? ", and on from there" : "");
	if (opt.only && !strstr(l.title, opt.only))
		return;
	lanes = realloc(lanes, (lanes_len + 1) * sizeof(l));
	lanes[lanes_len++] = l;
}

static bool is_there(int plugin)
{
	char *file = format("%s/%s", plugin_dir, plugins[plugin].type);
	bool found = !access(file, X_OK);

	free(file);
	return found;
}

static bool kernel_has(const char *kind)
{
	char *command = format("unshare --net sh -c 'ip link add m0 type bridge && "
			       "ip link add probe link m0 type %s' 2>/dev/null",
		kind);
	bool has = !system(command);

	free(command);
	return has;
}

static void plan(void)
{
	static const char *const verbs[] = {"ADD", "DEL", "GC", "CHECK"};
	static const char *const commands[] = {"add", "del", "gc", "check"};

	for (int p = 0; p < PLUGINS; p++) {
		const char *const *v = p == CNITOOL ? commands : verbs;

		if (!is_there(p))
			continue;
		if (plugins[p].kind && !kernel_has(plugins[p].kind)) {
			absent[absent_len++] = plugins[p].kind;
			continue;
		}
		/* A virtual device ends with the namespace it was taken to. */
		bool gone = opt.gone && !plugins[p].devices;

		for (int i = 0; i < 3; i++) {
			if (!plugins[p].gc && i == 2)
				continue;
			for (enum recovery r = BY_DEL; r <= (gone ? BY_GC_GONE : BY_GC); r++)
				if (plugins[p].gc || r == BY_DEL)
					add_lane(KILL, v[i], p, r, false);
		}
		for (int i = 0; i < 4; i++)
			if (plugins[p].gc || i != 2)
				add_lane(FAIL, v[i], p, NONE, false);
		for (int i = 0; i < 3 && opt.sticky; i++)
			if (plugins[p].gc || i != 2)
				add_lane(FAIL, v[i], p, NONE, true);
	}
}

/* The next lane that ends. Meanwhile a line now and then says that it goes on, for who watches. */
static pid_t wait_and_tell(void)
{
	static unsigned told;

	for (;;) {
		unsigned points = 0;
		pid_t pid;

		alarm(20);
		pid = wait(NULL);
		if (pid > 0)
			return pid;
		if (errno != EINTR)
			exit(2);
		for (unsigned i = 0; i < lanes_len; i++)
			points += lanes[i].progress ? lanes[i].progress->points : 0;
		if (points != told)
			printf("# %u points so far\n", points);
		fflush(stdout);
		told = points;
	}
}

static void ring(int sig)
{
	(void)sig;
}

static int attack_all(void)
{
	unsigned begun = 0, ended = 0, running = 0, bad = 0, points = 0;

	plan();
	printf("1..%u\n", lanes_len + absent_len);
	while (ended < lanes_len) {
		pid_t pid;

		while (begun < lanes_len && running < opt.jobs) {
			begin(&lanes[begun], begun);
			begun++;
			running++;
		}
		pid = wait_and_tell();
		for (unsigned i = 0; i < begun; i++) {
			if (lanes[i].pid != pid)
				continue;
			bad += end(&lanes[i], ++ended) ? 0 : 1;
			points += lanes[i].progress->points;
			running--;
		}
	}
	for (unsigned i = 0; i < absent_len; i++)
		printf("ok %u - %s # skip this kernel has no such links\n", lanes_len + i + 1,
			absent[i]);
	printf("# %u points tried\n", points);
	return bad ? 1 : 0;
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
	sigaction(SIGALRM, &(struct sigaction){.sa_handler = ring}, NULL);
	return attack_all();
}
