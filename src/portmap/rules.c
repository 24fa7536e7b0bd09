#include "portmap/rules.h"

#include "base/cleanup.h"
#include "filter/change.h"
#include "netlink/nftmap.h"
#include "netlink/sysctl.h"
#include "portmap/layout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *portrules_sysctl(const char *dev, char out[static PORTRULES_SYSCTL])
{
	snprintf(out, PORTRULES_SYSCTL, "net/ipv4/conf/%s/route_localnet", dev);
	return out;
}

/* ---- reading ---- */

static int copy_comment(const struct nft_elem_info *el, void *arg)
{
	snprintf(arg, NFT_COMMENT_SIZE, "%s", el->comment);
	return 0;
}

int portrules_comment(struct nft *n, const char *set, const struct nft_key *key,
	char out[static NFT_COMMENT_SIZE])
{
	out[0] = '\0';
	return nft_elem_get(n, &port_table, set, key, copy_comment, out);
}

static int read_line(struct nft *n, const char *hash, size_t index, struct portmaps *m)
{
	struct nft_key key = portlayout_owner_key(hash, index);
	char line[NFT_COMMENT_SIZE];
	int ret = portrules_comment(n, PORT_OWNERS, &key, line);

	return ret ? ret : portmaps_read(m, line);
}

int portrules_load(struct nft *n, const char *hash, struct portmaps *m)
{
	bool found = false;
	size_t last = 1;
	int ret = -ENOENT;

	*m = (struct portmaps){0};
	snprintf(m->hash, sizeof(m->hash), "%s", hash);
	/* What somebody took out by hand is left out: the rest is still worth having. Without the
	 * line that says how many there are, they end where one is missing. */
	for (size_t i = 0; i < 2 || i < m->records || (!m->records && i <= last + 1); i++) {
		ret = read_line(n, hash, i, m);
		if (ret && ret != -ENOENT)
			break;
		if (!ret && i > last)
			last = i;
		found |= !ret;
		ret = found ? 0 : -ENOENT;
	}
	if (!m->records)
		m->records = last + 1;
	if (!ret) {
		autoerr ignored = {0};

		if (portmaps_sort(m, &ignored))
			m->len = 0;
		return 0;
	}
	portmaps_free(m);
	return ret;
}

/* ---- removing ---- */

int portrules_is_ours(struct port_removal *r, const char *set, const struct nft_key *key)
{
	char comment[NFT_COMMENT_SIZE];
	struct owner_ref ref;
	int ret = portrules_comment(r->n, set, key, comment);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	return owner_parse(comment, &ref) && !strcmp(ref.hash, r->was->hash);
}

static int remove_place(struct port_place *p, void *arg)
{
	struct port_removal *r = arg;
	int ours = r->careful ? portrules_is_ours(r, p->set, &p->elem.key) : 1;

	if (ours > 0)
		nft_elems_del(r->n, &port_table, p->set, &p->elem, 1);
	return ours < 0 ? ours : 0;
}

/* An element of our own sets, if it is there. */
static int remove_elem(struct port_removal *r, const char *set, const struct nft_elem *el)
{
	int ret = r->careful ? nft_elem_get(r->n, &port_table, set, &el->key, NULL, NULL) : 0;

	if (!ret)
		nft_elems_del(r->n, &port_table, set, el, 1);
	return ret == -ENOENT ? 0 : ret;
}

static int remove_gate(struct nft *n, const char *hash, bool careful)
{
	char gate[PORT_GATE];
	int ret = 0;

	portlayout_gate_name(hash, gate);
	if (careful)
		ret = nft_chain_get(n, &port_table, gate, NULL, NULL);
	if (!ret)
		nft_chain_del(n, &port_table, gate);
	return ret == -ENOENT ? 0 : ret;
}

/* The record goes first and must be there: of two that remove the same owner, one fails here and
 * nothing that a third put in its place meanwhile is touched. */
int portrules_put_removal(struct port_removal *r)
{
	int ret = 0;

	for (size_t i = 0; i < r->was->records && !ret; i++) {
		struct nft_elem line = {.key = portlayout_owner_key(r->was->hash, i)};

		ret = remove_elem(r, PORT_OWNERS, &line);
	}
	if (!ret && r->was->dev[0]) {
		struct nft_elem dev = {.key = portlayout_dev_key(r->was->dev)};

		ret = remove_elem(r, PORT_LOCALNET, &dev);
	}
	if (!ret)
		ret = portlayout_each(r->was, remove_place, r);
	if (!ret && (r->was->gates[0] || r->was->gates[1]))
		ret = remove_gate(r->n, r->was->hash, r->careful);
	return ret;
}

/* ---- the end of the table ---- */

struct devs {
	char (*list)[IFNAMSIZ];
	size_t len;
};

