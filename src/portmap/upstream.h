/* Port mappings that upstream's portmap made and that outlive a change to cnibox.
 * reference/portmap-bandwidth.md 5, 6 and 9. */
#pragma once

#include "base/err.h"
#include "cni/owner.h"
#include "netlink/nft.h"
#include "result/result.h"

#include <stdbool.h>

/* Removes what upstream made for this attachment: the chains of its iptables backend (nf_tables
 * variant), found by the hash of network and container id, and, if `rules` is set, the rules of its
 * nftables backend. Those carry the container id alone; with the addresses of prev (may be NULL)
 * only rules with one of them are taken, so that the container's other networks keep theirs.
 * Nothing there is success. Returns 0 or -1 with e set. */
int upstream_del(
	struct nft *n, const struct owner *o, bool rules, const struct result *prev, struct err *e);

/* Whether upstream's iptables backend has mapped ports for this container and network. */
bool upstream_has(struct nft *n, const struct owner *o);
