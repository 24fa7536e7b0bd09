/* Removing an attachment's mappings, and what is left when it was the last one. */
#pragma once

#include "base/err.h"
#include "netlink/nft.h"
#include "netlink/nl.h"
#include "portmap/heirs.h"
#include "portmap/record.h"

#include <stdbool.h>

/* Removes everything of an owner, hands on what others of its container wait for (heirs.h); *was,
 * if not NULL, receives what there was (empty if nothing; to be freed). When the table is empty
 * then, it goes too, and route_localnet with it where we had set it. net: the owner's network, as
 * OWNER_NET digits. Returns 0 or -1 with e set. */
int ports_remove(struct nft *n, struct nl *rt, const char *hash, const char *net,
	struct port_record *was, struct err *e);

/* For GC: what killed processes and vanished links have left. 0 or -errno. */
int ports_sweep(struct nft *n, struct nl *rt, const char *net);

/* ---- for install.c and heirs.c ---- */

struct removal {
	struct nft *n;
	const struct port_record *was;
	bool careful;  /* look at each object first: some are not there or not the owner's */
	bool drop_dev; /* its link's guard goes as well: localnet_release() said so */
};

/* Whether the element is there and the owner's: 1, 0, or -errno. */
int remove_is_owners(struct removal *r, const char *set, const struct nft_key *key);

/* Adds the deletion of all of an owner to the batch. 0 or -errno. */
int remove_put(struct removal *r);

/* Adds the record to the batch; *first (may be NULL) is the index of its first line. 0 or -ENOMEM.
 */
int remove_put_record(struct nft *n, struct port_record *m, int *first);
