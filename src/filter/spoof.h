/* The MAC spoof filter (`macspoofchk`) in upstream's table and chains. reference/bridge-ptp.md 2.8.
 * The chains additionally carry the owner as chain comment, so that GC can tell networks apart.
 * All of it happens in the host's namespace. */
#pragma once

#include "base/err.h"
#include "cni/owner.h"
#include "cni/request.h"

#include <stdint.h>

/* Lets frames that enter the bridge from host_ifname pass only with this source MAC. One
 * transaction; replaces what an earlier ADD of the same attachment left. */
int spoof_add(
	const struct owner *o, const char *host_ifname, const uint8_t mac[static 6], struct err *e);

/* Removes jump rules (by comment) and chains of the attachment, ours or upstream's. Nothing there
 * is success. */
int spoof_del(const struct owner *o, struct err *e);

/* Fails with ERR_CHECK when the filter is missing or lets another MAC pass. */
int spoof_check(
	const struct owner *o, const char *host_ifname, const uint8_t mac[static 6], struct err *e);

/* Removes the filters of this request's network whose attachment is not in the set. */
int spoof_gc(const struct request *req, const struct valid_set *valid, struct err *e);

/* Fails with ERR_NOT_AVAILABLE, naming what is missing, when the kernel cannot filter frames.
 * Changes nothing. */
int spoof_status(struct err *e);
