/* VLANs of a bridge's ports (IFLA_AF_SPEC of AF_BRIDGE). linux/if_bridge.h. */
#pragma once

#include "netlink/nl.h"

#include <stdbool.h>
#include <stdint.h>

#define VLAN_MAX 4094

/* A set of VLAN IDs, 1 to VLAN_MAX: a bit for each. Empty when zeroed. */
struct vlan_set {
	uint8_t bits[(VLAN_MAX + 8) / 8];
};
void vlan_set_add(struct vlan_set *s, uint16_t first, uint16_t last);
bool vlan_set_has(const struct vlan_set *s, uint16_t vid);
bool vlan_set_empty(const struct vlan_set *s);

/* What a port is in. */
struct port_vlans {
	struct vlan_set set;
	uint16_t pvid; /* the VLAN of untagged frames that come in; 0: none */
};
/* Reads those of one port. Returns 0 or -errno. */
int brvlan_get(struct nl *nl, uint32_t index, struct port_vlans *out);

/* Appends the message that puts a port into one VLAN as its access VLAN: that of untagged frames in
 * both directions (BRIDGE_VLAN_INFO_PVID, BRIDGE_VLAN_INFO_UNTAGGED). */
void brvlan_put_access(struct nl_req *req, uint32_t index, uint16_t vid);

/* Append the messages that put a port into the VLANs of a set, tagged, or take it out of them: one
 * for each run of neighbouring IDs. */
void brvlan_put_tagged(struct nl_req *req, uint32_t index, const struct vlan_set *s);
void brvlan_put_del(struct nl_req *req, uint32_t index, const struct vlan_set *s);
