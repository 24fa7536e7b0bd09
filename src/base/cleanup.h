/* Cleanup attributes: a variable declared with one of these releases what it holds when it leaves
 * scope. The declaration must carry the null value (NULL or -1). Hand ownership on with take_ptr()
 * and take_fd(). */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_freep(void *p)
{
	free(*(void **)p);
}

/* Keeps errno, which is usually the error about to be reported. */
static inline void cleanup_closep(const int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		close(*fd);
		errno = saved;
	}
}

#define autofree  __attribute__((cleanup(cleanup_freep)))
#define autoclose __attribute__((cleanup(cleanup_closep)))

/* Returns the pointer and leaves NULL behind, so that the cleanup does nothing. */
#define take_ptr(p)                                                                                \
	({                                                                                         \
		__auto_type p_ = (p);                                                              \
		(p) = NULL;                                                                        \
		p_;                                                                                \
	})

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define array_len(a) (sizeof(a) / sizeof((a)[0]))
