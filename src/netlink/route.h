/* Routes. linux/rtnetlink.h. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "netlink/nl.h"

#include <stdbool.h>
#include <stdint.h>

/* A route as we add and look for it. Zero members are the kernel's defaults: main table, no
 * priority. */
struct route_spec {
	struct prefix dst;
	struct ip gw;   /* family 0: none */
	struct ip src;  /* preferred source; family 0: none */
	uint32_t index; /* output link */
	uint32_t table; /* 0: main */
	uint8_t scope;  /* RT_SCOPE_*; 0 is universe */
	uint8_t type;   /* RTN_*; 0 when adding: unicast */
	uint32_t priority;
	uint32_t mtu;
	uint32_t advmss;
	bool onlink; /* RTNH_F_ONLINK: the gateway need not be in a known network */
};

/* Appends the message that adds a route: protocol boot. flags: NLM_F_EXCL, NLM_F_REPLACE
 * or 0 beside NLM_F_CREATE. */
void route_put(struct nl_req *req, const struct route_spec *r, uint16_t flags);

/* At once; 0 or -errno. */
int route_add(struct nl *nl, const struct route_spec *r, uint16_t flags);

/* Calls fn for the routes of a family in a table (0: in any), in kernel order; of multipath routes
 * for each next hop. dst.len is 0 for default routes. */
int route_each(struct nl *nl, uint8_t family, uint32_t table,
	int (*fn)(const struct route_spec *r, void *arg), void *arg);

/* Which link traffic to this address leaves through; 0 or -errno. */
int route_lookup(struct nl *nl, const struct ip *dst, uint32_t *index);

/* Routes as the kernel has them, with every attribute, also those nothing here knows of: to put the
 * same ones elsewhere. */
struct route_copy {
	struct route_spec spec; /* what is known of it; of several next hops the first */
	struct nlmsghdr *msg;   /* owned */
};
struct route_list {
	struct route_copy *list;
	size_t len;
};
/* Those of a family (AF_UNSPEC: both) in a table (0: in any), in kernel order. Returns 0 or -errno,
 * *out is empty then. */
int route_list_get(struct nl *nl, uint8_t family, uint32_t table, struct route_list *out);
void route_list_free(struct route_list *l);
#define autoroutes __attribute__((cleanup(route_list_free))) struct route_list

/* Appends the message that makes the same route again, but for what is not zero here. flags as in
 * route_put(). */
struct route_change {
	uint32_t table;
	uint32_t index; /* the output link, of a route with one next hop */
};
void route_put_copy(struct nl_req *req, const struct route_copy *r,
	const struct route_change *change, uint16_t flags);
