/* src/store: the content of leases, and the store in a directory of its own. */
#include "check.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "store/index.h"
#include "store/marker.h"
#include "store/range.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
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

/* Last written an hour ago. */
static void age_file(const char *name)
{
	struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - 3600}};
	char file[PATH_MAX * 2];

	snprintf(file, sizeof(file), "%s/%s", path, name);
	CHECK(!utimensat(AT_FDCWD, file, t, 0));
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

/* A call of its own, as a plugin makes it. The address, "none", or the negative errno. */
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
	if (ret == 1)
		strcpy(text, "none");
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
	CHECK_STR(take_next(&pool, "f", "10.0.0.2", false), "none");
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
	age_file("10.0.0.5");
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
	CHECK_STR(take_next(&pool, "d", "", false), "none");
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
	CHECK_STR(take_next(&pool, "x", "", true), "none");
	set_boot("10.0.0.4", OTHER_BOOT);
	set_boot("10.0.0.3", OTHER_BOOT);
	put_file("touch", "");
	CHECK_STR(take_next(&pool, "x", "", false), "none");
	CHECK_STR(take_next(&pool, "x", "10.0.0.3", true), "10.0.0.4");
	CHECK_STR(take_next(&pool, "y", "10.0.0.4", true), "10.0.0.3");
	CHECK_STR(take_next(&pool, "z", "", true), "none");
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
		CHECK_STR(take_next(&pool, "y", "", false), "none");
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
	CHECK_STR(take_next(&pool, "z", "10.0.0.5", false), "10.0.0.6");
	CHECK_STR(take_next(&pool, "a", "", false), "10.0.0.2");
	lock_store(&s);
	at = ip("10.0.0.2");
	store_change(&s);
	index_del(&s.index, &at, index_hash(&s.index, a.id, a.ifname));
	store_close(&s);
	CHECK(index_is_fresh());
	CHECK_STR(take_next(&pool, "b", "", false), "10.0.0.3");
	CHECK_INT(held("a", "eth0"), 1);
	lock_store(&s);
	store_change(&s);
	for (at = ip("10.0.0.4"); at.bytes[3] < 8; at = ip_next(at))
		index_block(&s.index, &at);
	store_close(&s);
	CHECK(index_is_fresh());
	CHECK_STR(take_next(&pool, "c", "", false), "10.0.0.4");
	/* What it is valid for is a time that no clock gave the directory. */
	CHECK(!stat(path, &st) && st.st_mtim.tv_sec < st.st_ctim.tv_sec);
}

/* "None left" is the store's word: an index that says so is not believed. */
static void test_wrong_status(void)
{
	autostore s = STORE_INIT;
	struct ip at;

	new_store("status");
	CHECK_STR(take_next(&pool, "a", "", false), "10.0.0.2");
	lock_store(&s);
	store_change(&s);
	for (at = ip("10.0.0.3"); at.bytes[3] < 8; at = ip_next(at))
		index_block(&s.index, &at);
	store_close(&s);
	CHECK(index_is_fresh());
	lock_store(&s);
	CHECK_INT(store_has_free(&s, &pool, false), 1);
	store_close(&s);
	put_file("10.0.0.3", "x");
	put_file("10.0.0.4", "x");
	put_file("10.0.0.5", "x");
	put_file("10.0.0.6", "x");
	lock_store(&s);
	CHECK_INT(store_has_free(&s, &pool, false), 0);
}

/* What others do to the store during a call of ours is not missing from the index afterwards: at
 * each step of an ADD and of a DEL. */
static void other_lease(int step, int at, const char *name, const char *text)
{
	char file[PATH_MAX * 2];

	snprintf(file, sizeof(file), "%s/%s", path, name);
	if (step == at && text)
		put_file(name, text);
	else if (step == at)
		CHECK(!unlink(file));
}

static void call_with_others(int at, const char *name, const char *text)
{
	const struct holder h = {"mine", "eth0"};
	struct draft d = DRAFT_INIT;
	autostore s = STORE_INIT;
	struct ip out;
	autoerr e = {0};

	lock_store(&s);
	other_lease(0, at, name, text);
	CHECK(!store_draft(&s, &h, &d, &e));
	CHECK(!store_take_next(&s, &d, &pool, NULL, false, &out));
	other_lease(1, at, name, text);
	store_close(&s);
	draft_free(&d);
	lock_store(&s);
	other_lease(2, at, name, text);
	CHECK(!store_release(&s, &out, &h));
	other_lease(3, at, name, text);
}

