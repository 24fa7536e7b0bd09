#include "filter/spoof.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "filter/change.h"
#include "netlink/nft.h"

#include <errno.h>
#include <linux/netfilter_bridge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Upstream's objects. Table and base chain are shared with other tools (libvirt, ebtables-nft):
 * they are removed only if their comment says that we made them, and nothing is left in them. */
static const struct nft_table nat = {NFPROTO_BRIDGE, "nat"};
#define BASE    "PREROUTING"
#define MADE_BY "cnibox macspoofchk"

struct names {
	char iface[NFT_NAME_MAXLEN]; /* cni-br-iface-<id>-<ifname> */
	char mac[NFT_NAME_MAXLEN];   /* the same with -mac */
	char comment[NFT_COMMENT_SIZE];
	char owner[NFT_COMMENT_SIZE];
};

/* False when the names are longer than the kernel's limit of 255 bytes. */
static bool make_names(const struct owner *o, struct names *out)
{
	int a, b;

	a = snprintf(out->iface, sizeof(out->iface), "cni-br-iface-%s-%s", o->id, o->ifname);
	b = snprintf(out->mac, sizeof(out->mac), "cni-br-iface-%s-%s-mac", o->id, o->ifname);
	if (snprintf(out->comment, sizeof(out->comment), "macspoofchk-%s-%s", o->id, o->ifname) < 0)
		return false;
	owner_comment(o, out->owner, sizeof(out->owner));
	return a > 0 && b > 0 && (size_t)b < sizeof(out->mac);
}

/* ---- what there is ---- */

/* 1, 0, or -errno. */
static int exists(struct nft *n, const char *chain)
{
	int r = nft_chain_get(n, &nat, chain, NULL, NULL);

	return r == -ENOENT ? 0 : r ? r : 1;
}

/* Puts into the batch what removes the attachment's objects. 1 when there are any, 0, or -errno. */
static int put_removal(struct nft *n, const struct names *names)
{
	autohandles j = {0};
	int iface = exists(n, names->iface), mac, r = 0;

	if (iface < 0)
		return iface;
	mac = exists(n, names->mac);
	if (mac < 0)
		return mac;
	if (iface)
		r = nft_jumps(n, &nat, BASE, names->iface, &j);
	if (!r) {
		nft_rules_del(n, &nat, BASE, &j);
		if (iface)
			nft_chain_del(n, &nat, names->iface);
		if (mac)
			nft_chain_del(n, &nat, names->mac);
	}
	return r ? r : iface || mac;
}

/* ---- ADD ---- */

static void jump_rule(struct nft *n, const struct names *names, const char *host_ifname)
{
	nft_rule_begin(n, &nat, BASE, NFT_APPEND, names->comment);
	nft_match_iifname(n, host_ifname, false);
	nft_x_verdict(n, NFT_JUMP, names->iface);
	nft_rule_end(n);
}

static void iface_rule(struct nft *n, const struct names *names)
{
	nft_rule_begin(n, &nat, names->iface, NFT_APPEND, names->comment);
	nft_x_verdict(n, NFT_JUMP, names->mac);
	nft_rule_end(n);
}

static void allow_rule(struct nft *n, const struct names *names, const uint8_t mac[static 6])
{
	nft_rule_begin(n, &nat, names->mac, NFT_APPEND, names->comment);
	nft_match_ether(n, NFT_SRC, mac, false);
	nft_x_verdict(n, NFT_RETURN, NULL);
	nft_rule_end(n);
}

static void drop_rule(struct nft *n, const struct names *names)
{
	nft_rule_begin(n, &nat, names->mac, NFT_APPEND, names->comment);
	nft_x_verdict(n, NF_DROP, NULL);
	nft_rule_end(n);
}

static void put_base(struct nft *n)
{
	nft_table_add(n, &nat, MADE_BY);
	nft_chain_add(n, &nat,
		&(struct nft_chain){.name = BASE,
			.comment = MADE_BY,
			.type = "filter",
			.hook = NF_BR_PRE_ROUTING,
			.prio = NF_BR_PRI_NAT_DST_BRIDGED});
}

static void put_filter(struct nft *n, const struct names *names, const char *host_ifname,
	const uint8_t mac[static 6])
{
	nft_chain_create(
		n, &nat, &(struct nft_chain){.name = names->iface, .comment = names->owner});
	nft_chain_create(n, &nat, &(struct nft_chain){.name = names->mac, .comment = names->owner});
	iface_rule(n, names);
	allow_rule(n, names, mac);
	drop_rule(n, names);
	jump_rule(n, names, host_ifname);
}

static int take_kind(const struct nft_chain_info *c, void *arg)
{
	*(bool *)arg = c->base && c->hook == NF_BR_PRE_ROUTING && !strcmp(c->type, "filter");
	return 0;
}

