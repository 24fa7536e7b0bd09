#include "attach/verify.h"
#include "base/mac.h"
#include "netlink/addr.h"
#include "netlink/link.h"
#include "netlink/route.h"

#include <linux/rtnetlink.h>
#include <string.h>
#include <strings.h>

/* ---- addresses ---- */

struct wanted_addr {
	const struct prefix *prefix;
	bool found;
};

static int match_addr(const struct addr *a, void *arg)
{
	struct wanted_addr *w = arg;

	w->found = w->found ||
		   (!ip_cmp(&a->prefix.ip, &w->prefix->ip) && a->prefix.len == w->prefix->len);
	return 0;
}

static int check_addr(
	const struct sandbox *sb, const struct link *l, const struct prefix *p, struct err *e)
{
	struct wanted_addr w = {p, false};
	char text[PREFIX_STRLEN];
	int ret = addr_each(sb->nl, l->index, p->ip.family, match_addr, &w);

	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to list addresses of \"%s\"", l->name);
	if (w.found)
		return 0;
	return err_set(e, ERR_CHECK, "Failed to match addr %s on interface %s",
		prefix_format(p, text), l->name);
}

/* ---- routes ---- */

struct wanted_route {
	const struct route *route;
	bool found;
};

static int match_route(const struct route_spec *have, void *arg)
{
	struct wanted_route *w = arg;
	struct ip want = prefix_network(&w->route->dst), got = prefix_network(&have->dst);

	if (have->dst.len != w->route->dst.len || ip_cmp(&want, &got) != 0)
		return 0;
	/* Of default routes any will do, as upstream has it: other tools rewrite their gateway. */
	if (w->route->gw.family && w->route->dst.len && ip_cmp(&w->route->gw, &have->gw) != 0)
		return 0;
	w->found = true;
	return 0;
}

static int check_route(const struct sandbox *sb, const struct route *route, struct err *e)
{
	struct wanted_route w = {route, false};
	uint32_t table =
		route->has_table && route->table > 0 ? (uint32_t)route->table : RT_TABLE_MAIN;
	char text[PREFIX_STRLEN];
	int ret = route_each(sb->nl, route->dst.ip.family, table, match_route, &w);

	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to list routes");
	if (w.found)
		return 0;
	return err_set(e, ERR_CHECK, "Expected Route %s not found in routing table",
		prefix_format(&route->dst, text));
}

int ifcheck(const struct sandbox *sb, const char *ifname, const struct result *r, struct err *e)
{
	struct link l;

	if (link_need(sb->nl, ifname, &l, e))
		return -1;
	for (size_t i = 0; i < r->ips_len; i++) {
		const struct iface *iface = result_ip_iface(r, i);

		/* Another plugin's interface may have addresses in the result, too. */
		if (iface && strcmp(iface->name, ifname) != 0)
			continue;
		if (check_addr(sb, &l, &r->ips[i].address, e))
			return -1;
	}
	for (size_t i = 0; i < r->routes_len; i++)
		if (check_route(sb, &r->routes[i], e))
			return -1;
	return 0;
}

/* ---- the link itself ---- */

static int no_entry(const struct request *req, const struct result *r, struct err *e)
{
	for (size_t i = 0; i < r->ifaces_len; i++) {
		const struct iface *iface = &r->ifaces[i];

		if (!strcmp(iface->name, req->ifname) && iface->sandbox)
			return err_set(e, ERR_CHECK,
				"Sandbox in prevResult %s doesn't match configured netns: %s",
				iface->sandbox, req->netns);
	}
	return err_set(
		e, ERR_CHECK, "Container Interface name in prevResult: %s not found", req->ifname);
}

int ifcheck_link(const struct sandbox *sb, const struct request *req, const struct result *r,
	const char *kind, struct link *l, struct err *e)
{
	const struct iface *iface = result_find_iface(r, req->ifname, req->netns);
	char mac[MAC_STRLEN];

	if (!iface)
		return no_entry(req, r, e);
	if (link_get(sb->nl, req->ifname, l))
		return err_set(e, ERR_CHECK, "Container Interface name in prevResult: %s not found",
			req->ifname);
	if (kind && strcmp(l->kind, kind) != 0)
		return err_set(
			e, ERR_CHECK, "Container interface %s not of type %s", req->ifname, kind);
	if (iface->mac && strcasecmp(iface->mac, mac_format(l->mac, mac)) != 0)
		return err_set(e, ERR_CHECK, "Interface %s Mac %s doesn't match container Mac: %s",
			req->ifname, iface->mac, mac);
	return 0;
}

/* ---- links on the host ---- */

const struct iface *ifcheck_host_entry(const struct result *r, const char *name)
{
	for (size_t i = 0; i < r->ifaces_len; i++)
		if (!strcmp(r->ifaces[i].name, name) && !r->ifaces[i].sandbox)
			return &r->ifaces[i];
	return NULL;
}

int ifcheck_mac(const struct iface *entry, const struct link *l, struct err *e)
{
	char mac[MAC_STRLEN];

	if (!entry->mac || !strcasecmp(entry->mac, mac_format(l->mac, mac)))
		return 0;
	return err_set(e, ERR_CHECK, "interface %s Mac doesn't match: %s not found, it is %s",
		entry->name, entry->mac, mac);
}
