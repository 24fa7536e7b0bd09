/* Many containers at once.
 *
 *   storm [--count N] [--jobs N] [--networks N] [--shuffle N] [--tool] [--name TEXT] [--foreign]
 * DIR
 *
 * N containers (100), so many at once (16), on one bridge or spread over networks with a bridge
 * each: all are added, then checked, then deleted; how many a second is printed. Then everything at
 * once and in any order, --shuffle times (400): ADD, ADD of which a plugin is killed at some moment
 * with DEL and ADD after it, CHECK, DEL, DEL twice over, DEL of what was never there. No call may
 * fail (but the killed ones), no address be held twice, and when all are deleted only the bridges
 * are left.
 *
 *   --tool     through cnitool, which runs the chain in its own process
 *   --name     what the throughput is called in the output
 *   --foreign  other plugins than cnibox: version 1.0.0, no CHECK, no look at what is left */
#include "chain.h"
#include "node.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RESULT_MAX 8192
#define NETWORKS   8

static struct {
	unsigned count, jobs, networks, shuffle;
	bool tool, foreign;
	const char *name;
} opt = {100, 16, 1, 400, false, false, "cnibox"};

/* Shared by the processes. */
static struct shared {
	atomic_uint next, errors, killed;
	atomic_uint holder[NETWORKS][65536]; /* of the address 10.X.high.low: container + 1 */
	struct slot {
		atomic_bool busy;
		bool attached;
		unsigned address;
		char result[RESULT_MAX];
	} slots[];
} * all;

static char names[1024][16];
static unsigned findings;

static struct container container(unsigned i)
{
	static const char *const nets[] = {
		"net0", "net1", "net2", "net3", "net4", "net5", "net6", "net7"};
	static const char *const bridges[] = {
		"cni0", "cni1", "cni2", "cni3", "cni4", "cni5", "cni6", "cni7"};
	unsigned n = i % opt.networks;

	return (struct container){.name = names[i],
		.number = i + 1,
		.net = nets[n],
		.bridge = bridges[n],
		.subnet = 100 + n,
		.version = opt.foreign ? "1.0.0" : NULL,
		.result = *all->slots[i].result ? strdup(all->slots[i].result) : NULL};
}

static void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	int n = 0;

	if (atomic_fetch_add(&all->errors, 1) > 5)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	n = n > (int)sizeof(text) - 2 ? (int)sizeof(text) - 2 : n;
	for (int i = 0; i < n; i++)
		if (text[i] == '\n')
			text[i] = ' ';
	text[n] = '\n';
	if (write(STDOUT_FILENO, text, (size_t)n + 1) < 0)
		exit(2);
}

/* ---- one attachment ---- */

static void took_address(unsigned i, const char *result)
{
	const char *at = strstr(result, "\"address\"");
	unsigned net, b, c, was;

	if (!at || sscanf(at, "\"address\": \"10.%u.%u.%u", &net, &b, &c) != 3 || net < 100 ||
		net >= 100 + NETWORKS || b > 255 || c > 255) {
		complain("# %s: no address in %s", names[i], result);
		return;
	}
	all->slots[i].address = b << 8 | c;
	was = atomic_exchange(&all->holder[net - 100][b << 8 | c], i + 1);
	if (was)
		complain("# %s and %s both have 10.%u.%u.%u", names[i], names[was - 1], net, b, c);
}

static bool add(unsigned i)
{
	struct container c = container(i);
	struct slot *s = &all->slots[i];
	char *what = NULL;
	bool ok = opt.tool ? must("add", CNITOOL, &c, NULL, &what) : chain_add(&c, CHAIN, &what);

	if (!ok)
		complain("# %s", what);
	s->attached = ok;
	if (ok && c.result) {
		took_address(i, c.result);
		snprintf(s->result, RESULT_MAX, "%s", c.result);
	}
	free(c.result);
	free(what);
	return ok;
}

static bool check(unsigned i)
{
	struct container c = container(i);
	char *what = NULL;
	bool ok =
		opt.tool ? must("check", CNITOOL, &c, NULL, &what) : chain_check(&c, CHAIN, &what);

	if (!ok)
		complain("# %s", what);
	free(c.result);
	free(what);
	return ok;
}

static bool del(unsigned i)
{
	struct container c = container(i);
	struct slot *s = &all->slots[i];
	char *what = NULL;
	bool ok;

	/* From here on it may be somebody else's. */
	if (s->attached)
		atomic_store(&all->holder[i % opt.networks][s->address], 0);
	ok = opt.tool ? must("del", CNITOOL, &c, NULL, &what) : chain_del(&c, CHAIN, &what);
	if (!ok)
		complain("# %s", what);
	s->attached = false;
	*s->result = '\0';
	free(c.result);
	free(what);
	return ok;
}

/* An ADD of which one plugin is killed after some milliseconds, at most. */
static void add_killed(unsigned i)
{
	struct container c = container(i);
	int victim = rand() % CHAIN;
	char *what = NULL;
	bool ok = true;

	for (int p = 0; p < victim && ok; p++)
		ok = must("ADD", p, &c, NULL, &what);
	if (!ok) {
		complain("# %s", what);
	} else {
		struct ran r;

		call_for("ADD", victim, &c, 1 + rand() % 4, &r);
		ran_free(&r);
		atomic_fetch_add(&all->killed, 1);
	}
	keep_result(&c, NULL);
	free(what);
}

