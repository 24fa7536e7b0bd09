/* The reader: RFC 8259 as the Go plugins' library understands it. The tree is built from the
 * library's nodes, the text is read here: jansson's own reader refuses what they accept (a NUL
 * character, a lone surrogate, bytes that are not UTF-8, deep nesting), rounds numbers, and does
 * not survive a string that it has no memory for. */
#include "json/internal.h"

#include "base/cleanup.h"
#include "base/hex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Containers nested deeper than this within a document are kept as text: nobody looks there, and
 * whoever walks the tree needs no more stack than this. */
#define TREE_DEPTH 128

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

struct reader {
	const char *text, *p, *end;
	unsigned int depth; /* containers that p is in */
	struct buf string;  /* the one read last */
	int code;           /* of the error */
	struct err *e;
};

static char peek(const struct reader *r)
{
	return r->p < r->end ? *r->p : '\0';
}

static char next_token(struct reader *r)
{
	while (r->p < r->end && strchr(" \t\r\n", *r->p) && *r->p)
		r->p++;
	return peek(r);
}

/* Says what is wrong with the character at p, in the words of the Go library. */
static int unexpected(struct reader *r, const char *where)
{
	unsigned int line = 1;
	char c = peek(r);

	if (r->p >= r->end)
		return err_set(r->e, r->code, "unexpected end of JSON input");
	for (const char *q = r->text; q < r->p; q++)
		line += *q == '\n';
	if (c >= ' ' && c < 0x7f)
		return err_set(r->e, r->code, "invalid JSON: line %u: invalid character '%c' %s",
			line, c, where);
	return err_set(r->e, r->code, "invalid JSON: line %u: invalid character '\\x%02x' %s", line,
		(unsigned char)c, where);
}

static int no_memory(struct reader *r)
{
	return err_sys(r->e, ENOMEM, r->code, "cannot read JSON");
}

/* ---- strings ---- */

/* The value of \uXXXX at s, -1 when that is something else. */
static int unicode_escape(const char *s, const char *end)
{
	int high, low;

	if (end - s < 6 || s[0] != '\\' || s[1] != 'u')
		return -1;
	high = hex_byte(s + 2);
	low = high < 0 ? -1 : hex_byte(s + 4);
	return low < 0 ? -1 : high << 8 | low;
}

