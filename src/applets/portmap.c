/* portmap: makes ports of the host lead to a container (capability "portMappings"). Chained behind
 * the plugin that makes the interface; hands its result on. docs/portmap.md. */

#include "base/cleanup.h"
#include "base/vec.h"
#include "cni/applet.h"
#include "filter/change.h"
#include "netlink/addr.h"
#include "netlink/ct.h"
#include "netlink/link.h"
#include "netlink/netns.h"
#include "netlink/nft.h"
#include "netlink/nftmap.h"
#include "netlink/route.h"
#include "netlink/sysctl.h"
#include "portmap/conditions.h"
#include "portmap/rules.h"
#include "portmap/upstream.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOOPBACK_INDEX 1 /* of lo, in every network namespace */

/* ---- the config ---- */

struct config {
	bool snat;
	bool masq_all;
	struct port_conds conds[2];
	const json *mappings; /* NULL: none */
};

static void config_free(struct config *c)
{
	portconds_free(&c->conds[0]);
	portconds_free(&c->conds[1]);
}
#define autoconfig __attribute__((cleanup(config_free))) struct config

/* Who masquerades is no question of marks here: the mark options are checked and otherwise without
 * effect, as upstream's nftables backend does it. */
static int check_mark(const json *conf, const char *external, struct err *e)
{
	int64_t bit = 13;

	if (json_get_int(conf, "markMasqBit", INT64_MIN, INT64_MAX, &bit, e))
		return -1;
	if (external && json_get(conf, "markMasqBit"))
		return err_set(e, ERR_INVALID_CONFIG,
			"Cannot specify externalSetMarkChain and markMasqBit");
	if (bit < 0 || bit > 31)
		return err_set(e, ERR_INVALID_CONFIG, "MasqMarkBit must be between 0 and 31");
	return 0;
}

/* Either backend is nf_tables here; what does not belong together is refused all the same. */
static int check_backend(const char *backend, const char *external, enum cond_syntax v4,
	enum cond_syntax v6, struct err *e)
{
	enum cond_syntax foreign;
	char list[64] = "";

	if (!backend)
		return 0;
	foreign = !strcmp(backend, "iptables") ? COND_NFT : COND_IPTABLES;
	if (foreign == COND_IPTABLES && external)
		strcat(list, " externalSetMarkChain");
	if (v4 == foreign)
		strcat(list, " conditionsV4");
	if (v6 == foreign)
		strcat(list, " conditionsV6");
	if (list[0])
		return err_set(e, ERR_INVALID_CONFIG,
			"%s backend was requested but configuration contains %s-specific options [%s]",
			backend, foreign == COND_NFT ? "nftables" : "iptables", list + 1);
	if (strcmp(backend, "iptables") != 0 && strcmp(backend, "nftables") != 0)
		return err_set(e, ERR_INVALID_CONFIG, "unrecognized backend \"%s\"", backend);
	return 0;
}

static int parse_options(const struct request *req, struct config *c, struct err *e)
{
	const char *backend = NULL, *external = NULL;
	const json *v4 = NULL, *v6 = NULL;

	if (json_get_bool(req->conf, "snat", &c->snat, e) ||
		json_get_bool(req->conf, "masqAll", &c->masq_all, e) ||
		json_get_str(req->conf, "backend", &backend, e) ||
		json_get_str(req->conf, "externalSetMarkChain", &external, e) ||
		json_get_array(req->conf, "conditionsV4", &v4, e) ||
		json_get_array(req->conf, "conditionsV6", &v6, e) ||
		check_mark(req->conf, external, e) ||
		check_backend(backend, external, portconds_syntax(v4), portconds_syntax(v6), e))
		return -1;
	if (portconds_parse(&c->conds[0], AF_INET, v4, "conditionsV4", e))
		return -1;
	return portconds_parse(&c->conds[1], AF_INET6, v6, "conditionsV6", e);
}

static int parse_config(const struct request *req, struct config *c, struct err *e)
{
	const json *runtime;

	*c = (struct config){.snat = true};
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

static int add_mapping(struct portmaps *m, const struct entry *entry, const struct target *t)
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
		if (portmaps_add(m, &p))
			return -1;
	}
	return 0;
}

/* Where connections come from that must be masqueraded so that their answers pass the host again:
 * from the host's loopback addresses, and from the container's own network, itself included. */
static void put_sources(const struct config *c, const struct target *t, struct portmaps *m)
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
	struct portmaps *m, struct err *e)
{
	struct entry entry;

	portmaps_init(m, &req->owner);
	for (size_t i = 0; i < json_len(c->mappings); i++) {
		if (parse_entry(json_at(c->mappings, i), &entry, e))
			return err_wrap(e, "failed to parse config: portMappings[%zu]", i);
		if (add_mapping(m, &entry, t))
			return err_memory(e);
	}
	if (portmaps_sort(m, e))
		return err_wrap(e, "failed to parse config: portMappings");
	put_sources(c, t, m);
	for (size_t i = 0; i < m->len; i++)
		m->gates[m->list[i].addr.family == AF_INET6] |=
			portconds_any(&c->conds[m->list[i].addr.family == AF_INET6]);
	return 0;
}

