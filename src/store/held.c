#include "store/store.h"

#include "base/cleanup.h"
#include "base/trace.h"
#include "base/vec.h"

#include <errno.h>

static int remove_lease(struct store *s, const char *name)
{
	uint64_t start = trace_start();
	int ret = store_unlink(s, name);

	trace_step(start, TRACE_FILE, -ret, "remove %s", name);
	return ret;
}

/* Removes the lease file just read and takes it out of the index. */
static int drop(struct store *s, const struct ip *ip, const char *name, uint64_t hash)
{
	int ret;

	store_change(s);
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
	int kind = lease_read(s->dir, ip_format(ip, name), &found, &fd);

	if (kind < 0)
		return kind;
	if (kind != LEASE_HELD || !holder_same(&found, holder))
		return 1;
	return drop(s, ip, name, store_hash(s, holder));
}

static int push_ip(struct ip_list *l, const struct ip *ip)
{
	struct ip *p = vec_add(l->list, l->len);

	if (!p)
		return -ENOMEM;
	*p = *ip;
	return 0;
}

/* Whether the store agrees with the index about a lease: 1, 0 or -errno. */
static int confirm(struct store *s, const struct ip *ip, const struct holder *holder)
{
	autoclose int fd = -1;
	struct holder found;
	char name[IP_STRLEN];
	int kind = lease_read(s->dir, ip_format(ip, name), &found, &fd);

	return kind < 0 ? kind : kind == LEASE_HELD && holder_same(&found, holder);
}

int store_held(struct store *s, const struct holder *holder, struct ip_list *out)
{
	for (;;) {
		uint64_t hash = store_hash(s, holder);
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
		ret = store_reread(s);
		if (ret)
			return ret;
	}
}

bool store_old(const struct store *s, const struct ip *ip)
{
	autoclose int fd = -1;
	struct holder holder;
	char name[IP_STRLEN];

	return lease_read(s->dir, ip_format(ip, name), &holder, &fd) == LEASE_HELD &&
	       lease_age(&s->boot, fd) == LEASE_OF_EARLIER_BOOT;
}

/* ---- GC ---- */

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
			kept[2 * i] = store_hash(s, &keep[i]);
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
		ret = store_reread(s);
		if (ret)
			return ret;
	}
}

/* Removes what stands under that address, unless its holder is kept. */
static void collect(
	struct store *s, const struct ip *ip, const uint64_t *kept, size_t kept_len, struct err *e)
{
	autoclose int fd = -1;
	struct holder holder;
	char name[IP_STRLEN];
	uint64_t hash;
	int ret = lease_read(s->dir, ip_format(ip, name), &holder, &fd);

	if (ret < 0)
		err_sys(e, -ret, ERR_IO, "cannot read the lease of %s", name);
	if (ret != LEASE_HELD)
		return;
	hash = store_hash(s, &holder);
	if (is_kept(kept, kept_len, hash))
		return;
	ret = drop(s, ip, name, hash);
	if (ret)
		err_sys(e, -ret, ERR_IO, "cannot release %s", name);
}

int store_gc(struct store *s, const struct holder *keep, size_t len, struct err *e)
{
	autofree uint64_t *kept = calloc(2 * len + 1, sizeof(*kept));
	struct ip_list stale = {0};
	autofree struct ip *list = NULL;
	int ret = kept ? find_stale(s, keep, len, kept, &stale) : -ENOMEM;

	list = stale.list;
	if (ret)
		return err_sys(e, -ret, ERR_IO, "cannot read lease store %s", s->path);
	for (size_t i = 0; i < stale.len; i++)
		collect(s, &list[i], kept, 2 * len, e);
	return e->set ? -1 : 0;
}
