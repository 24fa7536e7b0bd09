#include "runtime/list.h"

#include "base/cleanup.h"
#include "base/trace.h"
#include "cni/exec.h"
#include "cni/run.h"

#include <stdio.h>
#include <string.h>

static struct call as_call(const struct attach *a, enum verb verb, const struct buf *text)
{
	/* GC and STATUS are about no attachment. */
	bool attachment = verb == VERB_ADD || verb == VERB_DEL || verb == VERB_CHECK;

	return (struct call){
		.command = verb_name(verb),
		.id = attachment ? a->id : "",
		.netns = attachment ? a->netns : "",
		.ifname = attachment ? a->ifname : "",
		.args = attachment ? a->args : "",
		.path = a->path,
		.text = text ? text->data : "",
		.len = text ? text->len : 0,
	};
}

/* In this process, with the result brought to the list's version as printing would. */
static int inside(const struct applet *applet, const struct call *call, const char *version,
	struct result *r, struct err *e)
{
	struct outcome out;
	int ret = call_applet(applet, call, &out, e);

	if (!ret && r)
		ret = result_convert(&out.reply.result, version, e);
	if (ret)
		undo_run(&out.reply.undo);
	if (!ret && r) {
		*r = out.reply.result;
		out.reply.result = (struct result){0};
	}
	outcome_free(&out);
	return ret;
}

static int outside(const char *file, const char *type, const struct attach *a,
	const struct call *call, const char *version, struct result *r, enum plugin_end *end,
	struct err *e)
{
	autofree char **env = plugin_env(call, true);
	struct plugin_run run = {
		.file = file,
		.type = type,
		.envp = env,
		.text = call->text,
		.len = call->len,
		.timeout = a->timeout,
	};
	uint64_t start = trace_start();
	autofree char *out = NULL;
	size_t len = 0;
	int ret;

	if (!env)
		return err_memory(e);
	ret = plugin_exec(&run, &out, &len, end, e);
	trace_step(start, TRACE_DELEGATE, ret, "exec %s %s", file, call->command);
	if (ret || !r)
		return ret;
	if (!len)
		return err_set(e, ERR_DECODE, "plugin \"%s\" printed no result", type);
	if (plugin_result(out, len, version, r, e))
		return -1;
	if (result_convert(r, version, e)) {
		result_free(r);
		return -1;
	}
	return 0;
}

static int call_plugin(const struct conflist *l, size_t i, enum verb verb, const struct attach *a,
	const struct plugin_input *in, struct result *r, enum plugin_end *end, struct err *e)
{
	const char *type = l->plugins[i].type;
	const struct applet *applet;
	autofree char *file = NULL;
	autobuf text = {0};
	struct call call;
	int ret;

	*end = PLUGIN_NOT_CALLED;
	if (plugin_find(a->path, type, &file, &applet, e) ||
		conflist_stdin(l, i, in, a->remarks, &text, e))
		return -1;
	call = as_call(a, verb, &text);
	if (!applet)
		return outside(file, type, a, &call, l->version, r, end, e);
	ret = inside(applet, &call, l->version, r, e);
	*end = ret ? PLUGIN_REFUSED : PLUGIN_DONE;
	return ret;
}

/* libcni's words around a plugin's error. `name` is that of the plugin's own object in the list,
 * which seldom has one; the network's is not meant. */
static int wrap(const struct conflist *l, size_t i, const char *verb, struct err *e)
{
	const char *name = json_str(json_get(l->plugins[i].conf, "name"));

	if (name && *name)
		return err_wrap(e, "plugin type=\"%s\" name=\"%s\" failed (%s)", l->plugins[i].type,
			name, verb);
	return err_wrap(e, "plugin type=\"%s\" failed (%s)", l->plugins[i].type, verb);
}

/* DEL in reverse over the first n plugins. */
static int del_plugins(const struct conflist *l, const struct attach *a,
	const struct plugin_input *in, size_t n, struct err *e)
{
	while (n-- > 0) {
		enum plugin_end end;
		autoerr one = {0};

		if (call_plugin(l, n, VERB_DEL, a, in, NULL, &end, &one)) {
			wrap(l, n, "delete", &one);
			err_merge(e, &one);
		}
	}
	return e->set ? -1 : 0;
}

/* DEL ignores prevResult where the version does not know it. */
static int input_of_del(const struct conflist *l, const struct attach *a, const struct result *prev,
	struct plugin_input *in, struct err *e)
{
	int cmp = 0;

	*in = (struct plugin_input){.capability_args = a->cap_args};
	if (cni_version_cmp(l->version, "0.4.0", &cmp, e))
		return -1;
	if (cmp >= 0)
		in->prev = prev;
	return 0;
}

/* After plugin i failed, which came as far as `end`; true when nothing can be left. */
static bool roll_back(const struct conflist *l, const struct attach *a, size_t i,
	enum plugin_end end, bool occupied, const struct result *prev)
{
	bool spare = occupied && (end == PLUGIN_REFUSED || end == PLUGIN_CRASHED);
	size_t n = end == PLUGIN_NOT_CALLED || spare ? i : i + 1;
	struct plugin_input in;
	autoerr ignored = {0};

	if (input_of_del(l, a, prev, &in, &ignored) || del_plugins(l, a, &in, n, &ignored))
		return false;
	return !(spare && end == PLUGIN_CRASHED);
}

