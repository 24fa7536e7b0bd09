/* Links, VLAN sets, routes and rules: what the builders write is read back from the bytes; and, as
 * root, from the kernel, in a network namespace of its own. */
#include "base/cleanup.h"
#include "netlink/addr.h"
#include "netlink/brvlan.h"
#include "netlink/kind.h"
#include "netlink/link.h"
#include "netlink/netns.h"
#include "netlink/route.h"
#include "netlink/rule.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_bridge.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 7};

static struct prefix prefix(const char *text)
{
	struct prefix p = {0};

	CHECK(prefix_parse(text, &p));
	return p;
}

/* ---- kinds ---- */

/* What a message says of the kind: its name is checked, the table of IFLA_INFO_DATA filled. */
static bool read_data(const struct nl_req *r, const char *kind, const struct nlattr **data)
{
	const struct nlattr *a[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1];

	memset(data, 0, sizeof(*data) * (KIND_ATTR_MAX + 1));
	CHECK(!r->overflow);
	nl_parse(r->msg, sizeof(struct ifinfomsg), a, IFLA_MAX);
	if (!CHECK(a[IFLA_LINKINFO]))
		return false;
	nl_parse_nested(a[IFLA_LINKINFO], info, IFLA_INFO_MAX);
	CHECK_STR(nl_str(info[IFLA_INFO_KIND]), kind);
	if (!info[IFLA_INFO_DATA])
		return false;
	nl_parse_nested(info[IFLA_INFO_DATA], data, KIND_ATTR_MAX);
	return true;
}

/* Builds a link of the kind and reads its data with the kind's own reader. */
static void round_trip(const struct link_kind *kind, const char *name, const void *in, void *out)
{
	const struct nlattr *data[KIND_ATTR_MAX + 1];
	autoreq r = {0};

	link_put_new(&r, &(struct link_new){.kind = kind, .data = in, .name = "x0"});
	if (CHECK(read_data(&r, name, data)))
		kind->read(data, out);
}

static void test_kinds(void)
{
	struct macvlan_data mv = {
		.mode = MACVLAN_MODE_PASSTHRU, .flags = MACVLAN_FLAG_NOPROMISC, .bcqueuelen = 5000};
	struct ipvlan_data iv = {.mode = IPVLAN_MODE_L3S, .flags = IPVLAN_F_VEPA};
	struct vlan_data vl = {.id = 4094, .protocol = ETH_P_8021AD};
	struct vrf_data vrf = {.table = 70000};
	struct bridge_data br = {.vlan_filtering = true};
	struct macvlan_data mv2 = {0};
	struct ipvlan_data iv2 = {0};
	struct vlan_data vl2 = {0};
	struct vrf_data vrf2 = {0};
	struct bridge_data br2 = {0};

	round_trip(&kind_macvlan, "macvlan", &mv, &mv2);
	CHECK_INT(mv2.mode, mv.mode);
	CHECK_INT(mv2.flags, mv.flags);
	CHECK_INT(mv2.bcqueuelen, 5000);
	round_trip(&kind_ipvlan, "ipvlan", &iv, &iv2);
	CHECK_INT(iv2.mode, iv.mode);
	CHECK_INT(iv2.flags, iv.flags);
	round_trip(&kind_vlan, "vlan", &vl, &vl2);
	CHECK_INT(vl2.id, 4094);
	CHECK_INT(vl2.protocol, ETH_P_8021AD);
	round_trip(&kind_vrf, "vrf", &vrf, &vrf2);
	CHECK_INT(vrf2.table, 70000);
	round_trip(&kind_bridge, "bridge", &br, &br2);
	CHECK(br2.vlan_filtering);
}

/* Mode 0 of ipvlan is l2, not "none given": it must be in the message. */
static void test_ipvlan_l2(void)
{
	const struct nlattr *data[KIND_ATTR_MAX + 1];
	autoreq r = {0};

	link_put_new(&r, &(struct link_new){.kind = &kind_ipvlan,
				 .data = &(struct ipvlan_data){.mode = IPVLAN_MODE_L2},
				 .name = "x0"});
	if (CHECK(read_data(&r, "ipvlan", data)))
		CHECK(data[IFLA_IPVLAN_MODE] && nl_u16(data[IFLA_IPVLAN_MODE]) == IPVLAN_MODE_L2);
	CHECK(!data[IFLA_IPVLAN_FLAGS]);
}

