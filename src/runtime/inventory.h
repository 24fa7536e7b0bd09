/* What is on this node: networks, attachments, links, host ports, leases, and what belongs to none.
 * For people (`cnitool show`) and machines. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "runtime/report.h"
#include "json/json.h"

/* Collects it from the network configurations, the result cache, the links, the nf_tables rules and
 * the lease stores, into one document:
 *
 *   {"networks": [{"name", "file", "cniVersion", "plugins": [type...],
 *                  "leases": {"dir", "used", "free"},
 *                  "attachments": [{"containerID", "ifname", "netns", "state", "addresses": [...],
 *                                   "link", "master", "ifb",
 *                                   "ports": [{"protocol", "hostIP", "hostPort", "containerIP",
 *                                              "containerPort"}]}]}],
 *    "unowned": [{"kind", "name", "owner"}],
 *    "broken": [file...]}
 *
 * "state" is "attached", "incomplete" (an ADD that did not return) or "gone" (its namespace is no
 * more). What cannot be read is left out, with a remark; NULL only when out of memory. Owned by the
 * caller. */
json *inventory(
	const char *conf_dir, const char *cache_dir, const struct report *remarks, struct err *e);

/* The same as a tree for a terminal, and as a graph for dot(1). */
void inventory_tree(const json *inv, struct buf *out);
void inventory_dot(const json *inv, struct buf *out);
