/* host-local: addresses from configured ranges, one from each range set, recorded in a directory on
 * this host. docs/host-local.md; reference/ipam.md, section 1.
 *
 * This file is the policy: what the config says and what each verb does. Ranges, leases and their
 * index are in src/store/. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "cni/applet.h"
#include "cni/args.h"
#include "ipam/rangeconf.h"
#include "store/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#define DEFAULT_DATA_DIR "/var/lib/cni/networks"
#define RESOLV_CONF_MAX  (1u << 20)
#define RESOLV_LINE_MAX  65536

struct config {
	char store[PATH_MAX];
	struct range_sets sets;
	struct ip_list wanted; /* requested addresses, in order, each once */
	const char *resolv_conf;
	const json *routes;
	bool reclaim;
};

static void config_free(struct config *c)
{
	range_sets_free(&c->sets);
	free(c->wanted.list);
	*c = (struct config){0};
}

#define autoconfig __attribute__((cleanup(config_free))) struct config

/* --- config: where the store is; all that DEL and GC need --- */

static int read_store_path(
	const struct request *req, const json *ipam, struct config *c, struct err *e)
{
	const char *dir = "";
	size_t len;

	if (json_get_str(ipam, "dataDir", &dir, e))
		return -1;
	if (!*dir)
		dir = DEFAULT_DATA_DIR;
	len = strlen(dir);
	if (len + 1 + strlen(req->network) >= sizeof(c->store))
		return err_set(e, ERR_INVALID_CONFIG, "dataDir is too long: %.64s...", dir);
	memcpy(c->store, dir, len + 1);
	path_clean(c->store);
	len = strlen(c->store);
	c->store[len] = '/';
	strcpy(c->store + len + 1, req->network);
	return 0;
}

static int load_store_path(const struct request *req, struct config *c, struct err *e)
{
	const json *ipam = NULL;

	if (json_get_object(req->conf, "ipam", &ipam, e))
		return -1;
	return read_store_path(req, ipam, c, e);
}

/* --- config: ranges --- */

/* Old results have room for one address of each family. */
static int check_version(const struct config *c, const char *version, struct err *e)
{
	size_t v4 = 0, v6 = 0;
	int cmp;

	for (size_t i = 0; i < c->sets.len; i++) {
		if (c->sets.list[i].list[0].start.family == AF_INET)
			v4++;
		else
			v6++;
	}
	if (cni_version_cmp(version, "0.3.0", &cmp, e))
		return -1;
	if (cmp < 0 && (v4 > 1 || v6 > 1))
		return err_set(e, ERR_INVALID_CONFIG,
			"CNI version %s does not support more than 1 address per family", version);
	return 0;
}

/* --- config: requested addresses --- */

static bool parse_wanted(const char *text, struct ip *out)
{
	struct prefix p;

	/* The prefix is allowed and means nothing: that of the range counts. */
	if (!strchr(text, '/'))
		return ip_parse(text, out);
	if (!prefix_parse(text, &p))
		return false;
	*out = p.ip;
	return true;
}

/* Every range set gives one. */
#define WANTED_MAX 1024

static int want(struct config *c, const struct ip *ip, struct err *e)
{
	struct ip *list;

	for (size_t i = 0; i < c->wanted.len; i++)
		if (!ip_cmp(&c->wanted.list[i], ip))
			return 0;
	if (c->wanted.len == WANTED_MAX)
		return err_set(e, ERR_INVALID_CONFIG, "more than %d addresses", WANTED_MAX);
	list = reallocarray(c->wanted.list, c->wanted.len + 1, sizeof(*list));
	if (!list)
		return err_memory(e);
	list[c->wanted.len++] = *ip;
	c->wanted.list = list;
	return 0;
}

static int read_wanted(const json *parent, const char *key, struct config *c, struct err *e)
{
	const json *ips = NULL;

	if (json_get_array(parent, "ips", &ips, e))
		return err_wrap(e, "%s", key);
	for (size_t i = 0; i < json_len(ips); i++) {
		const char *text = json_str(json_at(ips, i));
		struct ip ip;

		if (!text)
			return err_set(e, ERR_INVALID_CONFIG,
				"%s.ips[%zu]: expected a string, found %s", key, i,
				json_type_name(json_at(ips, i)));
		if (!*text)
			return err_set(e, ERR_INVALID_CONFIG, "cannot understand ip: \"\"");
		if (!parse_wanted(text, &ip))
			return err_set(e, ERR_INVALID_CONFIG, "invalid IP address %s", text);
		if (want(c, &ip, e))
			return -1;
	}
	return 0;
}

