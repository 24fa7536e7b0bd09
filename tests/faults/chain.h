/* Calls as a container runtime makes them: the network "dbnet" of the specification with bandwidth
 * behind it, and loopback. */
#pragma once

#include "inject.h"

/* In the order of the table in chain.c. */
enum {
	BRIDGE,
	TUNING,
	PORTMAP,
	BANDWIDTH,
	LOOPBACK,
	PTP,
	DUMMY,
	STATIC,
	MACVLAN,
	IPVLAN,
	VLAN,
	HOSTDEV,
	TAP,
	CNITOOL,
	PLUGINS
};
#define CHAIN (BANDWIDTH + 1) /* how many of them are the list */

struct container;

/* What the suite knows of a plugin. A line of the table in chain.c puts one more under attack; one
 * that is not in plugin_dir is left out. */
struct plugin {
	const char *type;    /* and the file's name */
	const char *network; /* of those that are a list by themselves */
	const char *ifname;
	const char
		*kind; /* of a link that not every kernel can make, as ip is told it; NULL: any */
	bool master;   /* it puts its link on one of the node: m0 */
	bool devices;  /* it takes links of the node: d1 for container 1 */
	bool first;    /* of its list: an ADD has no prevResult */
	bool result;   /* what it prints is what CHECK and DEL are given */
	bool gc;       /* it knows GC */
	bool links;    /* makes links, which take long to go: each point has a node of its own */
	bool remains;  /* something shared stays after the last DEL, until a GC */

	/* Its own object, without the closing brace; one capability's argument as the runtime gives
	 * it, or NULL. Owned by the caller. */
	char *(*own)(const struct container *c);
	char *(*capability)(const struct container *c);
};
extern const struct plugin plugins[PLUGINS];
extern const char *plugin_dir;

struct container {
	const char *name;    /* ID, and namespace /run/netns/NAME */
	unsigned number;     /* makes ports and MAC address its own */
	const char *net;     /* the network's name; NULL: dbnet */
	const char *bridge;  /* NULL: cni0 */
	unsigned subnet;     /* 10.SUBNET.0.0/16; 0: 88, with IPv6 beside it */
	const char *version; /* NULL: 1.1.0 */
	char *result;        /* of the last successful ADD */
};

/* One call. verb ADD: prevResult is c->result where the plugin wants one; DEL and CHECK: when there
 * is one. GC: `valid` lists the valid attachments (JSON array). With CNITOOL the verb is a command
 * of it. The caller frees *r. */
void call(const char *verb, int plugin, const struct container *c, const char *valid,
	const struct injection *inj, struct ran *r);

/* The same with no more than so many milliseconds before it is killed. */
void call_for(const char *verb, int plugin, const struct container *c, int ms, struct ran *r);

/* Makes a successful ADD's output the container's result; NULL forgets it. */
void keep_result(struct container *c, const char *text);

/* What the runtime would say about how a call ended: NULL when it was in order (exit 0; or exit 1
 * and exactly one error object), else a sentence. *code: of the error object, 0 for a success. */
const char *verdict(const struct ran *r, int *code);

/* Whole lists; false, with *what owned by the caller, at the first failure. */
bool chain_add(struct container *c, int plugins, char **what);
bool chain_check(struct container *c, int plugins, char **what);
bool chain_del(struct container *c, int plugins, char **what);
bool chain_gc(const struct container *c, int plugins, const char *valid, char **what);

/* One plugin: must succeed. */
bool must(const char *verb, int plugin, struct container *c, const char *valid, char **what);

/* Text for the caller to free; ends the program when there is no memory. */
char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The configuration file of the network for cnitool. */
void write_conflist(const struct container *c);