static void test_simple_kinds(void)
{
	const struct nlattr *data[KIND_ATTR_MAX + 1];
	autoreq dummy = {0}, ifb = {0};

	link_put_new(&dummy, &(struct link_new){.kind = &kind_dummy, .name = "x0"});
	CHECK(!read_data(&dummy, "dummy", data));
	link_put_new(&ifb, &(struct link_new){.kind = &kind_ifb, .name = "x0"});
	CHECK(!read_data(&ifb, "ifb", data));
}

static void test_veth(void)
{
	const struct nlattr *data[KIND_ATTR_MAX + 1], *peer[IFLA_MAX + 1];
	struct veth_data d = {
		.name = "eth0", .mac = mac, .mtu = 1400, .has_netns = true, .netns = 0};
	autoreq r = {0};

	link_put_new(&r, &(struct link_new){.kind = &kind_veth, .data = &d, .name = "x0"});
	if (!CHECK(read_data(&r, "veth", data)))
		return;
	/* The peer's fixed header comes first. */
	memset(peer, 0, sizeof(peer));
	for (size_t at = sizeof(struct ifinfomsg); at < nl_len(data[VETH_INFO_PEER]);) {
		const struct nlattr *a =
			(const void *)((const char *)nl_data(data[VETH_INFO_PEER]) + at);

		peer[nl_type(a)] = a;
		at += NLA_ALIGN(a->nla_len);
	}
	CHECK_STR(nl_str(peer[IFLA_IFNAME]), "eth0");
	CHECK_INT(nl_u32(peer[IFLA_MTU]), 1400);
	CHECK(nl_len(peer[IFLA_ADDRESS]) == 6 && !memcmp(nl_data(peer[IFLA_ADDRESS]), mac, 6));
	CHECK(peer[IFLA_NET_NS_FD] && nl_u32(peer[IFLA_NET_NS_FD]) == 0); /* 0 is a descriptor */
}

/* Everything in the one message. */
static void test_whole_link(void)
{
	const struct nlattr *a[IFLA_MAX + 1];
	const struct ifinfomsg *hdr;
	autoreq r = {0};

	link_put_new(&r, &(struct link_new){.kind = &kind_macvlan,
				 .data = &(struct macvlan_data){.mode = MACVLAN_MODE_BRIDGE},
				 .name = "eth0",
				 .mac = mac,
				 .mtu = 1400,
				 .up = true,
				 .parent = 7,
				 .has_parent_nsid = true,
				 .parent_nsid = 0,
				 .has_netns = true,
				 .netns = 0});
	hdr = (const void *)((const char *)r.msg + NLMSG_HDRLEN);
	nl_parse(r.msg, sizeof(*hdr), a, IFLA_MAX);
	CHECK_INT(r.msg->nlmsg_type, RTM_NEWLINK);
	CHECK(r.msg->nlmsg_flags & NLM_F_EXCL);
	CHECK_INT(hdr->ifi_flags, IFF_UP);
	CHECK_INT(hdr->ifi_change, IFF_UP);
	CHECK_STR(nl_str(a[IFLA_IFNAME]), "eth0");
	CHECK_INT(nl_u32(a[IFLA_MTU]), 1400);
	CHECK_INT(nl_u32(a[IFLA_LINK]), 7);
	CHECK(a[IFLA_LINK_NETNSID] && nl_u32(a[IFLA_LINK_NETNSID]) == 0);
	CHECK(a[IFLA_NET_NS_FD] && nl_u32(a[IFLA_NET_NS_FD]) == 0);
	CHECK(!a[IFLA_MASTER] && !a[IFLA_GROUP]);
}

/* ---- settings ---- */

