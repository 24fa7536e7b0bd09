/* Calling another plugin: an IPAM plugin, or the main plugin that a meta plugin has chosen. It is
 * looked up on CNI_PATH as libcni does, and runs in this process when the file found is this very
 * binary; else it is executed. What it is asked is what the request says. A plugin that hands on a
 * configuration of its own making (flannel) copies its request and puts that configuration into
 * text, text_len and version of the copy; an IPAM plugin gets the caller's stdin byte for byte.
 *
 * A plugin that is at work in this process is not called again from below: it would never come to
 * an end. reference/protocol.md 3.3 and 3.9. */
#pragma once

#include "cni/applet.h"

/* ADD through the plugin `type`. The result is what the plugin printed, read by its own label. An
 * error of the delegate is passed on with its code, msg and details. The inverse (its DEL) is
 * pushed on `undo`; req must outlive that. */
int delegate_add(const struct request *req, const char *type, struct undo *undo, struct result *r,
	struct err *e);

/* DEL, CHECK, GC or STATUS. A GC that the plugin does not know is done. */
int delegate_call(const struct request *req, const char *type, enum verb verb, struct err *e);

/* Whether ADD of that type would run in this process: the file found on CNI_PATH is this very
 * binary and has an applet of the name. False when it cannot be told. */
bool delegate_is_own(const struct request *req, const char *type);

/* The "ipam"."type" of the config: NULL when there is none or it is empty. -1 with e set on a wrong
 * type, and for a plugin that is known to be none of IPAM. */
int delegate_ipam_type(const struct request *req, const char **type, struct err *e);
