#include "cni/delegate.h"

#include "base/cleanup.h"
#include "base/trace.h"
#include "cni/exec.h"
#include "cni/run.h"

#include <string.h>

static struct call as_call(const struct request *req, enum verb verb)
{
	return (struct call){
		.command = verb_name(verb),
		.id = req->id,
		.netns = req->netns,
		.ifname = req->ifname,
		.args = req->args,
		.path = req->path,
		.text = req->text,
		.len = req->text_len,
		.caller = req,
	};
}

/* The applet to run in this process, or NULL: then *file is to be executed. */
static int look_up(const struct request *req, const char *type, const struct applet **applet,
	char **file, struct err *e)
{
	if (plugin_find(req->path, type, file, applet, e))
		return -1;
	for (const struct request *at = req; *applet && at; at = at->caller)
		if (at->applet == *applet)
			return err_set(e, ERR_INVALID_CONFIG,
				"plugin \"%s\" would call itself through its delegate", type);
	return 0;
}

bool delegate_is_own(const struct request *req, const char *type)
{
	const struct applet *applet = NULL;
	autofree char *file = NULL;
	autoerr ignored = {0};

	return !look_up(req, type, &applet, &file, &ignored) && applet;
}

static int execute(const struct request *req, const char *type, const char *file, enum verb verb,
	char **out, size_t *len, enum plugin_end *end, struct err *e)
{
	struct call call = as_call(req, verb);
	autofree char **env = plugin_env(&call, false);
	struct plugin_run run = {.file = file, .type = type, .envp = env};
	uint64_t start = trace_start();
	int ret;

	if (!env)
		return err_memory(e);
	run.text = req->text;
	run.len = req->text_len;
	ret = plugin_exec(&run, out, len, end, e);
	trace_step(start, TRACE_DELEGATE, ret, "exec %s %s", file, verb_name(verb));
	return ret;
}

/* ---- ADD ---- */

struct release {
	const struct request *req;
	char *type;
};

static void release_run(void *arg)
{
	struct release *r = arg;
	autoerr ignored = {0};

	delegate_call(r->req, r->type, VERB_DEL, &ignored);
}

static void release_free(void *arg)
{
	struct release *r = arg;

	free(r->type);
	free(r);
}

static int push_release(
	const struct request *req, const char *type, struct undo *undo, struct err *e)
{
	struct release *r = calloc(1, sizeof(*r));

	if (r)
		r->type = strdup(type);
	if (!r || !r->type) {
		autoerr ignored = {0};

		free(r);
		delegate_call(req, type, VERB_DEL, &ignored);
		return err_memory(e);
	}
	r->req = req;
	return undo_push(undo, release_run, release_free, r, e);
}

/* The outcome's result in the form in which it would have been printed. From here on the DEL of the
 * applet is the inverse of its ADD, as it is for an executed one. */
static int take_result(struct outcome *out, const char *version, struct result *r, struct err *e)
{
	if (result_convert(&out->reply.result, version, e)) {
		undo_run(&out->reply.undo);
		return -1;
	}
	*r = out->reply.result;
	out->reply.result = (struct result){0};
	return 0;
}

/* In this process, yet as if the result had been printed and read again. */
static int add_inside(const struct applet *a, const struct request *req, struct undo *undo,
	struct result *r, struct err *e)
{
	struct call call = as_call(req, VERB_ADD);
	struct outcome out;
	int ret = call_applet(a, &call, &out, e) || take_result(&out, req->version, r, e);

	outcome_free(&out);
	if (!ret && push_release(req, a->name, undo, e)) {
		result_free(r);
		ret = -1;
	}
	return ret ? -1 : 0;
}

static int add_outside(const struct request *req, const char *type, const char *file,
	struct undo *undo, struct result *r, struct err *e)
{
	autofree char *out = NULL;
	enum plugin_end end;
	size_t len = 0;

	if (execute(req, type, file, VERB_ADD, &out, &len, &end, e)) {
		autoerr ignored = {0};

		/* A clean refusal has left nothing; a crash may have. */
		if (end == PLUGIN_CRASHED)
			delegate_call(req, type, VERB_DEL, &ignored);
		return -1;
	}
	if (push_release(req, type, undo, e))
		return -1;
	return plugin_result(out, len, req->version, r, e);
}

int delegate_add(const struct request *req, const char *type, struct undo *undo, struct result *r,
	struct err *e)
{
	const struct applet *applet;
	autofree char *file = NULL;

	*r = (struct result){0};
	if (look_up(req, type, &applet, &file, e))
		return -1;
	return applet ? add_inside(applet, req, undo, r, e)
		      : add_outside(req, type, file, undo, r, e);
}

/* ---- the other verbs ---- */

static int call_inside(
	const struct applet *a, const struct request *req, enum verb verb, struct err *e)
{
	struct call call = as_call(req, verb);
	struct outcome out;
	int ret = call_applet(a, &call, &out, e);

	outcome_free(&out);
	return ret;
}

/* Plugins older than spec 1.1.0 do not know GC: nothing to collect is then no failure of ours. */
static bool unknown_verb(const struct err *e)
{
	return e->code == ERR_INCOMPATIBLE_VERSION ||
	       (e->code == ERR_INVALID_ENVIRONMENT && strstr(e->msg, "unknown CNI_COMMAND"));
}

int delegate_call(const struct request *req, const char *type, enum verb verb, struct err *e)
{
	const struct applet *applet;
	autofree char *file = NULL, *out = NULL;
	autoerr failure = {0};
	size_t len;
	int ret;

	if (look_up(req, type, &applet, &file, e))
		return -1;
	ret = applet ? call_inside(applet, req, verb, &failure)
		     : execute(req, type, file, verb, &out, &len, NULL, &failure);
	if (!ret || (verb == VERB_GC && unknown_verb(&failure)))
		return 0;
	err_merge(e, &failure);
	return -1;
}

int delegate_ipam_type(const struct request *req, const char **type, struct err *e)
{
	const struct applet *applet;
	const json *ipam = NULL;

	*type = NULL;
	if (json_get_object(req->conf, "ipam", &ipam, e))
		return -1;
	if (!ipam)
		return 0;
	if (json_get_str(ipam, "type", type, e))
		return -1;
	if (*type && !**type)
		*type = NULL;
	applet = *type ? applet_find(*type) : NULL;
	if (!applet || applet->kind == APPLET_IPAM)
		return 0;
	err_set(e, ERR_INVALID_CONFIG, "\"%s\" is not an IPAM plugin", *type);
	/* Whoever goes on after this failure, as DEL does, has none to ask. */
	*type = NULL;
	return -1;
}
