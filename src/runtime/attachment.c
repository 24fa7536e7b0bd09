#include "runtime/attachment.h"

#include "base/cleanup.h"
#include "base/mac.h"
#include "cni/names.h"
#include "netlink/link.h"
#include "netlink/netns.h"
#include "runtime/cache.h"
#include "runtime/valid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- the cache ---- */

static int read_entry(const struct runtime *rt, const char *network, struct cache_entry *entry,
	struct err *why, struct err *e)
{
	return cache_read(rt->cache_dir, network, rt->attach.id, rt->attach.ifname, entry, why, e);
}

static int remove_entry(const struct runtime *rt, const char *network, struct err *e)
{
	return cache_remove(rt->cache_dir, network, rt->attach.id, rt->attach.ifname, e);
}

static void remark_unused(const struct runtime *rt, const struct err *why)
{
	if (why->set)
		report(rt->remarks, "the cache entry is not used: %s", why->msg);
}

/* r NULL: an attempt, of which `attempt` says what it found. */
static int write_entry(const struct runtime *rt, const struct conflist *l,
	const struct attempt *attempt, const struct result *r, struct err *e)
{
	autojson *doc = r ? result_to_json(r, l->version, e) : NULL;
	struct cache_entry entry = {
		.network = l->name,
		.id = (char *)rt->attach.id,
		.ifname = (char *)rt->attach.ifname,
		.netns = (char *)rt->attach.netns,
		.args = (char *)rt->attach.args,
		.cap_args = (json *)rt->attach.cap_args,
		.config = l->bytes,
		.config_len = l->bytes_len,
		.result = doc,
		.attempt = *attempt,
	};

	if (r && !doc)
		return -1;
	if (!cache_write(rt->cache_dir, &entry, r != NULL, e))
		return 0;
	return err_wrap(e, "failed to set network \"%s\" cached result", l->name);
}

/* The cached result in the list's version; *have tells whether there is one. */
static int cached_result(const struct cache_entry *entry, const struct conflist *l,
	struct result *r, bool *have, struct err *e)
{
	*have = false;
	*r = (struct result){0};
	if (!entry->result)
		return 0;
	if (result_read(r, entry->result, "0.1.0", ERR_DECODE, e) ||
		result_convert(r, l->version, e)) {
		result_free(r);
		return err_wrap(
			e, "failed to convert cached result to config version \"%s\"", l->version);
	}
	*have = true;
	return 0;
}

/* The configuration the attachment was made with is what takes it down; plugins of the network's
 * directory are not in the cache and come from the current one. 0, 1 when it is of no use, or -1
 * with e set. */
static int list_of_entry(const struct runtime *rt, const struct cache_entry *entry,
	struct conflist *l, struct err *e)
{
	autoerr why = {0};

	if (!entry->config_len)
		return 1;
	if (conflist_parse(l, entry->config, entry->config_len, false, rt->conf_dir, &why)) {
		if (err_is_passing(why.sys))
			err_merge(e, &why);
		return e->set ? -1 : 1;
	}
	if (!strcmp(l->name, entry->network))
		return 0;
	conflist_free(l);
	return 1;
}

/* What this call names beats what the cache remembers. */
static struct attach attach_of_entry(const struct runtime *rt, const struct cache_entry *entry)
{
	struct attach a = rt->attach;

	a.id = entry->id;
	a.ifname = entry->ifname;
	if (!*a.netns)
		a.netns = entry->netns;
	if (!*a.args)
		a.args = entry->args;
	if (!a.cap_args)
		a.cap_args = entry->cap_args;
	return a;
}

/* ---- del ---- */

/* Whether an interface in that namespace may be what the attempt made: not where the name was taken
 * before its first plugin ran, and not in a namespace that came to the path later. */
static bool may_have_made(const struct attempt *a, const char *netns)
{
	if (a->occupied || !a->netns)
		return false;
	return a->netns < 0 || !netns_is_another(netns, (uint64_t)a->netns);
}

/* Whether the interface in that namespace is surely not the one of the result: a namespace that
 * came to the path later has one of its own, with another MAC address. */
static bool is_anothers(const struct result *r, const char *netns, const char *ifname)
{
	const struct iface *ours = NULL;
	autoclose int fd = -1;
	autoerr ignored = {0};
	autonl *nl = NULL;
	char mac[MAC_STRLEN];
	struct link l;

	for (size_t i = 0; i < r->ifaces_len; i++)
		if (r->ifaces[i].sandbox && !strcmp(r->ifaces[i].name, ifname))
			ours = &r->ifaces[i];
	if (!ours || !ours->mac || netns_open(netns, &fd, NULL) != NETNS_OK ||
		netns_nl_open(fd, &nl, NETLINK_ROUTE, &ignored) || link_get(nl, ifname, &l))
		return false;
	return strcasecmp(ours->mac, mac_format(l.mac, mac)) != 0;
}

