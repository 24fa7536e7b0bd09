#include "attach/child.h"

#include "attach/master.h"
#include "attach/reach.h"
#include "attach/verify.h"
#include "base/cleanup.h"
#include "base/mac.h"
#include "netlink/kind.h"
#include "netlink/netns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- making ---- */

static void remove_child(void *arg)
{
	autoerr ignored = {0};

	child_detach(arg, &ignored);
}

/* The parent is on the host: what the container calls the host's namespace. */
static int name_host(const struct attach *a, struct link_new *new, struct err *e)
{
	autoclose int host = netns_own_open();
	int ret = host < 0 ? -errno : netns_id_make(a->sb.nl, host, &new->parent_nsid);

	new->has_parent_nsid = true;
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to name the host's namespace in \"%s\"",
			     a->req->netns)
		   : 0;
}

/* What the host calls the container's namespace: GC finds the link by it. */
static int name_container(const struct attach *a, struct err *e)
{
	int32_t id;
	int ret = a->type->collect ? netns_id_make(a->sb.host, a->sb.netns, &id) : 0;

	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to name the namespace \"%s\"",
			     a->req->netns)
		   : 0;
}

static int check_mtu(const struct attach *a, struct err *e)
{
	if (!a->master.index || a->conf.mtu <= a->master.mtu)
		return 0;
	return err_set(e, ERR_INVALID_CONFIG, "invalid MTU %u, must be [0, master MTU(%u)]: %s",
		a->conf.mtu, a->master.mtu, a->master.name);
}

/* Before 6.14 the kernel makes a link whose parent is in another namespace there, under its final
 * name, and moves it: a link of the host that happens to have the name is in the way. */
static int create_elsewhere(
	struct attach *a, struct link_new *new, const char *alias, char *ext, size_t size)
{
	char name[IFNAMSIZ];
	uint8_t random[6];
	struct link l;
	int ret = mac_random(random);

	if (ret)
		return ret;
	snprintf(name, sizeof(name), "cni%02x%02x%02x%02x%02x", random[1], random[2], random[3],
		random[4], random[5]);
	new->name = name;
	ret = link_create(a->sb.nl, new, alias, ext, size);
	new->name = a->req->ifname;
	if (ret)
		return ret;
	ret = link_get(a->sb.nl, name, &l);
	if (!ret)
		ret = link_apply(
			a->sb.nl, &(struct link_set){.index = l.index, .rename = new->name});
	if (ret)
		link_del_name(a->sb.nl, name);
	return ret;
}

static int create(struct attach *a, struct link_new *new, char *ext, size_t size)
{
	char alias[LINK_ALIAS];
	int ret;

	owner_comment(&a->req->owner, alias, sizeof(alias));
	ret = link_create(a->sb.nl, new, alias, ext, size);
	return ret == -EEXIST && new->has_parent_nsid ? create_elsewhere(a, new, alias, ext, size)
						      : ret;
}

/* A parent that others sit on may not take one more, or not one like this. */
static int tell_holder(const struct attach *a, int ret, struct err *e)
{
	static const struct link_kind *const kinds[] = {&kind_macvlan, &kind_ipvlan};
	char owner[REACH_OWNER];
	struct reached r;

	for (size_t i = 0; i < array_len(kinds) && (ret == -EBUSY || ret == -EINVAL); i++)
		if (!a->conf.inside && a->master.index &&
			reach_upper(a->sb.host, kinds[i], a->master.index, &r, NULL) == 1)
			return err_detail(e, "\"%s\" is the master of a %s link: %s",
				a->master.name, kinds[i]->name, reach_owner(&r.link, owner));
	return -1;
}

static int not_created(const struct attach *a, int ret, const char *ext, struct err *e)
{
	const char *kind = a->type->kind->name, *name = a->req->ifname;

	if (ret == -EOPNOTSUPP)
		return err_kernel(e, -ret, ext, ERR_SYSTEM,
			"failed to create %s: link \"%s\": the kernel lacks the kind (module %s)",
			kind, name, kind_module(a->type->kind));
	err_kernel(e, -ret, ext, ERR_SYSTEM, "failed to create %s: link \"%s\"", kind, name);
	return tell_holder(a, ret, e);
}

/* What the kernel may not have taken from the message that made the link: a link that is moved is
 * set down, and one that shares its parent's MAC address (macvlan's passthru) starts with that. */
static int settle(struct attach *a, struct err *e)
{
	struct link_set set = {.index = a->link.index};
	int ret;

	if (a->conf.has_mac && memcmp(a->link.mac, a->conf.mac, sizeof(a->link.mac)) != 0)
		set.mac = a->conf.mac;
	if (a->up && !(a->link.flags & IFF_UP))
		set.flags_set = IFF_UP;
	if (!set.mac && !set.flags_set)
		return 0;
	ret = link_apply(a->sb.nl, &set);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to set %s of \"%s\"",
			set.mac ? "the MAC address" : "the state", a->req->ifname);
	return link_need(a->sb.nl, a->req->ifname, &a->link, e);
}

