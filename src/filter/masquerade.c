#include "filter/masquerade.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "filter/change.h"
#include "filter/xtables.h"
#include "netlink/nft.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Upstream's objects, so that either side finds what the other made. */
static const struct nft_table masq = {NFPROTO_INET, "cni_plugins_masquerade"};
#define CHECKS "masq_checks"
#define ENTRY  "postrouting"

/* "<network>-<ifname:id>", each as 16 hex digits. */
#define TAG_LEN (OWNER_NET + 1 + 16)

static void make_tag(const struct owner *o, char out[static TAG_LEN + 1])
{
	char half[16 + 1];

	hash_hex(half, 16, o->ifname, ":", o->id, NULL);
	snprintf(out, TAG_LEN + 1, "%s-%s", o->net, half);
}

static void make_comment(const struct owner *o, const char *tag, char out[static NFT_COMMENT_SIZE])
{
	autofree char *text = NULL;
	size_t used = 0;

	if (asprintf(&text, "%s, net: %s, if: %s, id: %s", tag, o->network, o->ifname, o->id) < 0)
		text = NULL;
	/* The nft tool cannot read back a comment that has quotes in it. */
	for (const char *p = text ? text : tag; *p && used < NFT_COMMENT_MAX; p++)
		if (*p != '"')
			out[used++] = *p;
	out[used] = '\0';
}

/* ---- the rules ---- */

/* What leaves from the address to outside its network. In chain masq_checks:
 *	ip saddr ADDRESS ip daddr != NETWORK masquerade comment "…"
 * ip6 likewise. */
static void check_rule(struct nft *n, const struct prefix *addr, const char *comment)
{
	struct prefix self = {addr->ip, ip_bits(&addr->ip)};

	nft_rule_begin(n, &masq, CHECKS, NFT_APPEND, comment);
	nft_match_addr(n, NFT_SRC, &self, false);
	nft_match_addr(n, NFT_DST, addr, true);
	nft_x_masq(n, 0);
	nft_rule_end(n);
}

#define ENTRY_RULES 3

/* Rule i of chain postrouting:
 *	ip daddr 224.0.0.0/4 return
 *	ip6 daddr ff00::/8 return
 *	goto masq_checks */
static void entry_rule(struct nft *n, size_t i)
{
	static const struct prefix multicast[] = {
		{{AF_INET, {224}}, 4},
		{{AF_INET6, {0xff}}, 8},
	};

	nft_rule_begin(n, &masq, ENTRY, NFT_APPEND, NULL);
	if (i < array_len(multicast)) {
		nft_match_addr(n, NFT_DST, &multicast[i], false);
		nft_x_verdict(n, NFT_RETURN, NULL);
	} else {
		nft_x_verdict(n, NFT_GOTO, CHECKS);
	}
	nft_rule_end(n);
}

/* With bridge-nf-call-iptables a bridged packet passes the chains of IP. On its way to a gateway
 * behind a port it would be masqueraded there, with an address of the node's as source that the
 * gateway refuses, and conntrack would not decide again when the packet is routed. So it is not
 * tracked before it passes the gateway; nor is the answer after. */
#define BRIDGED       "bridged"
#define GATEWAYS      "gateways"
#define BRIDGED_RULES 2
#define PRIO_RAW      (-300) /* linux/netfilter_ipv4.h: before conntrack */

/* Rule i of chain bridged:
 *	iifname . ether daddr @gateways notrack
 *	iifname . ether saddr @gateways notrack */
static void bridged_rule(struct nft *n, size_t i)
{
	nft_rule_begin(n, &masq, BRIDGED, NFT_APPEND, NULL);
	nft_load_iifname_ether(n, i ? NFT_SRC : NFT_DST);
	nft_match_set(n, GATEWAYS, false);
	nft_x_notrack(n);
	nft_rule_end(n);
}

static struct nft_key gateway_key(const struct ipmasq_gateway *via)
{
	struct nft_key key = {0};

