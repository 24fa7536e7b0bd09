/* What the protocol allows as a name. CNI spec 1.1.0, sections 1 and 2. */
#pragma once

#include <stdbool.h>

/* A network name or container ID: ^[a-zA-Z0-9][a-zA-Z0-9_.-]*$ */
bool name_valid(const char *name);

/* An interface name: 1 to 15 bytes, not "." or "..", no '/', ':', white space or control
 * characters, UTF-8. NULL when fine, else the text of the error; *details is set to an addition to
 * it, or NULL. */
const char *ifname_invalid(const char *name, const char **details);

/* Whether the kernel would take the name of a new link for a template ("eth%d") and choose another.
 * No link has such a name. */
bool ifname_is_template(const char *name);
