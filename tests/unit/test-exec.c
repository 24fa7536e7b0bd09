/* src/cni: finding plugins, executing them, delegating to them, and an applet that is a program
 * too. */
#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cni/delegate.h"
#include "cni/exec.h"
#include "cni/run.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/test-exec.XXXXXX", plugins[sizeof(dir) + 2]; /* dir and "/b" */

static const char *in_dir(const char *name)
{
	static char path[2][PATH_MAX];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
	return path[turn];
}

/* A plugin that is a shell script. */
static void script(const char *name, const char *body, mode_t mode)
{
	FILE *f = fopen(in_dir(name), "w");

	if (!CHECK(f != NULL))
		exit(1);
	fprintf(f, "#!/bin/sh\n%s\n", body);
	fclose(f);
	CHECK(!chmod(in_dir(name), mode));
}

/* ---- finding ---- */

static void test_find(void)
{
	const struct applet *applet;
	char path[3 * PATH_MAX];
	const char *type;

	CHECK(!mkdir(in_dir("a"), 0755) && !mkdir(in_dir("b"), 0755));
	script("a/dead", "", 0644);
	script("a/both", "", 0644);
	script("b/both", "", 0755);
	CHECK(!mkdir(in_dir("a/folder"), 0755));
	script("b/folder", "", 0755);
	CHECK(!symlink("/proc/self/exe", in_dir("b/loopback")));
	CHECK(!symlink("/proc/self/exe", in_dir("b/cnitool")));
	CHECK(!symlink("/proc/self/exe", in_dir("b/nosuch")));
	snprintf(path, sizeof(path), ":%s::/nowhere:%s:", in_dir("a"), in_dir("b"));
	static const struct {
		const char *type, *file, *applet;
	} cases[] = {
		{"dead", "a/dead", NULL}, /* the error of executing it tells most */
		{"both", "b/both", NULL},
		{"folder", "b/folder", NULL},
		{"loopback", "b/loopback", "loopback"},
		{"cnitool", "b/cnitool", NULL}, /* no plugin, so it is executed like any file */
		{"nosuch", "b/nosuch", NULL},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		autofree char *file = NULL;
		autoerr e = {0};

		type = cases[i].type;
		CHECK(!plugin_find(path, type, &file, &applet, &e));
		CHECK_STR(file, in_dir(cases[i].file));
		CHECK_STR(applet ? applet->name : NULL, cases[i].applet);
	}
}

static void test_not_found(void)
{
	static const struct {
		const char *path, *type;
		int code;
		const char *msg;
	} cases[] = {
		{"/none:/nil", "x", ERR_PLUGIN, "failed to find plugin \"x\" in path [/none /nil]"},
		{"", "x", ERR_INVALID_ENVIRONMENT, "no paths provided"},
		{"/none", "", ERR_INVALID_CONFIG, "no plugin name provided"},
		{"/none", "../x", ERR_INVALID_CONFIG, "invalid plugin name: ../x"},
		{"/none", "..", ERR_INVALID_CONFIG, "invalid plugin name: .."},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		const struct applet *applet;
		autofree char *file = NULL;
		autoerr e = {0};

		CHECK_INT(plugin_find(cases[i].path, cases[i].type, &file, &applet, &e), -1);
		CHECK_INT(e.code, cases[i].code);
		CHECK_STR(e.msg, cases[i].msg);
		CHECK(!file);
	}
}

/* ---- environment ---- */

static const char *get(char **env, const char *name)
{
	size_t len = strlen(name);
	const char *found = NULL;
	int n = 0;

	for (; *env; env++) {
		if (strncmp(*env, name, len) != 0 || (*env)[len] != '=')
			continue;
		found = *env + len + 1;
		n++;
	}
	CHECK(n <= 1);
	return found;
}

static void test_env(void)
{
	struct call call = {.command = "ADD",
		.id = "c1",
		.netns = "/n",
		.ifname = "eth0",
		.args = "",
		.path = "/p:/q"};
	char **env;

	setenv("CNI_COMMAND", "DEL", 1);
	setenv("CNI_ARGS", "A=b", 1);
	setenv("CNI_NETNS_OVERRIDE", "1", 1);
	env = plugin_env(&call, true);
	CHECK_STR(get(env, "CNI_COMMAND"), "ADD");
	CHECK_STR(get(env, "CNI_ARGS"), "");
	CHECK_STR(get(env, "CNI_PATH"), "/p:/q");
	CHECK_STR(get(env, "CNI_NETNS_OVERRIDE"), "1");
	CHECK_STR(get(env, "PATH"), getenv("PATH"));
	free(env);
	env = plugin_env(&call, false);
	CHECK_STR(get(env, "CNI_ARGS"), NULL);
	free(env);
	unsetenv("CNI_COMMAND");
	unsetenv("CNI_ARGS");
	unsetenv("CNI_NETNS_OVERRIDE");
}

