/* Two attachments of one container with the same mappings: some runtimes send all ports to every
 * network. The first one has them; the other records them as yielded, and is entered as an heir in
 * the first one's record. When the first one lets go of a port, the heir takes it up in the same
 * transaction. */
#pragma once

#include "base/err.h"
#include "netlink/nft.h"
#include "netlink/nl.h"
#include "portmap/localnet.h"
#include "portmap/record.h"

/* The guards that heirs need. Start with {0}. */
struct handover {
	struct localnet *list;
	size_t len;
	int first; /* of its messages in the batch, about; INT_MAX: there are none */
};
void handover_free(struct handover *h);
#define autohandover __attribute__((cleanup(handover_free))) struct handover

/* Adds to the batch, behind the removal of `was`, that its heirs take up what it had, except what
 * `keep` (may be NULL) has. The batch should insist on the generation from before `was` was read.
 * 0 or -errno. */
int heirs_put(struct nft *n, struct nl *rt, const struct port_record *was,
	const struct port_record *keep, struct handover *h);

/* After the batch: route_localnet of the heirs' links. 0 or -errno. */
int heirs_settle(struct nl *rt, const struct handover *h);

/* Adds to the batch that this attachment is an heir of the holder. 0 (also when it is one already),
 * or -errno. */
int heirs_enter(struct nft *n, struct port_record *holder, const char *hash);
