/* A result document in any version (the first byte chooses one for a document without label),
 * turned into each version. What is printed must be readable and print the same again. */
#include "fuzz.h"

#include "result/result.h"

#include <string.h>

static void check_version(const struct result *r, const char *version)
{
	autobuf first = {0}, second = {0};
	autoresult converted = {0};
	autoerr e = {0};

	MUST(!result_copy(&converted, r, &e));
	if (result_write(r, version, &first, &e) < 0) {
		MUST(e.set);
		return;
	}
	MUST(!result_convert(&converted, version, &e));
	MUST(!result_write(&converted, version, &second, &e));
	MUST(first.len == second.len && !memcmp(first.data, second.data, first.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct result r = {0}, prev = {0};
	autoerr e = {0}, f = {0};
	autojson *doc = NULL;
	const char *version;

	if (!size)
		return 0;
	version = cni_versions[data[0] % cni_versions_len];
	doc = json_parse((const char *)data + 1, size - 1, ERR_DECODE, &e);
	if (!doc)
		return 0;
	if (!result_read_prev(&prev, doc, version, &f))
		check_version(&prev, version);
	result_free(&prev);
	if (!result_read(&r, doc, version, ERR_DECODE, &e))
		for (size_t i = 0; i < cni_versions_len; i++)
			check_version(&r, cni_versions[i]);
	result_free(&r);
	return 0;
}
