/* The error every layer reports with: a CNI code, a message that names the object, and details.
 * The first failure wins: setting an error that is already set changes nothing, so that a failure
 * during rollback cannot hide the cause. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Codes of the CNI spec 1.1.0, section "Error", and the ones its reference library adds. */
enum err_code {
	ERR_INCOMPATIBLE_VERSION = 1,
	ERR_UNSUPPORTED_FIELD = 2,
	ERR_UNKNOWN_CONTAINER = 3,
	ERR_INVALID_ENVIRONMENT = 4,
	ERR_IO = 5,
	ERR_DECODE = 6,
	ERR_INVALID_CONFIG = 7,
	ERR_INVALID_NETNS = 8,
	ERR_TRY_AGAIN = 11,
	ERR_NOT_AVAILABLE = 50,
	ERR_LIMITED_CONNECTIVITY = 51,
	ERR_SYSTEM = 100,   /* the kernel refused a change */
	ERR_CHECK = 101,    /* CHECK found something other than what ADD had made */
	ERR_CONFLICT = 102, /* what was asked for is held by another attachment */
	ERR_PLUGIN = 999,   /* what the Go plugins say for everything of their own */
};

/* An error, or none: all zero is none. */
struct err {
	bool set;
	int code;      /* enum err_code, or what another plugin reported */
	char *msg;     /* owned, never NULL once set */
	char *details; /* owned, NULL when there is nothing to add */
	int sys;       /* the errno behind it, 0 when none */
};

/* Records a failure unless one is recorded already. Always returns -1, so that a failing path is
 * one line: return err_set(e, ERR_INVALID_CONFIG, "invalid VLAN ID %d", id). */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same with details "strerror (errno N)"; sys is an errno value, positive. */
int err_sys(struct err *e, int sys, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The same for a request that the kernel refused: ext is its own sentence (extended ack), "" or
 * NULL when it gave none, and follows the errno in the details. */
int err_kernel(struct err *e, int sys, const char *ext, int code, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* "out of memory", ERR_SYSTEM. */
int err_memory(struct err *e);

/* Adds to the details of an error that is set: "; " between the parts. Returns -1. */
int err_detail(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts context in front of the message: "context: message". Returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Takes over src when dst is not set; otherwise appends src's text to dst's details. For verbs
 * that carry on after a failure and report at the end. Clears src. */
void err_merge(struct err *dst, struct err *src);

/* Whether an errno says nothing about the object it is about, only about the moment: no memory, no
 * descriptors, a disk that fails. What could not be looked at for such a reason may well be there.
 */
bool err_is_passing(int sys);

/* Frees what it holds and makes it "no error" again. */
void err_clear(struct err *e);

#define autoerr __attribute__((cleanup(err_clear))) struct err
