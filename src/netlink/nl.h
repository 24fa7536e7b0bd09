/* Netlink: sockets, and sending and asking over them; the messages are netlink/msg.h's. The only
 * place that sees libmnl is this directory.
 *
 * A socket belongs to the network namespace it was opened in, wherever its user is later. Extended
 * acks are always on: the kernel's own sentence ends up in the error's details. */
#pragma once

#include "base/err.h"
#include "netlink/msg.h"

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
