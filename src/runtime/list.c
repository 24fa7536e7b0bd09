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
	const struct call *call, const char *version, struct result *r, struct err *e)
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
	ret = plugin_exec(&run, &out, &len, NULL, e);
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

/* *called (may be NULL): it got as far as the plugin. */
static int call_plugin(const struct conflist *l, size_t i, enum verb verb, const struct attach *a,
	const struct plugin_input *in, struct result *r, bool *called, struct err *e)
{
	const char *type = l->plugins[i].type;
	const struct applet *applet = NULL;
	autofree char *file = NULL;
	autobuf text = {0};
	struct call call;
	bool self = false;

	if (called)
		*called = false;
	if (plugin_find(a->path, type, &file, &self, e) || conflist_stdin(l, i, in, &text, e))
		return -1;
	if (called)
		*called = true;
	if (self)
		applet = applet_find(type);
	call = as_call(a, verb, &text);
	return applet && applet_is_plugin(applet) ? inside(applet, &call, l->version, r, e)
						  : outside(file, type, a, &call, l->version, r, e);
}

/* libcni's words around a plugin's error. The name is only there when the plugin's own object has
 * one. */
static int wrap(const struct conflist *l, size_t i, const char *verb, struct err *e)
{
	const char *name = json_str(json_get(l->plugins[i].conf, "name"));

	if (name && *name)
		return err_wrap(e, "plugin type=\"%s\" name=\"%s\" failed (%s)", l->plugins[i].type,
			name, verb);
	return err_wrap(e, "plugin type=\"%s\" failed (%s)", l->plugins[i].type, verb);
}

/* DEL in reverse. Whether a plugin that was never called has objections is of no interest. */
static int del_plugins(const struct conflist *l, const struct attach *a,
	const struct plugin_input *in, size_t called, struct err *e)
{
	for (size_t i = l->len; i-- > 0;) {
		autoerr one = {0};

		if (call_plugin(l, i, VERB_DEL, a, in, NULL, NULL, &one) && i < called) {
			wrap(l, i, "delete", &one);
			err_merge(e, &one);
		}
	}
	return e->set ? -1 : 0;
}

int list_add(const struct conflist *l, const struct attach *a, struct result *r, bool *clean,
	struct err *e)
{
	struct result prev = {0};

	*r = (struct result){0};
	*clean = true;
	for (size_t i = 0; i < l->len; i++) {
		struct plugin_input in = {.prev = i ? &prev : NULL, .capability_args = a->cap_args};
		const struct plugin_input none = {.capability_args = a->cap_args};
		struct result next = {0};
		bool called;
		int ret = call_plugin(l, i, VERB_ADD, a, &in, &next, &called, e);
		autoerr ignored = {0};

		result_free(&prev);
		prev = next;
		if (!ret)
			continue;
		wrap(l, i, "add", e);
		/* The plugins' DELs need no result, and which one got how far only they know. */
		*clean = !del_plugins(l, a, &none, i + called, &ignored);
		return -1;
	}
	*r = prev;
	return 0;
}

int list_del(
	const struct conflist *l, const struct attach *a, const struct result *prev, struct err *e)
{
	struct plugin_input in = {.prev = prev, .capability_args = a->cap_args};
	int cmp = 0;

	if (cni_version_cmp(l->version, "0.4.0", &cmp, e))
		return -1;
	if (cmp < 0)
		in.prev = NULL;
	return del_plugins(l, a, &in, l->len, e);
}

int list_check(
	const struct conflist *l, const struct attach *a, const struct result *prev, struct err *e)
{
	struct plugin_input in = {.prev = prev, .capability_args = a->cap_args};

	for (size_t i = 0; i < l->len; i++)
		if (call_plugin(l, i, VERB_CHECK, a, &in, NULL, NULL, e))
			return -1;
	return 0;
}

int list_gc(
	const struct conflist *l, const struct attach *a, const json *attachments, struct err *e)
{
	struct plugin_input in = {.attachments = attachments};

	for (size_t i = 0; i < l->len; i++) {
		autoerr one = {0};

		if (call_plugin(l, i, VERB_GC, a, &in, NULL, NULL, &one)) {
			err_wrap(&one, "failed to GC plugin %s", l->plugins[i].type);
			err_merge(e, &one);
		}
	}
	return e->set ? -1 : 0;
}

int list_status(const struct conflist *l, const struct attach *a, struct err *e)
{
	struct plugin_input in = {0};

	for (size_t i = 0; i < l->len; i++)
		if (call_plugin(l, i, VERB_STATUS, a, &in, NULL, NULL, e))
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
	bool self = false, listed = false;
	autobuf reply = {0};

	if (plugin_find(a->path, type, &file, &self, e))
		return -1;
	applet = self ? applet_find(type) : NULL;
	if (applet && applet_is_plugin(applet))
		write_versions(applet, &reply);
	else if (ask_version(file, type, a, &reply, e))
		return -1;
	if (read_versions(reply.data ? reply.data : "", reply.len, wanted, &listed, out, e))
		return -1;
	return listed ? 0
		      : err_set(e, ERR_INCOMPATIBLE_VERSION,
				"plugin %s does not support config version \"%s\"", type, wanted);
}
