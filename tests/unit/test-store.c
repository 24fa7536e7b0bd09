/* src/store: ranges, the content of leases, the index, and the store in a directory of its own. */
#include "check.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "ipam/rangeconf.h"
#include "store/index.h"
#include "store/lease.h"
#include "store/range.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct ip ip(const char *text)
{
	struct ip out = {0};

	if (*text)
		CHECK(ip_parse(text, &out));
	return out;
}

static struct range range(const char *subnet, const char *start, const char *end, const char *gw)
{
	struct range r = {.start = ip(start), .end = ip(end), .gateway = ip(gw)};

	if (*subnet)
		CHECK(prefix_parse(subnet, &r.subnet));
	return r;
}

/* --- ranges --- */

static void test_range(void)
{
	static const struct {
		const char *subnet, *start, *end, *gw, *expected;
	} cases[] = {
		{"10.0.0.0/24", "", "", "", "10.0.0.1-10.0.0.254 gw 10.0.0.1"},
		{"10.0.0.0/30", "", "", "", "10.0.0.1-10.0.0.2 gw 10.0.0.1"},
		{"10.0.0.0/24", "10.0.0.0", "10.0.0.255", "192.168.0.1",
			"10.0.0.0-10.0.0.255 gw 192.168.0.1"},
		{"10.0.0.0/24", "10.0.0.9", "10.0.0.9", "10.0.0.9",
			"10.0.0.9-10.0.0.9 gw 10.0.0.9"},
		{"fd00::/64", "", "", "", "fd00::1-fd00::ffff:ffff:ffff:ffff gw fd00::1"},
		{"fd00::/126", "", "", "", "fd00::1-fd00::3 gw fd00::1"},
		{"0.0.0.0/0", "", "", "", "0.0.0.1-255.255.255.254 gw 0.0.0.1"},
		{"", "", "", "", "! IP <nil> not v4 nor v6"},
		{"10.0.0.0/31", "", "", "", "! Network 10.0.0.0/31 too small to allocate from"},
		{"fd00::/127", "", "", "", "! Network fd00::/127 too small to allocate from"},
		{"10.0.0.1/24", "", "", "",
			"! Network has host bits set. For a subnet mask of length 24 the network "
			"address is 10.0.0.0"},
		{"10.0.0.0/24", "10.0.1.1", "", "",
			"! RangeStart 10.0.1.1 not in network 10.0.0.0/24"},
		{"10.0.0.0/24", "10.0.0.9", "10.0.0.8", "",
			"! RangeStart 10.0.0.9 not in network 10.0.0.0/24"},
		{"10.0.0.0/24", "10.0.0.255", "", "",
			"! RangeStart 10.0.0.255 not in network 10.0.0.0/24"},
		{"10.0.0.0/24", "", "10.0.1.8", "",
			"! RangeEnd 10.0.1.8 not in network 10.0.0.0/24"},
		{"10.0.0.0/24", "", "10.0.0.0", "",
			"! RangeEnd 10.0.0.0 not in network 10.0.0.0/24"},
		{"10.0.0.0/24", "fd00::1", "", "",
			"! RangeStart fd00::1 not in network 10.0.0.0/24"},
		{"10.0.0.0/24", "", "", "fd00::1",
			"! gateway fd00::1 is not of the address family of network 10.0.0.0/24"},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		struct range r = range(cases[i].subnet, cases[i].start, cases[i].end, cases[i].gw);
		char a[IP_STRLEN], b[IP_STRLEN], c[IP_STRLEN], text[256];
		autoerr e = {0};

		if (range_complete(&r, &e)) {
			CHECK_INT(e.code, ERR_INVALID_CONFIG);
			snprintf(text, sizeof(text), "! %s", e.msg);
		} else {
			snprintf(text, sizeof(text), "%s-%s gw %s", ip_format(&r.start, a),
				ip_format(&r.end, b), ip_format(&r.gateway, c));
		}
		CHECK_STR(text, cases[i].expected);
	}
}

