/* SHA-512 names: the identity of an attachment where the kernel's field is too short for it. */
#pragma once

#include <stddef.h>

/* Writes the first `digits` (at most 128) lower-case hex digits of SHA-512 over the parts, one
 * after the other with nothing between them, and a NUL. The list of parts ends with NULL. */
void hash_hex(char *out, size_t digits, ...) __attribute__((sentinel));