static int read_args(const struct request *req, struct config *c, struct err *e)
{
	static const char *const known[] = {"IP", NULL};
	char *values[1] = {NULL};
	autofree char *text = NULL;
	struct ip ip;
	int ret = request_cni_args(req, known, values, e);

	text = values[0];
	if (ret)
		return -1;
	if (!text || !*text)
		return 0;
	if (!parse_wanted(text, &ip))
		return err_set(e, ERR_INVALID_CONFIG,
			"ARGS: error parsing value of pair \"IP=%s\": invalid IP address %s", text,
			text);
	return want(c, &ip, e);
}

/* All of it, checked. Ranges may come from the runtime alone, which STATUS does not show us: there
 * it is no mistake that there are none. */
static int config_load(const struct request *req, struct config *c, struct err *e)
{
	const json *ipam = NULL, *runtime = NULL, *args = NULL;
	const char *unused = NULL;

	c->reclaim = true;
	if (json_get_object(req->conf, "ipam", &ipam, e))
		return -1;
	if (!ipam && req->verb != VERB_STATUS)
		return err_set(e, ERR_INVALID_CONFIG, "IPAM config missing 'ipam' key");
	if (request_runtime_config(req, &runtime, e) || request_args_cni(req, &args, e) ||
		read_store_path(req, ipam, c, e) || json_get_str(ipam, "name", &unused, e) ||
		json_get_str(ipam, "resolvConf", &c->resolv_conf, e) ||
		json_get_array(ipam, "routes", &c->routes, e) ||
		json_get_bool(ipam, "bootReclaim", &c->reclaim, e) ||
		rangeconf_read(ipam, runtime, &c->sets, e) || read_args(req, c, e) ||
		read_wanted(args, "args.cni", c, e) || read_wanted(runtime, "runtimeConfig", c, e))
		return -1;
	if (!c->sets.len && req->verb != VERB_STATUS)
		return err_set(e, ERR_INVALID_CONFIG, "no IP ranges specified");
	return check_version(c, req->version, e);
}

/* --- resolvConf --- */

/* Far beyond what any resolver looks at. */
#define WORDS_MAX 1024

static int push_word(char ***list, const char *word, struct err *e)
{
	size_t n = 0;
	char **grown;

	while (*list && (*list)[n])
		n++;
	if (n == WORDS_MAX)
		return err_set(e, ERR_INVALID_CONFIG, "resolvConf: more than %d words", WORDS_MAX);
	grown = reallocarray(*list, n + 2, sizeof(*grown));
	if (grown) {
		*list = grown;
		grown[n] = strdup(word);
		grown[n + 1] = NULL;
	}
	return grown && grown[n] ? 0 : err_memory(e);
}

static int read_resolv_line(char *line, struct dns *dns, struct err *e)
{
	static const char space[] = " \t\v\f\r";
	char *save = NULL, *key = strtok_r(line, space, &save);
	const char *word = key ? strtok_r(NULL, space, &save) : NULL;
	char ***list;

	if (!word || *key == '#' || *key == ';')
		return 0;
	if (!strcmp(key, "nameserver"))
		return push_word(&dns->nameservers, word, e);
	if (!strcmp(key, "domain"))
		return result_set_str(&dns->domain, word, e);
	list = !strcmp(key, "search")    ? &dns->search
	       : !strcmp(key, "options") ? &dns->options
					 : NULL;
	for (; list && word; word = strtok_r(NULL, space, &save))
		if (push_word(list, word, e))
			return -1;
	return 0;
}

static int read_resolv_conf(const char *path, struct dns *dns, struct err *e)
{
	autofree char *text = NULL;
	size_t len;
	int ret = file_read(AT_FDCWD, path, RESOLV_CONF_MAX, &text, &len);

	if (ret == -ENOENT)
		return err_set(e, ERR_IO, "open %s: no such file or directory", path);
	if (ret)
		return err_sys(e, -ret, ERR_IO, "open %s", path);
	for (char *line = text, *end; line < text + len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + len - line));
		if (!end)
			end = text + len;
		if (end - line >= RESOLV_LINE_MAX)
			return err_set(e, ERR_IO, "%s: token too long", path);
		*end = '\0';
		if (read_resolv_line(line, dns, e))
			return -1;
	}
	return 0;
}

/* --- ADD --- */

/* What one range set gives. */
struct pick {
	const struct range_set *set;
	const struct ip *wanted; /* NULL: the next free one */
	struct draft draft;
	struct ip ip;
	struct ip own; /* what this holder has of an earlier boot; family 0: nothing */
	bool taken;
};

