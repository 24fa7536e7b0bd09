/* host-local: addresses from configured ranges, one from each range set, recorded in a directory on
 * this host. docs/host-local.md; reference/ipam.md, section 1.
 *
 * This file is the policy: what the config says and what each verb does. Ranges, leases and their
 * index are in src/store/, what IPAM configurations have in common in src/ipam/. */
#include "base/cleanup.h"
#include "base/path.h"
#include "base/vec.h"
#include "cni/applet.h"
#include "ipam/ipam.h"
#include "ipam/rangeconf.h"
#include "result/resolvconf.h"
#include "store/marker.h"
#include "store/store.h"
#include "json/keys.h"

#include <limits.h>
#include <string.h>

#define DEFAULT_DATA_DIR "/var/lib/cni/networks"

struct config {
	/* As written. */
	const char *data_dir, *resolv_conf, *name;
	const json *routes;
	bool reclaim;

	char store[PATH_MAX];
	struct range_sets sets;
	struct ip_list wanted; /* requested addresses, in order, each once */
};

static const struct json_key keys[] = {
	JSON_KEY_STR(struct config, "dataDir", data_dir),
	JSON_KEY_STR(struct config, "resolvConf", resolv_conf),
	JSON_KEY_ARRAY(struct config, "routes", routes),
	JSON_KEY_BOOL(struct config, "bootReclaim", reclaim),
	/* Read by its type only, as the Go plugin does: the network's name is at the top. */
	JSON_KEY_STR(struct config, "name", name),
	/* ipam/rangeconf.h */
	JSON_KEY_KNOWN("ranges"),
	JSON_KEY_KNOWN("subnet"),
	JSON_KEY_KNOWN("rangeStart"),
	JSON_KEY_KNOWN("rangeEnd"),
	JSON_KEY_KNOWN("gateway"),
	JSON_KEYS_END,
};

/* All that DEL and GC need: they work with a config that ADD refuses. */
static const struct json_key place_keys[] = {
	JSON_KEY_STR(struct config, "dataDir", data_dir),
	JSON_KEYS_END,
};

static void config_free(struct config *c)
{
	range_sets_free(&c->sets);
	free(c->wanted.list);
	*c = (struct config){0};
}

#define autoconfig __attribute__((cleanup(config_free))) struct config

/* --- config --- */

/* The directory of the network's leases. */
static int set_store(const struct request *req, struct config *c, struct err *e)
{
	const char *dir = c->data_dir && *c->data_dir ? c->data_dir : DEFAULT_DATA_DIR;
	size_t len = strlen(dir);

	if (len + 1 + strlen(req->network) >= sizeof(c->store))
		return err_set(e, ERR_INVALID_CONFIG, "dataDir is too long: %.64s...", dir);
	memcpy(c->store, dir, len + 1);
	path_clean(c->store);
	len = strlen(c->store);
	c->store[len] = '/';
	strcpy(c->store + len + 1, req->network);
	return 0;
}

static int load_place(const struct request *req, struct config *c, struct err *e)
{
	const json *ipam = NULL;

	if (json_get_object(req->conf, "ipam", &ipam, e) || json_read_keys(ipam, place_keys, c, e))
		return -1;
	return set_store(req, c, e);
}

static bool ip_list_has(const struct ip_list *l, const struct ip *ip)
{
	for (size_t i = 0; i < l->len; i++)
		if (!ip_cmp(&l->list[i], ip))
			return true;
	return false;
}

/* Requests add up, from wherever they come. A prefix means nothing here: that of the range counts.
 */
static int read_wanted(const struct request *req, struct config *c, struct err *e)
{
	const json *runtime = NULL, *args = NULL;
	struct ip_requests all = {0};
	autofree struct ip_request *list = NULL;
	int ret = request_runtime_config(req, &runtime, e) || request_args_cni(req, &args, e) ||
		  ipam_read_args_ip(req, &all, e) || ipam_read_ips(args, "args.cni", &all, e) ||
		  ipam_read_ips(runtime, "runtimeConfig", &all, e);

	list = all.list;
	for (size_t i = 0; !ret && i < all.len; i++) {
		const struct ip *ip = &list[i].address.ip;
		struct ip *wanted;

		if (ip_list_has(&c->wanted, ip))
			continue;
		wanted = vec_add(c->wanted.list, c->wanted.len);
		if (!wanted)
			return err_memory(e);
		*wanted = *ip;
	}
	return ret ? -1 : 0;
}

static int check_version(const struct request *req, const struct config *c, struct err *e)
{
	size_t v4 = 0;

	for (size_t i = 0; i < c->sets.len; i++)
		v4 += c->sets.list[i].list[0].start.family == AF_INET;
	return ipam_check_version(req->version, v4, c->sets.len - v4, e);
}

