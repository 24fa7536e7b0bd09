/* portmap: makes ports of the host lead to a container (capability "portMappings"). Chained behind
 * the plugin that makes the interface; hands its result on. docs/portmap.md. */

#include "base/cleanup.h"
#include "base/vec.h"
#include "cni/applet.h"
#include "filter/change.h"
#include "portmap/conditions.h"
#include "portmap/flows.h"
#include "portmap/holder.h"
#include "portmap/install.h"
#include "portmap/lookup.h"
#include "portmap/remove.h"
#include "portmap/upstream.h"
#include "portmap/verify.h"
#include "json/keys.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* ---- the config ---- */

struct config {
	bool snat;
	bool masq_all;
	int64_t mark_bit;
	const char *external, *backend;
	const json *conditions[2]; /* IPv4, IPv6 */
	struct port_conds conds[2];
	const json *mappings; /* NULL: none */
};

static const struct json_key keys[] = {
	JSON_KEY_BOOL(struct config, "snat", snat),
	JSON_KEY_BOOL(struct config, "masqAll", masq_all),
	JSON_KEY_STR(struct config, "backend", backend),
	JSON_KEY_STR(struct config, "externalSetMarkChain", external),
	JSON_KEY_INT(struct config, "markMasqBit", mark_bit, INT64_MIN, INT64_MAX),
	JSON_KEY_ARRAY(struct config, "conditionsV4", conditions[0]),
	JSON_KEY_ARRAY(struct config, "conditionsV6", conditions[1]),
	JSON_KEYS_END,
};

static void config_free(struct config *c)
{
	conditions_free(&c->conds[0]);
	conditions_free(&c->conds[1]);
}
#define autoconfig __attribute__((cleanup(config_free))) struct config

/* Who masquerades is no question of marks here: the mark options are checked and otherwise without
 * effect, as upstream's nftables backend does it. */
static int check_mark(const struct request *req, const struct config *c, struct err *e)
{
	if (c->external && json_get(req->conf, "markMasqBit"))
		return err_set(e, ERR_INVALID_CONFIG,
			"Cannot specify externalSetMarkChain and markMasqBit");
	if (c->mark_bit < 0 || c->mark_bit > 31)
		return err_set(e, ERR_INVALID_CONFIG, "MasqMarkBit must be between 0 and 31");
	return 0;
}

/* Either backend is nf_tables here; what does not belong together is refused all the same. */
static int check_backend(const struct config *c, struct err *e)
{
	enum cond_syntax foreign;
	char list[64] = "";

	if (!c->backend)
		return 0;
	foreign = !strcmp(c->backend, "iptables") ? COND_NFT : COND_IPTABLES;
	if (foreign == COND_IPTABLES && c->external)
		strcat(list, " externalSetMarkChain");
	if (conditions_syntax(c->conditions[0]) == foreign)
		strcat(list, " conditionsV4");
	if (conditions_syntax(c->conditions[1]) == foreign)
		strcat(list, " conditionsV6");
	if (list[0])
		return err_set(e, ERR_INVALID_CONFIG,
			"%s backend was requested but configuration contains %s-specific options [%s]",
			c->backend, foreign == COND_NFT ? "nftables" : "iptables", list + 1);
	if (strcmp(c->backend, "iptables") != 0 && strcmp(c->backend, "nftables") != 0)
		return err_set(e, ERR_INVALID_CONFIG, "unrecognized backend \"%s\"", c->backend);
	return 0;
}

static int parse_options(const struct request *req, struct config *c, struct err *e)
{
	if (json_read_keys(req->conf, keys, c, e) || check_mark(req, c, e) || check_backend(c, e) ||
		conditions_parse(&c->conds[0], AF_INET, c->conditions[0], "conditionsV4", e))
		return -1;
	return conditions_parse(&c->conds[1], AF_INET6, c->conditions[1], "conditionsV6", e);
}

static int parse_config(const struct request *req, struct config *c, struct err *e)
{
	const json *runtime;

	*c = (struct config){.snat = true, .mark_bit = 13};
	if (parse_options(req, c, e) || request_runtime_config(req, &runtime, e) ||
		(runtime && json_get_array(runtime, "portMappings", &c->mappings, e)))
		return err_wrap(e, "failed to parse config");
	return 0;
}

