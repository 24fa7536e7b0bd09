#include "attach/child.h"

#include "base/cleanup.h"
#include "netlink/kind.h"
#include "netlink/netns.h"

#include <errno.h>
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

int child_attach(struct attach *a, const void *data, struct err *e)
{
	const struct link_kind *kind = a->type->kind;
	char alias[LINK_ALIAS], ext[256];
	struct link_new new = {
		.kind = kind,
		.data = data,
		.name = a->req->ifname,
		.mac = a->conf.has_mac ? a->conf.mac : NULL,
		.mtu = a->conf.mtu,
		.up = a->up,
		.parent = a->master.index,
	};
	int ret;

	if (new.parent && !a->conf.inside && name_host(a, &new, e))
		return -1;
	owner_comment(&a->req->owner, alias, sizeof(alias));
	ret = link_create(a->sb.nl, &new, alias, ext, sizeof(ext));
	if (ret == -EOPNOTSUPP)
		return err_kernel(e, -ret, ext, ERR_SYSTEM,
			"failed to create %s: link \"%s\": the kernel lacks the kind (module %s)",
			kind->name, new.name, kind->name);
	if (ret)
		return err_kernel(e, -ret, ext, ERR_SYSTEM, "failed to create %s: link \"%s\"",
			kind->name, new.name);
	if (undo_push(&a->reply->undo, remove_child, NULL, (void *)a->req, e))
		return -1;
	return link_need(a->sb.nl, new.name, &a->link, e);
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
