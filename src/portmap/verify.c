/* CHECK: whether mappings and everything they need are there. */

#include "portmap/rules.h"

#include "base/cleanup.h"
#include "netlink/sysctl.h"
#include "portmap/layout.h"

#include <errno.h>
#include <string.h>

struct audit {
	struct nft *n;
	const struct portmaps *m;
	const struct port_extras *x;
	const struct port_place *p;
	bool same;
	bool *yielded; /* by index of m->list */
	struct err *e;
};

static int compare(const struct nft_elem_info *el, void *arg)
{
	struct audit *a = arg;
	const struct nft_elem *want = &a->p->elem;
	struct owner_ref ref;

	a->same = owner_parse(el->comment, &ref) && !strcmp(ref.hash, a->m->hash) &&
		  (want->has_verdict ? !strcmp(el->chain, want->chain)
				     : el->data_len == nft_key_size(&want->data) &&
					       !memcmp(el->data ? el->data : want->data.bytes,
						       want->data.bytes, el->data_len));
	return 0;
}

/* Whether another attachment of the same container has the host port. */
static bool is_yielded(struct audit *a, const struct port_place *p)
{
	char comment[NFT_COMMENT_SIZE];
	autoportmaps holder = {0};
	struct owner_ref ref;

	return !portrules_comment(a->n, p->set, &p->elem.key, comment) &&
	       owner_parse(comment, &ref) && strcmp(ref.hash, a->m->hash) != 0 &&
	       !portrules_load(a->n, ref.hash, &holder) &&
	       portmaps_of_container(&holder, a->x->container);
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

/* The conditions' chain: what leads to it counts as use, too. */
static int check_gate(struct audit *a)
{
	char gate[PORT_GATE];
	uint32_t use = 0, want = 1u + a->m->gates[0] + a->m->gates[1];

	if (!a->m->gates[0] && !a->m->gates[1])
		return 0;
	for (size_t i = 0; i < a->m->len; i++)
		want += a->m->gates[a->m->list[i].addr.family == AF_INET6];
	if (!nft_chain_get(
		    a->n, &port_table, portlayout_gate_name(a->m->hash, gate), take_use, &use) &&
		use >= want)
		return 0;
	return err_set(a->e, ERR_CHECK, "missing hostport rules in \"%s\" chain", gate);
}

/* The rules that belong to nobody in particular: that nobody emptied their chains. */
static int check_chains(struct audit *a)
{
	size_t sources[PORT_SOURCES];
	const struct {
		const char *name;
		size_t rules;
	} chains[] = {{"prerouting", 2}, {"output", 2}, {"translate4", 4}, {"translate6", 4},
		{"guard", 2}, {"postrouting", portlayout_masqs(a->m, sources)}};

	for (size_t i = 0; i < array_len(chains); i++) {
		uint32_t use = 0;

		if (nft_chain_get(a->n, &port_table, chains[i].name, take_use, &use) ||
			use < chains[i].rules)
			return err_set(a->e, ERR_CHECK, "missing hostport rules in \"%s\" chain",
				chains[i].name);
	}
	return 0;
}

/* Leaves out what another attachment of the same container has. */
static int drop_yielded(struct port_place *p, void *arg)
{
	struct audit *a = arg;

	if (!p->claim)
		return 1;
	a->yielded[p->m - a->m->list] = is_yielded(a, p);
	return 0;
}

static int without_yielded(struct audit *a, struct portmaps *m)
{
	size_t kept = 0;
	int ret;

	a->yielded = calloc(m->len + 1, sizeof(*a->yielded));
	if (!a->yielded)
		return -ENOMEM;
	ret = portlayout_each(m, drop_yielded, a);
	for (size_t i = 0; i < m->len; i++)
		if (!a->yielded[i])
			m->list[kept++] = m->list[i];
	m->len = kept;
	free(a->yielded);
	return ret < 0 ? ret : 0;
}

int portrules_check(struct nft *n, struct portmaps *m, const struct port_extras *x, struct err *e)
{
	struct audit a = {.n = n, .m = m, .x = x, .e = e};
	char path[PORTRULES_SYSCTL], value[16] = "";
	struct nft_key dev;

	if (check_chains(&a) || without_yielded(&a, m) || check_gate(&a) ||
		portlayout_each(m, check_place, &a))
		return e->set ? -1 : err_memory(e);
	if (!x->localnet[0])
		return 0;
	dev = portlayout_dev_key(x->localnet);
	if (nft_elem_get(n, &port_table, PORT_LOCALNET, &dev, NULL, NULL))
		return err_set(e, ERR_CHECK,
			"missing hostport rules: %s is not guarded against "
			"127.0.0.0/8 from outside",
			x->localnet);
	if (sysctl_get(portrules_sysctl(x->localnet, path), value, sizeof(value)) ||
		strcmp(value, "1") != 0)
		return err_set(e, ERR_CHECK, "route_localnet of %s is not set", x->localnet);
	return 0;
}