/* ---- the way to the container ---- */

static bool maps_family(const struct portmaps *m, uint8_t family)
{
	for (size_t i = 0; i < m->len; i++)
		if (m->list[i].addr.family == family)
			return true;
	return false;
}

/* Connections to 127.0.0.0/8 leave through another link than lo, which IPv4 allows only where
 * route_localnet is set: on the bridge, or the host's end of a point-to-point link. */
static int find_localnet(struct nl *rt, const struct config *c, const struct target *t,
	struct portmaps *m, struct port_extras *x, struct err *e)
{
	char path[PORTRULES_SYSCTL], value[16] = "";
	struct link link;
	uint32_t index;
	int ret;

	if (!c->snat || !maps_family(m, AF_INET))
		return 0;
	ret = route_lookup(rt, &t->addr[0].ip, &index);
	/* No way there: nothing to set, as upstream. */
	if (ret == -ENETUNREACH || ret == -EHOSTUNREACH || ret == -ESRCH || ret == -EACCES ||
		ret == -EINVAL || (!ret && index == LOOPBACK_INDEX))
		return 0;
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "cannot look up the way to the container");
	ret = link_get_index(rt, index, &link);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "cannot read the link to the container");
	memcpy(x->localnet, link.name, sizeof(x->localnet));
	ret = sysctl_get(portrules_sysctl(link.name, path), value, sizeof(value));
	if (ret)
		return err_sys(
			e, -ret, ERR_SYSTEM, "unable to enable route_localnet: %s", link.name);
	x->localnet_was_set = !strcmp(value, "1");
	/* A veth leads to one container and goes with it; a bridge stays. */
	if (!strcmp(link.kind, "veth"))
		memcpy(m->dev, link.name, sizeof(m->dev));
	return 0;
}

/* After the guard is in place. Also where it was set: the last DEL of others may have reset it just
 * before we came. */
static int set_localnet(const struct port_extras *x, struct err *e)
{
	char path[PORTRULES_SYSCTL];
	int ret;

	if (!x->localnet[0])
		return 0;
	ret = sysctl_ensure(portrules_sysctl(x->localnet, path), "1");
	if (ret)
		return err_sys(
			e, -ret, ERR_SYSTEM, "unable to enable route_localnet: %s", x->localnet);
	return 0;
}

static void note_netns(const struct request *req, struct portmaps *m)
{
	struct stat st;

	if (!*req->netns || strlen(req->netns) >= sizeof(m->netns) || stat(req->netns, &st) < 0)
		return;
	strcpy(m->netns, req->netns);
	m->netns_inode = st.st_ino;
}

/* ---- UDP flows ---- */

/* UDP clients that keep talking keep their conntrack entry, and with it the translation (or none)
 * that was valid when it was made. Those entries, and only those, are deleted. */
struct flush {
	struct nl *rt;
	const struct portmaps *m;
	bool stale; /* those that do not lead to the container; else those that do */
	struct ip last;
	bool last_local;
};

static bool is_local(struct flush *f, const struct ip *ip)
{
	uint32_t index;

	if (f->last.family && !ip_cmp(ip, &f->last))
		return f->last_local;
	f->last = *ip;
	f->last_local = !route_lookup(f->rt, ip, &index) && index == LOOPBACK_INDEX;
	return f->last_local;
}

static bool doomed(const struct ct_flow *flow, void *arg)
{
	struct flush *f = arg;

	for (size_t i = 0; i < f->m->len; i++) {
		const struct port_mapping *p = &f->m->list[i];
		bool here;

		if (p->proto != IPPROTO_UDP || p->host_port != flow->orig.dport ||
			p->addr.family != flow->orig.dst.family)
			continue;
		here = !ip_cmp(&flow->reply.src, &p->addr) && flow->reply.sport == p->port;
		if (!ip_is_any(&p->host) && ip_cmp(&p->host, &flow->orig.dst))
			continue;
		/* The container's own address and port are no mapping. */
		if (!f->stale && here && ip_cmp(&flow->orig.dst, &p->addr))
			return true;
		if (f->stale && !here && (!ip_is_any(&p->host) || is_local(f, &flow->orig.dst)))
			return true;
	}
	return false;
}

/* The kernel looks through its whole hash table for each question, which takes milliseconds: one
 * question for everything, as narrow as one can be. */
