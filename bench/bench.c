/* Times CNI plugins against each other: see bench/run, which builds and calls it.
 *
 *   bench [--rounds N] [--leases N,N,...] [--store DIR] [--json] --side NAME=DIR...
 *
 * DIR holds the plugins, or is the floor program when it is a file. Each side is a process with a
 * network and a mount namespace of its own: a node that the others cannot disturb. All of them take
 * turns, call by call, and who begins changes every round, so that whatever the machine does in
 * between hits all alike.
 *
 * A call is what a runtime's is: posix_spawn (vfork), config on standard input, result from
 * standard output. The clock runs from the spawn until the process is reaped. What a runtime does
 * between the plugins of a list (prevResult from one to the next) is done outside of it; the time
 * of a chain is the sum of its plugins'. */
#include "node.h"
#include "series.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEVELS 8

static struct side sides[SIDES];
static const char *store_dir;

/* Every side once, a different one first each round. */
#define EACH(i, round)                                                                             \
	for (int k_ = 0, i = (int)((round) % (unsigned int)side_count); k_ < side_count;           \
		k_++, i = (i + 1) % side_count)

static const char *const verbs[] = {"ADD", "CHECK", "DEL"};

static void chain_sample(int i, const char *verb, const struct reply *r, unsigned int others)
{
	char row[80], table[64], some[32] = "";
	double sum = 0, cpu = 0;
	bool failed = false;

	for (int k = 0; k < r->steps; k++) {
		sum += r->ms[k];
		cpu += r->cpu_ms[k];
		failed |= r->failed[k];
	}
	if (others)
		snprintf(some, sizeof(some), ", %u others there", others);
	snprintf(row, sizeof(row), "chain %s%s", verb, some);
	if (!failed) {
		sample("dbnet chain, time", row, "ms", i, sum);
		sample("dbnet chain, CPU time", row, "ms", i, cpu);
	}
	snprintf(table, sizeof(table), "of which%s", some);
	if (sides[i].floor) {
		snprintf(row, sizeof(row), "without the process: %s", verb);
		sample(table, row, "ms", i, r->ms[STEPS - 1]);
		return;
	}
	for (int k = 0; k < r->steps; k++) {
		snprintf(row, sizeof(row), "%s %s%s", r->plugin[k], verb,
			r->failed[k] ? ", failing" : "");
		sample(table, row, "ms", i, r->ms[k]);
	}
}

static void bench_chain(unsigned int rounds, unsigned int others)
{
	const unsigned int warm = 2;

	for (unsigned int n = 0; n < rounds + warm; n++) {
		for (int v = 0; v < 3; v++) {
			struct order o = {.what = CHAIN, .round = n};

			strcpy(o.verb, verbs[v]);
			EACH(i, n)
			{
				struct reply r;

				if (sides[i].floor && v == 1)
					continue;
				r = ask(&sides[i], &o);
				if (n >= warm)
					chain_sample(i, verbs[v], &r, others);
			}
		}
	}
}

/* The same on a node where others are and stay, each with a port. */
static void bench_crowd(unsigned int rounds, unsigned int others)
{
	struct order o = {.what = NETNS, .crowd = others};

	for (int i = 0; i < side_count; i++)
		ask(&sides[i], &o);
	o.what = CHAIN;
	strcpy(o.verb, "ADD");
	for (o.crowd = 1; o.crowd <= others; o.crowd++) {
		o.round = 1000000 + o.crowd;
		for (int i = 0; i < side_count; i++)
			ask(&sides[i], &o);
	}
	bench_chain(rounds, others);
}

/* What only the first attachment of a node costs: on fresh nodes. */
static void bench_first(unsigned int rounds)
{
	for (unsigned int n = 0; n < rounds; n++) {
		EACH(i, n)
		{
			struct order o = {.what = CHAIN, .verb = "ADD", .round = n};
			struct side s = sides[i];
			struct reply r;
			double sum = 0;

			start_side(&s, store_dir);
			r = ask(&s, &o);
			for (int k = 0; k < r.steps; k++)
				sum += r.ms[k];
			sample("dbnet chain, time", "first ADD of a node", "ms", i, sum);
			strcpy(o.verb, "DEL");
			ask(&s, &o);
			stop_side(&s);
		}
	}
}

