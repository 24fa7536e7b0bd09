/* The objects of the table inet cnibox_portmap: names, keys, rules. For this room only.
 * docs/portmap.md shows it as nft lists it.
 *
 * Everything works by key: neither ADD nor DEL reads or walks other attachments' mappings, and a
 * new connection costs the same few look-ups however many there are. */
#pragma once

#include "netlink/nft.h"
#include "portmap/conditions.h"
#include "portmap/record.h"

extern const struct nft_table port_table;

#define LAYOUT_OWNERS   "owners"
#define LAYOUT_LOCALNET "localnet"

/* The whole table with everything that belongs to no attachment, except what serves one prefix
 * length or one set of conditions. Creating `owners` is the message that fails with -EEXIST when
 * somebody else was first. */
void layout_put_table(struct nft *n);

/* The set and the rule that masquerade sources of one prefix length: "masq4_24". */
#define LAYOUT_MASQ 16
const char *layout_masq_name(const struct prefix *from, char out[static LAYOUT_MASQ]);
/* Which of the record's sources are the first of their family and length: indexes into m->from,
 * one for each set. Returns how many. */
size_t layout_masqs(const struct port_record *m, size_t out[static PORT_SOURCES]);
/* Creates the sets and rules, or, with wanted (one flag for each source), some of them. -EEXIST
 * likewise. */
void layout_put_masqs(struct nft *n, const struct port_record *m, const bool *wanted);

/* What belongs to one set of conditions (conditions.h): a map for ports of any address and one for
 * those of one address, each with a rule that looks into it when the conditions are met. */
enum layout_map { LAYOUT_ANY, LAYOUT_ONE };
#define LAYOUT_MAP (sizeof("hosts4_") + PORT_CONDITIONS)
const char *layout_map_name(
	uint8_t family, enum layout_map which, const char *when, char out[static LAYOUT_MAP]);
/* The chain of those rules: "when_ports4", "when_hosts4". */
const char *layout_when_chain(uint8_t family, enum layout_map which);
/* Creates all of it from a list of conditions. -EEXIST when somebody else was first. */
void layout_put_conditions(struct nft *n, const struct port_conds *c);
/* The same from text in nft's syntax, with libnftables, in a transaction of its own. 0, -errno
 * (nft_raced(): look again), or -1 with e set. */
int layout_apply_conditions(const struct port_conds *c, struct err *e);
/* Tables of the versions before 0.2 have no such chains: makes them, and rewrites the rules that
 * lead there. -EEXIST when somebody else was first. */
void layout_put_upgrade(struct nft *n);

/* The key of line `index` of a record in `owners`. */
struct nft_key layout_owner_key(const char *hash, size_t index);
struct nft_key layout_dev_key(const char *dev);

/* A chain of the old form, which held the conditions of one attachment. */
#define LAYOUT_GATE (sizeof("gate_") + OWNER_HASH)
const char *layout_gate_name(const char *hash, char out[static LAYOUT_GATE]);

/* One element of a mapping in a shared map or set. set and elem.chain point into it: use it where
 * it is. */
struct port_place {
	const char *set;
	struct nft_elem elem; /* the comment is the owner's */
	const struct port_mapping *m;
	bool claim; /* the element that makes the host port ours */
	char gate[LAYOUT_GATE];
	char name[LAYOUT_MAP];
};

/* Calls fn for every element that the mappings consist of (yielded ones of none), always in the
 * same order, claims first. A non-zero return stops it and is the result; -ENOMEM. */
int layout_each(const struct port_record *m, int (*fn)(struct port_place *p, void *arg), void *arg);
