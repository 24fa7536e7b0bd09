#include "store/lease.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#define LOCK_NAME  "lock"
#define TEMP_NAME  ".lease.tmp"
#define BOOT_XATTR "user.cnibox.boot"
#define BOOT_FILE  "/proc/sys/kernel/random/boot_id"

/* Content of the lease being looked at; holders read from it point here until the next is read. */
static char content[LEASE_MAX + 1];

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* No white space, no control characters, at least one byte. */
static bool is_word(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] <= ' ' || s[i] == 0x7f)
			return false;
	return len > 0;
}

/* The Go plugin takes what the kernel does: all but white space. */
static bool is_ifname(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (is_space(s[i]) || !s[i])
			return false;
	return len > 0;
}

enum lease_kind lease_parse(char *text, size_t len, struct holder *out)
{
	size_t zeros = 0, id;

	/* Some filesystems show a file that was never written out as zeros. */
	while (zeros < len && !text[zeros])
		zeros++;
	if (zeros == len)
		return LEASE_DEBRIS;
	while (len && is_space(*text)) {
		text++;
		len--;
	}
	while (len && is_space(text[len - 1]))
		len--;
	text[len] = '\0';
	for (id = 0; id < len && text[id] != '\r'; id++)
		;
	if (!is_word(text, id))
		return LEASE_FOREIGN;
	if (id < len && (text[id + 1] != '\n' || !is_ifname(text + id + 2, len - id - 2)))
		return LEASE_FOREIGN;
	*out = (struct holder){.id = text, .ifname = id < len ? text + id + 2 : NULL};
	text[id] = '\0';
	return LEASE_HELD;
}

enum boot { BOOT_UNKNOWN, BOOT_THIS, BOOT_EARLIER };

static enum boot lease_boot(const struct store *s, int fd)
{
	char value[INDEX_BOOT_LEN + 1];
	ssize_t n = *s->boot ? fgetxattr(fd, BOOT_XATTR, value, sizeof(value)) : -1;

	if (n != INDEX_BOOT_LEN)
		return BOOT_UNKNOWN;
	return memcmp(value, s->boot, INDEX_BOOT_LEN) ? BOOT_EARLIER : BOOT_THIS;
}

/* Best effort: not every filesystem has user attributes. */
static void stamp_lease(const struct store *s, int fd)
{
	if (*s->boot)
		fsetxattr(fd, BOOT_XATTR, s->boot, INDEX_BOOT_LEN, 0);
}

/* What opening or reading something that is no regular file ends with: a symlink, a socket or a
 * device without driver, a directory, a FIFO. All else (EIO, EMFILE, ENOMEM) says nothing about the
 * file, and must not be taken for an answer: the lease may well be there. */
static bool is_foreign(int err)
{
	return err == ELOOP || err == ENXIO || err == ENODEV || err == EISDIR || err == EAGAIN ||
	       err == EINVAL;
}

/* Reads the file of that name into `content`; returns an enum lease_kind, or -errno when that could
 * not be done. fd receives the descriptor, the caller's to close. */
