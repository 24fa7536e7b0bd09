/* A growing byte buffer with a sticky failure: appending after running out of memory does nothing,
 * and the one who uses the result looks at `failed` once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* All zero is an empty one. */
struct buf {
	char *data;  /* owned; NUL-terminated once anything was appended, NULL before */
	size_t len;  /* of the data, without the NUL */
	size_t cap;  /* room there is */
	bool failed; /* there was no memory for something */
};

/* Append bytes, a string, a formatted text. */
void buf_put(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Frees the data and makes the buffer empty again. */
void buf_free(struct buf *b);

#define autobuf __attribute__((cleanup(buf_free))) struct buf
