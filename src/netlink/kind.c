#include "netlink/kind.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

const struct link_kind kind_dummy = {.name = "dummy"};
const struct link_kind kind_ifb = {.name = "ifb"};
const struct link_kind kind_tun = {.name = "tun", .by_ioctl = true};

/* ---- bridge ---- */

static void put_bridge(struct nl_req *req, const void *data)
{
	const struct bridge_data *d = data;

	if (d->vlan_filtering)
		nl_put_u8(req, IFLA_BR_VLAN_FILTERING, 1);
}

static void read_bridge(const struct nlattr *const *a, void *data)
{
	*(struct bridge_data *)data =
		(struct bridge_data){.vlan_filtering = nl_u8(a[IFLA_BR_VLAN_FILTERING])};
}

const struct link_kind kind_bridge = {.name = "bridge", .put = put_bridge, .read = read_bridge};

/* ---- veth ---- */

/* The peer is described like a link of its own: fixed header, then IFLA_* attributes. */
static void put_veth(struct nl_req *req, const void *data)
{
	const struct veth_data *d = data;
	size_t peer = nl_nest(req, VETH_INFO_PEER);

	nl_put_raw(req, sizeof(struct ifinfomsg));
	nl_put_str(req, IFLA_IFNAME, d->name);
	if (d->mtu)
		nl_put_u32(req, IFLA_MTU, d->mtu);
	if (d->mac)
		nl_put(req, IFLA_ADDRESS, d->mac, 6);
	if (d->has_netns)
		nl_put_u32(req, IFLA_NET_NS_FD, (uint32_t)d->netns);
	nl_nest_end(req, peer);
}

const struct link_kind kind_veth = {.name = "veth", .put = put_veth};

/* ---- macvlan ---- */

static void put_macvlan(struct nl_req *req, const void *data)
{
	const struct macvlan_data *d = data;

	nl_put_u32(req, IFLA_MACVLAN_MODE, d->mode);
	if (d->flags)
		nl_put_u16(req, IFLA_MACVLAN_FLAGS, d->flags);
	if (d->bcqueuelen)
		nl_put_u32(req, IFLA_MACVLAN_BC_QUEUE_LEN, d->bcqueuelen);
}

static void read_macvlan(const struct nlattr *const *a, void *data)
{
	*(struct macvlan_data *)data = (struct macvlan_data){
		.mode = nl_u32(a[IFLA_MACVLAN_MODE]),
		.flags = nl_u16(a[IFLA_MACVLAN_FLAGS]),
		.bcqueuelen = nl_u32(a[IFLA_MACVLAN_BC_QUEUE_LEN]),
	};
}

const struct link_kind kind_macvlan = {.name = "macvlan", .put = put_macvlan, .read = read_macvlan};

/* ---- ipvlan ---- */

/* The mode is always said: the kernel's default (l3) is not the mode numbered 0 (l2). */
static void put_ipvlan(struct nl_req *req, const void *data)
{
	const struct ipvlan_data *d = data;

	nl_put_u16(req, IFLA_IPVLAN_MODE, d->mode);
	if (d->flags)
		nl_put_u16(req, IFLA_IPVLAN_FLAGS, d->flags);
}

static void read_ipvlan(const struct nlattr *const *a, void *data)
{
	*(struct ipvlan_data *)data = (struct ipvlan_data){
		.mode = nl_u16(a[IFLA_IPVLAN_MODE]),
		.flags = nl_u16(a[IFLA_IPVLAN_FLAGS]),
	};
}

const struct link_kind kind_ipvlan = {.name = "ipvlan", .put = put_ipvlan, .read = read_ipvlan};

/* ---- vlan ---- */

static void put_vlan(struct nl_req *req, const void *data)
{
	const struct vlan_data *d = data;

	nl_put_u16(req, IFLA_VLAN_ID, d->id);
	if (d->protocol)
		nl_put_u16(req, IFLA_VLAN_PROTOCOL, htons(d->protocol));
}

static void read_vlan(const struct nlattr *const *a, void *data)
{
	*(struct vlan_data *)data = (struct vlan_data){
		.id = nl_u16(a[IFLA_VLAN_ID]),
		.protocol = ntohs(nl_u16(a[IFLA_VLAN_PROTOCOL])),
	};
}

const struct link_kind kind_vlan = {
	.name = "vlan", .put = put_vlan, .read = read_vlan, .module = "8021q"};

/* ---- vrf ---- */

static void put_vrf(struct nl_req *req, const void *data)
{
	nl_put_u32(req, IFLA_VRF_TABLE, ((const struct vrf_data *)data)->table);
}

static void read_vrf(const struct nlattr *const *a, void *data)
{
	*(struct vrf_data *)data = (struct vrf_data){.table = nl_u32(a[IFLA_VRF_TABLE])};
}

const struct link_kind kind_vrf = {.name = "vrf", .put = put_vrf, .read = read_vrf};
