/* What port mappings need of nf_tables beyond netlink/nft.h. */
#pragma once

#include "netlink/nft.h"
#include "netlink/nl.h"

/* Deletes a set only when it has no elements, else the batch fails with -EBUSY: an atomic "if
 * nobody is left". Elements deleted in the same batch still count. Returns the message's index. */
int nft_set_del_empty(struct nft *n, const struct nft_table *t, const char *set);

/* Whether a set has no elements: 1 or 0, or -errno. Reads just the beginning of the list, on a
 * socket of its own, so that the answer costs the same for any number of elements. The socket is
 * handed to the caller, to be closed with nft_close_socket() when all is done: closing locks the
 * namespace's rules until what earlier transactions deleted is freed. */
int nft_set_is_empty(const struct nft_table *t, const char *set, struct nl **nl);

/* Closes a socket of NETLINK_NETFILTER without waiting. */
void nft_close_socket(struct nl **nl);

/* The socket below, for other subsystems of NETLINK_NETFILTER. Borrowed. */
struct nl *nft_socket(struct nft *n);
