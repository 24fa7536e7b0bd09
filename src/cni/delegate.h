/* Calling another plugin, normally IPAM: looked up on CNI_PATH as libcni does; in-process when the
 * file found is this very binary, else executed. reference/protocol.md 3.3 and 3.9. */
#pragma once

#include "cni/applet.h"

/* ADD through the plugin `type`. The result is what the plugin printed, read by its own label. An
 * error of the delegate is passed on with its code, msg and details. The inverse (its DEL) is
 * pushed on `undo`; req must outlive that. */
int delegate_add(const struct request *req, const char *type, struct undo *undo, struct result *r,
	struct err *e);

/* DEL, CHECK, GC or STATUS. A GC that the plugin does not know is done. */
int delegate_call(const struct request *req, const char *type, enum verb verb, struct err *e);

/* The "ipam"."type" of the config: NULL when there is none or it is empty. -1 on a wrong type. */
int delegate_ipam_type(const struct request *req, const char **type, struct err *e);
