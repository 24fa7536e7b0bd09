#include "cni/exec.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "cni/run.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MAX_OUTPUT (16u << 20)
#define MAX_STDERR 4096

/* ---- finding ---- */

static bool is_self(const struct stat *st)
{
	struct stat own;

	return !stat("/proc/self/exe", &own) && own.st_dev == st->st_dev &&
	       own.st_ino == st->st_ino;
}

static int not_found(const char *path, const char *type, struct err *e)
{
	autofree char *list = strdup(path);

	for (char *s = list; s && *s; s++)
		if (*s == ':')
			*s = ' ';
	return err_set(
		e, ERR_PLUGIN, "failed to find plugin \"%s\" in path [%s]", type, list ? list : "");
}

/* 1 when it is a file that can be executed, 0 when it is a file that cannot, -1 when it is none. */
static int look_at(const char *candidate, struct stat *st)
{
	if (stat(candidate, st) < 0 || !S_ISREG(st->st_mode))
		return -1;
	return (st->st_mode & 0111) != 0;
}

/* The file in the first directory of the path that has it. 1 when found, 0, or -1 with e set. */
static int search(const char *path, const char *type, char **file, struct stat *st, struct err *e)
{
	autofree char *dead = NULL; /* not executable: the error of executing it tells most */

	for (const char *dir = path, *end; dir; dir = *end ? end + 1 : NULL) {
		autofree char *candidate = NULL;
		int kind;

		end = strchrnul(dir, ':');
		/* Whoever wrote "$EXTRA:/opt/cni/bin" did not mean the current directory. */
		if (end == dir)
			continue;
		if (asprintf(&candidate, "%.*s/%s", (int)(end - dir), dir, type) < 0) {
			candidate = NULL;
			return err_memory(e);
		}
		kind = look_at(candidate, st);
		if (kind > 0) {
			*file = take_ptr(candidate);
			return 1;
		}
		if (!kind && !dead)
			dead = take_ptr(candidate);
	}
	*st = (struct stat){0};
	*file = take_ptr(dead);
	return *file != NULL;
}

int plugin_find(const char *path, const char *type, char **file, const struct applet **applet,
	struct err *e)
{
	struct stat st;
	int found;

	*applet = NULL;
	if (!*type)
		return err_set(e, ERR_INVALID_CONFIG, "no plugin name provided");
	if (strchr(type, '/') || !strcmp(type, ".") || !strcmp(type, ".."))
		return err_set(e, ERR_INVALID_CONFIG, "invalid plugin name: %s", type);
	if (!*path)
		return err_set(e, ERR_INVALID_ENVIRONMENT, "no paths provided");
	found = search(path, type, file, &st, e);
	if (found <= 0)
		return found < 0 ? -1 : not_found(path, type, e);
	if (is_self(&st))
		*applet = applet_find(type);
	if (*applet && !applet_is_plugin(*applet))
		*applet = NULL;
	return 0;
}

/* ---- environment ---- */

extern char **environ;

char **plugin_env(const struct call *call, bool all)
{
	const struct {
		const char *name, *value;
	} vars[] = {
		{"CNI_COMMAND", call->command},
		{"CNI_CONTAINERID", call->id},
		{"CNI_NETNS", call->netns},
		{"CNI_ARGS", call->args},
		{"CNI_IFNAME", call->ifname},
		{"CNI_PATH", call->path},
	};
	size_t n = 0, i = 0, size = 0;
	char **env, *text;

	while (environ[n])
		n++;
	for (size_t v = 0; v < array_len(vars); v++)
		size += strlen(vars[v].name) + strlen(vars[v].value) + 2;
	env = malloc((n + array_len(vars) + 1) * sizeof(*env) + size);
	if (!env)
		return NULL;
	text = (char *)(env + n + array_len(vars) + 1);
	for (size_t from = 0; from < n; from++) {
		bool ours = false;

		for (size_t v = 0; v < array_len(vars); v++) {
			size_t len = strlen(vars[v].name);

			ours = ours || (!strncmp(environ[from], vars[v].name, len) &&
					       environ[from][len] == '=');
		}
		if (!ours)
			env[i++] = environ[from];
	}
	for (size_t v = 0; v < array_len(vars); v++) {
		if (!all && !*vars[v].value)
			continue;
		env[i++] = text;
		text += sprintf(text, "%s=%s", vars[v].name, vars[v].value) + 1;
	}
	env[i] = NULL;
	return env;
}

/* ---- executing ---- */

struct child {
	pid_t pid;
	int in, out, err; /* our ends; -1 once closed */
	struct buf text, errors;
	bool too_much, timed_out;
};

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Our ends close on exec and never block; the child's ends are handed over by the spawn. */
static int make_pipe(int *ours, int *theirs, bool we_write)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	*ours = p[we_write ? 1 : 0];
	*theirs = p[we_write ? 0 : 1];
	return fcntl(*ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int spawn(const struct plugin_run *run, struct child *c, const int theirs[3])
{
	char *argv[] = {(char *)run->file, NULL};
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t defaults;
	int ret;

	if (posix_spawn_file_actions_init(&fa))
		return ENOMEM;
	if (posix_spawnattr_init(&attr)) {
		posix_spawn_file_actions_destroy(&fa);
		return ENOMEM;
	}
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&fa, theirs[i], i);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	/* A group of its own, so that a time-out takes its children along. */
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	ret = posix_spawn(&c->pid, run->file, &fa, &attr, argv, run->envp ? run->envp : environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&fa);
	return ret;
}

