/* cnitool: the runtime's side, by hand or from a script. Adds a namespace to a network, checks it,
 * takes it off, collects what is stale, shows what is there. reference/protocol.md, sections 3 to
 * 5; docs/cnitool.md. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "cni/applet.h"
#include "cni/names.h"
#include "netlink/link.h"
#include "netlink/netns.h"
#include "runtime/cache.h"
#include "runtime/inventory.h"
#include "runtime/list.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define CONF_DIR "/etc/cni/net.d"

struct options {
	const char *conf_dir, *cni_path, *cache_dir, *ifname, *args, *cap_args, *id;
	const char *valid_file;
	char **valid; /* ID/IFNAME each */
	size_t valid_len;
	bool all, json, dot;
	int timeout; /* milliseconds */
};

/* What a call works on. */
struct context {
	const struct options *opt;
	char *netns; /* absolute, cleaned; "" when not given */
	char id[64];
	const char *id_used;
	json *cap_args;
	struct attach attach;
};

static void context_free(struct context *c)
{
	free(c->netns);
	json_free(c->cap_args);
}
#define autocontext __attribute__((cleanup(context_free))) struct context

/* ---- arguments ---- */

static int check_args(const char *args, struct err *e)
{
	autofree char *text = strdup(args);
	char *next = text;

	if (!text)
		return err_memory(e);
	while (*args && next) {
		char *pair = strsep(&next, ";");
		char *eq = strchr(pair, '=');

		if (!eq || eq == pair || !eq[1] || strchr(eq + 1, '='))
			return err_set(
				e, ERR_INVALID_ENVIRONMENT, "invalid CNI_ARGS pair \"%s\"", pair);
	}
	return 0;
}

static int prepare(struct context *c, const struct options *opt, const char *netns, struct err *e)
{
	const char *details, *wrong;

	*c = (struct context){.opt = opt};
	if (opt->cap_args && *opt->cap_args) {
		c->cap_args = json_parse(opt->cap_args, strlen(opt->cap_args), ERR_DECODE, e);
		if (!c->cap_args)
			return err_wrap(e, "CAP_ARGS");
		if (!json_is_object(c->cap_args) && !json_is_null(c->cap_args))
			return err_set(e, ERR_DECODE, "CAP_ARGS: expected object, got %s",
				json_type_name(c->cap_args));
		/* null and {} are none */
		if (!json_iter(c->cap_args)) {
			json_free(c->cap_args);
			c->cap_args = NULL;
		}
	}
	if (check_args(opt->args, e))
		return -1;
	wrong = ifname_invalid(opt->ifname, &details);
	if (wrong)
		return err_set(e, ERR_INVALID_ENVIRONMENT, "%s", wrong);
	c->netns = netns ? path_absolute(netns) : strdup("");
	if (!c->netns)
		return err_sys(e, errno, ERR_SYSTEM, "cannot make %s absolute", netns);
	if (opt->id && !name_valid(opt->id))
		return err_set(e, ERR_INVALID_ENVIRONMENT, "invalid characters in containerID");
	strcpy(c->id, "cnitool-");
	hash_hex(c->id + strlen(c->id), 20, c->netns, NULL);
	c->attach = (struct attach){
		.path = opt->cni_path,
		.id = opt->id ? opt->id : c->id,
		.netns = c->netns,
		.ifname = opt->ifname,
		.args = opt->args,
		.cap_args = c->cap_args,
		.timeout = opt->timeout,
	};
	return 0;
}

/* ---- the cache ---- */

/* One call at a time for a container (SPEC, section 2): the DEL after a failed ADD must not meet an
 * ADD that went well. GC (id NULL) is alone: it must not take an attachment in the making for a
 * stale one. Returns a descriptor that holds the lock, or -1 (a cache that cannot be locked is no
 * reason to fail a DEL). */
