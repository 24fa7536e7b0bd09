/* The host as the containers' router: gateway addresses on a link of the host, forwarding. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "netlink/link.h"
#include "result/result.h"

#include <stdbool.h>
#include <stdint.h>

/* Gives each address of the result a gateway where IPAM named none: the first address of its
 * network. With `default_route` each family that has no default route gets one through it. */
int gateway_fill(struct result *r, bool default_route, struct err *e);

/* Puts an address on a link of the host that many containers share. One that is there is fine
 * (*added is false). Another address is in the way: of IPv4 any, of IPv6 one of an overlapping
 * network. Then it fails with ERR_CONFLICT, unless `force`: gateway_replace() is to follow. */
int gateway_add(struct nl *nl, const struct link *l, const struct prefix *gw, bool force,
	bool *added, struct err *e);

/* Removes the addresses that are in the way of the one just added. */
int gateway_replace(struct nl *nl, const struct link *l, const struct prefix *gw, struct err *e);

/* Lets the host forward packets of that family, from all of its links to all. Never taken back:
 * others may count on it. */
int gateway_forward(uint8_t family, struct err *e);
