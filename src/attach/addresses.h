/* Addresses and routes of a result on the container's interface. reference/bridge-ptp.md 2.5. */
#pragma once

#include "attach/sandbox.h"
#include "base/err.h"
#include "result/result.h"

#include <stdbool.h>
#include <stdint.h>

struct ifsetup {
	const char *ifname;
	uint32_t index;
	bool ignore_routers; /* with an IPv6 address: routers do not add any, nor routes */
	bool dad; /* duplicate address detection for the IPv6 addresses; waits for its end */
	/* No address has neighbours: the gateway is the only one on the link, and the networks of
	 * the addresses are behind it. */
	bool routed;
};

/* Gives the interface the result's addresses, brings it up, adds the routes; a route without
 * gateway goes through the first gateway of its family. Sets the sysctls that IPv6 addresses need
 * and those that make the kernel announce addresses. Undoing is the caller's: the interface goes
 * away. */
int ifsetup(
	const struct sandbox *sb, const struct ifsetup *s, const struct result *r, struct err *e);

/* Makes the kernel send a gratuitous ARP and an unsolicited neighbour advertisement for each
 * address of the interface, by setting the address it has. To be called when its peer forwards;
 * needs the sysctls ifsetup() wrote. Best effort. (A packet socket would do too, but closing one
 * takes the kernel 10 ms.) */
void ifsetup_announce(const struct sandbox *sb, uint32_t index, const uint8_t mac[static 6]);
