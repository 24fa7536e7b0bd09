/* What bandwidth is asked for, and the token bucket that keeps it. reference/portmap-bandwidth.md,
 * sections 11 and 13. */
#pragma once

#include "base/err.h"
#include "cni/request.h"
#include "netlink/link.h"
#include "netlink/tc.h"

#include <stdint.h>

/* One direction: bits per second and bits. Rate 0: no limit. */
struct limit {
	uint64_t rate;
	uint64_t burst;
};

struct limits {
	struct limit in;  /* into the container */
	struct limit out; /* out of it */
	int64_t latency;  /* ms a packet may wait, 0: not configured */
};

/* Reads them from the config or, where it has none, from runtimeConfig. Returns 0, or -1 with e set
 * (ERR_INVALID_CONFIG) in the Go plugin's words. */
int limits_read(const struct request *req, struct limits *l, struct err *e);

/* The bucket for a limit, whose rate is not 0, on a link with that MTU. */
struct tbf limit_bucket(const struct limit *l, int64_t latency, uint32_t mtu);

/* CHECK: whether q, the root of link l, is that bucket, or the one that the Go plugin, or cnibox
 * 0.1, would have made. Returns 0, or -1 with e set (ERR_CHECK). */
int limit_check(const struct limit *limit, int64_t latency, const struct link *l,
	const struct qdisc *q, struct err *e);