/* ---- one mapping ---- */

struct entry {
	uint8_t proto;
	uint16_t host_port, port;
	uint8_t family; /* 0: both */
	struct ip host; /* family 0: any address */
};

static int parse_port(
	const json *j, const char *key, const char *what, uint16_t *port, struct err *e)
{
	int64_t v = 0;

	if (json_get_int(j, key, INT64_MIN, INT64_MAX, &v, e))
		return -1;
	if (v < 1 || v > UINT16_MAX)
		return err_set(
			e, ERR_INVALID_CONFIG, "Invalid %s port number: %lld", what, (long long)v);
	*port = (uint16_t)v;
	return 0;
}

static int parse_entry(const json *j, struct entry *m, struct err *e)
{
	const char *proto = "tcp", *host = "";

	*m = (struct entry){0};
	if (!json_is_object(j))
		return err_set(e, ERR_INVALID_CONFIG, "not an object but %s", json_type_name(j));
	if (parse_port(j, "containerPort", "container", &m->port, e) ||
		parse_port(j, "hostPort", "host", &m->host_port, e) ||
		json_get_str(j, "protocol", &proto, e) || json_get_str(j, "hostIP", &host, e))
		return -1;
	m->proto = portproto_parse(*proto ? proto : "tcp");
	if (!m->proto)
		return err_set(
			e, ERR_INVALID_CONFIG, "protocol \"%s\" is not tcp, udp or sctp", proto);
	if (!*host)
		return 0;
	if (!ip_parse(host, &m->host))
		return err_set(e, ERR_INVALID_CONFIG, "hostIP \"%s\" is not an address", host);
	m->family = m->host.family;
	if (ip_is_any(&m->host))
		m->host.family = 0;
	return 0;
}

/* The container's address of each family, family 0 where there is none. */
struct target {
	struct prefix addr[2];
};

/* The first acceptable one: that of CNI_IFNAME, or one that belongs to no interface of the result
 * (as in results of 0.2.0). */
static bool acceptable(const struct request *req, const struct result *r, size_t i)
{
	const struct iface *iface = result_ip_iface(r, i);

	return !iface || (iface->sandbox && !strcmp(iface->name, req->ifname));
}

static struct target find_target(const struct request *req, const struct result *r)
{
	struct target t = {0};

	for (size_t i = 0; i < r->ips_len; i++) {
		struct prefix *slot = &t.addr[r->ips[i].address.ip.family == AF_INET6];

		if (!slot->ip.family && acceptable(req, r, i))
			*slot = r->ips[i].address;
	}
	return t;
}

static int add_mapping(struct port_record *m, const struct entry *entry, const struct target *t)
{
	for (size_t i = 0; i < 2; i++) {
		uint8_t family = i ? AF_INET6 : AF_INET;
		struct port_mapping p = {
			.proto = entry->proto,
			.host = entry->host.family ? entry->host : (struct ip){.family = family},
			.host_port = entry->host_port,
			.addr = t->addr[i].ip,
			.port = entry->port,
		};

		if (!t->addr[i].ip.family || (entry->family && entry->family != family))
			continue;
		if (record_add(m, &p))
			return -1;
	}
	return 0;
}

/* Where connections come from that must be masqueraded so that their answers pass the host again:
 * from the host's loopback addresses, and from the container's own network, itself included. */
static void put_sources(const struct config *c, const struct target *t, struct port_record *m)
{
	for (size_t i = 0; c->snat && i < 2; i++) {
		struct prefix p = t->addr[i];

		if (!p.ip.family)
			continue;
		if (c->masq_all)
			p = (struct prefix){.ip = {.family = p.ip.family}};
		p.ip = prefix_network(&p);
		m->from[m->from_len++] = p;
		if (p.ip.family == AF_INET && !c->masq_all)
			m->from[m->from_len++] = (struct prefix){{AF_INET, {127}}, 8};
	}
}

static int resolve(const struct request *req, const struct config *c, const struct target *t,
	struct port_record *m, struct err *e)
{
	struct entry entry;

