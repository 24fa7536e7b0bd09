/* Ownership: everything we create on a host carries the attachment it belongs to, (network,
 * container id, ifname), all three. Where the kernel's field is too short, a hash stands for it.
 * The forms are stable and documented in docs/design.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define OWNER_HASH 32
#define OWNER_NET  16

struct owner {
	const char *network; /* borrowed */
	const char *id;
	const char *ifname;
	char hash[OWNER_HASH + 1]; /* SHA-512 of network \n id \n ifname, first 32 hex digits */
	char net[OWNER_NET + 1];   /* SHA-512 of network, first 16 hex digits */
};

/* Fills in the hashes; the strings stay borrowed. */
void owner_init(struct owner *o, const char *network, const char *id, const char *ifname);

/* The comment form, cut to size - 1 bytes: "cnibox <net> <hash> <network> <id> <ifname>", hashes
 * first so that a cut loses only what is for people. Fits nft comments (128), link aliases (256).
 */
void owner_comment(const struct owner *o, char *out, size_t size);

/* The alternative name of a host link that belongs to the attachment: "cnibox-<hash>". One exact
 * message finds or deletes the link by it. */
#define OWNER_ALTNAME (sizeof("cnibox-") + OWNER_HASH)
void owner_altname(const struct owner *o, char out[static OWNER_ALTNAME]);

/* Reads a comment back: the hashes, and the readable rest (borrowed from comment, may be cut).
 * Returns false when it is not one of ours. */
struct owner_ref {
	char net[OWNER_NET + 1];
	char hash[OWNER_HASH + 1];
	const char *text;
};
bool owner_parse(const char *comment, struct owner_ref *out);
