#include "cni/run.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/trace.h"
#include "cni/error.h"
#include "cni/names.h"
#include "netlink/netns.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- environment ---- */

static const char *env(const char *name)
{
	const char *v = getenv(name);

	return v ? v : "";
}

static int check_id(const char *id, struct err *e)
{
	if (name_valid(id))
		return 0;
	err_set(e, ERR_INVALID_ENVIRONMENT, "invalid characters in containerID");
	return err_detail(e, "%s", id);
}

static int check_ifname(const char *ifname, struct err *e)
{
	const char *details, *wrong = ifname_invalid(ifname, &details);

	if (!wrong)
		return 0;
	err_set(e, ERR_INVALID_ENVIRONMENT, "%s", wrong);
	if (details)
		err_detail(e, "%s", details);
	return -1;
}

/* Which variables a verb requires. An unknown verb is reported later, so it requires nothing here.
 */
struct requires
{
	bool id, netns, ifname, path;
};

static struct requires required(const char *command)
{
	bool add_or_check = !strcmp(command, "ADD") || !strcmp(command, "CHECK");
	bool attachment = add_or_check || !strcmp(command, "DEL");
	bool network = !strcmp(command, "GC") || !strcmp(command, "STATUS");

	return (struct requires){
		.id = attachment,
		.netns = add_or_check,
		.ifname = attachment,
		.path = attachment || network,
	};
}

/* Set but invalid fails at once, missing ones are reported together: the order callers know. */
static int check_env(const struct call *c, struct err *e)
{
	struct requires need = required(c->command);
	struct {
		bool required;
		const char *name, *value;
		int (*check)(const char *value, struct err *e);
	} vars[] = {
		{need.id, "CNI_CONTAINERID", c->id, check_id},
		{need.netns, "CNI_NETNS", c->netns, NULL},
		{need.ifname, "CNI_IFNAME", c->ifname, check_ifname},
		{need.path, "CNI_PATH", c->path, NULL},
	};
	autobuf missing = {0};

	for (size_t i = 0; i < array_len(vars); i++) {
		if (!vars[i].required)
			continue;
		if (!*vars[i].value)
			buf_printf(&missing, "%s%s", missing.len ? "," : "", vars[i].name);
		else if (vars[i].check && vars[i].check(vars[i].value, e))
			return -1;
	}
	if (missing.len)
		return err_set(e, ERR_INVALID_ENVIRONMENT, "required env variables [%s] missing",
			missing.data);
	return 0;
}

static int call_from_env(struct call *call, struct err *e)
{
	*call = (struct call){
		.command = env("CNI_COMMAND"),
		.id = env("CNI_CONTAINERID"),
		.netns = env("CNI_NETNS"),
		.ifname = env("CNI_IFNAME"),
		.args = env("CNI_ARGS"),
		.path = env("CNI_PATH"),
	};
	return check_env(call, e);
}

/* ---- config ---- */

static int read_name(const json *conf, const char **name, struct err *e)
{
	const json *node = json_get(conf, "name");

	if (node && !json_is_string(node))
		return err_set(e, ERR_DECODE,
			"error unmarshall network config: name: expected string, got %s",
			json_type_name(node));
	*name = node ? json_str(node) : "";
	if (!**name)
		return err_set(e, ERR_INVALID_CONFIG, "missing network name");
	if (name_valid(*name))
		return 0;
	err_set(e, ERR_INVALID_CONFIG, "invalid characters found in network name");
	return err_detail(e, "%s", *name);
}

static int read_version(const json *conf, const char **version, struct err *e)
{
	const json *node = json_get(conf, "cniVersion");

	if (node && !json_is_string(node))
		return err_set(e, ERR_DECODE,
			"decoding version from network config: cniVersion: expected string, got %s",
			json_type_name(node));
	*version = node ? json_str(node) : "";
	return 0;
}

static int read_config(const struct call *call, struct outcome *out, struct err *e)
{
	struct request *req = &out->req;

	out->conf = json_parse(call->text, call->len, ERR_DECODE, e);
	if (!out->conf)
		return err_wrap(e, "error unmarshall network config");
	if (!json_is_object(out->conf))
		return err_set(e, ERR_DECODE,
			"error unmarshall network config: expected object, got %s",
			json_type_name(out->conf));
	req->conf = out->conf;
	/* From here on errors carry the config's version, whatever else is wrong with it. */
	if (json_str(json_get(req->conf, "cniVersion")))
		req->version = json_str(json_get(req->conf, "cniVersion"));
	if (read_name(req->conf, &req->network, e))
		return -1;
	owner_init(&req->owner, req->network, req->id, req->ifname);
	return 0;
}

/* ---- version rules ---- */

