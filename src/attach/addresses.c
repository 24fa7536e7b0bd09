#include "attach/addresses.h"

#include "base/clock.h"
#include "base/vec.h"
#include "netlink/addr.h"
#include "netlink/link.h"
#include "netlink/route.h"
#include "netlink/sysctl.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define DAD_TIMEOUT_MS 5000

/* ---- sysctls ---- */

struct knobs {
	const char *ifname;
	bool ipv6, dad;
	bool ignore_routers;
};

static int set_knob(const char *family, const char *ifname, const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "net/%s/conf/%s/%s", family, ifname, name);
	return sysctl_force(path, value);
}

/* IPv6 may be switched off by default in a container whose network then assigns an address. */
static int enable_ipv6(const char *ifname, struct err *e)
{
	char path[128], now[16];
	int ret;

	snprintf(path, sizeof(path), "net/ipv6/conf/%s/disable_ipv6", ifname);
	if (sysctl_get(path, now, sizeof(now)) || !strcmp(now, "0"))
		return 0;
	ret = sysctl_set(path, "0");
	if (ret)
		return err_sys(
			e, -ret, ERR_SYSTEM, "failed to enable IPv6 for interface \"%s\"", ifname);
	return 0;
}

static int set_knobs(void *arg, struct err *e)
{
	const struct knobs *k = arg;
	int ret;

	/* Best effort, as upstream: a read-only /proc/sys is no reason to fail. */
	set_knob("ipv4", k->ifname, "arp_notify", "1");
	set_knob("ipv6", k->ifname, "accept_dad", k->dad ? "1" : "0");
	if (k->dad)
		set_knob("ipv6", k->ifname, "enhanced_dad", "1");
	if (!k->ipv6)
		return 0;
	set_knob("ipv6", k->ifname, "ndisc_notify", "1");
	if (k->ignore_routers)
		set_knob("ipv6", k->ifname, "accept_ra", "0");
	if (enable_ipv6("lo", e) || enable_ipv6(k->ifname, e))
		return -1;
	ret = set_knob("ipv6", k->ifname, "keep_addr_on_down", "1");
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to set keep_addr_on_down for \"%s\"",
			     k->ifname)
		   : 0;
}

/* ---- addresses ---- */

/* An address without an index is of no interface. */
static bool has_link(const struct ip_config *ip)
{
	return ip->has_iface;
}

static int check_indexes(const struct result *r, const char *ifname, struct err *e)
{
	if (!r->ifaces_len)
		return err_set(e, ERR_INVALID_CONFIG, "no interfaces to configure");
	for (size_t i = 0; i < r->ips_len; i++) {
		const struct ip_config *ip = &r->ips[i];
		const struct iface *iface = result_ip_iface(r, i);
		char text[PREFIX_STRLEN];

		if (!has_link(ip))
			continue;
		if (!iface || strcmp(iface->name, ifname) != 0)
			return err_set(e, ERR_INVALID_CONFIG,
				"failed to add IP addr %s to \"%s\": invalid interface index",
				prefix_format(&ip->address, text), ifname);
	}
	return 0;
}

static bool any_ipv6(const struct result *r)
{
	for (size_t i = 0; i < r->ips_len; i++)
		if (has_link(&r->ips[i]) && r->ips[i].address.ip.family == AF_INET6)
			return true;
	return false;
}

static size_t put_addresses(struct nl_req *req, const struct ifsetup *s, const struct result *r)
{
	uint32_t flags = (s->dad ? 0 : IFA_F_NODAD) | (s->routed ? IFA_F_NOPREFIXROUTE : 0);
	size_t n = 0;

	for (size_t i = 0; i < r->ips_len; i++) {
		if (!has_link(&r->ips[i]))
			continue;
		addr_put(req, s->index, &r->ips[i].address, flags);
		n++;
	}
	link_put(req, &(struct link_set){.index = s->index, .flags_set = IFF_UP});
	return n;
}

/* The n-th address that put_addresses() sent. */
static const struct ip_config *nth_address(const struct result *r, size_t n)
{
	for (size_t i = 0; i < r->ips_len; i++)
		if (has_link(&r->ips[i]) && !n--)
			return &r->ips[i];
	return NULL;
}

/* ---- routes ---- */

