#include "store/watch.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

/* Any that queues; the first ones belong to the C library and to those who began to count there. */
#define WATCH_SIGNAL SIGRTMAX

/* SIGIO comes instead when the queue is full. */
static void watched_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, WATCH_SIGNAL);
	sigaddset(set, SIGIO);
}

static void drain(struct watch *w)
{
	const struct timespec now = {0};
	sigset_t set;
	int sig;

	watched_signals(&set);
	/* It does not wait, so nothing can interrupt it. */
	while ((sig = sigtimedwait(&set, NULL, &now)) > 0) {
		if (sig == WATCH_SIGNAL)
			w->due--;
		else if (sig == SIGIO)
			w->lost = true;
	}
}

bool watch_begin(struct watch *w, int dir)
{
	sigset_t set;

	if (w->on) {
		drain(w);
		w->due = 0;
		w->lost = false;
		return true;
	}
	watched_signals(&set);
	if (sigprocmask(SIG_BLOCK, &set, &w->mask) < 0)
		return false;
	w->on = true;
	if (fcntl(dir, F_SETSIG, WATCH_SIGNAL) < 0 ||
		fcntl(dir, F_NOTIFY, DN_CREATE | DN_DELETE | DN_RENAME | DN_MULTISHOT) < 0) {
		watch_end(w, dir);
		return false;
	}
	return true;
}

void watch_expect(struct watch *w, int n)
{
	if (!w->on)
		return;
	w->due += n;
	/* Now and not at the end: the queue is not endless, and a GC makes many. */
	drain(w);
}

bool watch_is_ours(struct watch *w)
{
	if (!w->on)
		return false;
	drain(w);
	return !w->due && !w->lost;
}

void watch_end(struct watch *w, int dir)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	const int signals[] = {WATCH_SIGNAL, SIGIO};
	struct sigaction before;

	if (!w->on)
		return;
	fcntl(dir, F_NOTIFY, 0);
	/* What came until then would end the process when it is let through; ignoring it drops it.
	 */
	for (size_t i = 0; i < array_len(signals); i++) {
		sigaction(signals[i], &ignore, &before);
		sigaction(signals[i], &before, NULL);
	}
	sigprocmask(SIG_SETMASK, &w->mask, NULL);
	*w = (struct watch){0};
}
