#include "result/shape.h"

#include "base/cleanup.h"

#include <string.h>

/* The document is built in the order upstream prints it: in shapes A and B that of its fields, in
 * shape C bytewise. json_set() refuses what could not be allocated, so one flag for all is enough.
 */

static void put(json *o, const char *key, json *value, bool *failed)
{
	if (json_set(o, key, value) < 0)
		*failed = true;
}

static void put_str(json *o, const char *key, const char *s, bool *failed)
{
	if (s && *s)
		put(o, key, json_new_text(s), failed);
}

static void put_int(json *o, const char *key, int64_t v, bool *failed)
{
	if (v)
		put(o, key, json_new_int(v), failed);
}

static void put_int_if(json *o, const char *key, bool has, int64_t v, bool *failed)
{
	if (has)
		put(o, key, json_new_int(v), failed);
}

static void put_ip(json *o, const char *key, const struct ip *ip, bool *failed)
{
	char text[IP_STRLEN];

	if (ip->family)
		put(o, key, json_new_string(ip_format(ip, text)), failed);
}

static void put_prefix(json *o, const char *key, const struct prefix *p, bool *failed)
{
	char text[PREFIX_STRLEN];

	put(o, key, json_new_string(prefix_format(p, text)), failed);
}

static void put_strings(json *o, const char *key, char *const *list, bool *failed)
{
	json *array;

	if (!list || !*list)
		return;
	array = json_new_array();
	for (; *list; list++)
		if (json_append(array, json_new_text(*list)) < 0)
			*failed = true;
	put(o, key, array, failed);
}

/* What we do not know comes last. */
static void put_extra(json *o, const json *extra, bool *failed)
{
	for (void *it = json_iter(extra); it; it = json_iter_next(extra, it))
		if (!json_get_exact(o, json_iter_key(it)))
			put(o, json_iter_key(it), json_ref(json_iter_value(it)), failed);
}

static json *iface_json(const struct iface *i, enum cni_shape shape, bool *failed)
{
	json *o = json_new_object();

	if (shape == SHAPE_B) {
		put(o, "name", json_new_text(i->name), failed);
		put_str(o, "mac", i->mac, failed);
		put_str(o, "sandbox", i->sandbox, failed);
	} else {
		put_str(o, "mac", i->mac, failed);
		put_int(o, "mtu", i->mtu, failed);
		put(o, "name", json_new_text(i->name), failed);
		put_str(o, "pciID", i->pci_id, failed);
		put_str(o, "sandbox", i->sandbox, failed);
		put_str(o, "socketPath", i->socket_path, failed);
	}
	put_extra(o, i->extra, failed);
	return o;
}

static json *ip_json(const struct ip_config *ip, enum cni_shape shape, bool *failed)
{
	const char *family = ip->address.ip.family == AF_INET ? "4" : "6";
	json *o = json_new_object();

	if (shape == SHAPE_B) {
		put_str(o, "version", family, failed);
		put_int_if(o, "interface", ip->has_iface, ip->iface, failed);
		put_prefix(o, "address", &ip->address, failed);
		put_ip(o, "gateway", &ip->gateway, failed);
	} else {
		put_prefix(o, "address", &ip->address, failed);
		put_ip(o, "gateway", &ip->gateway, failed);
		put_int_if(o, "interface", ip->has_iface, ip->iface, failed);
	}
	put_extra(o, ip->extra, failed);
	return o;
}

static json *route_json(const struct route *r, enum cni_shape shape, bool *failed)
{
	json *o = json_new_object();

	if (shape == SHAPE_C) {
		put_int(o, "advmss", r->advmss, failed);
		put_prefix(o, "dst", &r->dst, failed);
		put_ip(o, "gw", &r->gw, failed);
		put_int(o, "mtu", r->mtu, failed);
		put_int(o, "priority", r->priority, failed);
		put_int_if(o, "scope", r->has_scope, r->scope, failed);
		put_int_if(o, "table", r->has_table, r->table, failed);
	} else {
		put_prefix(o, "dst", &r->dst, failed);
		put_ip(o, "gw", &r->gw, failed);
	}
	if (shape == SHAPE_B || (shape == SHAPE_A && r->block)) {
		put_int(o, "mtu", r->mtu, failed);
		put_int(o, "advmss", r->advmss, failed);
		put_int(o, "priority", r->priority, failed);
		put_int_if(o, "table", r->has_table, r->table, failed);
		put_int_if(o, "scope", r->has_scope, r->scope, failed);
	}
	put_extra(o, r->extra, failed);
	return o;
}

/* The order of the fields and that of the bytes differ: the domain comes first in C. */
static void put_dns(json *doc, const struct dns *dns, enum cni_shape shape, bool *failed)
{
	json *o;

	if (shape == SHAPE_C && dns_empty(dns))
		return;
	o = json_new_object();
	if (shape == SHAPE_C)
		put_str(o, "domain", dns->domain, failed);
	put_strings(o, "nameservers", dns->nameservers, failed);
	if (shape != SHAPE_C) {
		put_str(o, "domain", dns->domain, failed);
		put_strings(o, "search", dns->search, failed);
	}
	put_strings(o, "options", dns->options, failed);
	if (shape == SHAPE_C)
		put_strings(o, "search", dns->search, failed);
	put_extra(o, dns->extra, failed);
	put(doc, "dns", o, failed);
}