/* A binary that is being replaced is busy for a moment. */
static int spawn_patiently(const struct plugin_run *run, struct child *c, const int theirs[3])
{
	int ret = 0;

	for (int i = 0; i < 100; i++) {
		ret = spawn(run, c, theirs);
		if (ret != ETXTBSY)
			return ret;
		poll(NULL, 0, 50);
	}
	return ret;
}

static int start_child(const struct plugin_run *run, struct child *c)
{
	int theirs[3] = {-1, -1, -1};
	int ret = make_pipe(&c->in, &theirs[0], true);

	if (!ret)
		ret = make_pipe(&c->out, &theirs[1], false);
	if (!ret)
		ret = make_pipe(&c->err, &theirs[2], false);
	if (!ret)
		ret = -spawn_patiently(run, c, theirs);
	for (int i = 0; i < 3; i++)
		shut(&theirs[i]);
	return ret;
}

static void feed(const struct plugin_run *run, struct child *c, size_t *sent)
{
	ssize_t n = write(c->in, run->text + *sent, run->len - *sent);

	if (n > 0)
		*sent += (size_t)n;
	/* A plugin need not read its stdin. */
	if (*sent == run->len || (n < 0 && errno != EAGAIN && errno != EINTR))
		shut(&c->in);
}

static void take_stdout(struct child *c)
{
	char buf[16384];
	ssize_t n = read(c->out, buf, sizeof(buf));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		shut(&c->out);
	if (n <= 0)
		return;
	buf_put(&c->text, buf, (size_t)n);
	c->too_much = c->text.len > MAX_OUTPUT;
}

/* Passed on as it comes; its end is kept for the error. */
static void take_stderr(struct child *c)
{
	char buf[4096];
	ssize_t n = read(c->err, buf, sizeof(buf));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		shut(&c->err);
	if (n <= 0)
		return;
	file_write_fd(STDERR_FILENO, buf, (size_t)n);
	buf_put(&c->errors, buf, (size_t)n);
	if (c->errors.len > MAX_STDERR) {
		size_t cut = c->errors.len - MAX_STDERR;

		memmove(c->errors.data, c->errors.data + cut, MAX_STDERR + 1);
		c->errors.len = MAX_STDERR;
	}
}

static bool has_exited(const struct child *c)
{
	siginfo_t si = {0};

	return !waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | WNOWAIT) && si.si_pid;
}

/* How often it is asked whether a plugin that keeps its outputs open has exited, in milliseconds:
 * seldom enough to cost nothing, often enough for nobody to notice the wait. */
#define PATIENCE 200

/* Passes stdin on and takes what the plugin says until it has closed its outputs. Where a daemon
 * that it left behind holds them open, that never comes: then until the plugin itself has exited
 * and what it had said is read. */
static void converse(const struct plugin_run *run, struct child *c)
{
	int64_t asked = clock_ms(), end = asked + run->timeout, now;
	bool exited = false;
	size_t sent = 0;

	if (!run->len)
		shut(&c->in);
	while ((c->out >= 0 || c->err >= 0) && !c->too_much) {
		struct pollfd p[] = {
			{.fd = c->in, .events = POLLOUT},
			{.fd = c->out, .events = POLLIN},
			{.fd = c->err, .events = POLLIN},
		};
		int n = poll(p, array_len(p), exited ? 0 : PATIENCE);

		if (p[0].revents)
			feed(run, c, &sent);
		if (p[1].revents)
			take_stdout(c);
		if (p[2].revents)
			take_stderr(c);
		now = clock_ms();
		if (run->timeout && now >= end) {
			c->timed_out = true;
			return;
		}
		if (n && now - asked < PATIENCE)
			continue;
		if (exited)
			return;
		asked = now;
		exited = has_exited(c);
	}
}

/* Whatever process group it has put itself into. */
static void kill_child(const struct child *c)
{
	kill(-c->pid, SIGKILL);
	kill(c->pid, SIGKILL);
}

static int reap(struct child *c, int timeout)
{
	int64_t end = clock_ms() + timeout;
	int status = 0;
	pid_t got;

	/* One that wants more of its stdin than there is would wait for it for ever, and we for it.
	 */
	shut(&c->in);
	if (c->too_much || c->timed_out)
		kill_child(c);
	while (timeout && !c->timed_out && !c->too_much && !has_exited(c)) {
		if (clock_ms() >= end) {
			c->timed_out = true;
			kill_child(c);
			break;
		}
		poll(NULL, 0, 2);
	}
	do
		got = waitpid(c->pid, &status, 0);
	while (got < 0 && errno == EINTR);
	return status;
}

/* ---- what it said ---- */

