/* What the files of src/json/ share. */
#pragma once

/* Some of its macros have the names of our functions and constants. */
#include <jansson.h>
#undef JSON_COMPACT
#undef JSON_INDENT
#undef json_is_object
#undef json_is_array
#undef json_is_string
#undef json_is_null

#include "json/json.h"

/* jansson's numbers lose what does not fit int64_t or double, and the way a number was written. So
 * every number but a short integer is kept as a string that begins with NUL, a character that a
 * document cannot contain. Returns the literal, or NULL when the node is something else. */
static inline const char *number_literal(const json *j)
{
	if (json_typeof(j) != JSON_STRING || !json_string_length(j))
		return NULL;
	return *json_string_value(j) ? NULL : json_string_value(j) + 1;
}

/* The length of the UTF-8 sequence at s (of n bytes, at least 1), 0 when it is not a valid one. */
size_t utf8_len(const char *s, size_t n);
