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

/* The two chains of an attachment, and the comment on its rules. */
struct chains {
	char iface[NFT_NAME_MAXLEN]; /* where frames from the container's port go */
	char mac[NFT_NAME_MAXLEN];   /* the list of source addresses that pass */
	char comment[NFT_COMMENT_SIZE];
};

/* Upstream's names run id and interface together: "web-net" + "c" and "web" + "net-c" are one, and
 * the second chain of eth0 is the first one of eth0-mac. Where another attachment, told by the mark
 * in the chains' comment, has one of them, ours get names made of our hash, which upstream does not
 * know. */
struct names {
	struct chains upstream, own;
	char owner[NFT_COMMENT_SIZE];
	const char *hash;
};

/* False when the names are longer than the kernel's limit of 255 bytes. */
static bool make_names(const struct owner *o, struct names *out)
{
	struct chains *up = &out->upstream, *own = &out->own;
	int a, b;

	a = snprintf(up->iface, sizeof(up->iface), "cni-br-iface-%s-%s", o->id, o->ifname);
	b = snprintf(up->mac, sizeof(up->mac), "cni-br-iface-%s-%s-mac", o->id, o->ifname);
	snprintf(own->iface, sizeof(own->iface), "cni-br-iface-%s", o->hash);
	snprintf(own->mac, sizeof(own->mac), "cni-br-iface-%s-mac", o->hash);
	snprintf(own->comment, sizeof(own->comment), "macspoofchk-%s", o->hash);
	if (snprintf(up->comment, sizeof(up->comment), "macspoofchk-%s-%s", o->id, o->ifname) < 0)
		return false;
	owner_comment(o, out->owner, sizeof(out->owner));
	out->hash = o->hash;
	return a > 0 && b > 0 && (size_t)b < sizeof(up->mac);
}

/* ---- what there is ---- */

enum whose { ABSENT, OURS, OTHERS };

struct look {
	const char *hash;
	enum whose whose;
};

/* Without a mark it is upstream's, which knows one attachment of that name: this one. */
static int take_whose(const struct nft_chain_info *c, void *arg)
{
	struct look *l = arg;
	struct owner_ref ref;

	l->whose = owner_parse(c->comment, &ref) && strcmp(ref.hash, l->hash) != 0 ? OTHERS : OURS;
	return 0;
}

/* An enum whose, or -errno. */
static int look_up(struct nft *n, const struct names *names, const char *chain)
{
	struct look l = {.hash = names->hash};
	int ret = nft_chain_get(n, &nat, chain, take_whose, &l);

	return ret && ret != -ENOENT ? ret : (int)l.whose;
}

/* Puts into the batch what removes the attachment's chains of these names, and the jumps to them.
 * Returns OTHERS when one of the names is another attachment's, else OURS or ABSENT; or -errno. */
static int put_removal(struct nft *n, const struct names *names, const struct chains *c)
{
	int iface = look_up(n, names, c->iface), mac, ret = 0;
	autohandles jumps = {0};

	if (iface < 0)
		return iface;
	mac = look_up(n, names, c->mac);
	if (mac < 0)
		return mac;
	if (iface == OURS)
		ret = nft_jumps(n, &nat, BASE, c->iface, &jumps);
	if (ret && ret != -ENOENT)
		return ret;
	nft_rules_del(n, &nat, BASE, &jumps);
	if (iface == OURS)
		nft_chain_del(n, &nat, c->iface);
	if (mac == OURS)
		nft_chain_del(n, &nat, c->mac);
	return iface == OTHERS || mac == OTHERS ? OTHERS
	       : iface == OURS || mac == OURS   ? OURS
						: ABSENT;
}

/* The names the attachment goes by: NULL and *ret -errno when that cannot be seen. */
static const struct chains *in_use(struct nft *n, const struct names *names, int *ret)
{
	int own = look_up(n, names, names->own.iface);

	*ret = own < 0 ? own : 0;
	return own < 0 ? NULL : own == ABSENT ? &names->upstream : &names->own;
}

/* ---- ADD ---- */

/* In chain PREROUTING, on the way into the bridge:
 *	iifname "veth…" jump cni-br-iface-ID-IFNAME comment "macspoofchk-ID-IFNAME" */
static void jump_rule(struct nft *n, const struct chains *c, const char *host_ifname)
{
	nft_rule_begin(n, &nat, BASE, NFT_APPEND, c->comment);
	nft_match_iifname(n, host_ifname, false);
	nft_x_verdict(n, NFT_JUMP, c->iface);
	nft_rule_end(n);
}

/* In chain cni-br-iface-ID-IFNAME:
 *	jump cni-br-iface-ID-IFNAME-mac comment "…" */
static void iface_rule(struct nft *n, const struct chains *c)
{
	nft_rule_begin(n, &nat, c->iface, NFT_APPEND, c->comment);
	nft_x_verdict(n, NFT_JUMP, c->mac);
	nft_rule_end(n);
}

/* In chain cni-br-iface-ID-IFNAME-mac, first:
 *	ether saddr MAC return comment "…" */
static void allow_rule(struct nft *n, const struct chains *c, const uint8_t mac[static 6])
{
	nft_rule_begin(n, &nat, c->mac, NFT_APPEND, c->comment);
	nft_match_ether(n, NFT_SRC, mac, false);
	nft_x_verdict(n, NFT_RETURN, NULL);
	nft_rule_end(n);
}

/* and then:
 *	drop comment "…" */
