/* Whole calls: "PLUGIN VERB CNI_ARGS", a line feed, the config. A plugin is named, not numbered, so
 * that the corpus stays what it is when one more is built, and a seed of one that is not built is
 * nothing. There is no network namespace to do anything in; the calls run in namespaces of their
 * own, with a file system that cannot be written to but for empty private directories in the usual
 * places. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "cni/applet.h"
#include "cni/error.h"
#include "cni/run.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MOUNT_ATTR_RDONLY
#include <linux/mount.h>
#endif

int LLVMFuzzerInitialize(int *argc, char ***argv);

static void must(int failed, const char *what)
{
	if (failed) {
		fprintf(stderr, "fuzz-config: %s: %s (it needs root)\n", what, strerror(errno));
		exit(77);
	}
}

static void set_readonly(const char *path, unsigned flags, bool readonly)
{
	struct mount_attr a = {0};

	if (readonly)
		a.attr_set = MOUNT_ATTR_RDONLY;
	else
		a.attr_clr = MOUNT_ATTR_RDONLY;
	must(syscall(SYS_mount_setattr, AT_FDCWD, path, flags, &a, sizeof(a)) < 0, path);
}

/* FUZZ_DIR stays writable: that is where findings go. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *out = getenv("FUZZ_DIR");

	(void)argc;
	(void)argv;
	fuzz_keep_signals();
	must(unshare(CLONE_NEWNS | CLONE_NEWNET), "unshare");
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "/");
	if (out)
		must(mount(out, out, NULL, MS_BIND, NULL), out);
	set_readonly("/", 0x8000 /* AT_RECURSIVE */, true);
	if (out)
		set_readonly(out, 0, false);
	must(mount("fuzz", "/run", "tmpfs", 0, NULL), "/run");
	must(mount("fuzz", "/var/lib", "tmpfs", 0, "size=64m"), "/var/lib");
	return 0;
}

static void check_output(const struct applet *a, const struct call *call, struct outcome *out,
	const struct err *e, int ret)
{
	autobuf text = {0};
	autoerr why = {0};
	autojson *doc = NULL;

	(void)a;
	if (ret)
		write_error(e, out->req.version, &text);
	else if (out->req.verb != VERB_ADD ||
		 result_write(&out->reply.result, out->req.version, &text, &why))
		return;
	doc = json_parse(text.data, text.len, ERR_DECODE, &why);
	MUST(doc && json_is_object(doc));
	MUST(call->len || ret);
}

/* What stands in the first line; NULL when that is no call. */
static const struct applet *read_head(char *line, const char **verb, const char **args)
{
	static const char *const verbs[] = {"ADD", "DEL", "CHECK", "GC", "STATUS"};
	const char *name = strsep(&line, " "), *word = line ? strsep(&line, " ") : NULL;
	const struct applet *a = applet_find(name);

	if (!line || !a || !a->add)
		return NULL;
	for (size_t i = 0; i < array_len(verbs); i++) {
		if (!strcmp(verbs[i], word)) {
			*verb = verbs[i];
			*args = line;
			return a;
		}
	}
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct applet *a;
	struct outcome out = {0};
	autofree char *head = NULL, *text = NULL;
	struct call call = {
		.id = "fuzz", .netns = "/run/netns/none", .ifname = "eth0", .path = "/run/none"};
	const uint8_t *end = memchr(data, '\n', size);
	autoerr e = {0};
	int ret;

	if (!end)
		return 0;
	head = strndup((const char *)data, (size_t)(end - data));
	MUST(head);
	a = read_head(head, &call.command, &call.args);
	if (!a)
		return 0;
	/* To the byte, so that reading beyond it is seen. */
	call.len = size - (size_t)(end + 1 - data);
	text = malloc(call.len + 1);
	MUST(text);
	memcpy(text, end + 1, call.len);
	text[call.len] = '\0';
	call.text = text;
	if (!strcmp(call.command, "GC") || !strcmp(call.command, "STATUS"))
		call.id = call.netns = call.ifname = "";
	ret = call_applet(a, &call, &out, &e);
	MUST(!ret == !e.set);
	check_output(a, &call, &out, &e, ret);
	undo_run(&out.reply.undo);
	outcome_free(&out);
	return 0;
}
