#include "runtime/inventory.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"
#include "cni/owner.h"
#include "ipam/rangeconf.h"
#include "netlink/link.h"
#include "netlink/netns.h"
#include "portmap/lookup.h"
#include "runtime/cache.h"
#include "runtime/conflist.h"
#include "store/lease.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define DATA_DIR "/var/lib/cni/networks"

/* An attachment of the document, found by its owner's hash. */
struct known {
	char hash[OWNER_HASH + 1];
	char *network, *id, *ifname;
	json *node;
};

struct survey {
	json *networks, *unowned, *broken;
	struct known *known;
	size_t len;
	const struct report *remarks;
	bool failed; /* out of memory */
};

static void keep(struct survey *s, int ret)
{
	s->failed = s->failed || ret;
}

static json *set_new_array(struct survey *s, json *parent, const char *key)
{
	json *array = json_new_array();

	keep(s, json_set(parent, key, array));
	return s->failed ? NULL : array;
}

static void set_text(struct survey *s, json *parent, const char *key, const char *text)
{
	if (text && *text)
		keep(s, json_set(parent, key, json_new_string(text)));
}

static void add_text(struct survey *s, json *array, const char *text)
{
	keep(s, json_append(array, json_new_string(text)));
}

static void warn(const struct survey *s, const char *what, const struct err *e)
{
	report(s->remarks, "%s: %s%s%s", what, e->msg, e->details ? ": " : "",
		e->details ? e->details : "");
}

static void add_unowned(struct survey *s, const char *kind, const char *name, const char *owner)
{
	json *item = json_new_object();

	set_text(s, item, "kind", kind);
	set_text(s, item, "name", name);
	set_text(s, item, "owner", owner);
	keep(s, json_append(s->unowned, item));
}

/* ---- networks ---- */

static json *find_network(const struct survey *s, const char *name)
{
	for (size_t i = 0; i < json_len(s->networks); i++) {
		const json *n = json_at(s->networks, i);

		if (!strcmp(json_str(json_get(n, "name")), name))
			return (json *)n;
	}
	return NULL;
}

static json *add_network(struct survey *s, const char *name)
{
	json *n = json_new_object();

	set_text(s, n, "name", name);
	keep(s, json_append(s->networks, n));
	return s->failed ? NULL : n;
}

/* How many addresses the ranges of a plugin's IPAM hold, INT64_MAX when there are more; 0 when
 * there are none to count. */
