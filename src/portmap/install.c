#include "portmap/install.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "filter/change.h"
#include "portmap/heirs.h"
#include "portmap/holder.h"
#include "portmap/layout.h"
#include "portmap/lookup.h"
#include "portmap/remove.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

typedef char owner_hash[OWNER_HASH + 1];

struct hashes {
	owner_hash *list;
	size_t len;
};

struct attempt {
	struct change c;
	struct nft *n;
	struct nl *rt;
	struct port_record *m;
	const struct port_extras *x;
	/* What is missing of the shared parts. */
	bool table;
	bool masq[PORT_SOURCES];
	bool when[2];
	bool upgrade; /* the table is one of the versions before 0.2, and there are conditions */
	bool replace; /* there is a record of this owner */
	bool stray;   /* there is, but without its first line */
	bool careful;
	struct hashes evict;   /* owners that have to go */
	struct hashes holders; /* other attachments of the container that have some of the ports */
	struct handover handover;
	/* Indexes of messages: the first line of the record, the first element. */
	int owner_at;
	int places_at;
};

static bool has_hash(const struct hashes *h, const char *hash)
{
	for (size_t i = 0; i < h->len; i++)
		if (!strcmp(h->list[i], hash))
			return true;
	return false;
}

static int put_hash(struct hashes *h, const char *hash)
{
	owner_hash *last = vec_add(h->list, h->len);

	if (last)
		snprintf(*last, sizeof(*last), "%s", hash);
	return last ? 0 : -ENOMEM;
}

/* The last one takes its place. */
static void drop_hash(struct hashes *h, size_t i)
{
	h->len--;
	memmove(h->list[i], h->list[h->len], sizeof(*h->list));
}

/* ---- what is there ---- */

static bool uses_conditions(const struct attempt *a, size_t family)
{
	for (size_t i = 0; i < a->m->len; i++)
		if ((a->m->list[i].addr.family == AF_INET6) == family)
			return a->x->conds[family]->id[0];
	return false;
}

/* 1 when it is not there, 0 when it is, or -errno. */
static int is_missing(int ret)
{
	return ret == -ENOENT ? 1 : ret;
}

static int look_for_conditions(struct attempt *a)
{
	char name[LAYOUT_MAP];
	int ret = 0;

	a->upgrade = false;
	for (size_t i = 0; i < 2 && ret >= 0; i++) {
		const struct port_conds *c = a->x->conds[i];

		a->when[i] = uses_conditions(a, i);
		if (!a->when[i] || a->table)
			continue;
		ret = is_missing(nft_set_get(
			a->n, &port_table, layout_map_name(c->family, LAYOUT_ANY, c->id, name)));
		a->when[i] = ret == 1;
		if (ret != 1)
			continue;
		ret = is_missing(nft_chain_get(
			a->n, &port_table, layout_when_chain(c->family, LAYOUT_ANY), NULL, NULL));
		a->upgrade |= ret == 1;
	}
	return ret < 0 ? ret : 0;
}

/* Looks at what is there: a refused transaction costs a grace period, some milliseconds, a question
 * microseconds. 0 or -errno. */
static int look(struct attempt *a)
{
	struct nft_key owner = layout_owner_key(a->m->hash, 0);
	char name[LAYOUT_MASQ];
	int ret = is_missing(nft_elem_get(a->n, &port_table, LAYOUT_OWNERS, &owner, NULL, NULL));

	a->replace = ret == 0 || a->stray;
	if (ret == 1)
		ret = is_missing(nft_table_get(a->n, &port_table));
	a->table = ret == 1;
	for (size_t i = 0; i < a->m->from_len && !a->table && ret >= 0; i++) {
		ret = is_missing(
			nft_set_get(a->n, &port_table, layout_masq_name(&a->m->from[i], name)));
		a->masq[i] = ret == 1;
	}
	return ret < 0 ? ret : look_for_conditions(a);
}

/* ---- the transaction ---- */

static int put_place(struct port_place *p, void *arg)
{
	struct attempt *a = arg;
	int index = nft_elem_create(a->n, &port_table, p->set, &p->elem);

	if (a->places_at == INT_MAX)
		a->places_at = index;
	return 0;
}

/* One that has to go. What it yielded or others wait for goes as well: they are of its sandbox.
 * -ENOENT: it is gone by itself meanwhile. */
