/* Links of containers, seen from the host: in every namespace that the host's has a name for
 * (netns_id()). It has one for those that a veth pair leads into, and for those that ADD gave one
 * because its plugin wants to find its links again. rtnetlink(7); linux/net_namespace.h. */
#pragma once

#include "base/err.h"
#include "cni/request.h"
#include "netlink/kind.h"
#include "netlink/link.h"

/* A link and where it is. */
struct reached {
	struct link link;
	bool is_host; /* in the namespace of the host itself; else: */
	int32_t nsid; /* what that calls the link's */
};

/* Gives each namespace in the directory of CNI_NETNS a name, so that what others have made there is
 * found, too. Best effort: a path below /proc has no neighbours. */
void reach_neighbours(struct nl *host, const char *netns);

/* Finds a link of the kind, in whatever namespace, that sits on the link `index` of the host; data
 * (may be NULL) then has its settings. Returns 1, 0 or -errno. */
int reach_upper(struct nl *host, const struct link_kind *kind, uint32_t index, struct reached *out,
	void *data);
/* The same among the links of one namespace, on one of its own. */
int reach_upper_in(struct nl *nl, const struct link_kind *kind, uint32_t index, struct reached *out,
	void *data);

/* Both for the VLAN link of that ID. */
int reach_vlan(struct nl *host, uint32_t index, uint16_t id, struct reached *out);
int reach_vlan_in(struct nl *nl, uint32_t index, uint16_t id, struct reached *out);

/* Whose a link is, for messages: its mark in words, or its name. */
#define REACH_OWNER LINK_ALIAS
const char *reach_owner(const struct link *l, char out[static REACH_OWNER]);

/* GC: removes the links of the kind that are this network's and whose attachment is not in the
 * set. */
int reach_collect(const struct link_kind *kind, const struct request *req,
	const struct valid_set *valid, struct err *e);
