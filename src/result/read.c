#include "result/shape.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The fields that some shape knows, by level: they are never "unknown", so that a field another
 * shape does not have (an mtu in 0.4.0) vanishes there, as it does everywhere else, instead of
 * coming back in the next conversion. */
static const char *const top_keys[] = {
	"cniVersion",
	"interfaces",
	"ips",
	"routes",
	"dns",
	"ip4",
	"ip6",
	NULL,
};
static const char *const iface_keys[] = {
	"name",
	"mac",
	"sandbox",
	"mtu",
	"socketPath",
	"pciID",
	NULL,
};
static const char *const ip_keys[] = {
	"version",
	"interface",
	"address",
	"gateway",
	"ip",
	"routes",
	NULL,
};
static const char *const route_keys[] = {
	"dst",
	"gw",
	"mtu",
	"advmss",
	"priority",
	"table",
	"scope",
	NULL,
};
static const char *const dns_keys[] = {
	"nameservers",
	"domain",
	"search",
	"options",
	NULL,
};

/* What the readers of a document's parts know of it. */
struct reader {
	struct result *r; /* what is being read into */
	bool is_old;      /* a version before 1.1.0 */
	uint8_t block;    /* of shape A, that the routes are in; else 0 */
};

static bool is_known(const char *const *known, const char *key)
{
	while (*known && strcasecmp(*known, key) != 0)
		known++;
	return *known;
}

/* Collects the members with other names into *out. */
static int read_extra(const json *o, const char *const *known, json **out, struct err *e)
{
	for (void *it = json_iter(o); it; it = json_iter_next(o, it)) {
		if (is_known(known, json_iter_key(it)))
			continue;
		if (!*out)
			*out = json_new_object();
		if (json_set(*out, json_iter_key(it), json_ref(json_iter_value(it))) < 0)
			return err_memory(e);
	}
	return 0;
}

/* A required address with its prefix length. */
static int read_cidr(const json *o, const char *key, struct prefix *out, struct err *e)
{
	const char *text = NULL;

	if (json_get_str(o, key, &text, e) < 0)
		return -1;
	if (!text)
		return err_set(e, ERR_DECODE, "missing \"%s\"", key);
	if (!prefix_parse(text, out))
		return err_set(e, ERR_DECODE, "invalid CIDR address: %s", text);
	return 0;
}

/* An optional address; empty counts as absent. */
static int read_ip(const json *o, const char *key, struct ip *out, struct err *e)
{
	const char *text = NULL;

	if (json_get_str(o, key, &text, e) < 0)
		return -1;
	if (text && *text && !ip_parse(text, out))
		return err_set(e, ERR_DECODE, "invalid IP address: %s", text);
	return 0;
}

static int read_int(const json *o, const char *key, int64_t *out, struct err *e)
{
	return json_get_int(o, key, INT64_MIN, INT64_MAX, out, e);
}

static int read_int_if(const json *o, const char *key, bool *has, int64_t *out, struct err *e)
{
	*has = json_get(o, key);
	return read_int(o, key, out, e);
}

/* The same for fields that came with 1.1.0. In an older result they are kept when they are
 * integers, and nobody's business when they are not. */
static int read_new_int(
	const struct reader *in, const json *o, const char *key, int64_t *out, struct err *e)
{
	return in->is_old && !json_is_int(json_get(o, key)) ? 0 : read_int(o, key, out, e);
}

static int read_new_int_if(const struct reader *in, const json *o, const char *key, bool *has,
	int64_t *out, struct err *e)
{
	if (in->is_old && !json_is_int(json_get(o, key)))
		return 0;
	return read_int_if(o, key, has, out, e);
}

/* A text that is passed on, into *slot. */
static int read_text(const json *o, const char *key, char **slot, struct err *e)
{
	const char *text = NULL;

	if (json_get_text(o, key, &text, e) < 0)
		return -1;
	return result_set_str(slot, text, e);
}

static int read_new_text(
	const struct reader *in, const json *o, const char *key, char **slot, struct err *e)
{
	return in->is_old && !json_is_string(json_get(o, key)) ? 0 : read_text(o, key, slot, e);
}

typedef int read_entry(const struct reader *in, const json *entry, struct err *e);