static int put_eviction(struct attempt *a, const char *hash)
{
	autorecord was = {0};
	struct removal r = {.n = a->n, .was = &was, .careful = a->careful};
	int ret = lookup_record(a->n, hash, &was);

	if (ret)
		return ret;
	/* It may live still: then its link stays guarded. */
	r.drop_dev = localnet_release(a->n, a->rt, &was, false);
	return remove_put(&r);
}

/* Those that are gone are forgotten: where many sandboxes of one pod come at once, each attempt
 * would ask for all that there have been. */
static int put_evictions(struct attempt *a)
{
	int ret = 0;

	for (size_t i = 0; i < a->evict.len && !ret;) {
		ret = put_eviction(a, a->evict.list[i]);
		if (ret == -ENOENT) {
			drop_hash(&a->evict, i);
			ret = 0;
		} else {
			i++;
		}
	}
	return ret;
}

/* What this attachment had before. Its heirs stay, and get what it does not want any more. */
static int put_replacement(struct attempt *a)
{
	autorecord was = {0};
	struct removal r = {.n = a->n, .was = &was, .careful = a->careful};
	int ret = lookup_record(a->n, a->m->hash, &was);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	r.drop_dev = strcmp(was.dev, a->x->localnet.link) != 0 &&
		     localnet_release(a->n, a->rt, &was, true);
	for (size_t i = 0; i < was.heirs_len && !ret; i++)
		ret = record_add_heir(a->m, was.heirs[i]) ? -ENOMEM : 0;
	ret = ret ? ret : remove_put(&r);
	return ret ? ret : heirs_put(a->n, a->rt, &was, a->m, &a->handover);
}

static bool holds(const struct port_record *holder, const struct attempt *a, size_t i)
{
	const struct port_mapping *p = &a->m->list[i];

	for (size_t j = 0; j < holder->len; j++)
		if (!holder->list[j].yielded && record_same_claim(&holder->list[j], p) &&
			!strcmp(record_when(holder, &holder->list[j]), record_when(a->m, p)))
			return true;
	return false;
}

/* Yields what the container's other attachments have now, and enters us as their heir. */
static int put_yields(struct attempt *a)
{
	int ret = 0;

	for (size_t i = 0; i < a->m->len; i++)
		a->m->list[i].yielded = false;
	for (size_t i = 0; i < a->holders.len && !ret; i++) {
		autorecord holder = {0};
		bool any = false;

		ret = lookup_record(a->n, a->holders.list[i], &holder);
		for (size_t j = 0; j < a->m->len && !ret; j++)
			if (!a->m->list[j].yielded && holds(&holder, a, j))
				any = a->m->list[j].yielded = true;
		if (any)
			ret = heirs_enter(a->n, &holder, a->m->hash);
		ret = ret == -ENOENT ? 0 : ret;
	}
	return ret;
}

static void put_plumbing(struct attempt *a)
{
	if (a->table)
		layout_put_table(a->n);
	layout_put_masqs(a->n, a->m, a->table ? NULL : a->masq);
	if (a->upgrade)
		layout_put_upgrade(a->n);
	for (size_t i = 0; i < 2; i++)
		if (a->when[i])
			layout_put_conditions(a->n, a->x->conds[i]);
}

static bool needs_localnet(const struct attempt *a)
{
	return a->x->localnet.link[0] && record_maps(a->m, AF_INET);
}

/* The link is recorded as guarded for us alone, or as the one to guard when yielded ports come
 * back. */
static void note_link(struct attempt *a)
{
	const struct localnet *l = &a->x->localnet;
	bool yielded = false;

	for (size_t i = 0; i < a->m->len; i++)
		yielded |= a->m->list[i].yielded && a->m->list[i].addr.family == AF_INET;
	snprintf(a->m->dev, sizeof(a->m->dev), "%s", l->alone && needs_localnet(a) ? l->link : "");
	snprintf(a->m->via, sizeof(a->m->via), "%s", yielded ? l->link : "");
}

/* With more than one attachment concerned nothing may change between look and commit, as long as
 * there is hope for that. */
static int begin(struct attempt *a)
{
	uint32_t genid = 0;
	int ret = 0;

	if ((a->holders.len || a->replace) && a->c.attempt <= CHANGE_PATIENCE)
		ret = nft_genid(a->n, &genid);
	nft_begin(a->n, genid);
	a->owner_at = a->places_at = INT_MAX;
	a->m->heirs_len = 0;
	handover_free(&a->handover);
	return ret;
}

