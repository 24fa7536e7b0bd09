/* Runs a program to its end and, if asked, does something to it at one of its system calls. Linux
 * x86_64 and aarch64, by ptrace(2). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum inject_how {
	INJECT_NONE,  /* not traced at all */
	INJECT_COUNT, /* traced, left alone: which system calls there are */
	INJECT_KILL,  /* SIGKILL at the entry: the call is not made */
	INJECT_FAIL,  /* the call is not made and fails */
};

struct injection {
	enum inject_how how;
	unsigned at;    /* which system call, from 1 */
	int error;      /* FAIL: with what */
	bool sticky;    /* FAIL: and so do all later ones of the same number */
	bool from_main; /* counted from the opening of /dev/null with which cnibox begins: the
			 * dynamic loader's are not ours to answer for */
};

struct syscall_seen {
	long nr;
	long arg; /* the first: mostly a descriptor */
};

struct ran {
	int status; /* as of waitpid */
	bool timed_out;
	bool hit; /* there was a system call of that number */
	struct syscall_seen at;
	struct syscall_seen *calls; /* COUNT: all of them */
	unsigned calls_len;
	char *out, *err; /* what it printed, with a NUL */
	size_t out_len;
};

/* argv[0] is the file. envp replaces the environment. `timeout` in milliseconds, after which the
 * program is killed. The caller frees with ran_free(). Dies itself when it cannot do its work. */
void run_program(char *const *argv, char *const *envp, const char *text, size_t len,
	const struct injection *inj, int timeout, struct ran *out);
void ran_free(struct ran *r);

/* "sendto", or a number where it is not known. */
const char *syscall_name(long nr);

/* The errors that system call may fail with and that are worth trying; 0 ends the list. */
const int *syscall_errors(long nr);
const char *errno_name(int err);
