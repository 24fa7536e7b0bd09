/* A network's file, and what each of its plugins would be given. The first byte says whether it is
 * one plugin's; up to the first line feed come the capability arguments. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "runtime/conflist.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data + 1, '\n', size - 1) : NULL;
	struct plugin_input in = {0};
	autolist l = {0}, again = {0};
	autojson *caps = NULL;
	autoerr e = {0}, f = {0};
	int ret;

	if (!end)
		return 0;
	caps = json_parse((const char *)data + 1, (size_t)(end - data) - 1, ERR_DECODE, &f);
	in.capability_args = json_is_object(caps) ? caps : NULL;
	end++;
	ret = conflist_parse(
		&l, (const char *)end, size - (size_t)(end - data), data[0] & 1, NULL, &e);
	MUST(!ret == !e.set);
	if (ret)
		return 0;
	MUST(l.len && l.name && l.version);
	for (size_t i = 0; i < l.len; i++) {
		autobuf text = {0};
		autojson *doc = NULL;
		autoerr g = {0};

		MUST(l.plugins[i].type);
		if (conflist_stdin(&l, i, &in, NULL, &text, &g))
			continue;
		doc = json_parse(text.data, text.len, ERR_DECODE, &g);
		MUST(json_is_object(doc) && json_str(json_get(doc, "name")));
	}
	/* What the cache keeps reads as the same list. */
	err_clear(&f);
	if (!conflist_parse(&again, l.bytes, l.bytes_len, false, NULL, &f))
		MUST(again.len == l.len && !strcmp(again.name, l.name));
	else
		MUST(l.bytes_len == 0 || f.set);
	return 0;
}
