/* The marker of a range set, "last_reserved_ip.N": where the next search begins. A hint: unreadable
 * is absent, and that it cannot be written fails nothing. */
#pragma once

#include "store/store.h"

struct marker {
	int fd;
	size_t len;     /* of its content */
	struct ip last; /* family 0: absent */
};

/* Opens and reads that of set n. */
void marker_read(const struct store *s, size_t n, struct marker *m);
/* Writes in place, as the Go plugin does, and closes. */
void marker_write(struct store *s, size_t n, struct marker *m, const struct ip *ip);
/* Closes it; safe after marker_write(). */
void marker_close(struct marker *m);
