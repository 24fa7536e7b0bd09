/* static: hands out the addresses that the config or the caller names, and keeps no books.
 * docs/static.md; reference/ipam.md, section 2. */
#include "base/cleanup.h"
#include "base/vec.h"
#include "cni/applet.h"
#include "cni/args.h"
#include "ipam/ipam.h"
#include "json/keys.h"

#include <ctype.h>
#include <string.h>

/* One that is handed out. */
struct address {
	struct prefix prefix;
	struct ip gateway;  /* family 0: none */
	bool gateway_given; /* with this very address, not found for it among the others' */
};

struct ip_array {
	struct ip *list;
	size_t len;
};

struct config {
	/* As written. */
	const json *addresses, *routes, *dns;
	const char *name;

	struct address *list; /* in the order of the result */
	size_t len;

	/* What gateways there are for addresses given at run time: those of the config in its
	 * order, and those of CNI_ARGS. */
	struct ip_array gateways, env_gateways;
};

static const struct json_key keys[] = {
	JSON_KEY_ARRAY(struct config, "addresses", addresses),
	JSON_KEY_ARRAY(struct config, "routes", routes),
	JSON_KEY_OBJECT(struct config, "dns", dns),
	/* Read by its type only, as the Go plugin does: the network's name is at the top. */
	JSON_KEY_STR(struct config, "name", name),
	JSON_KEYS_END,
};

/* An element of addresses. */
struct entry {
	const char *address, *gateway, *version;
};

static const struct json_key entry_keys[] = {
	JSON_KEY_STR(struct entry, "address", address),
	JSON_KEY_STR(struct entry, "gateway", gateway),
	/* Of old documentation; it says nothing that the address does not. */
	JSON_KEY_STR(struct entry, "version", version),
	JSON_KEYS_END,
};

static void config_free(struct config *c)
{
	free(c->list);
	free(c->gateways.list);
	free(c->env_gateways.list);
	*c = (struct config){0};
}

#define autoconfig __attribute__((cleanup(config_free))) struct config

static int add_address(struct config *c, const struct prefix *prefix, const struct ip *gateway,
	bool given, struct err *e)
{
	struct address *a;

	if (c->len == IPAM_ADDRESSES_MAX)
		return err_set(e, ERR_INVALID_CONFIG, "more than %d addresses", IPAM_ADDRESSES_MAX);
	a = vec_add(c->list, c->len);
	if (!a)
		return err_memory(e);
	*a = (struct address){*prefix, *gateway, given};
	return 0;
}

static int add_ip(struct ip_array *to, const struct ip *ip, struct err *e)
{
	struct ip *slot;

	if (to->len == IPAM_ADDRESSES_MAX)
		return err_set(e, ERR_INVALID_CONFIG, "more than %d gateways", IPAM_ADDRESSES_MAX);
	slot = vec_add(to->list, to->len);
	if (!slot)
		return err_memory(e);
	*slot = *ip;
	return 0;
}

/* ---- the config's own addresses ---- */

static int read_entry(
	const json *element, size_t i, struct entry *out, struct ip *gateway, struct err *e)
{
	*out = (struct entry){.address = ""};
	*gateway = (struct ip){0};
	if (!json_is_object(element))
		return err_set(e, ERR_INVALID_CONFIG,
			"ipam.addresses[%zu]: expected an object, found %s", i,
			json_type_name(element));
	if (json_read_keys(element, entry_keys, out, e))
		return err_wrap(e, "ipam.addresses[%zu]", i);
	if (out->gateway && *out->gateway && !ip_parse(out->gateway, gateway))
		return err_set(e, ERR_INVALID_CONFIG,
			"ipam.addresses[%zu].gateway: invalid IP address: %s", i, out->gateway);
	return 0;
}

/* Of addresses that the caller replaces only the gateways are read: as in the Go plugin they may be
 * anything then. */
