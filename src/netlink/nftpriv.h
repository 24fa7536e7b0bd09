/* What the parts of the nf_tables code share. Not for others. */
#pragma once

#include "netlink/nft.h"
#include "netlink/nl.h"

#include <stdint.h>

struct nft {
	struct nl *nl;
	uint64_t netns;      /* its inode, 0: not known */
	struct nl *torn;     /* the one before, closed when all is done */
	struct nl_req batch; /* starts with the batch's own begin message */
	int count;           /* messages behind it */
	int fail;            /* sticky -errno of building */
	uint32_t set_id;     /* the kernel wants a number for each new set of a batch */
	struct {
		uint8_t family;  /* of the table */
		uint8_t nfproto; /* known so far, 0: not yet */
		uint8_t l4;
		size_t start; /* of the message */
		size_t nest;
	} rule;
};

/* TLV types in userdata, as libnftnl's udata.h has them. */
enum {
	UDATA_COMMENT = 0, /* of tables, chains, rules and elements */
	UDATA_SET_KEYBYTEORDER = 0,
	UDATA_SET_DATABYTEORDER = 1,
	UDATA_SET_COMMENT = 7,
};

/* A new socket in place of one in the middle of a listing. 0 or -errno. */
int nft_renew(struct nft *n);
/* Starts a message of the batch; returns its index. */
int nft_message(struct nft *n, uint16_t type, uint16_t flags, uint8_t family);
/* Starts a question. */
void nft_question(struct nl_req *r, uint16_t type, uint16_t flags, uint8_t family);
/* A name; too long a one makes the batch fail. */
void nft_put_name(struct nft *n, uint16_t attr, const char *name);
/* One TLV: at most 255 bytes. Returns the length written. */
size_t nft_udata(uint8_t *out, size_t at, uint8_t type, const void *data, size_t len);
/* Userdata with just a comment; nothing when comment is NULL or empty. */
void nft_put_comment(struct nl_req *r, uint16_t attr, const char *comment);
/* A comment as nft would take it: at most NFT_COMMENT_MAX bytes. Returns its length. */
size_t nft_comment_len(const char *comment);
/* A nest with a verdict or a value: NFTA_DATA_VERDICT, NFTA_DATA_VALUE. */
void nft_put_verdict(struct nl_req *r, uint16_t attr, int code, const char *chain);
void nft_put_value(struct nl_req *r, uint16_t attr, const void *data, size_t len);

/* Reads a rule message. */
void nft_read_rule(const struct nlmsghdr *msg, struct nft_rule_info *out);

/* Walks the expressions of a rule. name is "payload", "cmp", ...; data is the nest with the
 * NFTA_* attributes of that expression, to be read with nl_parse_nested(). Start with at = NULL;
 * returns NULL at the end. */
const struct nlattr *nft_expr_next(const struct nft_rule_info *r, const struct nlattr *at,
	const char **name, const struct nlattr **data);
