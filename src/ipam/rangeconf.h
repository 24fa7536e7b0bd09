/* Range sets as host-local's configuration writes them. reference/ipam.md, section 1.1. */
#pragma once

#include "base/err.h"
#include "store/range.h"
#include "json/json.h"

#include <stddef.h>
#include <stdint.h>

struct range_sets {
	struct range_set *list; /* owned */
	size_t len;
};

/* Reads runtimeConfig's ipRanges, then the ipam object's own legacy range, then its ranges, in this
 * order; either object may be NULL. Completes and checks each set, and that no two overlap. Returns
 * 0, or -1 with e set (ERR_INVALID_CONFIG); sets is to be freed in either case. */
int rangeconf_read(const json *ipam, const json *runtime, struct range_sets *sets, struct err *e);

/* How many addresses they can hand out; UINT64_MAX: so many or more. */
uint64_t range_sets_capacity(const struct range_sets *sets);

/* Frees the sets and their ranges. */
void range_sets_free(struct range_sets *sets);
