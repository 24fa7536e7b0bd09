/* "attack inject": one program, its system calls listed or one of them struck. */
#include "inject.h"
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int inject_usage(void)
{
	fputs("attack inject [--kill N | --fail N=ERRNO | --sticky N=ERRNO] [--main] -- FILE ARG...\n",
		stderr);
	return 2;
}

static bool parse_fail(const char *text, struct injection *inj)
{
	const char *name = strchr(text, '=');

	inj->how = INJECT_FAIL;
	inj->at = (unsigned)atoi(text);
	for (int e = 1; name && e < 134; e++)
		if (!strcmp(errno_name(e), name + 1))
			inj->error = e;
	return inj->error != 0;
}

static char *all_of_stdin(size_t *len)
{
	char *text = malloc(1 << 20);

	*len = isatty(0) ? 0 : fread(text, 1, 1 << 20, stdin);
	return text;
}

int inject(char **argv)
{
	struct injection inj = {.how = INJECT_COUNT};
	struct ran r;
	size_t len;
	char *text;

	for (; *argv && strcmp(*argv, "--") != 0; argv++) {
		if (!strcmp(*argv, "--main")) {
			inj.from_main = true;
		} else if (!strcmp(*argv, "--kill") && argv[1]) {
			inj.how = INJECT_KILL;
			inj.at = (unsigned)atoi(*++argv);
		} else if ((!strcmp(*argv, "--fail") || !strcmp(*argv, "--sticky")) && argv[1]) {
			inj.sticky = argv[0][2] == 's';
			if (!parse_fail(*++argv, &inj))
				return inject_usage();
		} else {
			return inject_usage();
		}
	}
	if (!*argv || !argv[1])
		return inject_usage();
	text = all_of_stdin(&len);
	run_program(argv + 1, environ, text, len, &inj, 30000, &r);
	for (unsigned i = 0; i < r.calls_len; i++)
		fprintf(stderr, "%u %s %ld\n", i + 1, syscall_name(r.calls[i].nr), r.calls[i].arg);
	if (inj.how != INJECT_COUNT && !r.hit)
		fputs("attack: it makes fewer system calls\n", stderr);
	fputs(r.err, stderr);
	fwrite(r.out, 1, r.out_len, stdout);
	free(text);
	return WIFEXITED(r.status) ? WEXITSTATUS(r.status) : 128 + WTERMSIG(r.status);
}
