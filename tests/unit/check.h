/* The harness of the unit tests: a failed check prints where and goes on; main() ends with
 * `return check_done();`. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int check_count, check_failures;

#define CHECK(cond)                 check_true((cond), #cond, __FILE__, __LINE__)
#define CHECK_STR(actual, expected) check_str((actual), (expected), #actual, __FILE__, __LINE__)
#define CHECK_INT(actual, expected) check_int((actual), (expected), #actual, __FILE__, __LINE__)

static inline bool check_true(bool ok, const char *what, const char *file, int line)
{
	check_count++;
	if (!ok) {
		check_failures++;
		fprintf(stderr, "%s:%d: not true: %s\n", file, line, what);
	}
	return ok;
}

static inline bool check_str(
	const char *actual, const char *expected, const char *what, const char *file, int line)
{
	bool same = actual && expected ? !strcmp(actual, expected) : actual == expected;

	check_count++;
	if (!same) {
		check_failures++;
		fprintf(stderr, "%s:%d: %s\n  is       %s\n  expected %s\n", file, line, what,
			actual ? actual : "NULL", expected ? expected : "NULL");
	}
	return same;
}

static inline bool check_int(
	long long actual, long long expected, const char *what, const char *file, int line)
{
	check_count++;
	if (actual != expected) {
		check_failures++;
		fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", file, line, what, actual,
			expected);
	}
	return actual == expected;
}

static inline int check_done(void)
{
	printf("%d checks, %d failed\n", check_count, check_failures);
	return check_failures || !check_count;
}
