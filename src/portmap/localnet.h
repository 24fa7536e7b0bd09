/* route_localnet, and the guard that makes it harmless.
 *
 * Connections to 127.0.0.0/8 leave through another link than lo, which IPv4 allows only where
 * net.ipv4.conf.<link>.route_localnet is 1. That would let containers reach services on the host's
 * loopback addresses as well; the links in the set `localnet` are guarded against it.
 *
 * A link that leads to one container alone is guarded as long as that container's attachment is
 * there; any other (a bridge, the host's end of a pair whose other end is elsewhere) as long as the
 * table. What we have set must be known when somebody has flushed the table, too: the link carries
 * an alternative name "cnibox-localnet-<net>", or with the attachment's hash when it is that one's
 * alone. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "netlink/nft.h"
#include "netlink/nl.h"
#include "portmap/record.h"

#include <net/if.h>
#include <stdbool.h>

#define LOCALNET_MARK (sizeof("cnibox-localnet-") + OWNER_HASH)

struct localnet {
	char link[IFNAMSIZ]; /* "": none is needed */
	uint32_t index;
	bool alone;               /* leads to this attachment's container and nowhere else */
	bool was_set;             /* by somebody else: stays when we leave */
	char mark[LOCALNET_MARK]; /* the alternative name that says that we have set it */
};

/* The link that leads to a container's IPv4 address. Where there is no way l->link is "", as
 * upstream has it. Returns 0 or -1 with e set. */
int localnet_find(struct nft *n, struct nl *rt, const struct ip *container,
	const struct port_record *m, struct localnet *l, struct err *e);
/* The same of a link by name. 0 or -errno, -ENODEV when it is gone. */
int localnet_look(struct nft *n, struct nl *rt, const char *link, const struct port_record *m,
	struct localnet *l);

/* Adds the guard to the batch; new_table: with the table. */
void localnet_put(struct nft *n, const struct localnet *l, bool new_table);

/* Sets route_localnet, once the guard is in place. Also where it was set: the last DEL of others
 * may have reset it just before we came. 0 or -errno. */
int localnet_set(struct nl *rt, const struct localnet *l);

/* Whether m->dev needs no guard any more: it is gone, or, with `reset`, its route_localnet was
 * reset just now as far as it was ours. What cannot be told keeps it. */
bool localnet_release(struct nft *n, struct nl *rt, const struct port_record *m, bool reset);

/* For a DEL that finds no record: undoes what the mark of the attachment tells of. */
void localnet_forget(struct nft *n, struct nl *rt, const char *hash);

/* Deletes the table, which serves nobody, and route_localnet with it wherever that is ours;
 * without a table, what the mark of this network (OWNER_NET digits) tells of. 0 (also when others
 * are in it) or -errno. */
int localnet_sweep(struct nft *n, struct nl *rt, const char *net);

/* Drops the guards of links that are gone. 0 or -errno. */
int localnet_prune(struct nft *n, struct nl *rt);

/* For CHECK: whether the link is guarded and the setting there. 0 or -1 with e set. */
int localnet_check(struct nft *n, const struct localnet *l, struct err *e);
