/* ptp: a veth pair whose end on the host is the container's router. Nothing is shared: each
 * container has a gateway of its own, all with the same address, and reaches even its neighbours
 * through it. reference/bridge-ptp.md, section 4; docs/ptp.md. */
#include "attach/attach.h"
#include "attach/gateway.h"
#include "attach/verify.h"
#include "attach/veth.h"
#include "base/cleanup.h"
#include "base/mac.h"
#include "netlink/addr.h"
#include "netlink/route.h"
#include "netlink/sysctl.h"

#include <errno.h>
#include <linux/ipv6_route.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

/* How many containers may claim one IPv6 address: their routes differ in the metric. */
#define METRICS_TRIED 64

struct ptp {
	struct veth veth;
};

/* An address alone, without its network. */
static struct prefix single(const struct ip *ip)
{
	return (struct prefix){*ip, ip_bits(ip)};
}

static int conf(struct attach *a, struct err *e)
{
	(void)e;
	a->routed = true;
	return 0;
}

static int attach(struct attach *a, struct err *e)
{
	struct ptp *p = a->own;
	struct veth_spec spec = {.ifname = a->req->ifname, .mtu = a->conf.mtu, .up = a->up};

	if (veth_create(&a->sb, &a->req->owner, &spec, &a->reply->undo, &p->veth, e))
		return -1;
	a->link = p->veth.inside;
	gateway_ignore_routers(p->veth.host_name, sysctl_set);
	return 0;
}

static int entries(struct attach *a, struct err *e)
{
	const struct veth *v = &((struct ptp *)a->own)->veth;

	return attach_add_host_entry(a, v->host_name, v->host_mac, v->inside.mtu, e) ||
			       attach_add_entry(a, e)
		       ? -1
		       : 0;
}

/* Without a gateway the container would have no way out. */
static int complete(struct attach *a, struct err *e)
{
	for (size_t i = 0; i < a->result->ips_len; i++) {
		const struct ip_config *ip = &a->result->ips[i];
		char text[PREFIX_STRLEN];

		if (ip->gateway.family != ip->address.ip.family)
			return err_set(e, ERR_INVALID_CONFIG,
				"IPAM names no gateway for %s, which ptp needs",
				prefix_format(&ip->address, text));
	}
	return 0;
}

/* ---- the host's end ---- */

/* Several addresses may share a gateway. */
static bool is_repeated(const struct result *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!ip_cmp(&r->ips[i].gateway, &r->ips[n].gateway))
			return true;
	return false;
}

static int put_host_address(
	struct attach *a, const struct link *port, const struct ip *gateway, struct err *e)
{
	struct prefix gw = single(gateway);
	char text[PREFIX_STRLEN];
	int ret;

	if (gateway_check_ipv6(port->name, gateway, e) || gateway_forward(gateway->family, e))
		return -1;
	/* The link is new and has one neighbour: there is nobody to detect a duplicate with. */
	ret = addr_add(a->sb.host, port->index, &gw, IFA_F_NODAD);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to add IP addr %s to veth: \"%s\"",
			     prefix_format(&gw, text), port->name)
		   : 0;
}

/* Ahead of a route to the same address that is there: a dead container's would keep the packets. It
 * stays where it is, since it may as well be a living one's, or the administrator's, and counts
 * again when the link goes and ours with it. Of IPv4 routes with one metric the kernel prefers the
 * newest, of IPv6 routes the oldest. */
static int add_ahead(struct nl *nl, struct route_spec *route)
{
	int ret = -EEXIST;

	if (route->dst.ip.family == AF_INET)
		return route_add(nl, route, 0);
	for (int i = 0; ret == -EEXIST && i < METRICS_TRIED; i++) {
		route->priority = IP6_RT_PRIO_USER - (uint32_t)i;
		ret = route_add(nl, route, NLM_F_EXCL);
	}
	return ret;
}

static int put_host_route(
	struct attach *a, const struct link *port, const struct ip *address, struct err *e)
{
	struct route_spec route = {
		.dst = single(address),
		.index = port->index,
		.scope = address->family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
	};
	char text[IP_STRLEN];
	int ret = add_ahead(a->sb.host, &route);

	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to add route on host: %s dev %s",
			     ip_format(address, text), port->name)
		   : 0;
}

static int host(struct attach *a, struct err *e)
{
	const struct ptp *p = a->own;
	const struct result *r = a->result;
	struct link port;

	if (link_need(a->sb.host, p->veth.host_name, &port, e))
		return -1;
	for (size_t i = 0; i < r->ips_len; i++)
		if ((!is_repeated(r, i) && put_host_address(a, &port, &r->ips[i].gateway, e)) ||
			put_host_route(a, &port, &r->ips[i].address.ip, e))
			return -1;
	return 0;
}

/* ---- CHECK ---- */

struct wanted {
	const struct ip *ip;
	bool found;
};

static int match(const struct addr *have, void *arg)
{
	struct wanted *w = arg;

	w->found = w->found || !ip_cmp(&have->prefix.ip, w->ip);
	return 0;
}

static int check_host_address(
	struct attach *a, const struct link *port, const struct ip *gateway, struct err *e)
{
	struct wanted w = {gateway, false};
	char text[IP_STRLEN];
	int ret = addr_each(a->sb.host, port->index, gateway->family, match, &w);

	if (ret)
		return err_sys(
			e, -ret, ERR_SYSTEM, "failed to list addresses of \"%s\"", port->name);
	return w.found ? 0
		       : err_set(e, ERR_CHECK, "gateway %s is not on interface %s",
				 ip_format(gateway, text), port->name);
}

static int check_host_route(
	struct attach *a, const struct link *port, const struct ip *address, struct err *e)
{
	char text[IP_STRLEN];
	uint32_t index = 0;

	/* That there is no way at all is a finding, too. */
	route_lookup(a->sb.host, address, &index);
	return index == port->index
		       ? 0
		       : err_set(e, ERR_CHECK, "the host does not reach %s through interface %s",
				 ip_format(address, text), port->name);
}

static int check(struct attach *a, struct err *e)
{
	const struct result *r = a->result;
	const struct iface *entry;
	struct link port;

	if (link_get_index(a->sb.host, a->link.peer, &port) || port.peer != a->link.index)
		return err_set(e, ERR_CHECK, "the host's end of %s was not found", a->req->ifname);
	entry = ifcheck_host_entry(r, port.name);
	if (!entry)
		return err_set(
			e, ERR_CHECK, "Interface name %s not found in prevResult", port.name);
	if (ifcheck_mac(entry, &port, e))
		return -1;
	for (size_t i = 0; a->conf.ipam && i < r->ips_len; i++) {
		const struct ip_config *ip = &r->ips[i];

		if (result_ip_iface(r, i) != result_find_iface(r, a->req->ifname, a->req->netns))
			continue;
		if ((ip->gateway.family && check_host_address(a, &port, &ip->gateway, e)) ||
			check_host_route(a, &port, &ip->address.ip, e))
			return -1;
	}
	return 0;
}

static const struct attach_type type = {
	.kind = &kind_veth,
	.keys = KEY_MTU | KEY_MASQ,
	.conf_size = sizeof(struct ptp),
	.conf = conf,
	.attach = attach,
	.entries = entries,
	.complete = complete,
	.host = host,
	.check = check,
	.detach = veth_del,
	.collect = veth_gc,
};

const struct applet applet_ptp = {
	.name = "ptp",
	.help = "Connects a container to the host by a veth pair and routes",
	.kind = APPLET_MAIN,
	ATTACH_VERBS(&type),
};
