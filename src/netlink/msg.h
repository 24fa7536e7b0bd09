/* Netlink messages: building requests, reading attributes of answers. linux/netlink.h.
 *
 * A request is built in the shape of the message, with a sticky error that is reported when it is
 * sent. What is read has been received by netlink/nl.h into memory that is aligned for the headers;
 * attributes are aligned to 4 bytes only, which is why their values are copied out. */
#pragma once

#include "base/ip.h"

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One or several messages in one buffer. */
struct nl_req {
	char *buf;
	size_t len;
	size_t cap;
	struct nlmsghdr *msg; /* the message being built */
	bool overflow;        /* sticky: it did not fit, or must not be sent */
	bool invalid;         /* sticky: and this is why */
};

/* Starts a (further) message. flags are added to NLM_F_REQUEST; ask for NLM_F_ACK unless it is a
 * dump or the answer itself is the ack. The fixed header of `size` bytes is zeroed and returned;
 * the pointer is valid until the next put. Never NULL. */
void *nl_msg(struct nl_req *r, uint16_t type, uint16_t flags, size_t size);
void nl_put(struct nl_req *r, uint16_t attr, const void *data, size_t len);
void nl_put_u8(struct nl_req *r, uint16_t attr, uint8_t v);
void nl_put_u16(struct nl_req *r, uint16_t attr, uint16_t v);
void nl_put_u32(struct nl_req *r, uint16_t attr, uint32_t v);
void nl_put_u64(struct nl_req *r, uint16_t attr, uint64_t v);
void nl_put_be32(struct nl_req *r, uint16_t attr, uint32_t v); /* host order in, network out */
void nl_put_be64(struct nl_req *r, uint16_t attr, uint64_t v);
void nl_put_str(struct nl_req *r, uint16_t attr, const char *s);
void nl_put_ip(struct nl_req *r, uint16_t attr, const struct ip *ip);
/* What is asked for cannot be said in a message: the request fails with -EINVAL when sent. */
void nl_put_invalid(struct nl_req *r);
/* Raw bytes inside an open nest (the peer's ifinfomsg of a veth), zeroed, padded. */
void *nl_put_raw(struct nl_req *r, size_t len);
/* Opens a nested attribute; close with the value returned. */
size_t nl_nest(struct nl_req *r, uint16_t attr);
void nl_nest_end(struct nl_req *r, size_t nest);
void nl_req_free(struct nl_req *r);
#define autoreq __attribute__((cleanup(nl_req_free))) struct nl_req

/* Attributes of an answer, by type: table[0..max]; unknown types are skipped. `hdr` is the size of
 * the fixed header. */
void nl_parse(const struct nlmsghdr *msg, size_t hdr, const struct nlattr **table, uint16_t max);
void nl_parse_nested(const struct nlattr *nest, const struct nlattr **table, uint16_t max);
/* Iterates over the attributes of a nest. */
const struct nlattr *nl_first(const struct nlattr *nest);
const struct nlattr *nl_next(const struct nlattr *nest, const struct nlattr *a);
#define nl_for_each_attr(a, nest)                                                                  \
	for (const struct nlattr *a = nl_first(nest); a; a = nl_next(nest, a))
uint16_t nl_type(const struct nlattr *a);
const void *nl_data(const struct nlattr *a);
size_t nl_len(const struct nlattr *a);
/* Values; 0, "" when the attribute is missing or too short. */
uint8_t nl_u8(const struct nlattr *a);
uint16_t nl_u16(const struct nlattr *a);
uint32_t nl_u32(const struct nlattr *a);
uint64_t nl_u64(const struct nlattr *a);
uint32_t nl_be32(const struct nlattr *a);
uint64_t nl_be64(const struct nlattr *a);
const char *nl_str(const struct nlattr *a);
/* An address of that family; false, and *out as it was, when it has another length. */
bool nl_ip(const struct nlattr *a, uint8_t family, struct ip *out);