static int add_once(struct nft *n, const struct names *names, const char *host_ifname,
	const uint8_t mac[static 6], struct nft_failure *f)
{
	bool base = false;
	int r = nft_chain_get(n, &nat, BASE, take_kind, &base);

	if (r && r != -ENOENT)
		return r;
	nft_begin(n, 0);
	/* Older chains go entirely: an upstream chain lacks the owner in its comment. */
	r = put_removal(n, names);
	if (r < 0)
		return r;
	/* Should the base vanish until the commit, that fails and is tried again. One of another
	 * kind is left to the kernel to refuse. */
	if (!base)
		put_base(n);
	put_filter(n, names, host_ifname, mac);
	return nft_commit(n, f);
}

int spoof_add(
	const struct owner *o, const char *host_ifname, const uint8_t mac[static 6], struct err *e)
{
	struct names names;
	struct change c = {0};
	autonft *n = NULL;
	int ret = 0;

	if (!make_names(o, &names))
		return err_set(e, ERR_INVALID_ENVIRONMENT,
			"container ID %s is too long for the MAC spoof filter", o->id);
	if (nft_open(&n, e))
		return -1;
	c.n = n;
	while (change_again(&c, &ret))
		ret = add_once(n, &names, host_ifname, mac, &c.failure);
	return ret ? change_failed(e, ret, &c.failure, ERR_SYSTEM,
			     "failed to set up the MAC spoof filter of %s", host_ifname)
		   : 0;
}

/* ---- DEL ---- */

/* The base chain, and the table's other chains. */
struct base {
	bool idle; /* ours and empty */
	size_t others;
};

static int base_take(const struct nft_chain_info *c, void *arg)
{
	struct base *b = arg;

	if (!strcmp(c->name, BASE))
		b->idle = !c->use && !strcmp(c->comment, MADE_BY);
	else
		b->others++;
	return 0;
}

static void base_reset(void *arg)
{
	*(struct base *)arg = (struct base){0};
}

/* Removes base chain and table if they are ours and not used any more. */
static int remove_once(struct nft *n, struct nft_failure *f)
{
	char comment[NFT_COMMENT_SIZE];
	struct base b = {0};
	uint32_t genid;
	int ret = nft_chain_get(n, &nat, BASE, base_take, &b);

	if (ret || !b.idle)
		return ret == -ENOENT ? 0 : ret;
	ret = nft_genid(n, &genid);
	if (!ret)
		ret = nft_table_comment(n, &nat, comment);
	base_reset(&b);
	if (!ret)
		ret = nft_chains(n, &nat, base_take, base_reset, &b);
	if (ret || !b.idle)
		return ret;
	nft_begin(n, genid);
	if (!b.others && !strcmp(comment, MADE_BY))
		nft_table_del(n, &nat);
	else
		nft_chain_del(n, &nat, BASE);
	return nft_commit(n, f);
}

static int remove_base(struct nft *n)
{
	struct change c = {.n = n};
	int ret = 0;

	while (change_again(&c, &ret))
		ret = remove_once(n, &c.failure);
	/* What is too busy to be removed does no harm. */
	return nft_raced(ret) ? 0 : ret;
}

static int del_once(struct nft *n, const struct names *names, struct nft_failure *f)
{
	int ret;

	nft_begin(n, 0);
	ret = put_removal(n, names);
	return ret > 0 ? nft_commit(n, f) : ret;
}

int spoof_del(const struct owner *o, struct err *e)
{
	struct change c = {0};
	struct names names;
	autonft *n = NULL;
	int ret;

	if (!make_names(o, &names))
		return 0; /* nothing can have been made under such a name */
	ret = change_open(&n, e);
	if (ret <= 0)
		return ret;
	c.n = n;
	ret = 0;
	while (change_again(&c, &ret))
		ret = del_once(n, &names, &c.failure);
	/* Also where nothing was left but that: a DEL may have been killed before it came so far.
	 */
	if (!ret)
		ret = remove_base(n);
	return ret ? change_failed(e, ret, &c.failure, ERR_SYSTEM,
			     "failed to remove the MAC spoof filter of %s in container %s",
			     o->ifname, o->id)
		   : 0;
}

/* ---- CHECK ---- */

struct expect {
	const char *chain;
	char text[2][NFT_RULE_TEXT]; /* in this order, */
	size_t len;
	bool among; /* or: the one, among others */
	size_t seen, found;
};

static void expect_reset(void *arg)
{
	struct expect *x = arg;

	x->seen = x->found = 0;
}

static int expect_take(const struct nft_rule_info *r, void *arg)
{
	char text[NFT_RULE_TEXT];
	struct expect *x = arg;
	size_t at = x->among ? 0 : x->seen;

	if (at < x->len && nft_rule_text(r, text) && !strcmp(text, x->text[at]))
		x->found++;
	x->seen++;
	return 0;
}

/* 1 when the chain is as expected, 0, or -errno. */
static int expect_check(struct nft *n, struct expect *x)
{
	int r = nft_rules(n, &nat, x->chain, expect_take, expect_reset, x);

	if (r)
		return r;
	return x->among ? x->found > 0 : x->found == x->len && x->seen == x->len;
}

