#include "portmap/lookup.h"

#include "base/cleanup.h"
#include "portmap/layout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int copy_comment(const struct nft_elem_info *el, void *arg)
{
	snprintf(arg, NFT_COMMENT_SIZE, "%s", el->comment);
	return 0;
}

int lookup_comment(struct nft *n, const char *set, const struct nft_key *key,
	char out[static NFT_COMMENT_SIZE])
{
	out[0] = '\0';
	return nft_elem_get(n, &port_table, set, key, copy_comment, out);
}

int lookup_owner(struct nft *n, const char *set, const struct nft_key *key, struct owner_ref *ref)
{
	char comment[NFT_COMMENT_SIZE];
	int ret = lookup_comment(n, set, key, comment);
	bool known = !ret && owner_parse(comment, ref);

	ref->text = "";
	return ret ? ret : known;
}

static int read_line(struct nft *n, const char *hash, size_t index, struct port_record *m)
{
	struct nft_key key = layout_owner_key(hash, index);
	char line[NFT_COMMENT_SIZE];
	int ret = lookup_comment(n, LAYOUT_OWNERS, &key, line);

	return ret ? ret : record_read(m, line);
}

int lookup_record(struct nft *n, const char *hash, struct port_record *m)
{
	bool found = false;
	size_t last = 1;
	int ret = -ENOENT;

	*m = (struct port_record){.nsid = -1};
	snprintf(m->hash, sizeof(m->hash), "%s", hash);
	/* What somebody took out by hand is left out: the rest is still worth having. Without the
	 * line that says how many there are, they end where one is missing. */
	for (size_t i = 0; i < 2 || i < m->records || (!m->records && i <= last + 1); i++) {
		ret = read_line(n, hash, i, m);
		if (ret && ret != -ENOENT)
			break;
		if (!ret && i > last)
			last = i;
		found |= !ret;
		ret = found ? 0 : -ENOENT;
	}
	if (!m->records)
		m->records = last + 1;
	if (!ret) {
		autoerr ignored = {0};

		if (record_sort(m, &ignored))
			m->len = 0;
		return 0;
	}
	record_free(m);
	return ret;
}

struct listing {
	int (*fn)(const struct owner_ref *ref, void *arg);
	void *arg;
};

static int take_owner(const struct nft_elem_info *el, void *arg)
{
	const struct listing *l = arg;
	struct owner_ref ref;

	return owner_parse(el->comment, &ref) ? l->fn(&ref, l->arg) : 0;
}

int lookup_owners(struct nft *n, int (*fn)(const struct owner_ref *ref, void *arg), void *arg)
{
	struct listing l = {fn, arg};
	int ret = nft_elems(n, &port_table, LAYOUT_OWNERS, take_owner, NULL, &l);

	return ret == -ENOENT ? 0 : ret;
}
