#include "json/internal.h"

#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

static json *mut(const json *j)
{
	return (json *)(uintptr_t)j;
}

/* Behind the closing quote of the string whose first character p is at; NULL for \u0000. */
static const char *skip_string(const char *p, const char *end)
{
	for (; p < end && *p != '"'; p++) {
		if (*p != '\\')
			continue;
		if (end - p >= 6 && !memcmp(p, "\\u0000", 6))
			return NULL;
		if (++p == end)
			return end;
	}
	return p < end ? p + 1 : end;
}

static const char *skip_digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

/* Behind the number at p (RFC 8259, section 6), NULL when it is malformed. *small: an integer that
 * surely fits int64_t and is written back as it was read. */
static const char *skip_number(const char *p, const char *end, bool *small)
{
	bool minus = *p == '-';
	const char *digits = p + minus, *q = skip_digits(digits, end);

	if (q == digits || (*digits == '0' && q > digits + 1))
		return NULL;
	*small = q - digits <= 18 && !(minus && *digits == '0');
	if (q < end && *q == '.') {
		*small = false;
		p = q + 1;
		q = skip_digits(p, end);
		if (q == p)
			return NULL;
	}
	if (q < end && (*q == 'e' || *q == 'E')) {
		*small = false;
		p = q + 1;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		q = skip_digits(p, end);
		if (q == p)
			return NULL;
	}
	return q;
}

/* Looks through the text before anything is built from it: refuses NUL and too deep a nesting, and
 * copies it to out with the numbers rewritten that the library would spoil. Without such a number
 * out stays empty. A malformed text stays malformed: the library finds out. */
static int prepare(const char *text, size_t len, struct buf *out, int code, struct err *e)
{
	const char *p = text, *end = text + len, *copied = text, *q;
	size_t depth = 0;
	bool small;

	if (!len)
		return err_set(e, code, "unexpected end of JSON input");
	if (memchr(text, '\0', len))
		return err_set(e, code, "invalid JSON: NUL character");
	while (p < end) {
		switch (*p) {
		case '"':
			p = skip_string(p + 1, end);
			if (!p)
				return err_set(e, code, "invalid JSON: NUL character in a string");
			continue;
		case '[':
		case '{':
			if (++depth > JSON_MAX_DEPTH)
				return err_set(e, code,
					"invalid JSON: nested deeper than %d levels",
					JSON_MAX_DEPTH);
			break;
		case ']':
		case '}': depth -= depth > 0; break;
		case '-':
		case '0' ... '9':
			q = skip_number(p, end, &small);
			if (!q)
				break;
			if (!small) {
				buf_put(out, copied, (size_t)(p - copied));
				buf_puts(out, "\"\\u0000");
				buf_put(out, p, (size_t)(q - p));
				buf_puts(out, "\"");
				copied = q;
			}
			p = q;
			continue;
		default: break;
		}
		p++;
	}
	if (copied != text)
		buf_put(out, copied, (size_t)(end - copied));
	return 0;
}

/* The library's hash tables want a secret; left alone it opens /dev/urandom for it. */
static void seed(void)
{
	const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
	unsigned int value;

	if (!random)
		return;
	memcpy(&value, random, sizeof(value));
	json_object_seed(value);
}

static jmp_buf *way_out;

/* The library does not survive a string it has no memory for: it leaves out characters, and looks
 * for the closing quote where there is none. What it has built so far is given up. */
static void *checked_malloc(size_t size)
{
	void *p = malloc(size);

	if (!p && way_out)
		longjmp(*way_out, 1);
	return p;
}

static json *load(const char *text, size_t len, json_error_t *error, bool *starved)
{
	jmp_buf here;
	json *j;

	*starved = true;
	json_set_alloc_funcs(checked_malloc, free);
	way_out = &here;
	if (setjmp(here)) {
		way_out = NULL;
		return NULL;
	}
	j = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, error);
	way_out = NULL;
	*starved = false;
	return j;
}

