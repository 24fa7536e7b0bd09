/* Kinds of virtual links: what the kernel calls them and what it wants to know about one, its
 * IFLA_INFO_DATA, written when the link is made and read back to compare. A kind is one of the
 * tables below and, where it has settings, one structure. linux/if_link.h. */
#pragma once

#include "netlink/nl.h"

#include <stdbool.h>
#include <stdint.h>

/* read() gets a table of attributes by type that goes up to here. */
#define KIND_ATTR_MAX 63

struct link_kind {
	const char *name; /* IFLA_INFO_KIND */
	/* It is made by other means, so that no message can ask whether the kernel has it. */
	bool by_ioctl;
	/* Appends the attributes of IFLA_INFO_DATA, whose nest is open; NULL: there are none. */
	void (*put)(struct nl_req *req, const void *data);
	/* Fills in the structure from what the kernel says of a link; NULL: nothing to read. */
	void (*read)(const struct nlattr *const *a, void *data);
	const char *module; /* that has it, where that is called otherwise; NULL: as the kind */
};

/* For messages: what to load for it. */
static inline const char *kind_module(const struct link_kind *kind)
{
	return kind->module ? kind->module : kind->name;
}

extern const struct link_kind kind_dummy; /* no data */
extern const struct link_kind kind_ifb;   /* no data */
extern const struct link_kind kind_tun;   /* no data: netlink/tun.h */

extern const struct link_kind kind_bridge;
struct bridge_data {
	bool vlan_filtering;
};

/* The other end. What is left zero is the kernel's choice. */
extern const struct link_kind kind_veth;
struct veth_data {
	const char *name;
	const uint8_t *mac;
	uint32_t mtu;
	bool has_netns; /* it goes into the namespace behind this descriptor */
	int netns;
};

extern const struct link_kind kind_macvlan;
struct macvlan_data {
	uint32_t mode;       /* MACVLAN_MODE_* */
	uint16_t flags;      /* MACVLAN_FLAG_* */
	uint32_t bcqueuelen; /* frames; 0: the kernel's default */
};

extern const struct link_kind kind_ipvlan;
struct ipvlan_data {
	uint16_t mode;  /* IPVLAN_MODE_* */
	uint16_t flags; /* IPVLAN_F_* */
};

extern const struct link_kind kind_vlan;
struct vlan_data {
	uint16_t id;
	uint16_t protocol; /* ETH_P_8021Q or ETH_P_8021AD, host byte order; 0: the former */
};

extern const struct link_kind kind_vrf;
struct vrf_data {
	uint32_t table;
};
