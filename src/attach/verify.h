/* CHECK: what ADD made, compared with the result it gave. */
#pragma once

#include "attach/sandbox.h"
#include "base/err.h"
#include "netlink/link.h"
#include "result/result.h"

/* Each address of the result that is the interface's is on it with its prefix length, each route is
 * in its table. ERR_CHECK. */
int ifcheck(const struct sandbox *sb, const char *ifname, const struct result *r, struct err *e);

/* Finds the container's own entry in a result and compares it with the link: there, of that kind
 * (NULL: any), with that MAC. *l is the link. ERR_CHECK. */
int ifcheck_link(const struct sandbox *sb, const struct request *req, const struct result *r,
	const char *kind, struct link *l, struct err *e);

/* The entry of a link on the host in a result, or NULL. */
const struct iface *ifcheck_host_entry(const struct result *r, const char *name);

/* The MAC address of an entry is the link's; one without says nothing. ERR_CHECK. */
int ifcheck_mac(const struct iface *entry, const struct link *l, struct err *e);
