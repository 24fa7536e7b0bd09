#include "common/portrules.h"

#include "base/cleanup.h"
#include "common/portlayout.h"
#include "netlink/nftmap.h"
#include "netlink/netns.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Each failed attempt means that somebody else's change went through, or brought us to know one more
 * thing about what is there. */
#define ATTEMPTS 100

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

/* One element's comment: 0, -ENOENT, or another -errno. */
static int comment_of(struct nft *n, const char *set, const struct nft_key *key,
	char out[static NFT_COMMENT_SIZE])
{
	out[0] = '\0';
	return nft_elem_get(n, &port_table, set, key, copy_comment, out);
}

static int read_line(struct nft *n, const char *hash, size_t index, struct portmaps *m)
{
	struct nft_key key = portlayout_owner_key(hash, index);
	char line[NFT_COMMENT_SIZE];
	int ret = comment_of(n, PORT_OWNERS, &key, line);

	return ret ? ret : portmaps_read(m, line);
}

int portrules_load(struct nft *n, const char *hash, struct portmaps *m)
{
	bool found = false;
	int ret = -ENOENT;

	*m = (struct portmaps){.records = 2};
	snprintf(m->hash, sizeof(m->hash), "%s", hash);
	for (size_t i = 0; i < m->records; i++) {
		ret = read_line(n, hash, i, m);
		if (ret && ret != -ENOENT)
			break;
		/* Somebody took it out by hand: the rest is still worth having. */
		found |= !ret;
		ret = found ? 0 : -ENOENT;
	}
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

struct removal {
	struct nft *n;
	const struct portmaps *was;
	bool careful; /* look at each object first: some are not there or not ours */
};

static bool is_ours(struct removal *r, const char *set, const struct nft_key *key)
{
	char comment[NFT_COMMENT_SIZE];
	struct owner_ref ref;

	return !comment_of(r->n, set, key, comment) && owner_parse(comment, &ref) &&
	       !strcmp(ref.hash, r->was->hash);
}

static int remove_place(struct port_place *p, void *arg)
{
	struct removal *r = arg;

	if (!r->careful || is_ours(r, p->set, &p->elem.key))
		nft_elems_del(r->n, &port_table, p->set, &p->elem, 1);
	return 0;
}

/* The record goes first and must be there: of two that remove the same owner, one fails here and
 * nothing that a third put in its place meanwhile is touched. */
static int put_removal(struct removal *r)
{
	char gate[PORT_GATE];

	for (size_t i = 0; i < r->was->records; i++) {
		struct nft_elem line = {.key = portlayout_owner_key(r->was->hash, i)};

		if (!r->careful ||
			!nft_elem_get(r->n, &port_table, PORT_OWNERS, &line.key, NULL, NULL))
			nft_elems_del(r->n, &port_table, PORT_OWNERS, &line, 1);
	}
	if (r->was->dev[0]) {
		struct nft_elem dev = {.key = portlayout_dev_key(r->was->dev)};

		if (!r->careful ||
			!nft_elem_get(r->n, &port_table, PORT_LOCALNET, &dev.key, NULL, NULL))
			nft_elems_del(r->n, &port_table, PORT_LOCALNET, &dev, 1);
	}
	if (portlayout_each(r->was, remove_place, r))
		return -ENOMEM;
	portlayout_gate_name(r->was->hash, gate);
	if ((r->was->gates[0] || r->was->gates[1]) &&
		(!r->careful || !nft_chain_get(r->n, &port_table, gate, NULL, NULL)))
		nft_chain_del(r->n, &port_table, gate);
	return 0;
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

static void set_localnet(const struct devs *d, const char *value)
{
	char path[PORTRULES_SYSCTL];

	for (size_t i = 0; i < d->len; i++)
		sysctl_ensure(portrules_sysctl(d->list[i], path), value);
}

/* Deletes the table if it serves nobody any more; the kernel decides that in one step, the question
 * before only spares us refusals. The links' route_localnet goes with the guard: should an ADD have
 * made a new table in between, it finds the old value or ours, and gets it back. */
static void sweep(struct nft *n)
{
	struct devs devs = {0};
	autonl *nl = NULL;

	if (nft_set_is_empty(&port_table, PORT_OWNERS, &nl) != 1)
		return;
	if (!nft_elems(n, &port_table, PORT_LOCALNET, take_dev, forget_devs, &devs)) {
		nft_begin(n, 0);
		nft_set_del_empty(n, &port_table, PORT_OWNERS);
		nft_table_del(n, &port_table);
		if (!nft_commit(n, NULL) && devs.len) {
			set_localnet(&devs, "0");
			if (!nft_table_get(n, &port_table))
				set_localnet(&devs, "1");
		}
	}
	free(devs.list);
}

/* A chain without a record: an ADD with conditions that was killed half-way. */
static void remove_orphan_gate(struct nft *n, const char *hash)
{
	char gate[PORT_GATE];

	if (nft_chain_get(n, &port_table, portlayout_gate_name(hash, gate), NULL, NULL))
		return;
	nft_begin(n, 0);
	nft_chain_del(n, &port_table, gate);
	nft_commit(n, NULL);
}

int portrules_del(struct nft *n, const char *hash, struct portmaps *was, struct err *e)
{
	struct nft_failure f = {0};
	int ret = -EAGAIN;

	if (was)
		*was = (struct portmaps){0};
	for (int i = 0; i < ATTEMPTS; i++) {
		autoportmaps m = {0};
		struct removal r = {n, &m, i > 0};

		ret = portrules_load(n, hash, &m);
		if (ret == -ENOENT)
			break;
		nft_begin(n, 0);
		ret = ret ? ret : put_removal(&r);
		ret = ret ? ret : nft_commit(n, &f);
		if (!ret && was) {
			*was = m;
			m = (struct portmaps){0};
		}
		if (!ret || !nft_raced(ret))
			break;
	}
	if (ret == -ENOENT)
		remove_orphan_gate(n, hash);
	if (ret && ret != -ENOENT) {
		err_sys(e, -ret, nft_raced(ret) ? ERR_TRY_AGAIN : ERR_SYSTEM,
			"cannot remove the port mappings");
		return f.ext[0] ? err_detail(e, "%s", f.ext) : -1;
	}
	sweep(n);
	return 0;
}

/* ---- adding ---- */

struct attempt {
	struct nft *n;
	struct portmaps *m;
	const struct port_extras *x;
	bool table;               /* make the table first */
	bool masq[PORT_SOURCES];  /* make the set of from[i] first */
	bool replace;             /* there is a record of this owner */
	bool careful;
	bool gate_ready;          /* the gate's chain was made and filled before */
	char (*evict)[OWNER_HASH + 1];
	size_t evict_len;
	int owner_at;             /* messages: line 0 of the record, the first element */
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
	struct removal r = {a->n, &was, a->careful};
	int ret = portrules_load(a->n, hash, &was);

	/* Gone by itself meanwhile. */
	if (ret == -ENOENT)
		return 0;
	return ret ? ret : put_removal(&r);
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
	for (size_t i = 0; i < a->m->from_len; i++)
		if (a->table || a->masq[i])
			portlayout_put_masq(a->n, &a->m->from[i]);
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
		dev.comment = a->x->localnet_was_set ? LOCALNET_FOUND : LOCALNET_OURS;
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

/* The element is in the way, and its owner has no record. Deletes it, unless it changes. */
static int remove_orphan(struct attempt *a, const struct port_place *p)
{
	char comment[NFT_COMMENT_SIZE];
	struct owner_ref ref;
	autoportmaps m = {0};
	uint32_t genid;
	int ret = nft_genid(a->n, &genid);

	if (ret || comment_of(a->n, p->set, &p->elem.key, comment) || !owner_parse(comment, &ref) ||
		portrules_load(a->n, ref.hash, &m) != -ENOENT)
		return 0;
	nft_begin(a->n, genid);
	nft_elems_del(a->n, &port_table, p->set, &p->elem, 1);
	return nft_commit(a->n, NULL);
}

static int say_conflict(
	const struct port_place *p, const struct portmaps *holder, struct err *e)
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

static bool same_container(const struct portmaps *holder, const char *id)
{
	const char *at = strchr(holder->name, ' ');
	size_t len = strlen(id);

	return at && !strncmp(at + 1, id, len) && (at[1 + len] == ' ' || !at[1 + len]);
}

static int evict(struct attempt *a, const char *hash)
{
	void *p;

	for (size_t i = 0; i < a->evict_len; i++) {
		if (strcmp(a->evict[i], hash) != 0)
			continue;
		/* Its record did not tell of this element. */
		a->careful = true;
		return 0;
	}
	p = reallocarray(a->evict, a->evict_len + 1, sizeof(*a->evict));
	if (!p)
		return -ENOMEM;
	a->evict = p;
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
	ret = comment_of(a->n, p.set, &p.elem.key, comment);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	if (!owner_parse(comment, &ref))
		return err_set(e, ERR_CONFLICT,
			"host port %u/%s is mapped by somebody else in table inet %s",
			p.m->host_port, portproto_name(p.m->proto), port_table.name);
	ret = portrules_load(a->n, ref.hash, &holder);
	if (ret == -ENOENT || !strcmp(ref.hash, a->m->hash)) {
		ret = remove_orphan(a, &p);
		return nft_raced(ret) ? 0 : ret;
	}
	if (ret)
		return ret;
	if (holder.netns_inode && holder.netns_inode == a->m->netns_inode &&
		!strcmp(holder.netns, a->m->netns)) {
		/* The sandbox is ours now: its former container is gone. */
		if (!same_container(&holder, a->x->container))
			return evict(a, ref.hash);
		if (p.claim) {
			yield_mapping(a->m, p.m);
			return 0;
		}
	}
	if (portmaps_dead(&holder))
		return evict(a, ref.hash);
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
	a->replace = !ret;
	if (ret)
		ret = nft_table_get(a->n, &port_table);
	if (ret && ret != -ENOENT)
		return ret;
	a->table = ret == -ENOENT;
	for (size_t i = 0; i < a->m->from_len && !a->table; i++) {
		ret = nft_set_get(a->n, &port_table, portlayout_masq_name(&a->m->from[i], name),
			NULL, NULL);
		if (ret && ret != -ENOENT)
			return ret;
		a->masq[i] = ret == -ENOENT;
	}
	return 0;
}

/* Learns from a refusal: 0 when another attempt makes sense, -1 with e set. */
static int learn(struct attempt *a, int r, const struct nft_failure *f, struct err *e)
{
	/* Kernels before 5.7 said EBUSY for an element with other data. */
	bool taken = r == -EEXIST || (r == -EBUSY && f->index >= a->owner_at);
	int ret = 0;

	if (taken && f->index >= a->places_at)
		ret = conflict(a, f->index - a->places_at, e);
	else if (taken && a->owner_at < INT_MAX && f->index >= a->owner_at + (int)a->m->records)
		remove_orphan_gate(a->n, a->m->hash);
	else if (nft_raced(r))
		a->careful = true;
	else
		ret = r;
	if (!ret || e->set)
		return ret;
	err_sys(e, -ret, ERR_SYSTEM, "unable to set up nftables rules for port mappings");
	return f->ext[0] ? err_detail(e, "%s", f->ext) : -1;
}

/* Makes the gate's chain and lets libnftables write into it, before anything leads there. */
static int prepare_gate(struct attempt *a, struct err *e)
{
	char gate[PORT_GATE];
	int ret;

	if (portrules_del(a->n, a->m->hash, NULL, e))
		return -1;
	nft_begin(a->n, 0);
	if (nft_table_get(a->n, &port_table)) {
		portlayout_put_table(a->n);
		for (size_t i = 0; i < a->m->from_len; i++)
			portlayout_put_masq(a->n, &a->m->from[i]);
	}
	nft_chain_create(a->n, &port_table,
		&(struct nft_chain){.name = portlayout_gate_name(a->m->hash, gate),
			.comment = a->m->owner});
	ret = nft_commit(a->n, NULL);
	for (size_t i = 0; i < 2 && !ret; i++)
		if (a->m->gates[i] && a->x->conds[i]->nft)
			ret = portconds_apply(&port_table, gate, a->x->conds[i], e);
	a->gate_ready = !ret;
	if (ret && !e->set && !nft_raced(ret))
		err_sys(e, -ret, ERR_SYSTEM, "unable to set up conditions of port mappings");
	return e->set ? -1 : ret;
}

static bool gate_lost(struct attempt *a)
{
	char gate[PORT_GATE];

	return a->gate_ready && nft_chain_get(a->n, &port_table,
					portlayout_gate_name(a->m->hash, gate), NULL, NULL);
}

static int add(struct attempt *a, bool prepare, struct err *e)
{
	struct nft_failure f = {0};
	int ret;

	for (int i = 0; i < ATTEMPTS && a->m->len; i++) {
		ret = prepare && !a->gate_ready ? prepare_gate(a, e) : 0;
		if (e->set)
			return -1;
		if (ret)
			continue;
		ret = look(a);
		if (!ret)
			ret = try_add(a, &f);
		if (!ret)
			return 0;
		if (learn(a, ret, &f, e))
			return -1;
		a->gate_ready = a->gate_ready && !gate_lost(a);
	}
	/* The container's other attachments have all the ports already. */
	if (!a->m->len)
		return portrules_del(a->n, a->m->hash, NULL, e);
	return err_set(e, ERR_TRY_AGAIN, "unable to set up port mappings: the rules keep changing");
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

/* ---- checking ---- */

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

	return !comment_of(a->n, p->set, &p->elem.key, comment) && owner_parse(comment, &ref) &&
	       strcmp(ref.hash, a->m->hash) != 0 && !portrules_load(a->n, ref.hash, &holder) &&
	       same_container(&holder, a->x->container);
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
	return err_set(a->e, ERR_CHECK,
		"missing hostport rules in \"%s\": host port %u/%s %s", p->set, p->m->host_port,
		portproto_name(p->m->proto), ret ? "is not mapped" : "leads elsewhere");
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
	if (!nft_chain_get(a->n, &port_table, portlayout_gate_name(a->m->hash, gate), take_use,
		    &use) &&
		use >= want)
		return 0;
	return err_set(a->e, ERR_CHECK, "missing hostport rules in \"%s\" chain", gate);
}

/* The rules that belong to nobody in particular: that nobody emptied their chains. */
static int check_chains(struct audit *a)
{
	const struct {
		const char *name;
		size_t rules;
	} chains[] = {{"prerouting", 2}, {"output", 2}, {"translate4", 4}, {"translate6", 4},
		{"guard", 2}, {"postrouting", a->m->from_len}};

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

int portrules_check(struct nft *n, struct portmaps *m, const struct port_extras *x,
	struct err *e)
{
	struct audit a = {.n = n, .m = m, .x = x, .e = e};
	char path[PORTRULES_SYSCTL], value[16] = "";
	struct nft_key dev;

	if (check_chains(&a) || without_yielded(&a, m) || check_gate(&a) ||
		portlayout_each(m, check_place, &a))
		return e->set ? -1 : err_set(e, ERR_SYSTEM, "out of memory");
	if (!x->localnet[0])
		return 0;
	dev = portlayout_dev_key(x->localnet);
	if (nft_elem_get(n, &port_table, PORT_LOCALNET, &dev, NULL, NULL))
		return err_set(e, ERR_CHECK, "missing hostport rules: %s is not guarded against "
					     "127.0.0.0/8 from outside",
			x->localnet);
	if (sysctl_get(portrules_sysctl(x->localnet, path), value, sizeof(value)) ||
		strcmp(value, "1") != 0)
		return err_set(e, ERR_CHECK, "route_localnet of %s is not set", x->localnet);
	return 0;
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