static void flush_udp(struct nft *n, struct nl *rt, const struct portmaps *m, bool stale)
{
	struct ct_filter want = {.proto = IPPROTO_UDP};
	struct flush f = {.rt = rt, .m = m, .stale = stale};
	const struct port_mapping *first = NULL;
	int ret;

	for (size_t i = 0; i < m->len; i++) {
		const struct port_mapping *p = &m->list[i];

		if (p->proto != IPPROTO_UDP)
			continue;
		if (!first) {
			first = p;
			want.family = p->addr.family;
			want.orig_dport = p->host_port;
			continue;
		}
		want.family = want.family == p->addr.family ? want.family : AF_UNSPEC;
		want.orig_dport = want.orig_dport == p->host_port ? want.orig_dport : 0;
	}
	if (!first)
		return;
	if (!stale && want.family)
		want.reply_src = first->addr;
	ret = ct_flush(nft_socket(n), &want, doomed, &f, NULL);
	if (ret)
		fprintf(stderr, "portmap: old UDP flows were not flushed: %s\n", strerror(-ret));
}

/* ---- verbs ---- */

static void undo_add(void *arg)
{
	const struct owner *o = arg;
	autoerr ignored = {0};
	autonft *n = NULL;

	if (!nft_open(&n, &ignored))
		portrules_del(n, o->hash, NULL, &ignored);
}

static int install(const struct request *req, const struct config *c, const struct target *t,
	struct portmaps *m, struct reply *reply, struct err *e)
{
	struct port_extras x = {.container = req->id, .conds = {&c->conds[0], &c->conds[1]}};
	autonft *n = NULL;
	autonl *rt = NULL;
	void *owner = (void *)(uintptr_t)&req->owner;

	if (nft_open(&n, e) || nl_open(&rt, NETLINK_ROUTE, e) || find_localnet(rt, c, t, m, &x, e))
		return -1;
	note_netns(req, m);
	if (portrules_add(n, m, &x, e) || undo_push(&reply->undo, undo_add, NULL, owner, e) ||
		set_localnet(&x, e))
		return -1;
	flush_udp(n, rt, m, true);
	return 0;
}

static int add(const struct request *req, struct reply *reply, struct err *e)
{
	autoconfig c = {0};
	autoportmaps m = {0};
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

static int del_one(struct nft *n, const char *hash, bool *had, struct err *e)
{
	autoportmaps was = {0};
	int ret = portrules_del(n, hash, &was, e);

	*had = was.len > 0;
	if (*had)
		flush_udp(n, NULL, &was, false);
	return ret;
}

static int del(const struct request *req, struct err *e)
{
	autoerr ignored = {0}, other = {0};
	autoresult prev = {0};
	autonft *n = NULL;
	bool had, present;
	int ret = change_open(&n, e);

	if (ret <= 0)
		return ret;
	del_one(n, req->owner.hash, &had, e);
	if (request_prev_result(req, &prev, &present, NULL, &ignored))
		result_free(&prev);
	/* What we made, upstream did not. */
	portlegacy_del(n, &req->owner, !had, &prev, &other);
	err_merge(e, &other);
	return e->set ? -1 : 0;
}

static int check(const struct request *req, struct err *e)
{
	autoconfig c = {0};
	autoportmaps m = {0};
	autoresult prev = {0};
	autonft *n = NULL;
	autonl *rt = NULL;
	struct port_extras x = {.container = req->id, .conds = {&c.conds[0], &c.conds[1]}};
	autoportmaps ours = {0};
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
	if (portrules_load(n, req->owner.hash, &ours) == -ENOENT && portlegacy_has(n, &req->owner))
		return 0;
	if (nl_open(&rt, NETLINK_ROUTE, e) || find_localnet(rt, &c, &t, &m, &x, e))
		return -1;
	return portrules_check(n, &m, &x, e);
}

struct gc {
	const struct request *req;
	const struct valid_set *valid;
	char (*dead)[OWNER_HASH + 1];
	size_t len;
};

static int take_dead(const struct owner_ref *ref, void *arg)
{
	struct gc *g = arg;
	char(*p)[OWNER_HASH + 1];

	if (!change_is_stale(g->req, g->valid, ref))
		return 0;
	p = vec_add(g->dead, g->len);
	if (!p)
		return -ENOMEM;
	memcpy(*p, ref->hash, sizeof(*p));
	return 0;
}

static void collect(struct nft *n, struct gc *g, struct err *e)
{
	int ret = portrules_owners(n, take_dead, g);
	bool had;

	if (ret)
		err_sys(e, -ret, ERR_SYSTEM, "cannot list the port mappings");
	for (size_t i = 0; i < g->len; i++) {
		autoerr one = {0};

		del_one(n, g->dead[i], &had, &one);
		err_merge(e, &one);
	}
	ret = g->len ? 0 : portrules_sweep(n);
	if (ret && !e->set)
		err_sys(e, -ret, ERR_SYSTEM, "cannot remove the table of the port mappings");
}

static int gc(const struct request *req, struct err *e)
{
	struct valid_set valid = {0};
	struct gc g = {.req = req, .valid = &valid};
	autonft *n = NULL;

	if (request_valid_set(req, &valid, e))
		return -1;
	if (change_open(&n, e) > 0)
		collect(n, &g, e);
	free(g.dead);
	valid_set_free(&valid);
	return e->set ? -1 : 0;
}

static int status(const struct request *req, struct err *e)
{
	(void)req;
	return portrules_status(e);
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
