#include "json/internal.h"

#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

static json *mut(const json *j)
{
	return (json *)(uintptr_t)j;
}

/* The library's hash tables want a secret; left alone it opens /dev/urandom for it. It takes the
 * first one that it is given: a setting of the process, which has one thread. */
static void seed(void)
{
	const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
	unsigned int value;

	if (!random)
		return;
	memcpy(&value, random, sizeof(value));
	json_object_seed(value);
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
	return json_text(j) && !strstr(json_text(j), NUL_CHARACTER);
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
		s = literal(j);
		if (!s)
			return json_is_string(j) ? "string" : "string with a NUL character";
		if (!number_literal(j))
			return *s == '{' ? "object" : "array";
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

	for (void *it = json_iter(j); it; it = json_iter_next(j, it)) {
		const json *value = json_iter_value(it);

		if (strcasecmp(json_iter_key(it), key) != 0)
			continue;
		if (!json_is_null(value))
			found = value;
		else if (json_is_object(found) || json_is_array(found))
			found = NULL;
	}
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

const char *json_text(const json *j)
{
	return j && json_typeof(j) == JSON_STRING && !literal(j) ? json_string_value(j) : NULL;
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

int json_get_text(const json *j, const char *key, const char **out, struct err *e)
{
	const json *value = json_get(j, key);

	if (!value)
		return 0;
	if (!json_text(value))
		return wrong_type(key, "string", value, e);
	*out = json_text(value);
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

json *json_new_text(const char *s)
{
	return strstr(s, NUL_CHARACTER) ? json_stringn_nocheck(s, strlen(s)) : json_new_string(s);
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
	return json_object_set_new_nocheck(object, key, value);
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