static int lease_open(const struct store *s, const char *name, struct holder *out, int *fd)
{
	struct stat st;
	ssize_t n;

	do
		*fd = openat(
			s->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	while (*fd < 0 && errno == EINTR);
	if (*fd < 0 && errno == ENOENT)
		return LEASE_NONE;
	do
		n = *fd < 0 ? -1 : read(*fd, content, LEASE_MAX);
	while (*fd >= 0 && n < 0 && errno == EINTR);
	if (n < 0)
		return is_foreign(errno) ? LEASE_FOREIGN : -errno;
	if (n == LEASE_MAX)
		return LEASE_FOREIGN;
	/* A FIFO or device of that name is no debris. */
	if (!n && fstat(*fd, &st) < 0)
		return -errno;
	if (!n && !S_ISREG(st.st_mode))
		return LEASE_FOREIGN;
	return (int)lease_parse(content, (size_t)n, out);
}

static bool same_holder(const struct holder *a, const struct holder *b)
{
	if (strcmp(a->id, b->id) || !a->ifname != !b->ifname)
		return false;
	return !a->ifname || !strcmp(a->ifname, b->ifname);
}

static uint64_t holder_hash(const struct store *s, const struct holder *h)
{
	return index_hash(&s->index, h->id, h->ifname);
}

/* One name of the directory into the index. */
static int scan_name(struct store *s, struct index *ix, const char *name)
{
	autoclose int fd = -1;
	struct holder holder;
	char text[IP_STRLEN];
	enum boot boot;
	struct ip ip;
	int kind;

	if (!strcmp(name, TEMP_NAME))
		unlinkat(s->dir, name, 0);
	if (!ip_parse(name, &ip) || strcmp(ip_format(&ip, text), name))
		return 0;
	kind = lease_open(s, name, &holder, &fd);
	if (kind == LEASE_FOREIGN)
		index_block(ix, &ip);
	if (kind != LEASE_HELD)
		return kind < 0 ? kind : 0;
	boot = lease_boot(s, fd);
	/* Made by the Go plugin. When, nobody knows; from here on it ages. */
	if (boot == BOOT_UNKNOWN)
		stamp_lease(s, fd);
	index_add(ix, &ip, index_hash(ix, holder.id, holder.ifname), boot == BOOT_EARLIER);
	return 0;
}

/* Builds the index anew from the store. */
static int rebuild(struct store *s)
{
	uint64_t start = trace_start();
	struct index ix;
	struct dirent *entry;
	int fd, ret = index_init(&ix);
	DIR *dir;

	if (ret)
		return ret;
	fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
		index_free(&ix);
		return ret;
	}
	while (!ret && (errno = 0, entry = readdir(dir)) && !ix.broken)
		ret = scan_name(s, &ix, entry->d_name);
	if (!ret)
		ret = ix.broken ? -ENOMEM : -errno;
	closedir(dir);
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

/* A store that several machines share would hold leases of other boots that are in use. */
static bool is_local(int fd)
{
	static const uint32_t local[] = {0xef53 /* ext4 */, 0x58465342 /* xfs */,
		0x9123683e /* btrfs */, 0x01021994 /* tmpfs */, 0x794c7630 /* overlay */,
		0x2fc12fc1 /* zfs */, 0xf2f52010 /* f2fs */, 0xca451a4e /* bcachefs */};
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < array_len(local); i++)
		if ((uint32_t)st.f_type == local[i])
			return true;
	return false;
}

static void read_boot(struct store *s)
{
	autoclose int fd = is_local(s->dir) ? open(BOOT_FILE, O_RDONLY | O_CLOEXEC) : -1;
	char text[INDEX_BOOT_LEN];

	if (fd >= 0 && read(fd, text, sizeof(text)) == (ssize_t)sizeof(text) &&
		is_word(text, sizeof(text)))
		memcpy(s->boot, text, sizeof(text));
}

int store_open(struct store *s, const char *path, const char *index_dir, bool create, struct err *e)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int ret;

	s->index_dir = index_dir;
	s->dir = open(path, flags);
	if (s->dir < 0 && errno == ENOENT) {
		if (!create)
			return 1;
		ret = file_mkdirs(path, 0755);
		if (ret)
			return err_sys(e, -ret, ERR_IO, "cannot create lease store %s", path);
		s->dir = open(path, flags);
	}
	if (s->dir < 0)
		return err_sys(e, errno, ERR_IO, "cannot open lease store %s", path);
	read_boot(s);
	return 0;
}

