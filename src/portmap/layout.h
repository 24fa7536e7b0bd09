/* The objects of the table inet cnibox_portmap: names, keys, rules. For portrules.c, portadd.c,
 * portcheck.c and portlayout.c only. docs/portmap.md shows it as nft lists it. */
#pragma once

#include "netlink/nft.h"
#include "portmap/record.h"
#include "portmap/rules.h"

extern const struct nft_table port_table;

#define PORT_OWNERS   "owners"
#define PORT_LOCALNET "localnet"
#define PORT_GATE     (sizeof("gate_") + OWNER_HASH)

/* The comment of a link in `localnet`: who had set route_localnet. */
#define LOCALNET_OURS  "cnibox set route_localnet"
#define LOCALNET_FOUND "route_localnet was set before"

/* The whole table with everything that belongs to no attachment, except the masquerade sets.
 * Creating `owners` is the message that fails with -EEXIST when somebody else was first. */
void portlayout_put_table(struct nft *n);

/* The set and the rule that masquerade sources of one prefix length: "masq4_24". */
#define PORT_MASQ 16
const char *portlayout_masq_name(const struct prefix *from, char out[static PORT_MASQ]);
/* The sources by which they are made, one for each family and length. Returns how many. */
size_t portlayout_masqs(const struct portmaps *m, size_t out[static PORT_SOURCES]);
/* Creates them, or, with wanted (one flag for each source), some. -EEXIST likewise. */
void portlayout_put_masqs(struct nft *n, const struct portmaps *m, const bool *wanted);

/* The key of line `index` of a record in `owners`. */
struct nft_key portlayout_owner_key(const char *hash, size_t index);
struct nft_key portlayout_dev_key(const char *dev);
const char *portlayout_gate_name(const char *hash, char out[static PORT_GATE]);

/* One element of a mapping in a shared map or set. */
struct port_place {
	const char *set;
	struct nft_elem elem; /* the comment is the owner's */
	const struct port_mapping *m;
	bool claim; /* the element that makes the host port ours */
	char gate[PORT_GATE];
	char masq[PORT_MASQ];
};

/* Calls fn for every element the mappings consist of, always in the same order, claims first. A
 * non-zero return stops it and is the result; -ENOMEM. */
int portlayout_each(
	const struct portmaps *m, int (*fn)(struct port_place *p, void *arg), void *arg);

/* ---- portrules.c ---- */

/* One element's comment: 0, -ENOENT, or another -errno. */
int portrules_comment(struct nft *n, const char *set, const struct nft_key *key,
	char out[static NFT_COMMENT_SIZE]);

struct port_removal {
	struct nft *n;
	const struct portmaps *was;
	bool careful; /* look at each object first: some are not there or not ours */
};

/* Whether the element is there and the owner's: 1, 0, or -errno. */
int portrules_is_ours(struct port_removal *r, const char *set, const struct nft_key *key);

/* Adds the deletion of all of an owner to the batch. 0 or -errno. */
int portrules_put_removal(struct port_removal *r);

/* Deletes a chain without a record: that of an ADD with conditions that was killed half-way. 0,
 * also when there is none, or -errno. */
int portrules_remove_gate(struct nft *n, const char *hash);
