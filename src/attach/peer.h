/* The two ends of an existing veth pair: for plugins that are called after the one that made it. */
#pragma once

#include "base/err.h"
#include "netlink/link.h"

/* Finds the host's end of the pair whose other end is the link `ifname` in the namespace `netns`;
 * host is a routing socket in the own one. That the two are one pair is proven from both ends: an
 * index alone may mean another link in another namespace. Fails (ERR_SYSTEM) when there is no such
 * link, when it is no veth, or its peer is elsewhere; e->sys tells whether that is for sure
 * (err_is_passing()). */
int peer_find(struct nl *host, int netns, const char *ifname, struct link *peer, struct err *e);
