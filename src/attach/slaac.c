#include "attach/slaac.h"

#include "base/clock.h"
#include "netlink/addr.h"
#include "netlink/sysctl.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

/* Not every change is announced: so often is looked without. */
#define LOOK_AGAIN_MS 200

static bool is_on(const char *ifname, const char *name)
{
	char path[128], value[16];

	snprintf(path, sizeof(path), "net/ipv6/conf/%s/%s", ifname, name);
	return !sysctl_get(path, value, sizeof(value)) && strcmp(value, "0") != 0;
}

static int set(const char *ifname, const char *name, const char *value, struct err *e)
{
	char path[128];
	int ret;

	snprintf(path, sizeof(path), "net/ipv6/conf/%s/%s", ifname, name);
	ret = sysctl_ensure(path, value);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to set %s of \"%s\" for slaacWait", name,
			     ifname)
		   : 0;
}

/* A container that forwards listens to routers only when it is told twice. */
static int listen_to_routers(void *arg, struct err *e)
{
	const char *ifname = arg;

	if (set(ifname, "autoconf", "1", e) ||
		set(ifname, "accept_ra", is_on(ifname, "forwarding") ? "2" : "1", e))
		return -1;
	return set(ifname, "disable_ipv6", "0", e);
}

struct wanted {
	const struct result *result; /* its addresses are IPAM's */
	bool found;
	struct prefix prefix;
};

static int take_address(const struct addr *a, void *arg)
{
	struct wanted *w = arg;

	if (a->scope != RT_SCOPE_UNIVERSE ||
		a->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED | IFA_F_TEMPORARY |
				   IFA_F_PERMANENT))
		return 0;
	for (size_t i = 0; i < w->result->ips_len; i++)
		if (!ip_cmp(&w->result->ips[i].address.ip, &a->prefix.ip))
			return 0;
	w->prefix = a->prefix;
	w->found = true;
	return 1;
}

static int report(struct attach *a, const struct prefix *address, struct err *e)
{
	const struct iface *own = result_find_iface(a->result, a->req->ifname, a->req->netns);
	struct ip_config *ip = result_add_ip(a->result, address, e);

	if (!ip)
		return -1;
	ip->has_iface = own;
	ip->iface = own ? own - a->result->ifaces : 0;
	return 0;
}

int slaac_wait(struct attach *a, int seconds, struct err *e)
{
	int64_t end = clock_ms() + (int64_t)seconds * 1000;
	struct wanted w = {.result = a->result};
	autonl *watch = NULL;

	if (netns_nl_watch(a->sb.netns, &watch, RTMGRP_IPV6_IFADDR, e) ||
		netns_run(a->sb.netns, listen_to_routers, (void *)a->req->ifname, e))
		return -1;
	for (;;) {
		int64_t left = end - clock_ms();
		int ret = addr_each(a->sb.nl, a->link.index, AF_INET6, take_address, &w);

		if (ret < 0)
			return err_sys(e, -ret, ERR_SYSTEM, "failed to list addresses of \"%s\"",
				a->req->ifname);
		if (w.found)
			return report(a, &w.prefix, e);
		if (left <= 0)
			return err_set(e, ERR_TRY_AGAIN,
				"no router has given \"%s\" an IPv6 address in %d seconds (slaacWait)",
				a->req->ifname, seconds);
		nl_watch_wait(watch, (int)(left < LOOK_AGAIN_MS ? left : LOOK_AGAIN_MS));
	}
}