/* ---- all of them ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Runs `work` in opt.jobs processes; returns the seconds it took. */
static double in_parallel(void (*work)(void))
{
	double begin = now();

	atomic_store(&all->next, 0);
	fflush(stdout);
	for (unsigned i = 0; i < opt.jobs; i++)
		if (!fork()) {
			srand(i * 7919 + 17);
			work();
			_exit(0);
		}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return now() - begin;
}

static bool (*each)(unsigned i);

static void work_through(void)
{
	unsigned i;

	while ((i = atomic_fetch_add(&all->next, 1)) < opt.count)
		each(i);
}

static void one_of_many(unsigned i)
{
	struct slot *s = &all->slots[i];
	int dice = rand() % 10;

	if (!s->attached && dice == 0) {
		del(i); /* was never there, or is gone */
	} else if (!s->attached && dice == 1 && !opt.foreign && !opt.tool) {
		add_killed(i);
		if (del(i))
			add(i);
	} else if (!s->attached) {
		add(i);
	} else if (dice < 4) {
		check(i);
	} else {
		del(i);
		if (dice > 7)
			del(i);
	}
}

static void work_shuffled(void)
{
	while (atomic_fetch_add(&all->next, 1) < opt.shuffle) {
		unsigned i;

		do
			i = (unsigned)rand() % opt.count;
		while (atomic_exchange(&all->slots[i].busy, true));
		one_of_many(i);
		atomic_store(&all->slots[i].busy, false);
	}
}

static bool del_attached(unsigned i)
{
	return !all->slots[i].attached || del(i);
}

/* ---- the tests ---- */

static void verdict_of(const char *what)
{
	static unsigned number;
	unsigned errors = atomic_exchange(&all->errors, 0);

	findings += errors ? 1 : 0;
	printf("%s %u - storm, %s%s: %s\n", errors ? "not ok" : "ok", ++number, opt.name,
		opt.networks > 1 ? ", several networks" : "", what);
	fflush(stdout);
}

static void throughput(const char *verb, bool (*fn)(unsigned i))
{
	double seconds;
	char text[128];

	each = fn;
	seconds = in_parallel(work_through);
	snprintf(text, sizeof(text), "%u %s, %u at once: %.0f a second", opt.count, verb, opt.jobs,
		opt.count / seconds);
	verdict_of(text);
}

/* Bridges, their addresses and routes stay. */
static void nothing_left(const char *empty)
{
	char *state = node_state(NULL, false), *diff = state_diff(empty, state), *save;

	for (char *line = strtok_r(diff, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, "+link cni", 9) && strncmp(line, "+addr cni", 9) &&
			strncmp(line, "+route 10.10", 12) && strncmp(line, "+sysctl ", 8))
			complain("# left: %s", line);
	free(diff);
	free(state);
}

static int storm(void)
{
	char *empty, text[96];

	node_enter();
	for (unsigned i = 0; i < opt.count; i++) {
		snprintf(names[i], sizeof(names[i]), "s%u", i);
		node_netns(names[i]);
	}
	for (unsigned n = 0; n < opt.networks; n++) {
		struct container c = container(n);

		write_conflist(&c);
	}
	empty = node_state(NULL, false);
	throughput("ADDs", add);
	/* That of Go's portmap wants IPv6 chains which its ADD has no reason to make. */
	if (!opt.foreign)
		throughput("CHECKs", check);
	throughput("DELs", del);
	if (!opt.foreign) {
		nothing_left(empty);
		verdict_of("nothing is left");
	}
	if (opt.shuffle) {
		in_parallel(work_shuffled);
		each = del_attached;
		in_parallel(work_through);
		snprintf(text, sizeof(text), "%u calls in any order, %u of them killed",
			opt.shuffle, atomic_load(&all->killed));
		if (!opt.foreign)
			nothing_left(empty);
		verdict_of(text);
	}
	free(empty);
	return findings ? 1 : 0;
}

int main(int argc, char **argv)
{
	size_t size;

	(void)argc;
	for (argv++; *argv && **argv == '-'; argv++) {
		if (!strcmp(*argv, "--tool"))
			opt.tool = true;
		else if (!strcmp(*argv, "--foreign"))
			opt.foreign = true;
		else if (!strcmp(*argv, "--name") && argv[1])
			opt.name = *++argv;
		else if (!strcmp(*argv, "--count") && argv[1])
			opt.count = (unsigned)atoi(*++argv);
		else if (!strcmp(*argv, "--jobs") && argv[1])
			opt.jobs = (unsigned)atoi(*++argv);
		else if (!strcmp(*argv, "--networks") && argv[1])
			opt.networks = (unsigned)atoi(*++argv);
		else if (!strcmp(*argv, "--shuffle") && argv[1])
			opt.shuffle = (unsigned)atoi(*++argv);
		else
			break;
	}
	if (!*argv || argv[1] || !opt.count || opt.count > 1000 || !opt.jobs || !opt.networks ||
		opt.networks > NETWORKS) {
		fputs("storm [--count N] [--jobs N] [--networks N] [--shuffle N] [--tool] "
		      "[--name TEXT] [--foreign] DIR\n",
			stderr);
		return 2;
	}
	plugin_dir = realpath(*argv, NULL);
	size = sizeof(*all) + opt.count * sizeof(*all->slots);
	all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!plugin_dir || all == MAP_FAILED) {
		perror(*argv);
		return 2;
	}
	return storm();
}
