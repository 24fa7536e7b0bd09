/* Regular expressions of Go's package regexp (golang.org/s/re2syntax), by the C library's
 * regcomp(). */
#pragma once

#include "base/err.h"

#include <regex.h>

/* Compiles an expression, for regexp_matches(). Read by Go's grammar and written out as a POSIX
 * extended expression that means the same in every C library; what POSIX cannot say (flags, named
 * groups, look-around, back references, \b, \Q..\E, \p{..}, characters that are not ASCII, repeat
 * counts above 255) is refused by name, as is what Go refuses. *re is the caller's: regfree().
 * Returns 0, or -1 with e set (ERR_INVALID_CONFIG). */
int regexp_compile(regex_t *re, const char *expression, struct err *e);

/* Whether it matches anywhere in the text, which is UTF-8: 1, 0, or -1 with e set (no memory). */
int regexp_matches(const regex_t *re, const char *text, struct err *e);