/* Reads the entries of an array, naming the one that fails. */
static int read_entries(const struct reader *in, const json *array, const char *key,
	read_entry *read, struct err *e)
{
	for (size_t i = 0; i < json_len(array); i++) {
		const json *entry = json_at(array, i);

		if (!json_is_object(entry)) {
			err_set(e, ERR_DECODE, "expected object, found %s", json_type_name(entry));
			return err_detail(e, "in %s[%zu]", key, i);
		}
		if (read(in, entry, e) < 0)
			return err_detail(e, "in %s[%zu]", key, i);
	}
	return 0;
}

static int read_array(
	const struct reader *in, const json *o, const char *key, read_entry *read, struct err *e)
{
	const json *array = NULL;

	if (json_get_array(o, key, &array, e) < 0)
		return -1;
	return read_entries(in, array, key, read, e);
}

static int read_iface(const struct reader *in, const json *o, struct err *e)
{
	const char *name = "";
	struct iface *p;

	if (json_get_text(o, "name", &name, e) < 0)
		return -1;
	p = result_add_iface(in->r, name, NULL, NULL, e);
	if (!p || read_text(o, "mac", &p->mac, e) < 0 ||
		read_text(o, "sandbox", &p->sandbox, e) < 0)
		return -1;
	if (read_new_text(in, o, "socketPath", &p->socket_path, e) < 0 ||
		read_new_text(in, o, "pciID", &p->pci_id, e) < 0 ||
		read_new_int(in, o, "mtu", &p->mtu, e) < 0)
		return -1;
	return read_extra(o, iface_keys, &p->extra, e);
}

/* Shape B has a "version" beside the address, which says nothing new and may be wrong. */
static int read_ip_config(const struct reader *in, const json *o, struct err *e)
{
	struct prefix address;
	struct ip_config *p;

	if (read_cidr(o, "address", &address, e) < 0)
		return -1;
	p = result_add_ip(in->r, &address, e);
	if (!p || read_ip(o, "gateway", &p->gateway, e) < 0 ||
		read_int_if(o, "interface", &p->has_iface, &p->iface, e) < 0)
		return -1;
	return read_extra(o, ip_keys, &p->extra, e);
}

static int read_route(const struct reader *in, const json *o, struct err *e)
{
	struct prefix dst;
	struct route *p;

	if (read_cidr(o, "dst", &dst, e) < 0)
		return -1;
	p = result_add_route(in->r, &dst, e);
	if (!p || read_ip(o, "gw", &p->gw, e) < 0 || read_new_int(in, o, "mtu", &p->mtu, e) < 0 ||
		read_new_int(in, o, "advmss", &p->advmss, e) < 0 ||
		read_new_int(in, o, "priority", &p->priority, e) < 0 ||
		read_new_int_if(in, o, "table", &p->has_table, &p->table, e) < 0 ||
		read_new_int_if(in, o, "scope", &p->has_scope, &p->scope, e) < 0)
		return -1;
	p->block = in->block;
	return read_extra(o, route_keys, &p->extra, e);
}

/* Shape A: one block per family, with the routes inside. In other shapes the family is that of the
 * address, whatever the name of the block. */
static int read_block(struct reader *in, const json *doc, const char *key, struct err *e)
{
	const json *o = NULL;
	struct prefix address;
	struct ip_config *p;

	if (json_get_object(doc, key, &o, e) < 0)
		return -1;
	if (!o)
		return 0;
	if (read_cidr(o, "ip", &address, e) < 0)
		return err_detail(e, "in %s", key);
	p = result_add_ip(in->r, &address, e);
	in->block = key[2] == '4' ? AF_INET : AF_INET6;
	if (p)
		p->block = in->block;
	if (!p || read_ip(o, "gateway", &p->gateway, e) < 0 ||
		read_extra(o, ip_keys, &p->extra, e) < 0 ||
		read_array(in, o, "routes", read_route, e) < 0)
		return err_detail(e, "in %s", key);
	return 0;
}

static int read_strings(const json *o, const char *key, char ***out, struct err *e)
{
	const json *array = NULL;
	size_t n;

	if (json_get_array(o, key, &array, e) < 0)
		return -1;
	n = json_len(array);
	if (!n)
		return 0;
	*out = calloc(n + 1, sizeof(**out));
	for (size_t i = 0; *out && i < n; i++) {
		const json *entry = json_at(array, i);

		if (!json_text(entry)) {
			err_set(e, ERR_DECODE, "expected string, found %s", json_type_name(entry));
			return err_detail(e, "in %s[%zu]", key, i);
		}
		(*out)[i] = strdup(json_text(entry));
		if (!(*out)[i])
			return err_memory(e);
	}
	return *out ? 0 : err_memory(e);
}

