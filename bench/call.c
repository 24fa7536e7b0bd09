#include "call.h"

#include "series.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int in_pipe(const char *text)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		die("pipe");
	if (write(p[1], text, strlen(text)) != (ssize_t)strlen(text))
		die("write");
	close(p[1]);
	return p[0];
}

static char *drain(int fd)
{
	char *text = calloc(1, 65537);
	ssize_t got;
	size_t len = 0;

	while (len < 65536 && (got = read(fd, text + len, 65536 - len)) > 0)
		len += (size_t)got;
	return text;
}

static long peak_of(pid_t pid)
{
	char path[64], line[256];
	long kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

/* Follows a stopped child and all it starts to their ends. ru_maxrss would not do: it starts with
 * what the parent had when it forked. */
static int follow(pid_t pid, struct call *c)
{
	const long options = PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK |
			     PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
	int status, result = -1;
	pid_t who;

	waitpid(pid, &status, WUNTRACED);
	if (ptrace(PTRACE_SEIZE, pid, 0, options))
		die("ptrace");
	kill(pid, SIGCONT);
	while ((who = waitpid(-1, &status, __WALL)) > 0) {
		int event = status >> 16, sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

		if (!WIFSTOPPED(status)) {
			result = who == pid ? status : result;
			continue;
		}
		if (event == PTRACE_EVENT_EXIT && peak_of(who) > c->peak_kb)
			c->peak_kb = peak_of(who);
		c->programs += event == PTRACE_EVENT_EXEC;
		ptrace(PTRACE_CONT, who, 0, event || sig == SIGTRAP ? 0 : sig);
	}
	return result;
}

static pid_t start_stopped(const char *path, char *const *argv, char *const *env, const int *io)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (int i = 0; i < 3; i++)
		dup2(io[i], i);
	raise(SIGSTOP);
	execve(path, argv, env);
	_exit(127);
}

static pid_t start(const char *path, char *const *argv, char *const *env, const int *io)
{
	posix_spawn_file_actions_t files;
	pid_t pid;
	int error;

	posix_spawn_file_actions_init(&files);
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&files, io[i], i);
	error = posix_spawn(&pid, path, &files, NULL, argv, env);
	posix_spawn_file_actions_destroy(&files);
	if (error) {
		errno = error;
		die(path);
	}
	return pid;
}

static volatile pid_t running;

void late(int sig)
{
	(void)sig;
	if (running > 0)
		kill(running, SIGKILL);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void fill_env(char *env[static 8], const struct call *c)
{
	int n = 0;

	env[n++] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	asprintf(&env[n++], "CNI_COMMAND=%s", c->verb);
	asprintf(&env[n++], "CNI_CONTAINERID=%s", c->id);
	asprintf(&env[n++], "CNI_NETNS=%s", c->netns);
	asprintf(&env[n++], "CNI_IFNAME=%s", strstr(c->path, "loopback") ? "lo" : "eth0");
	asprintf(&env[n++], "CNI_PATH=%s", c->dir);
	env[n] = NULL;
}

static void give_up(const struct call *c, int stderr_fd)
{
	lseek(stderr_fd, 0, SEEK_SET);
	fprintf(stderr, "bench: %s %s: status %#x\n%s\n%s\n", c->verb, c->path,
		(unsigned int)c->status, c->output, drain(stderr_fd));
	exit(1);
}

void call(struct call *c)
{
	char *env[8], *plain[2] = {(char *)c->path, NULL};
	char *const *argv = c->argv ? c->argv : plain;
	int out[2], io[3];
	struct rusage used = {0};
	double from;
	pid_t pid;

	fill_env(env, c);
	if (pipe2(out, O_CLOEXEC) < 0)
		die("pipe");
	io[0] = in_pipe(c->input);
	io[1] = out[1];
	io[2] = memfd_create("stderr", MFD_CLOEXEC);

	alarm(30);
	from = now_ms();
	if (c->trace) {
		pid = running = start_stopped(c->path, argv, env, io);
		c->status = follow(pid, c);
	} else {
		pid = running = start(c->path, argv, env, io);
		wait4(pid, &c->status, 0, &used);
	}
	c->ms = now_ms() - from;
	c->cpu_ms = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
		    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
	alarm(0);

	close(io[0]);
	close(out[1]);
	c->output = drain(out[0]);
	if (c->status && !c->may_fail)
		give_up(c, io[2]);
	close(out[0]);
	close(io[2]);
	for (int i = 1; env[i]; i++)
		free(env[i]);
}