static void test_others_meanwhile(void)
{
	char name[24];

	for (int at = 0; at < 4; at++) {
		snprintf(name, sizeof(name), "meanwhile%d", at);
		new_store(name);
		CHECK_STR(take_next(&pool, "a", "", false), "10.0.0.2");
		CHECK_STR(take_next(&pool, "b", "", false), "10.0.0.3");
		CHECK(index_is_fresh());
		call_with_others(at, "10.0.0.6", "other\r\neth0");
		CHECK_INT(held("other", "eth0"), 1);
		call_with_others(at, "10.0.0.3", NULL);
		CHECK_INT(held("b", "eth0"), 0);
		CHECK_STR(take_next(&pool, "c", "", false), "10.0.0.3");
		/* And without others the index is kept. */
		call_with_others(-1, NULL, NULL);
		CHECK(index_is_fresh());
	}
}

/* The same while the store is read: by the one change that can be made there. */
static void test_young_debris(void)
{
	new_store("young");
	CHECK_STR(take_next(&pool, "a", "", false), "10.0.0.2");
	put_file("10.0.0.4", "");
	CHECK_INT(held("b", "eth0"), 0);
	/* Filled in place: nothing of the directory changes. */
	put_file("10.0.0.4", "b\r\neth0");
	CHECK_INT(held("b", "eth0"), 1);
}

/* Where there are no hard links, and where a rename replaces what is there. */
static int deny(long nr, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {array_len(code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static void in_child_without_links(bool rename_too)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		check_failures = 0;
		if (deny(SYS_linkat, EPERM) || (rename_too && deny(SYS_renameat2, EINVAL)))
			_exit(2);
		CHECK_STR(take_next(&pool, "a", "", false), "10.0.0.2");
		CHECK_STR(get_file("10.0.0.2"), "a\r\neth0");
		CHECK(!get_file(".lease.tmp"));
		put_file("10.0.0.3", "other\r\neth0");
		put_file("10.0.0.4", "");
		CHECK_STR(take_next(&pool, "b", "10.0.0.2", false), "10.0.0.4");
		CHECK_STR(get_file("10.0.0.3"), "other\r\neth0");
		CHECK_STR(get_file("10.0.0.4"), "b\r\neth0");
		CHECK_INT(held("b", "eth0"), 1);
		CHECK_INT(release("10.0.0.2", "a"), 0);
		CHECK_STR(take_next(&pool, "c", "", false), "10.0.0.2");
		CHECK_STR(take_next(&pool, "d", "", false), "10.0.0.5");
		CHECK_STR(take_next(&pool, "e", "", false), "10.0.0.6");
		CHECK_STR(take_next(&pool, "f", "", false), "none");
		CHECK(!get_file(".lease.tmp"));
		_exit(check_failures ? 1 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
}

static void test_no_links(void)
{
	new_store("nolinks");
	in_child_without_links(false);
	new_store("norename");
	in_child_without_links(true);
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
				if (*take_next(&set, id, "", false) != '1')
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
		if (*last != '1')
			break;
		CHECK_INT(held(id, "eth0"), 1);
		CHECK(strstr(get_file(last), id) == get_file(last));
	}
}

/* --- indexes of stores that are gone --- */

static size_t index_files(void)
{
	autoclose int dir = open(index_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autonames names = {0};

	CHECK(!file_names(dir, &names));
	return names.len;
}

/* As many networks came and went as nobody should have to wait for: each call does its share. */
static void test_sweep(void)
{
	char name[PATH_MAX + 32];
	size_t before, calls = 0;

	snprintf(index_dir, sizeof(index_dir), "%s/sweep", root);
	CHECK(!file_mkdirs(index_dir, 0755));
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "%s/1-%x.index", index_dir, i);
		close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	for (before = index_files(); before && calls < 10; calls++) {
		size_t left;

		store_sweep(index_dir);
		left = index_files();
		CHECK(left < before && before - left <= 64);
		before = left;
	}
	CHECK_INT(before, 0);
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
	test_lease_parse();
	test_store_rotation();
	test_store_foreign();
	test_store_boot();
	test_store_gc();
	test_store_named();
	test_marker();
	test_corrupt_index();
	test_wrong_index();
	test_wrong_status();
	test_others_meanwhile();
	test_young_debris();
	test_no_links();
	test_no_index();
	test_parallel();
	test_killed();
	test_sweep();
	remove_all();
	return check_done();
}