static struct ip first_gateway(const struct result *r, uint8_t family)
{
	for (size_t i = 0; i < r->ips_len; i++)
		if (has_link(&r->ips[i]) && r->ips[i].gateway.family == family)
			return r->ips[i].gateway;
	return (struct ip){0};
}

static struct route_spec as_spec(const struct route *route, const struct result *r, uint32_t index)
{
	struct route_spec spec = {
		.dst = route->dst,
		.gw = route->gw.family ? route->gw : first_gateway(r, route->dst.ip.family),
		.index = index,
		.table = route->has_table && route->table > 0 ? (uint32_t)route->table : 0,
		.scope = route->has_scope ? (uint8_t)route->scope : RT_SCOPE_UNIVERSE,
		.priority = (uint32_t)route->priority,
		.mtu = (uint32_t)route->mtu,
		.advmss = (uint32_t)route->advmss,
	};

	/* A link-scoped route has no next hop. */
	if (route->has_scope && route->scope == RT_SCOPE_LINK && !route->gw.family)
		spec.gw.family = 0;
	return spec;
}

static int check_routes(const struct result *r, struct err *e)
{
	for (size_t i = 0; i < r->routes_len; i++) {
		const struct route *route = &r->routes[i];
		char text[PREFIX_STRLEN];

		if (route->priority < 0 || route->priority > UINT32_MAX || route->mtu < 0 ||
			route->mtu > UINT32_MAX || route->advmss < 0 ||
			route->advmss > UINT32_MAX ||
			(route->has_table && (route->table < 0 || route->table > UINT32_MAX)) ||
			(route->has_scope && (route->scope < 0 || route->scope > 255)))
			return err_set(e, ERR_INVALID_CONFIG, "route %s: a number is out of range",
				prefix_format(&route->dst, text));
		if (route->gw.family && route->gw.family != route->dst.ip.family)
			return err_set(e, ERR_INVALID_CONFIG,
				"route %s: the gateway is of another address family",
				prefix_format(&route->dst, text));
	}
	return 0;
}

/* All routes of the interface, in the order in which they are sent. */
struct routes {
	struct route_spec *list; /* owned */
	size_t len;
};

static void routes_free(struct routes *all)
{
	free(all->list);
}
#define autospecs __attribute__((cleanup(routes_free))) struct routes

static int add_spec(struct routes *all, const struct route_spec *spec, struct err *e)
{
	struct route_spec *p = vec_add(all->list, all->len);

	if (!p)
		return err_memory(e);
	*p = *spec;
	return 0;
}

static bool has_spec(const struct routes *all, const struct prefix *dst)
{
	for (size_t i = 0; i < all->len; i++)
		if (all->list[i].dst.len == dst->len && !ip_cmp(&all->list[i].dst.ip, &dst->ip))
			return true;
	return false;
}

/* The gateway on the link, the network behind it; several addresses may have them in common. */
static int add_routed(struct routes *all, const struct ip_config *ip, uint32_t index, struct err *e)
{
	struct route_spec link = {
		.dst = {ip->gateway, ip_bits(&ip->gateway)},
		.src = ip->address.ip,
		.index = index,
		.scope = RT_SCOPE_LINK,
	};
	struct route_spec network = {
		.dst = {prefix_network(&ip->address), ip->address.len},
		.gw = ip->gateway,
		.src = ip->address.ip,
		.index = index,
	};

	if (!has_spec(all, &link.dst) && add_spec(all, &link, e))
		return -1;
	if (ip->address.len == ip_bits(&ip->address.ip) || has_spec(all, &network.dst))
		return 0;
	return add_spec(all, &network, e);
}

static int collect_routes(
	struct routes *all, const struct ifsetup *s, const struct result *r, struct err *e)
{
	for (size_t i = 0; s->routed && i < r->ips_len; i++)
		if (has_link(&r->ips[i]) && add_routed(all, &r->ips[i], s->index, e))
			return -1;
	for (size_t i = 0; i < r->routes_len; i++) {
		struct route_spec spec = as_spec(&r->routes[i], r, s->index);

		if (add_spec(all, &spec, e))
			return -1;
	}
	return 0;
}

static void put_routes(struct nl_req *req, const struct routes *all)
{
	for (size_t i = 0; i < all->len; i++)
		route_put(req, &all->list[i], 0);
}

/* ---- sending ---- */