json *json_parse(const char *text, size_t len, int code, struct err *e)
{
	autobuf rewritten = {0};
	json_error_t error;
	bool starved = true;
	json *j = NULL;

	if (len > JSON_MAX_SIZE) {
		err_set(e, code, "invalid JSON: larger than %u bytes", JSON_MAX_SIZE);
		return NULL;
	}
	if (prepare(text, len, &rewritten, code, e) < 0)
		return NULL;
	if (rewritten.len) {
		text = rewritten.data;
		len = rewritten.len;
	}
	seed();
	if (!rewritten.failed)
		j = load(text, len, &error, &starved);
	if (starved) {
		err_sys(e, ENOMEM, code, "cannot read JSON");
		return NULL;
	}
	if (j)
		return j;
	if (json_error_code(&error) == json_error_premature_end_of_input)
		err_set(e, code, "unexpected end of JSON input");
	else
		err_set(e, code, "invalid JSON: line %d: %s", error.line, error.text);
	return NULL;
}

void json_free(json *j)
{
	json_decref(j);
}

void json_freep(json **j)
{
	json_decref(*j);
}

json *json_ref(const json *j)
{
	return json_incref(mut(j));
}

bool json_is_object(const json *j)
{
	return j && json_typeof(j) == JSON_OBJECT;
}

bool json_is_array(const json *j)
{
	return j && json_typeof(j) == JSON_ARRAY;
}

bool json_is_string(const json *j)
{
	return j && json_typeof(j) == JSON_STRING && !number_literal(j);
}

bool json_is_bool(const json *j)
{
	return j && (json_typeof(j) == JSON_TRUE || json_typeof(j) == JSON_FALSE);
}

bool json_is_null(const json *j)
{
	return j && json_typeof(j) == JSON_NULL;
}

static bool get_i64(const json *j, int64_t *out)
{
	const char *s = j ? number_literal(j) : NULL;
	double d;

	if (j && json_typeof(j) == JSON_INTEGER) {
		*out = json_integer_value(j);
		return true;
	}
	if (!s)
		return false;
	errno = 0;
	if (!strpbrk(s, ".eE")) {
		*out = strtoll(s, NULL, 10);
		return !errno;
	}
	d = strtod(s, NULL);
	if (!(d >= -0x1p63 && d < 0x1p63) || (double)(int64_t)d < d || (double)(int64_t)d > d)
		return false;
	*out = (int64_t)d;
	return true;
}

static bool get_u64(const json *j, uint64_t *out)
{
	const char *s = j ? number_literal(j) : NULL;
	int64_t value;
	double d;

	if (get_i64(j, &value)) {
		*out = (uint64_t)value;
		return value >= 0;
	}
	if (!s || *s == '-')
		return false;
	errno = 0;
	if (!strpbrk(s, ".eE")) {
		*out = strtoull(s, NULL, 10);
		return !errno;
	}
	/* Doubles of this size have no fraction. */
	d = strtod(s, NULL);
	if (!(d >= 0x1p63 && d < 0x1p64))
		return false;
	*out = (uint64_t)d;
	return true;
}

bool json_is_int(const json *j)
{
	int64_t value;

	return get_i64(j, &value);
}

const char *json_type_name(const json *j)
{
	const char *s;

	switch (j ? json_typeof(j) : JSON_NULL) {
	case JSON_OBJECT: return "object";
	case JSON_ARRAY: return "array";
	case JSON_STRING:
		s = number_literal(j);
		if (!s)
			return "string";
		return json_is_int(j) || !strpbrk(s, ".eE") ? "integer" : "number";
	case JSON_INTEGER: return "integer";
	case JSON_REAL: return "number";
	case JSON_TRUE:
	case JSON_FALSE: return "boolean";
	case JSON_NULL: break;
	}
	return "null";
}

const json *json_get(const json *j, const char *key)
{
	const json *found = NULL;

	for (void *it = json_iter(j); it; it = json_iter_next(j, it))
		if (!strcasecmp(json_iter_key(it), key) && !json_is_null(json_iter_value(it)))
			found = json_iter_value(it);
	return found;
}

const json *json_get_exact(const json *j, const char *key)
{
	const json *found = json_object_get(j, key);

	return json_is_null(found) ? NULL : found;
}

const char *json_str(const json *j)
{
	return json_is_string(j) ? json_string_value(j) : NULL;
}

int64_t json_int(const json *j)
{
	int64_t value;

	return get_i64(j, &value) ? value : 0;
}

bool json_bool(const json *j)
{
	return j && json_typeof(j) == JSON_TRUE;
}

static int wrong_type(const char *key, const char *expected, const json *found, struct err *e)
{
	return err_set(e, ERR_INVALID_CONFIG, "invalid \"%s\": expected %s, found %s", key,
		expected, json_type_name(found));
}