static int lock_cache(const struct options *opt, const char *id)
{
	struct flock part = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	autofree char *path = NULL;
	char digits[16];
	int fd;

	if (id) {
		/* A byte of the file for each container, as good as never shared. */
		hash_hex(digits, 15, id, NULL);
		part.l_start = strtoll(digits, NULL, 16);
		part.l_len = 1;
	}
	if (asprintf(&path, "%s/cnitool.lock", opt->cache_dir) < 0) {
		path = NULL;
		return -1;
	}
	if (file_mkdirs(opt->cache_dir, 0700))
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && fcntl(fd, F_OFD_SETLKW, &part) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct cache_entry as_entry(const struct context *c, const struct conflist *l)
{
	return (struct cache_entry){
		.network = l->name,
		.id = (char *)c->attach.id,
		.ifname = (char *)c->attach.ifname,
		.netns = c->netns,
		.args = (char *)c->attach.args,
		.cap_args = c->cap_args,
		.config = l->bytes,
		.config_len = l->bytes_len,
	};
}

static int write_entry(
	const struct context *c, const struct conflist *l, const struct result *r, struct err *e)
{
	struct cache_entry entry = as_entry(c, l);
	autojson *doc = NULL;

	if (r) {
		doc = result_to_json(r, l->version, e);
		if (!doc)
			return -1;
		entry.result = doc;
	}
	if (!cache_write(c->opt->cache_dir, &entry, r != NULL, e))
		return 0;
	return err_wrap(e, "failed to set network \"%s\" cached result", l->name);
}

/* The cached result in the list's version; *have tells whether there is one. */
static int cached_result(const struct cache_entry *entry, const struct conflist *l,
	struct result *r, bool *have, struct err *e)
{
	*have = false;
	*r = (struct result){0};
	if (!entry->result)
		return 0;
	if (result_read(r, entry->result, "0.1.0", ERR_DECODE, e) ||
		result_convert(r, l->version, e)) {
		result_free(r);
		return err_wrap(
			e, "failed to convert cached result to config version \"%s\"", l->version);
	}
	*have = true;
	return 0;
}

/* ---- add ---- */

struct in_netns {
	const char *ifname;
	bool there;
};

static int look_for(void *arg, struct err *e)
{
	struct in_netns *look = arg;
	autonl *nl = NULL;
	struct link l;
	int ret;

	if (nl_open(&nl, NETLINK_ROUTE, e))
		return -1;
	ret = link_get(nl, look->ifname, &l);
	look->there = !ret;
	return !ret || ret == -ENODEV ? 0
				      : err_sys(e, -ret, ERR_SYSTEM,
						"failed to look up link \"%s\"", look->ifname);
}

/* 1, 0, or -1 with e set. */
static int is_in(const char *path, const char *ifname, struct err *e)
{
	struct in_netns look = {.ifname = ifname};
	autoclose int fd = -1;
	int ret = netns_try(path, &fd, e);

	if (ret <= 0)
		return ret;
	return netns_run(fd, look_for, &look, e) ? -1 : look.there;
}

/* A second ADD of what is attached would fail in a plugin, and the DEL that follows a failed ADD
 * would then take down the living attachment: here, or where its entry says it is. An entry from
 * before a reboot is none. */
static int refuse_attached(const struct context *c, const struct conflist *l, struct err *e)
{
	const char *ifname = c->attach.ifname;
	autoentry entry = {0};
	autoerr why = {0};
	int ret = cache_read(c->opt->cache_dir, l->name, c->attach.id, ifname, &entry, &why, e);

	if (ret < 0)
		return -1;
	if (ret > 0 && why.code == ERR_CONFLICT)
		return err_set(e, ERR_CONFLICT,
			"the result cache has no room for this attachment: %s", why.msg);
	if (ret > 0 || !entry.result)
		return 0;
	ret = is_in(c->netns, ifname, e);
	if (!ret && *entry.netns && strcmp(entry.netns, c->netns) != 0)
		ret = is_in(entry.netns, ifname, e);
	if (ret <= 0)
		return ret;
	return err_set(e, ERR_CONFLICT,
		"%s is attached to network \"%s\" already (container ID %s); delete it first",
		ifname, l->name, c->attach.id);
}

static int print_result(const struct result *r, const char *version, struct err *e)
{
	autobuf text = {0};
	int ret;

	if (result_write(r, version, &text, e))
		return -1;
	ret = text.failed ? -ENOMEM : file_write_fd(STDOUT_FILENO, text.data, text.len);
	return ret ? err_sys(e, -ret, ERR_IO, "failed to write to standard output") : 0;
}

static void forget(const struct context *c, const struct conflist *l)
{
	autoerr ignored = {0};

	cache_remove(c->opt->cache_dir, l->name, c->attach.id, c->attach.ifname, &ignored);
}

static int tool_add(const struct context *c, const struct conflist *l, struct err *e)
{
	autoclose int lock = lock_cache(c->opt, c->attach.id);
	autoresult r = {0};
	bool clean;

	(void)lock;
	/* The attempt is on record before anything is done, so that GC finds one that never ended.
	 */
	if (refuse_attached(c, l, e) || write_entry(c, l, NULL, e))
		return -1;
	if (list_add(l, &c->attach, &r, &clean, e)) {
		if (clean)
			forget(c, l);
		return -1;
	}
	if (!write_entry(c, l, &r, e) && !print_result(&r, l->version, e))
		return 0;
	autoerr ignored = {0};
	if (!list_del(l, &c->attach, &r, &ignored))
		forget(c, l);
	return -1;
}

/* ---- del, check ---- */

/* The configuration the attachment was made with is what takes it down; plugins of the network's
 * directory are not in the cache and come from the current one. 0, 1 when it is of no use, or -1
 * with e set. */
static int list_of_entry(
	const struct context *c, const struct cache_entry *entry, struct conflist *l, struct err *e)
{
	autoerr why = {0};

	if (!entry->config_len)
		return 1;
	if (conflist_parse(l, entry->config, entry->config_len, false, c->opt->conf_dir, &why)) {
		if (err_is_passing(why.sys))
			err_merge(e, &why);
		return e->set ? -1 : 1;
	}
	if (!strcmp(l->name, entry->network))
		return 0;
	conflist_free(l);
	return 1;
}

/* What this call names beats what the cache remembers. */
static struct attach attach_of_entry(const struct context *c, const struct cache_entry *entry)
{
	struct attach a = c->attach;

	a.id = entry->id;
	a.ifname = entry->ifname;
	if (!*a.netns)
		a.netns = entry->netns;
	if (!*a.args)
		a.args = entry->args;
	if (!a.cap_args)
		a.cap_args = entry->cap_args;
	return a;
}

static int del_entry(const struct context *c, const struct cache_entry *entry,
	const struct conflist *l, struct err *e)
{
	struct attach a = attach_of_entry(c, entry);
	autoresult r = {0};
	autoerr unusable = {0};
	bool have;

	/* A result that cannot be read does not keep an attachment alive. */
	cached_result(entry, l, &r, &have, &unusable);
	if (list_del(l, &a, have ? &r : NULL, e))
		return -1;
	return cache_remove(c->opt->cache_dir, l->name, a.id, a.ifname, e);
}

static int tool_del(const struct context *c, const char *network, struct err *e)
{
	autoclose int lock = lock_cache(c->opt, c->attach.id);
	autoentry entry = {0};
	autolist l = {0};
	autoerr why = {0};
	int found, unusable;

	(void)lock;
	found = name_valid(network) ? cache_read(c->opt->cache_dir, network, c->attach.id,
					      c->attach.ifname, &entry, &why, e)
				    : 1;
	if (found < 0)
		return -1;
	if (found > 0 && why.set)
		fprintf(stderr, "cnitool: the cache entry is not used: %s\n", why.msg);
	unusable = found ? 1 : list_of_entry(c, &entry, &l, e);
	if (unusable < 0 || (unusable && conflist_find(&l, c->opt->conf_dir, network, e)))
		return -1;
	if (!found)
		return del_entry(c, &entry, &l, e);
	if (list_del(&l, &c->attach, NULL, e))
		return -1;
	/* A torn entry goes with the attachment; somebody else's stays. */
	return why.code == ERR_CONFLICT ? 0
					: cache_remove(c->opt->cache_dir, network, c->attach.id,
						  c->attach.ifname, e);
}

static int tool_check(const struct context *c, const struct conflist *l, struct err *e)
{
	autoentry entry = {0};
	autoresult r = {0};
	autoerr why = {0};
	bool have = false;
	struct attach a = c->attach;
	int cmp;

	if (cni_version_cmp(l->version, "0.4.0", &cmp, e))
		return -1;
	if (cmp < 0)
		return err_set(e, ERR_INCOMPATIBLE_VERSION,
			"configuration version \"%s\" does not support the CHECK command",
			l->version);
	if (l->disable_check)
		return 0;
	if (cache_read(c->opt->cache_dir, l->name, c->attach.id, c->attach.ifname, &entry, &why,
		    e) < 0)
		return -1;
	if (why.set)
		fprintf(stderr, "cnitool: the cache entry is not used: %s\n", why.msg);
	if (cached_result(&entry, l, &r, &have, e))
		return err_wrap(e, "failed to get network \"%s\" cached result", l->name);
	/* All but CNI_PATH has to be as it was for ADD (SPEC, section 2, CHECK). */
	if (entry.id)
		a = attach_of_entry(c, &entry);
	return list_check(l, &a, have ? &r : NULL, e);
}

/* ---- gc ---- */

static int add_valid(json *list, const char *id, const char *ifname)
{
	json *item = json_new_object();

	if (json_set(item, "containerID", json_new_string(id)) ||
		json_set(item, "ifname", json_new_string(ifname)) || json_append(list, item))
		return -1;
	return 0;
}

static int valid_from_options(const struct options *opt, json *list, struct err *e)
{
	for (size_t i = 0; i < opt->valid_len; i++) {
		autofree char *pair = strdup(opt->valid[i]);
		char *slash = pair ? strrchr(pair, '/') : NULL;

		if (!slash || slash == pair || !slash[1])
			return err_set(e, ERR_INVALID_ENVIRONMENT,
				"--valid wants CONTAINERID/IFNAME, not \"%s\"", opt->valid[i]);
		*slash = '\0';
		if (add_valid(list, pair, slash + 1))
			return err_memory(e);
	}
	return 0;
}

static int valid_from_file(const char *path, json *list, struct err *e)
{
	autofree char *text = NULL;
	autojson *doc = NULL;
	size_t len;
	int ret = strcmp(path, "-") != 0 ? file_read(AT_FDCWD, path, JSON_MAX_SIZE, &text, &len)
					 : file_read_fd(STDIN_FILENO, JSON_MAX_SIZE, &text, &len);

	if (ret)
		return err_sys(e, -ret, ERR_IO, "error reading %s", path);
	doc = json_parse(text, len, ERR_DECODE, e);
	if (!doc)
		return err_wrap(e, "%s", path);
	if (!json_is_array(doc))
		return err_set(
			e, ERR_DECODE, "%s: expected array, got %s", path, json_type_name(doc));
	for (size_t i = 0; i < json_len(doc); i++) {
		const char *id = json_str(json_get(json_at(doc, i), "containerID"));
		const char *ifname = json_str(json_get(json_at(doc, i), "ifname"));

		if (!id || !ifname)
			return err_set(e, ERR_DECODE,
				"%s: each attachment wants containerID and ifname", path);
		if (add_valid(list, id, ifname))
			return err_memory(e);
	}
	return 0;
}

static bool is_valid(const json *list, const char *id, const char *ifname)
{
	for (size_t i = 0; i < json_len(list); i++) {
		const json *item = json_at(list, i);

		if (!strcmp(json_str(json_get(item, "containerID")), id) &&
			!strcmp(json_str(json_get(item, "ifname")), ifname))
			return true;
	}
	return false;
}

struct sweep {
	const struct context *c;
	const struct conflist *list;
	const json *valid;
	struct err *e;
};

static int sweep_entry(const struct cache_entry *entry, void *arg)
{
	struct sweep *s = arg;
	struct context none = *s->c;
	autolist own = {0};
	autoerr one = {0};
	int unusable;

	if (strcmp(entry->network, s->list->name) != 0 ||
		is_valid(s->valid, entry->id, entry->ifname))
		return 0;
	/* The arguments of the attachment, not of this call. */
	none.attach.netns = none.attach.args = "";
	none.attach.cap_args = NULL;
	unusable = list_of_entry(s->c, entry, &own, &one);
	if (unusable < 0 || del_entry(&none, entry, unusable ? s->list : &own, &one)) {
		err_wrap(&one, "failed to delete stale attachment %s %s", entry->id, entry->ifname);
		err_merge(s->e, &one);
	}
	return 0;
}

static int tool_gc(const struct context *c, const struct conflist *l, struct err *e)
{
	autoclose int lock = lock_cache(c->opt, NULL);
	autojson *valid = json_new_array();
	struct sweep s = {c, l, valid, e};
	int cmp;

	(void)lock;
	if (l->disable_gc)
		return 0;
	if (!valid)
		return err_memory(e);
	if (valid_from_options(c->opt, valid, e) ||
		(c->opt->valid_file && valid_from_file(c->opt->valid_file, valid, e)))
		return -1;
	if (cni_version_cmp(l->version, "1.1.0", &cmp, e))
		return -1;
	cache_each(c->opt->cache_dir, sweep_entry, &s, e);
	if (cmp >= 0)
		list_gc(l, &c->attach, valid, e);
	return e->set ? -1 : 0;
}

/* ---- status, version ---- */

static int tool_status(const struct context *c, const struct conflist *l, struct err *e)
{
	int cmp;

	if (cni_version_cmp(l->version, "1.1.0", &cmp, e))
		return -1;
	return cmp < 0 ? 0 : list_status(l, &c->attach, e);
}

static int tool_version(const struct context *c, const struct conflist *l, struct err *e)
{
	for (size_t i = 0; i < l->len; i++) {
		autobuf versions = {0};
		autoerr one = {0};

		if (list_version(l, i, &c->attach, &versions, &one)) {
			err_merge(e, &one);
			continue;
		}
		printf("%s: %s\n", l->plugins[i].type, versions.data ? versions.data : "");
	}
	return e->set ? -1 : 0;
}

/* ---- show ---- */

static int tool_show(const struct options *o, struct err *e)
{
	autojson *inv = inventory(o->conf_dir, o->cache_dir, e);
	autobuf out = {0};
	int ret;

	if (!inv)
		return -1;
	if (o->json)
		json_write(&out, inv, JSON_INDENT);
	else if (o->dot)
		inventory_dot(inv, &out);
	else
		inventory_tree(inv, &out);
	if (o->json)
		buf_puts(&out, "\n");
	ret = out.failed ? -ENOMEM : file_write_fd(STDOUT_FILENO, out.data, out.len);
	return ret ? err_sys(e, -ret, ERR_IO, "failed to write to standard output") : 0;
}

/* ---- the command line ---- */

enum command { ADD, DEL, CHECK, GC, STATUS, VERSION, SHOW, COMMANDS };

static const struct {
	const char *name, *help;
	int (*run)(const struct context *c, const struct conflist *l, struct err *e);
} commands[COMMANDS] = {
	[ADD] = {"add", "attach the namespace to the network, print the result", tool_add},
	[DEL] = {"del", "take it off again", NULL},
	[CHECK] = {"check", "check that it is as it was made", tool_check},
	[GC] = {"gc", "remove attachments that are not valid, and what belongs to none", tool_gc},
	[STATUS] = {"status", "ask whether the network can take attachments", tool_status},
	[VERSION] = {"version", "print the versions each plugin supports", tool_version},
	[SHOW] = {"show", "print what is on this node, and what belongs to nobody", NULL},
};

static void usage(FILE *to)
{
	fputs("cnitool: attach a network namespace to a CNI network\n\n"
	      "Usage:\n"
	      "  cnitool COMMAND [OPTION...] NETWORK [NETNS]\n"
	      "  cnitool show [OPTION...]\n\n"
	      "Commands:\n",
		to);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].help);
	fputs("\nNETNS, the path of a network namespace, is required by add, del and check.\n\n"
	      "Options (and the environment variables they stand for):\n"
	      "  -i, --ifname NAME      interface in the container (CNI_IFNAME, eth0)\n"
	      "      --conf-dir DIR     network configurations (NETCONFPATH, " CONF_DIR ")\n"
	      "      --cni-path DIRS    where the plugins are (CNI_PATH)\n"
	      "      --args K=V;K=V     arguments for the plugins (CNI_ARGS)\n"
	      "      --cap-args JSON    capability arguments (CAP_ARGS)\n"
	      "      --cache-dir DIR    result cache (" CACHE_DIR ")\n"
	      "      --id ID            container ID (made from NETNS)\n"
	      "      --timeout SECONDS  for each executed plugin; 0, the default, for none\n"
	      "      --valid ID/IFNAME  gc: an attachment to keep; may be repeated\n"
	      "      --valid-file FILE  gc: the same as a JSON array of {containerID, ifname}; "
	      "- for stdin\n"
	      "      --all              gc: keep none\n"
	      "      --json, --dot      show: as JSON, as a graph for dot(1)\n"
	      "      --help             print this\n",
		to);
}

