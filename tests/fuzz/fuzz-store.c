/* What host-local finds on disk. The first byte chooses: the content of a lease; an index with
 * bytes overwritten anywhere; a store whose files hold the rest. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "store/marker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct input {
	const uint8_t *data;
	size_t size;
};

static uint32_t number(struct input *in, size_t bytes)
{
	uint32_t n = 0;

	for (; bytes-- && in->size; in->data++, in->size--)
		n = n << 8 | *in->data;
	return n;
}

/* --- a lease --- */

static void fuzz_lease(struct input *in)
{
	char *text = malloc(in->size + 1), *again;
	struct holder h = {0}, g = {0};
	size_t len;

	MUST(text);
	memcpy(text, in->data, in->size);
	if (lease_parse(text, in->size, &h) == LEASE_HELD) {
		MUST(h.id && *h.id && (!h.ifname || *h.ifname));
		/* Written as the Go plugin writes it, it is the same holder. */
		len = strlen(h.id) + (h.ifname ? 2 + strlen(h.ifname) : 0);
		again = malloc(len + 1);
		MUST(again);
		if (h.ifname)
			snprintf(again, len + 1, "%s\r\n%s", h.id, h.ifname);
		else
			memcpy(again, h.id, len);
		MUST(lease_parse(again, len, &g) == LEASE_HELD && !strcmp(g.id, h.id));
		MUST(!g.ifname == !h.ifname && (!g.ifname || !strcmp(g.ifname, h.ifname)));
		free(again);
	} else {
		MUST(!h.id && !h.ifname);
	}
	free(text);
}

/* --- an index --- */

static struct ip address(struct input *in)
{
	uint32_t n = number(in, 2);
	struct ip ip = {.family = n & 1 ? AF_INET6 : AF_INET};

	ip.bytes[0] = n & 2 ? 0xff : 10;
	ip.bytes[ip_size(&ip) - 2] = (uint8_t)(n >> 10);
	ip.bytes[ip_size(&ip) - 1] = (uint8_t)(n >> 2);
	return ip;
}

static void use_index(struct index *ix, struct input *in)
{
	for (int ops = 0; in->size && ops < 64; ops++) {
		uint32_t op = number(in, 1);
		struct ip a = address(in), hi = a, out;
		char id[2] = {(char)('a' + op % 16), 0};
		uint64_t hash = index_hash(ix, id, "eth0");
		size_t pos = 0, n = 0;

		hi.bytes[ip_size(&hi) - 1] = 0xff;
		hi.bytes[ip_size(&hi) - 2] |= 0x0f;
		switch (op >> 4 & 7) {
		case 0:
		case 1: index_add(ix, &a, hash, op & 1); break;
		case 2: index_del(ix, &a, hash); break;
		case 3: index_block(ix, &a); break;
		case 4:
			if (index_next_free(ix, &a, &hi, &out))
				MUST(ip_cmp(&out, &a) >= 0 && ip_cmp(&out, &hi) <= 0);
			break;
		case 5:
			if (index_next_old(ix, &a, &hi, &out))
				MUST(ip_cmp(&out, &a) >= 0 && ip_cmp(&out, &hi) <= 0);
			break;
		case 6:
			while (index_held(ix, hash, &pos, &out))
				MUST(++n <= ix->size);
			break;
		default:
			while (index_each(ix, &pos, &out, &hash))
				MUST(++n <= ix->size);
		}
	}
}

static void fuzz_index(struct input *in)
{
	struct index ix, bad;
	uint8_t *bytes;

	MUST(!index_init(&ix));
	for (uint32_t n = number(in, 1); n--;) {
		struct ip a = address(in);

		index_add(&ix, &a, index_hash(&ix, n & 1 ? "a" : "b", "eth0"), n & 2);
	}
	/* A mapping: what the index believes the file to be. */
	bytes = mmap(NULL, ix.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(bytes != MAP_FAILED);
	memcpy(bytes, ix.head, ix.size);
	for (uint32_t n = number(in, 1) % 32; n--;) {
		uint32_t at = number(in, 3);

		bytes[at % ix.size] = (uint8_t)number(in, 1);
	}
	if (index_attach(&bad, bytes, ix.size))
		munmap(bytes, ix.size);
	else
		use_index(&bad, in);
	index_free(&bad);
	index_free(&ix);
}

/* --- a store --- */

/* In memory: flushing a disk is not what is tried here. */
static char root[] = "/dev/shm/fuzz-store-XXXXXX";

static void put_file(int dir, const char *name, const void *data, size_t size)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	MUST(fd >= 0 && !file_write_fd(fd, data, size));
	close(fd);
}

static void remove_root(void)
{
	rmdir(root);
}

static void fuzz_store(struct input *in)
{
	static const char *const names[] = {
		"last_reserved_ip.0", "10.0.0.2", "10.0.0.3", ".lease.tmp", "10.0.0.4"};
	struct range r = {0};
	const struct range_set set = {&r, 1};
	const struct holder me = {"me", "eth0"}, a = {"a", "eth0"};
	struct store s = STORE_INIT;
	struct draft d = DRAFT_INIT;
	struct ip_list held = {0};
	struct marker m;
	struct ip ip;
	autoerr e = {0};
	int dir, ret;

	if (!strcmp(root + sizeof(root) - 7, "XXXXXX")) {
		MUST(mkdtemp(root));
		atexit(remove_root);
	}
	dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(dir >= 0);
	for (size_t i = 0; i < array_len(names) && in->size; i++) {
		size_t len = number(in, 1);

		len = len > in->size ? in->size : len;
		put_file(dir, names[i], in->data, len);
		in->data += len;
		in->size -= len;
	}
	MUST(prefix_parse("10.0.0.0/28", &r.subnet) && !range_complete(&r, &e));
	MUST(!store_open(&s, root, "/dev/null", false, &e) && !store_draft(&s, &me, &d, &e));
	MUST(!store_lock(&s, &e) && !store_held(&s, &a, &held));
	marker_read(&s, 0, &m);
	ret = store_take_next(&s, &d, &set, m.last.family ? &m.last : NULL, true, &ip);
	MUST(!ret && range_has(&r, &ip));
	marker_write(&s, 0, &m, &ip);
	MUST(!store_release(&s, &ip, &me) && store_release(&s, &ip, &me) == 1);
	MUST(!store_gc(&s, &a, 1, &e));
	free(held.list);
	draft_free(&d);
	store_close(&s);
	for (size_t i = 0; i < array_len(names); i++)
		unlinkat(dir, names[i], 0);
	unlinkat(dir, "lock", 0);
	close(dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_keep_signals();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	switch (number(&in, 1) % 8) {
	case 0: fuzz_store(&in); break;
	case 1:
	case 2: fuzz_lease(&in); break;
	default: fuzz_index(&in);
	}
	return 0;
}
