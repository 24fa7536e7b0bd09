#include "filter/xtables.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vec.h"
#include "filter/change.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct nft_table nat[] = {{NFPROTO_IPV4, "nat"}, {NFPROTO_IPV6, "nat"}};
#define ENTRY "POSTROUTING"

static int del_once(
	struct change *c, const struct nft_table *t, const char *entry, const char *chain)
{
	autohandles jumps = {0};
	int ret = nft_chain_get(c->n, t, chain, NULL, NULL);

	if (!ret)
		ret = nft_jumps(c->n, t, entry, chain, &jumps);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	nft_begin(c->n, 0);
	nft_rules_del(c->n, t, entry, &jumps);
	nft_chain_flush(c->n, t, chain);
	nft_chain_del(c->n, t, chain);
	return nft_commit(c->n, &c->failure);
}

int xtables_chain_del(
	struct nft *n, const struct nft_table *t, const char *entry, const char *chain)
{
	struct change c = {.n = n};
	int ret = 0;

	while (change_again(&c, &ret))
		ret = del_once(&c, t, entry, chain);
	return ret;
}

/* ---- masquerading ---- */

/* "CNI-" and 24 hex digits. */
#define MASQ_NAME (4 + 24)

static void masq_name(const char *network, const char *id, char out[static MASQ_NAME + 1])
{
	memcpy(out, "CNI-", 4);
	hash_hex(out + 4, 24, network, id, NULL);
}

bool xtables_masq_has(struct nft *n, const char *network, const char *id)
{
	char chain[MASQ_NAME + 1];

	masq_name(network, id, chain);
	return !nft_chain_get(n, &nat[0], chain, NULL, NULL) ||
	       !nft_chain_get(n, &nat[1], chain, NULL, NULL);
}

int xtables_masq_del(struct nft *n, const char *network, const char *id)
{
	char chain[MASQ_NAME + 1];
	int ret = 0;

	masq_name(network, id, chain);
	for (size_t i = 0; i < array_len(nat); i++) {
		int one = xtables_chain_del(n, &nat[i], ENTRY, chain);

		ret = ret ? ret : one;
	}
	return ret;
}

struct sweep {
	const char *network;
	const struct valid_set *valid;
	char (*chains)[MASQ_NAME + 1];
	size_t len;
};

static void sweep_reset(void *arg)
{
	((struct sweep *)arg)->len = 0;
}

/* Whether a rule's comment names a container of the network: `name: "NETWORK" id: "ID"`. *id is
 * owned by the caller. */
static bool read_comment(const struct nft_rule_info *r, const char *network, char **id)
{
	char text[NFT_XT_COMMENT];
	autofree char *head = NULL;
	const char *at, *end;

	if (!nft_rule_xt_comment(r, text) || asprintf(&head, "name: \"%s\" id: \"", network) < 0)
		return false;
	if (strncmp(text, head, strlen(head)) != 0)
		return false;
	at = text + strlen(head);
	end = strchr(at, '"');
	*id = end ? strndup(at, (size_t)(end - at)) : NULL;
	return *id;
}

/* The comment names the container, and the chain's name, a hash of it, proves it. */
static int sweep_take(const struct nft_rule_info *r, void *arg)
{
	struct sweep *s = arg;
	char chain[MASQ_NAME + 1], (*slot)[MASQ_NAME + 1];
	autofree char *id = NULL;

	if (strncmp(r->jump, "CNI-", 4) != 0 || !read_comment(r, s->network, &id) ||
		valid_set_has_id(s->valid, id))
		return 0;
	masq_name(s->network, id, chain);
	if (strcmp(chain, r->jump) != 0)
		return 0;
	slot = vec_add(s->chains, s->len);
	if (!slot)
		return -ENOMEM;
	memcpy(*slot, chain, sizeof(chain));
	return 0;
}

static int collect(struct nft *n, const struct nft_table *t, struct sweep *s)
{
	int ret = nft_rules(n, t, ENTRY, sweep_take, sweep_reset, s);

	ret = ret == -ENOENT ? 0 : ret;
	for (size_t i = 0; i < s->len; i++) {
		int one = xtables_chain_del(n, t, ENTRY, s->chains[i]);

		ret = ret ? ret : one;
	}
	return ret;
}

int xtables_masq_gc(struct nft *n, const char *network, const struct valid_set *valid)
{
	int ret = 0;

	for (size_t i = 0; i < array_len(nat); i++) {
		struct sweep s = {.network = network, .valid = valid};
		int one = collect(n, &nat[i], &s);

		free(s.chains);
		ret = ret ? ret : one;
	}
	return ret;
}