static const char *env(const char *name, const char *fallback)
{
	const char *v = getenv(name);

	return v && *v ? v : fallback;
}

static int read_timeout(const char *text, int *out)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0 && seconds < 1e6))
		return -1;
	/* However short, it is not "none". */
	*out = seconds > 0 && seconds < 0.001 ? 1 : (int)(seconds * 1000);
	return 0;
}

enum {
	OPT_CONF_DIR = 256,
	OPT_PATH,
	OPT_ARGS,
	OPT_CAPS,
	OPT_CACHE,
	OPT_ID,
	OPT_TIMEOUT,
	OPT_VALID,
	OPT_VALID_FILE,
	OPT_ALL,
	OPT_JSON,
	OPT_DOT,
	OPT_HELP
};

static const struct option long_options[] = {
	{"ifname", required_argument, NULL, 'i'},
	{"conf-dir", required_argument, NULL, OPT_CONF_DIR},
	{"cni-path", required_argument, NULL, OPT_PATH},
	{"args", required_argument, NULL, OPT_ARGS},
	{"cap-args", required_argument, NULL, OPT_CAPS},
	{"cache-dir", required_argument, NULL, OPT_CACHE},
	{"id", required_argument, NULL, OPT_ID},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"valid", required_argument, NULL, OPT_VALID},
	{"valid-file", required_argument, NULL, OPT_VALID_FILE},
	{"all", no_argument, NULL, OPT_ALL},
	{"json", no_argument, NULL, OPT_JSON},
	{"dot", no_argument, NULL, OPT_DOT},
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