static void test_range_set(void)
{
	struct range list[3] = {range("10.0.0.0/24", "10.0.0.10", "10.0.0.19", ""),
		range("10.0.0.0/24", "10.0.0.20", "10.0.0.29", ""), range("fd00::/64", "", "", "")};
	struct range_set two = {list, 2}, three = {list, 3}, none = {list, 0}, one = {list + 2, 1};
	struct range wide[1] = {range("10.0.0.0/16", "", "", "")};
	struct range_set set = {wide, 1};
	struct ip a = ip("10.0.0.20"), b = ip("10.0.0.30");
	autofree char *text = NULL;
	autoerr e = {0};

	for (int i = 0; i < 3; i++)
		CHECK(!range_complete(&list[i], &e));
	CHECK(!range_complete(&wide[0], &e));
	CHECK(!range_set_check(&two, &e));
	text = range_set_text(&two);
	CHECK_STR(text, "10.0.0.10-10.0.0.19,10.0.0.20-10.0.0.29");
	CHECK(range_set_find(&two, &a) == &list[1]);
	CHECK(!range_set_find(&two, &b));
	CHECK(range_set_overlap(&two, &set));
	CHECK(!range_set_overlap(&two, &one));
	CHECK(range_set_check(&none, &e) < 0);
	CHECK_STR(e.msg, "empty range set");
	err_clear(&e);
	CHECK(range_set_check(&three, &e) < 0);
	CHECK_STR(e.msg, "mixed address families");
	err_clear(&e);
	list[1].start = ip("10.0.0.19");
	CHECK(range_set_check(&two, &e) < 0);
	CHECK_STR(e.msg, "subnets 10.0.0.10-10.0.0.19 and 10.0.0.19-10.0.0.29 overlap");
}

/* How many addresses a list of ranges "start-end gateway" holds. */
static void test_capacity(void)
{
	static const struct {
		const char *start, *end, *gw;
		uint64_t expected;
	} cases[] = {
		{"10.0.0.1", "10.0.0.254", "10.0.0.1", 253},
		{"10.0.0.1", "10.0.0.254", "10.0.1.1", 254},
		{"10.0.0.9", "10.0.0.9", "10.0.0.9", 0},
		{"0.0.0.1", "255.255.255.254", "0.0.0.1", 4294967293},
		{"fd00::1", "fd00::ff", "fd00::1", 254},
		{"fd00::10", "fd00::1000:0:0:10", "fd00::1", 0x1000000000000001},
		{"fd00::1", "fd00::ffff:ffff:ffff:ffff", "fd00::1", UINT64_MAX - 1},
		{"fd00::ffff:ffff:ffff:fff0", "fd00:0:0:1::f", "fd00::1", 32},
		{"fd00::", "fd00::ffff:ffff:ffff:ffff", "fe80::1", UINT64_MAX},
		{"fd00::1", "fd00:0:0:1::1", "fe80::1", UINT64_MAX},
		{"fd00::", "fdff::", "fd00::1", UINT64_MAX},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		struct range list[2] = {range("", cases[i].start, cases[i].end, cases[i].gw),
			range("", "10.9.0.1", "10.9.0.2", "10.9.0.1")};
		struct range_set set[2] = {{list, 1}, {list + 1, 1}};
		uint64_t n = cases[i].expected;

		CHECK(range_sets_capacity(&(struct range_sets){set, 1}) == n);
		CHECK(range_sets_capacity(&(struct range_sets){set, 2}) == (n + 1 ? n + 1 : n));
	}
}

/* --- content of leases --- */

static void test_lease_parse(void)
{
	static const struct {
		const char *text;
		size_t len;
		enum lease_kind kind;
		const char *id, *ifname;
	} cases[] = {
		{"", 0, LEASE_DEBRIS, NULL, NULL},
		{"\0\0\0\0", 4, LEASE_DEBRIS, NULL, NULL},
		{"c1\r\neth0", 8, LEASE_HELD, "c1", "eth0"},
		{" c1\r\neth0\n", 10, LEASE_HELD, "c1", "eth0"},
		{"c1", 2, LEASE_HELD, "c1", NULL},
		{"\tc1\r\n", 5, LEASE_HELD, "c1", NULL},
		{"c1\neth0", 7, LEASE_FOREIGN, NULL, NULL},
		{"c1 eth0", 7, LEASE_FOREIGN, NULL, NULL},
		{"c1\reth0", 7, LEASE_FOREIGN, NULL, NULL},
		{"c1\r\n\r\neth0", 10, LEASE_FOREIGN, NULL, NULL},
		{"c1\r\neth0\r\nx", 11, LEASE_FOREIGN, NULL, NULL},
		{"c1\0\r\neth0", 9, LEASE_FOREIGN, NULL, NULL},
		{"\r\neth0", 6, LEASE_HELD, "eth0", NULL},
		{"\n\n", 2, LEASE_FOREIGN, NULL, NULL},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		struct holder h = {0};
		char text[32] = {0};

		memcpy(text, cases[i].text, cases[i].len);
		CHECK_INT(lease_parse(text, cases[i].len, &h), cases[i].kind);
		CHECK_STR(h.id, cases[i].id);
		CHECK_STR(h.ifname, cases[i].ifname);
	}
}

