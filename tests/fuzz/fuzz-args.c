/* CNI_ARGS as the plugins read it. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "cni/args.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const known[] = {"IP", "MAC", "GATEWAY", NULL};
	autofree char *text = strndup((const char *)data, size);
	struct request req = {.args = text};
	char *values[3] = {NULL};
	autoerr e = {0};
	int ret;

	MUST(text);
	ret = request_cni_args(&req, known, values, &e);
	MUST(!ret == !e.set);
	for (size_t i = 0; i < array_len(values); i++) {
		/* A value is a part of what came in. */
		MUST(!values[i] || strstr(text, values[i]));
		free(values[i]);
	}
	return 0;
}
