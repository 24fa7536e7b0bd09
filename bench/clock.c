/* clock FILE COMMAND...: runs the command and appends the milliseconds from posix_spawn until it is
 * reaped to FILE, and those of CPU it and its children used, a line. The exit status is the
 * command's. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	struct rusage used;
	double from, to, cpu;
	int status;
	pid_t pid;
	FILE *f;

	if (argc < 3)
		return 2;
	from = now_ms();
	if (posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ))
		return 127;
	waitpid(pid, &status, 0);
	to = now_ms();
	getrusage(RUSAGE_CHILDREN, &used);
	cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
	      (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
	f = fopen(argv[1], "ae");
	if (!f || fprintf(f, "%.4f %.4f\n", to - from, cpu) < 0 || fclose(f))
		return 2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
