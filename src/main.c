/* cnibox: every CNI plugin in one binary. Which one runs is decided by the name it is called by, or
 * by the first argument of `cnibox`. */
#include "base/cleanup.h"
#include "base/trace.h"
#include "cni/applet.h"
#include "cni/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Descriptors 0 to 2 must be something, or the first socket opened would take the place of standard
 * output. What was closed stays useless: reading ends at once, writing fails. */
static void hold_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int run(const struct applet *a, int argc, char **argv)
{
	return a->tool ? a->tool(argc, argv) : run_applet(a);
}

static const char *const kinds[] = {
	[APPLET_MAIN] = "main",
	[APPLET_IPAM] = "ipam",
	[APPLET_META] = "meta",
	[APPLET_TOOL] = "tool",
};

static int usage(void)
{
	puts("cnibox " CNIBOX_VERSION ": CNI plugins in one binary\n\n"
	     "Usage:\n"
	     "  cnibox APPLET [ARG...]   run an applet\n"
	     "  cnibox --install DIR     make a symlink to this binary in DIR for each applet\n"
	     "  cnibox --list            print the names of the applets\n"
	     "  cnibox --version         print the version\n"
	     "  cnibox --help            print this\n\n"
	     "Called by the name of an applet (through a symlink, a hard link or a copy) it is that "
	     "applet.\n\nApplets:");
	for (size_t i = 0; applets[i]; i++)
		printf("  %-12s %-5s %s\n", applets[i]->name, kinds[applets[i]->kind],
			applets[i]->help);
	puts("\nEnvironment:\n"
	     "  CNIBOX_TRACE=FILE        write one line per step to the file (stderr: to standard "
	     "error)");
	return 0;
}

/* ---- --install ---- */

/* The way from one directory to a file, both absolute and free of symlinks: "../../lib/cnibox". */
static void relative(const char *dir, const char *file, char out[static PATH_MAX])
{
	size_t common = 0, n = 0;

	for (size_t i = 0; dir[i] == file[i] || (!dir[i] && file[i] == '/'); i++) {
		if (file[i] == '/')
			common = i;
		if (!dir[i])
			break;
	}
	out[0] = '\0';
	for (const char *s = dir + common; *s; s++)
		if (*s == '/' && s[1] && n + 3 < PATH_MAX)
			n += (size_t)snprintf(out + n, PATH_MAX - n, "../");
	snprintf(out + n, PATH_MAX - n, "%s", file + common + 1);
}

/* By rename, so that a plugin being called never finds its name missing. What is there and is no
 * symlink belongs to somebody else. */
static int install_one(const char *dir, const char *name, const char *target)
{
	char path[PATH_MAX], temp[PATH_MAX], now[PATH_MAX];
	struct stat st;
	ssize_t len;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= PATH_MAX ||
		snprintf(temp, sizeof(temp), "%s/.%s.tmp", dir, name) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	len = readlink(path, now, sizeof(now) - 1);
	if (len >= 0) {
		now[len] = '\0';
		if (!strcmp(now, target))
			return 0;
	} else if (!lstat(path, &st)) {
		errno = EEXIST;
		return -1;
	}
	unlink(temp);
	return symlink(target, temp) < 0 || rename(temp, path) < 0 ? -1 : 0;
}

static int install(const char *dir)
{
	char self[PATH_MAX], real[PATH_MAX], target[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int status = 0;

	if (len < 0 || ((mkdir(dir, 0755) < 0) && errno != EEXIST) || !realpath(dir, real)) {
		fprintf(stderr, "cnibox: %s: %m\n", dir);
		return 1;
	}
	self[len] = '\0';
	relative(real, self, target);
	for (size_t i = 0; applets[i]; i++) {
		if (install_one(real, applets[i]->name, target) < 0) {
			fprintf(stderr, "cnibox: %s/%s: %m\n", dir, applets[i]->name);
			status = 1;
		}
	}
	return status;
}

static int run_box(int argc, char **argv)
{
	const char *arg = argc > 1 ? argv[1] : "--help";
	const struct applet *a;

	if (!strcmp(arg, "--help") || !strcmp(arg, "-h"))
		return usage();
	if (!strcmp(arg, "--version")) {
		puts("cnibox " CNIBOX_VERSION);
		return 0;
	}
	if (!strcmp(arg, "--list")) {
		for (size_t i = 0; applets[i]; i++)
			puts(applets[i]->name);
		return 0;
	}
	if (!strcmp(arg, "--install")) {
		if (argc == 3)
			return install(argv[2]);
		fputs("cnibox: --install needs a directory\n", stderr);
		return 2;
	}
	a = applet_find(arg);
	if (a)
		return run(a, argc - 1, argv + 1);
	fprintf(stderr, "cnibox: no applet \"%s\"; `cnibox --list` names them\n", arg);
	return 2;
}

int main(int argc, char **argv)
{
	const char *name = argc && argv[0] ? strrchr(argv[0], '/') : NULL;
	const struct applet *a;
	int status;

	hold_standard_descriptors();
	trace_init();
	name = name ? name + 1 : argc && argv[0] ? argv[0] : "cnibox";
	a = applet_find(name);
	status = a ? run(a, argc, argv) : run_box(argc, argv);
	return fflush(stdout) ? 1 : status;
}