/* Returns 0, 1 for --help, 2 for a mistake (getopt has named it). */
static int read_options(int argc, char **argv, struct options *o)
{
	int c;

	while ((c = getopt_long(argc, argv, "i:h", long_options, NULL)) >= 0) {
		switch (c) {
		case 'i': o->ifname = optarg; break;
		case OPT_CONF_DIR: o->conf_dir = optarg; break;
		case OPT_PATH: o->cni_path = optarg; break;
		case OPT_ARGS: o->args = optarg; break;
		case OPT_CAPS: o->cap_args = optarg; break;
		case OPT_CACHE: o->cache_dir = optarg; break;
		case OPT_ID: o->id = optarg; break;
		case OPT_VALID: o->valid[o->valid_len++] = optarg; break;
		case OPT_VALID_FILE: o->valid_file = optarg; break;
		case OPT_ALL: o->all = true; break;
		case OPT_JSON: o->json = true; break;
		case OPT_DOT: o->dot = true; break;
		case OPT_TIMEOUT:
			if (!read_timeout(optarg, &o->timeout))
				break;
			fprintf(stderr, "cnitool: --timeout: \"%s\" is no number of seconds\n",
				optarg);
			return 2;
		case 'h':
		case OPT_HELP: return 1;
		default: return 2;
		}
	}
	return 0;
}

