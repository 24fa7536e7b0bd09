#include "json/keys.h"

static int read_key(const json *object, const struct json_key *k, void *to, struct err *e)
{
	switch (k->type) {
	case JSON_IS_BOOL: return json_get_bool(object, k->name, to, e);
	case JSON_IS_INT: return json_get_int(object, k->name, k->min, k->max, to, e);
	case JSON_IS_U64: return json_get_u64(object, k->name, UINT64_MAX, to, e);
	case JSON_IS_STR: return json_get_str(object, k->name, to, e);
	case JSON_IS_OBJECT: return json_get_object(object, k->name, to, e);
	case JSON_IS_ARRAY: return json_get_array(object, k->name, to, e);
	default: return 0;
	}
}

int json_read_keys(const json *object, const struct json_key *table, void *out, struct err *e)
{
	for (const struct json_key *k = table; k->type != JSON_KEYS_LAST; k++)
		if (read_key(object, k, (char *)out + k->offset, e))
			return -1;
	return 0;
}
