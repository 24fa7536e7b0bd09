#include "inject.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h> /* after sys/ptrace.h */

static void die(const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ---- names and errors ---- */

static const int of_read[] = {EIO, EINTR, 0};
static const int of_write[] = {ENOSPC, EIO, EINTR, 0};
static const int of_open[] = {EMFILE, ENOSPC, EIO, ENOMEM, EPERM, EINTR, 0};
static const int of_fd[] = {EMFILE, ENOMEM, EPERM, 0};
static const int of_memory[] = {ENOMEM, 0};
static const int of_socket[] = {ENOMEM, EPERM, EINTR, EIO, 0};
static const int of_dir[] = {ENOSPC, EIO, EPERM, ENOMEM, 0};
static const int of_look[] = {EIO, ENOMEM, EPERM, 0};
static const int of_wait[] = {EINTR, ENOMEM, 0};
static const int of_lock[] = {EINTR, ENOMEM, EIO, 0};
static const int of_enter[] = {EPERM, ENOMEM, 0};
static const int of_close[] = {EIO, EINTR, 0};
static const int of_nothing[] = {0};

/* Nothing: calls that cannot fail, or not as they are made here (getrandom of few bytes, ioctl only
 * to ask for a namespace's type). */
static const struct {
	long nr;
	const char *name;
	const int *errors;
} table[] = {
#define CALL(n, e)                                                                                 \
	{                                                                                          \
		SYS_##n, #n, e                                                                     \
	}
	CALL(read, of_read),
	CALL(pread64, of_read),
	CALL(write, of_write),
	CALL(pwrite64, of_write),
	CALL(writev, of_write),
	CALL(openat, of_open),
	CALL(close, of_close),
	CALL(socket, of_fd),
	CALL(bind, of_socket),
	CALL(connect, of_socket),
	CALL(getsockname, of_memory),
	CALL(setsockopt, of_memory),
	CALL(getsockopt, of_memory),
	CALL(sendto, of_socket),
	CALL(sendmsg, of_socket),
	CALL(recvfrom, of_socket),
	CALL(recvmsg, of_socket),
	CALL(mmap, of_memory),
	CALL(brk, of_memory),
	CALL(mremap, of_memory),
	CALL(fsync, of_write),
	CALL(fdatasync, of_write),
	CALL(ftruncate, of_write),
	CALL(fallocate, of_write),
	CALL(renameat2, of_dir),
	CALL(mkdirat, of_dir),
	CALL(unlinkat, of_look),
	CALL(linkat, of_dir),
	CALL(symlinkat, of_dir),
	CALL(fstat, of_look),
	CALL(statx, of_look),
	CALL(newfstatat, of_look),
	CALL(readlinkat, of_look),
	CALL(faccessat, of_look),
	CALL(getdents64, of_look),
	CALL(fchmod, of_look),
	CALL(flock, of_lock),
	CALL(fcntl, of_fd),
	CALL(setns, of_enter),
	CALL(ppoll, of_wait),
	CALL(ioctl, of_nothing),
	CALL(getrandom, of_nothing),
	CALL(clone, of_memory),
	CALL(pipe2, of_fd),
	CALL(dup, of_fd),
	CALL(dup3, of_fd),
	CALL(wait4, of_wait),
	CALL(waitid, of_wait),
	CALL(execve, of_nothing),
	CALL(getcwd, of_memory),
	CALL(fstatfs, of_look),
	CALL(statfs, of_look),
	CALL(lseek, of_look),
	CALL(inotify_init1, of_fd),
	CALL(inotify_add_watch, of_dir),
	CALL(munmap, of_nothing),
	CALL(mprotect, of_nothing),
	CALL(exit_group, of_nothing),
	CALL(rt_sigaction, of_nothing),
	CALL(rt_sigprocmask, of_nothing),
	CALL(getpid, of_nothing),
	CALL(tgkill, of_nothing),
	CALL(set_tid_address, of_nothing),
	CALL(set_robust_list, of_nothing),
	CALL(prlimit64, of_nothing),
	CALL(futex, of_nothing),
	CALL(madvise, of_nothing),
	CALL(clock_nanosleep, of_nothing),
	CALL(kill, of_nothing),
#ifdef SYS_rseq
	CALL(rseq, of_nothing),
#endif
#ifdef SYS_faccessat2
	CALL(faccessat2, of_look),
#endif
#ifdef SYS_clone3
	CALL(clone3, of_memory),
#endif
#ifdef SYS_openat2
	CALL(openat2, of_open),
#endif
#ifdef SYS_renameat
	CALL(renameat, of_dir),
#endif
#ifdef SYS_open /* x86_64 has the old ones too */
	CALL(open, of_open),
	CALL(stat, of_look),
	CALL(lstat, of_look),
	CALL(rename, of_dir),
	CALL(mkdir, of_dir),
	CALL(unlink, of_look),
	CALL(rmdir, of_look),
	CALL(link, of_dir),
	CALL(readlink, of_look),
	CALL(access, of_look),
	CALL(poll, of_wait),
	CALL(dup2, of_fd),
	CALL(vfork, of_memory),
	CALL(fork, of_memory),
	CALL(pipe, of_fd),
	CALL(arch_prctl, of_nothing),
#endif
#undef CALL
};

const char *syscall_name(long nr)
{
	static char number[24];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].nr == nr)
			return table[i].name;
	snprintf(number, sizeof(number), "syscall-%ld", nr);
	return number;
}

