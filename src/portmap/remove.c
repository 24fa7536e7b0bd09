#include "portmap/remove.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "filter/change.h"
#include "netlink/nftmap.h"
#include "portmap/layout.h"
#include "portmap/lookup.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>

/* ---- one attachment ---- */

int remove_is_owners(struct removal *r, const char *set, const struct nft_key *key)
{
	struct owner_ref ref;
	int ret = lookup_owner(r->n, set, key, &ref);

	return ret == 1 ? !strcmp(ref.hash, r->was->hash) : ret == -ENOENT ? 0 : ret;
}

static int remove_place(struct port_place *p, void *arg)
{
	struct removal *r = arg;
	int ret = r->careful ? remove_is_owners(r, p->set, &p->elem.key) : 1;

	if (ret > 0)
		nft_elems_del(r->n, &port_table, p->set, &p->elem, 1);
	return ret < 0 ? ret : 0;
}

/* An element that needs no owner: of a set in which each key is one's alone. */
static int remove_elem(struct removal *r, const char *set, const struct nft_elem *el)
{
	int ret = r->careful ? nft_elem_get(r->n, &port_table, set, &el->key, NULL, NULL) : 0;

	if (!ret)
		nft_elems_del(r->n, &port_table, set, el, 1);
	return ret == -ENOENT ? 0 : ret;
}

/* The chain of a record of the old form. */
static int remove_gate(struct removal *r)
{
	char gate[LAYOUT_GATE];
	int ret = 0;

	layout_gate_name(r->was->hash, gate);
	if (r->careful)
		ret = nft_chain_get(r->n, &port_table, gate, NULL, NULL);
	if (!ret)
		nft_chain_del(r->n, &port_table, gate);
	return ret == -ENOENT ? 0 : ret;
}

/* The record goes first and must be there: of two that remove the same owner, one fails here and
 * nothing that a third put in its place meanwhile is touched. */
int remove_put(struct removal *r)
{
	int ret = 0;

	for (size_t i = 0; i < r->was->records && !ret; i++) {
		struct nft_elem line = {.key = layout_owner_key(r->was->hash, i)};

		ret = remove_elem(r, LAYOUT_OWNERS, &line);
	}
	if (!ret && r->drop_dev) {
		struct nft_elem dev = {.key = layout_dev_key(r->was->dev)};

		ret = remove_elem(r, LAYOUT_LOCALNET, &dev);
	}
	if (!ret)
		ret = layout_each(r->was, remove_place, r);
	if (!ret && (r->was->gates[0] || r->was->gates[1]))
		ret = remove_gate(r);
	return ret;
}

int remove_put_record(struct nft *n, struct port_record *m, int *first)
{
	autofree record_line *text = record_text(m);
	struct nft_elem line = {0};

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < m->records; i++) {
		int index;

		line.key = layout_owner_key(m->hash, i);
		line.comment = text[i];
		index = nft_elem_create(n, &port_table, LAYOUT_OWNERS, &line);
		if (!i && first)
			*first = index;
	}
	return 0;
}

/* ---- conditions that nobody has any more ---- */

struct rules {
	const char *when;
	struct nft_handles handles;
};

static int take_rule(const struct nft_rule_info *rule, void *arg)
{
	struct rules *r = arg;

	if (!strcmp(rule->comment, r->when))
		nft_handles_put(&r->handles, rule->handle);
	return 0;
}

static void forget_rules(void *arg)
{
	((struct rules *)arg)->handles.len = 0;
}

/* Both maps and the rules that look into them; the kernel decides whether the maps are empty.
 * Somebody who puts an element into one meanwhile wins, or makes everything anew. */
static int remove_conditions(struct nft *n, uint8_t family, const char *when)
{
	char map[2][LAYOUT_MAP];
	int ret = 1;

	for (enum layout_map w = LAYOUT_ANY; w <= LAYOUT_ONE && ret == 1; w++)
		ret = nft_set_is_empty(n, &port_table, layout_map_name(family, w, when, map[w]));
	if (ret != 1)
		return ret == -ENOENT ? 0 : ret;
	nft_begin(n, 0);
	for (enum layout_map w = LAYOUT_ANY; w <= LAYOUT_ONE; w++) {
		const char *chain = layout_when_chain(family, w);
		struct rules r = {.when = when};

		ret = nft_rules(n, &port_table, chain, take_rule, forget_rules, &r);
		if (!ret)
			nft_rules_del(n, &port_table, chain, &r.handles);
		nft_handles_free(&r.handles);
		if (ret && ret != -ENOENT)
			return ret;
		nft_set_del_empty(n, &port_table, map[w]);
	}
	ret = nft_commit(n, NULL);
	return nft_raced(ret) ? 0 : ret;
}

