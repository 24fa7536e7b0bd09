/* The VLANs of a bridge's port as a configuration asks for them: vlan, vlanTrunk and
 * preserveDefaultVlan. */
#pragma once

#include "base/err.h"
#include "netlink/brvlan.h"
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

struct portvlan {
	uint16_t vlan;  /* access VLAN, 0: none */
	bool has_trunk; /* the key is there, if only as [] */
	struct vlan_set trunk;
	bool keep_default; /* what the port is in already stays */
};

/* Reads the keys. ERR_INVALID_CONFIG. */
int portvlan_read(struct portvlan *v, const json *conf, struct err *e);

/* Whether ports are to be put into VLANs at all; and whether a new bridge shall filter by VLAN,
 * which an empty trunk is enough for. */
bool portvlan_any(const struct portvlan *v);
bool portvlan_filters(const struct portvlan *v);

/* Puts the port into its VLANs: out of all others unless they are kept, the trunk tagged, the
 * access VLAN untagged. Untagged frames of a trunk without one are of VLAN 1. Nothing without
 * VLANs. */
int portvlan_set(struct nl *nl, const struct portvlan *v, const char *port, struct err *e);

/* Compares for CHECK. ERR_CHECK. */
struct link;
int portvlan_check(struct nl *nl, const struct portvlan *v, const struct link *port, struct err *e);
