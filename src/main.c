/* cnibox: every CNI plugin in one binary. Which one runs is decided by the name it is called by, or
 * by the first argument of `cnibox`. */
#include "base/trace.h"
#include "cni/applet.h"
#include "cni/run.h"
#include "install.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
		return run_applet(a, argc - 1, argv + 1);
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
	status = a ? run_applet(a, argc, argv) : run_box(argc, argv);
	/* Some C libraries tell of a failed write only once: when it was tried. */
	return fflush(stdout) || ferror(stdout) ? 1 : status;
}
