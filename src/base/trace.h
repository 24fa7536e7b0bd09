/* The opt-in trace: one line per step, with how long it took and how it ended. CNIBOX_TRACE in the
 * environment names where it goes: "stderr" or "1", else a file that lines are appended to.
 *
 *   1700000000.123456 4711 bridge ADD c1 eth0 | netlink | newlink veth1234abcd | 812 us | ok
 *
 * Costs one branch per step when it is off. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum trace_kind { TRACE_NETLINK, TRACE_NFT, TRACE_FILE, TRACE_DELEGATE, TRACE_VERB };

/* Reads the environment; called once by main. Never fails: a trace that cannot be opened is
 * reported on stderr and off. */
void trace_init(void);

/* Names what is running, for the head of each line: applet, verb, container, interface. *saved
 * receives what was named before, for trace_leave(): applets call each other in one process. */
struct trace_saved {
	char context[256];
};
void trace_enter(struct trace_saved *saved, const char *applet, const char *verb, const char *id,
	const char *ifname);
void trace_leave(const struct trace_saved *saved);

/* The start of a step: the clock in nanoseconds, or 0 when tracing is off. */
uint64_t trace_start(void);

/* The end of a step: sys is 0 for success, an errno value, or -1 for "failed". */
void trace_step(uint64_t start, enum trace_kind kind, int sys, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
