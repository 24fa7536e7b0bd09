#include "portmap/localnet.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "cni/ownedlink.h"
#include "netlink/altname.h"
#include "netlink/link.h"
#include "netlink/netns.h"
#include "netlink/nftmap.h"
#include "netlink/route.h"
#include "netlink/sysctl.h"
#include "portmap/layout.h"
#include "portmap/lookup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOOPBACK_INDEX 1 /* of lo, in every network namespace */

#define MARK "cnibox-localnet-"

/* The comment of a link in `localnet`: who had set route_localnet. */
#define OURS  "cnibox set route_localnet"
#define FOUND "route_localnet was set before"

/* ---- the setting ---- */

#define SYSCTL (sizeof("net/ipv4/conf//route_localnet") + IFNAMSIZ)

static const char *sysctl_name(const char *link, char out[static SYSCTL])
{
	snprintf(out, SYSCTL, "net/ipv4/conf/%s/route_localnet", link);
	return out;
}

/* 1, 0, or -errno. */
static int is_set(const char *link)
{
	char path[SYSCTL], value[16] = "";
	int ret = sysctl_get(sysctl_name(link, path), value, sizeof(value));

	return ret ? ret : !strcmp(value, "1");
}

/* A link that is gone does not count. */
static int write_setting(const char *link, const char *value)
{
	char path[SYSCTL];
	int ret = sysctl_ensure(sysctl_name(link, path), value);

	return ret == -ENOENT ? 0 : ret;
}

/* ---- the mark ---- */

struct marks {
	char (*list)[LOCALNET_MARK];
	size_t len;
};

static int take_mark(const char *name, void *arg)
{
	struct marks *m = arg;
	char(*mark)[LOCALNET_MARK];

	if (strncmp(name, MARK, strlen(MARK)) != 0 || strlen(name) >= LOCALNET_MARK)
		return 0;
	mark = vec_add(m->list, m->len);
	if (!mark)
		return -ENOMEM;
	snprintf(*mark, sizeof(*mark), "%s", name);
	return 0;
}

static bool is_marked(struct nl *rt, uint32_t index)
{
	struct marks m = {0};

	altname_each(rt, index, take_mark, &m);
	free(m.list);
	return m.len > 0;
}

/* The link with that mark. Kernels before 5.5, which know no alternative names, call the question
 * invalid: no link has one there, and only the table tells. */
static int find_marked(struct nl *rt, const char *name, struct link *out)
{
	int ret = link_get(rt, name, out);

	return ret == -EINVAL ? -ENODEV : ret;
}

/* A network may have more than one link, such as two bridges: then the others' marks are numbered.
 * More than so many are known to the table only. */
#define NETWORK_MARKS 4

static const char *numbered(const char *mark, int i, char out[static LOCALNET_MARK])
{
	if (!i)
		return mark;
	/* Networks are named in fewer digits than attachments: there is room. */
	snprintf(out, LOCALNET_MARK, "%.*s-%d", (int)(sizeof(MARK) - 1 + OWNER_NET), mark, i);
	return out;
}

/* Gives it to the link unless that has it: 0, -EEXIST when another one has it, or another -errno.
 */
static int mark_as(struct nl *rt, const struct localnet *l, const char *mark)
{
	struct link holder;
	int ret = find_marked(rt, mark, &holder);

	if (ret == -ENODEV) {
		ret = altname_add(rt, l->index, mark);
		if (ret != -EEXIST)
			return ret;
		/* Somebody was faster. */
		ret = find_marked(rt, mark, &holder);
	}
	return ret ? ret : holder.index == l->index ? 0 : -EEXIST;
}

static int mark(struct nl *rt, const struct localnet *l)
{
	char name[LOCALNET_MARK];
	int ret = -EEXIST;

	for (int i = 0; i < (l->alone ? 1 : NETWORK_MARKS) && ret == -EEXIST; i++)
		ret = mark_as(rt, l, numbered(l->mark, i, name));
	return ret == -EEXIST || ret == -EOPNOTSUPP || ret == -EINVAL || ret == -ENODEV ? 0 : ret;
}

static void unmark(struct nl *rt, const char *link)
{
	struct marks m = {0};
	struct link l;

	if (!link_get(rt, link, &l))
		altname_each(rt, l.index, take_mark, &m);
	for (size_t i = 0; i < m.len; i++)
		altname_del(rt, l.index, m.list[i]);
	free(m.list);
}

/* ---- the link ---- */

/* What we call the namespace of the record's sandbox; -1 when that cannot be told. */
static int32_t sandbox_nsid(struct nl *rt, const struct port_record *m)
{
	autoclose int fd = -1;
	int32_t id = -1;

	if (m->nsid >= 0 || !m->netns[0])
		return m->nsid;
	if (netns_open(m->netns, &fd, NULL) != NETNS_OK || netns_inode(fd) != m->netns_inode ||
		netns_id(rt, fd, &id))
		return -1;
	return id;
}