/* ---- executing ---- */

static void test_exec(void)
{
	static const struct {
		const char *body;
		enum plugin_end end;
		int code;
		const char *text; /* stdout, or the message */
	} cases[] = {
		{"cat", PLUGIN_DONE, 0, "stdin"},
		{"exit 0", PLUGIN_DONE, 0, ""},
		{"echo '{\"code\":11,\"msg\":\"later\"}'; exit 1", PLUGIN_REFUSED, 11, "later"},
		{"echo '{\"code\":0,\"msg\":\"m\"}'; exit 1", PLUGIN_REFUSED, ERR_PLUGIN, "m"},
		{"echo no >&2; exit 3", PLUGIN_REFUSED, ERR_PLUGIN,
			"netplugin failed: \"no\\n\": exit status 3"},
		{"exit 3", PLUGIN_REFUSED, ERR_PLUGIN,
			"netplugin failed with no error message: exit status 3"},
		{"kill -KILL $$", PLUGIN_CRASHED, ERR_PLUGIN,
			"netplugin failed with no error message: signal: killed"},
		{"exec sleep 60", PLUGIN_CRASHED, ERR_PLUGIN,
			"plugin \"x\" did not finish within 500 ms and was killed"},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		struct plugin_run run = {.type = "x", .text = "stdin", .len = 5};
		autofree char *out = NULL;
		autoerr e = {0};
		enum plugin_end end;
		size_t len;
		int ret;

		script("x", cases[i].body, 0755);
		run.file = in_dir("x");
		/* Only the one that never ends may run into it, however slow the machine is. */
		run.timeout = strstr(cases[i].body, "sleep") ? 500 : 0;
		ret = plugin_exec(&run, &out, &len, &end, &e);
		CHECK_INT(end, cases[i].end);
		CHECK_INT(e.code, cases[i].code);
		CHECK_STR(ret ? e.msg : out, cases[i].text);
	}
}

static void test_not_started(void)
{
	struct plugin_run run = {.file = "/none/x", .type = "x", .text = "", .len = 0};
	autofree char *out = NULL;
	autoerr e = {0};
	enum plugin_end end;
	size_t len;

	CHECK_INT(plugin_exec(&run, &out, &len, &end, &e), -1);
	CHECK_INT(end, PLUGIN_NOT_CALLED);
	CHECK_INT(e.code, ERR_PLUGIN);
}

static void test_result(void)
{
	static const struct {
		const char *text;
		int code; /* 0: fine */
		size_t ips;
	} cases[] = {
		{"null", 0, 0},
		{"{}", 0, 0},
		{"{\"ips\":[{\"address\":\"10.1.0.2/16\"}]}", 0, 1},
		{"{\"cniVersion\":\"\",\"ips\":[{\"address\":\"10.1.0.2/16\"}]}", 0, 1},
		{"{\"cniVersion\":\"0.2.0\",\"ip4\":{\"ip\":\"10.1.0.2/16\"}}", 0, 1},
		{"{\"code\":11,\"msg\":\"later\"}", 11, 0},
		{"[]", ERR_DECODE, 0},
		{"{", ERR_DECODE, 0},
		{"{\"cniVersion\":\"9.9.9\"}", ERR_DECODE, 0},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		autoresult r = {0};
		autoerr e = {0};
		int ret = plugin_result(cases[i].text, strlen(cases[i].text), "1.0.0", &r, &e);

		CHECK_INT(ret, cases[i].code ? -1 : 0);
		CHECK_INT(e.code, cases[i].code);
		CHECK_INT((long long)r.ips_len, (long long)cases[i].ips);
	}
}

/* ---- delegating ---- */

static const struct applet caller = {.name = "caller", .kind = APPLET_META};

static struct request request(const char *text)
{
	return (struct request){
		.id = "c1",
		.netns = "/none/netns",
		.ifname = "eth0",
		.args = "",
		.path = plugins,
		.applet = &caller,
		.text = text,
		.text_len = strlen(text),
		.version = "1.0.0",
	};
}

/* portmap hands on its prevResult when nothing is to be mapped: a plugin of another kind than IPAM
 * that needs nothing, run in this process with a stdin of the caller's making. */
