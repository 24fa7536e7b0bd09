#include "portmap/heirs.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "portmap/layout.h"
#include "portmap/lookup.h"
#include "portmap/remove.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>

void handover_free(struct handover *h)
{
	free(h->list);
	*h = (struct handover){0};
}

/* Whether a record has this claim under these conditions, and has not yielded it. */
static bool has_claim(const struct port_record *m, const struct port_mapping *p, const char *when)
{
	for (size_t i = 0; m && i < m->len; i++)
		if (!m->list[i].yielded && record_same_claim(&m->list[i], p) &&
			!strcmp(record_when(m, &m->list[i]), when))
			return true;
	return false;
}

/* Takes up what `was` had and `keep` has not, marking it in `given`, so that the next heir leaves
 * it alone. Returns how many. */
static size_t take_up(struct port_record *heir, const struct port_record *was,
	const struct port_record *keep, bool *given)
{
	size_t taken = 0;

	for (size_t i = 0; i < heir->len; i++) {
		struct port_mapping *p = &heir->list[i];
		const char *when = record_when(heir, p);

		if (!p->yielded || has_claim(keep, p, when))
			continue;
		for (size_t j = 0; j < was->len; j++) {
			if (given[j] || was->list[j].yielded ||
				!record_same_claim(&was->list[j], p) ||
				strcmp(record_when(was, &was->list[j]), when) != 0)
				continue;
			given[j] = true;
			p->yielded = false;
			taken++;
			break;
		}
	}
	return taken;
}

/* Not "create": several host ports may lead to one container port, whose entry is there then. */
static int put_place(struct port_place *p, void *arg)
{
	nft_elems_add(arg, &port_table, p->set, &p->elem, 1);
	return 0;
}

static int put_guard(struct nft *n, struct nl *rt, struct port_record *heir, struct handover *h)
{
	struct localnet l, *last;
	int ret;

	if (!heir->via[0] || !record_maps(heir, AF_INET))
		return 0;
	ret = localnet_look(n, rt, heir->via, heir, &l);
	/* A link that is gone needs no guard. */
	if (ret)
		return ret == -ENODEV || ret == -ENOENT ? 0 : ret;
	last = vec_add(h->list, h->len);
	if (!last)
		return -ENOMEM;
	*last = l;
	if (l.alone)
		memcpy(heir->dev, l.link, sizeof(heir->dev));
	localnet_put(n, &l, false);
	return 0;
}

/* *first is lowered to the index of the first message. */
static int replace_lines(struct nft *n, struct port_record *m, int *first)
{
	size_t before = m->records;
	int at;

	for (size_t i = 0; i < before; i++) {
		struct nft_elem line = {.key = layout_owner_key(m->hash, i)};
		int ret = nft_elem_get(n, &port_table, LAYOUT_OWNERS, &line.key, NULL, NULL);

		if (!ret)
			nft_elems_del(n, &port_table, LAYOUT_OWNERS, &line, 1);
		else if (ret != -ENOENT)
			return ret;
	}
	if (remove_put_record(n, m, &at))
		return -ENOMEM;
	at -= (int)before;
	*first = at < *first ? at : *first;
	return 0;
}

static int put_heir(struct nft *n, struct nl *rt, const struct port_record *was,
	const struct port_record *keep, size_t i, bool *given, struct handover *h)
{
	autorecord heir = {0};
	int ret = lookup_record(n, was->heirs[i], &heir);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	if (!take_up(&heir, was, keep, given))
		return 0;
	/* The others are heirs of this one now. */
	for (size_t j = 0; j < was->heirs_len; j++)
		if (j != i && record_add_heir(&heir, was->heirs[j]))
			return -ENOMEM;
	ret = put_guard(n, rt, &heir, h);
	if (!ret)
		ret = replace_lines(n, &heir, &h->first);
	return ret ? ret : layout_each(&heir, put_place, n);
}

int heirs_put(struct nft *n, struct nl *rt, const struct port_record *was,
	const struct port_record *keep, struct handover *h)
{
	autofree bool *given = calloc(was->len + 1, sizeof(*given));
	int ret = given ? 0 : -ENOMEM;

	h->first = INT_MAX;
	for (size_t i = 0; i < was->heirs_len && !ret; i++)
		ret = put_heir(n, rt, was, keep, i, given, h);
	return ret;
}

int heirs_settle(struct nl *rt, const struct handover *h)
{
	int ret = 0;

	for (size_t i = 0; i < h->len; i++) {
		int one = localnet_set(rt, &h->list[i]);

		ret = one && one != -ENOENT ? one : ret;
	}
	return ret;
}

int heirs_enter(struct nft *n, struct port_record *holder, const char *hash)
{
	size_t before = holder->heirs_len;
	int first = INT_MAX;

	if (record_add_heir(holder, hash))
		return -ENOMEM;
	return holder->heirs_len == before ? 0 : replace_lines(n, holder, &first);
}