/* What was read from a block goes back there; anything else goes by its family. */
static const struct ip_config *block_ip(const struct result *r, uint8_t block)
{
	const struct ip_config *found = NULL;

	for (size_t i = 0; i < r->ips_len; i++) {
		const struct ip_config *ip = &r->ips[i];

		if (ip->block == block)
			return ip;
		if (!found && !ip->block && ip->address.ip.family == block)
			found = ip;
	}
	return found;
}

/* A block of shape A: the first address of a family and the routes to destinations of it. */
static void put_block(
	json *doc, const char *key, const struct result *r, uint8_t block, bool *failed)
{
	const struct ip_config *ip = block_ip(r, block);
	json *o, *routes = NULL;

	if (!ip)
		return;
	o = json_new_object();
	put_prefix(o, "ip", &ip->address, failed);
	put_ip(o, "gateway", &ip->gateway, failed);
	for (size_t i = 0; i < r->routes_len; i++) {
		const struct route *route = &r->routes[i];

		if ((route->block ? route->block : route->dst.ip.family) != block)
			continue;
		if (!routes)
			routes = json_new_array();
		if (json_append(routes, route_json(route, SHAPE_A, failed)) < 0)
			*failed = true;
	}
	if (routes)
		put(o, "routes", routes, failed);
	put_extra(o, ip->extra, failed);
	put(doc, key, o, failed);
}

static void put_lists(json *doc, const struct result *r, enum cni_shape shape, bool *failed)
{
	json *ifaces = json_new_array(), *ips = json_new_array(), *routes = json_new_array();

	for (size_t i = 0; i < r->ifaces_len; i++)
		if (json_append(ifaces, iface_json(&r->ifaces[i], shape, failed)) < 0)
			*failed = true;
	for (size_t i = 0; i < r->ips_len; i++)
		if (json_append(ips, ip_json(&r->ips[i], shape, failed)) < 0)
			*failed = true;
	for (size_t i = 0; i < r->routes_len; i++)
		if (json_append(routes, route_json(&r->routes[i], shape, failed)) < 0)
			*failed = true;
	if (r->ifaces_len)
		put(doc, "interfaces", json_ref(ifaces), failed);
	if (r->ips_len)
		put(doc, "ips", json_ref(ips), failed);
	if (r->routes_len)
		put(doc, "routes", json_ref(routes), failed);
	json_free(ifaces);
	json_free(ips);
	json_free(routes);
}

/* What must hold of any result we hand out. */
static int check(const struct result *r, enum cni_shape shape, struct err *e)
{
	for (size_t i = 0; i < r->ips_len; i++)
		if (!r->ips[i].address.ip.family)
			return err_set(e, ERR_DECODE, "ips[%zu] has no address", i);
	for (size_t i = 0; i < r->routes_len; i++)
		if (!r->routes[i].dst.ip.family)
			return err_set(e, ERR_DECODE, "routes[%zu] has no destination", i);
	if (shape == SHAPE_A && !r->ips_len && !r->is_shape_a)
		return err_set(e, ERR_INVALID_CONFIG, "cannot convert: no valid IP addresses");
	return 0;
}

json *result_to_json(const struct result *r, const char *version, struct err *e)
{
	enum cni_shape shape = cni_shape(version);
	autojson *doc = NULL;
	bool failed = false;

	if (shape == SHAPE_NONE) {
		err_set(e, ERR_INCOMPATIBLE_VERSION, "no converter for CNI result version %s to %s",
			CNI_CURRENT, version);
		return NULL;
	}
	if (check(r, shape, e) < 0)
		return NULL;
	doc = json_new_object();
	put(doc, "cniVersion", json_new_string(*version ? version : "0.1.0"), &failed);
	if (shape == SHAPE_C)
		put_dns(doc, &r->dns, shape, &failed);
	if (shape == SHAPE_A) {
		put_block(doc, "ip4", r, AF_INET, &failed);
		put_block(doc, "ip6", r, AF_INET6, &failed);
	} else {
		put_lists(doc, r, shape, &failed);
	}
	if (shape != SHAPE_C)
		put_dns(doc, &r->dns, shape, &failed);
	put_extra(doc, r->extra, &failed);
	if (failed) {
		err_memory(e);
		return NULL;
	}
	return take_ptr(doc);
}

int result_write(const struct result *r, const char *version, struct buf *out, struct err *e)
{
	autojson *doc = result_to_json(r, version, e);

	if (!doc)
		return -1;
	json_write(out, doc, cni_shape(version) == SHAPE_C ? JSON_INDENT_SORTED : JSON_INDENT);
	return out->failed ? err_memory(e) : 0;
}
