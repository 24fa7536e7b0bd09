/* Installing mappings: one transaction, and what to do when it is refused. */

#include "portmap/rules.h"

#include "base/cleanup.h"
#include "filter/change.h"
#include "netlink/sysctl.h"
#include "portmap/layout.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct attempt {
	struct nft *n;
	struct portmaps *m;
	const struct port_extras *x;
	bool table;              /* make the table first */
	bool masq[PORT_SOURCES]; /* make the set of from[i] first */
	bool replace;            /* there is a record of this owner */
	bool stray;              /* there is, but without its first line */
	bool careful;
	bool gate_ready; /* the gate's chain was made and filled before */
	char (*evict)[OWNER_HASH + 1];
	size_t evict_len;
	int owner_at; /* messages: line 0 of the record, the first element */
	int places_at;
};

static int put_place(struct port_place *p, void *arg)
{
	struct attempt *a = arg;

	int index = nft_elem_create(a->n, &port_table, p->set, &p->elem);

	if (a->places_at == INT_MAX)
		a->places_at = index;
	return 0;
}

static int put_eviction(struct attempt *a, const char *hash)
{
	autoportmaps was = {0};
	struct port_removal r = {a->n, &was, a->careful};
	int ret = portrules_load(a->n, hash, &was);

	/* Gone by itself meanwhile. */
	if (ret == -ENOENT)
		return 0;
	return ret ? ret : portrules_put_removal(&r);
}

/* Conditions of iptables' kind, then the end of the gate: not fulfilled, no translation. */
static void put_gate_rules(struct attempt *a, const char *gate)
{
	for (size_t i = 0; i < 2; i++) {
		if (!a->m->gates[i] || !a->x->conds[i]->len)
			continue;
		nft_rule_begin(a->n, &port_table, gate, NFT_APPEND, NULL);
		nft_match_family(a->n, i ? NFPROTO_IPV6 : NFPROTO_IPV4);
		portconds_put(a->n, a->x->conds[i]);
		nft_x_verdict(a->n, NFT_RETURN, NULL);
		nft_rule_end(a->n);
	}
	nft_rule_begin(a->n, &port_table, gate, NFT_APPEND, NULL);
	nft_x_verdict(a->n, NF_ACCEPT, NULL);
	nft_rule_end(a->n);
}

static void put_gate(struct attempt *a)
{
	char gate[PORT_GATE];

	if (!a->m->gates[0] && !a->m->gates[1])
		return;
	portlayout_gate_name(a->m->hash, gate);
	if (!a->gate_ready)
		nft_chain_create(a->n, &port_table,
			&(struct nft_chain){.name = gate, .comment = a->m->owner});
	put_gate_rules(a, gate);
}

static void put_plumbing(struct attempt *a)
{
	if (a->table)
		portlayout_put_table(a->n);
	portlayout_put_masqs(a->n, a->m, a->table ? NULL : a->masq);
}

static int put_record(struct attempt *a)
{
	autofree portmaps_text *text = portmaps_record(a->m);
	struct nft_elem line = {0};

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < a->m->records; i++) {
		int index;

		line.key = portlayout_owner_key(a->m->hash, i);
		line.comment = text[i];
		index = nft_elem_create(a->n, &port_table, PORT_OWNERS, &line);
		if (!i)
			a->owner_at = index;
	}
	return 0;
}

/* Whether somebody else has set route_localnet. Who takes a table away resets it before: without a
 * table what was read earlier may have been ours. */
static bool localnet_found(const struct attempt *a)
{
	char path[PORTRULES_SYSCTL], value[16] = "";

	if (!a->table || !a->x->localnet_was_set)
		return a->x->localnet_was_set;
	return !sysctl_get(portrules_sysctl(a->x->localnet, path), value, sizeof(value)) &&
	       !strcmp(value, "1");
}

static int try_add(struct attempt *a, struct nft_failure *f)
{
	struct nft_elem dev = {0};
	int ret = 0;

	nft_begin(a->n, 0);
	a->owner_at = a->places_at = INT_MAX;
	put_plumbing(a);
	for (size_t i = 0; i < a->evict_len && !ret; i++)
		ret = put_eviction(a, a->evict[i]);
	if (!ret && a->replace)
		ret = put_eviction(a, a->m->hash);
	if (!ret)
		ret = put_record(a);
	if (!ret) {
		put_gate(a);
		ret = portlayout_each(a->m, put_place, a);
	}
	if (!ret && a->x->localnet[0]) {
		dev.key = portlayout_dev_key(a->x->localnet);
		dev.comment = localnet_found(a) ? LOCALNET_FOUND : LOCALNET_OURS;
		nft_elems_add(a->n, &port_table, PORT_LOCALNET, &dev, 1);
	}
	return ret ? ret : nft_commit(a->n, f);
}

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
	/* These may point into the original. */
	if (p->set == p->masq)
		n->out->set = n->out->masq;
	return 1;
}

