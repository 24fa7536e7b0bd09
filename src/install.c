#include "install.h"

#include "cni/applet.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The way from one directory to a file, both absolute and free of symlinks: "../../lib/cnibox". */
static void relative(const char *dir, const char *file, char out[static PATH_MAX])
{
	size_t common = 0, n = 0;

	for (size_t i = 0; dir[i] == file[i] || (!dir[i] && file[i] == '/'); i++) {
		if (file[i] == '/')
			common = i;
		if (!dir[i])
			break;
	}
	out[0] = '\0';
	for (const char *s = dir + common; *s; s++)
		if (*s == '/' && s[1] && n + 3 < PATH_MAX)
			n += (size_t)snprintf(out + n, PATH_MAX - n, "../");
	snprintf(out + n, PATH_MAX - n, "%s", file + common + 1);
}

/* By rename, so that a plugin being called never finds its name missing. What is there and is no
 * symlink belongs to somebody else. */
static int install_one(const char *dir, const char *name, const char *target)
{
	char path[PATH_MAX], temp[PATH_MAX], now[PATH_MAX];
	struct stat st;
	ssize_t len;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= PATH_MAX ||
		snprintf(temp, sizeof(temp), "%s/.%s.tmp", dir, name) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	len = readlink(path, now, sizeof(now) - 1);
	if (len >= 0) {
		now[len] = '\0';
		if (!strcmp(now, target))
			return 0;
	} else if (!lstat(path, &st)) {
		errno = EEXIST;
		return -1;
	}
	unlink(temp);
	return symlink(target, temp) < 0 || rename(temp, path) < 0 ? -1 : 0;
}

int install(const char *dir)
{
	char self[PATH_MAX], real[PATH_MAX], target[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int status = 0;

	if (len < 0 || ((mkdir(dir, 0755) < 0) && errno != EEXIST) || !realpath(dir, real)) {
		fprintf(stderr, "cnibox: %s: %m\n", dir);
		return 1;
	}
	self[len] = '\0';
	relative(real, self, target);
	for (size_t i = 0; applets[i]; i++) {
		if (install_one(real, applets[i]->name, target) < 0) {
			fprintf(stderr, "cnibox: %s/%s: %m\n", dir, applets[i]->name);
			status = 1;
		}
	}
	return status;
}