static int del_entry(const struct runtime *rt, const struct cache_entry *entry,
	const struct conflist *l, bool careful, struct err *e)
{
	struct attach a = attach_of_entry(rt, entry);
	autoresult r = {0};
	autoerr unusable = {0};
	bool have;

	/* Without a namespace the plugins give back what is outside of it: leases, host ports. */
	if (!entry->result && !may_have_made(&entry->attempt, a.netns))
		a.netns = "";
	/* A result that cannot be read does not keep an attachment alive. */
	cached_result(entry, l, &r, &have, &unusable);
	if (careful && have && is_anothers(&r, a.netns, a.ifname))
		a.netns = "";
	if (list_del(l, &a, have ? &r : NULL, e))
		return -1;
	return cache_remove(rt->cache_dir, l->name, a.id, a.ifname, e);
}

int attachment_del(const struct runtime *rt, const char *network, struct err *e)
{
	autoclose int lock = cache_lock(rt->cache_dir, rt->attach.id);
	autoentry entry = {0};
	autolist l = {0};
	autoerr why = {0};
	int found, unusable;

	(void)lock;
	found = name_valid(network) ? read_entry(rt, network, &entry, &why, e) : 1;
	if (found < 0)
		return -1;
	remark_unused(rt, &why);
	unusable = found ? 1 : list_of_entry(rt, &entry, &l, e);
	if (unusable < 0 || (unusable && conflist_find(&l, rt->conf_dir, network, rt->remarks, e)))
		return -1;
	if (!found)
		return del_entry(rt, &entry, &l, false, e);
	if (list_del(&l, &rt->attach, NULL, e))
		return -1;
	/* A torn entry goes with the attachment; somebody else's stays. */
	return why.code == ERR_CONFLICT ? 0 : remove_entry(rt, network, e);
}

/* DEL of an attachment for its own sake: with its arguments, not with those of this call, and
 * carefully: nobody has said that what is there now is meant. `l` is for one whose entry has no
 * configuration that could be used. */
static int del_stale(const struct runtime *rt, const struct cache_entry *entry,
	const struct conflist *l, struct err *e)
{
	struct runtime none = *rt;
	autolist own = {0};
	int unusable = list_of_entry(rt, entry, &own, e);

	none.attach.netns = none.attach.args = "";
	none.attach.cap_args = NULL;
	return unusable < 0 ? -1 : del_entry(&none, entry, unusable ? l : &own, true, e);
}

/* ---- add ---- */

struct look {
	const char *ifname;
	bool there;
};

static int look_for(void *arg, struct err *e)
{
	struct look *look = arg;
	autonl *nl = NULL;
	struct link l;
	int ret;

	if (nl_open(&nl, NETLINK_ROUTE, e))
		return -1;
	ret = link_get(nl, look->ifname, &l);
	look->there = !ret;
	return !ret || ret == -ENODEV ? 0
				      : err_sys(e, -ret, ERR_SYSTEM,
						"failed to look up link \"%s\"", look->ifname);
}

/* Whether the namespace has an interface of that name, the identity of the namespace (0: there is
 * none); two calls that name one namespace differently take turns from here on. */
static int look_into(
	const char *path, const char *ifname, int lock, struct attempt *out, struct err *e)
{
	struct look look = {.ifname = ifname};
	autofree char *key = NULL;
	autoclose int fd = -1;
	int ret = netns_try(path, &fd, e);

	*out = (struct attempt){0};
	if (ret <= 0)
		return ret;
	out->netns = (int64_t)netns_identity(fd);
	if (asprintf(&key, "netns %lld %s", (long long)out->netns, ifname) < 0) {
		key = NULL;
		return err_memory(e);
	}
	cache_lock_also(lock, key);
	if (netns_run(fd, look_for, &look, e))
		return -1;
	out->occupied = look.there;
	return 0;
}

/* A second ADD of what is attached would fail in a plugin, and the DEL that follows a failed ADD
 * would then take down the living attachment: here, or where its entry says it is. An entry from
 * before a reboot is none. */
static int refuse_attached(const struct runtime *rt, const struct conflist *l,
	const struct cache_entry *entry, const struct attempt *here, struct err *e)
{
	const char *ifname = rt->attach.ifname;
	struct attempt there = *here;

	if (!entry->result)
		return 0;
	if (!here->occupied && *entry->netns && strcmp(entry->netns, rt->attach.netns) != 0 &&
		look_into(entry->netns, ifname, -1, &there, e))
		return -1;
	if (!there.occupied)
		return 0;
	return err_set(e, ERR_CONFLICT,
		"%s is attached to network \"%s\" already (container ID %s); delete it first",
		ifname, l->name, rt->attach.id);
}