static bool supported(const struct applet *a, const char *version)
{
	autoerr ignored = {0};
	int cmp = 0;

	if (!cni_version_known(version))
		return false;
	if (!a->min_version || cni_version_cmp(version, a->min_version, &cmp, &ignored))
		return true;
	return cmp >= 0;
}

static int incompatible(const struct applet *a, const char *version, struct err *e)
{
	autobuf list = {0};

	for (size_t i = 0; i < cni_versions_len; i++)
		if (supported(a, cni_versions[i]))
			buf_printf(&list, "%s\"%s\"", list.len ? " " : "", cni_versions[i]);
	err_set(e, ERR_INCOMPATIBLE_VERSION, "incompatible CNI versions");
	return err_detail(e, "config is \"%s\", plugin supports [%s]", *version ? version : "0.1.0",
		list.data ? list.data : "");
}

/* CHECK came with 0.4.0, GC and STATUS with 1.1.0. */
static int check_version(const struct applet *a, enum verb verb, const char *version, struct err *e)
{
	const char *since = verb == VERB_CHECK ? "0.4.0" : "1.1.0";
	int cmp;

	if (verb == VERB_ADD || verb == VERB_DEL)
		return supported(a, version) ? 0 : incompatible(a, version, e);
	if (cni_version_cmp(version, since, &cmp, e))
		return -1;
	if (cmp < 0)
		return err_set(e, ERR_INCOMPATIBLE_VERSION, "config version does not allow %s",
			verb_name(verb));
	if (cni_version_cmp(version, CNI_CURRENT, &cmp, e))
		return -1;
	if (cmp > 0)
		return err_set(e, ERR_INCOMPATIBLE_VERSION, "plugin version does not allow %s",
			verb_name(verb));
	return supported(a, version) ? 0 : incompatible(a, version, e);
}

/* ---- running ---- */

/* A runtime that hands us our own namespace would have the host's interfaces reconfigured. */
static int guard_netns(const struct request *req, struct err *e)
{
	const char *override = env("CNI_NETNS_OVERRIDE");
	autoclose int fd = -1;
	int ret;

	if (!*req->netns || !strcmp(override, "1") || !strcasecmp(override, "true"))
		return 0;
	/* Whether the path is any good is the applet's to judge: DEL forgives more than ADD. */
	ret = netns_try(req->netns, &fd, e);
	if (ret <= 0 || !netns_is_own(fd))
		return ret < 0 ? -1 : 0;
	return err_set(e, ERR_INVALID_NETNS,
		"plugin's netns and netns from CNI_NETNS should not be the same");
}

static int run_add(const struct applet *a, struct outcome *out, struct err *e)
{
	if (a->add(&out->req, &out->reply, e)) {
		undo_run(&out->reply.undo);
		result_free(&out->reply.result);
		out->reply.result = (struct result){0};
		return -1;
	}
	return 0;
}

static int run_verb(const struct applet *a, struct outcome *out, struct err *e)
{
	const struct request *req = &out->req;
	int (*run)(const struct request *req, struct err *e) = NULL;

	switch (req->verb) {
	case VERB_ADD: return run_add(a, out, e);
	case VERB_DEL: run = a->del; break;
	case VERB_CHECK: run = a->check; break;
	case VERB_GC: run = a->gc; break;
	case VERB_STATUS: run = a->status; break;
	case VERB_VERSION: break;
	}
	return run ? run(req, e) : 0;
}

static int prepare(
	const struct applet *a, const struct call *call, struct outcome *out, struct err *e)
{
	struct request *req = &out->req;

	*req = (struct request){
		.id = call->id,
		.netns = call->netns,
		.ifname = call->ifname,
		.args = call->args,
		.path = call->path,
		.text = call->text,
		.text_len = call->len,
		.applet = a,
		.caller = call->caller,
		.version = "",
	};
	if (read_config(call, out, e))
		return -1;
	if (!verb_parse(call->command, &req->verb))
		return err_set(
			e, ERR_INVALID_ENVIRONMENT, "unknown CNI_COMMAND: %s", call->command);
	if (read_version(req->conf, &req->version, e) ||
		check_version(a, req->verb, req->version, e))
		return -1;
	if (req->verb == VERB_ADD || req->verb == VERB_DEL)
		return guard_netns(req, e);
	return 0;
}

int call_applet(const struct applet *a, const struct call *call, struct outcome *out, struct err *e)
{
	uint64_t start = trace_start();
	struct trace_saved saved;
	int ret;

	*out = (struct outcome){0};
	trace_enter(&saved, a->name, call->command, call->id, call->ifname);
	ret = check_env(call, e) || prepare(a, call, out, e) || run_verb(a, out, e) ? -1 : 0;
	trace_step(start, TRACE_VERB, ret, "%s%s%s", call->command, ret ? ": " : "",
		ret ? e->msg : "");
	trace_leave(&saved);
	return ret;
}