/* Whether nobody but the container is behind the link. That it is a veth says nothing: its other
 * end may be a bridge's port, or the node's way to the world. */
static bool leads_to_one(struct nl *rt, const struct link *l, const struct port_record *m)
{
	struct link owned;

	if (strcmp(l->kind, "veth") != 0 || l->peer_netnsid < 0)
		return false;
	if (l->peer_netnsid == sandbox_nsid(rt, m))
		return true;
	return !owned_link_get(rt, m->hash, &owned) && owned.index == l->index;
}

static bool guarded_by_us(struct nft *n, const char *link)
{
	struct nft_key key = layout_dev_key(link);
	char comment[NFT_COMMENT_SIZE];

	return !lookup_comment(n, LAYOUT_LOCALNET, &key, comment) && !strcmp(comment, OURS);
}

static int look(struct nft *n, struct nl *rt, const struct link *link, const struct port_record *m,
	struct localnet *l)
{
	struct owner_ref ref;
	int ret = is_set(link->name);

	if (ret < 0)
		return ret;
	memcpy(l->link, link->name, sizeof(l->link));
	l->index = link->index;
	l->alone = leads_to_one(rt, link, m);
	l->was_set = ret && !is_marked(rt, link->index) && !guarded_by_us(n, link->name);
	if (owner_parse(m->owner, &ref))
		snprintf(l->mark, sizeof(l->mark), MARK "%s", l->alone ? ref.hash : ref.net);
	return 0;
}

int localnet_look(struct nft *n, struct nl *rt, const char *name, const struct port_record *m,
	struct localnet *l)
{
	struct link link;
	int ret = link_get(rt, name, &link);

	*l = (struct localnet){0};
	return ret ? ret : look(n, rt, &link, m, l);
}

int localnet_find(struct nft *n, struct nl *rt, const struct ip *container,
	const struct port_record *m, struct localnet *l, struct err *e)
{
	struct link link;
	uint32_t index;
	int ret = route_lookup(rt, container, &index);

	*l = (struct localnet){0};
	/* What the kernel says where no route leads. */
	if (ret == -ENETUNREACH || ret == -EHOSTUNREACH || ret == -ESRCH || ret == -EACCES ||
		ret == -EINVAL || (!ret && index == LOOPBACK_INDEX))
		return 0;
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "cannot look up the way to the container");
	ret = link_get_index(rt, index, &link);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "cannot read the link to the container");
	ret = look(n, rt, &link, m, l);
	if (ret)
		return err_sys(
			e, -ret, ERR_SYSTEM, "unable to enable route_localnet: %s", link.name);
	return 0;
}

/* ---- setting ---- */

void localnet_put(struct nft *n, const struct localnet *l, bool new_table)
{
	/* Who takes a table away resets the setting before: if there is none, what was read with
	 * the table still there may have been ours. */
	bool found = l->was_set && (!new_table || is_set(l->link) == 1);
	struct nft_elem dev = {
		.key = layout_dev_key(l->link),
		.comment = found ? FOUND : OURS,
	};

	nft_elems_add(n, &port_table, LAYOUT_LOCALNET, &dev, 1);
}

int localnet_set(struct nl *rt, const struct localnet *l)
{
	int ret = l->was_set ? 0 : mark(rt, l);
	char path[SYSCTL];

	return ret ? ret : sysctl_ensure(sysctl_name(l->link, path), "1");
}

int localnet_check(struct nft *n, const struct localnet *l, struct err *e)
{
	struct nft_key dev = layout_dev_key(l->link);

	if (nft_elem_get(n, &port_table, LAYOUT_LOCALNET, &dev, NULL, NULL))
		return err_set(e, ERR_CHECK,
			"missing hostport rules: %s is not guarded against "
			"127.0.0.0/8 from outside",
			l->link);
	if (is_set(l->link) != 1)
		return err_set(e, ERR_CHECK, "route_localnet of %s is not set", l->link);
	return 0;
}

/* ---- resetting ---- */

bool localnet_release(struct nft *n, struct nl *rt, const struct port_record *m, bool reset)
{
	struct link link;
	int ret = m->dev[0] ? link_get(rt, m->dev, &link) : -EINVAL;

	if (ret == -ENODEV)
		return true;
	if (ret || !reset || !leads_to_one(rt, &link, m))
		return false;
	if (!guarded_by_us(n, m->dev))
		return true;
	if (write_setting(m->dev, "0"))
		return false;
	unmark(rt, m->dev);
	return true;
}

/* Should an ADD be faster, or have made a new table in between, it gets the setting back; and not
 * if that went, too, while we did so. */
static void restore_if_table(struct nft *n, const char *link)
{
	if (nft_table_get(n, &port_table))
		return;
	write_setting(link, "1");
	if (nft_table_get(n, &port_table) == -ENOENT)
		write_setting(link, "0");
}

