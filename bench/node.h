/* A side: a process that is a node of its own, and makes the calls it is told to. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define STEPS 4 /* plugins of a chain, at most */

enum what { CHAIN, LEASE, FILL, PROGRAM, NETNS, STOP };
struct order {
	enum what what;
	int list; /* CHAIN: which of the table */
	char verb[8];
	unsigned int round;
	unsigned int leases;
	unsigned int crowd; /* which of those that are there to stay; 0: none of them */
	bool trace, bandwidth;
	char program[256];
};
struct reply {
	int steps;
	char plugin[STEPS][16];
	double ms[STEPS], cpu_ms[STEPS];
	long peak_kb[STEPS];
	int programs[STEPS];
	bool failed[STEPS];
};
struct side {
	const char *name, *path;
	bool floor;
	pid_t pid;
	int sock;
};

/* Lists to run. The first is the chain; a line of the table in node.c makes one more. */
struct list {
	const char *name;
	const char *plugins; /* JSON */
};
extern const struct list lists[];
extern const int list_count;

/* Whether the side has the plugins of the list; the floor has the chain's only. */
bool has_list(const struct side *s, int list);

/* Forks the node; its stores are below store_dir, NULL: on tmpfs. */
void start_side(struct side *s, const char *store_dir);
void stop_side(struct side *s);

/* One order carried out. */
struct reply ask(const struct side *s, const struct order *o);
