/* What kind of file system something is on. */
#pragma once

#include <stdbool.h>

/* Whether it is one of those that a single kernel has to itself. False also when it cannot be told.
 */
bool place_is_local(int fd);

/* Whether it is procfs itself, and not a file that was mounted over one of its. */
bool place_is_proc(int fd);