/* --- the index --- */

#define MODEL 4096

/* Random changes against a plain array. Crosses pages, grows and shrinks. */
static void test_index_model(const char *base)
{
	struct ip first = ip(base), addr[MODEL];
	bool taken[MODEL] = {0}, old[MODEL] = {0};
	struct index ix;
	unsigned int seed = 1;

	CHECK(!index_init(&ix));
	for (int i = 0; i < MODEL; i++, first = ip_next(first))
		addr[i] = first;
	for (int round = 0; round < 40000; round++) {
		int i = rand_r(&seed) % MODEL;
		bool fill = round % 20000 < 12000 ? rand_r(&seed) % 4 : !(rand_r(&seed) % 4);
		char id[16];

		snprintf(id, sizeof(id), "c%d", i / 3);
		if (fill && !taken[i]) {
			old[i] = rand_r(&seed) % 2;
			index_add(&ix, &addr[i], index_hash(&ix, id, "eth0"), old[i]);
			taken[i] = true;
		} else if (!fill && taken[i]) {
			index_del(&ix, &addr[i], index_hash(&ix, id, "eth0"));
			taken[i] = old[i] = false;
		}
		if (round % 16)
			continue;
		{
			int free_at = i, held = 0, expected = 0;
			size_t pos = 0;
			struct ip found;
			bool any = index_next_free(&ix, &addr[i], &addr[MODEL - 1], &found);

			while (free_at < MODEL && taken[free_at])
				free_at++;
			if (any != (free_at < MODEL) || (any && ip_cmp(&found, &addr[free_at])))
				CHECK(false);
			for (int n = i / 3 * 3; n < i / 3 * 3 + 3 && n < MODEL; n++)
				expected += taken[n];
			while (index_held(&ix, index_hash(&ix, id, "eth0"), &pos, &found))
				held++;
			if (held != expected)
				CHECK_INT(held, expected);
		}
	}
	CHECK(!ix.broken);
	{
		size_t pos = 0, n = 0, expected = 0;
		uint64_t hash;
		struct ip found;

		while (index_each(&ix, &pos, &found, &hash))
			n++;
		for (int i = 0; i < MODEL; i++)
			expected += taken[i];
		CHECK_INT(n, expected);
		/* Fill what is free: then the old ones are found, in order. */
		for (int i = 0; i < MODEL; i++)
			if (!taken[i])
				index_block(&ix, &addr[i]);
		CHECK(!index_next_free(&ix, &addr[0], &addr[MODEL - 1], &found));
		for (int i = 0; i < MODEL; i++) {
			int at = i;

			while (at < MODEL && !old[at])
				at++;
			if (index_next_old(&ix, &addr[i], &addr[MODEL - 1], &found) !=
					(at < MODEL) ||
				(at < MODEL && ip_cmp(&found, &addr[at])))
				CHECK(false);
		}
	}
	index_free(&ix);
}

static void test_index_edges(void)
{
	struct ip lo = ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe");
	struct ip hi = ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), zero = ip("::");
	struct ip four = ip("255.255.255.255"), found;
	struct index ix;

	CHECK(!index_init(&ix));
	index_block(&ix, &lo);
	CHECK(index_next_free(&ix, &lo, &hi, &found) && !ip_cmp(&found, &hi));
	index_block(&ix, &hi);
	CHECK(!index_next_free(&ix, &lo, &hi, &found));
	CHECK(index_next_free(&ix, &zero, &hi, &found) && !ip_cmp(&found, &zero));
	CHECK(index_next_free(&ix, &four, &four, &found) && found.family == AF_INET);
	index_del(&ix, &zero, 1);
	CHECK(ix.broken);
	index_free(&ix);
}

