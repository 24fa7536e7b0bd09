/* Addresses and routes. linux/if_addr.h, linux/rtnetlink.h. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "netlink/nl.h"

#include <stdbool.h>
#include <stdint.h>

/* Appends the message that adds an address: scope global, and the broadcast address for IPv4
 * prefixes shorter than /31. nodad: skip duplicate address detection (IPv6). Refused with -EEXIST
 * when the link has it already. */
void addr_put(struct nl_req *req, uint32_t index, const struct prefix *p, bool nodad);

/* At once; 0 or -errno. */
int addr_add(struct nl *nl, uint32_t index, const struct prefix *p, bool nodad);
int addr_del(struct nl *nl, uint32_t index, const struct prefix *p);

struct addr {
	struct prefix prefix;
	uint32_t index;
	uint32_t flags; /* IFA_F_* */
	uint8_t scope;  /* RT_SCOPE_* */
};

/* Calls fn for the addresses of one link (index 0: of all), of a family (AF_UNSPEC: both), in
 * kernel order. fn as in nl_query(). */
int addr_each(struct nl *nl, uint32_t index, uint8_t family,
	int (*fn)(const struct addr *a, void *arg), void *arg);

/* A route as we add and look for it. Zero members are the kernel's defaults: main table, no
 * priority. */
struct route_spec {
	struct prefix dst;
	struct ip gw;   /* family 0: none */
	struct ip src;  /* preferred source; family 0: none */
	uint32_t index; /* output link */
	uint32_t table; /* 0: main */
	uint8_t scope;  /* RT_SCOPE_*; 0 is universe */
	uint32_t priority;
	uint32_t mtu;
	uint32_t advmss;
	bool onlink; /* RTNH_F_ONLINK: the gateway need not be in a known network */
};

/* Appends the message that adds a route: unicast, protocol boot. flags: NLM_F_EXCL, NLM_F_REPLACE
 * or 0 beside NLM_F_CREATE. */
void route_put(struct nl_req *req, const struct route_spec *r, uint16_t flags);

int route_add(struct nl *nl, const struct route_spec *r, uint16_t flags);
int route_del(struct nl *nl, const struct route_spec *r);

/* Calls fn for the routes of a family in a table (0: in any), in kernel order; of multipath routes
 * for each next hop. dst.len is 0 for default routes. */
int route_each(struct nl *nl, uint8_t family, uint32_t table,
	int (*fn)(const struct route_spec *r, void *arg), void *arg);

/* Which link traffic to this address leaves through; 0 or -errno. */
int route_lookup(struct nl *nl, const struct ip *dst, uint32_t *index);
