#include "attach/peer.h"

#include "netlink/netns.h"

#include <errno.h>
#include <string.h>

static int look_inside(int netns, const char *ifname, struct link *l, struct err *e)
{
	autonl *nl = NULL;
	int ret;

	if (netns_nl_open(netns, &nl, NETLINK_ROUTE, e))
		return -1;
	ret = link_get(nl, ifname, l);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM,
			"container interface %s has no veth peer: could not look up \"%s\"", ifname,
			ifname);
	if (strcmp(l->kind, "veth") != 0)
		return err_set(e, ERR_SYSTEM,
			"container interface %s has no veth peer: %s was not a veth interface",
			ifname, ifname);
	return 0;
}

int peer_find(struct nl *host, int netns, const char *ifname, struct link *peer, struct err *e)
{
	struct link inside;
	int32_t id = -1;
	int ret;

	if (look_inside(netns, ifname, &inside, e))
		return -1;
	ret = link_get_index(host, inside.peer, peer);
	if (!ret)
		ret = netns_id(host, netns, &id);
	if (ret && ret != -ENODEV)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up the veth peer with index %u",
			inside.peer);
	if (ret || strcmp(peer->kind, "veth") != 0 || peer->peer != inside.index ||
		peer->peer_netnsid != id)
		return err_set(e, ERR_SYSTEM,
			"container interface %s has no veth peer: veth peer with index %u is not "
			"in host ns",
			ifname, inside.peer);
	return 0;
}
