#include "netlink/link.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mac.h"
#include "netlink/kind.h"
#include "netlink/netns.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* ---- reading ---- */

static void read_info(const struct nlattr *linkinfo, struct link *l)
{
	const struct nlattr *info[IFLA_INFO_MAX + 1];

	if (!linkinfo)
		return;
	nl_parse_nested(linkinfo, info, IFLA_INFO_MAX);
	snprintf(l->kind, sizeof(l->kind), "%s", nl_str(info[IFLA_INFO_KIND]));
	if (info[IFLA_INFO_SLAVE_DATA] && !strcmp(nl_str(info[IFLA_INFO_SLAVE_KIND]), "bridge")) {
		const struct nlattr *port[IFLA_BRPORT_MAX + 1];

		nl_parse_nested(info[IFLA_INFO_SLAVE_DATA], port, IFLA_BRPORT_MAX);
		l->port_state = nl_u8(port[IFLA_BRPORT_STATE]);
		l->hairpin = nl_u8(port[IFLA_BRPORT_MODE]);
		l->isolated = nl_u8(port[IFLA_BRPORT_ISOLATED]);
	}
}

static void read_link(const struct nlmsghdr *msg, struct link *l)
{
	const struct ifinfomsg *hdr = (const void *)((const char *)msg + NLMSG_HDRLEN);
	const struct nlattr *a[IFLA_MAX + 1];

	nl_parse(msg, sizeof(*hdr), a, IFLA_MAX);
	*l = (struct link){
		.index = (uint32_t)hdr->ifi_index,
		.flags = hdr->ifi_flags,
		.mtu = nl_u32(a[IFLA_MTU]),
		.promiscuity = nl_u32(a[IFLA_PROMISCUITY]),
		.txqlen = nl_u32(a[IFLA_TXQLEN]),
		.master = nl_u32(a[IFLA_MASTER]),
		.peer = nl_u32(a[IFLA_LINK]),
		.peer_netnsid = a[IFLA_LINK_NETNSID] ? (int32_t)nl_u32(a[IFLA_LINK_NETNSID]) : -1,
		.operstate = nl_u8(a[IFLA_OPERSTATE]),
	};
	snprintf(l->name, sizeof(l->name), "%s", nl_str(a[IFLA_IFNAME]));
	snprintf(l->alias, sizeof(l->alias), "%s", nl_str(a[IFLA_IFALIAS]));
	if (nl_len(a[IFLA_ADDRESS]) == sizeof(l->mac)) {
		memcpy(l->mac, nl_data(a[IFLA_ADDRESS]), sizeof(l->mac));
		l->has_mac = true;
	}
	read_info(a[IFLA_LINKINFO], l);
}

static int keep_link(const struct nlmsghdr *msg, void *arg)
{
	read_link(msg, arg);
	return 0;
}

/* A name longer than the kernel's field can only be an alternative one. */
static void put_name(struct nl_req *req, const char *name)
{
	nl_put_str(req, strlen(name) < IFNAMSIZ ? IFLA_IFNAME : IFLA_ALT_IFNAME, name);
}

static struct ifinfomsg *start(struct nl_req *req, uint16_t type, uint16_t flags, uint32_t index)
{
	struct ifinfomsg *hdr = nl_msg(req, type, flags, sizeof(*hdr));

	hdr->ifi_index = (int)index;
	return hdr;
}

