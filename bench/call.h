/* One call of a plugin, timed or followed. */
#pragma once

#include <stdbool.h>

struct call {
	const char *verb, *path, *id, *netns, *dir;
	char *const *argv; /* NULL: just the path */
	const char *input;
	bool trace;    /* follow the processes instead of timing */
	bool may_fail; /* do not end everything */
	/* out */
	double ms, cpu_ms; /* wall clock; user and system time, of children too */
	long peak_kb;      /* the largest process, by VmHWM; traced calls only */
	int programs;      /* executed, the plugin included; traced calls only */
	char *output;      /* freed by the caller */
	int status;
};

/* Carries it out. What fails ends everything, unless it may. */
void call(struct call *c);

/* For SIGALRM: a plugin that hangs is ended, and with it the run. */
void late(int sig);