static void put_utf8(struct buf *out, unsigned int c)
{
	char s[4];
	size_t n = 0;

	if (!c) {
		buf_puts(out, NUL_CHARACTER);
		return;
	}
	if (c < 0x80) {
		s[n++] = (char)c;
	} else if (c < 0x800) {
		s[n++] = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		s[n++] = (char)(0xe0 | c >> 12);
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		s[n++] = (char)(0xf0 | c >> 18);
		s[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		s[n++] = (char)(0x80 | (c & 0x3f));
	buf_put(out, s, n);
}

/* \uXXXX at p. Two that make a pair are one character; half a pair is U+FFFD. */
static int read_unicode(struct reader *r)
{
	int c = unicode_escape(r->p, r->end), low;

	if (c < 0) {
		for (r->p += 2; r->p < r->end && hex_digit(*r->p) >= 0;)
			r->p++;
		return unexpected(r, "in \\u hexadecimal character escape");
	}
	r->p += 6;
	if (c < 0xd800 || c > 0xdfff) {
		put_utf8(&r->string, (unsigned int)c);
		return 0;
	}
	low = unicode_escape(r->p, r->end);
	if (c > 0xdbff || low < 0xdc00 || low > 0xdfff) {
		buf_puts(&r->string, REPLACEMENT);
		return 0;
	}
	r->p += 6;
	put_utf8(&r->string,
		0x10000 + ((unsigned int)(c - 0xd800) << 10 | (unsigned int)(low - 0xdc00)));
	return 0;
}

static int read_escape(struct reader *r)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *name;

	if (r->end - r->p > 1 && r->p[1] == 'u')
		return read_unicode(r);
	r->p++;
	name = r->p < r->end && *r->p ? strchr(names, *r->p) : NULL;
	if (!name)
		return unexpected(r, "in string escape code");
	buf_put(&r->string, &values[name - names], 1);
	r->p++;
	return 0;
}

/* Up to the next quote, backslash or control character. */
static void read_plain(struct reader *r)
{
	const char *copied = r->p;

	while (r->p < r->end && *r->p != '"' && *r->p != '\\' && (unsigned char)*r->p >= ' ') {
		size_t n = utf8_len(r->p, (size_t)(r->end - r->p));

		if (!n) {
			buf_put(&r->string, copied, (size_t)(r->p - copied));
			buf_puts(&r->string, REPLACEMENT);
			copied = r->p + 1;
		}
		r->p += n ? n : 1;
	}
	buf_put(&r->string, copied, (size_t)(r->p - copied));
}

/* The string whose opening quote is at p, to r->string. A byte that is not UTF-8 becomes U+FFFD. */
static int read_string(struct reader *r)
{
	r->string.len = 0;
	buf_puts(&r->string, "");
	r->p++;
	while (peek(r) != '"') {
		if ((unsigned char)peek(r) < ' ')
			return unexpected(r, "in string literal");
		if (peek(r) != '\\')
			read_plain(r);
		else if (read_escape(r))
			return -1;
	}
	r->p++;
	return r->string.failed ? no_memory(r) : 0;
}

/* A key and the colon behind it; the key is in r->string. */
static int read_key(struct reader *r)
{
	if (next_token(r) != '"')
		return unexpected(r, "looking for beginning of object key string");
	if (read_string(r))
		return -1;
	if (next_token(r) != ':')
		return unexpected(r, "after object key");
	r->p++;
	return 0;
}

/* ---- numbers and words ---- */

static bool skip_digits(struct reader *r)
{
	const char *first = r->p;

	while (peek(r) >= '0' && peek(r) <= '9')
		r->p++;
	return r->p > first;
}

/* Goes behind the number at p (RFC 8259, section 6). *small: an integer that surely fits int64_t
 * and is written back as it was read. */
static int skip_number(struct reader *r, bool *small)
{
	bool minus = peek(r) == '-', zero;
	const char *digits = r->p += minus;

	zero = peek(r) == '0';
	if (zero)
		r->p++;
	else if (!skip_digits(r))
		return unexpected(r, "in numeric literal");
	*small = r->p - digits <= 18 && !(minus && zero);
	if (peek(r) == '.') {
		*small = false;
		r->p++;
		if (!skip_digits(r))
			return unexpected(r, "after decimal point in numeric literal");
	}
	if (peek(r) == 'e' || peek(r) == 'E') {
		*small = false;
		r->p++;
		if (peek(r) == '+' || peek(r) == '-')
			r->p++;
		if (!skip_digits(r))
			return unexpected(r, "in exponent of numeric literal");
	}
	return 0;
}

static int skip_word(struct reader *r, const char *word)
{
	for (; *word; word++, r->p++)
		if (peek(r) != *word)
			return unexpected(r, "in literal");
	return 0;
}

/* What a value begins with, for those that are no containers: '0' for a number, '\0' for none. */
static char scalar_kind(char c)
{
	if (c == '-' || (c >= '0' && c <= '9'))
		return '0';
	return c && strchr("\"tfn", c) ? c : '\0';
}

static int skip_scalar(struct reader *r, char kind, bool *small)
{
	switch (kind) {
	case '"': return read_string(r);
	case '0': return skip_number(r, small);
	case 't': return skip_word(r, "true");
	case 'f': return skip_word(r, "false");
	case 'n': return skip_word(r, "null");
	default: return unexpected(r, "looking for beginning of value");
	}
}

/* ---- values kept as text ---- */

static int enter(struct reader *r)
{
	if (++r->depth > JSON_MAX_DEPTH)
		return err_set(r->e, r->code, "invalid JSON: nested deeper than %d levels",
			JSON_MAX_DEPTH);
	r->p++;
	return 0;
}

/* The kinds of the containers that are open in a value kept as text: one bit each. */
struct nesting {
	size_t depth;
	unsigned char is_object[JSON_MAX_DEPTH / 8 + 1];
};

static void push(struct nesting *n, bool is_object)
{
	unsigned char bit = (unsigned char)(1 << n->depth % 8);

	n->is_object[n->depth / 8] &= (unsigned char)~bit;
	if (is_object)
		n->is_object[n->depth / 8] |= bit;
	n->depth++;
}

static bool in_object(const struct nesting *n)
{
	size_t top = n->depth - 1;

	return n->is_object[top / 8] >> top % 8 & 1;
}

static int copy_key(struct reader *r, struct buf *out)
{
	if (read_key(r))
		return -1;
	write_chars(out, r->string.data);
	buf_puts(out, ":");
	return 0;
}

static int copy_scalar(struct reader *r, struct buf *out)
{
	const char *first = r->p;
	char kind = scalar_kind(peek(r));
	bool small;

	if (skip_scalar(r, kind, &small))
		return -1;
	if (kind == '"')
		write_chars(out, r->string.data);
	else
		buf_put(out, first, (size_t)(r->p - first));
	return 0;
}

/* After a value: closes the containers that end here, and goes on to the next value, if any. */
static int copy_ends(struct reader *r, struct nesting *n, struct buf *out)
{
	while (n->depth) {
		bool object = in_object(n);
		char c = next_token(r);

		if (c != ',' && c != (object ? '}' : ']'))
			return unexpected(
				r, object ? "after object key:value pair" : "after array element");
		buf_put(out, &c, 1);
		r->p++;
		if (c == ',')
			return object ? copy_key(r, out) : 0;
		n->depth--;
		r->depth--;
	}
	return 0;
}

/* The value at p as compact text to out, without a tree and without recursion. */
static int copy_value(struct reader *r, struct buf *out)
{
	struct nesting n = {.depth = 0};

	do {
		char c = next_token(r);

		if (c == '{' || c == '[') {
			if (enter(r))
				return -1;
			push(&n, c == '{');
			buf_put(out, &c, 1);
			if (next_token(r) != (c == '{' ? '}' : ']')) {
				if (c == '{' && copy_key(r, out))
					return -1;
				continue;
			}
		} else if (copy_scalar(r, out)) {
			return -1;
		}
		if (copy_ends(r, &n, out))
			return -1;
	} while (n.depth);
	return out->failed ? no_memory(r) : 0;
}

/* ---- the tree ---- */

static json *node(struct reader *r, json *j)
{
	if (!j)
		no_memory(r);
	return j;
}

/* A node that keeps its text: see literal(). */
static json *literal_node(struct reader *r, const char *text, size_t len)
{
	autobuf b = {0};

	buf_put(&b, "", 1);
	buf_put(&b, text, len);
	return node(r, b.failed ? NULL : json_stringn_nocheck(b.data, b.len));
}

static json *read_deep(struct reader *r)
{
	autobuf text = {0};

	return copy_value(r, &text) ? NULL : literal_node(r, text.data, text.len);
}

/* Of at most 18 digits. strtoll() would look behind them, where the text may end. */
static json *small_integer(struct reader *r, const char *first)
{
	char digits[24] = "";

	memcpy(digits, first, (size_t)(r->p - first));
	return node(r, json_integer(strtoll(digits, NULL, 10)));
}

static json *read_scalar(struct reader *r)
{
	const char *first = r->p;
	char kind = scalar_kind(peek(r));
	bool small = false;

	if (skip_scalar(r, kind, &small))
		return NULL;
	switch (kind) {
	case '"': return node(r, json_stringn_nocheck(r->string.data, r->string.len));
	case 't': return json_true();
	case 'f': return json_false();
	case 'n': return json_null();
	default: break;
	}
	if (!small)
		return literal_node(r, first, (size_t)(r->p - first));
	return small_integer(r, first);
}

static json *read_value(struct reader *r);

static bool is_container(const json *j)
{
	return json_is_object(j) || json_is_array(j);
}

/* A key given again counts from there on; but null over a plain value leaves that, as the Go
 * plugins do, while it makes nothing of an array or an object. */
static int set_member(struct reader *r, json *object, const char *key, json *value)
{
	const json *before = json_object_get(object, key);

	if (before && json_is_null(value) && !is_container(before))
		return 0;
	if (before)
		json_object_del(object, key);
	return json_object_set_new_nocheck(object, key, value) ? no_memory(r) : 0;
}

static int read_member(struct reader *r, json *object)
{
	autofree char *key = NULL;
	json *value;

	if (read_key(r))
		return -1;
	key = strdup(r->string.data);
	if (!key)
		return no_memory(r);
	value = read_value(r);
	return value ? set_member(r, object, key, value) : -1;
}

static int read_element(struct reader *r, json *array)
{
	json *value = read_value(r);

	if (!value)
		return -1;
	return json_array_append_new(array, value) ? no_memory(r) : 0;
}

/* The members or elements up to the closing bracket. */
static int read_content(struct reader *r, json *j)
{
	bool object = json_is_object(j);
	char close = object ? '}' : ']';

	if (enter(r))
		return -1;
	if (next_token(r) != close)
		for (;;) {
			if (object ? read_member(r, j) : read_element(r, j))
				return -1;
			if (next_token(r) == close)
				break;
			if (peek(r) != ',')
				return unexpected(r, object ? "after object key:value pair"
							    : "after array element");
			r->p++;
		}
	r->p++;
	r->depth--;
	return 0;
}

static json *read_value(struct reader *r)
{
	autojson *j = NULL;
	char c = next_token(r);

	if (c != '{' && c != '[')
		return read_scalar(r);
	if (r->depth >= TREE_DEPTH)
		return read_deep(r);
	j = node(r, c == '{' ? json_new_object() : json_new_array());
	return j && !read_content(r, j) ? take_ptr(j) : NULL;
}

json *json_parse(const char *text, size_t len, int code, struct err *e)
{
	struct reader r = {.text = text, .p = text, .end = text + len, .code = code, .e = e};
	autojson *j = NULL;

	if (len > JSON_MAX_SIZE) {
		err_set(e, code, "invalid JSON: larger than %u bytes", JSON_MAX_SIZE);
		return NULL;
	}
	j = read_value(&r);
	if (j) {
		next_token(&r);
		if (r.p < r.end) {
			unexpected(&r, "after top-level value");
			json_free(take_ptr(j));
		}
	}
	buf_free(&r.string);
	return take_ptr(j);
}

/* ---- repeated keys ---- */

/* The keys of the object at p, which is left behind. The first that is there a second time goes to
 * *twice. */
static int find_twice(struct reader *r, char **twice)
{
	autojson *seen = json_new_object();
	autobuf ignored = {0};

	if (!seen || enter(r))
		return -1;
	while (next_token(r) != '}') {
		if (read_key(r))
			return -1;
		if (!*twice && json_object_get(seen, r->string.data))
			*twice = strdup(r->string.data);
		if (json_object_set_new_nocheck(seen, r->string.data, json_true()) ||
			copy_value(r, &ignored))
			return -1;
		ignored.len = 0;
		if (next_token(r) == ',')
			r->p++;
	}
	r->p++;
	r->depth--;
	return 0;
}

char *json_duplicate_key(const char *text, const char *key)
{
	autoerr e = {0};
	struct reader r = {
		.text = text, .p = text, .end = text + strlen(text), .code = ERR_DECODE, .e = &e};
	autobuf ignored = {0};
	char *twice = NULL;
	int ret = next_token(&r) == '{' ? enter(&r) : -1;

	while (!ret && !twice && next_token(&r) != '}') {
		ret = read_key(&r);
		if (!ret && !strcasecmp(r.string.data, key) && next_token(&r) == '{')
			ret = find_twice(&r, &twice);
		else if (!ret)
			ret = copy_value(&r, &ignored);
		ignored.len = 0;
		if (next_token(&r) == ',')
			r.p++;
	}
	buf_free(&r.string);
	return twice;
}
