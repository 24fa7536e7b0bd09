#include "store/store.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/trace.h"
#include "store/internal.h"
#include "store/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#define LOCK_NAME "lock"

/* A store that is replaced so often while we wait is not one that we can use. */
#define LOCK_TRIES 100

/* An empty file that young may be one that is being written, by somebody who does not know of the
 * lock: cp, or an editor. */
#define YOUNG_SECONDS 2

uint64_t store_hash(const struct store *s, const struct holder *h)
{
	return index_hash(&s->index, h->id, h->ifname);
}

static bool same_times(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

void store_change(struct store *s)
{
	struct stat st;

	index_touch(&s->index);
	if (s->watch.on || s->doubt)
		return;
	/* The index is that of s->seen: what happened since then was not watched. */
	if (!watch_begin(&s->watch, s->dir) || fstat(s->dir, &st) < 0 || !same_times(&st, &s->seen))
		s->doubt = true;
}

void store_changed(struct store *s)
{
	watch_expect(&s->watch, 1);
}

int store_unlink(struct store *s, const char *name)
{
	if (!unlinkat(s->dir, name, 0)) {
		store_changed(s);
		return 0;
	}
	return errno == ENOENT ? 0 : -errno;
}

/* ---- reading it ---- */

static bool is_young(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || st.st_mtim.tv_sec + YOUNG_SECONDS >= time(NULL);
}

/* One name of the directory into the index. */
static int scan_name(struct store *s, struct index *ix, const char *name)
{
	autoclose int fd = -1;
	struct holder holder;
	char text[IP_STRLEN];
	enum lease_age age;
	struct ip ip;
	int kind;

	if (!strcmp(name, STORE_TEMP))
		store_unlink(s, name);
	if (!ip_parse(name, &ip) || strcmp(ip_format(&ip, text), name))
		return 0;
	kind = lease_read(s->dir, name, &holder, &fd);
	if (kind == LEASE_FOREIGN)
		index_block(ix, &ip);
	if (kind == LEASE_DEBRIS && is_young(fd))
		s->doubt = true;
	if (kind != LEASE_HELD)
		return kind < 0 ? kind : 0;
	age = lease_age(&s->boot, fd);
	/* The Go plugin stamps nothing, so we do not know when it made this lease. Taken for one of
	 * this boot, it can be told as an old one in the next. */
	if (age == LEASE_AGE_UNKNOWN)
		lease_stamp(&s->boot, fd);
	index_add(ix, &ip, index_hash(ix, holder.id, holder.ifname), age == LEASE_OF_EARLIER_BOOT);
	return 0;
}

static int scan(struct store *s, struct index *ix)
{
	autoclose int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return -errno;
	take_fd(&fd);
	while (!ret && (errno = 0, entry = readdir(dir)) && !ix->broken)
		ret = scan_name(s, ix, entry->d_name);
	if (!ret)
		ret = ix->broken ? -ENOMEM : -errno;
	closedir(dir);
	return ret;
}

int store_reread(struct store *s)
{
	uint64_t start = trace_start();
	struct index ix;
	int ret = index_init(&ix);

	if (ret)
		return ret;
	/* Watched before the first name is read: what comes or goes while we read may be in the
	 * index or not. */
	s->doubt = !s->local || !watch_begin(&s->watch, s->dir);
	ret = scan(s, &ix);
	trace_step(start, TRACE_FILE, -ret, "read all leases");
	if (ret) {
		index_free(&ix);
		return ret;
	}
	index_free(&s->index);
	s->index = ix;
	s->fresh = true;
	return 0;
}

/* ---- opening, locking ---- */

static int open_dir(struct store *s, struct err *e)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int ret;

	s->dir = open(s->path, flags);
	if (s->dir < 0 && errno == ENOENT) {
		if (!s->create)
			return 1;
		ret = file_mkdirs(s->path, 0755);
		if (ret)
			return err_sys(e, -ret, ERR_IO, "cannot create lease store %s", s->path);
		s->made = true;
		s->dir = open(s->path, flags);
	}
	if (s->dir < 0)
		return err_sys(e, errno, ERR_IO, "cannot open lease store %s", s->path);
	s->local = place_is_local(s->dir);
	boot_read(&s->boot, s->dir);
	return 0;
}

int store_open(struct store *s, const char *path, const char *index_dir, bool create, struct err *e)
{
	s->path = path;
	s->index_dir = index_dir;
	s->create = create;
	return open_dir(s, e);
}

