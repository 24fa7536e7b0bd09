#include "netlink/altname.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

static int change(struct nl *nl, uint16_t type, uint16_t flags, uint32_t index, const char *name)
{
	autoreq req = {0};
	struct ifinfomsg *m = nl_msg(&req, type, (uint16_t)(NLM_F_ACK | flags), sizeof(*m));
	size_t list;

	m->ifi_index = (int)index;
	list = nl_nest(&req, IFLA_PROP_LIST);
	nl_put_str(&req, IFLA_ALT_IFNAME, name);
	nl_nest_end(&req, list);
	return nl_ack(nl, &req, NULL, 0, NULL);
}

int altname_add(struct nl *nl, uint32_t index, const char *name)
{
	return change(nl, RTM_NEWLINKPROP, NLM_F_CREATE | NLM_F_EXCL, index, name);
}

int altname_del(struct nl *nl, uint32_t index, const char *name)
{
	return change(nl, RTM_DELLINKPROP, 0, index, name);
}

struct each {
	int (*fn)(const char *name, void *arg);
	void *arg;
};

static int read_names(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[IFLA_MAX + 1];
	const struct each *each = arg;
	int ret;

	nl_parse(msg, sizeof(struct ifinfomsg), a, IFLA_MAX);
	if (!a[IFLA_PROP_LIST])
		return 0;
	nl_for_each_attr (name, a[IFLA_PROP_LIST]) {
		ret = nl_type(name) == IFLA_ALT_IFNAME ? each->fn(nl_str(name), each->arg) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

int altname_each(struct nl *nl, uint32_t index, int (*fn)(const char *name, void *arg), void *arg)
{
	struct each each = {fn, arg};
	autoreq req = {0};
	struct ifinfomsg *m = nl_msg(&req, RTM_GETLINK, 0, sizeof(*m));

	m->ifi_index = (int)index;
	return nl_query(nl, &req, read_names, NULL, &each);
}

struct each_link {
	int (*fn)(uint32_t index, const char *name, void *arg);
	void *arg;
	uint32_t index;
};

static int with_index(const char *name, void *arg)
{
	const struct each_link *each = arg;

	return each->fn(each->index, name, each->arg);
}

static int read_link_names(const struct nlmsghdr *msg, void *arg)
{
	const struct ifinfomsg *hdr = (const void *)((const char *)msg + NLMSG_HDRLEN);
	struct each_link *each = arg;

	each->index = (uint32_t)hdr->ifi_index;
	return read_names(msg, &(struct each){with_index, each});
}

int altname_each_link(
	struct nl *nl, int (*fn)(uint32_t index, const char *name, void *arg), void *arg)
{
	struct each_link each = {.fn = fn, .arg = arg};
	autoreq req = {0};

	nl_msg(&req, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
	nl_put_u32(&req, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	return nl_query(nl, &req, read_link_names, NULL, &each);
}
