/* Routing policy rules: which table is looked up for which packets. linux/fib_rules.h. */
#pragma once

#include "base/ip.h"
#include "netlink/nl.h"

#include <stdbool.h>
#include <stdint.h>

/* A rule as we add and look for it: packets from src (to dst) are looked up in the table. */
struct rule_spec {
	uint8_t family;
	struct prefix src; /* len 0: from anywhere */
	struct prefix dst; /* len 0: to anywhere */
	uint32_t table;
	uint32_t priority; /* 0 when adding: the kernel's choice, before the lowest there is */
};

/* Append the messages that add a rule, or delete the first that is like it (priority 0: of any).
 * A second rule like it is refused with -EEXIST, none with -ENOENT. */
void rule_put(struct nl_req *req, const struct rule_spec *r);
void rule_put_del(struct nl_req *req, const struct rule_spec *r);

/* Rules as the kernel has them, with every attribute. */
struct rule_copy {
	struct rule_spec spec; /* what is known of it */
	struct nlmsghdr *msg;  /* owned */
};
struct rule_list {
	struct rule_copy *list;
	size_t len;
};
/* Those of a family (AF_UNSPEC: IPv4 and IPv6), by priority. Returns 0 or -errno, *out is empty
 * then. */
int rule_list_get(struct nl *nl, uint8_t family, struct rule_list *out);
void rule_list_free(struct rule_list *l);
#define autorules __attribute__((cleanup(rule_list_free))) struct rule_list

/* Appends the message that deletes exactly this rule, or makes it again. */
void rule_put_del_copy(struct nl_req *req, const struct rule_copy *r);
void rule_put_copy(struct nl_req *req, const struct rule_copy *r);