/* --- the store --- */

static char root[] = "/tmp/test-store-XXXXXX";
static char path[PATH_MAX], index_dir[PATH_MAX];

static void put_file(const char *name, const char *text)
{
	char file[PATH_MAX * 2];
	FILE *f;

	snprintf(file, sizeof(file), "%s/%s", path, name);
	f = fopen(file, "w");
	if (CHECK(f != NULL)) {
		fputs(text, f);
		fclose(f);
	}
}

static const char *get_file(const char *name)
{
	static char text[64];
	char file[PATH_MAX * 2];
	ssize_t n;
	int fd;

	snprintf(file, sizeof(file), "%s/%s", path, name);
	fd = open(file, O_RDONLY);
	if (fd < 0)
		return NULL;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static void set_boot(const char *name, const char *boot)
{
	char file[PATH_MAX * 2];

	snprintf(file, sizeof(file), "%s/%s", path, name);
	CHECK(!setxattr(file, "user.cnibox.boot", boot, strlen(boot), 0));
}

static void lock_store(struct store *s)
{
	autoerr e = {0};

	CHECK(!store_open(s, path, index_dir, true, &e));
	CHECK(!store_lock(s, &e));
}

/* A call of its own, as a plugin makes it. The address, or "-" with errno. */
static const char *take_next(
	const struct range_set *set, const char *id, const char *after, bool reclaim)
{
	static char text[IP_STRLEN];
	const struct holder h = {id, "eth0"};
	struct draft d = DRAFT_INIT;
	autostore s = STORE_INIT;
	struct ip out, from = ip(after);
	autoerr e = {0};
	int ret;

	lock_store(&s);
	CHECK(!store_draft(&s, &h, &d, &e));
	ret = store_take_next(&s, &d, set, *after ? &from : NULL, reclaim, &out);
	draft_free(&d);
	if (ret == -ENOSPC)
		strcpy(text, "-ENOSPC");
	else if (ret)
		snprintf(text, sizeof(text), "%d", ret);
	else
		ip_format(&out, text);
	return text;
}

static int release(const char *addr, const char *id)
{
	const struct holder h = {id, "eth0"};
	autostore s = STORE_INIT;
	struct ip a = ip(addr);

	lock_store(&s);
	return store_release(&s, &a, &h);
}

static size_t held(const char *id, const char *ifname)
{
	const struct holder h = {id, ifname};
	autostore s = STORE_INIT;
	struct ip_list l = {0};

	lock_store(&s);
	CHECK(!store_held(&s, &h, &l));
	free(l.list);
	return l.len;
}

static bool index_is_fresh(void)
{
	autostore s = STORE_INIT;

	lock_store(&s);
	return !s.fresh;
}

static struct range small[1];
static const struct range_set pool = {small, 1};

static void new_store(const char *name)
{
	autoerr e = {0};

	snprintf(path, sizeof(path), "%s/%s", root, name);
	CHECK(!file_mkdirs(path, 0755));
	small[0] = range("10.0.0.0/29", "", "", ""); /* .2 to .6 */
	CHECK(!range_complete(&small[0], &e));
}

static void test_store_rotation(void)
{
	new_store("rotation");
	CHECK_STR(take_next(&pool, "a", "", false), "10.0.0.2");
	CHECK_STR(get_file("10.0.0.2"), "a\r\neth0");
	CHECK_STR(take_next(&pool, "b", "10.0.0.2", false), "10.0.0.3");
	CHECK(index_is_fresh());
	CHECK_STR(take_next(&pool, "c", "10.0.0.5", false), "10.0.0.6");
	CHECK_STR(take_next(&pool, "d", "10.0.0.6", false), "10.0.0.4");
	CHECK_STR(take_next(&pool, "e", "192.168.0.1", false), "10.0.0.5");
	CHECK_STR(take_next(&pool, "f", "10.0.0.2", false), "-ENOSPC");
	CHECK_INT(held("a", "eth0"), 1);
	CHECK_INT(held("a", "eth1"), 0);
	CHECK_INT(held("a", NULL), 0);
	CHECK_INT(release("10.0.0.4", "a"), 1);
	CHECK_INT(release("10.0.0.4", "d"), 0);
	CHECK_INT(release("10.0.0.4", "d"), 1);
	CHECK_STR(take_next(&pool, "f", "10.0.0.4", false), "10.0.0.4");
	CHECK(index_is_fresh());
}

static void test_store_foreign(void)
{
	new_store("foreign");
	CHECK_STR(take_next(&pool, "a", "", false), "10.0.0.2");
	/* Another plugin's lease, a note, debris, a name that is no address, a directory. */
	put_file("10.0.0.3", "go\r\neth0");
	put_file("10.0.0.4", "reserved for the printer\n");
	put_file("10.0.0.5", "");
	put_file("010.0.0.6", "x\r\neth0");
	put_file(".lease.tmp", "x\r\neth0");
	CHECK(!index_is_fresh());
	CHECK(index_is_fresh());
	CHECK(!get_file(".lease.tmp"));
	CHECK_INT(held("go", "eth0"), 1);
	CHECK_INT(held("x", "eth0"), 0);
	CHECK_STR(take_next(&pool, "b", "10.0.0.2", false), "10.0.0.5");
	CHECK_STR(get_file("10.0.0.5"), "b\r\neth0");
	CHECK_STR(take_next(&pool, "c", "", false), "10.0.0.6");
	CHECK_STR(take_next(&pool, "d", "", false), "-ENOSPC");
	CHECK_STR(get_file("10.0.0.4"), "reserved for the printer\n");
	/* Rewritten in place: the directory does not change, so the index cannot know. */
	put_file("10.0.0.2", "z\r\neth0");
	CHECK(index_is_fresh());
	CHECK_INT(release("10.0.0.2", "a"), 1);
	CHECK_INT(held("a", "eth0"), 0);
	CHECK_INT(held("z", "eth0"), 1);
	CHECK_INT(release("10.0.0.2", "z"), 0);
	/* Removed by hand. */
	CHECK(!unlinkat(AT_FDCWD, strcat(strcpy((char[PATH_MAX]){0}, path), "/10.0.0.3"), 0));
	CHECK_STR(take_next(&pool, "d", "", false), "10.0.0.2");
	CHECK_STR(take_next(&pool, "e", "", false), "10.0.0.3");
}

#define OTHER_BOOT "01234567-89ab-cdef-0123-456789abcdef"

static void test_store_boot(void)
{
	new_store("boot");
	for (char c = 'a'; c < 'f'; c++)
		take_next(&pool, (char[]){c, 0}, "", false);
	CHECK_STR(take_next(&pool, "x", "", true), "-ENOSPC");
	set_boot("10.0.0.4", OTHER_BOOT);
	set_boot("10.0.0.3", OTHER_BOOT);
	put_file("touch", "");
	CHECK_STR(take_next(&pool, "x", "", false), "-ENOSPC");
	CHECK_STR(take_next(&pool, "x", "10.0.0.3", true), "10.0.0.4");
	CHECK_STR(take_next(&pool, "y", "10.0.0.4", true), "10.0.0.3");
	CHECK_STR(take_next(&pool, "z", "", true), "-ENOSPC");
	CHECK_INT(held("b", "eth0"), 0);
	CHECK_INT(held("y", "eth0"), 1);
	CHECK(index_is_fresh());
}

static void test_store_gc(void)
{
	const struct holder keep[] = {{"b", "eth0"}, {"old", "eth7"}, {"c", "eth1"}};
	autostore s = STORE_INIT;
	autoerr e = {0};

	new_store("gc");
	for (char c = 'a'; c < 'd'; c++)
		take_next(&pool, (char[]){c, 0}, "", false);
	put_file("10.0.0.5", "old");
	put_file("10.0.0.6", "a note\n");
	put_file("notes", "a\r\neth0");
	lock_store(&s);
	CHECK(!store_gc(&s, keep, 3, &e));
	store_close(&s);
	CHECK(!get_file("10.0.0.2"));
	CHECK_STR(get_file("10.0.0.3"), "b\r\neth0");
	CHECK(!get_file("10.0.0.4"));
	CHECK_STR(get_file("10.0.0.5"), "old");
	CHECK_STR(get_file("10.0.0.6"), "a note\n");
	CHECK_STR(get_file("notes"), "a\r\neth0");
	CHECK(index_is_fresh());
	lock_store(&s);
	CHECK(!store_gc(&s, NULL, 0, &e));
	store_close(&s);
	CHECK(!get_file("10.0.0.3"));
	CHECK(!get_file("10.0.0.5"));
	CHECK_STR(get_file("10.0.0.6"), "a note\n");
}

/* Where there are no unnamed files. */
static void test_store_named(void)
{
	const struct holder h = {"a", "eth0"};
	struct draft d = DRAFT_INIT;
	autostore s = STORE_INIT;
	struct ip out;
	autoerr e = {0};

	new_store("named");
	lock_store(&s);
	CHECK(!store_draft(&s, &h, &d, &e));
	close(d.fd);
	d.fd = -1;
	CHECK(!store_take_next(&s, &d, &pool, NULL, false, &out));
	CHECK_INT(store_take(&s, &d, &out, true), -EEXIST);
	draft_free(&d);
	store_close(&s);
	CHECK_STR(get_file("10.0.0.2"), "a\r\neth0");
	CHECK(!get_file(".lease.tmp"));
}

static void test_marker(void)
{
	static const char *const bad[] = {"", "10.0.0.9\n", "x", "10.0.0.9 ",
		"10.0.0.9999999999999999999999999999999999999999999999999999"};
	struct marker m;
	struct ip a = ip("10.0.0.200"), b = ip("10.0.0.3");
	autostore s = STORE_INIT;

	new_store("marker");
	lock_store(&s);
	marker_read(&s, 0, &m);
	CHECK_INT(m.last.family, 0);
	marker_write(&s, 0, &m, &a);
	CHECK_STR(get_file("last_reserved_ip.0"), "10.0.0.200");
	marker_read(&s, 0, &m);
	CHECK(!ip_cmp(&m.last, &a));
	marker_write(&s, 0, &m, &b);
	CHECK_STR(get_file("last_reserved_ip.0"), "10.0.0.3");
	for (size_t i = 0; i < array_len(bad); i++) {
		put_file("last_reserved_ip.0", bad[i]);
		marker_read(&s, 0, &m);
		CHECK_INT(m.last.family, 0);
		marker_write(&s, 0, &m, &b);
		CHECK_STR(get_file("last_reserved_ip.0"), "10.0.0.3");
	}
}

/* The index file of the only store in index_dir. */
static void index_path(char out[static PATH_MAX * 2])
{
	struct stat st;

	CHECK(!stat(path, &st));
	snprintf(out, PATH_MAX * 2, "%s/%llx-%llx.index", index_dir, (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
}

/* Whatever the index says, leases are right: nothing is given twice or to the wrong one. */
static void test_corrupt_index(void)
{
	char file[PATH_MAX * 2], name[IP_STRLEN];
	unsigned int seed = 7;

	new_store("corrupt");
	for (char c = 'a'; c < 'e'; c++)
		take_next(&pool, (char[]){c, 0}, "", false);
	index_path(file);
	for (int round = 0; round < 300; round++) {
		autoclose int fd = open(file, O_RDWR);
		struct stat st;
		int n = round % 3 ? 1 + round % 50 : 4000;

		CHECK(fd >= 0 && !fstat(fd, &st));
		if (round % 29 == 28)
			CHECK(!ftruncate(fd, rand_r(&seed) % st.st_size));
		else
			while (n--) {
				uint8_t byte = (uint8_t)rand_r(&seed);
				off_t skip = round % 2 ? 128 : 0;

				CHECK(pwrite(fd, &byte, 1,
					      skip + rand_r(&seed) % (st.st_size - skip)) == 1);
			}
		strcpy(name, take_next(&pool, "x", "10.0.0.4", false));
		CHECK_STR(name, "10.0.0.6");
		CHECK_STR(take_next(&pool, "y", "", false), "-ENOSPC");
		CHECK_INT(held("x", "eth0"), 1);
		CHECK_INT(release(name, "x"), 0);
	}
}

/* An index that is whole and says the wrong thing: the store has the last word. */
static void test_wrong_index(void)
{
	const struct holder a = {"a", "eth0"};
	autostore s = STORE_INIT;
	struct stat st;
	struct ip at;

	new_store("wrong");
	CHECK_STR(take_next(&pool, "a", "", false), "10.0.0.2");
	lock_store(&s);
	at = ip("10.0.0.2");
	index_del(&s.index, &at, index_hash(&s.index, a.id, a.ifname));
	store_close(&s);
	CHECK(index_is_fresh());
	CHECK_STR(take_next(&pool, "b", "", false), "10.0.0.3");
	CHECK_INT(held("a", "eth0"), 1);
	lock_store(&s);
	for (at = ip("10.0.0.4"); at.bytes[3] < 8; at = ip_next(at))
		index_block(&s.index, &at);
	store_close(&s);
	CHECK(index_is_fresh());
	CHECK_STR(take_next(&pool, "c", "", false), "10.0.0.4");
	/* What it is valid for is a time that no clock gave the directory. */
	CHECK(!stat(path, &st) && st.st_mtim.tv_sec < st.st_ctim.tv_sec);
}

/* No place for an index: slower, otherwise the same. */
static void test_no_index(void)
{
	char saved[PATH_MAX];

	memcpy(saved, index_dir, sizeof(saved));
	strcpy(index_dir, "/proc/nowhere");
	new_store("noindex");
	CHECK_STR(take_next(&pool, "a", "", false), "10.0.0.2");
	CHECK_STR(take_next(&pool, "b", "", false), "10.0.0.3");
	CHECK(!index_is_fresh());
	CHECK_INT(held("b", "eth0"), 1);
	CHECK_INT(release("10.0.0.3", "b"), 0);
	memcpy(index_dir, saved, sizeof(saved));
}

/* Many processes at once. */
static void test_parallel(void)
{
	struct range wide[1] = {range("10.1.0.0/24", "", "", "")};
	struct range_set set = {wide, 1};
	autoerr e = {0};
	int alive = 0, status;
	size_t n = 0;
	DIR *d;

	new_store("parallel");
	CHECK(!range_complete(&wide[0], &e));
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();

		if (!pid) {
			for (int k = 0; k < 25; k++) {
				char id[32];

				snprintf(id, sizeof(id), "c%d-%d", i, k);
				if (*take_next(&set, id, "", false) == '-')
					_exit(1);
			}
			_exit(0);
		}
		CHECK(pid > 0);
		alive++;
	}
	while (alive-- && wait(&status) > 0)
		CHECK_INT(status, 0);
	d = opendir(path);
	for (struct dirent *entry; (entry = readdir(d));)
		n += !strncmp(entry->d_name, "10.", 3);
	closedir(d);
	CHECK_INT(n, 200);
	CHECK(index_is_fresh());
}

/* Killed at any moment: the next call neither loses nor doubles an address. */
static void test_killed(void)
{
	struct range wide[1] = {range("10.2.0.0/22", "", "", "")};
	struct range_set set = {wide, 1};
	char last[IP_STRLEN] = "";
	autoerr e = {0};

	new_store("killed");
	CHECK(!range_complete(&wide[0], &e));
	for (int i = 0; i < 60; i++) {
		char id[32];
		pid_t pid = fork();

		if (!pid) {
			for (int k = 0;; k++) {
				snprintf(id, sizeof(id), "c%d-%d", i, k);
				take_next(&set, id, "", false);
				if (k % 2)
					release("10.2.0.2", id);
			}
		}
		CHECK(pid > 0);
		usleep((useconds_t)(500 + i * 53));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		snprintf(id, sizeof(id), "k%d", i);
		snprintf(last, sizeof(last), "%s", take_next(&set, id, "", false));
		if (*last == '-')
			break;
		CHECK_INT(held(id, "eth0"), 1);
		CHECK(strstr(get_file(last), id) == get_file(last));
	}
}

static void remove_all(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	if (system(command))
		fprintf(stderr, "cannot remove %s\n", root);
}

int main(void)
{
	if (!mkdtemp(root))
		return 1;
	snprintf(index_dir, sizeof(index_dir), "%s/index", root);
	test_range();
	test_range_set();
	test_capacity();
	test_lease_parse();
	test_index_model("10.0.0.77");
	test_index_model("fd00::1:ff00");
	test_index_edges();
	test_store_rotation();
	test_store_foreign();
	test_store_boot();
	test_store_gc();
	test_store_named();
	test_marker();
	test_corrupt_index();
	test_wrong_index();
	test_no_index();
	test_parallel();
	test_killed();
	remove_all();
	return check_done();
}