int json_get_str(const json *j, const char *key, const char **out, struct err *e)
{
	const json *value = json_get(j, key);

	if (!value)
		return 0;
	if (!json_is_string(value))
		return wrong_type(key, "string", value, e);
	*out = json_string_value(value);
	return 0;
}

int json_get_bool(const json *j, const char *key, bool *out, struct err *e)
{
	const json *value = json_get(j, key);

	if (!value)
		return 0;
	if (!json_is_bool(value))
		return wrong_type(key, "boolean", value, e);
	*out = json_bool(value);
	return 0;
}

/* The number as it was written, for messages. */
static const char *number_text(const json *j, char space[static 24])
{
	const char *s = number_literal(j);

	if (s)
		return s;
	snprintf(space, 24, "%" PRId64, (int64_t)json_integer_value(j));
	return space;
}

static bool is_integer(const json *j)
{
	return !strcmp(json_type_name(j), "integer");
}

int json_get_int(
	const json *j, const char *key, int64_t min, int64_t max, int64_t *out, struct err *e)
{
	const json *value = json_get(j, key);
	int64_t number = 0;
	char text[24];

	if (!value)
		return 0;
	if (!get_i64(value, &number) && !is_integer(value))
		return wrong_type(key, "integer", value, e);
	if (!get_i64(value, &number) || number < min || number > max)
		return err_set(e, ERR_INVALID_CONFIG,
			"invalid \"%s\": %s is not between %" PRId64 " and %" PRId64, key,
			number_text(value, text), min, max);
	*out = number;
	return 0;
}

int json_get_u64(const json *j, const char *key, uint64_t max, uint64_t *out, struct err *e)
{
	const json *value = json_get(j, key);
	uint64_t number = 0;
	char text[24];

	if (!value)
		return 0;
	if (!get_u64(value, &number) && !is_integer(value))
		return wrong_type(key, "integer", value, e);
	if (!get_u64(value, &number) || number > max)
		return err_set(e, ERR_INVALID_CONFIG,
			"invalid \"%s\": %s is not between 0 and %" PRIu64, key,
			number_text(value, text), max);
	*out = number;
	return 0;
}

int json_get_object(const json *j, const char *key, const json **out, struct err *e)
{
	const json *value = json_get(j, key);

	if (!value)
		return 0;
	if (!json_is_object(value))
		return wrong_type(key, "object", value, e);
	*out = value;
	return 0;
}

int json_get_array(const json *j, const char *key, const json **out, struct err *e)
{
	const json *value = json_get(j, key);

	if (!value)
		return 0;
	if (!json_is_array(value))
		return wrong_type(key, "array", value, e);
	*out = value;
	return 0;
}

size_t json_len(const json *j)
{
	return json_array_size(j);
}

const json *json_at(const json *j, size_t i)
{
	return json_array_get(j, i);
}

void *json_iter(const json *j)
{
	return json_object_iter(mut(j));
}

void *json_iter_next(const json *j, void *it)
{
	return json_object_iter_next(mut(j), it);
}

const char *json_iter_key(void *it)
{
	return json_object_iter_key(it);
}

const json *json_iter_value(void *it)
{
	return json_object_iter_value(it);
}

json *json_new_object(void)
{
	seed();
	return json_object();
}

json *json_new_array(void)
{
	return json_array();
}

json *json_new_string(const char *s)
{
	json *j = json_string(s);
	size_t left = strlen(s);
	autobuf clean = {0};

	if (j)
		return j;
	while (left) {
		size_t n = utf8_len(s, left);

		buf_put(&clean, n ? s : "\xef\xbf\xbd", n ? n : 3);
		s += n ? n : 1;
		left -= n ? n : 1;
	}
	return clean.failed || !clean.data ? NULL : json_string(clean.data);
}

json *json_new_int(int64_t v)
{
	return json_integer(v);
}

json *json_new_bool(bool v)
{
	return json_boolean(v);
}

int json_set(json *object, const char *key, json *value)
{
	return json_object_set_new(object, key, value);
}

int json_append(json *array, json *value)
{
	return json_array_append_new(array, value);
}

void json_del(json *object, const char *key)
{
	const char *name;
	json *value;
	void *next;

	json_object_foreach_safe(object, next, name, value)
	{
		if (!strcasecmp(name, key))
			json_object_del(object, name);
	}
}

json *json_dup(const json *j)
{
	return json_copy(mut(j));
}
