/* nf_tables: batches of changes, rules, sets and their listing, encoded as the nft tool encodes
 *them, so that `nft list ruleset` prints them and `nft -f` of that text makes them again. See
 * <linux/netfilter/nf_tables.h> for the constants (NFT_META_*, NFT_CT_*, NFT_JUMP, ...).
 *
 * A change is a batch: nft_begin(), messages, nft_commit(). The kernel takes it as a whole or not
 *at all. Failures while building (no memory, a name or comment that is too long) are sticky and
 *come out of nft_commit().
 *
 *	nft_begin(n, 0);
 *	nft_table_add(n, &t, "what this table is for");
 *	nft_chain_add(n, &t, &(struct nft_chain){ .name = "out", .type = "nat",
 *		.hook = NF_INET_POST_ROUTING, .prio = 100 });
 *	nft_rule_begin(n, &t, "out", NFT_APPEND, comment);
 *	nft_match_addr(n, NFT_SRC, &addr, false);
 *	nft_x_masq(n, 0);
 *	nft_rule_end(n);
 *	r = nft_commit(n, &failure);
 */
#pragma once

#include "base/err.h"
#include "base/ip.h"

/* netinet/in.h has to come before linux/netfilter.h, which brings linux/in.h. */
#include <netinet/in.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nft;

/* For the current namespace, on a NETLINK_NETFILTER socket that the process used before or a new
 * one. *n is owned by the caller. */
int nft_open(struct nft **n, struct err *e);
void nft_close(struct nft **n);
#define autonft __attribute__((cleanup(nft_close))) struct nft

/* The longest comment the nft tool accepts, without the NUL; longer ones are cut to it. */
#define NFT_COMMENT_MAX 128
/* A buffer for such a comment. */
#define NFT_COMMENT_SIZE (NFT_COMMENT_MAX + 1)

struct nft_table {
	uint8_t family; /* NFPROTO_INET, NFPROTO_IPV4, NFPROTO_IPV6, NFPROTO_BRIDGE */
	const char *name;
};

/* --- Batches --------------------------------------------------------------------------------- */

/* Starts a batch, dropping one that was not committed. genid, unless 0, makes the commit fail with
 * -ERESTART when the ruleset of this namespace changed since nft_genid() returned it. */
void nft_begin(struct nft *n, uint32_t genid);

struct nft_failure {
	int index; /* of the refused message in the batch, -1 when it is not one message's fault */
	char ext[160]; /* the kernel's sentence, often empty */
	/* With -EOPNOTSUPP and -ENOENT: what the refused message asks for that is a module or an
	 * option of the kernel, "the expression fib (module nft_fib_inet)"; "" when nothing is. */
	char lacks[80];
};

/* Sends the batch. 0, or -errno with *f (may be NULL) filled in: nothing was changed then. When
 * several messages are refused, the first is reported. An empty batch is success. The batch is
 * gone either way. Large batches enlarge the socket's buffer.
 *
 * The kernel says -ENOENT both for a table, chain or set that is not there and for a feature that
 * it does not have. Where it tells which attribute it means (5.7 and later), the second is
 * -EOPNOTSUPP here, with f->lacks; else it stays -ENOENT and f->lacks is a supposition. */
int nft_commit(struct nft *n, struct nft_failure *f);

/* Sends the batch so that the kernel checks it, loading the modules it needs, and keeps nothing of
 * it (as `nft --check`). Otherwise as nft_commit(). */
int nft_check(struct nft *n, struct nft_failure *f);

/* True when a commit failed because somebody else changed the same objects since they were read or
 * named (-ENOENT, -EBUSY, -ERESTART, -EEXIST, -EAGAIN, -EINTR): worth another look and try. */
bool nft_raced(int r);

/* All functions that add a message return its index in the batch, for nft_failure.index. */

/* Adding what exists already is fine (its comment stays the older one); deleting what does not is
 * -ENOENT. Deleting a table deletes all in it. comment may be NULL everywhere. */
int nft_table_add(struct nft *n, const struct nft_table *t, const char *comment);
int nft_table_del(struct nft *n, const struct nft_table *t);

struct nft_chain {
	const char *name;
	const char *comment;
	/* Base chains only; type NULL makes a regular chain. */
	const char *type; /* "filter", "nat", "route" */
	uint32_t hook;    /* NF_INET_*, for bridge NF_BR_* */
	int32_t prio;
	bool drop; /* the policy: drop instead of accept */
};
/* Naming a base chain that exists counts as a change of it: leave it out where it is known to be
 * there, and the kernel has less to do. */
