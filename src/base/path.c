#include "base/path.h"

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_dots(const char *part, size_t len, size_t dots)
{
	return len == dots && !memcmp(part, "..", dots);
}

void path_clean(char *path)
{
	const bool rooted = *path == '/';
	size_t n = rooted;    /* length of the result so far */
	size_t keep = rooted; /* what ".." must not take away: the root, or "../.." */
	const char *in = path;

	while (in += strspn(in, "/"), *in) {
		size_t len = strcspn(in, "/");
		bool up = is_dots(in, len, 2);

		if (up && n > keep) {
			while (n > keep && path[n - 1] != '/')
				n--;
			n -= n > keep; /* and the slash before the name */
		} else if (!is_dots(in, len, 1) && !(up && rooted)) {
			if (n > rooted)
				path[n++] = '/';
			memmove(path + n, in, len);
			n += len;
			if (up)
				keep = n;
		}
		in += len;
	}
	if (!n)
		path[n++] = '.';
	path[n] = '\0';
}

char *path_absolute(const char *path)
{
	autofree char *cwd = *path == '/' ? strdup("") : getcwd(NULL, 0);
	char *out;

	if (!cwd || asprintf(&out, "%s/%s", cwd, path) < 0)
		return NULL;
	path_clean(out);
	return out;
}
