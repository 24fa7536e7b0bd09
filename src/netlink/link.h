/* Links, bridge ports, addresses, routes. linux/if_link.h, linux/rtnetlink.h. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "netlink/nl.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct link {
	uint32_t index;
	char name[IFNAMSIZ];
	char altname[64]; /* "" when none, or none that short */
	char kind[16];    /* "" for physical links */
	uint16_t type;    /* ARPHRD_* */
	uint8_t mac[6];
	bool has_mac;
	uint32_t mtu;
	uint32_t flags; /* IFF_* */
	uint32_t promiscuity;
	uint32_t txqlen;
	uint32_t master;      /* 0: none */
	uint32_t peer;        /* IFLA_LINK, 0: none */
	int32_t peer_netnsid; /* IFLA_LINK_NETNSID, -1: none, the peer is in this namespace */
	uint8_t operstate;    /* IF_OPER_* */
	char alias[256];
	/* Bridges */
	bool vlan_filtering;
	/* Bridge ports */
	uint8_t port_state; /* BR_STATE_* */
	bool hairpin;
	bool isolated;
};

/* Look-ups by name (alternative names work too) or index. Return 0, or -errno (-ENODEV: there is
 * none). */
int link_get(struct nl *nl, const char *name, struct link *out);
int link_get_index(struct nl *nl, uint32_t index, struct link *out);
/* The same, failing with e: "link NAME: ...". */
int link_need(struct nl *nl, const char *name, struct link *out, struct err *e);

/* Every link of a kind (NULL: all), in kernel order. fn as in nl_query(). */
int link_each(
	struct nl *nl, const char *kind, int (*fn)(const struct link *l, void *arg), void *arg);

/* Deletes by index or name (alternative names work too). Return 0 or -errno; -ENODEV means it was
 * gone. Deleting a veth takes the kernel about 20 ms (RCU), so for several use the group form: it
 * marks them and deletes all in one go, in the time of one; there, one that was gone is no error.
 */
int link_del(struct nl *nl, uint32_t index);
int link_del_name(struct nl *nl, const char *name);
int link_del_many(struct nl *nl, const uint32_t *indexes, size_t n);

/* Settings of one link, collected into one message each and sent together:
 *
 *   autoreq req = {0};
 *   link_put(&req, &(struct link_set){.name = "veth0", .alias = "..."});
 *   nl_do(nl, &req, e, "...");
 *
 * The link is meant by index, or by name when that is 0. */
struct link_set {
	uint32_t index;
	const char *name;
	uint32_t flags_set; /* IFF_* */
	uint32_t flags_clear;
	uint32_t mtu; /* 0: leave; likewise the others */
	const uint8_t *mac;
	const char *alias;
	bool has_txqlen;
	uint32_t txqlen;
	bool has_master;
	uint32_t master; /* 0: take it off */
	const char *rename;
	int netns_fd; /* move there when > 0 */
};
void link_put(struct nl_req *req, const struct link_set *set);
/* The same at once; 0 or -errno. */
int link_apply(struct nl *nl, const struct link_set *set);

/* Gives the link (by name) an alternative name, at most 127 bytes: unique in the namespace, and as
 * good as the name in every look-up and deletion. Since kernel 5.5. */
void link_put_altname(struct nl_req *req, const char *name, const char *altname);

/* Bridge-port flags of a link that has a master. linux/if_link.h, IFLA_BRPORT_*. */
void link_put_brport(struct nl_req *req, const char *name, bool hairpin, bool isolated);

/* What a new link of a simple kind needs; for veth pairs see struct veth_new. */
struct link_new {
	const char *name;
	const char *kind;
	uint32_t mtu;       /* 0: the kernel's default */
	const uint8_t *mac; /* NULL: the kernel's choice */
	bool has_txqlen;
	uint32_t txqlen;
	bool up;
	const char *alias;   /* NULL: none */
	bool vlan_filtering; /* bridges only */
};
/* 0 or -errno (-EEXIST: the name is taken); ext receives the kernel's text. */
int link_create(struct nl *nl, const struct link_new *n, char *ext, size_t size);

/* A veth pair made whole by one message: both ends under their final names, the peer in another
 * namespace. Zero members are left to the kernel. */
struct veth_new {
	const char *name;
	const uint8_t *mac;
	const char *peer_name;
	const uint8_t *peer_mac;
	int peer_netns; /* descriptor; -1: this namespace */
	uint32_t mtu;   /* both ends */
	uint32_t master;
	bool up; /* the near end; the kernel cannot bring the far one up at creation */
};
void link_put_veth(struct nl_req *req, const struct veth_new *v);

/* VLANs of a bridge port (IFLA_AF_SPEC of AF_BRIDGE). flags: BRIDGE_VLAN_INFO_PVID and
 * BRIDGE_VLAN_INFO_UNTAGGED, 0 for tagged. first == last for a single one. linux/if_bridge.h. */
void link_put_vlan(
	struct nl_req *req, uint32_t index, uint16_t first, uint16_t last, uint16_t flags);
void link_put_vlan_del(struct nl_req *req, uint32_t index, uint16_t first, uint16_t last);
/* Calls fn for each VLAN range of that one port. */
struct port_vlan {
	uint16_t first, last, flags;
};
int link_vlans(
	struct nl *nl, uint32_t index, int (*fn)(const struct port_vlan *v, void *arg), void *arg);

/* Waits until the link satisfies `ready` or it is gone, watching for link events; at
 * most ms milliseconds. *l is the last state seen. Returns 0, -ETIMEDOUT, or -errno. Works in the
 * current namespace, which must be that of nl. */
int link_wait(struct nl *nl, const char *name, bool (*ready)(const struct link *l), int ms,
	struct link *l);

/* Every link that has this master, in kernel order. fn as in nl_query(). */
int link_each_port(
	struct nl *nl, uint32_t master, int (*fn)(const struct link *l, void *arg), void *arg);
