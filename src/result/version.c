#include "result/shape.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const cni_versions[] = {
	"0.1.0",
	"0.2.0",
	"0.3.0",
	"0.3.1",
	"0.4.0",
	"1.0.0",
	CNI_CURRENT,
};
const size_t cni_versions_len = array_len(cni_versions);

static const enum cni_shape shapes[array_len(cni_versions)] = {
	SHAPE_A,
	SHAPE_A,
	SHAPE_B,
	SHAPE_B,
	SHAPE_B,
	SHAPE_C,
	SHAPE_C,
};

enum cni_shape cni_shape(const char *version)
{
	if (!*version)
		return SHAPE_A;
	for (size_t i = 0; i < cni_versions_len; i++)
		if (!strcmp(version, cni_versions[i]))
			return shapes[i];
	return SHAPE_NONE;
}

const char *cni_shape_versions(enum cni_shape shape)
{
	switch (shape) {
	case SHAPE_A: return "[ 0.1.0 0.2.0]";
	case SHAPE_B: return "[0.3.0 0.3.1 0.4.0]";
	case SHAPE_C: return "[1.0.0 1.1.0]";
	case SHAPE_NONE: break;
	}
	return "[]";
}

bool cni_version_known(const char *version)
{
	return cni_shape(version) != SHAPE_NONE;
}

/* One part as Go's strconv.Atoi takes it: sign and decimal digits, nothing else. */
static int parse_part(const char *text, const char *name, long *out, struct err *e)
{
	const char *digits = text + (*text == '+' || *text == '-');
	const char *reason = "invalid syntax";

	if (*digits && !digits[strspn(digits, "0123456789")]) {
		errno = 0;
		*out = strtol(text, NULL, 10);
		if (!errno)
			return 0;
		reason = "value out of range";
	}
	return err_set(e, ERR_DECODE,
		"failed to convert %s version part \"%s\": strconv.Atoi: parsing \"%s\": %s", name,
		text, text, reason);
}

static int parse(const char *version, long part[static 3], struct err *e)
{
	static const char *const names[] = {"major", "minor", "micro"};
	autofree char *copy = strdup(*version ? version : "0.1.0");
	char *rest = copy, *text[3];
	size_t n = 0;

	if (!copy)
		return err_memory(e);
	while (rest && n < 3)
		text[n++] = strsep(&rest, ".");
	if (rest)
		return err_set(e, ERR_DECODE, "invalid version \"%s\": too many parts", version);
	for (size_t i = 0; i < 3; i++) {
		part[i] = 0;
		if (i < n && parse_part(text[i], names[i], &part[i], e) < 0)
			return -1;
	}
	return 0;
}

int cni_version_cmp(const char *a, const char *b, int *cmp, struct err *e)
{
	long x[3], y[3];

	if (parse(a, x, e) < 0 || parse(b, y, e) < 0)
		return -1;
	*cmp = 0;
	for (int i = 0; i < 3 && !*cmp; i++)
		*cmp = (x[i] > y[i]) - (x[i] < y[i]);
	return 0;
}
