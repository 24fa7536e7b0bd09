/* Addresses of links. linux/if_addr.h. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "netlink/nl.h"

#include <linux/if_addr.h>
#include <stdint.h>

/* Appends the message that adds an address: scope global, and the broadcast address for IPv4
 * prefixes shorter than /31. flags: IFA_F_NODAD skips duplicate address detection (IPv6, else
 * without effect), IFA_F_NOPREFIXROUTE makes no route to the address's network. Refused with
 * -EEXIST when the link has it already. */
void addr_put(struct nl_req *req, uint32_t index, const struct prefix *p, uint32_t flags);

/* At once; 0 or -errno. */
int addr_add(struct nl *nl, uint32_t index, const struct prefix *p, uint32_t flags);
int addr_del(struct nl *nl, uint32_t index, const struct prefix *p);

struct addr {
	struct prefix prefix;
	uint32_t index;
	uint32_t flags; /* IFA_F_* */
	uint8_t scope;  /* RT_SCOPE_* */
	/* As the kernel told of it, with what is not in here; valid as long as the call. */
	const struct nlmsghdr *msg;
};

/* Calls fn for the addresses of one link (index 0: of all), of a family (AF_UNSPEC: both), in
 * kernel order. fn as in nl_query(). */
int addr_each(struct nl *nl, uint32_t index, uint8_t family,
	int (*fn)(const struct addr *a, void *arg), void *arg);

/* Appends the message that adds the same address, with all that belongs to it (broadcast, far end,
 * label, lifetimes, metric), to a link again. msg: that of addr_each(), or a copy. */
void addr_put_copy(struct nl_req *req, uint32_t index, const struct nlmsghdr *msg);
