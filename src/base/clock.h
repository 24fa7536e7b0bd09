/* The monotonic clock, for deadlines. */
#pragma once

#include <stdint.h>
#include <time.h>

/* In milliseconds, from some point in the past. */
static inline int64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
