/* The host's end of an attachment's veth pair, found by whom it belongs to. It carries the owner
 * three times: in its name as far as that is free, in its alias, and, from kernel 5.5 on, whole in
 * an alternative name, by which one message finds it. */
#pragma once

#include "cni/owner.h"
#include "netlink/link.h"

#define OWNED_LINK_NAME 16

/* The name it gets unless that is taken: "veth" and the first 8 digits of the hash. Returns out. */
const char *owned_link_name(const char *hash, char out[static OWNED_LINK_NAME]);

/* Finds it. 0, -ENODEV when there is none, or another -errno. */
int owned_link_get(struct nl *nl, const char *hash, struct link *out);

/* Deletes it, and the pair with it. Returns like owned_link_get(). */
int owned_link_del(struct nl *nl, const char *hash);