static void test_rename(void)
{
	const struct nlattr *a[IFLA_MAX + 1];
	struct link_set set = {.index = 7, .rename = "new0", .has_netns = true, .netns = 0};
	autonl *nl = NULL;
	autoreq r = {0};
	autoerr e = {0};

	if (!CHECK(!nl_open(&nl, NETLINK_ROUTE, &e)))
		return;
	link_put(&r, &set);
	nl_parse(r.msg, sizeof(struct ifinfomsg), a, IFLA_MAX);
	CHECK_STR(nl_str(a[IFLA_IFNAME]), "new0");
	CHECK(a[IFLA_NET_NS_FD] && nl_u32(a[IFLA_NET_NS_FD]) == 0);
	nl_req_free(&r);
	/* Without an index the name says which link is meant; there is no room for a second one. */
	set = (struct link_set){.name = "old0", .rename = "new0"};
	link_put(&r, &set);
	CHECK(r.overflow);
	CHECK_INT(nl_ack(nl, &r, NULL, 0, NULL), -EINVAL);
	CHECK(!r.overflow);
	set = (struct link_set){.name = "old0"};
	link_put(&r, &set);
	CHECK(!r.overflow);
	nl_parse(r.msg, sizeof(struct ifinfomsg), a, IFLA_MAX);
	CHECK(!a[IFLA_NET_NS_FD]);
}

/* ---- VLAN sets ---- */

/* The runs of the message built for a set, as "first-last ". */
static void runs(const struct vlan_set *s, char *out, size_t size)
{
	autoreq r = {0};
	size_t at = 0, len = 0;

	brvlan_put_tagged(&r, 9, s);
	out[0] = '\0';
	while (at < r.len) {
		const struct nlmsghdr *msg = (const void *)(r.buf + at);
		const struct nlattr *a[IFLA_MAX + 1];
		unsigned first = 0, last = 0;

		nl_parse(msg, sizeof(struct ifinfomsg), a, IFLA_MAX);
		nl_for_each_attr (attr, a[IFLA_AF_SPEC]) {
			struct bridge_vlan_info info;

			memcpy(&info, nl_data(attr), sizeof(info));
			if (!first)
				first = info.vid;
			last = info.vid;
		}
		len += (size_t)snprintf(out + len, size - len, "%u-%u ", first, last);
		at += NLMSG_ALIGN(msg->nlmsg_len);
	}
}

static void test_vlan_set(void)
{
	struct vlan_set s = {0};
	char text[200];

	CHECK(vlan_set_empty(&s));
	runs(&s, text, sizeof(text));
	CHECK_STR(text, "");
	vlan_set_add(&s, 1, 1);
	vlan_set_add(&s, 100, 105);
	vlan_set_add(&s, 103, 110);
	vlan_set_add(&s, 4093, 4094);
	CHECK(!vlan_set_empty(&s));
	CHECK(vlan_set_has(&s, 1) && vlan_set_has(&s, 110) && vlan_set_has(&s, 4094));
	CHECK(!vlan_set_has(&s, 2) && !vlan_set_has(&s, 99) && !vlan_set_has(&s, 111));
	CHECK(!vlan_set_has(&s, 4095) && !vlan_set_has(&s, 65535));
	runs(&s, text, sizeof(text));
	CHECK_STR(text, "1-1 100-110 4093-4094 ");
	vlan_set_add(&s, 1, 4094);
	runs(&s, text, sizeof(text));
	CHECK_STR(text, "1-4094 ");
}

/* ---- routes ---- */

static struct nlmsghdr *one_message(struct nl_req *r)
{
	return (void *)r->buf;
}

