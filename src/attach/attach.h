/* The skeleton of a main plugin: the order of the steps of each verb, with whatever all such
 *plugins do. A plugin is a table of its own keys, a link kind and the hooks in which it differs:
 *
 *	struct conf {                                  // own keys, and what a hook leaves for a
 *later one int64_t table;
 *	};
 *	static const struct json_key keys[] = {
 *		JSON_KEY_INT(struct conf, "table", table, 0, UINT32_MAX),
 *		JSON_KEYS_END,
 *	};
 *
 *	static int make(struct attach *a, struct err *e)
 *	{
 *		struct conf *c = a->own;
 *		…
 *		return child_attach(a, &data, e);      // or veth_create(); fills in a->link
 *	}
 *
 *	static const struct attach_type type = {
 *		.kind = &kind_macvlan,
 *		.keys = KEY_MTU | KEY_MAC | KEY_MASTER,
 *		.table = keys,
 *		.conf_size = sizeof(struct conf),
 *		.attach = make,
 *		.detach = child_detach,
 *	};
 *	const struct applet applet_x = {
 *		.name = "x", .help = "…", .kind = APPLET_MAIN, ATTACH_VERBS(&type),
 *	};
 *
 * src/applets/dummy.c is the smallest one, bridge.c the largest. The steps, with the hooks in
 * capitals; each of them may be missing:
 *
 * ADD     keys, CONF; the namespace, the master, whether CNI_IFNAME is free; ATTACH; FILTER; IPAM;
 *         ENTRIES; COMPLETE; addresses, routes, up; HOST; masquerading; READY; announce; LATE; dns.
 *         An IPAM that needs the link (dhcp, and any that is executed: who knows) gets it up and
 *         READY, so that READY is called twice then.
 * DEL     DETACH, masquerading, IPAM; IPAM first where it needs the link. Every part is tried, and
 *         none needs the namespace, prevResult, or more of the config than ipam.type.
 * CHECK   keys, CONF, prevResult, the namespace, the master, IPAM; the container's entry, the kind,
 *         MAC address and state of its link; CHECK; addresses and routes; masquerading.
 * STATUS  keys, CONF; whether the kernel has the kind; STATUS, masquerading, IPAM.
 * GC      COLLECT, masquerading, IPAM. Of the config only what COLLECT reads.
 *
 * A failing ADD is undone by what was pushed on reply->undo: whoever makes something pushes its
 * inverse at once. The inverses run when the sockets of a->sb are closed. */
#pragma once

#include "attach/conf.h"
#include "attach/sandbox.h"
#include "cni/applet.h"
#include "filter/masquerade.h"
#include "netlink/kind.h"
#include "netlink/link.h"
#include "json/keys.h"

/* One attachment while a verb lasts. Hooks get it and leave in it what later ones need. */
struct attach {
	const struct attach_type *type;
	const struct request *req;
	struct reply *reply;   /* ADD only */
	struct result *result; /* ADD: reply->result; CHECK: prevResult; else NULL */
	struct result prev;    /* ADD: prevResult, where something of it may be used */
	bool has_prev;
	struct attach_conf conf; /* the common keys */
	void *own;               /* conf_size bytes, zeroed, then the own keys */
	struct sandbox sb;       /* ADD, CHECK */
	struct link master;      /* KEY_MASTER; index 0: CHECK does not know which it was */
	struct link link;        /* the container's: filled in by ATTACH, or found by CHECK */
	bool up;                 /* ATTACH is to leave the container's link up: nobody does later */

	/* Where masquerading has to know that the gateway is not the bridge itself: the bridge is
	 * set by CONF, NULL elsewhere, the MAC address by HOST and CHECK. */
	struct ipmasq_gateway via;

	/* Wishes of CONF. */
	bool no_link;  /* the container gets no link: ATTACH makes none, addresses go nowhere */
	bool disabled; /* the container's link stays down, and nobody waits for it */
	bool dad;      /* IPv6 addresses go through duplicate address detection */
	bool routed;   /* the networks of the addresses are behind the gateway, see addresses.h */
	bool no_ra;    /* with IPv6 addresses: routers do not add any, nor routes */
};

/* Returns 0, or -1 with e set. */
typedef int attach_fn(struct attach *a, struct err *e);

struct attach_type {
	const struct link_kind *kind; /* of the container's link: CHECK insists on it; NULL: any */
	unsigned keys;                /* enum attach_key: the common keys it has */
	bool ipam_required;
	const struct json_key *table; /* own keys; NULL: none */
	size_t conf_size;             /* of the structure that they and the hooks fill in */

	attach_fn *conf;     /* defaults that are not zero, combinations; keys have been read */
	attach_fn *attach;   /* makes the container's link, fills in a->link */
	attach_fn *filter;   /* what must be in force before the container can send */
	attach_fn *entries;  /* interfaces of the result; NULL: the container's own */
	attach_fn *complete; /* changes IPAM's result before it is applied */
	attach_fn *host;     /* the host's side: addresses, routes */
	attach_fn *ready; /* waits until the link carries frames; may be called twice. NULL: nobody
			   * has to wait, nor to be told of the addresses (announced) */
	attach_fn *late;  /* what comes only once the link is up and announced */
	attach_fn *check; /* what else ADD made */
	attach_fn *status;

	/* Removes whatever ADD may have made, IPAM and masquerading apart, from the request alone.
	 * Goes on after a failure; that nothing is there is none. */
	int (*detach)(const struct request *req, struct err *e);
	/* The same for all attachments of the network that are not in the set. */
	int (*collect)(const struct request *req, const struct valid_set *valid, struct err *e);
};

/* Appends the entry of the container's link to the result: what `entries` does where it is NULL,
 * and the last thing it does elsewhere. */
int attach_add_entry(struct attach *a, struct err *e);

/* Appends the entry of a link of the host: what `entries` does before that. */
int attach_add_host_entry(struct attach *a, const char *name, const uint8_t mac[static 6],
	uint32_t mtu, struct err *e);

/* The verbs, which find the type through the request's applet. */
int attach_add(const struct request *req, struct reply *reply, struct err *e);
int attach_del(const struct request *req, struct err *e);
int attach_check(const struct request *req, struct err *e);
int attach_gc(const struct request *req, struct err *e);
int attach_status(const struct request *req, struct err *e);

#define ATTACH_VERBS(type_)                                                                        \
	.attach = (type_), .add = attach_add, .del = attach_del, .check = attach_check,            \
	.gc = attach_gc, .status = attach_status
