/* Paths as text: what "a/../b" means does not depend on whether a exists, or is a symlink. */
#pragma once

/* The shortest form of a path, in place, as Go's path.Clean(): no "//", no ".", no ".." but at the
 * start of a relative path. "" becomes "."; so the buffer needs room for 2 bytes. */
void path_clean(char *path);

/* The same, absolute: a relative path begins at the working directory. Owned by the caller; NULL
 * with errno set when there is no memory or no working directory. */
char *path_absolute(const char *path);