/* As the kernel would show it: flags that are no part of the route, a next hop object. */
static void test_route_copy_bytes(void)
{
	const struct nlattr *a[RTA_MAX + 1];
	struct rtnexthop nh[2] = {{.rtnh_len = sizeof(nh[0]), .rtnh_ifindex = 3},
		{.rtnh_len = sizeof(nh[0]), .rtnh_flags = RTNH_F_DEAD | RTNH_F_ONLINK}};
	struct route_copy copy = {.spec.table = 254};
	const struct rtmsg *hdr;
	struct rtmsg *from;
	autoreq shown = {0}, built = {0};

	from = nl_msg(&shown, RTM_NEWROUTE, 0, sizeof(*from));
	from->rtm_family = AF_INET;
	from->rtm_dst_len = 24;
	from->rtm_protocol = RTPROT_STATIC;
	from->rtm_flags = RTNH_F_LINKDOWN | RTNH_F_ONLINK;
	nl_put_u32(&shown, RTA_TABLE, 254);
	nl_put_u32(&shown, RTA_OIF, 3);
	nl_put_u32(&shown, RTA_PRIORITY, 77);
	nl_put_u32(&shown, RTA_CACHEINFO, 1);
	nl_put(&shown, RTA_MULTIPATH, nh, sizeof(nh));
	copy.msg = one_message(&shown);
	route_put_copy(&built, &copy, &(struct route_change){.table = 1000, .index = 5}, 0);
	hdr = (const void *)((const char *)built.msg + NLMSG_HDRLEN);
	nl_parse(built.msg, sizeof(*hdr), a, RTA_MAX);
	CHECK_INT(hdr->rtm_table, RT_TABLE_UNSPEC);
	CHECK_INT(hdr->rtm_flags, RTNH_F_ONLINK);
	CHECK_INT(hdr->rtm_protocol, RTPROT_STATIC);
	CHECK_INT(nl_u32(a[RTA_TABLE]), 1000);
	CHECK_INT(nl_u32(a[RTA_OIF]), 5);
	CHECK_INT(nl_u32(a[RTA_PRIORITY]), 77);
	CHECK(!a[RTA_CACHEINFO]);
	if (CHECK(nl_len(a[RTA_MULTIPATH]) == sizeof(nh))) {
		memcpy(nh, nl_data(a[RTA_MULTIPATH]), sizeof(nh));
		CHECK_INT(nh[0].rtnh_ifindex, 3);
		CHECK_INT(nh[1].rtnh_flags, RTNH_F_ONLINK);
	}
	nl_put_u32(&shown, RTA_NH_ID, 12);
	copy.msg = one_message(&shown);
	nl_req_free(&built);
	route_put_copy(&built, &copy, &(struct route_change){0}, 0);
	nl_parse(built.msg, sizeof(*hdr), a, RTA_MAX);
	CHECK_INT(nl_u32(a[RTA_TABLE]), 254);
	CHECK_INT(nl_u32(a[RTA_NH_ID]), 12);
	CHECK(!a[RTA_OIF] && !a[RTA_MULTIPATH]);
}

/* ---- with the kernel ---- */

static uint32_t make_veth(struct nl *nl, const char *name, const char *peer)
{
	char ext[256];
	struct link l = {0};
	int ret = link_create(nl,
		&(struct link_new){.kind = &kind_veth,
			.data = &(struct veth_data){.name = peer},
			.name = name,
			.mac = mac,
			.mtu = 1400,
			.up = true},
		"an alias", ext, sizeof(ext));

	CHECK_INT(ret, 0);
	CHECK_INT(link_get(nl, name, &l), 0);
	CHECK_STR(l.alias, "an alias");
	CHECK_STR(l.kind, "veth");
	CHECK_INT(l.mtu, 1400);
	CHECK(!memcmp(l.mac, mac, 6));
	CHECK_INT(link_create(nl, &(struct link_new){.kind = &kind_veth, .name = name}, NULL, ext,
			  sizeof(ext)),
		-EEXIST);
	CHECK_INT(link_apply(nl, &(struct link_set){.name = peer, .flags_set = IFF_UP}), 0);
	return l.index;
}

