#include "base/trace.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int trace_fd = -1;
static char context[256];

static const char *const kind_names[] = {
	[TRACE_NETLINK] = "netlink",
	[TRACE_NFT] = "nft",
	[TRACE_FILE] = "file",
	[TRACE_DELEGATE] = "delegate",
	[TRACE_VERB] = "verb",
};

void trace_init(void)
{
	const char *to = getenv("CNIBOX_TRACE");

	if (!to || !*to)
		return;
	if (!strcmp(to, "stderr") || !strcmp(to, "1")) {
		trace_fd = STDERR_FILENO;
		return;
	}
	trace_fd =
		open(to, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (trace_fd < 0)
		fprintf(stderr, "cnibox: no trace: %s: %m\n", to);
}

void trace_enter(struct trace_saved *saved, const char *applet, const char *verb, const char *id,
	const char *ifname)
{
	if (trace_fd < 0)
		return;
	memcpy(saved->context, context, sizeof(context));
	snprintf(context, sizeof(context), "%s %s %.80s %s", applet, verb, id && *id ? id : "-",
		ifname && *ifname ? ifname : "-");
}

void trace_leave(const struct trace_saved *saved)
{
	if (trace_fd >= 0)
		memcpy(context, saved->context, sizeof(context));
}

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t trace_start(void)
{
	return trace_fd >= 0 ? now(CLOCK_MONOTONIC) : 0;
}

void trace_step(uint64_t start, enum trace_kind kind, int sys, const char *fmt, ...)
{
	uint64_t took, wall;
	char what[512], line[1024];
	va_list ap;
	int n;

	if (trace_fd < 0)
		return;
	took = now(CLOCK_MONOTONIC) - start;
	wall = now(CLOCK_REALTIME);
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	n = snprintf(line, sizeof(line), "%llu.%06llu %d %s | %s | %s | %llu us | %s\n",
		(unsigned long long)(wall / 1000000000u),
		(unsigned long long)(wall % 1000000000u / 1000), getpid(), context,
		kind_names[kind], what, (unsigned long long)(took / 1000),
		sys == 0  ? "ok"
		: sys > 0 ? strerror(sys)
			  : "failed");
	/* One write per line, so that lines of concurrent plugins do not mix. A lost line is no
	 * reason to fail a container. */
	if (n > 0 && write(trace_fd, line, (size_t)n) < 0)
		return;
}
