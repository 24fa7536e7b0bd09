/* Thin, checked access to JSON documents. Outside src/json/ and src/result/ nobody sees the library
 * behind it: a document or a part of one is a `const json *`.
 *
 * Keys are matched as the Go plugins match them (containerd depends on it): ASCII case is folded,
 * the last matching key of the document wins. null counts as absent: after a plain value of the
 * same key it changes nothing, after an array or an object it takes that back. Where the exact
 * spelling matters (free-form maps, top-level keys of a network list) use the _exact form.
 *
 * Strings are read as Go reads them: bytes that are not UTF-8 and halves of surrogate pairs become
 * U+FFFD. A NUL character (\u0000) is legal in keys and values that nobody reads; a value with one
 * is not a string to those who want one, since it would be cut there.
 *
 * A number is kept as it was written, whatever its size or precision; a look-up as an integer asks
 * whether it is one and fits. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t;
typedef struct json_t json;

/* Limits of a document: larger or deeper ones are refused. The depth is that of Go. A container
 * nested in more than a hundred others is kept as text, written back compact: nobody can look into
 * it. */
#define JSON_MAX_SIZE  (16u << 20)
#define JSON_MAX_DEPTH 10000

/* Parses one document of any type; anything but white space behind it is an error, as is a breach
 * of the limits. Owned by the caller: json_free(). Returns NULL and sets e (code) on failure. */
json *json_parse(const char *text, size_t len, int code, struct err *e);
void json_free(json *j);
#define autojson __attribute__((cleanup(json_freep))) json
void json_freep(json **j);

/* The first key that occurs twice in the object `key` (folded) of the document text, or NULL when
 * there is none, or no memory. A tree cannot tell: it has the last of equal keys only. The text is
 * one that json_parse() took. Owned by the caller. */
char *json_duplicate_key(const char *text, const char *key);

/* Another reference to the same node; release it with json_free(). */
json *json_ref(const json *j);

/* Of what type a node is; NULL is of none. An integer is any number that fits int64_t. */
bool json_is_object(const json *j);
bool json_is_array(const json *j);
bool json_is_string(const json *j);
bool json_is_bool(const json *j);
bool json_is_int(const json *j);
bool json_is_null(const json *j);

/* "object", "array", "string", "integer", "number", "boolean", "null"; for messages. */
const char *json_type_name(const json *j);

/* The value of a key; NULL when absent or null, or when j is not an object. Borrowed. */
const json *json_get(const json *j, const char *key);
const json *json_get_exact(const json *j, const char *key);

/* Borrowed string of a string node, else NULL. */
const char *json_str(const json *j);
/* The same for texts that are only passed on: a NUL character in one is the bytes C0 80, which no
 * other text contains. */
const char *json_text(const json *j);
/* Value of an integer node (an integral float counts), else 0; of a boolean, else false. */
int64_t json_int(const json *j);
bool json_bool(const json *j);

/* Typed look-ups (folded keys). Absent or null: *out stays as it is and 0 is returned. Wrong type:
 * e is set with ERR_INVALID_CONFIG, naming the key, the expected and the found type; -1. An
 * integral float is an integer. Strings and nodes are borrowed from j. */
int json_get_str(const json *j, const char *key, const char **out, struct err *e);
int json_get_text(const json *j, const char *key, const char **out, struct err *e);
int json_get_bool(const json *j, const char *key, bool *out, struct err *e);
int json_get_int(
	const json *j, const char *key, int64_t min, int64_t max, int64_t *out, struct err *e);
/* The same for values up to 2^64 - 1, which json_int() cannot hold (rates in bits per second). */
int json_get_u64(const json *j, const char *key, uint64_t max, uint64_t *out, struct err *e);
int json_get_object(const json *j, const char *key, const json **out, struct err *e);
int json_get_array(const json *j, const char *key, const json **out, struct err *e);

/* Arrays: 0 / NULL for anything else. Borrowed. */
size_t json_len(const json *j);
const json *json_at(const json *j, size_t i);

/* Objects in document order: for (void *it = json_iter(j); it; it = json_iter_next(j, it)). */
void *json_iter(const json *j);
void *json_iter_next(const json *j, void *it);
const char *json_iter_key(void *it);
const json *json_iter_value(void *it);

/* Builders, for the documents we write. Setting steals the reference to the value (also on
 * failure); a NULL value or out of memory makes them return -1. Bytes of a string that are not
 * UTF-8 become U+FFFD. */
json *json_new_object(void);
json *json_new_array(void);
json *json_new_string(const char *s);
/* A text as json_text() gives it: NUL characters included. */
json *json_new_text(const char *s);
/* Whether a text is UTF-8 (RFC 3629) and goes into a string as it is. */
bool json_is_utf8(const char *s);
json *json_new_int(int64_t v);
json *json_new_bool(bool v);
int json_set(json *object, const char *key, json *value);
int json_append(json *array, json *value);
/* Removes a key, every case variant of it. */
void json_del(json *object, const char *key);
/* A copy that shares the members: setting keys of the copy leaves the original alone. */
json *json_dup(const json *j);

enum json_style {
	JSON_COMPACT,        /* one line, keys in document order */
	JSON_COMPACT_SORTED, /* one line, keys sorted bytewise */
	JSON_INDENT,         /* 4 spaces, keys in document order */
	JSON_INDENT_SORTED,
};

/* Appends the document as the Go encoder writes it: <, >, &, U+2028 and U+2029 escaped as \uXXXX,
 * no trailing newline. Out of memory shows in out->failed. */
void json_write(struct buf *out, const json *j, enum json_style style);

/* Appends a string literal, quoted and escaped the same way. */
void json_write_string(struct buf *out, const char *s);