/* How the process ended, in the words of libcni. */
static const char *ending(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "signal: %s", strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "exit status %d", WEXITSTATUS(status));
	for (char *s = text; WIFSIGNALED(status) && *s; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s |= 0x20;
	return text;
}

/* The error object in a document; false when it is not one. */
static bool error_object(const json *doc, struct err *e)
{
	const json *code = json_get(doc, "code"), *msg = json_get(doc, "msg");
	const char *details = json_str(json_get(doc, "details"));
	int64_t value = json_int(code);

	if (!json_is_object(doc) || (!code && !msg))
		return false;
	/* Zero is what a broken plugin says when it means nothing in particular. */
	err_set(e, value > 0 && value <= INT_MAX ? (int)value : ERR_PLUGIN, "%s",
		json_str(msg) ? json_str(msg) : "");
	if (details && *details)
		err_detail(e, "%s", details);
	return true;
}

static int failed(const struct child *c, int status, const char *type, struct err *e)
{
	autobuf quoted = {0};
	autoerr parse = {0};
	autojson *doc = NULL;
	char how[64];

	ending(status, how, sizeof(how));
	if (!c->text.len) {
		if (!c->errors.len)
			return err_set(
				e, ERR_PLUGIN, "netplugin failed with no error message: %s", how);
		json_write_string(&quoted, c->errors.data);
		return err_set(e, ERR_PLUGIN, "netplugin failed: %s: %s",
			quoted.data ? quoted.data : "", how);
	}
	doc = json_parse(c->text.data, c->text.len, ERR_PLUGIN, &parse);
	if (doc && error_object(doc, e))
		return -1;
	err_set(e, ERR_PLUGIN, "netplugin failed but error parsing its diagnostic message: %s",
		parse.set ? parse.msg : "no code and no msg in it");
	return err_detail(e, "plugin \"%s\", %s, printed: %.200s", type, how, c->text.data);
}

static int judge(const struct plugin_run *run, const struct child *c, int status, struct err *e)
{
	if (c->timed_out)
		return err_set(e, ERR_PLUGIN,
			"plugin \"%s\" did not finish within %d ms and was killed", run->type,
			run->timeout);
	if (c->too_much)
		return err_set(e, ERR_PLUGIN,
			"plugin \"%s\" printed more than %u bytes and was killed", run->type,
			MAX_OUTPUT);
	if (c->text.failed || c->errors.failed)
		return err_memory(e);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return failed(c, status, run->type, e);
	return 0;
}

static enum plugin_end end_of(const struct child *c, int status)
{
	if (c->timed_out || c->too_much || WIFSIGNALED(status))
		return PLUGIN_CRASHED;
	return WEXITSTATUS(status) ? PLUGIN_REFUSED : PLUGIN_DONE;
}

int plugin_exec(
	const struct plugin_run *run, char **out, size_t *len, enum plugin_end *end, struct err *e)
{
	struct child c = {.in = -1, .out = -1, .err = -1};
	int ret, status;

	if (end)
		*end = PLUGIN_NOT_CALLED;
	/* Ignored, as some callers leave it, it would swallow the exit status. */
	signal(SIGCHLD, SIG_DFL);
	ret = start_child(run, &c);
	if (ret) {
		err_sys(e, -ret, ERR_PLUGIN, "netplugin failed with no error message: fork/exec %s",
			run->file);
	} else {
		converse(run, &c);
		status = reap(&c, run->timeout);
		ret = judge(run, &c, status, e);
		if (end)
			*end = end_of(&c, status);
	}
	shut(&c.in);
	shut(&c.out);
	shut(&c.err);
	buf_free(&c.errors);
	if (!ret && out) {
		*len = c.text.len;
		*out = c.text.data ? take_ptr(c.text.data) : strdup("");
	}
	buf_free(&c.text);
	return ret ? -1 : 0;
}

int plugin_result(const char *out, size_t len, const char *version, struct result *r, struct err *e)
{
	autoerr parse = {0};
	autojson *doc = json_parse(out, len, ERR_DECODE, &parse);

	*r = (struct result){0};
	if (!doc) {
		err_set(e, ERR_DECODE, "failed to unmarshal raw result: %s", parse.msg);
		return parse.details ? err_detail(e, "%s", parse.details) : -1;
	}
	if (json_is_null(doc))
		return 0;
	if (!json_is_object(doc))
		return err_set(e, ERR_DECODE,
			"failed to unmarshal raw result: expected object, got %s",
			json_type_name(doc));
	if (!json_get(doc, "ips") && !json_get(doc, "interfaces") && !json_get(doc, "ip4") &&
		!json_get(doc, "ip6") && error_object(doc, e))
		return -1;
	/* An empty or non-string label counts as none. */
	if (!json_str(json_get(doc, "cniVersion")) || !*json_str(json_get(doc, "cniVersion"))) {
		json_del(doc, "cniVersion");
		if (json_set(doc, "cniVersion", json_new_string(*version ? version : "0.1.0")))
			return err_memory(e);
	}
	return result_read(r, doc, version, ERR_DECODE, e);
}
