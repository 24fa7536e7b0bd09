/* Port mappings in nf_tables: the table inet cnibox_portmap. What is in it, and why it looks like
 * this, is in docs/portmap.md.
 *
 * Everything here works by key: neither ADD nor DEL reads or walks other attachments' mappings, and
 * a new connection costs the same few look-ups however many there are. */
#pragma once

#include "base/err.h"
#include "netlink/nft.h"
#include "portmap/conditions.h"
#include "portmap/record.h"

#include <stdbool.h>

#define PORTRULES_TABLE "cnibox_portmap"

/* What ADD asks for beside the mappings. */
struct port_extras {
	const char *container; /* its id, to tell a second attachment of it from a stranger */
	const struct port_conds *conds[2]; /* IPv4, IPv6; never NULL */
	/* The host's link towards the container, which gets (or has) route_localnet and therefore
	 * the guard against 127.0.0.0/8 from outside; "" when not needed. */
	char localnet[IFNAMSIZ];
	bool localnet_was_set; /* by somebody before us: stays when we leave */
};

/* Installs the mappings in one transaction, replacing what the same owner had. A host port that is
 * held by an attachment whose sandbox is gone is taken over; one held by a live one is ERR_CONFLICT
 * naming the holder; one held by another attachment of the same container stays there and is
 * dropped from m. Returns 0 or -1 with e set; on failure nothing is left. */
int portrules_add(struct nft *n, struct portmaps *m, const struct port_extras *x, struct err *e);

/* Reads what is recorded of an owner: 0, -ENOENT, or another -errno. */
int portrules_load(struct nft *n, const char *hash, struct portmaps *m);

/* Removes everything of an owner; *was, if not NULL, receives what there was (empty if nothing; to
 * be freed). When the table is empty then, it goes too, and route_localnet with it where we had
 * set it. Returns 0 or -1 with e set. */
int portrules_del(struct nft *n, const char *hash, struct portmaps *was, struct err *e);

/* The last part of portrules_del() alone: for a table that a killed process left empty. Returns 0
 * (also when others are in it, or there is none) or -errno. */
int portrules_sweep(struct nft *n);

/* Fails with ERR_CHECK when something of it is missing or leads elsewhere. What another attachment
 * of the same container has is dropped from m. */
int portrules_check(struct nft *n, struct portmaps *m, const struct port_extras *x, struct err *e);

/* Fails with ERR_NOT_AVAILABLE, naming what is missing, when the kernel cannot map ports. Changes
 * nothing. */
int portrules_status(struct err *e);

/* Calls fn for each owner there is, by its comment; maybe twice for one. Returns 0, fn's non-zero
 * value, or -errno. */
int portrules_owners(struct nft *n, int (*fn)(const struct owner_ref *ref, void *arg), void *arg);

/* "net/ipv4/conf/<dev>/route_localnet", for sysctl_get() and its like. */
#define PORTRULES_SYSCTL (sizeof("net/ipv4/conf//route_localnet") + IFNAMSIZ)
const char *portrules_sysctl(const char *dev, char out[static PORTRULES_SYSCTL]);
