/* loopback: brings lo up in the container. reference/links.md, section 3. */
#include "base/cleanup.h"
#include "base/mac.h"
#include "cni/applet.h"
#include "netlink/addr.h"
#include "netlink/link.h"
#include "netlink/netns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The interface this plugin is about, whatever CNI_IFNAME says: runtimes pass "lo" or "eth0". */
#define LO "lo"

struct lo {
	struct nl *nl; /* of the container's namespace; owned */
	struct link link;
	/* The first loopback address of each family; family 0: none. */
	struct prefix v4, v6;
};

static int open_socket(void *arg, struct err *e)
{
	struct lo *lo = arg;

	return nl_open(&lo->nl, NETLINK_ROUTE, e);
}

/* Opens a socket in the container's namespace and looks lo up. */
static int open_lo(int netns, struct lo *lo, struct err *e)
{
	if (netns_run(netns, open_socket, lo, e))
		return -1;
	return link_need(lo->nl, LO, &lo->link, e);
}

static int set_lo(struct lo *lo, bool up, struct err *e)
{
	struct link_set set = {.index = lo->link.index,
		.flags_set = up ? IFF_UP : 0,
		.flags_clear = up ? 0 : IFF_UP};
	int ret = link_apply(lo->nl, &set);

	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to set \"%s\" %s", LO, up ? "up" : "down")
		   : 0;
}

static bool is_loopback(const struct ip *ip)
{
	static const uint8_t v6[16] = {[15] = 1};

	return ip->family == AF_INET ? ip->bytes[0] == 127 : !memcmp(ip->bytes, v6, sizeof(v6));
}

/* Addresses that others put there are none of our business. */
static int keep_addr(const struct addr *a, void *arg)
{
	struct lo *lo = arg;
	struct prefix *slot = a->prefix.ip.family == AF_INET ? &lo->v4 : &lo->v6;

	if (is_loopback(&a->prefix.ip) && !slot->ip.family)
		*slot = a->prefix;
	return 0;
}

/* The result of a plugin that comes first: what lo is now. */
static int describe(const struct request *req, struct lo *lo, struct result *r, struct err *e)
{
	const struct prefix *addrs[] = {&lo->v4, &lo->v6};
	char mac[MAC_STRLEN];
	struct iface *iface;
	int ret = addr_each(lo->nl, lo->link.index, AF_UNSPEC, keep_addr, lo);

	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to list the addresses of \"%s\"", LO);
	iface = result_add_iface(r, LO, mac_format(lo->link.mac, mac), req->netns, e);
	if (!iface)
		return -1;
	iface_set_mtu(iface, req->version, lo->link.mtu);
	for (size_t i = 0; i < array_len(addrs); i++) {
		struct ip_config *ip;

		if (!addrs[i]->ip.family)
			continue;
		ip = result_add_ip(r, addrs[i], e);
		if (!ip)
			return -1;
		ip->has_iface = true;
	}
	return 0;
}

static void undo_up(void *arg)
{
	autoerr e = {0};

	set_lo(arg, false, &e);
}

static void release(void *arg)
{
	struct lo *lo = arg;

	nl_close(&lo->nl);
	free(lo);
}

static void releasep(struct lo **lo)
{
	if (*lo)
		release(*lo);
}

static int add(const struct request *req, struct reply *reply, struct err *e)
{
	__attribute__((cleanup(releasep))) struct lo *lo = calloc(1, sizeof(*lo));
	autoclose int netns = -1;
	bool chained;

	if (!lo)
		return err_memory(e);
	if (request_prev_result(req, &reply->result, &chained, NULL, e))
		return -1;
	if (netns_open(req->netns, &netns, e) != NETNS_OK || open_lo(netns, lo, e))
		return -1;
	if (set_lo(lo, true, e))
		return -1;
	if (!chained && describe(req, lo, &reply->result, e)) {
		if (!(lo->link.flags & IFF_UP))
			undo_up(lo);
		return -1;
	}
	if (lo->link.flags & IFF_UP)
		return 0;
	return undo_push(&reply->undo, undo_up, release, take_ptr(lo), e);
}

/* A namespace that is gone took its lo along; a path that is none never had one. */
static int del(const struct request *req, struct err *e)
{
	autoclose int netns = -1;
	struct lo lo = {0};
	autoerr why = {0};
	enum netns_state state;
	int ret;

	if (!*req->netns)
		return 0;
	state = netns_open(req->netns, &netns, &why);
	if (state == NETNS_ERROR)
		err_merge(e, &why);
	if (state != NETNS_OK)
		return e->set ? -1 : 0;
	ret = open_lo(netns, &lo, e) || set_lo(&lo, false, e) ? -1 : 0;
	nl_close(&lo.nl);
	return ret;
}

struct wanted {
	const struct prefix *prefix;
	bool found;
};

static int compare_addr(const struct addr *a, void *arg)
{
	struct wanted *w = arg;

	w->found = a->prefix.len == w->prefix->len && !ip_cmp(&a->prefix.ip, &w->prefix->ip);
	return w->found;
}

/* The addresses the result gives to lo are on it. */
static int check_addrs(struct lo *lo, const struct result *prev, struct err *e)
{
	for (size_t i = 0; i < prev->ips_len; i++) {
		const struct ip_config *ip = &prev->ips[i];
		const struct iface *iface = result_ip_iface(prev, i);
		struct wanted w = {&ip->address, false};
		char text[PREFIX_STRLEN];
		int ret;

		if (!iface || strcmp(iface->name, LO) != 0)
			continue;
		ret = addr_each(lo->nl, lo->link.index, ip->address.ip.family, compare_addr, &w);
		if (ret < 0)
			return err_sys(
				e, -ret, ERR_SYSTEM, "failed to list the addresses of \"%s\"", LO);
		if (!w.found)
			return err_set(e, ERR_CHECK, "\"%s\" has no address %s", LO,
				prefix_format(&ip->address, text));
	}
	return 0;
}

static int check(const struct request *req, struct err *e)
{
	autoresult prev = {0};
	autoclose int netns = -1;
	struct lo lo = {0};
	bool present;
	int ret;

	if (request_prev_result(req, &prev, &present, NULL, e))
		return -1;
	if (netns_open(req->netns, &netns, e) != NETNS_OK)
		return -1;
	ret = open_lo(netns, &lo, e);
	if (!ret && !(lo.link.flags & IFF_UP))
		ret = err_set(
			e, ERR_CHECK, "loopback interface is down: \"%s\" in %s", LO, req->netns);
	if (!ret)
		ret = check_addrs(&lo, &prev, e);
	nl_close(&lo.nl);
	return ret;
}

const struct applet applet_loopback = {
	.name = "loopback",
	.help = "bring up lo in the container",
	.kind = APPLET_MAIN,
	.add = add,
	.del = del,
	.check = check,
};
