#include "store/store.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/trace.h"
#include "store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

static int write_lease(const struct store *s, int fd, const struct buf *text)
{
	int ret = file_write_fd(fd, text->data, text->len);

	if (ret)
		return ret;
	lease_stamp(&s->boot, fd);
	return fdatasync(fd) < 0 ? -errno : 0;
}

int store_draft(const struct store *s, const struct holder *holder, struct draft *d, struct err *e)
{
	uint64_t start;
	int ret;

	d->holder = *holder;
	buf_printf(&d->text, "%s\r\n%s", holder->id, holder->ifname);
	if (d->text.failed)
		return err_memory(e);
	if (d->text.len >= LEASE_MAX)
		return err_set(e, ERR_INVALID_ENVIRONMENT, "container ID is too long for a lease");
	start = trace_start();
	d->fd = openat(s->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (d->fd < 0)
		return 0; /* whatever the reason: the other way is tried, and reports */
	ret = write_lease(s, d->fd, &d->text);
	trace_step(start, TRACE_FILE, -ret, "write lease");
	return ret ? err_sys(e, -ret, ERR_IO, "cannot write a lease to %s", s->path) : 0;
}

void draft_free(struct draft *d)
{
	if (d->fd >= 0)
		close(d->fd);
	buf_free(&d->text);
	*d = (struct draft)DRAFT_INIT;
}

/* ---- publishing ---- */

static int write_new(struct store *s, const struct draft *d, const char *name)
{
	autoclose int fd = openat(s->dir, name,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	int ret;

	if (fd < 0)
		return -errno;
	store_changed(s);
	ret = write_lease(s, fd, &d->text);
	if (ret)
		store_unlink(s, name);
	return ret;
}

/* Without hard links (exFAT, some of FUSE): the name moves, unless it would replace another. Not
 * every file system has that either (EINVAL): then the lease is made under its name, exclusively,
 * and filled. We hold the lock, and killed in between we leave an empty file, which is debris. */
static int move_named(struct store *s, const struct draft *d, const char *name)
{
	/* By number: not every C library has the function. */
	if (!syscall(SYS_renameat2, s->dir, STORE_TEMP, s->dir, name, RENAME_NOREPLACE)) {
		/* Reported as a rename, as a name gone and as one that came. */
		watch_expect(&s->watch, 3);
		return 0;
	}
	return errno == EEXIST ? -EEXIST : write_new(s, d, name);
}

/* The way for filesystems without unnamed files; also where the draft is on another one than the
 * store has been since it was replaced. */
static int publish_named(struct store *s, const struct draft *d, const char *name)
{
	int ret = store_unlink(s, STORE_TEMP);

	if (!ret)
		ret = write_new(s, d, STORE_TEMP);
	if (ret)
		return ret;
	if (!linkat(s->dir, STORE_TEMP, s->dir, name, 0))
		store_changed(s);
	else
		ret = errno == EEXIST ? -EEXIST : move_named(s, d, name);
	store_unlink(s, STORE_TEMP);
	return ret;
}

static int publish_draft(struct store *s, const struct draft *d, const char *name)
{
	int ret = d->fd < 0 ? -ENOENT : file_link(d->fd, s->dir, name);

	if (ret && ret != -EEXIST)
		return publish_named(s, d, name);
	if (!ret)
		store_changed(s);
	return ret;
}

static int publish(struct store *s, const struct draft *d, const char *name)
{
	uint64_t start = trace_start();
	int ret = publish_draft(s, d, name);

	trace_step(start, TRACE_FILE, -ret, "lease %s", name);
	return ret;
}

/* Removes what stands in the way if it is debris or, when reclaiming, of an earlier boot. */
static bool make_way(struct store *s, const struct ip *ip, const char *name, bool reclaim)
{
	autoclose int fd = -1;
	struct holder holder;
	int kind = lease_read(s->dir, name, &holder, &fd);

	if (kind == LEASE_DEBRIS)
		return !store_unlink(s, name);
	if (kind != LEASE_HELD || !reclaim || lease_age(&s->boot, fd) != LEASE_OF_EARLIER_BOOT)
		return kind == LEASE_NONE;
	if (store_unlink(s, name))
		return false;
	index_del(&s->index, ip, store_hash(s, &holder));
	return true;
}

int store_take(struct store *s, struct draft *d, const struct ip *ip, bool reclaim)
{
	char name[IP_STRLEN];
	int ret;

	ip_format(ip, name);
	store_change(s);
	ret = publish(s, d, name);
	if (ret == -EEXIST && make_way(s, ip, name, reclaim))
		ret = publish(s, d, name);
	if (!ret)
		index_add(&s->index, ip, store_hash(s, &d->holder), false);
	return ret;
}

/* ---- searching ---- */

/* The first address of from..to that the index calls free (or old) and that is not the gateway. */
static bool next_in(struct store *s, const struct range *r, struct ip from, const struct ip *to,
	bool old, struct ip *out)
{
	bool (*next)(struct index *, const struct ip *, const struct ip *, struct ip *) =
		old ? index_next_old : index_next_free;

	while (ip_cmp(&from, to) <= 0) {
		if (!next(&s->index, &from, to, out))
			return false;
		if (ip_cmp(out, &r->gateway))
			return true;
		if (!ip_cmp(out, to))
			return false;
		from = ip_next(*out);
	}
	return false;
}

static bool next_in_set(struct store *s, const struct range_set *set, const struct ip *after,
	bool old, struct ip *out)
{
	const struct range *first = after ? range_set_find(set, after) : NULL;
	size_t at = first ? (size_t)(first - set->list) : 0;

	if (first && ip_cmp(after, &first->end) &&
		next_in(s, first, ip_next(*after), &first->end, old, out))
		return true;
	for (size_t i = first ? 1 : 0; i < set->len; i++) {
		const struct range *r = &set->list[(at + i) % set->len];

		if (next_in(s, r, r->start, &r->end, old, out))
			return true;
	}
	return first && next_in(s, first, first->start, after, old, out);
}

/* The best address by the index: one that is free, else one that is old. */
static bool find_address(struct store *s, const struct range_set *set, const struct ip *after,
	bool reclaim, struct ip *out, bool *old)
{
	*old = false;
	if (next_in_set(s, set, after, false, out))
		return true;
	*old = true;
	return reclaim && next_in_set(s, set, after, true, out);
}

int store_take_next(struct store *s, struct draft *d, const struct range_set *set,
	const struct ip *after, bool reclaim, struct ip *out)
{
	for (;;) {
		bool old, found = find_address(s, set, after, reclaim, out, &old);
		int ret = found && !s->index.broken ? store_take(s, d, out, old) : -EEXIST;

		if (ret != -EEXIST)
			return ret;
		if (!s->fresh || s->index.broken) {
			/* The index was wrong, or there is none left: ask the store, once. */
			ret = store_reread(s);
			if (ret)
				return ret;
		} else if (found) {
			/* Made after we read the store, without the lock. Not this one, then. */
			index_block(&s->index, out);
		} else {
			return 1;
		}
	}
}

int store_has_free(struct store *s, const struct range_set *set, bool reclaim)
{
	for (;;) {
		struct ip ip;
		bool old, found = find_address(s, set, NULL, reclaim, &ip, &old);
		int ret;

		/* As in an ADD, "none left" is the store's word, not the index's. */
		if (!s->index.broken && (found || s->fresh))
			return found;
		ret = store_reread(s);
		if (ret)
			return ret;
	}
}

/* ---- trying ---- */

/* "/a/b" to "/a" to "/", "a" to "."; false at the end. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!strcmp(path, "/") || !strcmp(path, "."))
		return false;
	if (!slash)
		strcpy(path, ".");
	else
		slash[slash == path] = '\0';
	return true;
}

/* Where there are no unnamed files: by what the file system says of itself. */
static int ask_room(const char *path)
{
	struct statvfs st;

	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0 || statvfs(path, &st) < 0)
		return -errno;
	return !st.f_bavail || (st.f_files && !st.f_favail) ? -ENOSPC : 0;
}

int store_try_write(const char *path)
{
	static const char text[64] = "";
	char at[PATH_MAX];

	if (strlen(path) < 1 || strlen(path) >= sizeof(at))
		return -ENAMETOOLONG;
	strcpy(at, path);
	for (;;) {
		autoclose int fd = open(at, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

		if (fd >= 0)
			return file_write_fd(fd, text, sizeof(text));
		if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)
			return ask_room(at);
		if (errno != ENOENT || !go_up(at))
			return -errno;
	}
}
