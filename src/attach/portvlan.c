#include "attach/portvlan.h"

#include "base/cleanup.h"
#include "netlink/link.h"

/* Where untagged frames belong on a port with a trunk and no VLAN of its own. */
#define NATIVE_VLAN 1

bool portvlan_any(const struct portvlan *v)
{
	return v->vlan || !vlan_set_empty(&v->trunk);
}

bool portvlan_filters(const struct portvlan *v)
{
	return v->vlan || v->has_trunk;
}

static uint16_t untagged(const struct portvlan *v)
{
	return v->vlan ? v->vlan : NATIVE_VLAN;
}

/* ---- config ---- */

static int vlan_id(const json *item, const char *key, uint16_t *out, bool *given, struct err *e)
{
	const json *node = json_get(item, key);

	*given = node != NULL;
	if (!node)
		return 0;
	if (!json_is_int(node) || json_int(node) < 1 || json_int(node) > VLAN_MAX)
		return err_set(e, ERR_INVALID_CONFIG,
			"incorrect trunk %s parameter: must be between 1 and %d", key, VLAN_MAX);
	*out = (uint16_t)json_int(node);
	return 0;
}

static int read_item(struct portvlan *v, const json *item, struct err *e)
{
	bool has_min, has_max, has_id;
	uint16_t min = 0, max = 0, id = 0;

	if (!json_is_object(item))
		return err_set(e, ERR_INVALID_CONFIG, "vlanTrunk: expected object, got %s",
			json_type_name(item));
	if (vlan_id(item, "minID", &min, &has_min, e) ||
		vlan_id(item, "maxID", &max, &has_max, e) || vlan_id(item, "id", &id, &has_id, e))
		return -1;
	if (has_min != has_max)
		return err_set(e, ERR_INVALID_CONFIG,
			"minID and maxID should be configured simultaneously, %s is missing",
			has_min ? "maxID" : "minID");
	if (has_min && min > max)
		return err_set(
			e, ERR_INVALID_CONFIG, "minID is greater than maxID in trunk parameter");
	if (has_min)
		vlan_set_add(&v->trunk, min, max);
	if (has_id)
		vlan_set_add(&v->trunk, id, id);
	return 0;
}

int portvlan_read(struct portvlan *v, const json *conf, struct err *e)
{
	const json *trunk = NULL, *node = json_get(conf, "vlan");
	int64_t vlan = 0;

	*v = (struct portvlan){0};
	if (node && json_is_int(node) && (json_int(node) < 0 || json_int(node) > VLAN_MAX))
		return err_set(e, ERR_INVALID_CONFIG,
			"invalid VLAN ID %lld (must be between 0 and %d)",
			(long long)json_int(node), VLAN_MAX);
	if (json_get_int(conf, "vlan", 0, VLAN_MAX, &vlan, e) ||
		json_get_bool(conf, "preserveDefaultVlan", &v->keep_default, e) ||
		json_get_array(conf, "vlanTrunk", &trunk, e))
		return -1;
	v->vlan = (uint16_t)vlan;
	v->has_trunk = trunk != NULL;
	for (size_t i = 0; i < json_len(trunk); i++)
		if (read_item(v, json_at(trunk, i), e))
			return -1;
	return 0;
}

/* ---- the port ---- */

static int list(
	struct nl *nl, const char *name, uint32_t index, struct port_vlans *out, struct err *e)
{
	int ret = brvlan_get(nl, index, out);

	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to list the VLANs of \"%s\"", name) : 0;
}

int portvlan_set(struct nl *nl, const struct portvlan *v, const char *name, struct err *e)
{
	struct port_vlans now = {0};
	autoreq req = {0};
	struct link port;

	if (!portvlan_any(v))
		return 0;
	if (link_need(nl, name, &port, e) ||
		(!v->keep_default && list(nl, name, port.index, &now, e)))
		return -1;
	brvlan_put_del(&req, port.index, &now.set);
	brvlan_put_tagged(&req, port.index, &v->trunk);
	/* Last, since the trunk may hold the same VLAN, which is untagged all the same. */
	brvlan_put_access(&req, port.index, untagged(v));
	return nl_do(nl, &req, e, "failed to setup vlan tag on interface \"%s\"", name);
}

int portvlan_check(struct nl *nl, const struct portvlan *v, const struct link *port, struct err *e)
{
	struct port_vlans now;

	if (!portvlan_any(v))
		return 0;
	if (list(nl, port->name, port->index, &now, e))
		return -1;
	if (now.pvid != untagged(v))
		return err_set(
			e, ERR_CHECK, "port %s: VLAN %u is not its PVID", port->name, untagged(v));
	for (uint16_t vid = 1; vid <= VLAN_MAX; vid++)
		if (vlan_set_has(&v->trunk, vid) && !vlan_set_has(&now.set, vid))
			return err_set(e, ERR_CHECK, "port %s: VLAN %u is missing from its trunk",
				port->name, vid);
	return 0;
}
