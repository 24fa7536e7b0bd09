/* cnitool: the runtime's side, by hand or from a script. Adds a namespace to a network, checks it,
 * takes it off, collects what is stale, shows what is there. reference/protocol.md, sections 3 to
 * 5; docs/cnitool.md. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "cni/applet.h"
#include "cni/names.h"
#include "runtime/attachment.h"
#include "runtime/cache.h"
#include "runtime/inventory.h"
#include "runtime/valid.h"

#include <errno.h>
#include <getopt.h>
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
	char id[64]; /* made from it */
	json *cap_args;
	struct runtime rt;
};

static void context_free(struct context *c)
{
	free(c->netns);
	json_free(c->cap_args);
}
#define autocontext __attribute__((cleanup(context_free))) struct context

static void remark(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "cnitool: %s\n", text);
}

static const struct report remarks = {remark, NULL};

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

static int read_cap_args(struct context *c, struct err *e)
{
	const char *text = c->opt->cap_args;

	if (!text || !*text)
		return 0;
	c->cap_args = json_parse(text, strlen(text), ERR_DECODE, e);
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
	return 0;
}

/* `attachment`: the call is about one, so that its interface must have a good name. */
static int check_names(const struct options *opt, bool attachment, struct err *e)
{
	const char *details, *wrong = ifname_invalid(opt->ifname, &details);

	if (attachment && wrong)
		return err_set(e, ERR_INVALID_ENVIRONMENT, "%s", wrong);
	if (opt->id && !name_valid(opt->id))
		return err_set(e, ERR_INVALID_ENVIRONMENT, "invalid characters in containerID");
	return 0;
}

static int prepare(struct context *c, const struct options *opt, const char *netns, bool attachment,
	struct err *e)
{
	*c = (struct context){.opt = opt};
	if (read_cap_args(c, e) || check_args(opt->args, e) || check_names(opt, attachment, e))
		return -1;
	c->netns = netns ? path_absolute(netns) : strdup("");
	if (!c->netns)
		return err_sys(e, errno, ERR_SYSTEM, "cannot make %s absolute", netns);
	strcpy(c->id, "cnitool-");
	hash_hex(c->id + strlen(c->id), 20, c->netns, NULL);
	c->rt = (struct runtime){
		.conf_dir = opt->conf_dir,
		.cache_dir = opt->cache_dir,
		.remarks = &remarks,
		.attach =
			{
				.path = opt->cni_path,
				.id = opt->id ? opt->id : c->id,
				.netns = c->netns,
				.ifname = opt->ifname,
				.args = opt->args,
				.cap_args = c->cap_args,
				.timeout = opt->timeout,
				.remarks = &remarks,
			},
	};
	return 0;
}

/* ---- the commands ---- */

static int print(const struct buf *text, struct err *e)
{
	int ret = text->failed ? -ENOMEM : file_write_fd(STDOUT_FILENO, text->data, text->len);

	return ret ? err_sys(e, -ret, ERR_IO, "failed to write to standard output") : 0;
}

static int print_result(const struct result *r, const char *version, struct err *e)
{
	autobuf text = {0};

	return result_write(r, version, &text, e) ? -1 : print(&text, e);
}

static int tool_add(const struct context *c, const struct conflist *l, struct err *e)
{
	return attachment_add(&c->rt, l, print_result, e);
}

static int tool_check(const struct context *c, const struct conflist *l, struct err *e)
{
	return attachment_check(&c->rt, l, e);
}

static int tool_gc(const struct context *c, const struct conflist *l, struct err *e)
{
	autojson *valid = json_new_array();

	if (!valid)
		return err_memory(e);
	for (size_t i = 0; i < c->opt->valid_len; i++)
		if (valid_add_pair(valid, c->opt->valid[i], e))
			return -1;
	if (c->opt->valid_file && valid_add_file(valid, c->opt->valid_file, e))
		return -1;
	return attachment_gc(&c->rt, l, valid, e);
}

static int tool_status(const struct context *c, const struct conflist *l, struct err *e)
{
	int cmp;

	if (cni_version_cmp(l->version, "1.1.0", &cmp, e))
		return -1;
	return cmp < 0 ? 0 : list_status(l, &c->rt.attach, e);
}

static int tool_version(const struct context *c, const struct conflist *l, struct err *e)
{
	for (size_t i = 0; i < l->len; i++) {
		autobuf versions = {0};
		autoerr one = {0};

		if (list_version(l, i, &c->rt.attach, &versions, &one)) {
			err_merge(e, &one);
			continue;
		}
		printf("%s: %s\n", l->plugins[i].type, versions.data ? versions.data : "");
	}
	return e->set ? -1 : 0;
}

static int tool_show(const struct options *o, struct err *e)
{
	autojson *inv = inventory(o->conf_dir, o->cache_dir, &remarks, e);
	autobuf out = {0};

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
	return print(&out, e);
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
	if (cmd != DEL && conflist_find(&l, o->conf_dir, network, &remarks, e))
		return -1;
	if (prepare(&c, o, netns, cmd <= CHECK, e))
		return -1;
	return cmd == DEL ? attachment_del(&c.rt, network, e) : commands[cmd].run(&c, &l, e);
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
