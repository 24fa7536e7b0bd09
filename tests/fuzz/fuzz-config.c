/* Whole calls: the first byte chooses the plugin, the second the verb, up to the first line feed
 * comes CNI_ARGS, then the config. There is no network namespace to do anything in; the calls run
 * in namespaces of their own, with a file system that cannot be written to but for empty private
 * directories in the usual places. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "cni/applet.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const verbs[] = {"ADD", "DEL", "CHECK", "GC", "STATUS", "ADD"};
	const struct applet *a;
	struct outcome out = {0};
	autofree char *args = NULL, *text = NULL;
	struct call call;
	const uint8_t *end;
	autoerr e = {0};
	size_t count = 0;
	int ret;

	if (size < 3)
		return 0;
	while (applets[count])
		count++;
	a = applets[data[0] % count];
	if (!applet_is_plugin(a))
		return 0;
	end = memchr(data + 2, '\n', size - 2);
	if (!end)
		return 0;
	args = strndup((const char *)data + 2, (size_t)(end - data) - 2);
	size -= (size_t)(end + 1 - data);
	/* To the byte, so that reading beyond it is seen. */
	text = malloc(size + 1);
	MUST(args && text);
	memcpy(text, end + 1, size);
	text[size] = '\0';
	call = (struct call){
		.command = verbs[data[1] % array_len(verbs)],
		.id = "fuzz",
		.netns = "/run/netns/none",
		.ifname = "eth0",
		.args = args,
		.path = "/run/none",
		.text = text,
		.len = size,
	};
	if (!strcmp(call.command, "GC") || !strcmp(call.command, "STATUS"))
		call.id = call.netns = call.ifname = "";
	ret = call_applet(a, &call, &out, &e);
	MUST(!ret == !e.set);
	check_output(a, &call, &out, &e, ret);
	undo_run(&out.reply.undo);
	outcome_free(&out);
	return 0;
}