int nft_chain_add(struct nft *n, const struct nft_table *t, const struct nft_chain *c);
/* The same, but -EEXIST when it exists. */
int nft_chain_create(struct nft *n, const struct nft_table *t, const struct nft_chain *c);
/* Removes all rules; -ENOENT when there is no such chain. */
int nft_chain_flush(struct nft *n, const struct nft_table *t, const char *chain);
/* Removes the chain and its rules. -EBUSY while a rule or element jumps to it (those deleted
 * earlier in the same batch do not count). A base chain with rules is deleted with them. */
int nft_chain_del(struct nft *n, const struct nft_table *t, const char *chain);

/* Handles of rules, collected while reading, to be deleted afterwards. `failed` is sticky (no
 * memory) and makes nft_rules_del() fail the batch. */
struct nft_handles {
	uint64_t *list;
	size_t len;
	size_t cap;
	bool failed;
};
void nft_handles_put(struct nft_handles *h, uint64_t handle);
void nft_handles_free(struct nft_handles *h);
#define autohandles __attribute__((cleanup(nft_handles_free))) struct nft_handles
/* Collects the rules of a chain that jump to another one, in place of what h held. 0 or -errno. */
int nft_jumps(struct nft *n, const struct nft_table *t, const char *chain, const char *to,
	struct nft_handles *h);
void nft_rules_del(
	struct nft *n, const struct nft_table *t, const char *chain, const struct nft_handles *h);

/* --- Sets and maps --------------------------------------------------------------------------- */

/* Types of keys and data. Ports and addresses are in network order, marks in host order. */
enum nft_field {
	NFT_FIELD_NONE,
	NFT_FIELD_IPV4,    /* ipv4_addr, 4 bytes */
	NFT_FIELD_IPV6,    /* ipv6_addr, 16 */
	NFT_FIELD_ETHER,   /* ether_addr, 6 */
	NFT_FIELD_PROTO,   /* inet_proto, 1 */
	NFT_FIELD_PORT,    /* inet_service, 2 */
	NFT_FIELD_MARK,    /* mark, 4 */
	NFT_FIELD_IFNAME,  /* ifname, 16 */
	NFT_FIELD_VERDICT, /* data only, and alone */
};
#define NFT_FIELDS_MAX 4

struct nft_set {
	const char *name;
	uint8_t key[NFT_FIELDS_MAX];  /* enum nft_field, ends with NFT_FIELD_NONE or when full */
	uint8_t data[NFT_FIELDS_MAX]; /* empty: a set; otherwise a map */
	uint32_t flags;               /* NFT_SET_INTERVAL; NFT_SET_MAP and _CONCAT are implied */
	const char *comment;
};
int nft_set_add(struct nft *n, const struct nft_table *t, const struct nft_set *s);
/* The same, but -EEXIST when it exists. */
int nft_set_create(struct nft *n, const struct nft_table *t, const struct nft_set *s);

/* A key or a data value: fields one after the other, in the order of the set's definition. Start
 * with { 0 }. Each field of a concatenation is padded to 32 bits, which the functions do. */
struct nft_key {
	uint8_t fields;
	uint8_t len;   /* padded */
	uint8_t bare;  /* without the padding of the last field: the length of a single field */
	bool overflow; /* more was put than the kernel takes: what it is used for fails, -EOVERFLOW
			*/
	uint8_t bytes[64]; /* NFT_DATA_VALUE_MAXLEN */
};
void nft_key_put(struct nft_key *k, const void *data, size_t len);
void nft_key_ip(struct nft_key *k, const struct ip *ip);
void nft_key_proto(struct nft_key *k, uint8_t proto);
void nft_key_port(struct nft_key *k, uint16_t port); /* host order in */
void nft_key_ifname(struct nft_key *k, const char *name);
void nft_key_ether(struct nft_key *k, const uint8_t mac[static 6]);
/* The bytes that matter: bare for one field, len for a concatenation. */
size_t nft_key_size(const struct nft_key *k);

struct nft_elem {
	struct nft_key key;
	struct nft_key end;  /* the last key of an interval in a concatenation; fields 0: none */
	bool interval_end;   /* a plain interval set: this element ends the interval before it */
	struct nft_key data; /* maps of values */
	int verdict; /* verdict maps: NF_ACCEPT, NFT_JUMP, NFT_GOTO, ...; used if has_verdict */
	bool has_verdict;
	const char *chain; /* of NFT_JUMP and NFT_GOTO */
	const char *comment;
};
/* Adds elements, as one message, or several if they do not fit (the index is the first one's). An
 * existing key is fine with the same data and -EEXIST with other data. */
