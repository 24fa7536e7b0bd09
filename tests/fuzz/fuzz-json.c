/* Any text: parsing must survive it, and what was written must read back as the same. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "json/json.h"

#include <string.h>

/* Asks everything of every node. */
static void look_at(const json *j)
{
	autoerr e = {0}, f = {0};
	int64_t i = 0;
	uint64_t u = 0;

	json_str(j);
	json_bool(j);
	MUST(!json_is_int(j) || !strcmp(json_type_name(j), "integer"));
	for (size_t k = 0; k < json_len(j); k++)
		look_at(json_at(j, k));
	for (void *it = json_iter(j); it; it = json_iter_next(j, it)) {
		const char *key = json_iter_key(it);

		MUST(json_get_exact(j, key) || json_is_null(json_iter_value(it)));
		if (!json_get_int(j, key, -5, 1000, &i, &e))
			MUST(i >= -5 && i <= 1000);
		json_get_u64(j, key, UINT64_MAX, &u, &f);
		look_at(json_iter_value(it));
	}
}

static void check_style(const json *j, enum json_style style)
{
	autobuf first = {0}, second = {0};
	autoerr e = {0};
	autojson *again = NULL;

	json_write(&first, j, style);
	if (first.len > JSON_MAX_SIZE)
		return;
	again = json_parse(first.data, first.len, ERR_DECODE, &e);
	MUST(again);
	json_write(&second, again, style);
	MUST(first.len == second.len && !memcmp(first.data, second.data, first.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autoerr e = {0};
	autojson *j = json_parse((const char *)data, size, ERR_DECODE, &e);
	autobuf text = {0};

	MUST(!j == e.set);
	if (j) {
		autofree char *copy = strndup((const char *)data, size), *twice = NULL;

		twice = json_duplicate_key(copy, "x");
		look_at(j);
		for (enum json_style style = JSON_COMPACT; style <= JSON_INDENT_SORTED; style++)
			check_style(j, style);
		return 0;
	}
	/* An error message can quote anything, and still makes a string. */
	json_write_string(&text, e.msg);
	err_clear(&e);
	j = json_parse(text.data, text.len, ERR_DECODE, &e);
	MUST(j && json_is_string(j));
	return 0;
}