/* The message alone, as tools read the tail of stderr; a person also gets told what it was about.
 */
static int complain(const struct err *e, const char *command, const char *network)
{
	if (!isatty(STDERR_FILENO)) {
		fprintf(stderr, "%s%s%s\n", e->msg, e->details ? "; " : "",
			e->details ? e->details : "");
		return 1;
	}
	fprintf(stderr, "cnitool: %s %s failed: %s\n", command, network, e->msg);
	if (e->details)
		fprintf(stderr, "  details: %s\n", e->details);
	fprintf(stderr, "  code:    %d\n", e->code);
	return 1;
}

static int run(enum command cmd, const struct options *o, const char *network, const char *netns,
	struct err *e)
{
	autocontext c = {0};
	autolist l = {0};

	/* DEL looks for the configuration in the cache first. */
	if (cmd != DEL && conflist_find(&l, o->conf_dir, network, e))
		return -1;
	if (prepare(&c, o, netns, e))
		return -1;
	return cmd == DEL ? tool_del(&c, network, e) : commands[cmd].run(&c, &l, e);
}

static int find_command(const char *name, enum command *out)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		*out = (enum command)i;
		return 0;
	}
	return -1;
}

static int wrong_usage(const char *fmt, const char *what)
{
	fputs("cnitool: ", stderr);
	fprintf(stderr, fmt, what);
	fputs("\nTry 'cnitool --help'.\n", stderr);
	return 1;
}

