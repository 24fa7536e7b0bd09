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

	*set = (struct valid_set){0};
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