	record_init(m, &req->owner);
	for (size_t i = 0; i < json_len(c->mappings); i++) {
		if (parse_entry(json_at(c->mappings, i), &entry, e))
			return err_wrap(e, "failed to parse config: portMappings[%zu]", i);
		if (add_mapping(m, &entry, t))
			return err_memory(e);
	}
	if (record_sort(m, e))
		return err_wrap(e, "failed to parse config: portMappings");
	put_sources(c, t, m);
	for (size_t i = 0; i < m->len; i++) {
		bool six = m->list[i].addr.family == AF_INET6;

		memcpy(m->when[six], c->conds[six].id, sizeof(m->when[six]));
	}
	return 0;
}

/* One value of CNI_ARGS, whatever else is in there: none of it is portmap's business otherwise.
 * Borrowed, not terminated; "" when absent. */
static const char *find_arg(const struct request *req, const char *key, size_t *len)
{
	size_t size = strlen(key);

	for (const char *at = req->args; *at; at += strcspn(at, ";"), at += *at == ';') {
		if (strncmp(at, key, size) != 0 || at[size] != '=')
			continue;
		*len = strcspn(at + size + 1, ";");
		return at + size + 1;
	}
	*len = 0;
	return "";
}

/* The pod that the sandbox is one of, as Kubernetes' runtimes say. Its UID plays no part: a pod
 * that is made again under its name wants the ports of the old one. */
static void note_pod(const struct request *req, struct port_record *m)
{
	char space[64], name[256]; /* a DNS label, a DNS name: RFC 1123 */
	size_t space_len, name_len;
	const char *s = find_arg(req, "K8S_POD_NAMESPACE", &space_len),
		   *n = find_arg(req, "K8S_POD_NAME", &name_len);

	if (!space_len || !name_len || space_len >= sizeof(space) || name_len >= sizeof(name))
		return;
	snprintf(space, sizeof(space), "%.*s", (int)space_len, s);
	snprintf(name, sizeof(name), "%.*s", (int)name_len, n);
	record_set_pod(m, space, name);
}

/* Connections to the host's loopback addresses are let through to the container. */
static int find_localnet(struct nft *n, struct nl *rt, const struct config *c,
	const struct target *t, const struct port_record *m, struct port_extras *x, struct err *e)
{
	return c->snat && record_maps(m, AF_INET)
		       ? localnet_find(n, rt, &t->addr[0].ip, m, &x->localnet, e)
		       : 0;
}

static void flush(struct nft *n, struct nl *rt, const struct port_record *m, bool stale)
{
	int ret = flows_flush(n, rt, m, stale);

	if (ret)
		fprintf(stderr, "portmap: old UDP flows were not flushed: %s\n", strerror(-ret));
}

/* ---- verbs ---- */

static void undo_add(void *arg)
{
	const struct owner *o = arg;
	autoerr ignored = {0};
	autonft *n = NULL;
	autonl *rt = NULL;

	if (!nft_open(&n, &ignored) && !nl_open(&rt, NETLINK_ROUTE, &ignored))
		ports_remove(n, rt, o->hash, o->net, NULL, &ignored);
}

static int install(const struct request *req, const struct config *c, const struct target *t,
	struct port_record *m, struct reply *reply, struct err *e)
{
	struct port_extras x = {.container = req->id, .conds = {&c->conds[0], &c->conds[1]}};
	autonft *n = NULL;
	autonl *rt = NULL;
	void *owner = (void *)(uintptr_t)&req->owner;

	if (nft_open(&n, e) || nl_open(&rt, NETLINK_ROUTE, e))
		return -1;
	holder_note(rt, m, req->netns, req->ifname);
	note_pod(req, m);
	if (find_localnet(n, rt, c, t, m, &x, e) || ports_install(n, rt, m, &x, e) ||
		undo_push(&reply->undo, undo_add, NULL, owner, e))
		return -1;
	flush(n, rt, m, true);
	return 0;
}

static int add(const struct request *req, struct reply *reply, struct err *e)
{
	autoconfig c = {0};
	autorecord m = {0};
	struct target t;
	bool present;

	if (request_prev_result(
		    req, &reply->result, &present, "must be called as chained plugin", e) ||
		parse_config(req, &c, e))
		return -1;
	t = find_target(req, &reply->result);
	if (resolve(req, &c, &t, &m, e))
		return -1;
	return m.len ? install(req, &c, &t, &m, reply, e) : 0;
}