static int read_addresses(struct config *c, bool replaced, struct err *e)
{
	for (size_t i = 0; i < json_len(c->addresses); i++) {
		struct entry entry;
		struct ip gateway;
		struct prefix prefix;

		if (read_entry(json_at(c->addresses, i), i, &entry, &gateway, e))
			return -1;
		if (gateway.family && add_ip(&c->gateways, &gateway, e))
			return -1;
		if (replaced)
			continue;
		if (!prefix_parse(entry.address, &prefix))
			return err_set(e, ERR_INVALID_CONFIG,
				"the 'address' field is expected to be in CIDR notation, got: '%s'",
				entry.address);
		if (add_address(c, &prefix, &gateway, gateway.family, e))
			return -1;
	}
	return 0;
}

/* ---- addresses given at run time ---- */

/* The next element of a list with commas, without the white space around it. Ends it in place. */
static char *next_element(char **rest)
{
	char *text = *rest, *end;

	if (!text)
		return NULL;
	*rest = strchr(text, ',');
	if (*rest)
		*(*rest)++ = '\0';
	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text;
}

static const struct ip *last_inside(const struct ip_array *from, const struct prefix *p)
{
	for (size_t i = from->len; i--;)
		if (prefix_contains(p, &from->list[i]))
			return &from->list[i];
	return NULL;
}

static const struct ip *first_inside(const struct ip_array *from, const struct prefix *p)
{
	for (size_t i = 0; i < from->len; i++)
		if (prefix_contains(p, &from->list[i]))
			return &from->list[i];
	return NULL;
}

/* With the gateway that is in its network: of CNI_ARGS the last, as in the Go plugin, of the config
 * the first. The Go plugin knows those of CNI_ARGS only, for the addresses of CNI_ARGS only: CHECK
 * insists on no other, since prevResult may be of its making. */
static int add_wanted(struct config *c, const struct prefix *p, bool of_env, struct err *e)
{
	const struct ip *named = last_inside(&c->env_gateways, p);
	const struct ip *gateway = named ? named : first_inside(&c->gateways, p);

	return add_address(c, p, gateway ? gateway : &(struct ip){0}, of_env && named, e);
}

static int read_env_gateways(struct config *c, char *text, struct err *e)
{
	struct ip gateway;
	char *item;

	if (!text || !*text)
		return 0;
	while ((item = next_element(&text))) {
		if (!ip_parse(item, &gateway))
			return err_set(e, ERR_INVALID_CONFIG, "invalid gateway address: %s", item);
		if (add_ip(&c->env_gateways, &gateway, e))
			return -1;
	}
	return 0;
}

static int read_env_addresses(struct config *c, char *text, bool replaced, struct err *e)
{
	struct prefix prefix;
	char *item;

	if (!text || !*text)
		return 0;
	while ((item = next_element(&text))) {
		if (!prefix_parse(item, &prefix))
			return err_set(e, ERR_INVALID_CONFIG,
				"the 'ip' field is expected to be in CIDR notation, got: '%s'",
				item);
		if (!replaced && add_wanted(c, &prefix, true, e))
			return -1;
	}
	return 0;
}

static int read_requests(
	const json *parent, const char *where, struct ip_requests *out, struct err *e)
{
	if (ipam_read_ips(parent, where, out, e))
		return -1;
	for (size_t i = 0; i < out->len; i++) {
		char text[IP_STRLEN];

		if (!out->list[i].has_len)
			return err_set(e, ERR_INVALID_CONFIG,
				"an entry in the 'ips' field is NOT in CIDR notation, got: '%s' (%s)",
				ip_format(&out->list[i].address.ip, text), where);
	}
	return 0;
}

/* ---- all of them ---- */

struct sources {
	struct ip_requests args, runtime;
	char *env[2]; /* IP, GATEWAY of CNI_ARGS */
};

static void sources_free(struct sources *s)
{
	free(s->args.list);
	free(s->runtime.list);
	free(s->env[0]);
	free(s->env[1]);
}

#define autosources __attribute__((cleanup(sources_free))) struct sources

static int read_sources(const struct request *req, struct sources *s, struct err *e)
{
	static const char *const known[] = {"IP", "GATEWAY", NULL};
	const json *runtime = NULL, *args = NULL;

	return request_cni_args(req, known, s->env, e) || request_args_cni(req, &args, e) ||
			       request_runtime_config(req, &runtime, e) ||
			       read_requests(args, "args.cni", &s->args, e) ||
			       read_requests(runtime, "runtimeConfig", &s->runtime, e)
		       ? -1
		       : 0;
}