static int cnitool(int argc, char **argv)
{
	autofree char **valid = calloc((size_t)argc + 1, sizeof(*valid));
	struct options o = {
		.conf_dir = env("NETCONFPATH", CONF_DIR),
		.cni_path = env("CNI_PATH", ""),
		.cache_dir = CACHE_DIR,
		.ifname = env("CNI_IFNAME", "eth0"),
		.args = env("CNI_ARGS", ""),
		.cap_args = env("CAP_ARGS", NULL),
		.valid = valid,
	};
	autoerr e = {0};
	enum command cmd;
	int ret;

	if (!valid)
		return 1;
	signal(SIGPIPE, SIG_IGN);
	ret = read_options(argc, argv, &o);
	if (ret == 1 || (!ret && optind == argc)) {
		usage(stdout);
		return 0;
	}
	if (ret)
		return wrong_usage("%s", "wrong option");
	argv += optind;
	argc -= optind;
	if (find_command(argv[0], &cmd))
		return wrong_usage("unknown command \"%s\"", argv[0]);
	if (cmd == SHOW)
		return tool_show(&o, &e) ? complain(&e, argv[0], "") : 0;
	if (argc < 2 || (argc < 3 && cmd <= CHECK))
		return wrong_usage(
			cmd <= CHECK ? "%s wants a network and the path of a network namespace"
				     : "%s wants a network",
			argv[0]);
	/* With a namespace it is the form of the Go tool, which knows no valid set. Without one
	 * nothing is deleted unless it was said what is to stay. */
	if (cmd == GC && argc < 3 && !o.all && !o.valid_len && !o.valid_file)
		return wrong_usage(
			"%s wants --valid, --valid-file, or --all to keep nothing", argv[0]);
	if (o.all && (o.valid_len || o.valid_file))
		return wrong_usage("%s", "--all keeps nothing, --valid keeps something");
	if (run(cmd, &o, argv[1], argc > 2 ? argv[2] : NULL, &e))
		return complain(&e, argv[0], argv[1]);
	return 0;
}

const struct applet applet_cnitool = {
	.name = "cnitool",
	.help = "Attaches a network namespace to a network, by hand or from a script",
	.kind = APPLET_TOOL,
	.program = cnitool,
};
