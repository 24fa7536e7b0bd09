/* Conditions of port mappings (`conditionsV4`, `conditionsV6`): matches that a connection must
 * fulfil before it is translated, in the syntax of iptables or of nft.
 * reference/portmap-bandwidth.md 2. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "netlink/nft.h"
#include "json/json.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum port_match {
	MATCH_SADDR,
	MATCH_DADDR,
	MATCH_IIF,
	MATCH_OIF,
	MATCH_PROTO,
	MATCH_SPORT,
	MATCH_DPORT
};

struct port_cond {
	enum port_match what;
	bool negate;
	struct prefix addr;
	char ifname[IFNAMSIZ];
	uint8_t proto;
	uint16_t port, last;
};

/* One family's conditions: either a list, or text in nft's syntax, or nothing at all. */
struct port_conds {
	uint8_t family; /* AF_INET, AF_INET6 */
	struct port_cond *list;
	size_t len;
	char *nft;
};
void portconds_free(struct port_conds *c);

static inline bool portconds_any(const struct port_conds *c)
{
	return c->len || c->nft;
}

/* Which syntax an array of strings is in, by the first character of its first string, as upstream
 * tells: '-' or '!' is iptables. */
enum cond_syntax { COND_NONE, COND_IPTABLES, COND_NFT };
enum cond_syntax portconds_syntax(const json *array);

/* Reads the array `key`. Of iptables' options these are understood, with '!' in front or behind:
 * -s -d -i -o -p --sport --dport and their long names; -m tcp|udp|sctp says nothing new. Everything
 * else is refused (ERR_INVALID_CONFIG), as is nft text that could end the rule it goes into. */
int portconds_parse(
	struct port_conds *c, uint8_t family, const json *array, const char *key, struct err *e);

/* Adds the matches of a list to the rule being built. */
void portconds_put(struct nft *n, const struct port_conds *c);

/* Adds the rule "<conditions> return" for text in nft's syntax to a chain, with libnftables, which
 * is loaded for this alone. In a transaction of its own. Returns 0, -ENOENT when the chain is not
 * there, or -1 with e set. */
int portconds_apply(
	const struct nft_table *t, const char *chain, const struct port_conds *c, struct err *e);