static int get(struct nl *nl, uint32_t index, const char *name, nl_answer_fn *fn, void *out)
{
	autoreq req = {0};

	start(&req, RTM_GETLINK, 0, index);
	if (name)
		put_name(&req, name);
	/* Counters are most of the answer and nobody looks at them here. */
	nl_put_u32(&req, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	return nl_query(nl, &req, fn, NULL, out);
}

int link_get(struct nl *nl, const char *name, struct link *out)
{
	return get(nl, 0, name, keep_link, out);
}

int link_get_index(struct nl *nl, uint32_t index, struct link *out)
{
	return index ? get(nl, index, NULL, keep_link, out) : -ENODEV;
}

/* The settings of a link of that kind; without any, *out stays as it is. */
static void read_data(const struct nlmsghdr *msg, const struct link_kind *kind, void *out)
{
	const struct nlattr *a[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1], *data[KIND_ATTR_MAX + 1];

	nl_parse(msg, sizeof(struct ifinfomsg), a, IFLA_MAX);
	if (!a[IFLA_LINKINFO])
		return;
	nl_parse_nested(a[IFLA_LINKINFO], info, IFLA_INFO_MAX);
	if (!info[IFLA_INFO_DATA])
		return;
	nl_parse_nested(info[IFLA_INFO_DATA], data, KIND_ATTR_MAX);
	kind->read(data, out);
}

struct with_data {
	const struct link_kind *kind;
	struct link *link;
	void *data;
};

static int keep_data(const struct nlmsghdr *msg, void *arg)
{
	const struct with_data *w = arg;

	read_link(msg, w->link);
	if (!strcmp(w->link->kind, w->kind->name))
		read_data(msg, w->kind, w->data);
	return 0;
}

int link_get_data(
	struct nl *nl, const char *name, const struct link_kind *kind, struct link *out, void *data)
{
	struct with_data w = {kind, out, data};

	return get(nl, 0, name, keep_data, &w);
}

int link_need(struct nl *nl, const char *name, struct link *out, struct err *e)
{
	int ret = link_get(nl, name, out);

	if (ret == -ENODEV)
		return err_set(e, ERR_SYSTEM, "Link not found: link \"%s\"", name);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", name) : 0;
}

struct each {
	int (*fn)(const struct link *l, void *arg);
	void *arg;
	const char *kind;
	const struct link_kind *read; /* and its settings go into data */
	void *data;
};

static int each_link(const struct nlmsghdr *msg, void *arg)
{
	const struct each *each = arg;
	struct link l;

	read_link(msg, &l);
	if (each->kind && strcmp(each->kind, l.kind) != 0)
		return 0;
	if (each->read)
		read_data(msg, each->read, each->data);
	return each->fn(&l, each->arg);
}

/* nsid: NULL for the namespace of nl. */
static int each_of(struct nl *nl, const int32_t *nsid, struct each *each)
{
	const char *kind = each->kind;
	autoreq req = {0};
	size_t nest;

	start(&req, RTM_GETLINK, NLM_F_DUMP, 0);
	nl_put_u32(&req, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	if (nsid)
		nl_put_u32(&req, IFLA_TARGET_NETNSID, (uint32_t)*nsid);
	if (kind) {
		nest = nl_nest(&req, IFLA_LINKINFO);
		nl_put_str(&req, IFLA_INFO_KIND, kind);
		nl_nest_end(&req, nest);
	}
	return nl_query(nl, &req, each_link, NULL, each);
}

int link_each(
	struct nl *nl, const char *kind, int (*fn)(const struct link *l, void *arg), void *arg)
{
	return each_of(nl, NULL, &(struct each){.fn = fn, .arg = arg, .kind = kind});
}

int link_each_in(struct nl *nl, const int32_t *nsid, const struct link_kind *kind, void *data,
	int (*fn)(const struct link *l, void *arg), void *arg)
{
	struct each each = {fn, arg, kind->name, data ? kind : NULL, data};

	return each_of(nl, nsid, &each);
}

/* ---- changing ---- */

int link_del_in(struct nl *nl, int32_t nsid, uint32_t index)
{
	autoreq req = {0};

	start(&req, RTM_DELLINK, NLM_F_ACK, index);
	nl_put_u32(&req, IFLA_TARGET_NETNSID, (uint32_t)nsid);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

int link_del(struct nl *nl, uint32_t index)
{
	autoreq req = {0};

	start(&req, RTM_DELLINK, NLM_F_ACK, index);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

int link_del_name(struct nl *nl, const char *name)
{
	autoreq req = {0};

	start(&req, RTM_DELLINK, NLM_F_ACK, 0);
	put_name(&req, name);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

/* The group that links are put into to be deleted together ("cnib"). Two processes doing this at
 * once delete each other's, which both want gone. */
#define CONDEMNED 0x636e6962u

int link_del_many(struct nl *nl, const uint32_t *indexes, size_t n)
{
	int ret;

	/* One that is gone already is what was wanted. */
	if (n == 1) {
		ret = link_del(nl, indexes[0]);
		return ret == -ENODEV ? 0 : ret;
	}
	for (size_t done = 0; done < n;) {
		autoreq req = {0};
		/* Bounded, so that the acks fit into the socket's buffer. */
		size_t end = done + 64 < n ? done + 64 : n;

		for (; done < end; done++) {
			start(&req, RTM_SETLINK, NLM_F_ACK, indexes[done]);
			nl_put_u32(&req, IFLA_GROUP, CONDEMNED);
		}
		ret = nl_ack(nl, &req, NULL, 0, NULL);
		if (ret && ret != -ENODEV)
			return ret;
		start(&req, RTM_DELLINK, NLM_F_ACK, 0);
		nl_put_u32(&req, IFLA_GROUP, CONDEMNED);
		ret = nl_ack(nl, &req, NULL, 0, NULL);
		if (ret && ret != -ENODEV)
			return ret;
	}
	return 0;
}

void link_put(struct nl_req *req, const struct link_set *set)
{
	struct ifinfomsg *hdr = start(req, RTM_SETLINK, NLM_F_ACK, set->index);

	hdr->ifi_flags = set->flags_set;
	hdr->ifi_change = set->flags_set | set->flags_clear;
	if (!set->index)
		put_name(req, set->name);
	if (set->mtu)
		nl_put_u32(req, IFLA_MTU, set->mtu);
	if (set->mac)
		nl_put(req, IFLA_ADDRESS, set->mac, 6);
	if (set->alias)
		nl_put(req, IFLA_IFALIAS, set->alias, strlen(set->alias));
	if (set->has_txqlen)
		nl_put_u32(req, IFLA_TXQLEN, set->txqlen);
	if (set->has_master)
		nl_put_u32(req, IFLA_MASTER, set->master);
	/* The attribute that would hold the new name holds the one that says which link is meant.
	 */
	if (set->rename && !set->index)
		nl_put_invalid(req);
	else if (set->rename)
		nl_put_str(req, IFLA_IFNAME, set->rename);
	if (set->has_netns)
		nl_put_u32(req, IFLA_NET_NS_FD, (uint32_t)set->netns);
}

int link_apply(struct nl *nl, const struct link_set *set)
{
	autoreq req = {0};

	link_put(&req, set);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

void link_put_altname(struct nl_req *req, const char *name, const char *altname)
{
	size_t nest;

	start(req, RTM_NEWLINKPROP, NLM_F_ACK | NLM_F_EXCL | NLM_F_CREATE | NLM_F_APPEND, 0);
	put_name(req, name);
	nest = nl_nest(req, IFLA_PROP_LIST);
	nl_put_str(req, IFLA_ALT_IFNAME, altname);
	nl_nest_end(req, nest);
}

void link_put_brport(struct nl_req *req, const char *name, bool hairpin, bool isolated)
{
	size_t nest, data;

	start(req, RTM_NEWLINK, NLM_F_ACK, 0);
	put_name(req, name);
	nest = nl_nest(req, IFLA_LINKINFO);
	nl_put_str(req, IFLA_INFO_SLAVE_KIND, "bridge");
	data = nl_nest(req, IFLA_INFO_SLAVE_DATA);
	nl_put_u8(req, IFLA_BRPORT_MODE, hairpin);
	nl_put_u8(req, IFLA_BRPORT_ISOLATED, isolated);
	nl_nest_end(req, data);
	nl_nest_end(req, nest);
}

/* Never 0, the group all links are in: a random MAC address has a bit that is always set. */
static int random_group(uint32_t *group)
{
	uint8_t mac[6];
	int ret = mac_random(mac);

	memcpy(group, mac, sizeof(*group));
	return ret;
}

/* The alias is not accepted at creation. It follows in the same send, so that no kill can come in
 * between, to whatever link is in the new link's group, a random number: by the name it would also
 * reach a link that somebody else has just made. */
static void put_marked_alias(struct nl_req *req, const char *alias, uint32_t group)
{
	start(req, RTM_NEWLINK, NLM_F_ACK, 0);
	nl_put_u32(req, IFLA_GROUP, group);
	nl_put(req, IFLA_IFALIAS, alias, strlen(alias));
}

static int leave_group(struct nl *nl, const char *name)
{
	autoreq req = {0};

	start(&req, RTM_SETLINK, NLM_F_ACK, 0);
	put_name(&req, name);
	nl_put_u32(&req, IFLA_GROUP, 0);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

static void put_kind(struct nl_req *req, const struct link_kind *kind, const void *info)
{
	size_t nest = nl_nest(req, IFLA_LINKINFO), data;

	nl_put_str(req, IFLA_INFO_KIND, kind->name);
	if (kind->put && info) {
		data = nl_nest(req, IFLA_INFO_DATA);
		kind->put(req, info);
		nl_nest_end(req, data);
	}
	nl_nest_end(req, nest);
}

static void put_place(struct nl_req *req, const struct link_new *n)
{
	if (n->parent)
		nl_put_u32(req, IFLA_LINK, n->parent);
	if (n->has_parent_nsid)
		nl_put_u32(req, IFLA_LINK_NETNSID, (uint32_t)n->parent_nsid);
	if (n->has_netns)
		nl_put_u32(req, IFLA_NET_NS_FD, (uint32_t)n->netns);
	if (n->master)
		nl_put_u32(req, IFLA_MASTER, n->master);
}

void link_put_new(struct nl_req *req, const struct link_new *n)
{
	struct ifinfomsg *hdr = start(req, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, 0);

	if (n->up)
		hdr->ifi_flags = hdr->ifi_change = IFF_UP;
	nl_put_str(req, IFLA_IFNAME, n->name);
	if (n->mtu)
		nl_put_u32(req, IFLA_MTU, n->mtu);
	if (n->mac)
		nl_put(req, IFLA_ADDRESS, n->mac, 6);
	if (n->has_txqlen)
		nl_put_u32(req, IFLA_TXQLEN, n->txqlen);
	if (n->group)
		nl_put_u32(req, IFLA_GROUP, n->group);
	put_place(req, n);
	put_kind(req, n->kind, n->data);
}

int link_create(struct nl *nl, const struct link_new *n, const char *alias, char *ext, size_t size)
{
	struct link_new new = *n;
	autoreq req = {0};
	int failed = 0, ret = alias ? random_group(&new.group) : 0;

	if (size)
		*ext = '\0';
	if (ret)
		return ret;
	link_put_new(&req, &new);
	if (alias)
		put_marked_alias(&req, alias, new.group);
	ret = nl_ack(nl, &req, ext, size, &failed);
	if (!ret && alias)
		ret = failed = leave_group(nl, n->name);
	if (failed)
		link_del_name(nl, n->name);
	return ret;
}

/* No link of any kind may have this MTU, which the kernel finds out when it knows the kind: a probe
 * is refused either way. */
#define NO_MTU UINT32_MAX

int link_kind_known(struct nl *nl, const struct link_kind *kind)
{
	const char *name = "cnibox-probe";
	autoreq req = {0};
	int ret;

	link_put_new(&req, &(struct link_new){.kind = kind, .name = name, .mtu = NO_MTU});
	ret = nl_ack(nl, &req, NULL, 0, NULL);
	if (!ret)
		link_del_name(nl, name);
	if (ret == -EOPNOTSUPP)
		return 0;
	return !ret || ret == -EINVAL || ret == -EEXIST ? 1 : ret;
}

/* ---- waiting ---- */

#define LOOK_AGAIN_MS 50

int link_wait(struct nl *nl, int netns, const char *name, bool (*ready)(const struct link *l),
	int ms, struct link *l)
{
	int64_t end = clock_ms() + ms, left;
	autonl *watch = NULL;
	autoerr e = {0};
	int ret = link_get(nl, name, l);

	if (ret || ready(l))
		return ret;
	if (netns_nl_watch(netns, &watch, RTMGRP_LINK, &e))
		return e.sys ? -e.sys : -EIO;
	for (;;) {
		ret = link_get(nl, name, l);
		if (ret || ready(l))
			return ret;
		left = end - clock_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		/* Not every change of a bridge port is announced by every kernel, so look now and
		 * then without an event too. */
		nl_watch_wait(watch, (int)(left < LOOK_AGAIN_MS ? left : LOOK_AGAIN_MS));
	}
}

/* ---- ports ---- */

struct each_port {
	uint32_t master;
	int (*fn)(const struct link *l, void *arg);
	void *arg;
};

static int each_port(const struct nlmsghdr *msg, void *arg)
{
	const struct each_port *each = arg;
	struct link l;

	read_link(msg, &l);
	return l.master == each->master ? each->fn(&l, each->arg) : 0;
}

int link_each_port(
	struct nl *nl, uint32_t master, int (*fn)(const struct link *l, void *arg), void *arg)
{
	struct each_port each = {master, fn, arg};
	autoreq req = {0};

	start(&req, RTM_GETLINK, NLM_F_DUMP, 0);
	nl_put_u32(&req, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	nl_put_u32(&req, IFLA_MASTER, master);
	return nl_query(nl, &req, each_port, NULL, &each);
}