const int *syscall_errors(long nr)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].nr == nr)
			return table[i].errors;
	return of_look;
}

const char *errno_name(int err)
{
	const char *name = strerrorname_np(err);

	return name ? name : "?";
}

/* ---- a program and its descriptors ---- */

struct job {
	pid_t pid;
	int in, out, err;
};

static volatile pid_t alarmed_pid;
static volatile sig_atomic_t alarmed;

static void on_alarm(int sig)
{
	(void)sig;
	alarmed = 1;
	if (alarmed_pid > 0)
		kill(alarmed_pid, SIGKILL);
}

static void set_alarm(pid_t pid, int ms)
{
	struct itimerval t = {.it_value = {ms / 1000, ms % 1000 * 1000}};

	alarmed_pid = pid;
	alarmed = 0;
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &t, NULL);
}

static void clear_alarm(void)
{
	struct itimerval t = {0};

	setitimer(ITIMER_REAL, &t, NULL);
	alarmed_pid = 0;
}

/* A file in memory can neither fill up nor block. */
static int memory(const char *text, size_t len)
{
	int fd = memfd_create("inject", MFD_CLOEXEC);

	if (fd < 0 || (len && write(fd, text, len) != (ssize_t)len) || lseek(fd, 0, SEEK_SET))
		die("memfd");
	return fd;
}

static char *contents(int fd, size_t *len)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = malloc((size_t)size + 1);

	if (size < 0 || !text || pread(fd, text, (size_t)size, 0) != size)
		die("reading back");
	text[size] = '\0';
	if (len)
		*len = (size_t)size;
	close(fd);
	return text;
}

static void start(struct job *j, char *const *argv, char *const *envp, bool traced)
{
	j->pid = fork();
	if (j->pid < 0)
		die("fork");
	if (j->pid)
		return;
	signal(SIGALRM, SIG_DFL);
	setpgid(0, 0);
	if (dup2(j->in, 0) < 0 || dup2(j->out, 1) < 0 || dup2(j->err, 2) < 0)
		_exit(126);
	if (traced) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
	}
	execve(argv[0], argv, envp);
	dprintf(2, "inject: %s: %s\n", argv[0], strerror(errno));
	_exit(126);
}

static void start_untraced(struct job *j, char *const *argv, char *const *envp)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, j->in, 0);
	posix_spawn_file_actions_adddup2(&fa, j->out, 1);
	posix_spawn_file_actions_adddup2(&fa, j->err, 2);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
	errno = posix_spawn(&j->pid, argv[0], &fa, &attr, argv, envp);
	if (errno)
		die(argv[0]);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&fa);
}

/* ---- tracing ---- */

/* Makes the kernel skip the call it is about to make. */
static void skip_call(pid_t pid)
{
#if defined(__x86_64__)
	if (ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1L) < 0)
		die("ptrace");
#elif defined(__aarch64__)
	int none = -1;
	struct iovec io = {&none, sizeof(none)};

	if (ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &io) < 0)
		die("ptrace");
#else
#error "inject knows x86_64 and aarch64"
#endif
}

static void set_return(pid_t pid, long value)
{
#if defined(__x86_64__)
	if (ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), value) < 0)
		die("ptrace");
#elif defined(__aarch64__)
	struct user_regs_struct regs;
	struct iovec io = {&regs, sizeof(regs)};

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io) < 0)
		die("ptrace");
	regs.regs[0] = (unsigned long long)value;
	if (ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &io) < 0)
		die("ptrace");
#endif
}