void localnet_forget(struct nft *n, struct nl *rt, const char *hash)
{
	char name[LOCALNET_MARK];
	struct link link;
	struct nft_elem dev;

	snprintf(name, sizeof(name), MARK "%s", hash);
	if (find_marked(rt, name, &link) || write_setting(link.name, "0"))
		return;
	unmark(rt, link.name);
	dev = (struct nft_elem){.key = layout_dev_key(link.name)};
	nft_begin(n, 0);
	nft_elems_del(n, &port_table, LAYOUT_LOCALNET, &dev, 1);
	nft_commit(n, NULL);
}

static int forget_link(struct nft *n, struct nl *rt, const char *mark)
{
	struct link link;
	int ret = find_marked(rt, mark, &link);

	if (ret)
		return ret == -ENODEV ? 0 : ret;
	ret = write_setting(link.name, "0");
	if (ret)
		return ret;
	if (nft_table_get(n, &port_table) == -ENOENT)
		unmark(rt, link.name);
	restore_if_table(n, link.name);
	return 0;
}

/* What the marks of the network tell of, after the table went in some other way. */
static int forget_network(struct nft *n, struct nl *rt, const char *net)
{
	char mark[LOCALNET_MARK], name[LOCALNET_MARK];
	int ret = 0;

	snprintf(mark, sizeof(mark), MARK "%s", net);
	for (int i = 0; i < NETWORK_MARKS; i++) {
		int one = forget_link(n, rt, numbered(mark, i, name));

		ret = one ? one : ret;
	}
	return ret;
}

struct devs {
	char (*list)[IFNAMSIZ];
	size_t len;
	bool all; /* also those that were set before us */
};

static int take_dev(const struct nft_elem_info *el, void *arg)
{
	struct devs *d = arg;
	char(*dev)[IFNAMSIZ];

	if ((!d->all && strcmp(el->comment, OURS) != 0) || el->key_len != IFNAMSIZ ||
		memchr(el->key, '/', IFNAMSIZ) || el->key[IFNAMSIZ - 1])
		return 0;
	dev = vec_add(d->list, d->len);
	if (!dev)
		return -ENOMEM;
	memcpy(*dev, el->key, IFNAMSIZ);
	return 0;
}

static void forget_devs(void *arg)
{
	((struct devs *)arg)->len = 0;
}

/* Deletes the table; the kernel decides in one step whether it serves nobody. The links'
 * route_localnet goes before the guard does: a process killed in between leaves a table that the
 * next DEL or GC finds, not a link that lets 127.0.0.0/8 in. */
static int remove_table(struct nft *n, struct nl *rt, const struct devs *devs)
{
	int ret = 0;

	for (size_t i = 0; i < devs->len; i++) {
		int one = write_setting(devs->list[i], "0");

		ret = one ? one : ret;
	}
	if (ret)
		return ret;
	nft_begin(n, 0);
	nft_set_del_empty(n, &port_table, LAYOUT_OWNERS);
	nft_table_del(n, &port_table);
	ret = nft_commit(n, NULL);
	for (size_t i = 0; i < devs->len; i++) {
		if (!ret)
			unmark(rt, devs->list[i]);
		restore_if_table(n, devs->list[i]);
	}
	return nft_raced(ret) ? 0 : ret;
}

int localnet_sweep(struct nft *n, struct nl *rt, const char *net)
{
	struct devs devs = {0};
	/* Only spares us refusals. */
	int ret = nft_set_is_empty(n, &port_table, LAYOUT_OWNERS);

	if (ret == 1) {
		ret = nft_elems(n, &port_table, LAYOUT_LOCALNET, take_dev, forget_devs, &devs);
		if (!ret)
			ret = remove_table(n, rt, &devs);
		free(devs.list);
	}
	return ret == -ENOENT ? forget_network(n, rt, net) : ret;
}

int localnet_prune(struct nft *n, struct nl *rt)
{
	struct devs devs = {.all = true};
	struct link link;
	uint32_t genid;
	int ret = nft_genid(n, &genid);

	if (!ret)
		ret = nft_elems(n, &port_table, LAYOUT_LOCALNET, take_dev, forget_devs, &devs);
	/* A link that comes back under its name gets its guard in a transaction that changes the
	 * number. */
	nft_begin(n, genid);
	for (size_t i = 0; i < devs.len && !ret; i++) {
		struct nft_elem dev = {.key = layout_dev_key(devs.list[i])};

		if (link_get(rt, devs.list[i], &link) == -ENODEV)
			nft_elems_del(n, &port_table, LAYOUT_LOCALNET, &dev, 1);
	}
	ret = ret ? ret : nft_commit(n, NULL);
	free(devs.list);
	return nft_raced(ret) ? 0 : ret;
}