/* The element is in the way and no record tells of it. Deletes it, unless it changes meanwhile. */
static int remove_stray(struct attempt *a, const struct port_place *p, const char *hash)
{
	struct portmaps owner = {0};
	struct port_removal r = {a->n, &owner, true};
	uint32_t genid;
	int ret = nft_genid(a->n, &genid);

	if (ret)
		return ret;
	snprintf(owner.hash, sizeof(owner.hash), "%s", hash);
	ret = portrules_is_ours(&r, p->set, &p->elem.key);
	if (ret <= 0)
		return ret;
	nft_begin(a->n, genid);
	nft_elems_del(a->n, &port_table, p->set, &p->elem, 1);
	ret = nft_commit(a->n, NULL);
	return nft_raced(ret) ? 0 : ret;
}

static int say_conflict(const struct port_place *p, const struct portmaps *holder, struct err *e)
{
	char host[IP_STRLEN] = "", addr[IP_STRLEN] = "another container";
	autofree char *name = strdup(holder->name);
	char *save = NULL, *network, *id, *ifname;

	network = name ? strtok_r(name, " ", &save) : NULL;
	id = network ? strtok_r(NULL, " ", &save) : NULL;
	ifname = id ? strtok_r(NULL, " ", &save) : NULL;
	for (size_t i = 0; i < holder->len; i++)
		if (holder->list[i].host_port == p->m->host_port &&
			holder->list[i].proto == p->m->proto &&
			holder->list[i].addr.family == p->m->addr.family)
			ip_format(&holder->list[i].addr, addr);
	ip_format(&p->m->host, host);
	err_set(e, ERR_CONFLICT,
		"host port %u/%s%s%s is already mapped to %s by container \"%s\" (network \"%s\", "
		"interface \"%s\")",
		p->m->host_port, portproto_name(p->m->proto), ip_is_any(&p->m->host) ? "" : " of ",
		ip_is_any(&p->m->host) ? "" : host, addr, id ? id : "?", network ? network : "?",
		ifname ? ifname : "?");
	return err_detail(e, "its sandbox %s is alive",
		holder->netns[0] ? holder->netns : "is not recorded, so it counts as alive:");
}

static int evict(struct attempt *a, const struct port_place *p, const char *hash)
{
	void *list;

	/* Once more means that its record does not tell of this element. */
	for (size_t i = 0; i < a->evict_len; i++)
		if (!strcmp(a->evict[i], hash))
			return remove_stray(a, p, hash);
	list = reallocarray(a->evict, a->evict_len + 1, sizeof(*a->evict));
	if (!list)
		return -ENOMEM;
	a->evict = list;
	snprintf(a->evict[a->evict_len++], sizeof(*a->evict), "%s", hash);
	return 0;
}

/* Leaves a mapping to the other attachment of this container that has it. */
static void yield_mapping(struct portmaps *m, const struct port_mapping *p)
{
	size_t i = (size_t)(p - m->list);

	memmove(&m->list[i], &m->list[i + 1], (m->len - i - 1) * sizeof(*m->list));
	m->len--;
}

/* Element number i is taken: by whom, and what follows from it. 0: try again. */
static int conflict(struct attempt *a, int i, struct err *e)
{
	struct port_place p = {0};
	struct nth nth = {i, &p};
	char comment[NFT_COMMENT_SIZE];
	autoportmaps holder = {0};
	struct owner_ref ref;
	int ret;

	if (i < 0 || portlayout_each(a->m, take_nth, &nth) != 1)
		return 0;
	ret = portrules_comment(a->n, p.set, &p.elem.key, comment);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	if (!owner_parse(comment, &ref))
		return err_set(e, ERR_CONFLICT,
			"host port %u/%s is mapped by somebody else in table inet %s",
			p.m->host_port, portproto_name(p.m->proto), port_table.name);
	ret = portrules_load(a->n, ref.hash, &holder);
	if (ret == -ENOENT || !strcmp(ref.hash, a->m->hash))
		return remove_stray(a, &p, ref.hash);
	if (ret)
		return ret;
	if (holder.netns_inode && holder.netns_inode == a->m->netns_inode &&
		!strcmp(holder.netns, a->m->netns)) {
		/* The sandbox is ours now: its former container is gone. */
		if (!portmaps_of_container(&holder, a->x->container))
			return evict(a, &p, ref.hash);
		if (p.claim) {
			yield_mapping(a->m, p.m);
			return 0;
		}
	}
	if (portmaps_dead(&holder))
		return evict(a, &p, ref.hash);
	return say_conflict(&p, &holder, e);
}

/* Looks at what is there: a refused transaction costs a grace period, some milliseconds, a question
 * microseconds. 0 or -errno. */
static int look(struct attempt *a)
{
	struct nft_key owner = portlayout_owner_key(a->m->hash, 0);
	char name[PORT_MASQ];
	int ret = nft_elem_get(a->n, &port_table, PORT_OWNERS, &owner, NULL, NULL);

	if (ret && ret != -ENOENT)
		return ret;
	a->replace = !ret || a->stray;
	if (ret)
		ret = nft_table_get(a->n, &port_table);
	if (ret && ret != -ENOENT)
		return ret;
	a->table = ret == -ENOENT;
	for (size_t i = 0; i < a->m->from_len && !a->table; i++) {
		ret = nft_set_get(a->n, &port_table, portlayout_masq_name(&a->m->from[i], name));
		if (ret && ret != -ENOENT)
			return ret;
		a->masq[i] = ret == -ENOENT;
	}
	return 0;
}