int list_add(const struct conflist *l, const struct attach *a, bool occupied, struct result *r,
	bool *clean, struct err *e)
{
	autoresult prev = {0};

	*r = (struct result){0};
	*clean = true;
	for (size_t i = 0; i < l->len; i++) {
		struct plugin_input in = {.prev = i ? &prev : NULL, .capability_args = a->cap_args};
		struct result next = {0};
		enum plugin_end end;

		if (call_plugin(l, i, VERB_ADD, a, &in, &next, &end, e)) {
			wrap(l, i, "add", e);
			*clean = roll_back(l, a, i, end, occupied, in.prev);
			return -1;
		}
		result_free(&prev);
		prev = next;
	}
	*r = prev;
	prev = (struct result){0};
	return 0;
}

int list_del(
	const struct conflist *l, const struct attach *a, const struct result *prev, struct err *e)
{
	struct plugin_input in;

	return input_of_del(l, a, prev, &in, e) ? -1 : del_plugins(l, a, &in, l->len, e);
}

int list_check(
	const struct conflist *l, const struct attach *a, const struct result *prev, struct err *e)
{
	struct plugin_input in = {.prev = prev, .capability_args = a->cap_args};
	enum plugin_end end;

	for (size_t i = 0; i < l->len; i++)
		if (call_plugin(l, i, VERB_CHECK, a, &in, NULL, &end, e))
			return -1;
	return 0;
}

int list_gc(
	const struct conflist *l, const struct attach *a, const json *attachments, struct err *e)
{
	struct plugin_input in = {.attachments = attachments};

	for (size_t i = 0; i < l->len; i++) {
		enum plugin_end end;
		autoerr one = {0};

		if (call_plugin(l, i, VERB_GC, a, &in, NULL, &end, &one)) {
			err_wrap(&one, "failed to GC plugin %s", l->plugins[i].type);
			err_merge(e, &one);
		}
	}
	return e->set ? -1 : 0;
}

int list_status(const struct conflist *l, const struct attach *a, struct err *e)
{
	struct plugin_input in = {0};
	enum plugin_end end;

	for (size_t i = 0; i < l->len; i++)
		if (call_plugin(l, i, VERB_STATUS, a, &in, NULL, &end, e))
			return -1;
	return 0;
}

/* ---- VERSION ---- */

static int ask_version(
	const char *file, const char *type, const struct attach *a, struct buf *out, struct err *e)
{
	static const char text[] = "{\"cniVersion\":\"" CNI_CURRENT "\"}";
	struct call call = {
		.command = "VERSION",
		.id = "",
		.netns = "dummy",
		.ifname = "dummy",
		.args = "",
		.path = "dummy",
		.text = text,
		.len = sizeof(text) - 1,
	};
	autofree char **env = plugin_env(&call, true);
	struct plugin_run run = {file, type, env, text, sizeof(text) - 1, a->timeout};
	autofree char *reply = NULL;
	size_t len = 0;

	if (!env)
		return err_memory(e);
	if (!plugin_exec(&run, &reply, &len, NULL, e)) {
		buf_put(out, reply, len);
		return 0;
	}
	/* What plugins said before there was a VERSION. */
	if (!e->msg || strcmp(e->msg, "unknown CNI_COMMAND: VERSION") != 0)
		return -1;
	err_clear(e);
	buf_puts(out, "{\"cniVersion\":\"0.1.0\",\"supportedVersions\":[\"0.1.0\"]}");
	return 0;
}

static int read_versions(const char *reply, size_t len, const char *wanted, bool *listed,
	struct buf *out, struct err *e)
{
	autojson *doc = json_parse(reply, len, ERR_DECODE, e);
	const json *list = json_get(doc, "supportedVersions");
	const char *version = json_str(json_get(doc, "cniVersion"));

	if (!doc)
		return err_wrap(e, "decoding version info");
	if (!version)
		return err_set(e, ERR_DECODE, "decoding version info: missing field cniVersion");
	if (!list && strcmp(version, "0.2.0") != 0)
		return err_set(
			e, ERR_DECODE, "decoding version info: missing field supportedVersions");
	if (!list) {
		*listed = !strcmp(wanted, "0.1.0") || !strcmp(wanted, "0.2.0");
		buf_puts(out, "0.1.0, 0.2.0");
		return 0;
	}
	for (size_t i = 0; i < json_len(list); i++) {
		const char *one = json_str(json_at(list, i));

		if (!one)
			return err_set(
				e, ERR_DECODE, "decoding version info: not a list of strings");
		buf_printf(out, "%s%s", i ? ", " : "", one);
		*listed = *listed || !strcmp(one, wanted);
	}
	return 0;
}

int list_version(const struct conflist *l, size_t plugin, const struct attach *a, struct buf *out,
	struct err *e)
{
	const char *type = l->plugins[plugin].type;
	const char *wanted = *l->version ? l->version : "0.1.0";
	const struct applet *applet;
	autofree char *file = NULL;
	bool listed = false;
	autobuf reply = {0};

	if (plugin_find(a->path, type, &file, &applet, e))
		return -1;
	if (applet)
		write_versions(applet, &reply);
	else if (ask_version(file, type, a, &reply, e))
		return -1;
	if (read_versions(reply.data ? reply.data : "", reply.len, wanted, &listed, out, e))
		return -1;
	return listed ? 0
		      : err_set(e, ERR_INCOMPATIBLE_VERSION,
				"plugin %s does not support config version \"%s\"", type, wanted);
}