struct seen {
	char (*list)[PORT_CONDITIONS + 1];
	size_t len;
};

static int take_when(const struct nft_rule_info *r, void *arg)
{
	struct seen *seen = arg;
	char(*when)[PORT_CONDITIONS + 1];

	if (strlen(r->comment) != PORT_CONDITIONS)
		return 0;
	when = vec_add(seen->list, seen->len);
	if (!when)
		return -ENOMEM;
	memcpy(*when, r->comment, sizeof(*when));
	return 0;
}

static void forget_seen(void *arg)
{
	((struct seen *)arg)->len = 0;
}

static int sweep_conditions(struct nft *n, uint8_t family)
{
	struct seen seen = {0};
	int ret = nft_rules(n, &port_table, layout_when_chain(family, LAYOUT_ANY), take_when,
		forget_seen, &seen);

	for (size_t i = 0; i < seen.len && !ret; i++)
		ret = remove_conditions(n, family, seen.list[i]);
	free(seen.list);
	return ret == -ENOENT ? 0 : ret;
}

/* ---- DEL ---- */

/* Reads the record; one with heirs again, after the number of the rule set was asked, so that
 * nothing that is read of them may have changed when the batch is committed. */
static int load(struct change *c, const char *hash, struct port_record *m, uint32_t *genid)
{
	int ret = lookup_record(c->n, hash, m);

	*genid = 0;
	if (ret || !m->heirs_len || c->attempt > CHANGE_PATIENCE)
		return ret;
	record_free(m);
	ret = nft_genid(c->n, genid);
	return ret ? ret : lookup_record(c->n, hash, m);
}

struct deletion {
	struct change c;
	struct nl *rt;
	const char *hash;
	bool recorded;
	bool no_heirs; /* what was put for them was refused: they go without */
	struct port_record was;
	struct handover h;
};

/* One look and one transaction. */
static int remove_once(struct deletion *d)
{
	struct nft *n = d->c.n;
	struct removal r = {.n = n, .was = &d->was, .careful = d->c.attempt > 1};
	uint32_t genid;
	int ret;

	record_free(&d->was);
	handover_free(&d->h);
	ret = load(&d->c, d->hash, &d->was, &genid);
	d->recorded = ret != -ENOENT;
	if (ret)
		return d->recorded ? ret : 0;
	r.drop_dev = localnet_release(n, d->rt, &d->was, true);
	nft_begin(n, genid);
	d->h.first = INT_MAX;
	ret = remove_put(&r);
	if (!ret && !d->no_heirs)
		ret = heirs_put(n, d->rt, &d->was, NULL, &d->h);
	ret = ret ? ret : nft_commit(n, &d->c.failure);
	d->no_heirs |= ret && d->c.failure.index >= d->h.first;
	return ret;
}

static void remove_one(struct deletion *d, struct err *e)
{
	int ret = 0;

	while (change_again(&d->c, &ret))
		ret = remove_once(d);
	if (ret) {
		record_free(&d->was);
		change_failed(e, ret, &d->c.failure, ERR_SYSTEM, "cannot remove the port mappings");
		return;
	}
	if (!d->recorded)
		localnet_forget(d->c.n, d->rt, d->hash);
	ret = heirs_settle(d->rt, &d->h);
	if (ret)
		err_sys(e, -ret, ERR_SYSTEM,
			"cannot enable route_localnet for the container's other network");
}

static int sweep(struct nft *n, struct nl *rt, const char *net, struct err *e)
{
	int ret = localnet_sweep(n, rt, net);

	return ret ? err_sys(e, -ret, ERR_SYSTEM, "cannot remove the table of the port mappings")
		   : 0;
}

int ports_remove(struct nft *n, struct nl *rt, const char *hash, const char *net,
	struct port_record *was, struct err *e)
{
	struct deletion d = {.c = {.n = n}, .rt = rt, .hash = hash};
	int ret = 0;

	remove_one(&d, e);
	if (!e->set)
		sweep(n, rt, net, e);
	for (size_t i = 0; i < array_len(d.was.when) && !ret && !e->set; i++)
		if (d.was.when[i][0])
			ret = remove_conditions(n, i ? AF_INET6 : AF_INET, d.was.when[i]);
	if (ret)
		err_sys(e, -ret, ERR_SYSTEM, "cannot remove conditions of port mappings");
	handover_free(&d.h);
	if (was)
		*was = d.was;
	else
		record_free(&d.was);
	return e->set ? -1 : 0;
}

int ports_sweep(struct nft *n, struct nl *rt, const char *net)
{
	int ret = localnet_sweep(n, rt, net);

	if (!ret)
		ret = sweep_conditions(n, AF_INET);
	if (!ret)
		ret = sweep_conditions(n, AF_INET6);
	return ret ? ret : localnet_prune(n, rt);
}