/* The lists of the table, each by itself, on the sides that have them. */
static void bench_lists(unsigned int rounds)
{
	for (int l = 1; l < list_count; l++) {
		bool out[SIDES] = {false};

		for (int i = 0; i < side_count; i++)
			out[i] = !has_list(&sides[i], l);
		for (unsigned int n = 0; n < rounds * 3; n++) {
			struct order o = {.what = CHAIN, .list = l, .round = n / 3};
			char row[64];

			strcpy(o.verb, verbs[n % 3]);
			EACH(i, n / 3)
			{
				struct reply r;

				if (out[i])
					continue;
				r = ask(&sides[i], &o);
				out[i] = r.failed[0] && !(n % 3);
				snprintf(row, sizeof(row), "%s %s%s", lists[l].name, o.verb,
					r.failed[0] ? ", failing" : "");
				sample("main plugins with host-local, time", row, "ms", i, r.ms[0]);
			}
		}
	}
}

static void bench_leases(const unsigned int *levels, unsigned int rounds)
{
	char row[64], table[64];

	snprintf(table, sizeof(table), "host-local alone, store on %s",
		store_dir ? "disk" : "tmpfs");
	for (int l = 0; l < LEVELS && (!l || levels[l]); l++) {
		struct order o = {.what = FILL, .leases = levels[l]};

		for (int i = 0; i < side_count; i++)
			if (!sides[i].floor)
				ask(&sides[i], &o);
		o.what = LEASE;
		for (unsigned int n = 0; n < rounds + 1; n++) {
			for (int v = 0; v < 3; v += 2) {
				strcpy(o.verb, verbs[v]);
				o.round = n;
				EACH(i, n)
				{
					struct reply r;

					if (sides[i].floor)
						continue;
					r = ask(&sides[i], &o);
					if (!n && v)
						continue;
					snprintf(row, sizeof(row), "%s, %u leases%s", o.verb,
						levels[l], n ? "" : ", first call");
					sample(table, row, "ms", i, r.ms[0]);
				}
			}
		}
	}
}

static void bench_start(unsigned int rounds)
{
	static const char *const programs[] = {"bridge", "host-local"};

	for (unsigned int n = 0; n < rounds; n++) {
		for (int p = 0; p < 3; p++) {
			struct order o = {.what = PROGRAM, .verb = "VERSION", .round = n};
			char row[64];

			snprintf(o.program, sizeof(o.program), "%s",
				p < 2 ? programs[p] : "/bin/true");
			snprintf(row, sizeof(row), "%.40s%s", o.program, p < 2 ? " VERSION" : "");
			EACH(i, n)
			{
				struct reply r;

				if (sides[i].floor)
					continue;
				r = ask(&sides[i], &o);
				sample("start of a process", row, "ms", i, r.ms[0]);
			}
		}
	}
}

static void memory_sample(int i, const char *verb, const struct reply *r, int programs)
{
	for (int k = 0; k < r->steps; k++) {
		char row[64];
		const char *what = programs ? "programs executed" : "peak resident memory";

		snprintf(row, sizeof(row), "%s %s", r->plugin[k], verb);
		if (programs)
			sample(what, row, "", i, r->programs[k]);
		else
			sample(what, row, "KB", i, (double)r->peak_kb[k]);
	}
}

