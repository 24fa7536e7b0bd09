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

/* Removes the addresses that are in the way of the one just added, each after `keep` (0, or -1 with
 * e set) was told of it, so that it can be put back. */
int gateway_replace(struct nl *nl, const struct link *l, const struct prefix *gw,
	int (*keep)(const struct prefix *former, void *arg, struct err *e), void *arg,
	struct err *e);

/* Fails when the gateway is an IPv6 address and the host has IPv6 switched off, in general or on
 * this link: the kernel would only say that permission is denied. ERR_SYSTEM. */
int gateway_check_ipv6(const char *ifname, const struct ip *gateway, struct err *e);

/* No container may advertise itself to the host as a router: accept_ra of the link is set to 0, by
 * sysctl_set() or its like. Best effort: there may be no IPv6. */
void gateway_ignore_routers(const char *ifname, int (*set)(const char *path, const char *value));

/* Lets the host forward packets of that family, from all of its links to all. Never taken back:
 * others may count on it. */
int gateway_forward(uint8_t family, struct err *e);
