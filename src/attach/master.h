/* The link that a container's link sits on: macvlan, ipvlan and vlan. */
#pragma once

#include "base/err.h"
#include "netlink/link.h"
#include "result/result.h"

/* The one interface that a list's result so far has in this namespace, CNI_NETNS, or NULL for the
 * host; or its only one, when it does not say where that is. Borrowed; NULL when there is none, or
 * more. */
const char *master_chained(const struct result *prev, const char *netns);

/* Looks it up by name (alternative names work too) in the namespace of nl; NULL: the link that the
 * default route leaves through, IPv4's first, else IPv6's. Of several routes the one with the
 * lowest metric counts, of several next hops the first. ERR_INVALID_CONFIG when there is no such
 * link. */
int master_find(struct nl *nl, const char *name, struct link *out, struct err *e);