struct picks {
	struct pick *list;
	size_t len;
};

static void picks_free(struct picks *p)
{
	for (size_t i = 0; i < p->len; i++)
		draft_free(&p->list[i].draft);
	free(p->list);
}

#define autopicks __attribute__((cleanup(picks_free))) struct picks

/* Which set a requested address goes to: the first that fits each, in the order of the request. */
static int match_wanted(const struct config *c, struct picks *p, struct err *e)
{
	autobuf left = {0};

	for (size_t i = 0; i < c->wanted.len; i++) {
		const struct ip *ip = &c->wanted.list[i];
		struct pick *fit = NULL;
		char text[IP_STRLEN];

		for (size_t n = 0; n < p->len && !fit; n++)
			if (!p->list[n].wanted && range_set_find(p->list[n].set, ip))
				fit = &p->list[n];
		if (fit)
			fit->wanted = ip;
		else
			buf_printf(&left, " %s", ip_format(ip, text));
	}
	if (left.len)
		return err_set(e, ERR_INVALID_CONFIG, "failed to allocate all requested IPs:%s",
			left.data);
	for (size_t n = 0; n < p->len; n++) {
		const struct ip *ip = p->list[n].wanted;
		char text[IP_STRLEN];

		if (ip && !ip_cmp(ip, &range_set_find(p->list[n].set, ip)->gateway))
			return err_set(e, ERR_INVALID_CONFIG,
				"failed to allocate for range %zu: requested ip %s is subnet's "
				"gateway",
				n, ip_format(ip, text));
	}
	return 0;
}

static int picks_init(const struct config *c, struct picks *p, struct err *e)
{
	p->list = calloc(c->sets.len, sizeof(*p->list));
	if (!p->list)
		return err_memory(e);
	p->len = c->sets.len;
	for (size_t n = 0; n < p->len; n++)
		p->list[n] = (struct pick){.set = &c->sets.list[n], .draft = DRAFT_INIT};
	return match_wanted(c, p, e);
}

/* An attachment gets one address of a set. What it holds from an earlier boot is taken over. A
 * request for a certain address adds to what is held, as in the Go plugin. */
static int check_duplicates(
	struct store *s, const struct request *req, bool reclaim, struct picks *p, struct err *e)
{
	const struct holder holder = {req->id, req->ifname}, legacy = {req->id, NULL};
	struct ip_list held = {0};
	autofree struct ip *list = NULL;
	char text[IP_STRLEN];
	int ret = store_held(s, &holder, &held);

	if (!ret)
		ret = store_held(s, &legacy, &held);
	list = held.list;
	if (ret)
		return err_sys(e, -ret, ERR_IO, "cannot read the lease store");
	for (size_t n = 0; n < p->len; n++) {
		for (size_t i = 0; i < held.len && !p->list[n].wanted; i++) {
			if (!range_set_find(p->list[n].set, &list[i]))
				continue;
			if (!reclaim || !store_old(s, &list[i]))
				return err_set(e, ERR_CONFLICT,
					"failed to allocate for range %zu: %s has been allocated "
					"to %s, duplicate allocation is not allowed",
					n, ip_format(&list[i], text), req->id);
			p->list[n].own = list[i];
		}
	}
	return 0;
}

static int take_failed(const struct pick *p, size_t n, int ret, struct err *e)
{
	autofree char *text = range_set_text(p->set);
	const char *set = text ? text : "";
	char ip[IP_STRLEN];

	if (ret == -ENOSPC)
		err_set(e, ERR_NOT_AVAILABLE, "no IP addresses available in range set: %s", set);
	else if (ret == -EEXIST)
		err_set(e, ERR_CONFLICT, "requested IP address %s is not available in range set %s",
			ip_format(p->wanted, ip), set);
	else
		err_sys(e, -ret, ERR_IO, "cannot create a lease");
	return err_wrap(e, "failed to allocate for range %zu", n);
}

static int take_one(struct store *s, struct pick *p, size_t n, bool reclaim, struct err *e)
{
	struct marker marker;
	const struct ip *from;
	int ret;

	marker_read(s, n, &marker);
	from = marker.last.family ? &marker.last : NULL;
	if (p->wanted) {
		p->ip = *p->wanted;
		ret = store_take(s, &p->draft, &p->ip, reclaim);
	} else {
		p->ip = p->own;
		ret = p->own.family ? store_take(s, &p->draft, &p->ip, true) : -EEXIST;
		if (ret == -EEXIST)
			ret = store_take_next(s, &p->draft, p->set, from, reclaim, &p->ip);
	}
	p->taken = !ret;
	if (!ret)
		marker_write(s, n, &marker, &p->ip);
	marker_close(&marker);
	return ret ? take_failed(p, n, ret, e) : 0;
}