	nft_key_ifname(&key, via->bridge);
	nft_key_ether(&key, via->mac);
	return key;
}

/* ---- what there is ---- */

typedef char rule_text[NFT_RULE_TEXT];

/* The attachment's rules in masq_checks. */
struct own {
	char tag[TAG_LEN + 1];
	const rule_text *want; /* the rules there should be */
	size_t want_len;
	size_t found;               /* how many of them there are */
	struct nft_handles handles; /* of all rules of the attachment */
	size_t others;              /* rules of others */
};

static void own_reset(void *arg)
{
	struct own *own = arg;

	own->handles.len = 0;
	own->found = own->others = 0;
}

static void own_free(struct own *own)
{
	nft_handles_free(&own->handles);
}

static int own_take(const struct nft_rule_info *r, void *arg)
{
	struct own *own = arg;
	rule_text text;

	if (strncmp(r->comment, own->tag, TAG_LEN) != 0) {
		own->others++;
		return 0;
	}
	nft_handles_put(&own->handles, r->handle);
	if (!own->want_len || !nft_rule_text(r, text))
		return 0;
	for (size_t i = 0; i < own->want_len; i++)
		if (!strcmp(text, own->want[i])) {
			own->found++;
			break;
		}
	return 0;
}

static int own_read(struct nft *n, struct own *own)
{
	int ret;

	own_reset(own);
	ret = nft_rules(n, &masq, CHECKS, own_take, own_reset, own);
	/* No chain, no rules. */
	return ret == -ENOENT ? 0 : ret;
}

/* A chain of everybody's, that should have these rules and no others. */
#define SHARED_RULES ENTRY_RULES
struct shared {
	rule_text want[SHARED_RULES];
	size_t len, seen;
	bool wrong;
};

static void shared_reset(void *arg)
{
	struct shared *s = arg;

	s->seen = 0;
	s->wrong = false;
}

static int shared_take(const struct nft_rule_info *r, void *arg)
{
	struct shared *s = arg;
	rule_text text;

	if (s->seen >= s->len || !nft_rule_text(r, text) || strcmp(text, s->want[s->seen]) != 0)
		s->wrong = true;
	s->seen++;
	return 0;
}

/* Whether it is as it should be: 1, 0, or -errno. */
static int shared_right(
	struct nft *n, const char *chain, void (*rule)(struct nft *n, size_t i), size_t len)
{
	autofree struct shared *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->len = len;
	nft_begin(n, 0);
	for (size_t i = 0; i < len; i++) {
		rule(n, i);
		nft_built_text(n, s->want[i]);
	}
	nft_begin(n, 0);
	ret = nft_rules(n, &masq, chain, shared_take, shared_reset, s);
	return ret == -ENOENT ? 0 : ret ? ret : !s->wrong && s->seen == len;
}

static int entry_right(struct nft *n)
{
	return shared_right(n, ENTRY, entry_rule, ENTRY_RULES);
}

/* The same about what a gateway behind a port needs; without one nothing. */
static int bridged_right(struct nft *n, const struct ipmasq_gateway *via)
{
	struct nft_key key;
	int ret;

	if (!via)
		return 1;
	key = gateway_key(via);
	ret = nft_elem_get(n, &masq, GATEWAYS, &key, NULL, NULL);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	return shared_right(n, BRIDGED, bridged_rule, BRIDGED_RULES);
}

static rule_text *wanted(struct nft *n, const struct prefix *addrs, size_t len)
{
	rule_text *want = calloc(len ? len : 1, sizeof(*want));

	nft_begin(n, 0);
	for (size_t i = 0; want && i < len; i++) {
		check_rule(n, &addrs[i], NULL);
		nft_built_text(n, want[i]);
	}
	nft_begin(n, 0);
	return want;
}

/* ---- ADD ---- */

