/* Whether a directory was changed by us alone. The kernel tells us of every name that appears in it
 * or goes, by a signal a change, before the one who made it has his answer (F_NOTIFY of fcntl(2),
 * with a real-time signal, which queues). So it is counted: the changes we made against those there
 * were. Times cannot tell it: what comes before a change of ours leaves no trace in them, nor does
 * what falls into the same tick of the clock.
 *
 * inotify would do as well, but closing it waits for a grace period of the kernel, 10 ms. */
#pragma once

#include <signal.h>
#include <stdbool.h>

struct watch {
	bool on;
	bool lost; /* signals did not fit into the queue */
	long due;  /* changes of ours that were not reported yet; below zero: others changed it */
	sigset_t mask; /* the caller's */
};

/* From here on. Already begun: counts from zero again. False when the kernel cannot
 * (CONFIG_DNOTIFY) or does not want to; then nothing is known. dir stays open until watch_end(). */
bool watch_begin(struct watch *w, int dir);

/* We made n changes. */
void watch_expect(struct watch *w, int n);

/* Whether every change since watch_begin() was announced by watch_expect(). */
bool watch_is_ours(struct watch *w);

/* Ends it, and gives the caller his signals back. Safe on a zeroed one. */
void watch_end(struct watch *w, int dir);
