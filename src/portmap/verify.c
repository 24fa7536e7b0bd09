#include "portmap/verify.h"

#include "base/cleanup.h"
#include "portmap/layout.h"
#include "portmap/lookup.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

struct audit {
	struct nft *n;
	struct port_record *m;
	const struct port_extras *x;
	const struct port_place *p;
	bool same;
	bool *yielded; /* by index of m->list */
	struct err *e;
};

static bool same_data(const struct nft_elem_info *el, const struct nft_elem *want)
{
	if (want->has_verdict)
		return !strcmp(el->chain, want->chain);
	return el->data_len == nft_key_size(&want->data) &&
	       (!el->data_len || !memcmp(el->data, want->data.bytes, el->data_len));
}

static int compare(const struct nft_elem_info *el, void *arg)
{
	struct audit *a = arg;
	struct owner_ref ref;

	a->same = owner_parse(el->comment, &ref) && !strcmp(ref.hash, a->m->hash) &&
		  same_data(el, &a->p->elem);
	return 0;
}

static int check_place(struct port_place *p, void *arg)
{
	struct audit *a = arg;
	int ret;

	a->p = p;
	a->same = false;
	ret = nft_elem_get(a->n, &port_table, p->set, &p->elem.key, compare, a);
	if (!ret && a->same)
		return 0;
	return err_set(a->e, ERR_CHECK, "missing hostport rules in \"%s\": host port %u/%s %s",
		p->set, p->m->host_port, portproto_name(p->m->proto),
		ret ? "is not mapped" : "leads elsewhere");
}

static int take_use(const struct nft_chain_info *c, void *arg)
{
	*(uint32_t *)arg = c->use;
	return 0;
}

struct search {
	const char *when;
	bool found;
};

static int find_rule(const struct nft_rule_info *r, void *arg)
{
	struct search *s = arg;

	s->found |= !strcmp(r->comment, s->when);
	return 0;
}

/* The rules that look into the maps of the conditions. */
static int check_conditions(struct audit *a)
{
	for (size_t i = 0; i < 2; i++) {
		const struct port_conds *c = a->x->conds[i];

		if (!a->m->when[i][0] || !record_maps(a->m, c->family))
			continue;
		for (enum layout_map which = LAYOUT_ANY; which <= LAYOUT_ONE; which++) {
			const char *chain = layout_when_chain(c->family, which);
			struct search s = {.when = c->id};

			if (nft_rules(a->n, &port_table, chain, find_rule, NULL, &s) || !s.found)
				return err_set(a->e, ERR_CHECK,
					"missing hostport rules in \"%s\" chain", chain);
		}
	}
	return 0;
}

/* The rules that belong to nobody in particular: that nobody emptied their chains. */
static int check_chains(struct audit *a)
{
	size_t sources[PORT_SOURCES];
	const struct {
		const char *name;
		size_t rules;
	} chains[] = {{"prerouting", 2}, {"output", 2}, {"translate4", 4}, {"translate6", 4},
		{"guard", 2}, {"postrouting", layout_masqs(a->m, sources)}};

	for (size_t i = 0; i < array_len(chains); i++) {
		uint32_t use = 0;

		if (nft_chain_get(a->n, &port_table, chains[i].name, take_use, &use) ||
			use < chains[i].rules)
			return err_set(a->e, ERR_CHECK, "missing hostport rules in \"%s\" chain",
				chains[i].name);
	}
	return 0;
}

/* Whether another attachment of the same container has the host port. */
static int find_yielded(struct port_place *p, void *arg)
{
	struct audit *a = arg;
	autorecord holder = {0};
	struct owner_ref ref;

	if (!p->claim)
		return 1;
	if (lookup_owner(a->n, p->set, &p->elem.key, &ref) == 1 &&
		strcmp(ref.hash, a->m->hash) != 0 && !lookup_record(a->n, ref.hash, &holder) &&
		record_of_container(&holder, a->x->container))
		a->yielded[p->m - a->m->list] = true;
	return 0;
}

/* Marks them; not while the list is being walked. */
static int mark_yielded(struct audit *a)
{
	int ret;

	a->yielded = calloc(a->m->len + 1, sizeof(*a->yielded));
	if (!a->yielded)
		return err_memory(a->e);
	ret = layout_each(a->m, find_yielded, a);
	for (size_t i = 0; i < a->m->len; i++)
		a->m->list[i].yielded = a->yielded[i];
	free(a->yielded);
	return ret < 0 ? err_memory(a->e) : 0;
}

int ports_verify(struct nft *n, struct port_record *m, const struct port_extras *x, struct err *e)
{
	struct audit a = {.n = n, .m = m, .x = x, .e = e};
	autorecord was = {0};

	/* Made by a version before 0.2, when conditions were kept in another way. */
	if (!lookup_record(n, m->hash, &was) && (was.gates[0] || was.gates[1])) {
		memcpy(m->gates, was.gates, sizeof(m->gates));
		memset(m->when, 0, sizeof(m->when));
	}

	if (check_chains(&a) || mark_yielded(&a) || check_conditions(&a))
		return -1;
	if (layout_each(m, check_place, &a))
		return e->set ? -1 : err_memory(e);
	return x->localnet.link[0] && record_maps(m, AF_INET) ? localnet_check(n, &x->localnet, e)
							      : 0;
}
