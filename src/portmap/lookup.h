/* Reading the table: by key, without looking at what belongs to others. */
#pragma once

#include "netlink/nft.h"
#include "portmap/record.h"

/* One element's comment: 0, -ENOENT, or another -errno. */
int lookup_comment(struct nft *n, const char *set, const struct nft_key *key,
	char out[static NFT_COMMENT_SIZE]);

/* Whose element it is: 1 with *ref filled in, 0 when it is nobody's that we know, -ENOENT when
 * there is none, or another -errno. ref->text is "". */
int lookup_owner(struct nft *n, const char *set, const struct nft_key *key, struct owner_ref *ref);

/* What is recorded of an owner: 0, -ENOENT, or another -errno. m need not be initialised and is to
 * be freed. */
int lookup_record(struct nft *n, const char *hash, struct port_record *m);

/* Calls fn for each owner there is, by its comment. Returns 0, fn's non-zero value, or -errno. */
int lookup_owners(struct nft *n, int (*fn)(const struct owner_ref *ref, void *arg), void *arg);
