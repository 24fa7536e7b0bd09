/* resolv.conf(5) as the dns of a result. */
#pragma once

#include "result/result.h"

/* Reads nameserver, domain, search and options lines, appending to dns; the last domain counts, all
 * else is ignored (reference/ipam.md, section 1.6). The path may be of anything that can be read: a
 * FIFO or a device that gives nothing for two seconds is an error. Returns 0, or -1 with e set. */
int resolvconf_read(const char *path, struct dns *dns, struct err *e);