static void put_entry(struct nft *n)
{
	nft_table_add(n, &masq, "CNI masquerading");
	nft_chain_add(n, &masq,
		&(struct nft_chain){
			.name = CHECKS, .comment = "Masquerade traffic of attachments"});
	nft_chain_add(n, &masq,
		&(struct nft_chain){
			.name = ENTRY, .type = "nat", .hook = NF_INET_POST_ROUTING, .prio = 100});
	nft_chain_flush(n, &masq, ENTRY);
	for (size_t i = 0; i < ENTRY_RULES; i++)
		entry_rule(n, i);
}

static void put_bridged(struct nft *n, const struct ipmasq_gateway *via)
{
	struct nft_elem gateway = {.key = gateway_key(via)};

	nft_set_add(n, &masq,
		&(struct nft_set){.name = GATEWAYS,
			.key = {NFT_FIELD_IFNAME, NFT_FIELD_ETHER},
			.comment = "bridge . gateway behind one of its ports"});
	nft_chain_add(n, &masq,
		&(struct nft_chain){.name = BRIDGED,
			.type = "filter",
			.hook = NF_INET_PRE_ROUTING,
			.prio = PRIO_RAW});
	nft_chain_flush(n, &masq, BRIDGED);
	for (size_t i = 0; i < BRIDGED_RULES; i++)
		bridged_rule(n, i);
	nft_elems_add(n, &masq, GATEWAYS, &gateway, 1);
}

/* One look and one change. While the shared chains are right they are not even named in the batch:
 * should the table vanish meanwhile, with the last attachment's DEL, the commit fails and is tried
 * again. */
static int add_once(struct nft *n, struct own *own, const struct prefix *addrs, size_t len,
	const char *comment, const struct ipmasq_gateway *via, struct nft_failure *f)
{
	int entry = entry_right(n), bridged, ret;

	if (entry < 0)
		return entry;
	bridged = bridged_right(n, via);
	if (bridged < 0)
		return bridged;
	ret = own_read(n, own);
	if (ret || (entry && bridged && own->found == len && own->handles.len == len))
		return ret;
	nft_begin(n, 0);
	if (!entry)
		put_entry(n);
	if (!bridged)
		put_bridged(n, via);
	nft_rules_del(n, &masq, CHECKS, &own->handles);
	for (size_t i = 0; i < len; i++)
		check_rule(n, &addrs[i], comment);
	return nft_commit(n, f);
}

int ipmasq_add(const struct owner *o, const struct prefix *addrs, size_t len,
	const struct ipmasq_gateway *via, struct err *e)
{
	__attribute__((cleanup(own_free))) struct own own = {.want_len = len};
	char comment[NFT_COMMENT_SIZE];
	autofree rule_text *want = NULL;
	struct change c = {0};
	autonft *n = NULL;
	int ret = 0;

	if (!len)
		return 0;
	if (nft_open(&n, e))
		return -1;
	make_tag(o, own.tag);
	make_comment(o, own.tag, comment);
	own.want = want = wanted(n, addrs, len);
	if (!want)
		return err_memory(e);
	c.n = n;
	while (change_again(&c, &ret))
		ret = add_once(n, &own, addrs, len, comment, via, &c.failure);
	return ret ? change_failed(e, ret, &c.failure, ERR_SYSTEM,
			     "failed to set up masquerading of network %s", o->network)
		   : 0;
}

/* ---- DEL ---- */

static int take_use(const struct nft_chain_info *c, void *arg)
{
	*(uint32_t *)arg = c->use;
	return 0;
}

/* Removes the table if nobody has a rule in it. The generation number makes sure that none came in
 * after the look. */
static int remove_once(struct nft *n, struct nft_failure *f)
{
	struct own own = {0};
	uint32_t use = 0, genid;
	int ret = nft_genid(n, &genid);

	if (!ret)
		ret = nft_chain_get(n, &masq, CHECKS, take_use, &use);
	/* The entry chain's goto counts as one use. */
	if (ret || use > 1)
		return ret == -ENOENT ? 0 : ret;
	ret = own_read(n, &own);
	own_free(&own);
	if (ret || own.others)
		return ret;
	nft_begin(n, genid);
	nft_table_del(n, &masq);
	return nft_commit(n, f);
}

