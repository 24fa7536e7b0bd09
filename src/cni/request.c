#include "cni/request.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

static const char *const verbs[] = {
	[VERB_ADD] = "ADD",
	[VERB_DEL] = "DEL",
	[VERB_CHECK] = "CHECK",
	[VERB_GC] = "GC",
	[VERB_STATUS] = "STATUS",
	[VERB_VERSION] = "VERSION",
};

const char *verb_name(enum verb v)
{
	return verbs[v];
}

bool verb_parse(const char *text, enum verb *out)
{
	for (size_t i = 0; i < array_len(verbs); i++) {
		if (strcmp(text, verbs[i]) != 0)
			continue;
		*out = (enum verb)i;
		return true;
	}
	return false;
}

bool name_valid(const char *name)
{
	static const char rest[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	return *name && strspn(name, rest) == strlen(name) && !strchr("_.-", *name);
}

/* White space in the sense of Unicode, at the start of s: its length in bytes, or 0. */
static size_t white_space(const char *s)
{
	static const char *const wide[] = {
		"\xc2\x85",
		"\xc2\xa0",
		"\xe1\x9a\x80",
		"\xe2\x80\x80",
		"\xe2\x80\x81",
		"\xe2\x80\x82",
		"\xe2\x80\x83",
		"\xe2\x80\x84",
		"\xe2\x80\x85",
		"\xe2\x80\x86",
		"\xe2\x80\x87",
		"\xe2\x80\x88",
		"\xe2\x80\x89",
		"\xe2\x80\x8a",
		"\xe2\x80\xa8",
		"\xe2\x80\xa9",
		"\xe2\x80\xaf",
		"\xe2\x81\x9f",
		"\xe3\x80\x80",
	};

	if (*s == ' ' || (*s >= '\t' && *s <= '\r'))
		return 1;
	for (size_t i = 0; i < array_len(wide); i++)
		if (!strncmp(s, wide[i], strlen(wide[i])))
			return strlen(wide[i]);
	return 0;
}

const char *ifname_invalid(const char *name, const char **details)
{
	bool odd;

	*details = NULL;
	if (!*name)
		return "interface name is empty";
	if (strlen(name) > 15) {
		*details = "interface name should be less than 16 characters";
		return "interface name is too long";
	}
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return "interface name is . or ..";
	for (const char *s = name; *s; s++)
		if (*s == '/' || *s == ':' || white_space(s))
			return "interface name contains / or : or whitespace characters";
	odd = !json_is_utf8(name);
	/* Such a name could be put neither into a lease nor into JSON and be found again. */
	for (const char *s = name; *s; s++)
		odd |= (unsigned char)*s < ' ' || *s == 0x7f;
	return odd ? "interface name contains control characters or is not UTF-8" : NULL;
}

int request_prev_result(const struct request *req, struct result *r, bool *present,
	const char *required, struct err *e)
{
	const json *doc = NULL;

	*r = (struct result){0};
	*present = false;
	if (json_get_object(req->conf, "prevResult", &doc, e))
		return err_wrap(e, "could not parse prevResult");
	if (!doc)
		return required ? err_set(e, ERR_INVALID_CONFIG, "%s", required) : 0;
	if (result_read_prev(r, doc, req->version, e))
		return -1;
	*present = true;
	return 0;
}

int request_runtime_config(const struct request *req, const json **out, struct err *e)
{
	*out = NULL;
	return json_get_object(req->conf, "runtimeConfig", out, e);
}

int request_args_cni(const struct request *req, const json **out, struct err *e)
{
	const json *args = NULL;

	*out = NULL;
	if (json_get_object(req->conf, "args", &args, e))
		return -1;
	return args ? json_get_object(args, "cni", out, e) : 0;
}

/* ---- CNI_ARGS ---- */

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

/* ---- the valid set of a GC ---- */

static int read_attachment(const json *item, struct attachment *out, struct err *e)
{
	out->id = out->ifname = NULL;
	if (!json_is_object(item))
		return err_set(e, ERR_INVALID_CONFIG, "invalid attachment: expected object, got %s",
			json_type_name(item));
	if (json_get_str(item, "containerID", &out->id, e) ||
		json_get_str(item, "ifname", &out->ifname, e))
		return -1;
	/* What cannot be told apart must not be deleted by mistake. */
	if (!out->id || !out->ifname)
		return err_set(e, ERR_INVALID_CONFIG,
			"invalid attachment: containerID and ifname are both required");
	return 0;
}

static int by_hash(const void *a, const void *b)
{
	return strcmp(((const struct owner *)a)->hash, ((const struct owner *)b)->hash);
}

int request_valid_set(const struct request *req, struct valid_set *set, struct err *e)
{
	const json *list = NULL;
	size_t n;

	*set = (struct valid_set){.network = req->network};
	if (json_get_array(req->conf, "cni.dev/valid-attachments", &list, e))
		return -1;
	if (!list && json_get_array(req->conf, "cni.dev/attachments", &list, e))
		return -1;
	n = json_len(list);
	if (!n)
		return 0;
	set->list = calloc(n, sizeof(*set->list));
	set->owners = calloc(n, sizeof(*set->owners));
	if (!set->list || !set->owners) {
		valid_set_free(set);
		return err_memory(e);
	}
	for (; set->len < n; set->len++) {
		struct attachment *a = &set->list[set->len];

		if (read_attachment(json_at(list, set->len), a, e)) {
			valid_set_free(set);
			return -1;
		}
		owner_init(&set->owners[set->len], req->network, a->id, a->ifname);
	}
	qsort(set->owners, n, sizeof(*set->owners), by_hash);
	return 0;
}

void valid_set_free(struct valid_set *set)
{
	free(set->list);
	free(set->owners);
	*set = (struct valid_set){0};
}

bool valid_set_has(const struct valid_set *set, const char *id, const char *ifname)
{
	struct owner o;

	owner_init(&o, set->network, id, ifname);
	return valid_set_has_hash(set, o.hash);
}

bool valid_set_has_id(const struct valid_set *set, const char *id)
{
	for (size_t i = 0; i < set->len; i++)
		if (!strcmp(set->list[i].id, id))
			return true;
	return false;
}

static int against_hash(const void *key, const void *member)
{
	return strcmp(key, ((const struct owner *)member)->hash);
}

bool valid_set_has_hash(const struct valid_set *set, const char *hash)
{
	return set->len && bsearch(hash, set->owners, set->len, sizeof(*set->owners), against_hash);
}