int nft_elems_add(struct nft *n, const struct nft_table *t, const char *set,
	const struct nft_elem *list, size_t len);
/* The same for one element, but -EEXIST whenever the key exists. */
int nft_elem_create(
	struct nft *n, const struct nft_table *t, const char *set, const struct nft_elem *elem);
/* Deletes by key (and end); -ENOENT when one is missing. */
int nft_elems_del(struct nft *n, const struct nft_table *t, const char *set,
	const struct nft_elem *list, size_t len);

/* --- Rules ----------------------------------------------------------------------------------- */

enum nft_where { NFT_APPEND, NFT_INSERT };

/* Starts a rule; expressions follow, then nft_rule_end(). */
int nft_rule_begin(struct nft *n, const struct nft_table *t, const char *chain,
	enum nft_where where, const char *comment);
void nft_rule_end(struct nft *n);

/* Statements and matches in nft's words. They use registers 0 to 7 and add the protocol checks nft
 * itself would add (`meta nfproto`, `meta l4proto`, once per rule), so that it prints them as
 * written here. `not` turns a match into "!=". */
enum nft_side { NFT_SRC, NFT_DST };
/* ip saddr|daddr ADDR/LEN, ip6 likewise. Host bits are masked. /0 matches the family alone, or,
 * with `not`, nothing. In bridge tables the family is matched as `ether type`. */
void nft_match_addr(struct nft *n, enum nft_side side, const struct prefix *p, bool not );
/* ether saddr|daddr, in bridge tables. */
void nft_match_ether(struct nft *n, enum nft_side side, const uint8_t mac[static 6], bool not );
/* meta l4proto PROTO. */
void nft_match_proto(struct nft *n, uint8_t proto);
/* tcp|udp|sctp sport|dport PORT; PORT-LAST when last > port. */
void nft_match_port(
	struct nft *n, uint8_t proto, enum nft_side side, uint16_t port, uint16_t last, bool not );
/* iifname, oifname; a name that ends with '*' matches the prefix. */
void nft_match_iifname(struct nft *n, const char *name, bool not );
void nft_match_oifname(struct nft *n, const char *name, bool not );
/* meta nfproto ipv4|ipv6, for NFPROTO_INET and NFPROTO_BRIDGE tables. */
void nft_match_family(struct nft *n, uint8_t nfproto);
/* fib saddr|daddr type TYPE (RTN_LOCAL ... of <linux/rtnetlink.h>). */
void nft_match_fib_type(struct nft *n, enum nft_side side, uint32_t type, bool not );
/* ct status BITS (IPS_DST_NAT ...): any of these bits is set. */
void nft_match_ct_status(struct nft *n, uint32_t bits);

/* Loads the next field of a lookup's key into the registers from slot *slot on (32-bit units,
 * starting at 0) and moves *slot behind it: ip|ip6 saddr|daddr, meta l4proto, th sport|dport,
 * iifname. */
void nft_load_addr(struct nft *n, enum nft_side side, uint8_t family, unsigned *slot);
void nft_load_proto(struct nft *n, unsigned *slot);
void nft_load_port(struct nft *n, enum nft_side side, unsigned *slot);
void nft_load_iifname(struct nft *n, unsigned *slot);
/* A whole key: iifname . ether saddr|daddr, in inet tables. */
void nft_load_iifname_ether(struct nft *n, enum nft_side side);
/* LOADED @set, LOADED != @set: the key starts at slot 0. */
void nft_match_set(struct nft *n, const char *set, bool not );
/* LOADED vmap @map. */
void nft_vmap(struct nft *n, const char *map);
/* dnat ip|ip6 to LOADED map @map, the data being address or address . port. */
void nft_dnat_map(struct nft *n, uint8_t family, const char *map, bool with_port);

/* Expressions as they are, for what the above lacks. Registers are 32-bit slots 0 to 15. */
void nft_x_meta(struct nft *n, uint32_t key, unsigned dreg);
void nft_x_cmp(struct nft *n, unsigned sreg, uint32_t op, const void *data, size_t len);
/* dreg = (sreg & mask) ^ xor; xor NULL: zeros. */
void nft_x_bitwise(struct nft *n, unsigned sreg, unsigned dreg, const void *mask, const void * xor,
	size_t len);
