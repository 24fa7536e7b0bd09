#include "attach/reach.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "filter/change.h"
#include "netlink/netns.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>

/* ---- all links of a kind ---- */

struct ids {
	int32_t *list; /* owned */
	size_t len;
};

static int keep_id(int32_t id, void *arg)
{
	struct ids *ids = arg;
	int32_t *slot = vec_add(ids->list, ids->len);

	if (!slot)
		return -ENOMEM;
	*slot = id;
	return 0;
}

struct visit {
	struct reached now;
	int (*fn)(const struct reached *r, void *arg);
	void *arg;
};

static int visit(const struct link *l, void *arg)
{
	struct visit *v = arg;

	v->now.link = *l;
	return v->fn(&v->now, v->arg);
}

/* Calls fn for every link of the kind, the host's own first; fn as in nl_query(). data (may be
 * NULL) has the settings of the link at hand. A namespace that ends meanwhile is passed over.
 * Returns 0, fn's value or -errno. */
static int each_reached(struct nl *host, const struct link_kind *kind, void *data,
	int (*fn)(const struct reached *r, void *arg), void *arg)
{
	struct visit v = {.now.is_host = true, .fn = fn, .arg = arg};
	struct ids ids = {0};
	int ret = netns_each_id(host, keep_id, &ids);

	if (!ret)
		ret = link_each_in(host, NULL, kind, data, visit, &v);
	v.now.is_host = false;
	for (size_t i = 0; !ret && i < ids.len; i++) {
		v.now.nsid = ids.list[i];
		ret = link_each_in(host, &v.now.nsid, kind, data, visit, &v);
		/* Its name is gone with the namespace. */
		if (ret == -EINVAL || ret == -ENOENT)
			ret = 0;
	}
	free(ids.list);
	return ret;
}

void reach_neighbours(struct nl *host, const char *netns)
{
	const char *slash = strrchr(netns, '/');
	char dir[256], path[sizeof(dir) + NAME_MAX + 2];
	const struct dirent *entry;
	DIR *d;

	if (!slash || !strncmp(netns, "/proc/", 6) || (size_t)(slash - netns) >= sizeof(dir))
		return;
	snprintf(dir, sizeof(dir), "%.*s/", (int)(slash - netns), netns);
	d = opendir(dir);
	while (d && (entry = readdir(d))) {
		autoclose int fd = -1;
		int32_t id;

		snprintf(path, sizeof(path), "%s%s", dir, entry->d_name);
		if (netns_open(path, &fd, NULL) == NETNS_OK && !netns_is_own(fd))
			netns_id_make(host, fd, &id);
	}
	if (d)
		closedir(d);
}

/* ---- the holder of a master ---- */

struct search {
	uint32_t index;
	struct reached *out;
};

static int is_upper(const struct reached *r, void *arg)
{
	const struct search *s = arg;

	if (r->link.peer != s->index)
		return 0;
	/* On the host a link without a name for the namespace below it is above one of the host. In
	 * a container such a link is above one of the container. */
	if (r->is_host != (r->link.peer_netnsid == -1))
		return 0;
	*s->out = *r;
	return 1;
}

/* The namespace that is below is the host's, in words of the host. */
static int is_on_host(struct nl *host, const struct reached *r)
{
	autoclose int own = netns_own_open();
	int32_t id;
	int ret;

	if (r->is_host)
		return 1;
	if (own < 0)
		return -errno;
	ret = netns_id(host, own, &id);
	return ret ? ret : id == r->link.peer_netnsid;
}

int reach_upper(struct nl *host, const struct link_kind *kind, uint32_t index, struct reached *out,
	void *data)
{
	struct search s = {index, out};
	int ret = each_reached(host, kind, data, is_upper, &s);

	return ret == 1 ? is_on_host(host, out) : ret;
}

int reach_upper_in(struct nl *nl, const struct link_kind *kind, uint32_t index, struct reached *out,
	void *data)
{
	struct search s = {index, out};
	struct visit v = {.now.is_host = true, .fn = is_upper, .arg = &s};

	return link_each_in(nl, NULL, kind, data, visit, &v);
}

struct vlan_search {
	struct search upper;
	uint16_t id;
	struct vlan_data now;
};

static int is_vlan_upper(const struct reached *r, void *arg)
{
	struct vlan_search *s = arg;

	return s->now.id == s->id ? is_upper(r, &s->upper) : 0;
}

int reach_vlan(struct nl *host, uint32_t index, uint16_t id, struct reached *out)
{
	struct vlan_search s = {.upper = {index, out}, .id = id};
	int ret = each_reached(host, &kind_vlan, &s.now, is_vlan_upper, &s);

	return ret == 1 ? is_on_host(host, out) : ret;
}

int reach_vlan_in(struct nl *nl, uint32_t index, uint16_t id, struct reached *out)
{
	struct vlan_search s = {.upper = {index, out}, .id = id};
	struct visit v = {.now.is_host = true, .fn = is_vlan_upper, .arg = &s};

	return link_each_in(nl, NULL, &kind_vlan, &s.now, visit, &v);
}

const char *reach_owner(const struct link *l, char out[static REACH_OWNER])
{
	struct owner_ref ref;

	if (owner_parse(l->alias, &ref))
		snprintf(out, REACH_OWNER, "%s", ref.text);
	else
		snprintf(out, REACH_OWNER, "link \"%s\"", l->name);
	return out;
}

/* ---- GC ---- */

struct stale {
	const struct request *req;
	const struct valid_set *valid;
	struct reached *list; /* owned */
	size_t len;
};

static int keep_stale(const struct reached *r, void *arg)
{
	struct stale *s = arg;
	struct owner_ref ref;
	struct reached *slot;

	if (!owner_parse(r->link.alias, &ref) || !change_is_stale(s->req, s->valid, &ref))
		return 0;
	slot = vec_add(s->list, s->len);
	if (!slot)
		return -ENOMEM;
	*slot = *r;
	return 0;
}

static int delete_stale(struct nl *host, const struct stale *s)
{
	int first = 0;

	for (size_t i = 0; i < s->len; i++) {
		const struct reached *r = &s->list[i];
		int ret = r->is_host ? link_del(host, r->link.index)
				     : link_del_in(host, r->nsid, r->link.index);

		/* The link, or the namespace, is gone. */
		if (ret && ret != -ENODEV && ret != -EINVAL && !first)
			first = ret;
	}
	return first;
}

int reach_collect(const struct link_kind *kind, const struct request *req,
	const struct valid_set *valid, struct err *e)
{
	struct stale s = {.req = req, .valid = valid};
	autonl *host = NULL;
	int ret;

	if (nl_open(&host, NETLINK_ROUTE, e))
		return -1;
	ret = each_reached(host, kind, NULL, keep_stale, &s);
	if (!ret)
		ret = delete_stale(host, &s);
	free(s.list);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to remove stale %s links", kind->name)
		   : 0;
}
