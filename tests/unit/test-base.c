/* src/base: addresses, errors, undo stack, buffers, files, hashes. */
#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/ip.h"
#include "base/mac.h"
#include "base/path.h"
#include "base/undo.h"
#include "base/vec.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static void test_ip(void)
{
	static const struct {
		const char *in, *out;
	} good[] = {
		{"10.0.0.1", "10.0.0.1"},
		{"0.0.0.0", "0.0.0.0"},
		{"255.255.255.255", "255.255.255.255"},
		{"::", "::"},
		{"::1", "::1"},
		{"FE80::ABCD", "fe80::abcd"},
		{"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
		{"2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"},
		{"1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"},
		{"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
		{"1:2:3:4:5:6::", "1:2:3:4:5:6::"},
		{"::ffff:10.0.0.1", "10.0.0.1"},
		{"::FFFF:a00:1", "10.0.0.1"},
		{"::10.0.0.1", "::a00:1"},
		{"64:ff9b::1.2.3.4", "64:ff9b::102:304"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
			"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	};
	static const char *const bad[] = {"", "10.0.0", "10.0.0.256", "010.0.0.1", "10.0.0.01",
		"10.0.0.1 ", " 10.0.0.1", "10.0.0.1.", "10.0.0.1/8", "0x0a.0.0.1", "fe80::1%eth0",
		":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "::g",
		"::ffff:010.0.0.1", "::ffff:10.0.0.256", "[::1]", "::1 "};
	char text[IP_STRLEN];

	for (size_t i = 0; i < array_len(good); i++) {
		struct ip ip = {0};

		CHECK(ip_parse(good[i].in, &ip));
		CHECK_STR(ip_format(&ip, text), good[i].out);
	}
	for (size_t i = 0; i < array_len(bad); i++) {
		struct ip ip = {.family = 42};

		if (!CHECK(!ip_parse(bad[i], &ip)))
			fprintf(stderr, "  accepted: \"%s\"\n", bad[i]);
		CHECK_INT(ip.family, 42);
	}
	CHECK_STR(ip_format(&(struct ip){0}, text), "");
}

static void test_prefix(void)
{
	static const struct {
		const char *in, *out, *network, *last;
	} good[] = {
		{"10.0.0.5/8", "10.0.0.5/8", "10.0.0.0", "10.255.255.255"},
		{"10.1.2.3/0", "10.1.2.3/0", "0.0.0.0", "255.255.255.255"},
		{"10.1.2.3/32", "10.1.2.3/32", "10.1.2.3", "10.1.2.3"},
		{"10.1.2.3/31", "10.1.2.3/31", "10.1.2.2", "10.1.2.3"},
		{"172.16.200.9/20", "172.16.200.9/20", "172.16.192.0", "172.16.207.255"},
		{"::ffff:10.0.0.1/120", "10.0.0.1/24", "10.0.0.0", "10.0.0.255"},
		{"::ffff:10.0.0.1/96", "10.0.0.1/0", "0.0.0.0", "255.255.255.255"},
		{"2001:DB8::5/65", "2001:db8::5/65", "2001:db8::", "2001:db8::7fff:ffff:ffff:ffff"},
		{"::/0", "::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"fe80::1/128", "fe80::1/128", "fe80::1", "fe80::1"},
	};
	static const char *const bad[] = {"", "/", "10.0.0.1", "10.0.0.1/", "10.0.0.1/33",
		"10.0.0.1/-1", "10.0.0.1/+8", "10.0.0.1/8 ", "10.0.0.1/ 8", "10.0.0.1/8/8",
		"10.0.0.1/4294967304", "10.0.0/8", "010.0.0.1/8", "::1/129", "::1/1000",
		"::ffff:10.0.0.1/95", "fe80::1%lo/64", "/8",
		"1111:1111:1111:1111:1111:1111:1111:1111:1111:1111/64"};
	char text[PREFIX_STRLEN], addr[IP_STRLEN];

	for (size_t i = 0; i < array_len(good); i++) {
		struct prefix p = {0};
		struct ip network, last;

		CHECK(prefix_parse(good[i].in, &p));
		network = prefix_network(&p);
		last = prefix_last(&p);
		CHECK_STR(prefix_format(&p, text), good[i].out);
		CHECK_STR(ip_format(&network, addr), good[i].network);
		CHECK_STR(ip_format(&last, addr), good[i].last);
		CHECK(prefix_contains(&p, &network) && prefix_contains(&p, &last));
	}
	for (size_t i = 0; i < array_len(bad); i++) {
		struct prefix p = {.len = 42};

		if (!CHECK(!prefix_parse(bad[i], &p)))
			fprintf(stderr, "  accepted: \"%s\"\n", bad[i]);
		CHECK_INT(p.len, 42);
	}
}

static struct ip ip_of(const char *text)
{
	struct ip ip = {0};

	CHECK(ip_parse(text, &ip));
	return ip;
}

static void test_ip_arithmetic(void)
{
	static const struct {
		const char *a, *next;
	} steps[] = {
		{"10.0.0.1", "10.0.0.2"},
		{"10.0.0.255", "10.0.1.0"},
		{"255.255.255.255", "0.0.0.0"},
		{"fd00::ffff", "fd00::1:0"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::"},
	};
	struct ip v4 = ip_of("10.0.0.1"), v6 = ip_of("::1"), more = ip_of("10.0.0.2");
	struct prefix p;

	for (size_t i = 0; i < array_len(steps); i++) {
		struct ip a = ip_of(steps[i].a), b = ip_of(steps[i].next);
		struct ip next = ip_next(a), prev = ip_prev(b);

		CHECK(!ip_cmp(&next, &b) && !ip_cmp(&prev, &a));
	}
	CHECK(ip_cmp(&v4, &more) < 0 && ip_cmp(&more, &v4) > 0 && !ip_cmp(&v4, &v4));
	CHECK(ip_cmp(&more, &v6) < 0 && ip_cmp(&v6, &more) > 0);
	CHECK(prefix_parse("10.0.0.0/31", &p));
	CHECK(prefix_contains(&p, &v4) && !prefix_contains(&p, &more) && !prefix_contains(&p, &v6));
	CHECK(prefix_parse("::/0", &p));
	CHECK(!prefix_contains(&p, &v4) && prefix_contains(&p, &v6));
}

static void test_err(void)
{
	struct err e = {0}, other = {0}, none = {0};

	CHECK_INT(err_set(&e, ERR_INVALID_CONFIG, "bad %s %d", "id", 7), -1);
	err_set(&e, ERR_IO, "later");
	CHECK_STR(e.msg, "bad id 7");
	CHECK_INT(e.code, ERR_INVALID_CONFIG);
	CHECK(!e.details);
	err_wrap(&e, "vlan %d", 5);
	CHECK_STR(e.msg, "vlan 5: bad id 7");
	err_detail(&e, "one");
	err_detail(&e, "two");
	CHECK_STR(e.details, "one; two");

	CHECK_INT(err_sys(&other, ENOENT, ERR_IO, "open %s", "x"), -1);
	CHECK_INT(other.sys, ENOENT);
	CHECK_STR(other.details, "No such file or directory (errno 2)");
	err_merge(&e, &none);
	CHECK_STR(e.details, "one; two");
	err_merge(&e, &other);
	CHECK(!other.set && !other.msg && !other.details);
	CHECK_STR(e.details, "one; two; also: open x: No such file or directory (errno 2)");
	err_merge(&none, &e);
	CHECK(!e.set && none.set);
	CHECK_STR(none.msg, "vlan 5: bad id 7");
	err_clear(&none);
	CHECK(!none.set && !none.msg);
	err_clear(&none);
}

static struct buf order;

static void undo_note(void *arg)
{
	buf_puts(&order, arg);
}

static void undo_release(void *arg)
{
	buf_printf(&order, "(%s)", (const char *)arg);
	free(arg);
}

static void test_undo(void)
{
	struct undo u = {0};
	struct err e = {0};

	for (int i = 0; i < 20; i++) {
		char *arg = NULL;

		CHECK(asprintf(&arg, "%d", i) > 0);
		CHECK(!undo_push(&u, undo_note, undo_release, arg, &e));
	}
	undo_run(&u);
	CHECK(!strncmp(order.data, "19(19)18(18)17(17)", 18));
	CHECK_STR(order.data + order.len - 12, "2(2)1(1)0(0)");
	CHECK(!u.len && !u.steps);
	buf_free(&order);

	CHECK(!undo_push(&u, undo_note, NULL, "a", &e));
	CHECK(!undo_push(&u, undo_note, undo_release, strdup("b"), &e));
	undo_commit(&u);
	CHECK_STR(order.data, "(b)");
	undo_run(&u);
	CHECK_STR(order.data, "(b)");
	buf_free(&order);
}

static void test_buf(void)
{
	struct buf b = {0}, failed = {.failed = true};
	autofree char *large = malloc(5000);

	buf_put(&b, NULL, 0);
	CHECK_STR(b.data, "");
	memset(large, 'x', 4999);
	large[4999] = '\0';
	buf_puts(&b, "a");
	buf_puts(&b, large);
	buf_printf(&b, "%s-%d", large, 5);
	buf_put(&b, "\0z", 2);
	CHECK_INT((long long)b.len, 1 + 4999 + 4999 + 2 + 2);
	CHECK(b.cap > b.len && !b.data[b.len] && b.data[b.len - 1] == 'z' && !b.failed);
	CHECK_STR(b.data + 1 + 4999 + 4999, "-5");
	for (size_t i = 0; i < 256; i++) {
		struct buf edge = {0};

		/* Every length has room for its NUL. */
		buf_put(&edge, large, i);
		buf_put(&edge, large, 256 - i);
		CHECK(edge.cap > edge.len && !edge.data[edge.len]);
		buf_free(&edge);
	}
	buf_free(&b);
	CHECK(!b.data && !b.len && !b.cap);
	buf_puts(&failed, "x");
	buf_printf(&failed, "x");
	CHECK(!failed.data && failed.failed);
}

/* How many names the directory holds, hidden ones too. */
static int count_entries(int dirfd)
{
	DIR *dir = fdopendir(openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int n = 0;

	if (!CHECK(dir != NULL))
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void check_content(int dirfd, const char *name, const char *expected)
{
	autofree char *data = NULL;
	size_t len = 0;

	CHECK_INT(file_read(dirfd, name, 1 << 20, &data, &len), 0);
	CHECK_STR(data, expected);
	CHECK_INT((long long)len, (long long)strlen(expected));
}

/* What a writer of "f" leaves that was killed. */
static void leave_temp(int dir)
{
	autoclose int fd = openat(dir, ".f.tmp", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK_INT(file_write_fd(fd, "rest", 4), 0);
}

static void test_file_replace(int dir)
{
	char name[300];
	struct stat st;

	CHECK_INT(file_replace(dir, "f", "one", 3, 0600, false), 0);
	check_content(dir, "f", "one");
	CHECK(!fstatat(dir, "f", &st, 0) && (st.st_mode & 0777) == 0600);
	CHECK_INT(file_replace(dir, "f", "", 0, 0600, true), 0);
	check_content(dir, "f", "");
	/* It goes with the next write, or with the file. */
	leave_temp(dir);
	CHECK_INT(file_replace(dir, "f", "two", 3, 0600, true), 0);
	check_content(dir, "f", "two");
	CHECK_INT(count_entries(dir), 1);
	leave_temp(dir);
	CHECK_INT(file_remove(dir, "f"), 0);
	CHECK_INT(count_entries(dir), 0);
	CHECK_INT(file_remove(dir, "f"), 0);

	/* A failure leaves nothing behind. */
	CHECK(!mkdirat(dir, "d", 0700));
	CHECK(file_replace(dir, "d", "x", 1, 0600, false) < 0);
	CHECK_INT(count_entries(dir), 1);
	/* A symlink in the place of the temporary file is not followed. */
	CHECK(!symlinkat("target", dir, ".s.tmp"));
	CHECK_INT(file_replace(dir, "s", "x", 1, 0600, false), 0);
	CHECK_INT(file_replace(dir, "s", "y", 1, 0600, false), 0);
	CHECK(fstatat(dir, "target", &st, 0) < 0);
	CHECK(!fstatat(dir, "s", &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode));
	CHECK_INT(file_remove(dir, "s"), 0);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	CHECK_INT(file_replace(dir, name, "x", 1, 0600, false), -ENAMETOOLONG);
	CHECK_INT(file_replace(dir, name + 60, "x", 1, 0600, false), 0);
	CHECK_INT(file_remove(dir, name + 60), 0);
	CHECK(!unlinkat(dir, "d", AT_REMOVEDIR));
	CHECK_INT(count_entries(dir), 0);
}

static void test_file_read(int dir)
{
	char *untouched = NULL;
	char large[10000];
	autofree char *data = NULL;
	size_t len = 0;

	memset(large, 'y', sizeof(large));
	CHECK_INT(file_replace(dir, "f", large, sizeof(large), 0600, false), 0);
	CHECK_INT(file_read(dir, "f", sizeof(large), &data, &len), 0);
	CHECK_INT((long long)len, sizeof(large));
	CHECK(data && !memcmp(data, large, sizeof(large)) && !data[len]);
	CHECK_INT(file_read(dir, "f", sizeof(large) - 1, &untouched, NULL), -EFBIG);
	CHECK_INT(file_read(dir, "none", 10, &untouched, NULL), -ENOENT);
	CHECK(!mkfifoat(dir, "fifo", 0600));
	CHECK_INT(file_read(dir, "fifo", 10, &untouched, NULL), -EINVAL);
	CHECK_INT(file_read(dir, ".", 10, &untouched, NULL), -EINVAL);
	CHECK(!untouched);
	CHECK(!unlinkat(dir, "f", 0) && !unlinkat(dir, "fifo", 0));
}

static void test_file_names(int dir)
{
	static const char *const names[] = {
		"b", "a", "\xff", "B", ".hidden", "a b", "c1", "c2", "c3", "c4"};
	autonames list = {0};
	autobuf text = {0};

	CHECK(!file_names(dir, &list) && !list.len);
	for (size_t i = 0; i < array_len(names); i++)
		CHECK(!file_replace(dir, names[i], "", 0, 0600, false));
	CHECK(!file_names(dir, &list));
	for (size_t i = 0; i < list.len; i++)
		buf_printf(&text, "%s,", list.list[i]);
	CHECK_STR(text.data, "B,a,a b,b,c1,c2,c3,c4,\xff,");
	for (size_t i = 0; i < array_len(names); i++)
		CHECK(!unlinkat(dir, names[i], 0));
	file_names_free(&list);
	CHECK_INT(file_names(-1, &list), -EBADF);
}

static void test_file(void)
{
	char path[] = "/tmp/test-base.XXXXXX";
	autofree char *deep = NULL;
	autoclose int dir = -1;

	if (!CHECK(mkdtemp(path) != NULL))
		return;
	CHECK(asprintf(&deep, "%s/a/b//c/", path) > 0);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	test_file_replace(dir);
	test_file_read(dir);
	test_file_names(dir);
	CHECK_INT(file_mkdirs(deep, 0700), 0);
	CHECK_INT(file_mkdirs(deep, 0700), 0);
	CHECK(!unlinkat(dir, "a/b/c", AT_REMOVEDIR));
	CHECK(!symlinkat("/dev/null", dir, "a/b/c"));
	CHECK_INT(file_mkdirs(deep, 0700), -ENOTDIR);
	CHECK(!unlinkat(dir, "a/b/c", 0) && !unlinkat(dir, "a/b", AT_REMOVEDIR) &&
		!unlinkat(dir, "a", AT_REMOVEDIR));
	CHECK_INT(count_entries(dir), 0);
	CHECK(!rmdir(path));
}

/* FIPS 180-4 example values. */
static void test_hash(void)
{
	static const char empty[] =
		"cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
		"47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e";
	static const char abc[] =
		"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
		"2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
	static const char two_blocks[] =
		"8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018"
		"501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909";
	char out[129];

	hash_hex(out, 128, NULL);
	CHECK_STR(out, empty);
	hash_hex(out, 128, "", "", NULL);
	CHECK_STR(out, empty);
	hash_hex(out, 128, "abc", NULL);
	CHECK_STR(out, abc);
	hash_hex(out, 128, "a", "", "bc", NULL);
	CHECK_STR(out, abc);
	hash_hex(out, 128, "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn",
		"hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu", NULL);
	CHECK_STR(out, two_blocks);
	hash_hex(out, 7, "abc", NULL);
	CHECK_STR(out, "ddaf35a");
	hash_hex(out, 0, "abc", NULL);
	CHECK_STR(out, "");
}

static void test_path(void)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"", "."},
		{"/", "/"},
		{"//", "/"},
		{".", "."},
		{"./", "."},
		{"a", "a"},
		{"a/", "a"},
		{"a//b/./c", "a/b/c"},
		{"a/..", "."},
		{"a/../b", "b"},
		{"a/b/../c", "a/c"},
		{"..", ".."},
		{"../..", "../.."},
		{"a/../..", ".."},
		{"../a/..", ".."},
		{"../../a", "../../a"},
		{"/..", "/"},
		{"/../a", "/a"},
		{"/a/../..", "/"},
		{"/a/b/../../c", "/c"},
		{"/a/...", "/a/..."},
		{"/.a/..b", "/.a/..b"},
		{"/var/run/../lib/", "/var/lib"},
	};
	char text[64];
	char *absolute;

	for (size_t i = 0; i < array_len(cases); i++) {
		strcpy(text, cases[i].in);
		path_clean(text);
		CHECK_STR(text, cases[i].out);
	}
	absolute = path_absolute("a/../b");
	CHECK(absolute && absolute[0] == '/' && !strcmp(strrchr(absolute, '/'), "/b"));
	free(absolute);
	absolute = path_absolute("//x/./y/");
	CHECK_STR(absolute, "/x/y");
	free(absolute);
}

static void test_mac(void)
{
	const uint8_t want[6] = {0x02, 0x00, 0xab, 0, 0, 0x96};
	char text[MAC_STRLEN];
	uint8_t mac[6];

	CHECK(mac_parse("02:00:AB:00:00:96", mac) && !memcmp(mac, want, 6));
	CHECK(mac_parse("02-00-ab-00-00-96", mac) && !memcmp(mac, want, 6));
	CHECK(mac_parse("0200.ab00.0096", mac) && !memcmp(mac, want, 6));
	CHECK_STR(mac_format(want, text), "02:00:ab:00:00:96");
	CHECK(!mac_parse("", mac) && !mac_parse("02:00:ab:00:00", mac));
	CHECK(!mac_parse("02:00:ab:00:00:9g", mac) && !mac_parse("02:00-ab:00:00:96", mac));
	CHECK(!mac_parse("0200.ab00:0096", mac) && !mac_parse("02:00:ab:00:00:96:", mac));
	CHECK(!mac_random(mac) && (mac[0] & 3) == 2);
}

static void test_vec(void)
{
	struct pair {
		int a, b;
	} *list = NULL;
	size_t len = 0;

	for (int i = 0; i < 100; i++) {
		struct pair *p = vec_add(list, len);

		CHECK(p && !p->a && !p->b);
		*p = (struct pair){i, -i};
	}
	CHECK_INT(len, 100);
	for (int i = 0; i < 100; i++)
		CHECK(list[i].a == i && list[i].b == -i);
	free(list);
}

int main(void)
{
	test_ip();
	test_prefix();
	test_ip_arithmetic();
	test_err();
	test_undo();
	test_buf();
	test_file();
	test_hash();
	test_path();
	test_mac();
	test_vec();
	return check_done();
}
