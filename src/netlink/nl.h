/* Netlink: sockets, requests, answers. The only place that sees libmnl is this directory.
 *
 * A socket belongs to the network namespace it was opened in, wherever its user is later. A request
 * is built in the shape of the message, with a sticky error that is reported when it is sent.
 * Extended acks are always on: the kernel's own sentence ends up in the error's details. */
#pragma once

#include "base/err.h"
#include "base/ip.h"

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nl;

/* Opens a socket of a protocol (NETLINK_ROUTE, NETLINK_NETFILTER) in the current namespace, close
 * on exec. *nl is owned by the caller: nl_close(). */
int nl_open(struct nl **nl, int protocol, struct err *e);
void nl_close(struct nl **nl);
#define autonl __attribute__((cleanup(nl_close))) struct nl
int nl_fd(const struct nl *nl);
/* True once an answer could not be read: parts of it may be there still. */
bool nl_is_torn(const struct nl *nl);

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

/* Sends everything in the request and collects the ack of each message that asked for one. The
 * first refusal is the return value, -errno, with *ext (may be NULL, size bytes) set to the
 * kernel's text, and *failed (may be NULL) to the index of the refused message; messages behind it
 * may have been processed all the same. 0 when all succeeded. The request is emptied for reuse. Up
 * to 64 messages reach the kernel in one system call. */
int nl_ack(struct nl *nl, struct nl_req *r, char *ext, size_t size, int *failed);

/* Which attribute the kernel found fault with when nl_ack() failed last: its offset in the refused
 * message, counted from the start of that message's header; 0 when the kernel did not say. */
uint32_t nl_blamed(const struct nl *nl);

/* The same as nl_ack(), failing with e: the message text is the caller's, details are errno and
 * kernel text. */
int nl_do(struct nl *nl, struct nl_req *r, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Sends and hands every answer (of a dump, or a single one) to fn, which returns 0 to go on and
 * anything else to stop with that value. A dump interrupted by a change is repeated, at most 5
 * times, after reset (may be NULL) was called. Returns 0, fn's value, or -errno. */
typedef int nl_answer_fn(const struct nlmsghdr *msg, void *arg);
int nl_query(struct nl *nl, struct nl_req *r, nl_answer_fn *fn, void (*reset)(void *), void *arg);

/* Lets dumps be filtered by link and table in the kernel (since 4.20). Older ones ignore it, so
 * callers filter again. */
void nl_strict(struct nl *nl);

/* A socket that hears of changes (groups: RTMGRP_*, linux/rtnetlink.h) in the current namespace.
 * What it says is not read: it tells when to look again. nl_watch_wait() returns after the next
 * change or after ms milliseconds. */
int nl_watch(struct nl **nl, uint32_t groups, struct err *e);
void nl_watch_wait(struct nl *watch, int ms);

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