static int remove_empty(struct nft *n)
{
	struct change c = {.n = n};
	int ret = 0;

	while (change_again(&c, &ret))
		ret = remove_once(n, &c.failure);
	/* An empty table that is too busy to be removed does no harm. */
	return nft_raced(ret) ? 0 : ret;
}

/* Deletes what own->tag matches; the last rule takes the table along in the same transaction. */
static int del_once(struct nft *n, struct own *own, bool with_table, struct nft_failure *f)
{
	uint32_t genid;
	int r = nft_genid(n, &genid);
	bool last;

	if (!r)
		r = own_read(n, own);
	if (r || (!own->handles.len && !own->handles.failed))
		return r;
	last = with_table && !own->others;
	nft_begin(n, last ? genid : 0);
	if (last)
		nft_table_del(n, &masq);
	else
		nft_rules_del(n, &masq, CHECKS, &own->handles);
	r = nft_commit(n, f);
	/* Two that leave at the same time each see the other's rule: look again afterwards. */
	return r || last ? r : remove_empty(n);
}

static int del_nft(struct nft *n, const struct owner *o, struct change *c)
{
	__attribute__((cleanup(own_free))) struct own own = {0};
	int ret = 0;

	make_tag(o, own.tag);
	while (change_again(c, &ret))
		ret = del_once(n, &own, c->attempt <= CHANGE_PATIENCE, &c->failure);
	return ret;
}

int ipmasq_del(const struct owner *o, struct err *e)
{
	struct change c = {0};
	autonft *n = NULL;
	int ret = change_open(&n, e), old;

	if (ret <= 0)
		return ret;
	c.n = n;
	ret = del_nft(n, o, &c);
	old = xtables_masq_del(n, o->network, o->id);
	if (ret || !old)
		return ret ? change_failed(e, ret, &c.failure, ERR_SYSTEM,
				     "failed to remove the masquerading of network %s", o->network)
			   : 0;
	return err_sys(e, -old, ERR_SYSTEM,
		"failed to remove the iptables masquerading of network %s", o->network);
}

/* ---- CHECK ---- */

int ipmasq_check(const struct owner *o, const struct prefix *addrs, size_t len,
	const struct ipmasq_gateway *via, struct err *e)
{
	__attribute__((cleanup(own_free))) struct own own = {.want_len = len};
	autofree rule_text *want = NULL;
	autonft *n = NULL;
	const char *chain_name = ENTRY;
	int ret;

	if (!len)
		return 0;
	if (nft_open(&n, e))
		return -1;
	make_tag(o, own.tag);
	own.want = want = wanted(n, addrs, len);
	if (!want)
		return err_memory(e);
	ret = own_read(n, &own);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to read the masquerading rules");
	/* A container that upstream made with iptables, before the plugin was replaced. */
	if (!own.handles.len && xtables_masq_has(n, o->network, o->id))
		return 0;
	if (own.found < len)
		return err_set(e, ERR_CHECK,
			"%zu of %zu masquerading rules of network %s are missing", len - own.found,
			len, o->network);
	ret = entry_right(n);
	if (ret > 0) {
		chain_name = BRIDGED;
		ret = bridged_right(n, via);
	}
	if (ret < 0)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to read the masquerading rules");
	return ret ? 0
		   : err_set(e, ERR_CHECK, "chain %s of table inet %s was changed", chain_name,
			     masq.name);
}

/* ---- GC ---- */

struct sweep {
	char net[OWNER_NET + 2]; /* with the dash */
	char (*valid)[TAG_LEN + 1];
	size_t valid_len;
	struct nft_handles handles;
	size_t others;
};

static int by_tag(const void *a, const void *b)
{
	return strncmp(a, b, TAG_LEN);
}