int child_attach(struct attach *a, const void *data, struct err *e)
{
	char ext[256] = "";
	struct link_new new = {
		.kind = a->type->kind,
		.data = data,
		.name = a->req->ifname,
		.mac = a->conf.has_mac ? a->conf.mac : NULL,
		.mtu = a->conf.mtu,
		.up = a->up,
		.parent = a->master.index,
	};
	int ret;

	if (check_mtu(a, e) || name_container(a, e))
		return -1;
	if (new.parent && !a->conf.inside && name_host(a, &new, e))
		return -1;
	ret = create(a, &new, ext, sizeof(ext));
	if (ret)
		return not_created(a, ret, ext, e);
	if (undo_push(&a->reply->undo, remove_child, NULL, (void *)a->req, e))
		return -1;
	return link_need(a->sb.nl, new.name, &a->link, e) ? -1 : settle(a, e);
}

/* ---- removing ---- */

struct search {
	const struct request *req;
	uint32_t index; /* 0: none found */
};

/* 1 ends the search: the mark is the proof, a bare name the second best. */
static int find_child(const struct link *l, void *arg)
{
	struct search *s = arg;
	struct owner_ref ref;
	bool marked = owner_parse(l->alias, &ref);

	if (marked ? strcmp(ref.hash, s->req->owner.hash) : strcmp(l->name, s->req->ifname))
		return 0;
	s->index = l->index;
	return marked;
}

int child_detach(const struct request *req, struct err *e)
{
	const struct link_kind *kind = req->applet->attach->kind;
	struct search s = {.req = req};
	autosandbox sb = SANDBOX_NONE;
	bool there;
	int ret;

	if (sandbox_try(&sb, req, &there, e) || !there)
		return e->set ? -1 : 0;
	ret = link_each(sb.nl, kind->name, find_child, &s);
	if (ret >= 0)
		ret = s.index ? link_del(sb.nl, s.index) : 0;
	if (!ret || ret == -ENODEV)
		return 0;
	return err_sys(
		e, -ret, ERR_SYSTEM, "failed to delete %s link \"%s\"", kind->name, req->ifname);
}

int child_collect(const struct request *req, const struct valid_set *valid, struct err *e)
{
	return reach_collect(req->applet->attach->kind, req, valid, e);
}

/* ---- CHECK, STATUS ---- */

/* The kernel puts a link that is to sit on one of its own kind on what that one sits on. */
static int check_parent(const struct attach *a, struct err *e)
{
	const struct link *m = &a->master;
	autoclose int host = a->conf.inside ? -1 : netns_own_open();
	int32_t id = -1;
	int ret = 0;

	if (!strcmp(m->kind, a->type->kind->name) && a->link.peer == m->peer)
		return 0;
	if (!a->conf.inside)
		ret = host < 0 ? -errno : netns_id(a->sb.nl, host, &id);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up the host's namespace");
	if (a->link.peer == m->index && a->link.peer_netnsid == id)
		return 0;
	return err_set(e, ERR_CHECK,
		"%s link %s: its master is not \"%s\" (index %u), but index %u",
		a->type->kind->name, a->req->ifname, m->name, m->index, a->link.peer);
}

/* Whoever comes later in the list may have changed it, and says so. */
static int check_own_mtu(const struct attach *a, struct err *e)
{
	const struct iface *entry = result_find_iface(a->result, a->req->ifname, a->req->netns);
	int64_t want = entry && entry->mtu > 0 ? entry->mtu : a->conf.mtu;

	if (!a->conf.mtu || want == a->link.mtu)
		return 0;
	return err_set(e, ERR_CHECK, "%s link %s: MTU is %u, not %lld", a->type->kind->name,
		a->req->ifname, a->link.mtu, (long long)want);
}

int child_check(struct attach *a, struct err *e)
{
	if (a->master.index && check_parent(a, e))
		return -1;
	return check_own_mtu(a, e);
}

int child_status(struct attach *a, struct err *e)
{
	bool chained = a->type->keys & KEY_CHAINED;
	autonl *host = NULL;
	autoerr why = {0};
	struct link l;

	if (a->conf.inside || (chained && !a->conf.master))
		return 0;
	if (nl_open(&host, NETLINK_ROUTE, e))
		return -1;
	if (!master_find(host, a->conf.master, &l, &why))
		return 0;
	return err_set(
		e, ERR_NOT_AVAILABLE, "%s is not available: %s", a->req->applet->name, why.msg);
}