/* Every copy of the main table's routes appears in another table as it was. */
static void kernel_routes(struct nl *nl, uint32_t index)
{
	struct prefix addr = prefix("10.9.0.1/24"), v6 = prefix("fd09::1/64");
	struct route_spec spec = {.dst = prefix("192.0.2.0/24"),
		.gw = prefix("10.9.0.9/32").ip,
		.src = addr.ip,
		.index = index,
		.priority = 42,
		.mtu = 1300,
		.advmss = 1200};
	autoroutes list = {0}, copied = {0};
	autoreq req = {0};
	size_t n = 0;

	CHECK_INT(addr_add(nl, index, &addr, true), 0);
	CHECK_INT(addr_add(nl, index, &v6, true), 0);
	CHECK_INT(route_add(nl, &spec, NLM_F_EXCL), 0);
	spec = (struct route_spec){
		.dst = prefix("2001:db8::/32"), .gw = prefix("fd09::9/128").ip, .index = index};
	CHECK_INT(route_add(nl, &spec, NLM_F_EXCL), 0);
	CHECK_INT(route_list_get(nl, AF_UNSPEC, RT_TABLE_MAIN, &list), 0);
	for (size_t i = 0; i < list.len; i++)
		if (list.list[i].spec.index == index && ++n)
			route_put_copy(
				&req, &list.list[i], &(struct route_change){.table = 5000}, 0);
	CHECK(n >= 4);
	CHECK_INT(nl_ack(nl, &req, NULL, 0, NULL), 0);
	CHECK_INT(route_list_get(nl, AF_UNSPEC, 5000, &copied), 0);
	CHECK_INT((long long)copied.len, (long long)n);
	for (size_t i = 0; i < copied.len; i++) {
		const struct route_spec *c = &copied.list[i].spec;

		CHECK_INT(c->table, 5000);
		CHECK_INT(c->index, index);
		if (c->priority != 42)
			continue;
		CHECK_INT(c->mtu, 1300);
		CHECK_INT(c->advmss, 1200);
		CHECK(!ip_cmp(&c->src, &addr.ip));
	}
}

static size_t count_rules(struct nl *nl, uint32_t table, bool delete)
{
	autorules list = {0};
	autoreq req = {0};
	size_t n = 0;

	CHECK_INT(rule_list_get(nl, AF_UNSPEC, &list), 0);
	for (size_t i = 0; i < list.len; i++)
		if (list.list[i].spec.table == table && ++n && delete)
			rule_put_del_copy(&req, &list.list[i]);
	CHECK_INT(nl_ack(nl, &req, NULL, 0, NULL), 0);
	return n;
}

static void kernel_rules(struct nl *nl)
{
	struct rule_spec r = {
		.family = AF_INET, .src = prefix("10.9.0.1/32"), .table = 5000, .priority = 1234};
	struct rule_spec v6 = {.family = AF_INET6, .src = prefix("fd09::1/128"), .table = 5000};
	autorules list = {0};
	autoreq req = {0};

	rule_put(&req, &r);
	rule_put(&req, &v6);
	CHECK_INT(nl_ack(nl, &req, NULL, 0, NULL), 0);
	rule_put(&req, &r);
	CHECK_INT(nl_ack(nl, &req, NULL, 0, NULL), -EEXIST);
	CHECK_INT(rule_list_get(nl, AF_INET, &list), 0);
	for (size_t i = 0; i < list.len; i++)
		if (list.list[i].spec.table == 5000) {
			CHECK_INT(list.list[i].spec.priority, 1234);
			CHECK(!ip_cmp(&list.list[i].spec.src.ip, &r.src.ip));
			CHECK_INT(list.list[i].spec.src.len, 32);
		}
	CHECK_INT((long long)count_rules(nl, 5000, true), 2);
	CHECK_INT((long long)count_rules(nl, 5000, false), 0);
	rule_put(&req, &r);
	rule_put_del(&req, &r);
	CHECK_INT(nl_ack(nl, &req, NULL, 0, NULL), 0);
	rule_put_del(&req, &r);
	CHECK_INT(nl_ack(nl, &req, NULL, 0, NULL), -ENOENT);
}

static bool is_up(const struct link *l)
{
	return l->flags & IFF_UP;
}

/* A macvlan made whole in one namespace, its parent in another, under a name that is taken there.
 */
static void kernel_parent(struct nl *inside, struct nl *outside, int32_t id)
{
	struct macvlan_data made = {.mode = MACVLAN_MODE_VEPA, .bcqueuelen = 2000}, seen = {0};
	struct link parent, l;
	char ext[256];

	if (link_kind_known(inside, &kind_macvlan) != 1) {
		fprintf(stderr, "this kernel has no macvlan: not tested\n");
		return;
	}
	CHECK_INT(link_get(outside, "b0", &parent), 0);
	CHECK_INT(link_create(inside,
			  &(struct link_new){.kind = &kind_macvlan,
				  .data = &made,
				  .name = "a0",
				  .mac = mac,
				  .mtu = 1300,
				  .up = true,
				  .parent = parent.index,
				  .has_parent_nsid = true,
				  .parent_nsid = id},
			  "an alias", ext, sizeof(ext)),
		0);
	CHECK_INT(link_get_data(inside, "a0", &kind_macvlan, &l, &seen), 0);
	CHECK_STR(l.kind, "macvlan");
	CHECK_STR(l.alias, "an alias");
	CHECK_INT(l.mtu, 1300);
	CHECK_INT(l.peer, parent.index);
	CHECK_INT(l.peer_netnsid, id);
	CHECK(!memcmp(l.mac, mac, 6) && l.flags & IFF_UP);
	CHECK_INT(seen.mode, made.mode);
	CHECK_INT(seen.bcqueuelen, 2000);
}