/* *had: whether there was anything of ours. */
static int del_one(const struct request *req, struct nft *n, struct nl *rt, const char *hash,
	bool *had, struct err *e)
{
	autorecord was = {0};
	int ret = ports_remove(n, rt, hash, req->owner.net, &was, e);

	*had = was.len > 0;
	if (*had)
		flush(n, NULL, &was, false);
	return ret;
}

static int del(const struct request *req, struct err *e)
{
	autoerr ignored = {0}, other = {0};
	autoresult prev = {0};
	autonft *n = NULL;
	autonl *rt = NULL;
	bool had = false, present;
	int ret = change_open(&n, e);

	if (ret <= 0)
		return ret;
	if (!nl_open(&rt, NETLINK_ROUTE, e))
		del_one(req, n, rt, req->owner.hash, &had, e);
	if (request_prev_result(req, &prev, &present, NULL, &ignored))
		result_free(&prev);
	/* What is recorded was made by us, and upstream's plugin was not called for it; only
	 * without a record are its rules looked for. */
	upstream_del(n, &req->owner, !had, &prev, &other);
	err_merge(e, &other);
	return e->set ? -1 : 0;
}

static int check(const struct request *req, struct err *e)
{
	autoconfig c = {0};
	autorecord m = {0}, ours = {0};
	autoresult prev = {0};
	autonft *n = NULL;
	autonl *rt = NULL;
	struct port_extras x = {.container = req->id, .conds = {&c.conds[0], &c.conds[1]}};
	struct target t;
	bool present;

	if (request_prev_result(req, &prev, &present, "Required prevResult missing", e) ||
		parse_config(req, &c, e))
		return -1;
	t = find_target(req, &prev);
	if (resolve(req, &c, &t, &m, e))
		return -1;
	if (!m.len)
		return 0;
	if (nft_open(&n, e))
		return -1;
	/* A container that upstream made with iptables, before the plugin was replaced. */
	if (lookup_record(n, req->owner.hash, &ours) == -ENOENT && upstream_has(n, &req->owner))
		return 0;
	if (nl_open(&rt, NETLINK_ROUTE, e) || find_localnet(n, rt, &c, &t, &m, &x, e))
		return -1;
	return ports_verify(n, &m, &x, e);
}

struct gc {
	const struct request *req;
	const struct valid_set *valid;
	char (*stale)[OWNER_HASH + 1];
	size_t len;
};

static int take_stale(const struct owner_ref *ref, void *arg)
{
	struct gc *g = arg;
	char(*p)[OWNER_HASH + 1];

	if (!change_is_stale(g->req, g->valid, ref))
		return 0;
	p = vec_add(g->stale, g->len);
	if (!p)
		return -ENOMEM;
	memcpy(*p, ref->hash, sizeof(*p));
	return 0;
}

static void collect(struct nft *n, struct nl *rt, struct gc *g, struct err *e)
{
	int ret = lookup_owners(n, take_stale, g);
	bool had;

	if (ret)
		err_sys(e, -ret, ERR_SYSTEM, "cannot list the port mappings");
	for (size_t i = 0; i < g->len; i++) {
		autoerr one = {0};

		del_one(g->req, n, rt, g->stale[i], &had, &one);
		err_merge(e, &one);
	}
	ret = ports_sweep(n, rt, g->req->owner.net);
	if (ret && !e->set)
		err_sys(e, -ret, ERR_SYSTEM, "cannot clean up after the port mappings");
}

static int gc(const struct request *req, struct err *e)
{
	struct valid_set valid = {0};
	struct gc g = {.req = req, .valid = &valid};
	autonft *n = NULL;
	autonl *rt = NULL;

	if (request_valid_set(req, &valid, e))
		return -1;
	if (change_open(&n, e) > 0 && !nl_open(&rt, NETLINK_ROUTE, e))
		collect(n, rt, &g, e);
	free(g.stale);
	valid_set_free(&valid);
	return e->set ? -1 : 0;
}

static int status(const struct request *req, struct err *e)
{
	(void)req;
	return ports_status(e);
}

const struct applet applet_portmap = {
	.name = "portmap",
	.help = "maps ports of the host to the container",
	.kind = APPLET_META,
	.add = add,
	.del = del,
	.check = check,
	.gc = gc,
	.status = status,
};