static int try_add(struct attempt *a)
{
	int ret = begin(a);

	put_plumbing(a);
	ret = ret ? ret : put_evictions(a);
	ret = ret ? ret : put_yields(a);
	if (!ret && a->replace)
		ret = put_replacement(a);
	note_link(a);
	ret = ret ? ret : remove_put_record(a->n, a->m, &a->owner_at);
	ret = ret ? ret : layout_each(a->m, put_place, a);
	if (!ret && needs_localnet(a))
		localnet_put(a->n, &a->x->localnet, a->table);
	return ret ? ret : nft_commit(a->n, &a->c.failure);
}

/* ---- refused ---- */

struct nth {
	int left;
	struct port_place *out;
};

static int take_nth(struct port_place *p, void *arg)
{
	struct nth *n = arg;

	if (n->left--)
		return 0;
	*n->out = *p;
	if (p->set == p->name)
		n->out->set = n->out->name;
	return 1;
}

/* The element is in the way and no record tells of it. Deletes it, unless it changes meanwhile. */
static int remove_stray(struct attempt *a, const struct port_place *p, const char *hash)
{
	struct port_record owner = {0};
	struct removal r = {.n = a->n, .was = &owner};
	uint32_t genid;
	int ret = nft_genid(a->n, &genid);

	if (ret)
		return ret;
	snprintf(owner.hash, sizeof(owner.hash), "%s", hash);
	ret = remove_is_owners(&r, p->set, &p->elem.key);
	if (ret <= 0)
		return ret;
	nft_begin(a->n, genid);
	nft_elems_del(a->n, &port_table, p->set, &p->elem, 1);
	ret = nft_commit(a->n, NULL);
	return nft_raced(ret) ? 0 : ret;
}

static int evict(struct attempt *a, const struct port_place *p, const char *hash)
{
	/* Once more means that its record does not tell of this element. */
	return has_hash(&a->evict, hash) ? remove_stray(a, p, hash) : put_hash(&a->evict, hash);
}

/* A conflict with an attachment that has a record. 0: try again. */
static int face(struct attempt *a, const struct port_place *p, const struct port_record *holder,
	struct err *e)
{
	bool same_netns = holder->netns_inode && holder->netns_inode == a->m->netns_inode;
	bool same_container = record_of_container(holder, a->x->container);
	enum holder_state state;

	/* The second network of the same container. */
	if (same_netns && same_container && p->claim && !has_hash(&a->holders, holder->hash))
		return put_hash(&a->holders, holder->hash);
	/* The sandbox is ours now: its former container is gone. */
	if (same_netns && !same_container && !strcmp(holder->netns, a->m->netns))
		return evict(a, p, holder->hash);
	/* The pod has a new sandbox, the old one is about to be stopped. */
	if (!same_container && record_same_pod(holder, a->m))
		return evict(a, p, holder->hash);
	state = holder_state(a->rt, holder, a->m);
	if (state == HOLDER_GONE)
		return evict(a, p, holder->hash);
	return holder_conflict(p, holder, state, e);
}

/* Reads a record as it was at one moment. It is read line by line: of one that somebody removes
 * meanwhile the first lines may be all that is seen, and a sandbox that is dead, or of the same
 * pod, would be a living stranger. 0, -ENOENT, -EAGAIN when the rules never rest, or -errno. */
static int read_holder(struct nft *n, const char *hash, struct port_record *holder)
{
	for (int i = 0; i < CHANGE_PATIENCE; i++) {
		uint32_t before, after;
		int ret = nft_genid(n, &before), found;

		if (ret)
			return ret;
		found = lookup_record(n, hash, holder);
		ret = nft_genid(n, &after);
		if (!ret && before == after)
			return found;
		record_free(holder);
		if (ret)
			return ret;
	}
	return -EAGAIN;
}

/* Element number i is taken: by whom, and what follows from it. 0: try again. */
static int conflict(struct attempt *a, int i, struct err *e)
{
	struct port_place p = {0};
	struct nth nth = {i, &p};
	autorecord holder = {0};
	struct owner_ref ref;
	int ret;

	if (i < 0 || layout_each(a->m, take_nth, &nth) != 1)
		return 0;
	ret = lookup_owner(a->n, p.set, &p.elem.key, &ref);
	if (!ret)
		return err_set(e, ERR_CONFLICT,
			"host port %u/%s is mapped by somebody else in table inet %s",
			p.m->host_port, portproto_name(p.m->proto), port_table.name);
	if (ret < 0)
		return ret == -ENOENT ? 0 : ret;
	ret = read_holder(a->n, ref.hash, &holder);
	if (ret == -ENOENT || (!ret && !strcmp(ref.hash, a->m->hash)))
		return remove_stray(a, &p, ref.hash);
	if (ret == -EAGAIN)
		return 0;
	return ret ? ret : face(a, &p, &holder, e);
}

