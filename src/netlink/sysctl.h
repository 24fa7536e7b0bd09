/* Kernel settings: the files of /proc/sys in the current namespace. A path has slashes, so that
 * interface names with dots stay whole, and is the caller's to check. */
#pragma once

#include <stddef.h>

/* Reads or writes /proc/sys/<path>; sysctl_get() strips one trailing newline. Return 0 or -errno.
 */
int sysctl_set(const char *path, const char *value);
int sysctl_get(const char *path, char *value, size_t size);
/* Writes only when the value differs, so that a read-only /proc/sys with the right value is fine.
 */
int sysctl_ensure(const char *path, const char *value);
/* The same the other way round, for values that are hardly ever right before: writes, and only a
 * failure makes it look. */
int sysctl_force(const char *path, const char *value);
