/* Tables of keys: what a JSON object may hold and where that goes. An applet's table is its manual,
 * its reader and, for lint and --help, the list of what it knows.
 *
 *	static const struct json_key keys[] = {
 *		JSON_KEY_STR(struct conf, "master", master),
 *		JSON_KEY_INT(struct conf, "mtu", mtu, 0, 65535),
 *		JSON_KEY_BOOL(struct conf, "linkInContainer", inside),
 *		JSON_KEY_KNOWN("ipam"),
 *		JSON_KEYS_END,
 *	};
 */
#pragma once

#include "json/json.h"

#include <stddef.h>

enum json_key_type {
	JSON_KEYS_LAST, /* ends a table */
	JSON_IS_BOOL,   /* bool */
	JSON_IS_INT,    /* int64_t, between min and max */
	JSON_IS_U64,    /* uint64_t, all of it */
	JSON_IS_STR,    /* const char *, borrowed */
	JSON_IS_OBJECT, /* const json *, borrowed */
	JSON_IS_ARRAY,  /* const json *, borrowed */
	JSON_IS_KNOWN,  /* read elsewhere, or not at all */
};

struct json_key {
	const char *name;
	enum json_key_type type;
	size_t offset; /* of the member that receives the value */
	int64_t min, max;
};

#define JSON_KEY_BOOL(type, name, member)                                                          \
	{                                                                                          \
		name, JSON_IS_BOOL, offsetof(type, member), 0, 0                                   \
	}
#define JSON_KEY_STR(type, name, member)                                                           \
	{                                                                                          \
		name, JSON_IS_STR, offsetof(type, member), 0, 0                                    \
	}
#define JSON_KEY_OBJECT(type, name, member)                                                        \
	{                                                                                          \
		name, JSON_IS_OBJECT, offsetof(type, member), 0, 0                                 \
	}
#define JSON_KEY_ARRAY(type, name, member)                                                         \
	{                                                                                          \
		name, JSON_IS_ARRAY, offsetof(type, member), 0, 0                                  \
	}
#define JSON_KEY_INT(type, name, member, min, max)                                                 \
	{                                                                                          \
		name, JSON_IS_INT, offsetof(type, member), min, max                                \
	}
#define JSON_KEY_U64(type, name, member)                                                           \
	{                                                                                          \
		name, JSON_IS_U64, offsetof(type, member), 0, 0                                    \
	}
#define JSON_KEY_KNOWN(name)                                                                       \
	{                                                                                          \
		name, JSON_IS_KNOWN, 0, 0, 0                                                       \
	}
#define JSON_KEYS_END                                                                              \
	{                                                                                          \
		NULL, JSON_KEYS_LAST, 0, 0, 0                                                      \
	}

/* Reads the table's keys of an object into the structure at `out`. What is absent or null leaves
 * its member as it is. A value of another type or out of its bounds: -1, e says which
 * (ERR_INVALID_CONFIG), as json_get_bool() and its like. Keys not in the table are left alone. */
int json_read_keys(const json *object, const struct json_key *table, void *out, struct err *e);