/* Learns from a refusal. 0 when another attempt makes sense, else -errno, or -1 with e set. */
static int learn(struct attempt *a, int refusal, struct err *e)
{
	int index = a->c.failure.index;
	/* Kernels before 5.7 said EBUSY for an element with other data. */
	bool taken = refusal == -EEXIST || (refusal == -EBUSY && index >= a->owner_at);

	/* An element of ours is there already, of whomever. */
	if (taken && index >= a->places_at)
		return conflict(a, index - a->places_at, e);
	/* A line of our record behind the first, which look() asked for. */
	if (taken && index > a->owner_at) {
		a->stray = true;
		return 0;
	}
	/* Something went, or came, since it was looked at: look at each thing. */
	if (nft_raced(refusal)) {
		a->careful = true;
		return 0;
	}
	return refusal;
}

/* Conditions in nft's syntax need a table for libnftables to write into, in a transaction before
 * the one that leads anything there. 0, -errno, or -1 with e set. */
static int prepare(struct attempt *a, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; i < 2 && !ret; i++) {
		if (!a->when[i] || !a->x->conds[i]->nft)
			continue;
		if (a->table || a->upgrade) {
			nft_begin(a->n, 0);
			if (a->table)
				layout_put_table(a->n);
			else
				layout_put_upgrade(a->n);
			ret = nft_commit(a->n, &a->c.failure);
			if (!ret)
				ret = look(a);
		}
		ret = ret ? ret : layout_apply_conditions(a->x->conds[i], e);
		a->when[i] = false;
	}
	return ret;
}

/* One look and one transaction, and what follows from its refusal: 0, or -errno, -EAGAIN to try
 * again, or -1 with e set. */
static int add_once(struct attempt *a, struct err *e)
{
	int ret = look(a), learnt;

	if (!ret)
		ret = prepare(a, e);
	if (ret || e->set)
		return e->set ? -1 : ret;
	ret = try_add(a);
	learnt = ret ? learn(a, ret, e) : 0;
	if (learnt || !ret)
		return learnt;
	/* -ENOENT is told apart from a feature that the kernel lacks in change_again(). */
	return ret == -ENOENT ? ret : -EAGAIN;
}

static int add(struct attempt *a, struct err *e)
{
	int ret = 0;

	while (change_again(&a->c, &ret))
		ret = add_once(a, e);
	if (!ret || e->set)
		return e->set ? -1 : 0;
	return change_failed(e, ret, &a->c.failure, ERR_SYSTEM,
		"unable to set up nftables rules for port mappings");
}

int ports_install(struct nft *n, struct nl *rt, struct port_record *m, const struct port_extras *x,
	struct err *e)
{
	struct attempt a = {.c = {.n = n}, .n = n, .rt = rt, .m = m, .x = x};
	struct owner_ref ref = {0};
	int ret = add(&a, e);

	if (!ret && needs_localnet(&a))
		ret = localnet_set(rt, &x->localnet);
	if (!ret)
		ret = heirs_settle(rt, &a.handover);
	if (ret && !e->set)
		err_sys(e, -ret, ERR_SYSTEM, "unable to enable route_localnet: %s",
			x->localnet.link);
	if (ret && owner_parse(m->owner, &ref)) {
		autoerr ignored = {0};

		ports_remove(n, rt, m->hash, ref.net, NULL, &ignored);
	}
	free(a.evict.list);
	free(a.holders.list);
	handover_free(&a.handover);
	return ret ? -1 : 0;
}

/* ---- STATUS ---- */

/* The table and what a mapping adds to it. A table that is there has everything it needs. */
static void put_probe(struct nft *n)
{
	const struct port_record m = {
		.from = {{{AF_INET, {127}}, 8}, {{AF_INET6, {0xfd}}, 8}}, .from_len = 2};

	if (!nft_table_get(n, &port_table))
		return;
	layout_put_table(n);
	layout_put_masqs(n, &m, NULL);
}

int ports_status(struct err *e)
{
	return change_probe(put_probe, "mapping ports", e);
}