/* Traced, not timed: the largest process of each call, and how many programs it executes. */
static void bench_memory(void)
{
	struct reply r[SIDES][8] = {0};
	struct order o = {.what = CHAIN, .round = 3, .trace = true, .bandwidth = true};
	int plan = 0;

	for (int v = 0; v < 3; v++, plan++) {
		strcpy(o.verb, verbs[v]);
		for (int i = 0; i < side_count; i++)
			if (!sides[i].floor || v != 1)
				r[i][plan] = ask(&sides[i], &o);
	}
	for (int v = 0; v < 3; v += 2, plan++) {
		o.what = LEASE;
		strcpy(o.verb, verbs[v]);
		for (int i = 0; i < side_count; i++)
			if (!sides[i].floor)
				r[i][plan] = ask(&sides[i], &o);
	}
	for (int v = 0; v < 3; v += 2, plan++) {
		o.what = PROGRAM;
		strcpy(o.verb, verbs[v]);
		strcpy(o.program, "loopback");
		for (int i = 0; i < side_count; i++)
			if (!sides[i].floor) {
				r[i][plan] = ask(&sides[i], &o);
				strcpy(r[i][plan].plugin[0], "loopback");
			}
	}
	for (int programs = 0; programs < 2; programs++)
		for (int p = 0; p < plan; p++)
			for (int i = 0; i < side_count; i++)
				memory_sample(
					i, verbs[p < 3 ? p : (p - 3) % 2 * 2], &r[i][p], programs);
}

/* Code and data as installed; the plugins of the chain, and bandwidth and loopback. */
static void bench_size(void)
{
	static const char *const names[] = {
		"bridge", "host-local", "tuning", "portmap", "bandwidth", "loopback"};

	for (int i = 0; i < side_count; i++) {
		char path[512];
		struct stat st;
		ino_t seen[6];
		double sum = 0;
		int n = 0;

		for (int k = 0; k < 6 && !sides[i].floor; k++) {
			bool again = false;

			snprintf(path, sizeof(path), "%s/%s", sides[i].path, names[k]);
			if (stat(path, &st))
				continue;
			for (int j = 0; j < n; j++)
				again |= seen[j] == st.st_ino;
			if (again)
				continue;
			seen[n++] = st.st_ino;
			sum += (double)st.st_size / 1024;
		}
		if (!sides[i].floor)
			sample("size on disk", "six plugins, stripped", "KB", i, sum);
	}
}

static void add_side(const char *arg)
{
	const char *eq = strchr(arg, '=');
	struct stat st;

	if (!eq || side_count == SIDES || stat(eq + 1, &st))
		die(arg);
	sides[side_count].name = side_names[side_count] = strndup(arg, (size_t)(eq - arg));
	sides[side_count].path = eq + 1;
	sides[side_count].floor = S_ISREG(st.st_mode);
	side_count++;
}

static bool wanted(const char *list, const char *what)
{
	return !list || strstr(list, what);
}

int main(int argc, char **argv)
{
	unsigned int rounds = 100, levels[LEVELS] = {0, 10000, 50000, 60000};
	const char *only = NULL;
	bool json = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;
		else if (i + 1 == argc)
			die(argv[i]);
		else if (!strcmp(argv[i], "--rounds"))
			rounds = (unsigned int)atoi(argv[++i]);
		else if (!strcmp(argv[i], "--store"))
			store_dir = argv[++i];
		else if (!strcmp(argv[i], "--only"))
			only = argv[++i];
		else if (!strcmp(argv[i], "--side"))
			add_side(argv[++i]);
	}
	for (int i = 0; i < side_count; i++)
		start_side(&sides[i], store_dir);
	if (wanted(only, "chain"))
		bench_chain(rounds, 0);
	if (wanted(only, "lists"))
		bench_lists(rounds / 2 + 1);
	if (wanted(only, "first"))
		bench_first(rounds / 10 + 1);
	if (wanted(only, "leases"))
		bench_leases(levels, rounds / 5 + 1);
	if (wanted(only, "start"))
		bench_start(rounds);
	if (wanted(only, "memory"))
		bench_memory();
	if (wanted(only, "size"))
		bench_size();
	if (wanted(only, "crowd"))
		bench_crowd(rounds / 4 + 1, 200);
	for (int i = 0; i < side_count; i++)
		stop_side(&sides[i]);
	(json ? print_json : print_tables)();
	return 0;
}
