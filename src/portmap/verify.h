/* CHECK: whether mappings and everything they need are there. */
#pragma once

#include "base/err.h"
#include "netlink/nft.h"
#include "portmap/install.h"
#include "portmap/record.h"

/* Fails with ERR_CHECK when something of it is missing or leads elsewhere. Returns 0 or -1 with e
 * set. What another attachment of the same container has becomes yielded in m. */
int ports_verify(struct nft *n, struct port_record *m, const struct port_extras *x, struct err *e);