static void test_delegate_inside(void)
{
	static const char text[] =
		"{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"type\":\"portmap\",\"prevResult\":"
		"{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.1.0.2/16\"}]}}";
	struct request req = request(text), below;
	autoresult r = {0}, none = {0};
	struct undo undo = {0};
	autoerr e = {0}, f = {0}, g = {0};

	if (!applet_find("portmap"))
		return;
	CHECK(!symlink("/proc/self/exe", in_dir("b/portmap")));
	CHECK_INT(delegate_add(&req, "portmap", &undo, &r, &e), 0);
	CHECK_INT((long long)r.ips_len, 1);
	undo_commit(&undo);
	CHECK_INT(delegate_call(&req, "portmap", VERB_DEL, &f), 0);
	/* The applet at work below is portmap already. */
	below = request(text);
	below.applet = applet_find("portmap");
	req = request(text);
	req.caller = &below;
	CHECK_INT(delegate_add(&req, "portmap", &undo, &none, &g), -1);
	CHECK_INT(g.code, ERR_INVALID_CONFIG);
	CHECK_STR(g.msg, "plugin \"portmap\" would call itself through its delegate");
}

/* What an executed delegate is given is what the request says. */
static void test_delegate_outside(void)
{
	struct request req = request("{\"mine\":1}");
	autoresult r = {0};
	struct undo undo = {0};
	autofree char *log = NULL;
	autobuf text = {0};
	autoerr e = {0};
	FILE *f;
	char line[200];

	script("b/third",
		"echo $CNI_COMMAND $(cat) >>${0%/*}/log\n"
		"echo '{\"ips\":[{\"address\":\"10.1.0.2/16\"}]}'",
		0755);
	CHECK_INT(delegate_add(&req, "third", &undo, &r, &e), 0);
	CHECK_INT((long long)r.ips_len, 1);
	undo_run(&undo);
	f = fopen(in_dir("b/log"), "r");
	while (f && fgets(line, sizeof(line), f))
		buf_puts(&text, line);
	if (f)
		fclose(f);
	CHECK_STR(text.data, "ADD {\"mine\":1}\nDEL {\"mine\":1}\n");
}

static void test_ipam_type(void)
{
	static const struct {
		const char *conf, *type;
		int ret;
	} cases[] = {
		{"{}", NULL, 0},
		{"{\"ipam\":{}}", NULL, 0},
		{"{\"ipam\":{\"type\":\"\"}}", NULL, 0},
		{"{\"ipam\":{\"type\":\"host-local\"}}", "host-local", 0},
		{"{\"ipam\":{\"type\":\"third\"}}", "third", 0},
		{"{\"ipam\":{\"type\":7}}", NULL, -1},
		{"{\"ipam\":{\"type\":\"loopback\"}}", "loopback", -1},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		autoerr e = {0};
		autojson *conf = json_parse(cases[i].conf, strlen(cases[i].conf), ERR_DECODE, &e);
		struct request req = {.conf = conf};
		const char *type;

		CHECK_INT(delegate_ipam_type(&req, &type, &e), cases[i].ret);
		if (!cases[i].ret)
			CHECK_STR(type, cases[i].type);
	}
}

/* ---- plugin and program ---- */

static int program_argc;

static int program(int argc, char **argv)
{
	(void)argv;
	program_argc = argc;
	return 42;
}

/* With standard output and error out of the way, so that only checks speak. */
static int run_quietly(const struct applet *a, int argc)
{
	char *argv[] = {(char *)"both", (char *)"daemon", NULL};
	int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
	int status;

	fflush(stdout);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	program_argc = 0;
	status = run_applet(a, argc, argv);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(out);
	close(err);
	close(null);
	return status;
}

static void test_program(void)
{
	const struct applet both = {
		.name = "both", .help = "h", .kind = APPLET_IPAM, .program = program};
	const struct applet tool = {.name = "tool", .kind = APPLET_TOOL, .program = program};

	CHECK_INT(run_quietly(&both, 2), 42);
	CHECK_INT(program_argc, 2);
	/* Without arguments it says what it is, as every plugin. */
	CHECK_INT(run_quietly(&both, 1), 0);
	CHECK_INT(program_argc, 0);
	/* Whoever sets a command means the plugin. */
	setenv("CNI_COMMAND", "VERSION", 1);
	CHECK_INT(run_quietly(&both, 2), 0);
	CHECK_INT(program_argc, 0);
	CHECK_INT(run_quietly(&tool, 1), 42);
	unsetenv("CNI_COMMAND");
}

int main(void)
{
	char cmd[PATH_MAX];

	/* As every program of ours does: a plugin need not read its stdin. */
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(dir))
		return 1;
	snprintf(plugins, sizeof(plugins), "%s/b", dir);
	test_find();
	test_not_found();
	test_env();
	test_exec();
	test_not_started();
	test_result();
	test_delegate_inside();
	test_delegate_outside();
	test_ipam_type();
	test_program();
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	CHECK(!system(cmd));
	return check_done();
}
