#include "netlink/brvlan.h"

#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

/* ---- sets ---- */

void vlan_set_add(struct vlan_set *s, uint16_t first, uint16_t last)
{
	for (uint32_t vid = first; vid <= last && vid <= VLAN_MAX; vid++)
		s->bits[vid / 8] |= (uint8_t)(1u << (vid % 8));
}

bool vlan_set_has(const struct vlan_set *s, uint16_t vid)
{
	return vid <= VLAN_MAX && s->bits[vid / 8] & (1u << (vid % 8));
}

bool vlan_set_empty(const struct vlan_set *s)
{
	static const struct vlan_set none;

	return !memcmp(s, &none, sizeof(none));
}

/* The next run of neighbouring IDs behind *last (0 to begin with); false when there is none. */
static bool next_run(const struct vlan_set *s, uint16_t *first, uint16_t *last)
{
	uint16_t vid = (uint16_t)(*last + 1);

	while (vid <= VLAN_MAX && !vlan_set_has(s, vid))
		vid++;
	if (vid > VLAN_MAX)
		return false;
	*first = vid;
	while (vlan_set_has(s, (uint16_t)(vid + 1)))
		vid++;
	*last = vid;
	return true;
}

/* ---- changing ---- */

static struct ifinfomsg *start(struct nl_req *req, uint16_t type, uint16_t flags, uint32_t index)
{
	struct ifinfomsg *hdr = nl_msg(req, type, flags, sizeof(*hdr));

	hdr->ifi_family = PF_BRIDGE;
	hdr->ifi_index = (int)index;
	return hdr;
}

static void put_info(struct nl_req *req, uint16_t vid, uint16_t flags)
{
	struct bridge_vlan_info info = {.flags = flags, .vid = vid};

	nl_put(req, IFLA_BRIDGE_VLAN_INFO, &info, sizeof(info));
}

static void put_run(struct nl_req *req, uint16_t type, uint32_t index, uint16_t first,
	uint16_t last, uint16_t flags)
{
	size_t nest;

	start(req, type, NLM_F_ACK, index);
	nest = nl_nest(req, IFLA_AF_SPEC);
	if (first == last) {
		put_info(req, first, flags);
	} else {
		put_info(req, first, flags | BRIDGE_VLAN_INFO_RANGE_BEGIN);
		put_info(req, last, flags | BRIDGE_VLAN_INFO_RANGE_END);
	}
	nl_nest_end(req, nest);
}

void brvlan_put_access(struct nl_req *req, uint32_t index, uint16_t vid)
{
	put_run(req, RTM_SETLINK, index, vid, vid,
		BRIDGE_VLAN_INFO_PVID | BRIDGE_VLAN_INFO_UNTAGGED);
}

void brvlan_put_tagged(struct nl_req *req, uint32_t index, const struct vlan_set *s)
{
	for (uint16_t first, last = 0; next_run(s, &first, &last);)
		put_run(req, RTM_SETLINK, index, first, last, 0);
}

void brvlan_put_del(struct nl_req *req, uint32_t index, const struct vlan_set *s)
{
	for (uint16_t first, last = 0; next_run(s, &first, &last);)
		put_run(req, RTM_DELLINK, index, first, last, 0);
}

/* ---- reading ---- */

struct look {
	uint32_t index;
	struct port_vlans *out;
};

static void add_info(struct port_vlans *v, const struct bridge_vlan_info *info, uint16_t first)
{
	vlan_set_add(&v->set, first, info->vid);
	if (info->flags & BRIDGE_VLAN_INFO_PVID)
		v->pvid = info->vid;
}

static int read_port(const struct nlmsghdr *msg, void *arg)
{
	const struct ifinfomsg *hdr = (const void *)((const char *)msg + NLMSG_HDRLEN);
	const struct nlattr *a[IFLA_MAX + 1];
	const struct look *look = arg;
	uint16_t begin = 0;

	if ((uint32_t)hdr->ifi_index != look->index)
		return 0;
	nl_parse(msg, sizeof(*hdr), a, IFLA_MAX);
	nl_for_each_attr (attr, a[IFLA_AF_SPEC]) {
		struct bridge_vlan_info info;

		if (nl_type(attr) != IFLA_BRIDGE_VLAN_INFO || nl_len(attr) < sizeof(info))
			continue;
		memcpy(&info, nl_data(attr), sizeof(info));
		if (info.flags & BRIDGE_VLAN_INFO_RANGE_BEGIN)
			begin = info.vid;
		else
			add_info(look->out, &info,
				info.flags & BRIDGE_VLAN_INFO_RANGE_END ? begin : info.vid);
	}
	return 0;
}

static void forget(void *arg)
{
	*((struct look *)arg)->out = (struct port_vlans){0};
}

int brvlan_get(struct nl *nl, uint32_t index, struct port_vlans *out)
{
	struct look look = {index, out};
	autoreq req = {0};

	*out = (struct port_vlans){0};
	/* The kernel answers for VLANs in dumps only, of all ports of all bridges. */
	start(&req, RTM_GETLINK, NLM_F_DUMP, 0);
	nl_put_u32(&req, IFLA_EXT_MASK, RTEXT_FILTER_BRVLAN_COMPRESSED);
	return nl_query(nl, &req, read_port, forget, &look);
}