int spoof_check(
	const struct owner *o, const char *host_ifname, const uint8_t mac[static 6], struct err *e)
{
	autofree struct expect *x = calloc(3, sizeof(*x));
	struct names names;
	autonft *n = NULL;
	int r = 1;

	if (!x)
		return err_memory(e);
	if (!make_names(o, &names))
		return err_set(e, ERR_CHECK, "there is no MAC spoof filter for %s", host_ifname);
	if (nft_open(&n, e))
		return -1;
	x[0] = (struct expect){.chain = BASE, .len = 1, .among = true};
	x[1] = (struct expect){.chain = names.iface, .len = 1};
	x[2] = (struct expect){.chain = names.mac, .len = 2};
	nft_begin(n, 0);
	jump_rule(n, &names, host_ifname);
	nft_built_text(n, x[0].text[0]);
	iface_rule(n, &names);
	nft_built_text(n, x[1].text[0]);
	allow_rule(n, &names, mac);
	nft_built_text(n, x[2].text[0]);
	drop_rule(n, &names);
	nft_built_text(n, x[2].text[1]);
	nft_begin(n, 0);
	for (int i = 0; i < 3 && r > 0; i++)
		r = expect_check(n, &x[i]);
	if (r < 0)
		return err_sys(e, -r, ERR_SYSTEM, "failed to read the MAC spoof filter");
	return r ? 0
		 : err_set(e, ERR_CHECK, "the MAC spoof filter of %s is missing or was changed",
			   host_ifname);
}

/* ---- GC ---- */

/* Chains of attachments of the network that are not valid any more: upstream's chains do not tell
 * their network and are left alone. */
struct sweep {
	const struct request *req;
	const struct valid_set *valid;
	char **chains; /* each owned */
	size_t len;
	struct nft_handles handles; /* of jumps to them */
};

static void sweep_reset(void *arg)
{
	struct sweep *s = arg;

	for (size_t i = 0; i < s->len; i++)
		free(s->chains[i]);
	s->len = 0;
}

static void sweep_free(struct sweep *s)
{
	sweep_reset(s);
	free(s->chains);
	nft_handles_free(&s->handles);
}

static int sweep_chain(const struct nft_chain_info *c, void *arg)
{
	struct sweep *s = arg;
	struct owner_ref ref;
	char **name;

	if (!owner_parse(c->comment, &ref) || !change_is_stale(s->req, s->valid, &ref))
		return 0;
	name = vec_add(s->chains, s->len);
	if (!name)
		return -ENOMEM;
	*name = strdup(c->name);
	return *name ? 0 : -ENOMEM;
}

static void sweep_jumps_reset(void *arg)
{
	((struct sweep *)arg)->handles.len = 0;
}

static int sweep_jump(const struct nft_rule_info *r, void *arg)
{
	struct sweep *s = arg;

	for (size_t i = 0; *r->jump && i < s->len; i++)
		if (!strcmp(r->jump, s->chains[i])) {
			nft_handles_put(&s->handles, r->handle);
			break;
		}
	return 0;
}

static int gc_once(struct nft *n, struct sweep *s, struct nft_failure *f)
{
	int r;

	sweep_reset(s);
	r = nft_chains(n, &nat, sweep_chain, sweep_reset, s);
	if (r || !s->len)
		return r ? r : remove_base(n);
	sweep_jumps_reset(s);
	r = nft_rules(n, &nat, BASE, sweep_jump, sweep_jumps_reset, s);
	if (r)
		return r;
	nft_begin(n, 0);
	nft_rules_del(n, &nat, BASE, &s->handles);
	/* Their jumps to each other go first. */
	for (size_t i = 0; i < s->len; i++)
		nft_chain_flush(n, &nat, s->chains[i]);
	for (size_t i = 0; i < s->len; i++)
		nft_chain_del(n, &nat, s->chains[i]);
	r = nft_commit(n, f);
	return r ? r : remove_base(n);
}

int spoof_gc(const struct request *req, const struct valid_set *valid, struct err *e)
{
	__attribute__((cleanup(sweep_free))) struct sweep s = {.req = req, .valid = valid};
	struct change c = {0};
	autonft *n = NULL;
	int ret = change_open(&n, e);

	if (ret <= 0)
		return ret;
	c.n = n;
	ret = 0;
	while (change_again(&c, &ret))
		ret = gc_once(n, &s, &c.failure);
	return ret ? change_failed(e, ret, &c.failure, ERR_SYSTEM,
			     "failed to collect the MAC spoof filters of network %s", req->network)
		   : 0;
}

/* ---- STATUS ---- */

static void put_probe(struct nft *n)
{
	static const struct names names = {.iface = "cnibox-probe", .mac = "cnibox-probe-mac"};

	bool base = false;

	if (!nft_chain_get(n, &nat, BASE, take_kind, &base) && base)
		return;
	put_base(n);
	put_filter(n, &names, "lo", (const uint8_t[6]){2});
}

int spoof_status(struct err *e)
{
	return change_probe(put_probe, "the MAC spoof filter", e);
}
