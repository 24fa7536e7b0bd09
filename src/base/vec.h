/* Growing arrays: a pointer and a length that the caller declares; how much room there is follows
 * from the length, so there is nothing else to keep.
 *
 *	struct route *list = NULL;
 *	size_t len = 0;
 *	struct route *r = vec_add(list, len);	// zeroed, the last one now; NULL: no memory
 *	...
 *	free(list);
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more than len elements: 8, 16, 32 … Returns the array, moved where it had to grow,
 * or NULL, and then the old one is as it was. */
static inline void *vec_room(void *list, size_t len, size_t size)
{
	if (!len)
		return list ? list : calloc(8, size);
	if (len < 8 || len & (len - 1))
		return list;
	return reallocarray(list, len * 2, size);
}

/* Appends a zeroed element and yields a pointer to it, NULL when there is no memory; list and len
 * are variables or members, evaluated several times. The pointer is valid until the next one. */
#define vec_add(list, len)                                                                         \
	({                                                                                         \
		__typeof__(&(list)[0]) room_ = vec_room((list), (len), sizeof(*(list)));           \
		if (room_) {                                                                       \
			(list) = room_;                                                            \
			room_ = memset(&room_[(len)], 0, sizeof(*room_));                          \
			(len)++;                                                                   \
		}                                                                                  \
		room_;                                                                             \
	})