static void drop_rule(struct nft *n, const struct chains *c)
{
	nft_rule_begin(n, &nat, c->mac, NFT_APPEND, c->comment);
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

static void put_filter(struct nft *n, const struct chains *c, const char *owner,
	const char *host_ifname, const uint8_t mac[static 6])
{
	nft_chain_create(n, &nat, &(struct nft_chain){.name = c->iface, .comment = owner});
	nft_chain_create(n, &nat, &(struct nft_chain){.name = c->mac, .comment = owner});
	iface_rule(n, c);
	allow_rule(n, c, mac);
	drop_rule(n, c);
	jump_rule(n, c, host_ifname);
}

static int take_kind(const struct nft_chain_info *c, void *arg)
{
	*(bool *)arg = c->base && c->hook == NF_BR_PRE_ROUTING && !strcmp(c->type, "filter");
	return 0;
}

static int add_once(struct nft *n, const struct names *names, const char *host_ifname,
	const uint8_t mac[static 6], struct nft_failure *f)
{
	const struct chains *c = &names->upstream;
	bool base = false;
	int ret = nft_chain_get(n, &nat, BASE, take_kind, &base);

	if (ret && ret != -ENOENT)
		return ret;
	nft_begin(n, 0);
	/* Older chains go entirely: an upstream chain lacks the owner in its comment. */
	ret = put_removal(n, names, &names->own);
	if (ret < 0)
		return ret;
	ret = put_removal(n, names, &names->upstream);
	if (ret < 0)
		return ret;
	if (ret == OTHERS)
		c = &names->own;
	/* Should the base vanish until the commit, that fails and is tried again. One of another
	 * kind is left to the kernel to refuse. */
	if (!base)
		put_base(n);
	put_filter(n, c, names->owner, host_ifname, mac);
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

/* An empty batch is success. */
static int del_once(struct nft *n, const struct names *names, struct nft_failure *f)
{
	int ret;

	nft_begin(n, 0);
	ret = put_removal(n, names, &names->own);
	if (ret >= 0)
		ret = put_removal(n, names, &names->upstream);
	return ret < 0 ? ret : nft_commit(n, f);
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

/* What a chain should hold, as nft_rule_text() has it. */
struct expect {
	const char *chain;
	char text[2][NFT_RULE_TEXT];
	size_t len;  /* how many of text: exactly these rules, in this order */
	bool shared; /* a chain of everybody's: text[0] is somewhere among the rules */
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
	size_t at = x->shared ? 0 : x->seen;

	if (at < x->len && nft_rule_text(r, text) && !strcmp(text, x->text[at]))
		x->found++;
	x->seen++;
	return 0;
}

/* 1 when the chain is as expected, 0, or -errno. */
static int expect_check(struct nft *n, struct expect *x)
{
	int ret = nft_rules(n, &nat, x->chain, expect_take, expect_reset, x);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	return x->shared ? x->found > 0 : x->found == x->len && x->seen == x->len;
}

/* Fills in what the filter should be. */
static void expect_filter(struct nft *n, const struct chains *c, const char *host_ifname,
	const uint8_t mac[static 6], struct expect x[static 3])
{
	x[0] = (struct expect){.chain = BASE, .len = 1, .shared = true};
	x[1] = (struct expect){.chain = c->iface, .len = 1};
	x[2] = (struct expect){.chain = c->mac, .len = 2};
	nft_begin(n, 0);
	jump_rule(n, c, host_ifname);
	nft_built_text(n, x[0].text[0]);
	iface_rule(n, c);
	nft_built_text(n, x[1].text[0]);
	allow_rule(n, c, mac);
	nft_built_text(n, x[2].text[0]);
	drop_rule(n, c);
	nft_built_text(n, x[2].text[1]);
	nft_begin(n, 0);
}

int spoof_check(
	const struct owner *o, const char *host_ifname, const uint8_t mac[static 6], struct err *e)
{
	autofree struct expect *x = calloc(3, sizeof(*x));
	const struct chains *c;
	struct names names;
	autonft *n = NULL;
	int ret;

	if (!x)
		return err_memory(e);
	if (!make_names(o, &names))
		return err_set(e, ERR_CHECK, "there is no MAC spoof filter for %s", host_ifname);
	if (nft_open(&n, e))
		return -1;
	c = in_use(n, &names, &ret);
	if (c) {
		expect_filter(n, c, host_ifname, mac, x);
		ret = 1;
	}
	for (int i = 0; i < 3 && ret > 0; i++)
		ret = expect_check(n, &x[i]);
	if (ret < 0)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to read the MAC spoof filter");
	return ret ? 0
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
	int ret;

	sweep_reset(s);
	ret = nft_chains(n, &nat, sweep_chain, sweep_reset, s);
	if (ret || !s->len)
		return ret && ret != -ENOENT ? ret : remove_base(n);
	sweep_jumps_reset(s);
	ret = nft_rules(n, &nat, BASE, sweep_jump, sweep_jumps_reset, s);
	if (ret && ret != -ENOENT)
		return ret;
	nft_begin(n, 0);
	nft_rules_del(n, &nat, BASE, &s->handles);
	/* Their jumps to each other go first. */
	for (size_t i = 0; i < s->len; i++)
		nft_chain_flush(n, &nat, s->chains[i]);
	for (size_t i = 0; i < s->len; i++)
		nft_chain_del(n, &nat, s->chains[i]);
	ret = nft_commit(n, f);
	return ret ? ret : remove_base(n);
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
	static const struct chains probe = {.iface = "cnibox-probe", .mac = "cnibox-probe-mac"};

	bool base = false;

	if (!nft_chain_get(n, &nat, BASE, take_kind, &base) && base)
		return;
	put_base(n);
	put_filter(n, &probe, NULL, "lo", (const uint8_t[6]){2});
}

int spoof_status(struct err *e)
{
	return change_probe(put_probe, "the MAC spoof filter", e);
}
