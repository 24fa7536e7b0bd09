/* The two namespaces of an attachment: a routing socket in each, opened once. Afterwards no code
 * switches namespace, except to write a sysctl. */
#pragma once

#include "base/err.h"
#include "cni/request.h"
#include "netlink/netns.h"
#include "netlink/nl.h"

struct sandbox {
	int netns; /* descriptor of the container's namespace */
	struct nl *host;
	struct nl *nl; /* in the container's */
};

#define SANDBOX_NONE                                                                               \
	{                                                                                          \
		.netns = -1                                                                        \
	}

/* Opens the namespace of the request and both sockets. On failure *s is empty, e is set
 * (ERR_INVALID_NETNS for the namespace itself), and *state, unless NULL, says which kind of failure
 * it was. */
int sandbox_open(
	struct sandbox *s, const struct request *req, enum netns_state *state, struct err *e);
void sandbox_close(struct sandbox *s);
#define autosandbox __attribute__((cleanup(sandbox_close))) struct sandbox