int store_lock(struct store *s, struct err *e)
{
	const int flags = O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	uint64_t start = trace_start();
	char path[PATH_MAX];
	struct stat st;
	int ret;

	s->lock = openat(s->dir, LOCK_NAME, flags, 0750);
	if (s->lock < 0)
		return err_sys(e, errno, ERR_IO, "cannot open the lock of the lease store");
	do
		ret = flock(s->lock, LOCK_EX);
	while (ret < 0 && errno == EINTR);
	trace_step(start, TRACE_FILE, ret ? errno : 0, "lock");
	if (ret || fstat(s->dir, &st) < 0)
		return err_sys(e, errno, ERR_IO, "cannot lock the lease store");
	/* Device and inode are the identity of a directory, whatever the path to it. */
	snprintf(s->index_name, sizeof(s->index_name), "%llx-%llx.index",
		(unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	ret = snprintf(path, sizeof(path), "%s/%s", s->index_dir, s->index_name);
	if (ret < 0 || (size_t)ret >= sizeof(path) || index_open(&s->index, path, &st, s->boot)) {
		ret = rebuild(s);
		if (ret)
			return err_sys(e, -ret, ERR_IO, "cannot read the lease store");
	}
	return 0;
}

/* Stamps the directory and records that in the index. Best effort throughout: without an index the
 * next call reads the store. */
static void save_index(struct store *s)
{
	struct index *ix = &s->index;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	autoclose int dir = -1;
	struct stat st;

	if (!ix->head || (ix->mapped && !ix->changed && !ix->broken))
		return;
	if (ix->broken) {
		index_touch(ix);
		return;
	}
	if (!ix->mapped) {
		dir = open(s->index_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0 && errno == ENOENT && !file_mkdirs(s->index_dir, 0755))
			dir = open(s->index_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0)
			return;
	}
	times[1] = index_stamp(ix);
	if (futimens(s->dir, times) < 0 || fstat(s->dir, &st) < 0)
		return;
	index_seal(ix, &st, s->boot);
	if (!ix->mapped)
		index_publish(ix, dir, s->index_name);
}

void store_close(struct store *s)
{
	if (s->lock >= 0) {
		save_index(s);
		close(s->lock);
	}
	index_free(&s->index);
	if (s->dir >= 0)
		close(s->dir);
	*s = (struct store)STORE_INIT;
}

static int write_lease(const struct store *s, int fd, const struct buf *text)
{
	int ret = file_write_fd(fd, text->data, text->len);

	if (ret)
		return ret;
	stamp_lease(s, fd);
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
	return ret ? err_sys(e, -ret, ERR_IO, "cannot write a lease") : 0;
}

void draft_free(struct draft *d)
{
	if (d->fd >= 0)
		close(d->fd);
	buf_free(&d->text);
	*d = (struct draft)DRAFT_INIT;
}

/* The way for filesystems without unnamed files. The name is always the same, is no address, and
 * goes with the next scan or lease if we are killed. */
static int link_named(const struct store *s, const struct draft *d, const char *name)
{
	autoclose int fd = openat(s->dir, TEMP_NAME,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	int ret = fd < 0 ? -errno : write_lease(s, fd, &d->text);

	if (!ret && linkat(s->dir, TEMP_NAME, s->dir, name, 0) < 0)
		ret = -errno;
	if (fd >= 0)
		unlinkat(s->dir, TEMP_NAME, 0);
	return ret;
}

static int publish(const struct store *s, const struct draft *d, const char *name)
{
	uint64_t start = trace_start();
	int ret = d->fd < 0 ? link_named(s, d, name) : file_link(d->fd, s->dir, name);

	trace_step(start, TRACE_FILE, -ret, "lease %s", name);
	return ret;
}

static int remove_lease(struct store *s, const char *name)
{
	uint64_t start = trace_start();
	int ret = unlinkat(s->dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;

	trace_step(start, TRACE_FILE, -ret, "remove %s", name);
	return ret;
}

/* Removes what stands in the way if it is debris or, when reclaiming, of an earlier boot. */
static bool make_way(struct store *s, const struct ip *ip, const char *name, bool reclaim)
{
	autoclose int fd = -1;
	struct holder holder;
	int kind = lease_open(s, name, &holder, &fd);

	if (kind == LEASE_DEBRIS)
		return !remove_lease(s, name);
	if (kind != LEASE_HELD || !reclaim || lease_boot(s, fd) != BOOT_EARLIER)
		return kind == LEASE_NONE;
	if (remove_lease(s, name))
		return false;
	index_del(&s->index, ip, holder_hash(s, &holder));
	return true;
}

int store_take(struct store *s, struct draft *d, const struct ip *ip, bool reclaim)
{
	char name[IP_STRLEN];
	int ret;

	ip_format(ip, name);
	index_touch(&s->index);
	ret = publish(s, d, name);
	if (ret == -EEXIST && make_way(s, ip, name, reclaim))
		ret = publish(s, d, name);
	if (!ret)
		index_add(&s->index, ip, holder_hash(s, &d->holder), false);
	return ret;
}

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

int store_take_next(struct store *s, struct draft *d, const struct range_set *set,
	const struct ip *after, bool reclaim, struct ip *out)
{
	for (;;) {
		bool old = false;
		bool found = next_in_set(s, set, after, false, out);
		int ret = -EEXIST;

		if (!found && reclaim)
			found = old = next_in_set(s, set, after, true, out);
		if (found && !s->index.broken)
			ret = store_take(s, d, out, old);
		if (ret != -EEXIST)
			return ret;
		/* The index was wrong, or nothing is free: ask the store, once. If even then a name
		 * is taken that was not there, somebody makes files without the lock. */
		if (!s->fresh || s->index.broken)
			ret = rebuild(s);
		else if (found)
			index_block(&s->index, out);
		else
			return -ENOSPC;
		if (ret && ret != -EEXIST)
			return ret;
	}
}

bool store_has_free(struct store *s, const struct range_set *set, bool reclaim)
{
	struct ip ip;

	for (;;) {
		bool found = next_in_set(s, set, NULL, false, &ip) ||
			     (reclaim && next_in_set(s, set, NULL, true, &ip));

		if (!s->index.broken || rebuild(s))
			return found;
	}
}

/* Removes the lease file just read and takes it out of the index. */
static int drop(struct store *s, const struct ip *ip, const char *name, uint64_t hash)
{
	int ret;

	index_touch(&s->index);
	ret = remove_lease(s, name);
	if (!ret)
		index_del(&s->index, ip, hash);
	return ret;
}

int store_release(struct store *s, const struct ip *ip, const struct holder *holder)
{
	autoclose int fd = -1;
	struct holder found;
	char name[IP_STRLEN];
	int kind = lease_open(s, ip_format(ip, name), &found, &fd);

	if (kind < 0)
		return kind;
	if (kind != LEASE_HELD || !same_holder(&found, holder))
		return 1;
	return drop(s, ip, name, holder_hash(s, holder));
}

static int push_ip(struct ip_list *l, const struct ip *ip)
{
	struct ip *p;

	/* Full at every power of two. */
	if (!(l->len & (l->len - 1))) {
		p = reallocarray(l->list, l->len ? l->len * 2 : 1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		l->list = p;
	}
	l->list[l->len++] = *ip;
	return 0;
}

/* Whether the store agrees with the index about a lease: 1, 0 or -errno. */
static int confirm(struct store *s, const struct ip *ip, const struct holder *holder)
{
	autoclose int fd = -1;
	struct holder found;
	char name[IP_STRLEN];
	int kind = lease_open(s, ip_format(ip, name), &found, &fd);

	return kind < 0 ? kind : kind == LEASE_HELD && same_holder(&found, holder);
}

int store_held(struct store *s, const struct holder *holder, struct ip_list *out)
{
	for (;;) {
		uint64_t hash = holder_hash(s, holder);
		size_t pos = 0, before = out->len;
		struct ip ip;
		int ret = 0;

		while (ret >= 0 && index_held(&s->index, hash, &pos, &ip)) {
			ret = confirm(s, &ip, holder);
			if (ret > 0)
				ret = push_ip(out, &ip);
			else if (!ret)
				s->index.broken = !s->fresh;
		}
		if (ret || !s->index.broken)
			return ret;
		out->len = before;
		ret = rebuild(s);
		if (ret)
			return ret;
	}
}

bool store_old(const struct store *s, const struct ip *ip)
{
	autoclose int fd = -1;
	struct holder holder;
	char name[IP_STRLEN];

	return lease_open(s, ip_format(ip, name), &holder, &fd) == LEASE_HELD &&
	       lease_boot(s, fd) == BOOT_EARLIER;
}

static int cmp_hash(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool is_kept(const uint64_t *kept, size_t len, uint64_t hash)
{
	return len && bsearch(&hash, kept, len, sizeof(*kept), cmp_hash);
}

/* Addresses whose holder is not kept, by the index; the sorted hashes of those kept. */
static int find_stale(struct store *s, const struct holder *keep, size_t len, uint64_t *kept,
	struct ip_list *stale)
{
	for (;;) {
		size_t pos = 0;
		uint64_t hash;
		struct ip ip;
		int ret = 0;

		for (size_t i = 0; i < len; i++) {
			kept[2 * i] = holder_hash(s, &keep[i]);
			kept[2 * i + 1] = index_hash(&s->index, keep[i].id, NULL);
		}
		if (len)
			qsort(kept, 2 * len, sizeof(*kept), cmp_hash);
		stale->len = 0;
		while (!ret && index_each(&s->index, &pos, &ip, &hash))
			if (!is_kept(kept, 2 * len, hash))
				ret = push_ip(stale, &ip);
		if (ret || !s->index.broken)
			return ret;
		ret = rebuild(s);
		if (ret)
			return ret;
	}
}

int store_gc(struct store *s, const struct holder *keep, size_t len, struct err *e)
{
	autofree uint64_t *kept = calloc(2 * len + 1, sizeof(*kept));
	struct ip_list stale = {0};
	autofree struct ip *list = NULL;
	int ret = kept ? find_stale(s, keep, len, kept, &stale) : -ENOMEM;

	list = stale.list;
	if (ret)
		return err_sys(e, -ret, ERR_IO, "cannot read the lease store");
	for (size_t i = 0; i < stale.len; i++) {
		autoclose int fd = -1;
		struct holder holder;
		char name[IP_STRLEN];
		uint64_t hash;

		ret = lease_open(s, ip_format(&list[i], name), &holder, &fd);
		if (ret < 0)
			err_sys(e, -ret, ERR_IO, "cannot read the lease of %s", name);
		if (ret != LEASE_HELD)
			continue;
		hash = holder_hash(s, &holder);
		if (is_kept(kept, 2 * len, hash))
			continue;
		ret = drop(s, &list[i], name, hash);
		if (ret)
			err_sys(e, -ret, ERR_IO, "cannot release %s", name);
	}
	return e->set ? -1 : 0;
}

static const char *marker_name(size_t n, char name[static 40])
{
	snprintf(name, 40, "last_reserved_ip.%zu", n);
	return name;
}

void marker_read(const struct store *s, size_t n, struct marker *m)
{
	char name[40], text[IP_STRLEN + 1];
	ssize_t len;

	*m = (struct marker){0};
	m->fd = openat(s->dir, marker_name(n, name),
		O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	len = m->fd < 0 ? -1 : read(m->fd, text, sizeof(text) - 1);
	if (len <= 0)
		return;
	m->len = (size_t)len;
	text[len] = '\0';
	if (strlen(text) == (size_t)len)
		ip_parse(text, &m->last);
}

/* In place: no new file, no change of the directory, a third of the calls of a rename. Torn by a
 * crash it is absent or another address, and the search begins there. */
static int marker_put(struct marker *m, const char *text)
{
	size_t len = strlen(text);

	if (pwrite(m->fd, text, len, 0) != (ssize_t)len)
		return errno ? -errno : -EIO;
	return m->len > len && ftruncate(m->fd, (off_t)len) < 0 ? -errno : 0;
}

void marker_write(struct store *s, size_t n, struct marker *m, const struct ip *ip)
{
	uint64_t start = trace_start();
	char name[40], text[IP_STRLEN];
	int ret;

	marker_name(n, name);
	if (m->fd < 0) {
		index_touch(&s->index);
		m->fd = openat(s->dir, name,
			O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	}
	ret = m->fd < 0 ? -errno : marker_put(m, ip_format(ip, text));
	trace_step(start, TRACE_FILE, -ret, "write %s", name);
	marker_close(m);
}

void marker_close(struct marker *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}