/* Learns from a refusal. 0 when another attempt makes sense, else -errno, or -1 with e set. */
static int learn(struct attempt *a, int r, const struct nft_failure *f, struct err *e)
{
	/* Kernels before 5.7 said EBUSY for an element with other data. */
	bool taken = r == -EEXIST || (r == -EBUSY && f->index >= a->owner_at);
	int ret = 0;

	if (taken && f->index >= a->places_at)
		ret = conflict(a, f->index - a->places_at, e);
	else if (taken && a->owner_at < INT_MAX && f->index >= a->owner_at + (int)a->m->records)
		ret = portrules_remove_gate(a->n, a->m->hash);
	else if (taken && f->index > a->owner_at)
		a->stray = true;
	else if (nft_raced(r))
		a->careful = true;
	else
		ret = r;
	return ret;
}

/* Makes the gate's chain and lets libnftables write into it, before anything leads there. */
static int prepare_gate(struct attempt *a, struct nft_failure *f, struct err *e)
{
	char gate[PORT_GATE];
	int ret;

	if (portrules_del(a->n, a->m->hash, NULL, e))
		return -1;
	nft_begin(a->n, 0);
	if (nft_table_get(a->n, &port_table)) {
		portlayout_put_table(a->n);
		portlayout_put_masqs(a->n, a->m, NULL);
	}
	nft_chain_create(a->n, &port_table,
		&(struct nft_chain){
			.name = portlayout_gate_name(a->m->hash, gate), .comment = a->m->owner});
	ret = nft_commit(a->n, f);
	for (size_t i = 0; i < 2 && !ret; i++)
		if (a->m->gates[i] && a->x->conds[i]->nft)
			ret = portconds_apply(&port_table, gate, a->x->conds[i], e);
	a->gate_ready = !ret;
	if (ret && !e->set && !nft_raced(ret))
		change_failed(
			e, ret, f, ERR_SYSTEM, "unable to set up conditions of port mappings");
	return e->set ? -1 : ret;
}

static bool gate_lost(struct attempt *a)
{
	char gate[PORT_GATE];

	return a->gate_ready &&
	       nft_chain_get(a->n, &port_table, portlayout_gate_name(a->m->hash, gate), NULL, NULL);
}

/* One look and one transaction, and what follows from its refusal: 0, or -errno, -EAGAIN to try
 * again, or -1 with e set. */
static int add_once(struct attempt *a, bool prepare, struct nft_failure *f, struct err *e)
{
	int ret = prepare && !a->gate_ready ? prepare_gate(a, f, e) : 0, learnt;

	if (ret || e->set)
		return e->set ? -1 : ret;
	ret = look(a);
	if (!ret)
		ret = try_add(a, f);
	if (!ret)
		return 0;
	learnt = learn(a, ret, f, e);
	a->gate_ready = a->gate_ready && !gate_lost(a);
	/* Told apart from a feature that the kernel lacks in change_again(). */
	if (!learnt)
		return ret == -ENOENT ? ret : -EAGAIN;
	return learnt;
}

static int add(struct attempt *a, bool prepare, struct err *e)
{
	struct change c = {.n = a->n};
	int ret = 0;

	while (a->m->len && change_again(&c, &ret))
		ret = add_once(a, prepare, &c.failure, e);
	/* The container's other attachments have all the ports already. */
	if (!a->m->len && !e->set)
		return portrules_del(a->n, a->m->hash, NULL, e);
	if (!ret || e->set)
		return e->set ? -1 : 0;
	return change_failed(e, ret, &c.failure, ERR_SYSTEM,
		"unable to set up nftables rules for port mappings");
}

int portrules_add(struct nft *n, struct portmaps *m, const struct port_extras *x, struct err *e)
{
	struct attempt a = {.n = n, .m = m, .x = x};
	bool prepare = false;
	int ret;

	for (size_t i = 0; i < 2; i++)
		prepare |= m->gates[i] && x->conds[i]->nft;
	ret = add(&a, prepare, e);
	if (ret && prepare) {
		autoerr ignored = {0};

		portrules_del(n, m->hash, NULL, &ignored);
	}
	free(a.evict);
	return ret;
}

/* ---- STATUS ---- */

/* The table and what a mapping adds to it. A table that is there has everything it needs. */
static void put_probe(struct nft *n)
{
	const struct portmaps m = {
		.from = {{{AF_INET, {127}}, 8}, {{AF_INET6, {0xfd}}, 8}}, .from_len = 2};

	if (!nft_table_get(n, &port_table))
		return;
	portlayout_put_table(n);
	portlayout_put_masqs(n, &m, NULL);
}

int portrules_status(struct err *e)
{
	return change_probe(put_probe, "mapping ports", e);
}