/* A wait in another namespace hears of what happens there. */
static void kernel_namespaces(struct nl *nl)
{
	autoclose int here = netns_own_open(), there = -1;
	autonl *inside = NULL;
	autoerr e = {0};
	struct link l;
	int32_t id = 0;

	CHECK(here >= 0 && !unshare(CLONE_NEWNET));
	there = netns_own_open();
	CHECK(!netns_nl_open(there, &inside, NETLINK_ROUTE, &e));
	CHECK(!setns(here, CLONE_NEWNET));
	CHECK_INT(netns_id(inside, here, &id), 0);
	CHECK_INT(id, -1);
	CHECK_INT(netns_id_make(inside, here, &id), 0);
	CHECK(id >= 0);
	CHECK_INT(netns_id_make(inside, here, &id), 0);
	CHECK_INT(link_wait(inside, there, "lo", is_up, 60, &l), -ETIMEDOUT);
	CHECK_INT(link_apply(inside, &(struct link_set){.name = "lo", .flags_set = IFF_UP}), 0);
	CHECK_INT(link_wait(inside, there, "lo", is_up, 60, &l), 0);
	kernel_parent(inside, nl, id);
	CHECK_INT(link_wait(nl, -1, "nosuch", is_up, 60, &l), -ENODEV);
}

/* One namespace after the other, until one has the inode number of the first (on most kernels the
 * second or third does), a hundred at most: none has an identity that was there before. */
static void kernel_identities(void)
{
	uint64_t seen[100], first = 0;
	int home = netns_own_open(), n = 0;
	bool again = false;

	while (n < 100 && !again && !unshare(CLONE_NEWNET)) {
		int fd = netns_own_open();

		seen[n] = netns_identity(fd);
		CHECK(netns_is(fd, seen[n]) && netns_is(fd, netns_inode(fd)));
		for (int i = 0; i < n; i++)
			CHECK(seen[i] != seen[n] && !netns_is(fd, seen[i]));
		again = first == netns_inode(fd);
		first = first ? first : netns_inode(fd);
		n++;
		CHECK(!setns(home, CLONE_NEWNET));
		close(fd);
	}
	CHECK(n > 1 && seen[0] >> 60);
	close(home);
}

static void with_kernel(void)
{
	autonl *nl = NULL;
	autoerr e = {0};

	if (geteuid() || unshare(CLONE_NEWNET)) {
		fprintf(stderr, "not root: no tests with the kernel\n");
		return;
	}
	if (!CHECK(!nl_open(&nl, NETLINK_ROUTE, &e)))
		return;
	link_apply(nl, &(struct link_set){.name = "lo", .flags_set = IFF_UP});
	CHECK_INT(link_kind_known(nl, &kind_veth), 1);
	CHECK_INT(link_kind_known(nl, &kind_bridge), 1);
	CHECK_INT(link_kind_known(nl, &(struct link_kind){.name = "nosuchkind"}), 0);
	CHECK_INT(link_get(nl, "cnibox-probe", &(struct link){0}), -ENODEV);
	kernel_routes(nl, make_veth(nl, "a0", "b0"));
	kernel_rules(nl);
	kernel_namespaces(nl);
	kernel_identities();
}

int main(void)
{
	test_kinds();
	test_ipvlan_l2();
	test_simple_kinds();
	test_veth();
	test_whole_link();
	test_rename();
	test_vlan_set();
	test_route_copy_bytes();
	with_kernel();
	return check_done();
}
