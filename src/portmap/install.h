/* Installing mappings: one transaction, and what to do when it is refused. */
#pragma once

#include "base/err.h"
#include "netlink/nft.h"
#include "netlink/nl.h"
#include "portmap/conditions.h"
#include "portmap/localnet.h"
#include "portmap/record.h"

/* What ADD and CHECK ask for beside the mappings. */
struct port_extras {
	const char *container; /* its id, to tell a second attachment of it from a stranger */
	const struct port_conds *conds[2]; /* IPv4, IPv6; never NULL */
	/* The host's link towards the container; .link is "" when route_localnet is not needed. */
	struct localnet localnet;
};

/* Installs the mappings in one transaction, replacing what the same owner had. A host port that is
 * held by an attachment whose sandbox is gone, or by an older sandbox of the same pod, is taken
 * over; one held by another attachment of the same container is left there and recorded as yielded
 * (heirs.h); any other is ERR_CONFLICT naming the holder. Then route_localnet, where it is needed
 * for what was not yielded. Returns 0 or -1 with e set; on failure nothing is left but, when the
 * last step fails, what ports_remove() removes. */
int ports_install(struct nft *n, struct nl *rt, struct port_record *m, const struct port_extras *x,
	struct err *e);

/* Fails with ERR_NOT_AVAILABLE, naming what is missing, when the kernel cannot map ports. Changes
 * nothing. */
int ports_status(struct err *e);
