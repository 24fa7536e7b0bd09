/* The IFB through which goes what a container sends: its names, whose it is, finding, making and
 * sweeping it. reference/portmap-bandwidth.md, sections 13 and 16. */
#pragma once

#include "base/err.h"
#include "cni/owner.h"
#include "cni/request.h"
#include "netlink/link.h"

/* The attachment's IFB, whoever made it; veth is the host's end of its pair, NULL when that is not
 * known. Returns 0; -ENODEV when there is none, with *name the one to use for a new one; or -errno.
 */
int ifb_find(struct nl *nl, const struct owner *o, const struct link *veth, struct link *ifb,
	char name[static IFNAMSIZ]);

/* Makes one under that name, with an MTU, down. Its owner is in the MAC address from the first
 * moment; the alias is the caller's to set. Returns 0, or -1 with e set and nothing made. */
int ifb_create(struct nl *nl, const struct owner *o, const char *name, uint32_t mtu,
	struct link *ifb, struct err *e);

/* Removes the IFBs of o's network whose attachment is not in the set. Those that the Go plugin made
 * say nothing of their network and are left. Returns 0 or -errno. */
int ifb_sweep(struct nl *nl, const struct owner *o, const struct valid_set *valid);
