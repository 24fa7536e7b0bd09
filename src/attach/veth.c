#include "attach/veth.h"
#include "base/mac.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "cni/ownedlink.h"
#include "filter/change.h"
#include "netlink/kind.h"
#include "netlink/netns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* How many names for the host's end are tried. Past the first they are random: a second clash means
 * that something else is wrong. */
#define NAME_ATTEMPTS 10

/* Which of the messages that make a pair gives it its alternative name. */
#define ALTNAME_MESSAGE 1

static void host_name(char out[static 16], const struct owner *owner, int attempt)
{
	uint32_t random;

	/* The hash first, so that a person finds the pair by it; it is short enough to collide. */
	if (!attempt) {
		owned_link_name(owner->hash, out);
		return;
	}
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = (uint32_t)attempt;
	snprintf(out, 16, "veth%08x", random);
}

/* Set once the kernel has refused one: it is older than 5.5. Name and alias have to do then. */
static bool no_altnames;

/* One send: the kernel is through with all of it before anybody can stop us in between. */
static void put_pair(struct nl_req *req, const struct sandbox *sb, const struct owner *owner,
	const struct veth_spec *spec, const struct veth *v)
{
	char altname[OWNER_ALTNAME], alias[LINK_ALIAS];
	struct veth_data peer = {
		.name = spec->ifname,
		.mac = v->inside.mac,
		.mtu = spec->mtu,
		.has_netns = true,
		.netns = sb->netns,
	};
	struct link_new pair = {
		.kind = &kind_veth,
		.data = &peer,
		.name = v->host_name,
		.mac = v->host_mac,
		.mtu = spec->mtu,
		.master = spec->master,
		.up = true,
	};

	owner_altname(owner, altname);
	owner_comment(owner, alias, sizeof(alias));
	link_put_new(req, &pair);
	if (!no_altnames)
		link_put_altname(req, v->host_name, altname);
	link_put(req, &(struct link_set){.name = v->host_name, .alias = alias});
	if (spec->master && (spec->hairpin || spec->isolated))
		link_put_brport(req, v->host_name, spec->hairpin, spec->isolated);
}

/* One attempt, under the name in v. 0, or -errno, nothing is left then. -EEXIST: one of the two
 * names is taken. -EALREADY: there is a link with this attachment's marks. */
static int try_create(const struct sandbox *sb, const struct owner *owner,
	const struct veth_spec *spec, const struct veth *v, char *ext, size_t size)
{
	struct link there;
	autoreq req = {0};
	int failed = 0, ret = link_get(sb->host, v->host_name, &there);

	/* Asked first, since the marks follow the pair in the same send whether it could be made or
	 * not: they would end up on somebody else's link. */
	if (ret != -ENODEV)
		return ret ? ret : -EEXIST;
	put_pair(&req, sb, owner, spec, v);
	ret = nl_ack(sb->host, &req, ext, size, &failed);
	if (!ret || !failed)
		return ret;
	/* The pair is there, but could not be marked or set up. */
	link_del_name(sb->host, v->host_name);
	if (ret == -EOPNOTSUPP && failed == ALTNAME_MESSAGE && !no_altnames) {
		no_altnames = true;
		return try_create(sb, owner, spec, v, ext, size);
	}
	return ret == -EEXIST ? -EALREADY : ret;
}

/* Whether the pair's other end is in a namespace that lives, but not in this one. Of one that is
 * being taken down the kernel gives no ID, as if the end were on the host. 1, 0 or -errno. */
static int lives_elsewhere(const struct sandbox *sb, const struct link *pair)
{
	struct link end;
	int32_t here;
	int ret;

	if (pair->peer_netnsid >= 0) {
		ret = netns_id(sb->host, sb->netns, &here);
		return ret ? ret : here != pair->peer_netnsid;
	}
	ret = link_get_index(sb->host, pair->peer, &end);
	return ret ? (ret == -ENODEV ? 0 : ret) : end.peer == pair->index;
}

/* There is a link with this attachment's name or marks. When the container's end is there another
 * ADD has just made it; when it is in another living namespace, that container has it; otherwise it
 * is left over from an ADD that was killed, and goes. Returns 0, -errno, or 1 with e set. */
static int remove_leftover(const struct sandbox *sb, const struct owner *owner,
	const struct veth_spec *spec, struct err *e)
{
	struct link pair;
	int ret;

	if (sandbox_name_free(sb, "veth", spec->ifname, e))
		return 1;
	ret = owned_link_get(sb->host, owner->hash, &pair);
	if (!ret)
		ret = lives_elsewhere(sb, &pair);
	if (ret > 0) {
		err_set(e, ERR_CONFLICT,
			"network \"%s\", container \"%s\", interface %s: attached already, in another "
			"namespace (\"%s\" on the host)",
			owner->network, owner->id, owner->ifname, pair.name);
		return 1;
	}
	if (!ret)
		ret = link_del(sb->host, pair.index);
	return ret == -ENODEV ? 0 : ret;
}

static int not_made(const struct sandbox *sb, const struct veth_spec *spec, const struct veth *v,
	int ret, const char *ext, struct err *e)
{
	struct link master;

	/* The kernel calls a master that is gone an invalid argument. */
	if (ret == -EINVAL && spec->master &&
		link_get_index(sb->host, spec->master, &master) == -ENODEV)
		ret = -ENODEV;
	if (ret == -EEXIST && sandbox_name_free(sb, "veth", spec->ifname, e))
		return -1;
	return err_kernel(e, -ret, ext, ERR_SYSTEM, "failed to make veth pair: \"%s\" and \"%s\"",
		spec->ifname, v->host_name);
}

