/* CNI_ARGS: what a runtime hands to plugins beside their configuration. CNI spec 1.1.0, section 2.
 */
#pragma once

#include "base/err.h"
#include "cni/request.h"

/* CNI_ARGS as host-local, static, bridge, macvlan, tap and tuning parse it: pairs split at ';',
 * exactly one '=' each, keys case-sensitive, unknown keys refused unless IgnoreUnknown is true
 * (protocol.md 5.3). `known` is a NULL-terminated list of keys; values[i] receives the value of
 * known[i], owned by the caller, or stays NULL. */
int request_cni_args(
	const struct request *req, const char *const *known, char **values, struct err *e);
