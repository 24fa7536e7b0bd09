/* The two namespaces of an attachment: a routing socket in each, opened once. Afterwards no code
 * switches namespace, except to write a sysctl. */
#pragma once

#include "base/err.h"
#include "cni/request.h"
#include "netlink/netns.h"
#include "netlink/nl.h"

#include <stdbool.h>

struct sandbox {
	int netns; /* descriptor of the container's namespace */
	struct nl *host;
	struct nl *nl; /* in the container's */
};

#define SANDBOX_NONE                                                                               \
	{                                                                                          \
		.netns = -1                                                                        \
	}

/* Opens the namespace of the request and both sockets. On failure *s is empty and e is set
 * (ERR_INVALID_NETNS for the namespace itself). */
int sandbox_open(struct sandbox *s, const struct request *req, struct err *e);

/* The same for DEL, where a path that is not given, is gone, or leads to no network namespace is
 * fine: *there is false then, and *s empty. */
int sandbox_try(struct sandbox *s, const struct request *req, bool *there, struct err *e);

/* Fails with ERR_CONFLICT when the container has an interface of that name; kind is for the
 * message.
 */
int sandbox_name_free(const struct sandbox *s, const char *kind, const char *ifname, struct err *e);

/* Closes what was opened. */
void sandbox_close(struct sandbox *s);
#define autosandbox __attribute__((cleanup(sandbox_close))) struct sandbox