/* All or nothing, under one lock. */
static int take_all(struct store *s, const struct request *req, const struct config *c,
	struct picks *p, struct err *e)
{
	const struct holder holder = {req->id, req->ifname};

	for (size_t n = 0; n < p->len; n++)
		if (store_draft(s, &holder, &p->list[n].draft, e))
			return -1;
	if (store_lock(s, e) || check_duplicates(s, req, c->reclaim, p, e))
		return -1;
	for (size_t n = 0; n < p->len; n++) {
		if (!take_one(s, &p->list[n], n, c->reclaim, e))
			continue;
		while (n--)
			store_release(s, &p->list[n].ip, &holder);
		return -1;
	}
	return 0;
}

/* The inverse of an ADD. */
struct give_back {
	char *store;
	char *id;
	char *ifname;
	struct ip *ips;
	size_t len;
};

static void give_back_free(void *arg)
{
	struct give_back *g = arg;

	free(g->store);
	free(g->id);
	free(g->ifname);
	free(g->ips);
	free(g);
}

static void give_back(void *arg)
{
	const struct give_back *g = arg;
	const struct holder holder = {g->id, g->ifname};
	autostore s = STORE_INIT;
	autoerr e = {0};

	if (store_open(&s, g->store, STORE_INDEX_DIR, false, &e) || store_lock(&s, &e))
		return;
	for (size_t n = g->len; n--;)
		store_release(&s, &g->ips[n], &holder);
}

/* Prepared before the first lease is taken, so that it cannot fail after. */
static struct give_back *give_back_new(const struct request *req, const char *store, size_t len)
{
	struct give_back *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->store = strdup(store);
	g->id = strdup(req->id);
	g->ifname = strdup(req->ifname);
	g->ips = calloc(len, sizeof(*g->ips));
	if (g->store && g->id && g->ifname && g->ips)
		return g;
	give_back_free(g);
	return NULL;
}

static int allocate(const struct request *req, const struct config *c, struct picks *p,
	struct undo *undo, struct err *e)
{
	struct give_back *g = give_back_new(req, c->store, p->len);
	autostore s = STORE_INIT;

	if (!g)
		return err_memory(e);
	if (store_open(&s, c->store, STORE_INDEX_DIR, true, e) || take_all(&s, req, c, p, e)) {
		give_back_free(g);
		return -1;
	}
	/* The inverse takes the lock itself. */
	store_close(&s);
	for (size_t n = 0; n < p->len; n++)
		g->ips[g->len++] = p->list[n].ip;
	return undo_push(undo, give_back, give_back_free, g, e);
}

static int host_local_add(const struct request *req, struct reply *reply, struct err *e)
{
	autoconfig c = {0};
	autopicks p = {0};

	if (config_load(req, &c, e))
		return -1;
	if (c.routes &&
		result_read_routes(&reply->result, c.routes, "routes", ERR_INVALID_CONFIG, e))
		return -1;
	if (c.resolv_conf && *c.resolv_conf &&
		read_resolv_conf(c.resolv_conf, &reply->result.dns, e))
		return -1;
	if (picks_init(&c, &p, e) || allocate(req, &c, &p, &reply->undo, e))
		return -1;
	for (size_t n = 0; n < p.len; n++) {
		const struct range *r = range_set_find(p.list[n].set, &p.list[n].ip);
		struct prefix address = {p.list[n].ip, r->subnet.len};
		struct ip_config *ip = result_add_ip(&reply->result, &address, e);

		if (!ip)
			return -1;
		ip->gateway = r->gateway;
	}
	return 0;
}

/* --- the other verbs --- */

/* What this attachment holds; leases that name only the container count when there is no other. */
static int find_held(struct store *s, const struct request *req, struct holder *holder,
	struct ip_list *held, struct err *e)
{
	int ret;

	*holder = (struct holder){req->id, req->ifname};
	ret = store_held(s, holder, held);
	if (!ret && !held->len) {
		holder->ifname = NULL;
		ret = store_held(s, holder, held);
	}
	return ret ? err_sys(e, -ret, ERR_IO, "cannot read the lease store") : 0;
}

