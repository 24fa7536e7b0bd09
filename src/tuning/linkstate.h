/* The settings of a link that tuning changes: what is wanted of it, or what it had before. */
#pragma once

#include "base/err.h"
#include "netlink/link.h"

#include <stdbool.h>
#include <stdint.h>

/* Only the settings with a has_ are meant. */
struct linkstate {
	bool has_mac, has_promisc, has_mtu, has_allmulti, has_txqlen;
	bool promisc, allmulti;
	uint8_t mac[6];
	uint32_t mtu, txqlen;
};

/* Whether any setting is meant at all. */
bool linkstate_any(const struct linkstate *s);

/* Adds what the link has now of the settings that `wanted` has and `to` has not yet: those it has
 * are from before an earlier change, and that is what there is to go back to. */
void linkstate_keep(struct linkstate *to, const struct linkstate *wanted, const struct link *l);

/* Gives the link all of the settings, also those behind one that its driver refuses. Returns 0 or
 * the first failure, -errno, *what then names the setting. */
int linkstate_apply(struct nl *nl, uint32_t index, const struct linkstate *s, const char **what);

/* CHECK: fails (ERR_CHECK) with the first setting that the link does not have. */
int linkstate_check(const struct linkstate *s, const struct link *l, struct err *e);