/* NF_ACCEPT, NF_DROP, NFT_RETURN; NFT_JUMP and NFT_GOTO with a chain. */
void nft_x_verdict(struct nft *n, int code, const char *chain);
/* notrack: conntrack, and with it NAT, does not see the packet. Before conntrack's priority, -200.
 */
void nft_x_notrack(struct nft *n);
/* masquerade; flags NF_NAT_RANGE_*. */
void nft_x_masq(struct nft *n, uint32_t flags);

/* --- Reading --------------------------------------------------------------------------------- */

/* The number of the current ruleset of this namespace, for nft_begin(). 0 or -errno. */
int nft_genid(struct nft *n, uint32_t *genid);

/* Listing calls fn for each object; a non-zero return stops it and is the result. Otherwise 0, or
 * -errno: -ENOENT when the table, chain or set does not exist (for rules and chains, older
 * kernels show that as an empty list). Pointers are valid during the call only. When a list was
 * disturbed by a change, it is read again from the start, after reset(arg), which may be NULL only
 * if seeing objects twice does no harm. */
typedef void nft_reset_fn(void *arg);

struct nft_rule_info {
	uint64_t handle;
	const char *table;
	const char *chain;
	const char *comment;        /* "" when there is none */
	const struct nlattr *exprs; /* for the functions below */
	int verdict;                /* of the last verdict statement; INT_MAX when none */
	const char *jump;           /* the chain it names, or "" */
};
typedef int nft_rule_fn(const struct nft_rule_info *r, void *arg);
int nft_rules(struct nft *n, const struct nft_table *t, const char *chain, nft_rule_fn *fn,
	nft_reset_fn *reset, void *arg);

/* The comment that iptables puts on a rule, its own way. False when there is none. */
#define NFT_XT_COMMENT 256
bool nft_rule_xt_comment(const struct nft_rule_info *r, char out[static NFT_XT_COMMENT]);

/* Whether an address occurs in a rule, as what it compares with or translates to. */
bool nft_rule_mentions(const struct nft_rule_info *r, const struct ip *ip);

/* A rule's expressions in a canonical text, for telling whether two rules do the same: the same for
 * what was built and for what the kernel shows of it, whatever the spelling of registers and
 * defaults; comments and counter values are left out. False when it does not fit. */
#define NFT_RULE_TEXT 1024
bool nft_rule_text(const struct nft_rule_info *r, char out[static NFT_RULE_TEXT]);
/* The same for the rule ended last in the batch that is being built. */
bool nft_built_text(const struct nft *n, char out[static NFT_RULE_TEXT]);

struct nft_chain_info {
	const char *table;
	const char *name;
	uint64_t handle;
	const char *comment;
	uint32_t use; /* rules in it plus jumps to it */
	bool base;    /* then the next three are set */
	const char *type;
	uint32_t hook;
	int32_t prio;
};
typedef int nft_chain_fn(const struct nft_chain_info *c, void *arg);
int nft_chains(
	struct nft *n, const struct nft_table *t, nft_chain_fn *fn, nft_reset_fn *reset, void *arg);

struct nft_elem_info {
	const uint8_t *key;
	size_t key_len;
	const uint8_t *end; /* NULL unless it is an interval in a concatenation */
	size_t end_len;
	const uint8_t *data; /* NULL unless the map has values */
	size_t data_len;
	bool has_verdict;
	int verdict;
	const char *chain; /* "" unless the verdict names one */
	uint32_t flags;    /* NFT_SET_ELEM_INTERVAL_END */
	const char *comment;
};
typedef int nft_elem_fn(const struct nft_elem_info *el, void *arg);
int nft_elems(struct nft *n, const struct nft_table *t, const char *set, nft_elem_fn *fn,
	nft_reset_fn *reset, void *arg);

/* One element by its key, without reading the others. fn (may be NULL) is called once. -ENOENT when
 * there is no such element, set or table. */
int nft_elem_get(struct nft *n, const struct nft_table *t, const char *set,
	const struct nft_key *key, nft_elem_fn *fn, void *arg);

/* Whether they exist: 0, -ENOENT, or another -errno. fn may be NULL. */
int nft_table_get(struct nft *n, const struct nft_table *t);
/* The same, with its comment, "" when it has none. */
int nft_table_comment(struct nft *n, const struct nft_table *t, char out[static NFT_COMMENT_SIZE]);
int nft_chain_get(
	struct nft *n, const struct nft_table *t, const char *chain, nft_chain_fn *fn, void *arg);
int nft_set_get(struct nft *n, const struct nft_table *t, const char *set);