static int host_local_del(const struct request *req, struct err *e)
{
	autoconfig c = {0};
	autostore s = STORE_INIT;
	struct ip_list held = {0};
	autofree struct ip *list = NULL;
	struct holder holder;
	int ret;

	if (load_store_path(req, &c, e))
		return -1;
	ret = store_open(&s, c.store, STORE_INDEX_DIR, false, e);
	if (ret)
		return ret < 0 ? -1 : 0;
	if (store_lock(&s, e))
		return -1;
	ret = find_held(&s, req, &holder, &held, e);
	list = held.list;
	if (ret)
		return -1;
	for (size_t i = 0; i < held.len; i++) {
		char text[IP_STRLEN];

		ret = store_release(&s, &list[i], &holder);
		if (ret < 0)
			err_sys(e, -ret, ERR_IO, "cannot release %s", ip_format(&list[i], text));
	}
	return e->set ? -1 : 0;
}

/* Each address of prevResult that is ours to give must be held by this attachment. */
static int check_result(const struct request *req, const struct config *c,
	const struct ip_list *held, struct err *e)
{
	autoresult prev = {0};
	bool present;

	if (request_prev_result(req, &prev, &present, NULL, e))
		return -1;
	for (size_t i = 0; i < prev.ips_len; i++) {
		const struct ip *ip = &prev.ips[i].address.ip;
		bool ours = false, found = false;
		char text[IP_STRLEN];

		for (size_t n = 0; n < c->sets.len; n++)
			ours |= range_set_find(&c->sets.list[n], ip) != NULL;
		for (size_t n = 0; n < held->len; n++)
			found |= !ip_cmp(&held->list[n], ip);
		if (ours && !found)
			return err_set(e, ERR_CHECK,
				"host-local: address %s of prevResult is not allocated to "
				"container %s, interface %s",
				ip_format(ip, text), req->id, req->ifname);
	}
	return 0;
}

static int host_local_check(const struct request *req, struct err *e)
{
	autoconfig c = {0};
	autostore s = STORE_INIT;
	struct ip_list held = {0};
	autofree struct ip *list = NULL;
	struct holder holder;
	int ret;

	if (config_load(req, &c, e))
		return -1;
	ret = store_open(&s, c.store, STORE_INDEX_DIR, false, e);
	if (ret < 0)
		return -1;
	if (!ret && (store_lock(&s, e) || find_held(&s, req, &holder, &held, e))) {
		free(held.list);
		return -1;
	}
	list = held.list;
	if (!held.len)
		return err_set(e, ERR_CHECK,
			"host-local: Failed to find address added by container %s", req->id);
	return check_result(req, &c, &held, e);
}

static int host_local_gc(const struct request *req, struct err *e)
{
	autoconfig c = {0};
	autostore s = STORE_INIT;
	autofree struct holder *keep = NULL;
	struct valid_set valid = {0};
	int ret;

	if (load_store_path(req, &c, e))
		return -1;
	ret = store_open(&s, c.store, STORE_INDEX_DIR, false, e);
	if (ret)
		return ret < 0 ? -1 : 0;
	if (request_valid_set(req, &valid, e))
		return -1;
	keep = calloc(valid.len + 1, sizeof(*keep));
	for (size_t i = 0; keep && i < valid.len; i++)
		keep[i] = (struct holder){valid.list[i].id, valid.list[i].ifname};
	ret = keep ? store_lock(&s, e) : err_memory(e);
	if (!ret)
		ret = store_gc(&s, keep, valid.len, e);
	valid_set_free(&valid);
	return ret;
}

static int host_local_status(const struct request *req, struct err *e)
{
	autoconfig c = {0};
	autostore s = STORE_INIT;
	int ret;

	if (config_load(req, &c, e))
		return -1;
	/* No directory: nothing is taken, and ADD makes it. */
	ret = store_open(&s, c.store, STORE_INDEX_DIR, false, e);
	if (ret)
		return ret < 0 ? -1 : 0;
	if (faccessat(s.dir, ".", W_OK, AT_EACCESS) < 0)
		return err_sys(
			e, errno, ERR_NOT_AVAILABLE, "cannot write to lease store %s", c.store);
	if (store_lock(&s, e))
		return -1;
	for (size_t n = 0; n < c.sets.len; n++) {
		autofree char *text = NULL;

		if (store_has_free(&s, &c.sets.list[n], c.reclaim))
			continue;
		text = range_set_text(&c.sets.list[n]);
		return err_set(e, ERR_NOT_AVAILABLE, "no IP addresses available in range set: %s",
			text ? text : "");
	}
	return 0;
}

const struct applet applet_host_local = {
	.name = "host-local",
	.help = "IPAM: addresses from ranges, kept on this host",
	.kind = APPLET_IPAM,
	.add = host_local_add,
	.del = host_local_del,
	.check = host_local_check,
	.gc = host_local_gc,
	.status = host_local_status,
};