/* All of it, checked. Ranges may come from the runtime alone, which STATUS does not show us: there
 * it is no mistake that there are none. */
static int config_load(const struct request *req, struct config *c, struct err *e)
{
	const json *ipam = NULL, *runtime = NULL;

	c->reclaim = true;
	if (json_get_object(req->conf, "ipam", &ipam, e))
		return -1;
	if (!ipam && req->verb != VERB_STATUS)
		return err_set(e, ERR_INVALID_CONFIG, "IPAM config missing 'ipam' key");
	if (json_read_keys(ipam, keys, c, e) || set_store(req, c, e) ||
		request_runtime_config(req, &runtime, e) ||
		rangeconf_read(ipam, runtime, &c->sets, e) || read_wanted(req, c, e))
		return -1;
	if (!c->sets.len && req->verb != VERB_STATUS)
		return err_set(e, ERR_INVALID_CONFIG, "no IP ranges specified");
	return check_version(req, c, e);
}

/* --- ADD --- */

/* What one range set gives. */
struct pick {
	const struct range_set *set;
	const struct ip *wanted; /* NULL: the next free one */
	struct draft draft;
	struct ip ip;
	struct ip own; /* what this holder has of an earlier boot; family 0: nothing */
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
		return err_sys(e, -ret, ERR_IO, "cannot read lease store %s", s->path);
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

static int take_failed(
	const struct store *s, const struct pick *p, size_t n, int ret, struct err *e)
{
	autofree char *text = range_set_text(p->set);
	const char *set = text ? text : "";
	char ip[IP_STRLEN];

	if (ret > 0)
		err_set(e, ERR_NOT_AVAILABLE, "no IP addresses available in range set: %s", set);
	else if (ret == -EEXIST)
		err_set(e, ERR_CONFLICT, "requested IP address %s is not available in range set %s",
			ip_format(p->wanted, ip), set);
	else
		err_sys(e, -ret, ERR_IO, "cannot write a lease to %s", s->path);
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
	if (!ret)
		marker_write(s, n, &marker, &p->ip);
	marker_close(&marker);
	return ret ? take_failed(s, p, n, ret, e) : 0;
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
		resolvconf_read(c.resolv_conf, &reply->result.dns, e))
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

/* Opens and locks the store as it is. Returns 0, 1 when there is none, so nothing is held, or -1
 * with e set. */
static int open_existing(struct store *s, const struct config *c, struct err *e)
{
	int ret = store_open(s, c->store, STORE_INDEX_DIR, false, e);

	if (!ret)
		ret = store_lock(s, e);
	if (ret > 0)
		store_sweep(STORE_INDEX_DIR);
	return ret;
}

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

	if (load_place(req, &c, e))
		return -1;
	ret = open_existing(&s, &c, e);
	if (ret)
		return ret < 0 ? -1 : 0;
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
	ret = open_existing(&s, &c, e);
	if (!ret)
		ret = find_held(&s, req, &holder, &held, e);
	list = held.list;
	if (ret < 0)
		return -1;
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

	if (load_place(req, &c, e))
		return -1;
	if (request_valid_set(req, &valid, e))
		return -1;
	keep = calloc(valid.len + 1, sizeof(*keep));
	for (size_t i = 0; keep && i < valid.len; i++)
		keep[i] = (struct holder){valid.list[i].id, valid.list[i].ifname};
	ret = keep ? open_existing(&s, &c, e) : err_memory(e);
	if (!ret) {
		ret = store_gc(&s, keep, valid.len, e);
		store_sweep(STORE_INDEX_DIR);
	}
	valid_set_free(&valid);
	return ret < 0 ? -1 : 0;
}

/* Whether range set n has an address left. */
static int check_free(struct store *s, const struct config *c, size_t n, struct err *e)
{
	autofree char *text = NULL;
	int ret = store_has_free(s, &c->sets.list[n], c->reclaim);

	if (ret > 0)
		return 0;
	if (ret < 0)
		return err_sys(e, -ret, ERR_IO, "cannot read lease store %s", s->path);
	text = range_set_text(&c->sets.list[n]);
	return err_set(e, ERR_NOT_AVAILABLE, "no IP addresses available in range set: %s",
		text ? text : "");
}

static int host_local_status(const struct request *req, struct err *e)
{
	autoconfig c = {0};
	autostore s = STORE_INIT;
	int ret;

	if (config_load(req, &c, e))
		return -1;
	ret = store_try_write(c.store);
	if (ret)
		return err_sys(
			e, -ret, ERR_NOT_AVAILABLE, "cannot write to lease store %s", c.store);
	/* No directory: nothing is taken, and ADD makes it. */
	ret = open_existing(&s, &c, e);
	for (size_t n = 0; n < c.sets.len && !ret; n++)
		ret = check_free(&s, &c, n, e);
	return ret < 0 ? -1 : 0;
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
