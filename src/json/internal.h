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

/* How U+0000 is kept in keys and strings: its overlong form, which is not UTF-8, so that no
 * document contains it. A string with it is none to those who ask for strings: it would end there
 * in C. */
#define NUL_CHARACTER "\xc0\x80"

/* Some values are kept as their text, in a string node that begins with NUL: numbers that are no
 * short integers (the library's lose what does not fit int64_t or double, and the way a number was
 * written), and containers nested too deep for the tree. NULL when the node is something else. */
static inline const char *literal(const json *j)
{
	if (json_typeof(j) != JSON_STRING || !json_string_length(j))
		return NULL;
	return *json_string_value(j) ? NULL : json_string_value(j) + 1;
}

static inline const char *number_literal(const json *j)
{
	const char *s = literal(j);

	return s && *s != '{' && *s != '[' ? s : NULL;
}

/* The length of the UTF-8 sequence at s (of n bytes, at least 1), 0 when it is not a valid one. */
size_t utf8_len(const char *s, size_t n);

/* Appends a string as it is kept in the tree, quoted: json_write_string(), with U+0000. */
void write_chars(struct buf *out, const char *s);
