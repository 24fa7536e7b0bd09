#include "attach/veth.h"
#include "base/mac.h"

#include "base/cleanup.h"
#include "netlink/kind.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* What the alias of a link holds (linux/if.h). */
#define ALIAS_SIZE 256

static void host_name(char out[static 16], const struct owner *owner, int attempt)
{
	uint32_t random;

	/* The hash first, so that a person finds the pair by it; it is short enough to collide. */
	if (!attempt) {
		snprintf(out, 16, "veth%.8s", owner->hash);
		return;
	}
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = (uint32_t)attempt;
	snprintf(out, 16, "veth%08x", random);
}

/* One send: the kernel is through with all of it before anybody can stop us in between. */
static void put_pair(struct nl_req *req, const struct sandbox *sb, const struct owner *owner,
	const struct veth_spec *spec, const struct veth *v)
{
	char altname[OWNER_ALTNAME], alias[ALIAS_SIZE];
	struct veth_data peer = {
		.name = spec->ifname,
		.mac = v->mac,
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
	link_put_altname(req, v->host_name, altname);
	link_put(req, &(struct link_set){.name = v->host_name, .alias = alias});
	if (spec->master && (spec->hairpin || spec->isolated))
		link_put_brport(req, v->host_name, spec->hairpin, spec->isolated);
}

/* The pair was made but could not be marked or set up: take it away again. */
static void drop_pair(const struct sandbox *sb, const char *name)
{
	link_del_name(sb->host, name);
}

static int try_create(const struct sandbox *sb, const struct owner *owner,
	const struct veth_spec *spec, const struct veth *v, char *ext, size_t size)
{
	autoreq req = {0};
	int failed = 0, ret;

	put_pair(&req, sb, owner, spec, v);
	ret = nl_ack(sb->host, &req, ext, size, &failed);
	if (ret && failed > 0) {
		drop_pair(sb, v->host_name);
		/* An EEXIST of the marks is not one of the name. */
		return ret == -EEXIST ? -EALREADY : ret;
	}
	return ret;
}

int veth_name_free(const struct sandbox *sb, const char *ifname, struct err *e)
{
	struct link there;
	int ret = link_get(sb->nl, ifname, &there);

	if (ret == -ENODEV)
		return 0;
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", ifname);
	return err_set(e, ERR_CONFLICT, "container veth name (\"%s\") already exists", ifname);
}

static int create(const struct sandbox *sb, const struct owner *owner, const struct veth_spec *spec,
	struct veth *v, struct err *e)
{
	char ext[256] = "";
	struct link there;
	int ret = -EEXIST;

	for (int attempt = 0; attempt < 10; attempt++) {
		host_name(v->host_name, owner, attempt);
		/* The marks, which follow in the same send, would end up on somebody else's link.
		 */
		ret = link_get(sb->host, v->host_name, &there);
		if (!ret)
			ret = -EEXIST;
		else if (ret == -ENODEV)
			ret = try_create(sb, owner, spec, v, ext, sizeof(ext));
		if (ret == -EALREADY || (ret == -EEXIST && !attempt)) {
			int gone;

			/* This attachment's: made by another ADD just now, or, the other end being
			 * elsewhere, left over from one that was killed. */
			if (veth_name_free(sb, spec->ifname, e))
				return -1;
			gone = veth_delete(sb->host, owner);
			if (gone && gone != -ENODEV)
				ret = gone;
		}
		if (ret != -EEXIST && ret != -EALREADY)
			break;
	}
	if (!ret)
		return 0;
	/* The kernel calls a master that is gone an invalid argument. */
	if (ret == -EINVAL && spec->master &&
		link_get_index(sb->host, spec->master, &there) == -ENODEV)
		ret = -ENODEV;
	if (ret == -EEXIST && veth_name_free(sb, spec->ifname, e))
		return -1;
	err_sys(e, -ret, ERR_SYSTEM, "failed to make veth pair: \"%s\" and \"%s\"", spec->ifname,
		v->host_name);
	return ext[0] ? err_detail(e, "%s", ext) : -1;
}

/* With a socket of its own: inverses run after the ADD has closed its sockets. */
static void remove_pair(void *arg)
{
	autonl *host = NULL;
	autoerr ignored = {0};

	if (!nl_open(&host, NETLINK_ROUTE, &ignored))
		veth_delete(host, arg);
}

/* The container's end only: the host's is known by its name, and asking for it now would wait for
 * the kernel, which is still busy with the news of it. */
static int look_up(
	const struct sandbox *sb, const struct veth_spec *spec, struct veth *v, struct err *e)
{
	struct link l;
	int ret;

	if (link_need(sb->nl, spec->ifname, &l, e))
		return -1;
	v->index = l.index;
	memcpy(v->mac, l.mac, sizeof(v->mac));
	if (!spec->down) {
		ret = link_apply(sb->nl, &(struct link_set){.index = l.index, .flags_set = IFF_UP});
		if (ret)
			return err_sys(
				e, -ret, ERR_SYSTEM, "failed to set \"%s\" UP", spec->ifname);
	}
	return 0;
}

int veth_create(const struct sandbox *sb, const struct owner *owner, const struct veth_spec *spec,
	struct undo *undo, struct veth *v, struct err *e)
{
	int ret;

	*v = (struct veth){0};
	ret = mac_random(v->host_mac);
	if (!ret && !spec->mac)
		ret = mac_random(v->mac);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to make a random MAC address");
	if (spec->mac)
		memcpy(v->mac, spec->mac, sizeof(v->mac));
	if (create(sb, owner, spec, v, e) || undo_push(undo, remove_pair, NULL, (void *)owner, e))
		return -1;
	return look_up(sb, spec, v, e);
}

int veth_delete(struct nl *host, const struct owner *owner)
{
	char altname[OWNER_ALTNAME];

	owner_altname(owner, altname);
	return link_del_name(host, altname);
}

/* Another attachment's, of ours: the one in question would have been found by its own mark. 1, 0 or
 * -errno. */
static int is_anothers(const struct sandbox *sb, const struct link *inside)
{
	struct owner_ref ref;
	struct link peer;
	int ret = link_get_index(sb->host, inside->peer, &peer);

	if (ret)
		return ret == -ENODEV ? 0 : ret;
	return peer.peer == inside->index && owner_parse(peer.alias, &ref);
}

int veth_delete_inside(const struct sandbox *sb, const char *ifname, struct err *e)
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
	enum netns_state state;
	autoerr open = {0};
	int ret;

	if (nl_open(&host, NETLINK_ROUTE, e))
		return -1;
	ret = veth_delete(host, &req->owner);
	if (ret && ret != -ENODEV)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to delete the veth pair of \"%s\" %s",
			req->id, req->ifname);
	if (!ret || !*req->netns)
		return 0;
	if (sandbox_open(&sb, req, &state, &open)) {
		if (state == NETNS_GONE || state == NETNS_NOT_A_NETNS)
			return 0;
		err_merge(e, &open);
		return -1;
	}
	return veth_delete_inside(&sb, req->ifname, e);
}

/* ---- GC ---- */

struct stale {
	const struct request *req;
	const struct valid_set *valid;
	uint32_t *list;
	size_t len, cap;
};

static int collect_stale(const struct link *l, void *arg)
{
	struct stale *s = arg;
	struct owner_ref ref;

	if (!owner_parse(l->alias, &ref) || strcmp(ref.net, s->req->owner.net) != 0)
		return 0;
	if (valid_set_has_hash(s->valid, ref.hash))
		return 0;
	if (s->len == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 16;
		uint32_t *p = reallocarray(s->list, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		s->list = p;
		s->cap = cap;
	}
	s->list[s->len++] = l->index;
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
