/* vlan: a link of the container that carries one VLAN of a link of the host. reference/links.md,
 * section 6; docs/vlan.md. */
#include "attach/attach.h"
#include "attach/child.h"
#include "attach/master.h"
#include "attach/reach.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

#define VLAN_ID_MAX 4094

struct vlan {
	int64_t id; /* 0 carries priority tags only */
};

static const struct json_key keys[] = {
	JSON_KEY_INT(struct vlan, "vlanId", id, INT64_MIN, INT64_MAX),
	JSON_KEYS_END,
};

static uint16_t id_of(const struct attach *a)
{
	return (uint16_t)((const struct vlan *)a->own)->id;
}

/* The list's own link, which CHECK is not told any more. A default route, which other plugins go
 * by, says nothing about VLANs. */
static int need_chained(const struct attach *a, struct err *e)
{
	autoresult prev = {0};
	bool present;

	if (a->req->verb != VERB_ADD)
		return 0;
	if (request_prev_result(a->req, &prev, &present, NULL, e))
		return -1;
	return master_chained(&prev, a->req->netns)
		       ? 0
		       : err_set(e, ERR_INVALID_CONFIG,
				 "chained master failure. PrevResult lacks a single named "
				 "interface in the container, and no \"master\" is given");
}

static int conf(struct attach *a, struct err *e)
{
	const struct vlan *v = a->own;

	if (v->id < 0 || v->id > VLAN_ID_MAX)
		return err_set(e, ERR_INVALID_CONFIG,
			"invalid VLAN ID %lld (must be between 0 and %d inclusive)",
			(long long)v->id, VLAN_ID_MAX);
	if (a->conf.master)
		return 0;
	if (a->conf.inside)
		return need_chained(a, e);
	return err_set(e, ERR_INVALID_CONFIG,
		"\"master\" field is required. It specifies the host interface name to create the "
		"VLAN for.");
}

/* A VLAN of a link has room for one, in whatever namespace that is. */
static int tell_holder(const struct attach *a, struct err *e)
{
	const char *whose = "a link in a namespace that the host has no name for";
	char owner[REACH_OWNER];
	struct reached r;
	int ret;

	if (a->conf.inside) {
		ret = reach_vlan_in(a->sb.nl, a->master.index, id_of(a), &r);
	} else {
		reach_neighbours(a->sb.host, a->req->netns);
		ret = reach_vlan(a->sb.host, a->master.index, id_of(a), &r);
	}
	if (ret == 1)
		whose = reach_owner(&r.link, owner);
	return err_set(e, ERR_CONFLICT,
		"failed to create vlan: file exists: VLAN %u of \"%s\" is held by %s. What several "
		"containers can share is a bridge: plugin bridge with \"vlan\"",
		id_of(a), a->master.name, whose);
}

static int attach(struct attach *a, struct err *e)
{
	struct vlan_data data = {.id = id_of(a)};
	struct err why = {0};

	if (!child_attach(a, &data, &why))
		return 0;
	if (why.sys == EEXIST)
		tell_holder(a, e);
	err_merge(e, &why);
	return -1;
}

static int check(struct attach *a, struct err *e)
{
	const char *name = a->req->ifname;
	struct vlan_data now = {0};
	struct link l;
	int ret = link_get_data(a->sb.nl, name, &kind_vlan, &l, &now);

	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", name);
	if (now.id != id_of(a))
		return err_set(e, ERR_CHECK, "vlan link %s: VLAN ID is %u, not %u", name, now.id,
			id_of(a));
	return child_check(a, e);
}

static const struct attach_type type = {
	.kind = &kind_vlan,
	.keys = KEY_MTU | KEY_MASTER | KEY_INSIDE,
	.ipam_required = true,
	.table = keys,
	.conf_size = sizeof(struct vlan),
	.conf = conf,
	.attach = attach,
	.check = check,
	.status = child_status,
	.detach = child_detach,
	.collect = child_collect,
};

const struct applet applet_vlan = {
	.name = "vlan",
	.help = "Gives a container one VLAN of a link of the host",
	.kind = APPLET_MAIN,
	ATTACH_VERBS(&type),
};