/* Nothing of the network is there, and what is there of others is known. */
static int make_room(const struct runtime *rt, const struct conflist *l, int lock,
	struct attempt *found, struct err *e)
{
	const char *netns = rt->attach.netns, *ifname = rt->attach.ifname;
	autoentry entry = {0};
	autoerr why = {0};
	int ret = read_entry(rt, l->name, &entry, &why, e);

	if (ret < 0 || look_into(netns, ifname, lock, found, e))
		return -1;
	if (ret > 0 && why.code == ERR_CONFLICT)
		return err_set(e, ERR_CONFLICT,
			"the result cache has no room for this attachment: %s", why.msg);
	if (ret > 0 || entry.result)
		return refuse_attached(rt, l, &entry, found, e);
	/* An attempt that never came to its end: its leavings would be taken for somebody else's.
	 */
	if (del_stale(rt, &entry, l, e))
		return err_wrap(e, "failed to clean up after an earlier add of %s", ifname);
	return look_into(netns, ifname, lock, found, e);
}

int attachment_add(const struct runtime *rt, const struct conflist *l,
	int (*take)(const struct result *r, const char *version, struct err *e), struct err *e)
{
	autoclose int lock = cache_lock(rt->cache_dir, rt->attach.id);
	autoerr ignored = {0};
	struct attempt found;
	autoresult r = {0};
	bool clean;

	/* The attempt is on record before anything is done, so that GC finds one that never ended.
	 */
	if (make_room(rt, l, lock, &found, e) || write_entry(rt, l, &found, NULL, e))
		return -1;
	if (list_add(l, &rt->attach, found.occupied, &r, &clean, e)) {
		if (found.occupied)
			err_detail(e,
				"an interface %s was in the namespace before, and was left alone",
				rt->attach.ifname);
		if (clean)
			remove_entry(rt, l->name, &ignored);
		return -1;
	}
	if (!write_entry(rt, l, &found, &r, e) && !take(&r, l->version, e))
		return 0;
	if (!list_del(l, &rt->attach, &r, &ignored))
		remove_entry(rt, l->name, &ignored);
	return -1;
}

/* ---- check ---- */

int attachment_check(const struct runtime *rt, const struct conflist *l, struct err *e)
{
	autoentry entry = {0};
	autoresult r = {0};
	autoerr why = {0};
	bool have = false;
	struct attach a = rt->attach;
	int cmp;

	if (cni_version_cmp(l->version, "0.4.0", &cmp, e))
		return -1;
	if (cmp < 0)
		return err_set(e, ERR_INCOMPATIBLE_VERSION,
			"configuration version \"%s\" does not support the CHECK command",
			l->version);
	if (l->disable_check)
		return 0;
	if (read_entry(rt, l->name, &entry, &why, e) < 0)
		return -1;
	remark_unused(rt, &why);
	if (cached_result(&entry, l, &r, &have, e))
		return err_wrap(e, "failed to get network \"%s\" cached result", l->name);
	/* All but CNI_PATH has to be as it was for ADD (SPEC, section 2, CHECK). */
	if (entry.id)
		a = attach_of_entry(rt, &entry);
	return list_check(l, &a, have ? &r : NULL, e);
}

/* ---- gc ---- */

struct sweep {
	const struct runtime *rt;
	const struct conflist *list;
	const json *valid;
	struct err *e;
};

static int sweep_entry(const struct cache_entry *entry, void *arg)
{
	struct sweep *s = arg;
	autoerr one = {0};

	if (strcmp(entry->network, s->list->name) != 0 ||
		valid_has(s->valid, entry->id, entry->ifname))
		return 0;
	if (del_stale(s->rt, entry, s->list, &one)) {
		err_wrap(&one, "failed to delete stale attachment %s %s", entry->id, entry->ifname);
		err_merge(s->e, &one);
	}
	return 0;
}

int attachment_gc(
	const struct runtime *rt, const struct conflist *l, const json *valid, struct err *e)
{
	autoclose int lock = cache_lock(rt->cache_dir, NULL);
	struct sweep s = {rt, l, valid, e};
	int cmp;

	(void)lock;
	if (l->disable_gc)
		return 0;
	if (cni_version_cmp(l->version, "1.1.0", &cmp, e))
		return -1;
	cache_each(rt->cache_dir, sweep_entry, &s, e);
	if (cmp >= 0)
		list_gc(l, &rt->attach, valid, e);
	return e->set ? -1 : 0;
}