static int create(const struct sandbox *sb, const struct owner *owner, const struct veth_spec *spec,
	struct veth *v, struct err *e)
{
	char ext[256] = "";
	int ret = -EEXIST;

	for (int attempt = 0; attempt < NAME_ATTEMPTS; attempt++) {
		int gone = 0;

		host_name(v->host_name, owner, attempt);
		ret = try_create(sb, owner, spec, v, ext, sizeof(ext));
		if (ret != -EEXIST && ret != -EALREADY)
			break;
		/* The first name is made of the attachment's hash, the others are random. */
		if (ret == -EALREADY || !attempt)
			gone = remove_leftover(sb, owner, spec, e);
		if (gone > 0)
			return -1;
		if (gone) {
			ret = gone;
			break;
		}
	}
	return ret ? not_made(sb, spec, v, ret, ext, e) : 0;
}

/* With a socket of its own: inverses run after the ADD has closed its sockets. */
static void remove_pair(void *arg)
{
	autonl *host = NULL;
	autoerr ignored = {0};

	if (!nl_open(&host, NETLINK_ROUTE, &ignored))
		owned_link_del(host, ((const struct owner *)arg)->hash);
}

/* Of the container's end. The host's is known by its name and address, and the kernel is slow to
 * answer for it now: it is still announcing it, with the lock in hand that the answer takes. */
static int look_up(
	const struct sandbox *sb, const struct veth_spec *spec, struct veth *v, struct err *e)
{
	int ret;

	if (link_need(sb->nl, spec->ifname, &v->inside, e))
		return -1;
	if (!spec->up)
		return 0;
	ret = link_apply(sb->nl, &(struct link_set){.index = v->inside.index, .flags_set = IFF_UP});
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to set \"%s\" UP", spec->ifname) : 0;
}

int veth_create(const struct sandbox *sb, const struct owner *owner, const struct veth_spec *spec,
	struct undo *undo, struct veth *v, struct err *e)
{
	int ret;

	*v = (struct veth){0};
	ret = mac_random_port(v->host_mac);
	if (!ret && !spec->mac)
		ret = mac_random(v->inside.mac);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to make a random MAC address");
	if (spec->mac)
		memcpy(v->inside.mac, spec->mac, sizeof(v->inside.mac));
	if (create(sb, owner, spec, v, e) || undo_push(undo, remove_pair, NULL, (void *)owner, e))
		return -1;
	return look_up(sb, spec, v, e);
}

/* Whether the peer of this link carries an attachment's mark. It is another attachment's then: the
 * one in question has just been looked for by its own. 1, 0 or -errno. */
static int is_anothers(const struct sandbox *sb, const struct link *inside)
{
	struct owner_ref ref;
	struct link peer;
	int ret = link_get_index(sb->host, inside->peer, &peer);

	if (ret)
		return ret == -ENODEV ? 0 : ret;
	return peer.peer == inside->index && owner_parse(peer.alias, &ref);
}

/* The interface of an attachment that another implementation made, from inside the container: only
 * when it is a veth, and its peer is not marked as another attachment's. 0 also when there is none.
 */
static int delete_inside(const struct sandbox *sb, const char *ifname, struct err *e)
{
	struct link l;
	int ret = link_get(sb->nl, ifname, &l);

	if (ret == -ENODEV || (!ret && strcmp(l.kind, "veth") != 0))
		return 0;
	if (!ret)
		ret = is_anothers(sb, &l);
	if (!ret)
		ret = link_del(sb->nl, l.index);
	if (ret >= 0 || ret == -ENODEV)
		return 0;
	return err_sys(e, -ret, ERR_SYSTEM, "failed to delete link \"%s\"", ifname);
}

int veth_del(const struct request *req, struct err *e)
{
	autosandbox sb = SANDBOX_NONE;
	autonl *host = NULL;
	bool there;
	int ret;

	if (nl_open(&host, NETLINK_ROUTE, e))
		return -1;
	ret = owned_link_del(host, req->owner.hash);
	if (ret && ret != -ENODEV)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to delete the veth pair of \"%s\" %s",
			req->id, req->ifname);
	if (!ret)
		return 0;
	if (sandbox_try(&sb, req, &there, e))
		return -1;
	return there ? delete_inside(&sb, req->ifname, e) : 0;
}

/* ---- GC ---- */

struct stale {
	const struct request *req;
	const struct valid_set *valid;
	uint32_t *list;
	size_t len;
};

static int collect_stale(const struct link *l, void *arg)
{
	struct stale *s = arg;
	struct owner_ref ref;
	uint32_t *index;

	if (!owner_parse(l->alias, &ref) || !change_is_stale(s->req, s->valid, &ref))
		return 0;
	index = vec_add(s->list, s->len);
	if (!index)
		return -ENOMEM;
	*index = l->index;
	return 0;
}

int veth_gc(const struct request *req, const struct valid_set *valid, struct err *e)
{
	struct stale stale = {.req = req, .valid = valid};
	autonl *host = NULL;
	int ret;

	if (nl_open(&host, NETLINK_ROUTE, e))
		return -1;
	ret = link_each(host, "veth", collect_stale, &stale);
	if (!ret && stale.len)
		ret = link_del_many(host, stale.list, stale.len);
	free(stale.list);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to remove stale veth pairs") : 0;
}
