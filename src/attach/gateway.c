#include "attach/gateway.h"

#include "netlink/addr.h"
#include "netlink/sysctl.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

/* ---- the result ---- */

/* The first address of the network, when IPAM names none. */
static struct ip implied(const struct prefix *address)
{
	return ip_next(prefix_network(address));
}

/* In the main table. One without a gateway counts: it goes through the address's gateway when it is
 * set. */
static bool has_default(const struct result *r, uint8_t family)
{
	for (size_t i = 0; i < r->routes_len; i++)
		if (r->routes[i].dst.ip.family == family && !r->routes[i].dst.len &&
			(!r->routes[i].has_table || !r->routes[i].table))
			return true;
	return false;
}

int gateway_fill(struct result *r, bool default_route, struct err *e)
{
	for (size_t i = 0; i < r->ips_len; i++) {
		struct ip_config *ip = &r->ips[i];
		struct prefix all = {.ip.family = ip->address.ip.family};
		struct route *route;

		if (!ip->gateway.family)
			ip->gateway = implied(&ip->address);
		if (!default_route || ip->gateway.family != all.ip.family ||
			has_default(r, all.ip.family))
			continue;
		route = result_add_route(r, &all, e);
		if (!route)
			return -1;
		route->gw = ip->gateway;
	}
	return 0;
}

/* ---- the link ---- */

struct conflict {
	const struct prefix *want;
	bool same;           /* it is there already */
	struct prefix other; /* one that is in the way; family 0: none */
};

/* Any other IPv4 address is in the way; an IPv6 one only when the networks overlap, and not the one
 * that every link has. */
static int find_conflict(const struct addr *a, void *arg)
{
	struct conflict *c = arg;

	if (a->prefix.len == c->want->len && !ip_cmp(&a->prefix.ip, &c->want->ip))
		c->same = true;
	else if (a->prefix.ip.family == AF_INET ||
		 (a->scope != RT_SCOPE_LINK && (prefix_contains(&a->prefix, &c->want->ip) ||
						       prefix_contains(c->want, &a->prefix.ip))))
		c->other = a->prefix;
	return 0;
}

static int scan(struct nl *nl, const struct link *l, struct conflict *c, struct err *e)
{
	int ret;

	c->same = false;
	c->other.ip.family = 0;
	ret = addr_each(nl, l->index, c->want->ip.family, find_conflict, c);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to list addresses of \"%s\"", l->name)
		   : 0;
}

static int put(struct nl *nl, const struct link *l, const struct prefix *gw, struct err *e)
{
	char text[PREFIX_STRLEN];
	int ret = addr_add(nl, l->index, gw, IFA_F_NODAD);

	return ret && ret != -EEXIST
		       ? err_sys(e, -ret, ERR_SYSTEM, "failed to set bridge addr: %s on \"%s\"",
				 prefix_format(gw, text), l->name)
		       : 0;
}

int gateway_check_ipv6(const char *ifname, const struct ip *gateway, struct err *e)
{
	char path[64], value[8] = "", text[IP_STRLEN];
	int ret;

	if (gateway->family != AF_INET6)
		return 0;
	snprintf(path, sizeof(path), "net/ipv6/conf/%s/disable_ipv6", ifname);
	ret = sysctl_get(path, value, sizeof(value));
	if (!ret && !strcmp(value, "0"))
		return 0;
	err_set(e, ERR_SYSTEM, "IPv6 is disabled on \"%s\" of the host, which gateway %s needs",
		ifname, ip_format(gateway, text));
	return ret ? err_detail(e, "this kernel has no %s", path) : err_detail(e, "%s is 1", path);
}

int gateway_add(struct nl *nl, const struct link *l, const struct prefix *gw, bool force,
	bool *added, struct err *e)
{
	struct conflict found = {.want = gw};
	char have[PREFIX_STRLEN], want[PREFIX_STRLEN];

	*added = false;
	if (scan(nl, l, &found, e))
		return -1;
	if (found.same)
		return 0;
	if (found.other.ip.family && !force)
		return err_set(e, ERR_CONFLICT,
			"failed to set bridge addr: \"%s\" already has an IP address different "
			"from %s: %s",
			l->name, prefix_format(gw, want), prefix_format(&found.other, have));
	if (gateway_check_ipv6(l->name, &gw->ip, e) || put(nl, l, gw, e))
		return -1;
	*added = true;
	return 0;
}

/* The new address is there before the old ones go, so that running containers are never without
 * their gateway; but the kernel deletes it along with an older address of the same network, then it
 * is put back. */
int gateway_replace(struct nl *nl, const struct link *l, const struct prefix *gw,
	int (*keep)(const struct prefix *former, void *arg, struct err *e), void *arg,
	struct err *e)
{
	struct conflict found = {.want = gw};
	char text[PREFIX_STRLEN];

	if (scan(nl, l, &found, e))
		return -1;
	while (found.other.ip.family) {
		int ret = keep(&found.other, arg, e);

		if (ret)
			return -1;
		ret = addr_del(nl, l->index, &found.other);
		if (ret && ret != -EADDRNOTAVAIL)
			return err_sys(e, -ret, ERR_SYSTEM,
				"failed to set bridge addr: could not remove %s from \"%s\"",
				prefix_format(&found.other, text), l->name);
		if (scan(nl, l, &found, e) || (!found.same && put(nl, l, gw, e)))
			return -1;
	}
	return 0;
}

void gateway_ignore_routers(const char *ifname, int (*set)(const char *path, const char *value))
{
	char path[64];

	snprintf(path, sizeof(path), "net/ipv6/conf/%s/accept_ra", ifname);
	set(path, "0");
}

int gateway_forward(uint8_t family, struct err *e)
{
	const char *path =
		family == AF_INET ? "net/ipv4/ip_forward" : "net/ipv6/conf/all/forwarding";
	int ret = sysctl_ensure(path, "1");

	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to enable forwarding (%s)", path) : 0;
}
