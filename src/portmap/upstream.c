#include "portmap/upstream.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "filter/change.h"
#include "filter/xtables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "CNI-DN-" and 21 hex digits: iptables allows chain names of 28. */
#define CHAIN_HASH 21
#define CHAIN_SIZE (sizeof("CNI-DN-") + CHAIN_HASH)

/* Rules of upstream's nftables backend. */
struct found {
	const char *comment; /* theirs: the container's id */
	const struct result *prev;
	struct nft_handles handles;
};

static bool wanted(const struct found *f, const struct nft_rule_info *r)
{
	if (strcmp(r->comment, f->comment) != 0)
		return false;
	for (size_t i = 0; f->prev && i < f->prev->ips_len; i++)
		if (nft_rule_mentions(r, &f->prev->ips[i].address.ip))
			return true;
	return !f->prev || !f->prev->ips_len;
}

static int take(const struct nft_rule_info *r, void *arg)
{
	struct found *f = arg;

	if (wanted(f, r))
		nft_handles_put(&f->handles, r->handle);
	return 0;
}

static void again(void *arg)
{
	((struct found *)arg)->handles.len = 0;
}

/* Adds the deletion of the rules found in a chain to the batch. 0, -ENOENT: no such chain, -errno.
 */
static int put_rules(struct nft *n, const struct nft_table *t, const char *chain, struct found *f)
{
	int ret = nft_rules(n, t, chain, take, again, f);

	if (!ret)
		nft_rules_del(n, t, chain, &f->handles);
	f->handles.len = 0;
	return ret == -ENOENT ? 0 : ret;
}

static int commented_once(struct change *c, const struct nft_table *t, struct found *f)
{
	static const char *const chains[] = {"hostports", "hostip_hostports", "masquerading"};
	int ret = nft_table_get(c->n, t);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	nft_begin(c->n, 0);
	for (size_t i = 0; i < array_len(chains) && !ret; i++)
		ret = put_rules(c->n, t, chains[i], f);
	return ret ? ret : nft_commit(c->n, &c->failure);
}

static int remove_commented(
	struct nft *n, const struct nft_table *t, const char *id, const struct result *prev)
{
	struct found f = {.comment = id, .prev = prev};
	struct change c = {.n = n};
	int ret = 0;

	while (change_again(&c, &ret))
		ret = commented_once(&c, t, &f);
	nft_handles_free(&f.handles);
	return ret;
}

static const uint8_t families[] = {NFPROTO_IPV4, NFPROTO_IPV6};

static const char *chain_name(const char *prefix, const struct owner *o, char out[CHAIN_SIZE])
{
	char hash[CHAIN_HASH + 1];

	hash_hex(hash, CHAIN_HASH, o->network, o->id, NULL);
	snprintf(out, CHAIN_SIZE, "%s%s", prefix, hash);
	return out;
}

bool upstream_has(struct nft *n, const struct owner *o)
{
	char dn[CHAIN_SIZE];

	chain_name("CNI-DN-", o, dn);
	for (size_t i = 0; i < array_len(families); i++) {
		const struct nft_table nat = {families[i], "nat"};

		if (!nft_chain_get(n, &nat, dn, NULL, NULL))
			return true;
	}
	return false;
}

int upstream_del(
	struct nft *n, const struct owner *o, bool rules, const struct result *prev, struct err *e)
{
	char dn[CHAIN_SIZE], sn[CHAIN_SIZE];
	int ret = 0;

	chain_name("CNI-DN-", o, dn);
	chain_name("CNI-SN-", o, sn);
	for (size_t i = 0; i < array_len(families) && !ret; i++) {
		const struct nft_table nat = {families[i], "nat"};
		const struct nft_table hostport = {families[i], "cni_hostport"};

		/* Without iptables' table one question is enough. */
		ret = nft_table_get(n, &nat);
		if (!ret)
			ret = xtables_chain_del(n, &nat, "CNI-HOSTPORT-DNAT", dn);
		if (!ret)
			ret = xtables_chain_del(n, &nat, "CNI-HOSTPORT-SNAT", sn);
		if (ret == -ENOENT)
			ret = 0;
		if (!ret && rules)
			ret = remove_commented(n, &hostport, o->id, prev);
	}
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM,
			"cannot remove what another portmap made for container \"%s\"", o->id);
	return 0;
}
