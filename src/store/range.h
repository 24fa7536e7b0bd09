/* Ranges and range sets: which addresses a network may hand out. Arithmetic and rules only; where
 * they are written in a config is the applet's business. reference/ipam.md, section 1.1. */
#pragma once

#include "base/err.h"
#include "base/ip.h"

struct range {
	struct prefix subnet;
	struct ip start; /* first and last address, inclusive; family 0 before range_complete(): */
	struct ip end;   /* not given */
	struct ip gateway; /* likewise; never handed out by this range */
};

/* A pool: tried in order, one address is taken from all of it. */
struct range_set {
	struct range *list; /* owned */
	size_t len;
};

/* Fills in what was not given (start: network + 1; end: broadcast - 1 for IPv4, the last address
 * for IPv6; gateway: network + 1) and checks the rest. Returns 0, or -1 with e set
 * (ERR_INVALID_CONFIG). */
int range_complete(struct range *r, struct err *e);

/* Whether the address lies between start and end. */
bool range_has(const struct range *r, const struct ip *ip);

/* Completed ranges only: not empty, one family, no two that overlap. -1 with e set otherwise. */
int range_set_check(const struct range_set *set, struct err *e);

/* The range of the set the address lies in, or NULL. */
const struct range *range_set_find(const struct range_set *set, const struct ip *ip);

/* Whether some range of one overlaps with one of the other: the intervals count, not the subnets.
 */
bool range_set_overlap(const struct range_set *a, const struct range_set *b);

/* "start-end,start-end": owned by the caller, NULL when out of memory. */
char *range_set_text(const struct range_set *set);

/* Frees the list. */
void range_set_free(struct range_set *set);