/* What is sent: the addresses, the link up, the routes. */
struct plan {
	const struct ifsetup *setup;
	const struct result *result;
	struct routes routes;
	size_t addresses;
};

/* Which of the messages was refused, in words. */
static int refused(const struct plan *p, int sys, const char *ext, size_t failed, struct err *e)
{
	const char *ifname = p->setup->ifname;
	char dst[PREFIX_STRLEN], gw[IP_STRLEN];
	const struct route_spec *route;

	if (failed < p->addresses)
		return err_kernel(e, sys, ext, ERR_SYSTEM, "failed to add IP addr %s to \"%s\"",
			prefix_format(&nth_address(p->result, failed)->address, dst), ifname);
	if (failed == p->addresses)
		return err_kernel(e, sys, ext, ERR_SYSTEM, "failed to set \"%s\" UP", ifname);
	route = &p->routes.list[failed - p->addresses - 1];
	return err_kernel(e, sys, ext, ERR_SYSTEM, "failed to add route '%s via %s dev %s'",
		prefix_format(&route->dst, dst),
		route->gw.family ? ip_format(&route->gw, gw) : "<nil>", ifname);
}

/* skipped: how many messages of the plan were sent before. */
static int send_part(const struct sandbox *sb, const struct plan *p, struct nl_req *req,
	size_t skipped, struct err *e)
{
	char ext[256];
	int failed = 0, ret = nl_ack(sb->nl, req, ext, sizeof(ext), &failed);

	return ret ? refused(p, -ret, ext, skipped + (size_t)failed, e) : 0;
}

/* ---- duplicate address detection ---- */

struct settling {
	bool tentative;
	bool failed;
	struct prefix which;
};

static int look_at(const struct addr *a, void *arg)
{
	struct settling *s = arg;

	if (a->flags & IFA_F_DADFAILED) {
		s->failed = true;
		s->which = a->prefix;
	}
	s->tentative = s->tentative || (a->flags & IFA_F_TENTATIVE);
	return 0;
}

static int settle(const struct sandbox *sb, const struct ifsetup *s, struct err *e)
{
	int64_t end = clock_ms() + DAD_TIMEOUT_MS;
	autonl *watch = NULL;
	char text[PREFIX_STRLEN];

	if (netns_nl_watch(sb->netns, &watch, RTMGRP_IPV6_IFADDR, e))
		return -1;
	for (;;) {
		struct settling now = {0};
		int64_t left = end - clock_ms();
		int ret = addr_each(sb->nl, s->index, AF_INET6, look_at, &now);

		if (ret)
			return err_sys(e, -ret, ERR_SYSTEM, "failed to list addresses of \"%s\"",
				s->ifname);
		if (now.failed)
			return err_set(e, ERR_CONFLICT,
				"link \"%s\" has address %s in DADFAILED state", s->ifname,
				prefix_format(&now.which, text));
		if (!now.tentative)
			return 0;
		if (left <= 0)
			return err_set(e, ERR_TRY_AGAIN,
				"link \"%s\" still has tentative addresses after %d seconds",
				s->ifname, DAD_TIMEOUT_MS / 1000);
		nl_watch_wait(watch, (int)(left < 200 ? left : 200));
	}
}

int ifsetup(
	const struct sandbox *sb, const struct ifsetup *s, const struct result *r, struct err *e)
{
	struct knobs knobs = {s->ifname, any_ipv6(r), s->dad, s->ignore_routers};
	autospecs routes = {0};
	struct plan plan = {.setup = s, .result = r};
	autoreq req = {0};
	size_t sent = 0;

	if (check_indexes(r, s->ifname, e) || check_routes(r, e) ||
		collect_routes(&routes, s, r, e))
		return -1;
	if (netns_run(sb->netns, set_knobs, &knobs, e))
		return -1;
	plan.routes = routes;
	plan.addresses = put_addresses(&req, s, r);
	if (s->dad && knobs.ipv6) {
		if (send_part(sb, &plan, &req, 0, e) || settle(sb, s, e))
			return -1;
		sent = plan.addresses + 1;
	}
	put_routes(&req, &routes);
	return send_part(sb, &plan, &req, sent, e);
}

void ifsetup_announce(const struct sandbox *sb, uint32_t index, const uint8_t mac[static 6])
{
	link_apply(sb->nl, &(struct link_set){.index = index, .mac = mac});
}