/* Whether name (at dirfd) is what fd has open: 1, 0 or -errno. */
static int is_still(int dirfd, const char *name, int fd, int flags)
{
	struct stat named, opened;

	if (fstat(fd, &opened) < 0)
		return -errno;
	if (fstatat(dirfd, name, &named, flags) < 0)
		return errno == ENOENT ? 0 : -errno;
	return named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/* Takes the lock of the directory that is open. Returns 1, 0 when it is not, or no longer, the
 * store, or -1 with e set. */
static int lock_dir(struct store *s, struct err *e)
{
	const int flags = O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	uint64_t start = trace_start();
	int ret;

	s->lock = openat(s->dir, LOCK_NAME, flags, 0750);
	/* Nothing can be made in a directory that was removed. */
	if (s->lock < 0 && errno == ENOENT)
		return 0;
	if (s->lock < 0)
		return err_sys(e, errno, ERR_IO, "cannot open the lock of lease store %s", s->path);
	do
		ret = flock(s->lock, LOCK_EX);
	while (ret < 0 && errno == EINTR);
	trace_step(start, TRACE_FILE, ret ? errno : 0, "lock");
	if (ret)
		return err_sys(e, errno, ERR_IO, "cannot lock lease store %s", s->path);
	ret = is_still(AT_FDCWD, s->path, s->dir, 0);
	/* Who replaced the file shares no lock with us. */
	if (ret > 0)
		ret = is_still(s->dir, LOCK_NAME, s->lock, AT_SYMLINK_NOFOLLOW);
	return ret < 0 ? err_sys(e, -ret, ERR_IO, "cannot lock lease store %s", s->path) : ret;
}

static void drop_dir(struct store *s)
{
	if (s->lock >= 0)
		close(s->lock);
	if (s->dir >= 0)
		close(s->dir);
	s->lock = s->dir = -1;
}

static int load_index(struct store *s, struct err *e)
{
	char path[PATH_MAX];
	int ret = -ESTALE;

	if (fstat(s->dir, &s->seen) < 0)
		return err_sys(e, errno, ERR_IO, "cannot read lease store %s", s->path);
	/* Device and inode are the identity of a directory, whatever the path to it. */
	snprintf(s->index_name, sizeof(s->index_name), "%llx-%llx.index",
		(unsigned long long)s->seen.st_dev, (unsigned long long)s->seen.st_ino);
	/* Elsewhere another machine may change it, and times say little of that. */
	if (s->local && (size_t)snprintf(path, sizeof(path), "%s/%s", s->index_dir, s->index_name) <
				sizeof(path))
		ret = index_open(&s->index, path, &s->seen, s->boot.id);
	if (ret)
		ret = store_reread(s);
	return ret ? err_sys(e, -ret, ERR_IO, "cannot read lease store %s", s->path) : 0;
}

int store_lock(struct store *s, struct err *e)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		int ret = lock_dir(s, e);

		if (ret)
			return ret < 0 ? -1 : load_index(s, e);
		drop_dir(s);
		ret = open_dir(s, e);
		if (ret)
			return ret;
	}
	return err_set(e, ERR_TRY_AGAIN, "lease store %s is replaced again and again", s->path);
}

/* ---- closing ---- */

static int open_index_dir(const struct store *s)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int dir = open(s->index_dir, flags);

	if (dir < 0 && errno == ENOENT && !file_mkdirs(s->index_dir, 0755))
		dir = open(s->index_dir, flags);
	return dir;
}

/* Stamps the directory and records that in the index. Not on a file system that rounds the stamp:
 * another's, made in the same second, would be the same. */
static bool seal(struct store *s)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, index_stamp(&s->index)};
	struct stat st;

	if (!s->local || s->doubt || futimens(s->dir, times) < 0 || fstat(s->dir, &st) < 0 ||
		st.st_mtim.tv_sec != times[1].tv_sec || st.st_mtim.tv_nsec != times[1].tv_nsec)
		return false;
	/* Last: what comes after this moves the time that we have just read. */
	if (!watch_is_ours(&s->watch))
		return false;
	index_seal(&s->index, &st, s->boot.id, s->path);
	return true;
}

/* Best effort throughout: without an index the next call reads the store. */
static void save_index(struct store *s)
{
	struct index *ix = &s->index;
	autoclose int dir = -1;

	if (!ix->head || (ix->mapped && !ix->changed && !ix->broken))
		return;
	if (ix->broken) {
		index_touch(ix);
		return;
	}
	/* Nothing to remember: no file, so that none stays behind a network that goes. */
	if (index_is_empty(ix)) {
		dir = open(s->index_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir >= 0)
			file_remove(dir, s->index_name);
		return;
	}
	if (!ix->mapped)
		dir = open_index_dir(s);
	if ((ix->mapped || dir >= 0) && seal(s) && !ix->mapped)
		index_publish(ix, dir, s->index_name);
}

void store_close(struct store *s)
{
	if (s->lock >= 0)
		save_index(s);
	watch_end(&s->watch, s->dir);
	index_free(&s->index);
	drop_dir(s);
	/* A new directory of that name: the index of the former one has no use any more. */
	if (s->made)
		store_sweep(s->index_dir);
	*s = (struct store)STORE_INIT;
}
