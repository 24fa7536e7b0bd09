/* Links. What differs from kind to kind is in netlink/kind.h. linux/if_link.h. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "netlink/nl.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

/* What the alias of a link holds, with its NUL (IFALIASZ of linux/if.h). */
#define LINK_ALIAS 256

struct link {
	uint32_t index;
	char name[IFNAMSIZ];
	char kind[16]; /* "" for physical links */
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
	char alias[LINK_ALIAS];
	/* Bridge ports */
	uint8_t port_state; /* BR_STATE_* */
	bool hairpin;
	bool isolated;
};

struct link_kind;

/* Look-ups by name (alternative names work too) or index. Return 0, or -errno (-ENODEV: there is
 * none). */
int link_get(struct nl *nl, const char *name, struct link *out);
int link_get_index(struct nl *nl, uint32_t index, struct link *out);
/* The same, failing with e: "link NAME: ...". */
int link_need(struct nl *nl, const char *name, struct link *out, struct err *e);

/* The same with the settings of its kind, data as netlink/kind.h has it: left as they are when the
 * link is of another one. */
int link_get_data(struct nl *nl, const char *name, const struct link_kind *kind, struct link *out,
	void *data);

/* Every link of a kind (NULL: all), in kernel order. fn as in nl_query(). */
int link_each(
	struct nl *nl, const char *kind, int (*fn)(const struct link *l, void *arg), void *arg);

/* The same in the namespace that the one of nl calls *nsid (netns_id()), NULL: in that one itself;
 * data (may be NULL) has the settings of the link that fn is called with. In another namespace
 * peer_netnsid is in the words of that of nl, which then has one for itself, too. */
int link_each_in(struct nl *nl, const int32_t *nsid, const struct link_kind *kind, void *data,
	int (*fn)(const struct link *l, void *arg), void *arg);
/* Deletes one there. */
int link_del_in(struct nl *nl, int32_t nsid, uint32_t index);

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
	uint32_t master;    /* 0: take it off */
	const char *rename; /* only with an index: the request is refused otherwise (-EINVAL) */
	bool has_netns;     /* move it into the namespace behind this descriptor */
	int netns;
};
void link_put(struct nl_req *req, const struct link_set *set);
/* The same at once; 0 or -errno. */
int link_apply(struct nl *nl, const struct link_set *set);

/* Gives the link (by name) an alternative name, at most 127 bytes: unique in the namespace, and as
 * good as the name in every look-up and deletion. Since kernel 5.5. */
void link_put_altname(struct nl_req *req, const char *name, const char *altname);

/* Bridge-port flags of a link that has a master. linux/if_link.h, IFLA_BRPORT_*. */
void link_put_brport(struct nl_req *req, const char *name, bool hairpin, bool isolated);

/* A new link, made whole by one message: under its final name, in its namespace, with MAC address,
 * MTU and the settings of its kind, up. Zero members are left to the kernel.
 *
 * The kernel may look for the name in the sender's namespace, not in that where the link goes (it
 * did so before 6.14). So a link of the container that has a parent is made through a socket in the
 * container, its parent on the host named by what the container calls the host's namespace
 * (netns_id_make()). */
struct link_new {
	const struct link_kind *kind;
	const void *data; /* of the kind; NULL: none */
	const char *name;
	const uint8_t *mac;
	uint32_t mtu;
	bool has_txqlen;
	uint32_t txqlen;
	bool up;
	uint32_t group;
	uint32_t master;      /* the bridge or VRF it is in */
	uint32_t parent;      /* index of the link below it: IFLA_LINK */
	bool has_parent_nsid; /* the namespace that is in, when it is not that of the socket */
	int32_t parent_nsid;
	bool has_netns; /* it goes into the namespace behind this descriptor */
	int netns;
};
void link_put_new(struct nl_req *req, const struct link_new *n);

/* The same at once, and its alias (NULL: none), of which no kill can rob it. 0 or -errno (-EEXIST:
 * the name is taken); nothing is left then; ext receives the kernel's text. With an alias the link
 * must be made in the namespace of nl. */
int link_create(struct nl *nl, const struct link_new *n, const char *alias, char *ext, size_t size);

/* Whether the kernel can make links of a kind; it loads the module. 1, 0 or -errno. */
int link_kind_known(struct nl *nl, const struct link_kind *kind);

/* Waits until the link satisfies `ready` or it is gone, watching for link events; at
 * most ms milliseconds. *l is the last state seen. Returns 0, -ETIMEDOUT, or -errno. netns: that of
 * nl; -1: the one this process is in. */
int link_wait(struct nl *nl, int netns, const char *name, bool (*ready)(const struct link *l),
	int ms, struct link *l);

/* Every link that has this master, in kernel order. fn as in nl_query(). */
int link_each_port(
	struct nl *nl, uint32_t master, int (*fn)(const struct link *l, void *arg), void *arg);
