/* Alternative names of links (IFLA_PROP_LIST, linux/if_link.h; since kernel 5.5): unique in their
 * namespace, as good as the name in every look-up, and gone with the link. */
#pragma once

#include "netlink/nl.h"

#include <stdint.h>

/* Gives the link one, at most 127 bytes; takes one away. 0, or -errno: -EEXIST when another link
 * or this one has it, -EOPNOTSUPP or -EINVAL where the kernel knows none. */
int altname_add(struct nl *nl, uint32_t index, const char *name);
int altname_del(struct nl *nl, uint32_t index, const char *name);

/* Calls fn for each of the link's alternative names; a non-zero return stops it and is the result.
 * Otherwise 0, or -errno (-ENODEV: there is no such link). */
int altname_each(struct nl *nl, uint32_t index, int (*fn)(const char *name, void *arg), void *arg);

/* Calls fn for the alternative names of all links; as altname_each(). */
int altname_each_link(
	struct nl *nl, int (*fn)(uint32_t index, const char *name, void *arg), void *arg);
