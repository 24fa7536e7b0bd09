/* Conntrack entries (flows): finding and deleting exactly some of them. ctnetlink,
 * linux/netfilter/nfnetlink_conntrack.h. */
#pragma once

#include "base/ip.h"
#include "netlink/nl.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_tuple {
	struct ip src;
	struct ip dst;
	uint8_t proto;  /* IPPROTO_* */
	uint16_t sport; /* host order, like dport; 0 for protocols without ports */
	uint16_t dport;
};

/* One flow: orig is its first packet before translation, reply the answer as it comes back. */
struct ct_flow {
	struct ct_tuple orig;
	struct ct_tuple reply;
	uint16_t zone;
	uint32_t id;
};

/* Which flows are wanted. Members that are 0 do not narrow the choice; proto must be set, and
 * family when reply_src is. Kernels from 5.8 on choose by themselves and copy only these out; for
 * older ones it is done here. */
struct ct_filter {
	uint8_t family; /* AF_INET, AF_INET6, AF_UNSPEC: both */
	uint8_t proto;
	uint16_t orig_dport;
	struct ip reply_src;
};

/* Deletes the flows that match the filter and that `doomed` (NULL: all) agrees to, each by its
 * tuple, zone and id, so that a newer flow with the same tuple survives. nl is a NETLINK_NETFILTER
 * socket; doomed must not use it. *count (may be NULL) is how many were found. Flows that were gone
 * by then are no failure. Returns 0 or -errno. */
int ct_flush(struct nl *nl, const struct ct_filter *f,
	bool (*doomed)(const struct ct_flow *flow, void *arg), void *arg, unsigned *count);
