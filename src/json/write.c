#include "json/internal.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t utf8_len(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t len = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;

	if (u[0] > 0xf4 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
		(u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f))
		return 0;
	return len;
}

bool json_is_utf8(const char *s)
{
	size_t left = strlen(s), len;

	for (; left; s += len, left -= len) {
		len = utf8_len(s, left);
		if (!len)
			return false;
	}
	return true;
}

/* The escape for the character at s (of len bytes, 0 when it is not UTF-8): text, or space filled.
 * NULL when it is written as it is. */
static const char *escape(const char *s, size_t len, char space[static 8])
{
	switch (*s) {
	case '"': return "\\\"";
	case '\\': return "\\\\";
	case '\n': return "\\n";
	case '\r': return "\\r";
	case '\t': return "\\t";
	default: break;
	}
	if (!len)
		return "\\ufffd";
	if (len == 3 && !memcmp(s, "\xe2\x80\xa8", 3))
		return "\\u2028";
	if (len == 3 && !memcmp(s, "\xe2\x80\xa9", 3))
		return "\\u2029";
	if ((unsigned char)*s >= 0x20 && *s != '<' && *s != '>' && *s != '&')
		return NULL;
	snprintf(space, 8, "\\u%04x", *s);
	return space;
}

static void write_quoted(struct buf *out, const char *s, bool nul)
{
	const char *plain = s, *end = s + strlen(s);
	char space[8];

	buf_puts(out, "\"");
	while (s < end) {
		size_t len = utf8_len(s, (size_t)(end - s));
		const char *escaped = escape(s, len, space);

		if (nul && !len && !strncmp(s, NUL_CHARACTER, 2)) {
			escaped = "\\u0000";
			len = 2;
		}
		if (escaped) {
			buf_put(out, plain, (size_t)(s - plain));
			buf_puts(out, escaped);
		}
		s += len ? len : 1;
		if (escaped)
			plain = s;
	}
	buf_put(out, plain, (size_t)(end - plain));
	buf_puts(out, "\"");
}

void json_write_string(struct buf *out, const char *s)
{
	write_quoted(out, s, false);
}

void write_chars(struct buf *out, const char *s)
{
	write_quoted(out, s, true);
}

static bool indented(enum json_style style)
{
	return style == JSON_INDENT || style == JSON_INDENT_SORTED;
}

static void new_line(struct buf *out, enum json_style style, int depth)
{
	if (indented(style))
		buf_printf(out, "\n%*s", 4 * depth, "");
}

static void write_value(struct buf *out, const json *j, enum json_style style, int depth);

static void write_member(struct buf *out, void *it, enum json_style style, int depth)
{
	new_line(out, style, depth);
	write_chars(out, json_iter_key(it));
	buf_puts(out, indented(style) ? ": " : ":");
	write_value(out, json_iter_value(it), style, depth);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(json_iter_key(*(void *const *)a), json_iter_key(*(void *const *)b));
}

static void write_object(struct buf *out, const json *j, enum json_style style, int depth)
{
	size_t n = json_object_size(j), i = 0;
	autofree void **members = calloc(n + 1, sizeof(*members));

	if (!members) {
		out->failed = true;
		return;
	}
	for (void *it = json_iter(j); it; it = json_iter_next(j, it))
		members[i++] = it;
	if (style == JSON_COMPACT_SORTED || style == JSON_INDENT_SORTED)
		qsort(members, n, sizeof(*members), by_key);
	buf_puts(out, "{");
	for (i = 0; i < n; i++) {
		if (i)
			buf_puts(out, ",");
		write_member(out, members[i], style, depth + 1);
	}
	if (n)
		new_line(out, style, depth);
	buf_puts(out, "}");
}

static void write_array(struct buf *out, const json *j, enum json_style style, int depth)
{
	buf_puts(out, "[");
	for (size_t i = 0; i < json_len(j); i++) {
		if (i)
			buf_puts(out, ",");
		new_line(out, style, depth + 1);
		write_value(out, json_at(j, i), style, depth + 1);
	}
	if (json_len(j))
		new_line(out, style, depth);
	buf_puts(out, "]");
}

static void write_value(struct buf *out, const json *j, enum json_style style, int depth)
{
	switch (json_typeof(j)) {
	case JSON_OBJECT: write_object(out, j, style, depth); break;
	case JSON_ARRAY: write_array(out, j, style, depth); break;
	case JSON_STRING:
		if (literal(j))
			buf_puts(out, literal(j));
		else
			write_chars(out, json_string_value(j));
		break;
	case JSON_INTEGER: buf_printf(out, "%" PRId64, (int64_t)json_integer_value(j)); break;
	case JSON_TRUE: buf_puts(out, "true"); break;
	case JSON_FALSE: buf_puts(out, "false"); break;
	case JSON_REAL: /* never made: see number_literal() */
	case JSON_NULL: buf_puts(out, "null"); break;
	}
}

void json_write(struct buf *out, const json *j, enum json_style style)
{
	write_value(out, j, style, 0);
}