/* Whether it is open("/dev/null"): the first thing cnibox does. */
static bool opens_dev_null(pid_t pid, const struct ptrace_syscall_info *si)
{
	char path[sizeof("/dev/null")];
	struct iovec local = {path, sizeof(path)}, remote = {NULL, sizeof(path)};
	uint64_t at = si->entry.args[1];

#ifdef SYS_open
	if ((long)si->entry.nr == SYS_open)
		at = si->entry.args[0];
	else
#endif
		if ((long)si->entry.nr != SYS_openat)
		return false;
	remote.iov_base = (void *)(uintptr_t)at;
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(path) &&
	       !memcmp(path, "/dev/null", sizeof(path));
}

struct tracer {
	const struct injection *inj;
	struct ran *ran;
	pid_t pid;
	unsigned seen;
	bool counting; /* main has begun */
	bool failing;  /* the call being left was skipped */
	bool dead;
};

static void keep(struct ran *r, struct syscall_seen c)
{
	if (!(r->calls_len & (r->calls_len - 1)))
		r->calls = realloc(r->calls, (r->calls_len ? r->calls_len * 2 : 1) * sizeof(c));
	r->calls[r->calls_len++] = c;
}

static void on_entry(struct tracer *t, const struct ptrace_syscall_info *si)
{
	struct syscall_seen now = {(long)si->entry.nr, (long)si->entry.args[0]};
	struct ran *r = t->ran;

	t->counting = t->counting || opens_dev_null(t->pid, si);
	if (!t->counting)
		return;
	t->seen++;
	if (t->inj->how == INJECT_COUNT)
		keep(r, now);
	if (t->seen == t->inj->at && t->inj->how != INJECT_COUNT) {
		r->hit = true;
		r->at = now;
	} else if (!(r->hit && t->inj->sticky && now.nr == r->at.nr)) {
		return;
	}
	if (t->inj->how == INJECT_KILL) {
		kill(t->pid, SIGKILL);
		t->dead = true;
	} else {
		/* close() closes whatever it returns. */
		if (now.nr != SYS_close)
			skip_call(t->pid);
		t->failing = true;
	}
}

static void on_syscall(struct tracer *t)
{
	struct ptrace_syscall_info si;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, sizeof(si), &si) <= 0)
		return; /* killed meanwhile */
	if (si.op == PTRACE_SYSCALL_INFO_ENTRY) {
		on_entry(t, &si);
	} else if (si.op == PTRACE_SYSCALL_INFO_EXIT && t->failing) {
		/* brk() does not return an error but the old break: nothing below it will do. */
		set_return(t->pid, t->ran->at.nr == SYS_brk ? 0 : -t->inj->error);
		t->failing = false;
	}
}

static int trace(struct job *j, const struct injection *inj, struct ran *ran)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	struct tracer t = {.inj = inj, .ran = ran, .pid = j->pid, .counting = !inj->from_main};
	bool running = false;
	int status, sig;

	if (waitpid(j->pid, &status, WUNTRACED) < 0 || !WIFSTOPPED(status) ||
		ptrace(PTRACE_SETOPTIONS, j->pid, 0, options) < 0 ||
		ptrace(PTRACE_CONT, j->pid, 0, 0) < 0)
		die("ptrace");
	for (;;) {
		if (waitpid(j->pid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			die("waitpid");
		}
		if (!WIFSTOPPED(status))
			return status;
		sig = WSTOPSIG(status);
		if (sig == (SIGTRAP | 0x80)) {
			on_syscall(&t);
			sig = 0;
		} else if (status >> 16) {
			running = running || status >> 16 == PTRACE_EVENT_EXEC;
			sig = 0;
		}
		ptrace(running ? PTRACE_SYSCALL : PTRACE_CONT, j->pid, 0, sig);
	}
}

void run_program(char *const *argv, char *const *envp, const char *text, size_t len,
	const struct injection *inj, int timeout, struct ran *out)
{
	struct job j = {.in = memory(text, len), .out = memory(NULL, 0), .err = memory(NULL, 0)};
	bool traced = inj && inj->how != INJECT_NONE;

	*out = (struct ran){0};
	if (traced)
		start(&j, argv, envp, true);
	else
		start_untraced(&j, argv, envp);
	set_alarm(j.pid, timeout);
	if (traced)
		out->status = trace(&j, inj, out);
	else
		while (waitpid(j.pid, &out->status, 0) < 0 && errno == EINTR)
			;
	clear_alarm();
	out->timed_out = alarmed;
	kill(-j.pid, SIGKILL); /* what it had started */
	close(j.in);
	out->out = contents(j.out, &out->out_len);
	out->err = contents(j.err, NULL);
}

void ran_free(struct ran *r)
{
	free(r->calls);
	free(r->out);
	free(r->err);
	*r = (struct ran){0};
}