static int read_dns(struct dns *dns, const json *o, struct err *e)
{
	if (read_strings(o, "nameservers", &dns->nameservers, e) < 0 ||
		read_text(o, "domain", &dns->domain, e) < 0 ||
		read_strings(o, "search", &dns->search, e) < 0 ||
		read_strings(o, "options", &dns->options, e) < 0)
		return -1;
	return read_extra(o, dns_keys, &dns->extra, e);
}

/* Reads a document of that version, which is a known one. */
static int read_document(struct result *r, const json *doc, const char *version, struct err *e)
{
	struct reader in = {.r = r, .is_old = strcmp(version, CNI_CURRENT) != 0};
	const json *dns = NULL;

	if (json_get_object(doc, "dns", &dns, e) < 0)
		return -1;
	r->is_shape_a = cni_shape(version) == SHAPE_A;
	if (r->is_shape_a) {
		if (read_block(&in, doc, "ip4", e) < 0 || read_block(&in, doc, "ip6", e) < 0)
			return -1;
	} else if (read_array(&in, doc, "interfaces", read_iface, e) < 0 ||
		   read_array(&in, doc, "ips", read_ip_config, e) < 0 ||
		   read_array(&in, doc, "routes", read_route, e) < 0) {
		return -1;
	}
	if (read_dns(&r->dns, dns, e) < 0)
		return err_detail(e, "in dns");
	return read_extra(doc, top_keys, &r->extra, e);
}

/* The readers above report a malformed document with codes of their own; the caller knows what it
 * means. */
static int with_code(int ret, int code, struct err *e)
{
	if (ret < 0 && e->code != ERR_SYSTEM)
		e->code = code;
	return ret;
}

static int check_object(const json *doc, struct err *e)
{
	if (json_is_object(doc))
		return 0;
	return err_set(e, ERR_DECODE, "expected object, found %s", json_type_name(doc));
}

static int read_labelled(struct result *r, const json *doc, const char *assume, struct err *e)
{
	const char *label = assume;

	if (check_object(doc, e) < 0 || json_get_str(doc, "cniVersion", &label, e) < 0)
		return -1;
	if (cni_shape(label) == SHAPE_NONE)
		return err_set(e, ERR_DECODE, "unsupported CNI result version \"%s\"", label);
	return read_document(r, doc, label, e);
}

int result_read(struct result *r, const json *doc, const char *assume, int code, struct err *e)
{
	*r = (struct result){0};
	if (!read_labelled(r, doc, assume, e))
		return 0;
	result_free(r);
	return with_code(-1, code, e);
}

static int read_prev(struct result *r, const json *doc, const char *config_version, struct err *e)
{
	enum cni_shape shape = cni_shape(config_version);
	const char *label = config_version;

	if (shape == SHAPE_NONE)
		return err_set(
			e, ERR_DECODE, "unsupported CNI result version \"%s\"", config_version);
	if (check_object(doc, e) < 0 || json_get_str(doc, "cniVersion", &label, e) < 0)
		return -1;
	/* An empty label is 0.1.0 and nothing else. */
	if (cni_shape(label) != shape)
		return err_set(e, ERR_DECODE,
			"result type supports %s but unmarshalled CNIVersion is \"%s\"",
			cni_shape_versions(shape), label);
	return read_document(r, doc, label, e);
}

int result_read_prev(struct result *r, const json *doc, const char *config_version, struct err *e)
{
	*r = (struct result){0};
	if (!read_prev(r, doc, config_version, e))
		return 0;
	result_free(r);
	err_wrap(e, "could not parse prevResult");
	return with_code(-1, ERR_DECODE, e);
}

int result_read_routes(
	struct result *r, const json *array, const char *key, int code, struct err *e)
{
	const struct reader in = {.r = r};

	return with_code(read_entries(&in, array, key, read_route, e), code, e);
}

int result_read_dns(struct dns *dns, const json *object, int code, struct err *e)
{
	struct dns read = {0};

	if (read_dns(&read, object, e) < 0) {
		dns_free(&read);
		return with_code(err_detail(e, "in dns"), code, e);
	}
	dns_free(dns);
	*dns = read;
	return 0;
}
