#include "cni/args.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <string.h>
#include <strings.h>

static int parse_bool(const char *value, bool *out)
{
	if (!strcmp(value, "1") || !strcasecmp(value, "true"))
		*out = true;
	else if (!strcmp(value, "0") || !strcasecmp(value, "false"))
		*out = false;
	else
		return -1;
	return 0;
}

struct cni_args {
	const char *const *known;
	char **values;
	bool ignore_unknown;
	struct buf unknown;
};

static int take_pair(struct cni_args *a, char *pair, struct err *e)
{
	char *eq = strchr(pair, '=');

	if (!eq || strchr(eq + 1, '='))
		return err_set(e, ERR_INVALID_ENVIRONMENT, "ARGS: invalid pair \"%s\"", pair);
	*eq = '\0';
	if (!strcmp(pair, "IgnoreUnknown")) {
		if (parse_bool(eq + 1, &a->ignore_unknown))
			return err_set(e, ERR_INVALID_ENVIRONMENT,
				"ARGS: error parsing value of pair \"IgnoreUnknown=%s\": "
				"boolean unmarshal error: invalid input %s",
				eq + 1, eq + 1);
		return 0;
	}
	for (size_t i = 0; a->known[i]; i++) {
		if (strcmp(pair, a->known[i]) != 0)
			continue;
		free(a->values[i]);
		a->values[i] = strdup(eq + 1);
		return a->values[i] ? 0 : err_memory(e);
	}
	buf_printf(&a->unknown, "%s\"%s=%s\"", a->unknown.len ? " " : "", pair, eq + 1);
	return 0;
}

int request_cni_args(
	const struct request *req, const char *const *known, char **values, struct err *e)
{
	struct cni_args a = {known, values, false, {0}};
	autofree char *text = strdup(req->args);
	char *next = text;
	int ret = 0;

	if (!text)
		return err_memory(e);
	for (size_t i = 0; known[i]; i++)
		values[i] = NULL;
	while (!ret && *req->args && next) {
		char *pair = next;

		next = strchr(next, ';');
		if (next)
			*next++ = '\0';
		ret = take_pair(&a, pair, e);
	}
	if (!ret && a.unknown.len && !a.ignore_unknown)
		ret = err_set(
			e, ERR_INVALID_ENVIRONMENT, "ARGS: unknown args [%s]", a.unknown.data);
	buf_free(&a.unknown);
	for (size_t i = 0; ret && known[i]; i++) {
		free(values[i]);
		values[i] = NULL;
	}
	return ret;
}
