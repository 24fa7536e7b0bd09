#include "portmap/holder.h"

#include "base/cleanup.h"
#include "cni/ownedlink.h"
#include "netlink/link.h"
#include "netlink/netns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- noting ---- */

/* Of a pair that somebody else made: proven from both ends. */
static void find_pair(struct nl *rt, struct port_record *m, int fd, const char *ifname)
{
	autoerr ignored = {0};
	autonl *nl = NULL;
	struct link inside, host;

	if (netns_id_make(rt, fd, &m->nsid) || netns_nl_open(fd, &nl, NETLINK_ROUTE, &ignored) ||
		link_get(nl, ifname, &inside) || strcmp(inside.kind, "veth") != 0)
		return;
	if (!link_get_index(rt, inside.peer, &host) && !strcmp(host.kind, "veth") &&
		host.peer == inside.index && host.peer_netnsid == m->nsid)
		m->link = host.index;
}

void holder_note(struct nl *rt, struct port_record *m, const char *netns, const char *ifname)
{
	autoclose int fd = -1;
	struct link owned;

	if (!*netns || strlen(netns) >= sizeof(m->netns) ||
		netns_open(netns, &fd, NULL) != NETNS_OK)
		return;
	strcpy(m->netns, netns);
	m->netns_inode = netns_inode(fd);
	if (!owned_link_get(rt, m->hash, &owned) && owned.peer_netnsid >= 0) {
		m->link = owned.index;
		m->nsid = owned.peer_netnsid;
	} else {
		find_pair(rt, m, fd, ifname);
	}
}

/* ---- telling ---- */

/* Of a link to the sandbox: it goes with the namespace at its other end, some time after. */
static enum holder_state state_of_link(
	struct nl *rt, const struct link *l, const struct port_record *m)
{
	struct link peer;
	int ret;

	if (strcmp(l->kind, "veth") != 0 ||
		(m->nsid >= 0 && l->peer_netnsid >= 0 && l->peer_netnsid != m->nsid))
		return HOLDER_GONE; /* the number of a link that came later */
	if (l->peer_netnsid >= 0) {
		ret = netns_id_is_used(rt, l->peer_netnsid);
		return ret < 0 ? HOLDER_UNKNOWN : ret ? HOLDER_LIVES : HOLDER_GONE;
	}
	/* No number: the other end is in this very namespace, or in one that is just going. */
	ret = link_get_index(rt, l->peer, &peer);
	if (!ret && peer.peer == l->index)
		return HOLDER_UNKNOWN;
	return !ret || ret == -ENODEV ? HOLDER_GONE : HOLDER_UNKNOWN;
}

/* The number is given again; that ours has it now proves that the holder is gone. */
static enum holder_state state_of_number(
	struct nl *rt, const struct port_record *m, const struct port_record *ours)
{
	int ret = netns_id_is_used(rt, m->nsid);

	return !ret || (ret == 1 && m->nsid == ours->nsid && m->netns_inode != ours->netns_inode)
		       ? HOLDER_GONE
		       : HOLDER_UNKNOWN;
}

enum holder_state holder_state(
	struct nl *rt, const struct port_record *m, const struct port_record *ours)
{
	struct link link;
	autoclose int fd = -1;
	enum netns_state path;
	int ret;

	if (!m->netns[0])
		return HOLDER_UNKNOWN;
	path = netns_open(m->netns, &fd, NULL);
	if (path == NETNS_ERROR)
		return HOLDER_UNKNOWN;
	if (path == NETNS_OK && netns_inode(fd) == m->netns_inode)
		return HOLDER_LIVES;
	if (m->link) {
		ret = link_get_index(rt, m->link, &link);
		return !ret             ? state_of_link(rt, &link, m)
		       : ret == -ENODEV ? HOLDER_GONE
					: HOLDER_UNKNOWN;
	}
	if (m->nsid >= 0)
		return state_of_number(rt, m, ours);
	/* A record of the old form. */
	return owned_link_get(rt, m->hash, &link) ? HOLDER_UNKNOWN : state_of_link(rt, &link, m);
}

/* ---- saying ---- */

/* "<network> <id> <ifname>", of which the end may be missing. */
struct names {
	char text[NFT_COMMENT_SIZE];
	const char *network, *id, *ifname;
};

static void split_name(const struct port_record *m, struct names *n)
{
	char *save = NULL;

	memcpy(n->text, m->name, sizeof(n->text));
	n->network = strtok_r(n->text, " ", &save);
	n->id = n->network ? strtok_r(NULL, " ", &save) : NULL;
	n->ifname = n->id ? strtok_r(NULL, " ", &save) : NULL;
}

/* Where the holder's mapping of that port leads. */
static const char *target_of(
	const struct port_record *holder, const struct port_mapping *p, char out[static IP_STRLEN])
{
	for (size_t i = 0; i < holder->len; i++) {
		const struct port_mapping *h = &holder->list[i];

		if (h->host_port == p->host_port && h->proto == p->proto &&
			h->addr.family == p->addr.family)
			return ip_format(&h->addr, out);
	}
	return "another container";
}

int holder_conflict(const struct port_place *p, const struct port_record *holder,
	enum holder_state state, struct err *e)
{
	const bool pod = strlen(holder->pod) > OWNER_HASH;
	char host[IP_STRLEN] = "", addr[IP_STRLEN];
	struct names n;

	split_name(holder, &n);
	if (!ip_is_any(&p->m->host))
		ip_format(&p->m->host, host);
	err_set(e, ERR_CONFLICT,
		"host port %u/%s%s%s is already mapped to %s by container \"%s\" (network \"%s\", "
		"interface \"%s\"%s%s%s)",
		p->m->host_port, portproto_name(p->m->proto), *host ? " of " : "", host,
		target_of(holder, p->m, addr), n.id ? n.id : "?", n.network ? n.network : "?",
		n.ifname ? n.ifname : "?", pod ? ", pod \"" : "",
		pod ? holder->pod + OWNER_HASH + 1 : "", pod ? "\"" : "");
	if (state == HOLDER_LIVES)
		return err_detail(e, "its sandbox %s is alive", holder->netns);
	if (!holder->netns[0])
		return err_detail(e, "its sandbox is not recorded, so it counts as alive");
	return err_detail(e,
		"whether its sandbox %s lives cannot be told from here, so it counts as alive",
		holder->netns);
}