static int64_t capacity(const json *ipam)
{
	struct range_sets sets = {0};
	autoerr ignored = {0};
	uint64_t n = 0;

	if (!rangeconf_read(ipam, NULL, &sets, &ignored))
		n = range_sets_capacity(&sets);
	range_sets_free(&sets);
	return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

static void add_store(struct survey *s, json *network, const struct conflist *l)
{
	for (size_t i = 0; i < l->len; i++) {
		const json *ipam = json_get(l->plugins[i].conf, "ipam");
		const char *type = json_str(json_get(ipam, "type"));
		const char *dir = json_str(json_get(ipam, "dataDir"));
		autofree char *path = NULL;
		json *leases;

		if (!type || strcmp(type, "host-local") != 0)
			continue;
		if (asprintf(&path, "%s/%s", dir && *dir ? dir : DATA_DIR, l->name) < 0) {
			path = NULL;
			s->failed = true;
			return;
		}
		leases = json_new_object();
		set_text(s, leases, "dir", path);
		keep(s, json_set(leases, "free", json_new_int(capacity(ipam))));
		keep(s, json_set(network, "leases", leases));
		return;
	}
}

static int survey_network(const struct conflist *l, void *arg)
{
	struct survey *s = arg;
	json *n = add_network(s, l->name), *plugins;

	if (!n)
		return -1;
	set_text(s, n, "file", l->file);
	set_text(s, n, "cniVersion", l->version);
	plugins = set_new_array(s, n, "plugins");
	for (size_t i = 0; i < l->len; i++)
		add_text(s, plugins, l->plugins[i].type);
	add_store(s, n, l);
	return s->failed ? -1 : 0;
}

static void survey_broken(const char *file, const struct err *why, void *arg)
{
	struct survey *s = arg;

	warn(s, "skipped", why);
	add_text(s, s->broken, file);
}

/* ---- attachments ---- */

static const char *state_of(const struct cache_entry *c)
{
	autoclose int fd = -1;

	if (netns_open(c->netns, &fd, NULL) != NETNS_OK)
		return "gone";
	return c->result ? "attached" : "incomplete";
}

static void add_addresses(struct survey *s, json *node, const json *result)
{
	const json *ips = json_get(result, "ips");
	json *list = set_new_array(s, node, "addresses");

	for (size_t i = 0; list && i < json_len(ips); i++) {
		const char *address = json_str(json_get(json_at(ips, i), "address"));

		if (address)
			add_text(s, list, address);
	}
	for (int v = 4; list && v <= 6; v += 2) {
		const json *old = json_get(result, v == 4 ? "ip4" : "ip6");
		const char *address = json_str(json_get(old, "ip"));

		if (address)
			add_text(s, list, address);
	}
}

/* The links on the host as the result names them; what the kernel says replaces it later. */
static void add_link_of_result(struct survey *s, json *node, const json *result)
{
	const json *ifaces = json_get(result, "interfaces");

	for (size_t i = 0; i < json_len(ifaces); i++) {
		const char *name = json_str(json_get(json_at(ifaces, i), "name"));
		const char *sandbox = json_str(json_get(json_at(ifaces, i), "sandbox"));

		if (name && (!sandbox || !*sandbox) && !strncmp(name, "veth", 4))
			set_text(s, node, "link", name);
	}
}

static int remember(struct survey *s, const struct cache_entry *c, json *node)
{
	struct known *k = vec_add(s->known, s->len);
	struct owner o;

	if (!k)
		return -1;
	owner_init(&o, c->network, c->id, c->ifname);
	*k = (struct known){
		.network = strdup(c->network),
		.id = strdup(c->id),
		.ifname = strdup(c->ifname),
		.node = node,
	};
	memcpy(k->hash, o.hash, sizeof(o.hash));
	return k->network && k->id && k->ifname ? 0 : -1;
}

static int survey_attachment(const struct cache_entry *c, void *arg)
{
	struct survey *s = arg;
	json *network = find_network(s, c->network), *list, *node;

	if (!network)
		network = add_network(s, c->network);
	list = network ? (json *)json_get(network, "attachments") : NULL;
	if (network && !list)
		list = set_new_array(s, network, "attachments");
	if (!list)
		return -1;
	node = json_new_object();
	set_text(s, node, "containerID", c->id);
	set_text(s, node, "ifname", c->ifname);
	set_text(s, node, "netns", c->netns);
	set_text(s, node, "state", state_of(c));
	add_addresses(s, node, c->result);
	add_link_of_result(s, node, c->result);
	keep(s, json_append(list, node));
	if (!s->failed)
		keep(s, remember(s, c, node));
	return s->failed ? -1 : 0;
}

static struct known *by_hash(const struct survey *s, const char *hash)
{
	for (size_t i = 0; i < s->len; i++)
		if (!strcmp(s->known[i].hash, hash))
			return &s->known[i];
	return NULL;
}

/* ---- links ---- */

static int survey_link(const struct link *l, void *arg)
{
	struct survey *s = arg;
	struct owner_ref ref;
	struct known *k;

	if (!owner_parse(l->alias, &ref))
		return 0;
	k = by_hash(s, ref.hash);
	if (!k) {
		add_unowned(s, *l->kind ? l->kind : "link", l->name, ref.text);
		return 0;
	}
	if (strcmp(l->kind, "ifb") != 0) {
		json_del(k->node, "link");
		set_text(s, k->node, "link", l->name);
		if (l->master)
			keep(s, json_set(k->node, "masterIndex", json_new_int(l->master)));
	} else {
		set_text(s, k->node, "ifb", l->name);
	}
	return 0;
}

/* Names come after the dump: one socket answers one question at a time. */
static void name_masters(struct survey *s, struct nl *nl)
{
	for (size_t i = 0; i < s->len; i++) {
		json *node = s->known[i].node;
		int64_t index = json_int(json_get(node, "masterIndex"));
		struct link l;

		json_del(node, "masterIndex");
		if (index && !link_get_index(nl, (uint32_t)index, &l))
			set_text(s, node, "master", l.name);
	}
}

static void survey_links(struct survey *s)
{
	autonl *nl = NULL;
	autoerr e = {0};
	int ret = nl_open(&nl, NETLINK_ROUTE, &e);

	if (!ret) {
		ret = link_each(nl, NULL, survey_link, s);
		if (ret)
			err_sys(&e, -ret, ERR_SYSTEM, "failed to list links");
	}
	if (ret) {
		warn(s, "links", &e);
		return;
	}
	name_masters(s, nl);
}

/* ---- host ports ---- */

static int survey_ports_of(const struct owner_ref *ref, void *arg)
{
	struct survey *s = arg;

	if (!by_hash(s, ref->hash))
		add_unowned(s, "host ports", ref->hash, ref->text);
	return 0;
}

static void add_port(struct survey *s, json *list, const struct port_mapping *p)
{
	char host[IP_STRLEN], addr[IP_STRLEN];
	json *port = json_new_object();

	set_text(s, port, "protocol", portproto_name(p->proto));
	if (!ip_is_any(&p->host))
		set_text(s, port, "hostIP", ip_format(&p->host, host));
	keep(s, json_set(port, "hostPort", json_new_int(p->host_port)));
	set_text(s, port, "containerIP", ip_format(&p->addr, addr));
	keep(s, json_set(port, "containerPort", json_new_int(p->port)));
	keep(s, json_append(list, port));
}

static void add_ports(struct survey *s, struct nft *n, struct known *k)
{
	autorecord m = {0};
	json *list;

	if (lookup_record(n, k->hash, &m) || !record_maps(&m, AF_UNSPEC))
		return;
	list = set_new_array(s, k->node, "ports");
	for (size_t i = 0; list && i < m.len; i++)
		if (!m.list[i].yielded)
			add_port(s, list, &m.list[i]);
}

static void survey_ports(struct survey *s)
{
	struct nft *n = NULL;
	autoerr e = {0};

	if (nft_open(&n, &e)) {
		warn(s, "host ports", &e);
		return;
	}
	lookup_owners(n, survey_ports_of, s);
	for (size_t i = 0; i < s->len; i++)
		add_ports(s, n, &s->known[i]);
	nft_close(&n);
}

/* ---- leases ---- */

static bool holds(const struct survey *s, const char *network, const struct holder *h)
{
	for (size_t i = 0; i < s->len; i++) {
		const struct known *k = &s->known[i];

		if (!strcmp(k->network, network) && !strcmp(k->id, h->id) &&
			(!h->ifname || !strcmp(k->ifname, h->ifname)))
			return true;
	}
	return false;
}

/* 1 when the file is a lease. */
static int survey_lease(struct survey *s, const char *network, int dir, const char *name)
{
	autofree char *text = NULL, *owner = NULL;
	struct holder h;
	struct ip ip;
	size_t len;

	if (!ip_parse(name, &ip) || file_read(dir, name, LEASE_MAX, &text, &len) ||
		lease_parse(text, len, &h) != LEASE_HELD)
		return 0;
	if (holds(s, network, &h))
		return 1;
	if (asprintf(&owner, "%s %s %s", network, h.id, h.ifname ? h.ifname : "") < 0)
		owner = NULL;
	add_unowned(s, "lease", name, owner);
	return 1;
}

static void survey_store(struct survey *s, const char *network, json *leases)
{
	const char *path = json_str(json_get(leases, "dir"));
	int64_t total = json_int(json_get(leases, "free")), used = 0;
	DIR *d = opendir(path);

	for (struct dirent *f = d ? readdir(d) : NULL; f; f = readdir(d))
		used += survey_lease(s, network, dirfd(d), f->d_name);
	if (d)
		closedir(d);
	keep(s, json_set(leases, "used", json_new_int(used)));
	if (total < INT64_MAX)
		total = total > used ? total - used : 0;
	keep(s, json_set(leases, "free", json_new_int(total)));
}

static void survey_stores(struct survey *s)
{
	for (size_t i = 0; i < json_len(s->networks); i++) {
		const json *n = json_at(s->networks, i);
		const json *leases = json_get(n, "leases");

		if (leases)
			survey_store(s, json_str(json_get(n, "name")), (json *)leases);
	}
}

/* ---- all of it ---- */

static void survey_free(struct survey *s)
{
	for (size_t i = 0; i < s->len; i++) {
		free(s->known[i].network);
		free(s->known[i].id);
		free(s->known[i].ifname);
	}
	free(s->known);
}

json *inventory(
	const char *conf_dir, const char *cache_dir, const struct report *remarks, struct err *e)
{
	json *doc = json_new_object();
	struct survey s = {.remarks = remarks};
	autoerr why = {0};

	s.networks = set_new_array(&s, doc, "networks");
	s.unowned = set_new_array(&s, doc, "unowned");
	s.broken = set_new_array(&s, doc, "broken");
	if (!s.failed && conflist_each(conf_dir, survey_network, &s, survey_broken, &why)) {
		warn(&s, conf_dir, &why);
		err_clear(&why);
	}
	if (!s.failed && cache_each(cache_dir, survey_attachment, &s, &why))
		warn(&s, cache_dir, &why);
	if (!s.failed) {
		survey_links(&s);
		survey_ports(&s);
		survey_stores(&s);
	}
	survey_free(&s);
	if (!s.failed)
		return doc;
	json_free(doc);
	err_memory(e);
	return NULL;
}
