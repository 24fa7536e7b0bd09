/* What port mappings need of nf_tables beyond netlink/nft.h. */
#pragma once

#include "netlink/nft.h"
#include "netlink/nl.h"

/* Deletes a set only when it has no elements, else the batch fails with -EBUSY: an atomic "if
 * nobody is left". Elements deleted in the same batch still count. Returns the message's index. */
int nft_set_del_empty(struct nft *n, const struct nft_table *t, const char *set);

/* Whether a set has no elements: 1 or 0, or -errno. Costs the same for any number of elements. */
int nft_set_is_empty(struct nft *n, const struct nft_table *t, const char *set);

/* The socket below, for other subsystems of NETLINK_NETFILTER. Borrowed. */
struct nl *nft_socket(struct nft *n);
