/* Conditions of port mappings (`conditionsV4`, `conditionsV6`): matches that a connection must
 * fulfil before it is translated, in the syntax of iptables or of nft.
 * reference/portmap-bandwidth.md 2. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "netlink/nft.h"
#include "portmap/record.h"
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

/* One family's conditions: either a list, or text in nft's syntax, or nothing at all. They are part
 * of what an attachment claims: mappings with the same ones share a map (layout.h), of which `id`
 * is the name. */
struct port_conds {
	uint8_t family; /* AF_INET, AF_INET6 */
	struct port_cond *list;
	size_t len;
	char *nft;
	char id[PORT_CONDITIONS + 1]; /* "" without conditions */
	char *text;                   /* for people */
};
void conditions_free(struct port_conds *c);

/* Which syntax an array of strings is in, by the first character of its first string, as upstream
 * tells: '-' or '!' is iptables. */
enum cond_syntax { COND_NONE, COND_IPTABLES, COND_NFT };
enum cond_syntax conditions_syntax(const json *array);

/* Reads the array `key`. Of iptables' options these are understood, with '!' in front or behind:
 * -s -d -i -o -p --sport --dport and their long names; -m tcp|udp|sctp says nothing new. Everything
 * else is refused (ERR_INVALID_CONFIG), as is nft text that could end the rule it goes into. */
int conditions_parse(
	struct port_conds *c, uint8_t family, const json *array, const char *key, struct err *e);

/* Adds the matches of a list to the rule being built. */
void conditions_put(struct nft *n, const struct port_conds *c);

/* Runs commands in nft's syntax, made from c->nft, as one transaction, with libnftables, which is
 * loaded for this alone. Returns 0, -ENOENT or -EEXIST when the kernel says so, or -1 with e set.
 */
int conditions_run(const struct port_conds *c, const char *text, struct err *e);