static void sweep_reset(void *arg)
{
	struct sweep *s = arg;

	s->handles.len = 0;
	s->others = 0;
}

static int sweep_take(const struct nft_rule_info *r, void *arg)
{
	struct sweep *s = arg;

	if (strncmp(r->comment, s->net, sizeof(s->net) - 1) != 0 || strlen(r->comment) < TAG_LEN ||
		(s->valid_len &&
			bsearch(r->comment, s->valid, s->valid_len, sizeof(*s->valid), by_tag)))
		s->others++;
	else
		nft_handles_put(&s->handles, r->handle);
	return 0;
}

/* As in del_once(), the last rules take the table along; one that is empty all the same (a DEL was
 * killed) goes too. */
static int gc_once(struct nft *n, struct sweep *s, bool with_table, struct nft_failure *f)
{
	uint32_t genid;
	int r = nft_genid(n, &genid);
	bool last;

	sweep_reset(s);
	r = r ? r : nft_rules(n, &masq, CHECKS, sweep_take, sweep_reset, s);
	r = r == -ENOENT ? 0 : r;
	if (r || !s->handles.len)
		return r || s->others ? r : remove_empty(n);
	last = with_table && !s->others;
	nft_begin(n, last ? genid : 0);
	if (last)
		nft_table_del(n, &masq);
	else
		nft_rules_del(n, &masq, CHECKS, &s->handles);
	r = nft_commit(n, f);
	return r || last || s->others ? r : remove_empty(n);
}

static int valid_tags(struct sweep *s, const struct valid_set *valid)
{
	s->valid = calloc(valid->len ? valid->len : 1, sizeof(*s->valid));
	if (!s->valid)
		return -1;
	for (size_t i = 0; i < valid->len; i++)
		make_tag(&valid->owners[i], s->valid[i]);
	s->valid_len = valid->len;
	qsort(s->valid, s->valid_len, sizeof(*s->valid), by_tag);
	return 0;
}

int ipmasq_gc(const struct request *req, const struct valid_set *valid, struct err *e)
{
	struct change c = {0};
	struct sweep s = {0};
	autonft *n = NULL;
	int ret = change_open(&n, e), old;

	if (ret <= 0)
		return ret;
	snprintf(s.net, sizeof(s.net), "%s-", req->owner.net);
	if (valid_tags(&s, valid))
		return err_memory(e);
	c.n = n;
	ret = 0;
	while (change_again(&c, &ret))
		ret = gc_once(n, &s, c.attempt <= CHANGE_PATIENCE, &c.failure);
	nft_handles_free(&s.handles);
	free(s.valid);
	old = xtables_masq_gc(n, req->network, valid);
	ret = ret ? ret : old;
	return ret ? change_failed(e, ret, &c.failure, ERR_SYSTEM,
			     "failed to collect the masquerading of network %s", req->network)
		   : 0;
}

/* ---- STATUS ---- */

static void put_probe(struct nft *n)
{
	static const struct prefix any[] = {
		{{AF_INET, {192, 0, 2, 1}}, 24}, {{AF_INET6, {0x20, 0x01, 0x0d, 0xb8}}, 64}};

	/* While a network is masqueraded all that is needed is there; to look costs less than the
	 * grace period in which the kernel drops what it has checked. */
	if (entry_right(n) > 0)
		return;
	put_entry(n);
	for (size_t i = 0; i < array_len(any); i++)
		check_rule(n, &any[i], NULL);
}

static void put_probe_via(struct nft *n)
{
	static const struct ipmasq_gateway via = {.bridge = "lo", .mac = {2}};

	if (shared_right(n, BRIDGED, bridged_rule, BRIDGED_RULES) > 0)
		return;
	put_entry(n);
	put_bridged(n, &via);
}

int ipmasq_status(bool via, struct err *e)
{
	if (change_probe(put_probe, "masquerading", e))
		return -1;
	return via ? change_probe(put_probe_via, "masquerading behind a port of a bridge", e) : 0;
}
