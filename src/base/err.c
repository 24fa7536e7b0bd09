#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Out of memory still owes the caller an error object, so the texts fall back to a constant that
 * err_clear() knows not to free. */
static char no_memory[] = "out of memory";

static char *format(const char *fmt, va_list ap)
{
	char *s;

	return vasprintf(&s, fmt, ap) < 0 ? no_memory : s;
}

static void drop(char *s)
{
	if (s != no_memory)
		free(s);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (e->set)
		return -1;
	va_start(ap, fmt);
	*e = (struct err){.set = true, .code = code, .msg = format(fmt, ap)};
	va_end(ap);
	return -1;
}

int err_sys(struct err *e, int sys, int code, const char *fmt, ...)
{
	va_list ap;

	if (e->set)
		return -1;
	va_start(ap, fmt);
	*e = (struct err){.set = true, .code = code, .msg = format(fmt, ap), .sys = sys};
	va_end(ap);
	return err_detail(e, "%s (errno %d)", strerror(sys), sys);
}

int err_kernel(struct err *e, int sys, const char *ext, int code, const char *fmt, ...)
{
	va_list ap;

	if (e->set)
		return -1;
	va_start(ap, fmt);
	*e = (struct err){.set = true, .code = code, .msg = format(fmt, ap), .sys = sys};
	va_end(ap);
	err_detail(e, "%s (errno %d)", strerror(sys), sys);
	return ext && *ext ? err_detail(e, "%s", ext) : -1;
}

int err_memory(struct err *e)
{
	return err_sys(e, ENOMEM, ERR_SYSTEM, "out of memory");
}

/* Replaces *slot by "a sep b"; both may be NULL. */
static void join(char **slot, const char *a, const char *sep, const char *b)
{
	char *s;

	if (asprintf(&s, "%s%s%s", a, sep, b) < 0)
		s = no_memory;
	drop(*slot);
	*slot = s;
}

int err_detail(struct err *e, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = format(fmt, ap);
	va_end(ap);
	if (!e->details) {
		e->details = s;
		return -1;
	}
	join(&e->details, e->details, "; ", s);
	drop(s);
	return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = format(fmt, ap);
	va_end(ap);
	join(&e->msg, s, ": ", e->msg ? e->msg : "");
	drop(s);
	return -1;
}

void err_merge(struct err *dst, struct err *src)
{
	if (!src->set)
		return;
	if (!dst->set) {
		*dst = *src;
		*src = (struct err){0};
		return;
	}
	err_detail(dst, "also: %s%s%s", src->msg, src->details ? ": " : "",
		src->details ? src->details : "");
	err_clear(src);
}

bool err_is_passing(int sys)
{
	return sys == EIO || sys == EMFILE || sys == ENFILE || sys == ENOMEM || sys == ENOBUFS ||
	       sys == ENOSPC || sys == EINTR;
}

void err_clear(struct err *e)
{
	drop(e->msg);
	drop(e->details);
	*e = (struct err){0};
}
