/* A file of the runtime's result cache. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "runtime/cache.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In memory: flushing a disk is not what is tried here. */
static char root[] = "/dev/shm/fuzz-cache-XXXXXX";
static char results[sizeof(root) + 8];

static void remove_root(void)
{
	char path[sizeof(results) + 16];

	snprintf(path, sizeof(path), "%s/net-c1-eth0", results);
	unlink(path);
	rmdir(results);
	rmdir(root);
}

static int count(const struct cache_entry *c, void *arg)
{
	MUST(*c->network && *c->ifname && c->netns && c->args && c->config);
	++*(int *)arg;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autoentry c = {0}, again = {0};
	autoerr e = {0}, why = {0};
	autoclose int dir = -1;
	int fd, ret, seen = 0;

	if (!*results) {
		MUST(mkdtemp(root));
		snprintf(results, sizeof(results), "%s/results", root);
		MUST(!mkdir(results, 0700));
		atexit(remove_root);
	}
	dir = open(results, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dir, "net-c1-eth0", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(dir >= 0 && fd >= 0 && !file_write_fd(fd, data, size));
	close(fd);
	MUST(!cache_each(root, count, &seen, &e) && seen <= 1);
	ret = cache_read(root, "net", "c1", "eth0", &c, &why, &e);
	MUST(ret >= 0 && !e.set && (!ret || why.set));
	if (ret)
		return 0;
	/* Written by us it is the same attachment. */
	if (cache_write(root, &c, false, &e))
		return 0;
	MUST(!cache_read(root, "net", "c1", "eth0", &again, &why, &e));
	MUST(!strcmp(c.netns, again.netns) && c.config_len == again.config_len &&
		!memcmp(c.config, again.config, c.config_len));
	return 0;
}
