/* UDP clients that keep talking keep their conntrack entry, and with it the translation (or none)
 * that was valid when it was made. Those entries, and only those, are deleted. */
#pragma once

#include "netlink/nft.h"
#include "netlink/nl.h"
#include "portmap/record.h"

#include <stdbool.h>

/* Deletes, of the UDP flows to the mapped ports, those that do not lead to the container (stale,
 * after ADD; rt tells which addresses are the host's), or those that do (after DEL; rt may be
 * NULL). 0 or -errno. */
int flows_flush(struct nft *n, struct nl *rt, const struct port_record *m, bool stale);
