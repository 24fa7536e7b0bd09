/* The error object. CNI spec 1.1.0, section 5, "Error". */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Appends it with 4 spaces of indentation and no trailing newline. `version` is the config's
 * cniVersion; NULL or "" where that was not to be had. */
void write_error(const struct err *e, const char *version, struct buf *out);
