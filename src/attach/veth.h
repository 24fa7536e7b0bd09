/* The veth pair of an attachment: one end in the container's namespace, the other on the host,
 * carrying its owner (alternative name, alias). Used by bridge and ptp. */
#pragma once

#include "attach/sandbox.h"
#include "base/err.h"
#include "base/undo.h"
#include "cni/owner.h"
#include "netlink/link.h"

#include <stdbool.h>
#include <stdint.h>

struct veth_spec {
	const char *ifname; /* the container's end */
	const uint8_t *mac; /* of that end; NULL: random */
	uint32_t mtu;       /* 0: the kernel's default */
	uint32_t master;    /* bridge of the host's end; 0: none */
	bool hairpin;       /* bridge-port flags, with a master only */
	bool isolated;
	bool up; /* bring the container's end up; the host's always is */
};

struct veth {
	char host_name[IFNAMSIZ];
	uint8_t host_mac[6];
	struct link inside; /* the container's end */
};

/* Makes the pair: both ends under their final names, addresses, MTU, up, enslaved, owned. A
 * leftover of the same attachment is replaced. Its removal is pushed on undo; owner must outlive
 * that. Fails with e->sys ENODEV when the master has just vanished. */
int veth_create(const struct sandbox *sb, const struct owner *owner, const struct veth_spec *spec,
	struct undo *undo, struct veth *v, struct err *e);

/* DEL of the pair, whatever is left of it: by owner, else from inside; a namespace that is gone,
 * not given or no namespace is no failure. */
int veth_del(const struct request *req, struct err *e);

/* Removes the pairs of this request's network whose attachment is not in the set, all at once. */
int veth_gc(const struct request *req, const struct valid_set *valid, struct err *e);