static int take_dev(const struct nft_elem_info *el, void *arg)
{
	struct devs *d = arg;
	void *p;

	if (strcmp(el->comment, LOCALNET_OURS) != 0 || el->key_len != IFNAMSIZ ||
		memchr(el->key, '/', IFNAMSIZ) || el->key[IFNAMSIZ - 1])
		return 0;
	p = reallocarray(d->list, d->len + 1, sizeof(*d->list));
	if (!p)
		return -ENOMEM;
	d->list = p;
	memcpy(d->list[d->len++], el->key, IFNAMSIZ);
	return 0;
}

static void forget_devs(void *arg)
{
	((struct devs *)arg)->len = 0;
}

/* Links that are gone do not count. */
static int set_localnet(const struct devs *d, const char *value)
{
	char path[PORTRULES_SYSCTL];
	int ret = 0;

	for (size_t i = 0; i < d->len; i++) {
		int one = sysctl_ensure(portrules_sysctl(d->list[i], path), value);

		if (one && one != -ENOENT)
			ret = one;
	}
	return ret;
}

/* Deletes the table; the kernel decides in one step whether it serves nobody. The links'
 * route_localnet goes before the guard does: a process killed in between leaves a table that the
 * next DEL or GC finds, not a link that lets 127.0.0.0/8 in. Should an ADD be faster, or have made
 * a new table in between, it gets the setting back. */
static int remove_table(struct nft *n, const struct devs *devs)
{
	int ret = set_localnet(devs, "0");

	if (ret)
		return ret;
	nft_begin(n, 0);
	nft_set_del_empty(n, &port_table, PORT_OWNERS);
	nft_table_del(n, &port_table);
	ret = nft_commit(n, NULL);
	/* Still there or there again, unless it went while we said so. */
	if (devs->len && !nft_table_get(n, &port_table)) {
		set_localnet(devs, "1");
		if (nft_table_get(n, &port_table) == -ENOENT)
			set_localnet(devs, "0");
	}
	return nft_raced(ret) ? 0 : ret;
}

int portrules_sweep(struct nft *n)
{
	struct devs devs = {0};
	/* Only spares us refusals. */
	int ret = nft_set_is_empty(n, &port_table, PORT_OWNERS);

	if (ret == 1) {
		ret = nft_elems(n, &port_table, PORT_LOCALNET, take_dev, forget_devs, &devs);
		if (!ret)
			ret = remove_table(n, &devs);
		free(devs.list);
	}
	return ret == -ENOENT ? 0 : ret;
}

int portrules_remove_gate(struct nft *n, const char *hash)
{
	int ret;

	nft_begin(n, 0);
	ret = remove_gate(n, hash, true);
	if (ret)
		return ret;
	ret = nft_commit(n, NULL);
	return nft_raced(ret) ? 0 : ret;
}

/* One look and one transaction. -ENOENT from the look: nothing is recorded of this owner. */
static int del_once(struct nft *n, const char *hash, bool careful, struct portmaps *was,
	bool *recorded, struct nft_failure *f)
{
	autoportmaps m = {0};
	struct port_removal r = {n, &m, careful};
	int ret = portrules_load(n, hash, &m);

	*recorded = ret != -ENOENT;
	if (ret)
		return *recorded ? ret : 0;
	nft_begin(n, 0);
	ret = portrules_put_removal(&r);
	ret = ret ? ret : nft_commit(n, f);
	if (!ret && was) {
		*was = m;
		m = (struct portmaps){0};
	}
	return ret;
}

int portrules_del(struct nft *n, const char *hash, struct portmaps *was, struct err *e)
{
	struct change c = {.n = n};
	bool recorded = false;
	int ret = 0;

	if (was)
		*was = (struct portmaps){0};
	while (change_again(&c, &ret))
		ret = del_once(n, hash, c.attempt > 1, was, &recorded, &c.failure);
	if (!ret && !recorded)
		ret = portrules_remove_gate(n, hash);
	if (ret)
		return change_failed(
			e, ret, &c.failure, ERR_SYSTEM, "cannot remove the port mappings");
	ret = portrules_sweep(n);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "cannot remove the table of the port mappings")
		   : 0;
}

/* ---- listing ---- */

struct listing {
	int (*fn)(const struct owner_ref *ref, void *arg);
	void *arg;
};

static int take_owner(const struct nft_elem_info *el, void *arg)
{
	const struct listing *l = arg;
	struct owner_ref ref;

	return owner_parse(el->comment, &ref) ? l->fn(&ref, l->arg) : 0;
}

static int take_gate(const struct nft_chain_info *c, void *arg)
{
	const struct listing *l = arg;
	struct owner_ref ref;

	return !strncmp(c->name, "gate_", 5) && owner_parse(c->comment, &ref) ? l->fn(&ref, l->arg)
									      : 0;
}

int portrules_owners(struct nft *n, int (*fn)(const struct owner_ref *ref, void *arg), void *arg)
{
	struct listing l = {fn, arg};
	int ret = nft_elems(n, &port_table, PORT_OWNERS, take_owner, NULL, &l);

	if (!ret)
		ret = nft_chains(n, &port_table, take_gate, NULL, &l);
	return ret == -ENOENT ? 0 : ret;
}