void outcome_free(struct outcome *out)
{
	undo_commit(&out->reply.undo);
	result_free(&out->reply.result);
	json_free(out->conf);
	*out = (struct outcome){0};
}

/* ---- the program ---- */

void write_versions(const struct applet *a, struct buf *out)
{
	const char *comma = "";

	buf_puts(out, "{\"cniVersion\":\"" CNI_CURRENT "\",\"supportedVersions\":[");
	for (size_t i = 0; i < cni_versions_len; i++) {
		if (!supported(a, cni_versions[i]))
			continue;
		buf_printf(out, "%s\"%s\"", comma, cni_versions[i]);
		comma = ",";
	}
	buf_puts(out, "]}\n");
}

/* Without a command it is a person, or a program that asks for the version: say what this is. The
 * first two lines are parsed. In the first, clients want a semantic version and compare it with
 * those of the reference plugins (nerdctl: at least 1.1.0), so it is the release of theirs that we
 * are level with, and our own stands where semver.org, item 10, has build metadata. */
static int introduce(const struct applet *a)
{
	fprintf(stderr, "CNI %s plugin v" CNIBOX_REFERENCE "+cnibox." CNIBOX_VERSION "\n", a->name);
	fputs("CNI protocol versions supported: ", stderr);
	for (size_t i = 0, n = 0; i < cni_versions_len; i++)
		if (supported(a, cni_versions[i]))
			fprintf(stderr, "%s%s", n++ ? ", " : "", cni_versions[i]);
	fprintf(stderr,
		"\n\n%s.\n\nA container runtime calls it: the verb in CNI_COMMAND (ADD, DEL, CHECK, "
		"GC, STATUS or\nVERSION), the attachment in CNI_CONTAINERID, CNI_NETNS, "
		"CNI_IFNAME, CNI_ARGS and CNI_PATH,\nthe network configuration (JSON) on standard "
		"input. The result or an error object comes\non standard output.\n",
		a->help);
	return 0;
}

static int print(const struct buf *out, struct err *e)
{
	int ret = out->failed ? -ENOMEM : file_write_fd(STDOUT_FILENO, out->data, out->len);

	return ret ? err_sys(e, -ret, ERR_IO, "failed to write to standard output") : 0;
}

static void complain(const struct err *e)
{
	fprintf(stderr, "%s%s%s\n", e->msg, e->details ? ": " : "", e->details ? e->details : "");
}

static int print_error(const struct err *e, const char *version)
{
	autobuf text = {0};
	autoerr failed = {0};

	write_error(e, version, &text);
	if (print(&text, &failed))
		complain(e);
	return 1;
}

/* The result is written first; only then is what the ADD did there to stay. After a failed write no
 * error object follows: part of the result may be out already. */
static int finish_add(struct outcome *out)
{
	autobuf text = {0};
	autoerr e = {0};

	if (!result_write(&out->reply.result, out->req.version, &text, &e) && !print(&text, &e)) {
		undo_commit(&out->reply.undo);
		return 0;
	}
	undo_run(&out->reply.undo);
	if (e.code != ERR_IO)
		return print_error(&e, out->req.version);
	complain(&e);
	return 1;
}

static int run_from_stdin(const struct applet *a, struct call *call)
{
	autofree char *text = NULL;
	struct outcome out = {0};
	autoerr e = {0};
	int ret = file_read_fd(STDIN_FILENO, JSON_MAX_SIZE, &text, &call->len);
	int status = 0;

	call->text = text;
	if (ret) {
		err_sys(&e, -ret, ERR_IO, "error reading from stdin");
		return print_error(&e, NULL);
	}
	if (call_applet(a, call, &out, &e))
		status = print_error(&e, out.req.version);
	else if (out.req.verb == VERB_ADD)
		status = finish_add(&out);
	outcome_free(&out);
	return status;
}

static int run_plugin(const struct applet *a)
{
	struct call call;
	autoerr e = {0};

	if (!*env("CNI_COMMAND"))
		return introduce(a);
	/* A reader that went away is an error to report, not a reason to die half done. */
	signal(SIGPIPE, SIG_IGN);
	if (call_from_env(&call, &e))
		return print_error(&e, NULL);
	if (!strcmp(call.command, "VERSION")) {
		autobuf text = {0};

		write_versions(a, &text);
		return print(&text, &e) ? print_error(&e, NULL) : 0;
	}
	return run_from_stdin(a, &call);
}

int run_applet(const struct applet *a, int argc, char **argv)
{
	int status = -1;

	if (!applet_is_plugin(a))
		return a->program(argc, argv);
	/* `dhcp daemon`: arguments are for a person's program, a command in the environment is for
	 * a plugin. */
	if (a->program && argc > 1 && !*env("CNI_COMMAND"))
		status = a->program(argc, argv);
	return status < 0 ? run_plugin(a) : status;
}
