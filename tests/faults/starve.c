/* A library to be preloaded: the STARVE'th allocation of the program fails. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);

/* getenv() may not be called before the C library has started. */
static long wanted(void)
{
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, "STARVE=", 7))
			return atol(*e + 7);
	return 0;
}

static bool fails(void)
{
	static long at, seen;

	if (!at)
		at = wanted();
	if (++seen != at)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, size);
}