/* runtimeConfig replaces args, args replace what the config and CNI_ARGS together say. What is
 * replaced is checked all the same, but for the config's own addresses. */
static int collect(const struct request *req, struct config *c, struct err *e)
{
	autosources s = {0};
	const struct ip_requests *wanted;

	if (read_sources(req, &s, e))
		return -1;
	wanted = s.runtime.len ? &s.runtime : &s.args;
	if (read_env_gateways(c, s.env[1], e) || read_addresses(c, wanted->len, e) ||
		read_env_addresses(c, s.env[0], wanted->len, e))
		return -1;
	for (size_t i = 0; i < wanted->len; i++)
		if (add_wanted(c, &wanted->list[i].address, false, e))
			return -1;
	return 0;
}

static int check_version(const struct request *req, const struct config *c, struct err *e)
{
	size_t v4 = 0;

	for (size_t i = 0; i < c->len; i++)
		v4 += c->list[i].prefix.ip.family == AF_INET;
	return ipam_check_version(req->version, v4, c->len - v4, e);
}

/* All of it, checked; *r receives routes and DNS. */
static int config_load(const struct request *req, struct config *c, struct result *r, struct err *e)
{
	const json *ipam = NULL;

	if (json_get_object(req->conf, "ipam", &ipam, e))
		return -1;
	if (!ipam && req->verb != VERB_STATUS)
		return err_set(e, ERR_INVALID_CONFIG, "IPAM config missing 'ipam' key");
	if (json_read_keys(ipam, keys, c, e) || collect(req, c, e) || check_version(req, c, e))
		return -1;
	if (c->routes && result_read_routes(r, c->routes, "routes", ERR_INVALID_CONFIG, e))
		return -1;
	return c->dns ? result_read_dns(&r->dns, c->dns, ERR_INVALID_CONFIG, e) : 0;
}

/* ---- the verbs ---- */

static int add(const struct request *req, struct reply *reply, struct err *e)
{
	autoconfig c = {0};

	if (config_load(req, &c, &reply->result, e))
		return -1;
	for (size_t i = 0; i < c.len; i++) {
		struct ip_config *ip = result_add_ip(&reply->result, &c.list[i].prefix, e);

		if (!ip)
			return -1;
		ip->gateway = c.list[i].gateway;
	}
	return 0;
}

static int check_address(const struct request *req, const struct address *a,
	const struct result *prev, struct err *e)
{
	char text[PREFIX_STRLEN], found[IP_STRLEN];
	const struct ip_config *ip = NULL;

	for (size_t i = 0; i < prev->ips_len && !ip; i++)
		if (!ip_cmp(&prev->ips[i].address.ip, &a->prefix.ip) &&
			prev->ips[i].address.len == a->prefix.len)
			ip = &prev->ips[i];
	prefix_format(&a->prefix, text);
	if (!ip)
		return err_set(e, ERR_CHECK,
			"static: Failed to match addr %s on interface %s: not in prevResult", text,
			req->ifname);
	if (!a->gateway_given || !ip_cmp(&ip->gateway, &a->gateway))
		return 0;
	return err_set(e, ERR_CHECK,
		"static: Failed to match addr %s on interface %s: its gateway in prevResult is %s",
		text, req->ifname, ip->gateway.family ? ip_format(&ip->gateway, found) : "missing");
}

static int check(const struct request *req, struct err *e)
{
	autoconfig c = {0};
	autoresult from_config = {0}, prev = {0};
	bool present;

	if (config_load(req, &c, &from_config, e) ||
		request_prev_result(req, &prev, &present, "Required prevResult missing", e))
		return -1;
	for (size_t i = 0; i < c.len; i++)
		if (check_address(req, &c.list[i], &prev, e))
			return -1;
	return 0;
}

static int status(const struct request *req, struct err *e)
{
	autoconfig c = {0};
	autoresult from_config = {0};

	return config_load(req, &c, &from_config, e);
}

/* There is nothing to release. */
const struct applet applet_static = {
	.name = "static",
	.help = "IPAM: addresses that the config or the caller names",
	.kind = APPLET_IPAM,
	.add = add,
	.check = check,
	.status = status,
};
