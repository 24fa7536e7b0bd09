/* What plugins based on iptables (its nf_tables variant) left: chains of the table nat, named by a
 * hash of network and container id, and the jumps to them. */
#pragma once

#include "cni/request.h"
#include "netlink/nft.h"

#include <stdbool.h>

/* Removes the chain and the jumps to it from `entry`, in one transaction. 0, also when it is not
 * there, or -errno. */
int xtables_chain_del(
	struct nft *n, const struct nft_table *t, const char *entry, const char *chain);

/* Masquerading by upstream's bridge and ptp: one chain for all interfaces that a container has in
 * the network. Nothing in it tells them apart, so that the first DEL removes it, as upstream's
 * does; the others are about to be deleted as well. */
bool xtables_masq_has(struct nft *n, const char *network, const char *id);
int xtables_masq_del(struct nft *n, const char *network, const char *id);
/* Removes those of the network whose container has no valid attachment, 0 or -errno. */
int xtables_masq_gc(struct nft *n, const char *network, const struct valid_set *valid);
