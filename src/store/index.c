#include "store/index.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#define MAGIC      "CNIBXLI2"
#define PAGE_BITS  9
#define PAGE_ADDRS 512u /* addresses */
#define PAGE_WORDS 8
#define MIN_SLOTS  64u
#define MAX_SLOTS  (1u << 26)
#define NOT_A_SLOT ((size_t)-1)

/* An address as a number: IPv6, or IPv4-mapped. */
struct addr {
	uint64_t hi;
	uint64_t lo;
};

struct index_time {
	int64_t sec;
	int64_t nsec;
};

/* The file, from its start: head, holder slots, page slots. Host byte order: it never leaves the
 * machine, nor the boot. */
struct index_head {
	char magic[8];
	uint32_t holder_slots; /* powers of two */
	uint32_t page_slots;
	uint32_t holders; /* slots in use */
	uint32_t pages;
	uint64_t seed; /* of the hashes */
	uint64_t dev;
	uint64_t ino;
	struct index_time mtime; /* of the directory; all zero: stale */
	struct index_time ctime;
	char boot[INDEX_BOOT_LEN + 4];
	char store[INDEX_STORE_MAX]; /* path, for those who look for indexes of stores gone */
	uint64_t check;              /* over all before it */
};

struct index_holder {
	uint64_t hash;
	struct addr addr;
	uint32_t used;
	uint32_t check;
};

struct index_page {
	struct addr key; /* page_of() its addresses */
	uint64_t taken[PAGE_WORDS];
	uint64_t old[PAGE_WORDS];
	uint32_t used;
	uint32_t check;
};

static_assert(sizeof(struct index_head) % 8 == 0 && sizeof(struct index_holder) == 32 &&
		      sizeof(struct index_page) == 152,
	"the layout of the file has no padding");

static uint64_t mix(uint64_t h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdu;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53u;
	return h ^ h >> 33;
}

static uint64_t hash_words(uint64_t h, const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = mix(h ^ words[i]);
	return h;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3u;
	return mix(h);
}

static uint64_t head_check(const struct index_head *h)
{
	uint64_t words[offsetof(struct index_head, check) / 8];

	memcpy(words, h, sizeof(words));
	return hash_words(1, words, array_len(words));
}

/* The check word of a slot depends on where it is, and is not zero in an empty one: slots that were
 * moved or wiped by accident are noticed, not taken for free space. */
static uint32_t holder_check(const struct index_head *head, const struct index_holder *h, size_t i)
{
	return (uint32_t)hash_words(head->seed + 2 * i + h->used, (const uint64_t *)h, 3);
}

static uint32_t page_check(const struct index_head *head, const struct index_page *p, size_t i)
{
	return (uint32_t)hash_words(
		head->seed + 2 * i + p->used, (const uint64_t *)p, 2 + 2 * PAGE_WORDS);
}

static bool holder_ok(const struct index *ix, size_t i)
{
	return ix->holders[i].check == holder_check(ix->head, &ix->holders[i], i);
}

static bool page_ok(const struct index *ix, size_t i)
{
	return ix->pages[i].check == page_check(ix->head, &ix->pages[i], i);
}

static void set_holder(struct index *ix, size_t i, struct index_holder h)
{
	h.check = holder_check(ix->head, &h, i);
	ix->holders[i] = h;
}

static void set_page(struct index *ix, size_t i, struct index_page p)
{
	p.check = page_check(ix->head, &p, i);
	ix->pages[i] = p;
}

static bool same(struct addr a, struct addr b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

static bool after(struct addr a, struct addr b)
{
	return a.hi > b.hi || (a.hi == b.hi && a.lo > b.lo);
}

static struct addr page_of(struct addr a)
{
	return (struct addr){a.hi >> PAGE_BITS, a.lo >> PAGE_BITS | a.hi << (64 - PAGE_BITS)};
}

static unsigned int bit_of(struct addr a)
{
	return (unsigned int)(a.lo % PAGE_ADDRS);
}

static struct addr from_ip(const struct ip *ip)
{
	struct addr a = {.lo = ip->family == AF_INET ? 0xffff : 0};

	for (size_t i = 0; i < ip_size(ip); i++) {
		a.hi = a.hi << 8 | a.lo >> 56;
		a.lo = a.lo << 8 | ip->bytes[i];
	}
	return a;
}

static struct ip to_ip(struct addr a)
{
	struct ip ip = {.family = !a.hi && a.lo >> 32 == 0xffff ? AF_INET : AF_INET6};

	for (size_t i = ip_size(&ip); i-- > 0; a.lo = a.lo >> 8 | a.hi << 56, a.hi >>= 8)
		ip.bytes[i] = (uint8_t)a.lo;
	return ip;
}

/* Of 64 bits everywhere: a file may be larger than the memory that a 32-bit process can map. */
static uint64_t file_size(uint32_t holder_slots, uint32_t page_slots)
{
	return sizeof(struct index_head) + (uint64_t)holder_slots * sizeof(struct index_holder) +
	       (uint64_t)page_slots * sizeof(struct index_page);
}

static void locate(struct index *ix)
{
	ix->holders = (struct index_holder *)(ix->head + 1);
	ix->pages = (struct index_page *)(ix->holders + ix->head->holder_slots);
}

static int init(struct index *ix, uint32_t holder_slots, uint32_t page_slots, uint64_t seed)
{
	uint64_t size = file_size(holder_slots, page_slots);
	struct index_head *h;

	*ix = (struct index){0};
	if (holder_slots > MAX_SLOTS || page_slots > MAX_SLOTS || size > SIZE_MAX)
		return -ENOMEM;
	h = calloc(1, (size_t)size);
	if (!h)
		return -ENOMEM;
	memcpy(h->magic, MAGIC, sizeof(h->magic));
	h->holder_slots = holder_slots;
	h->page_slots = page_slots;
	h->seed = seed;
	*ix = (struct index){.head = h, .size = (size_t)size};
	locate(ix);
	for (size_t i = 0; i < holder_slots; i++)
		set_holder(ix, i, (struct index_holder){0});
	for (size_t i = 0; i < page_slots; i++)
		set_page(ix, i, (struct index_page){0});
	return 0;
}

int index_init(struct index *ix)
{
	uint64_t seed;

	/* Without randomness the hashes are merely predictable; answers are verified anyway. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uint64_t)time(NULL);
	return init(ix, MIN_SLOTS, MIN_SLOTS, seed);
}

static bool slots_ok(uint32_t slots, uint32_t used)
{
	return slots >= MIN_SLOTS && slots <= MAX_SLOTS && !(slots & (slots - 1)) && used < slots;
}

int index_attach(struct index *ix, void *bytes, size_t size)
{
	struct index_head *h = bytes;

	*ix = (struct index){0};
	if (size < sizeof(*h) || memcmp(h->magic, MAGIC, sizeof(h->magic)) ||
		!slots_ok(h->holder_slots, h->holders) || !slots_ok(h->page_slots, h->pages) ||
		size != file_size(h->holder_slots, h->page_slots))
		return -EINVAL;
	*ix = (struct index){.head = h, .size = size, .mapped = true};
	locate(ix);
	return 0;
}

static bool describes(const struct index_head *h, const struct stat *st, const char *boot)
{
	return h->check == head_check(h) && h->dev == st->st_dev && h->ino == st->st_ino &&
	       (h->mtime.sec || h->mtime.nsec) && h->mtime.sec == st->st_mtim.tv_sec &&
	       h->mtime.nsec == st->st_mtim.tv_nsec && h->ctime.sec == st->st_ctim.tv_sec &&
	       h->ctime.nsec == st->st_ctim.tv_nsec && !strncmp(h->boot, boot, sizeof(h->boot));
}

int index_open(struct index *ix, const char *path, const struct stat *st, const char *boot)
{
	autoclose int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat file;
	void *map;
	size_t size;

	*ix = (struct index){0};
	if (fd < 0 || fstat(fd, &file) < 0)
		return -errno;
	/* Every block must be there: writing to a hole in a mapped file ends the process (SIGBUS)
	 * when /run is full. */
	if (!S_ISREG(file.st_mode) || file.st_size < (off_t)sizeof(struct index_head) ||
		(uint64_t)file.st_size > file_size(MAX_SLOTS, MAX_SLOTS) ||
		(uint64_t)file.st_size > SIZE_MAX ||
		(uint64_t)file.st_blocks * 512 < (uint64_t)file.st_size || file.st_uid != geteuid())
		return -EINVAL;
	size = (size_t)file.st_size;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	if (index_attach(ix, map, size) || !describes(ix->head, st, boot)) {
		munmap(map, size);
		*ix = (struct index){0};
		return -ESTALE;
	}
	return 0;
}

void index_free(struct index *ix)
{
	if (ix->mapped)
		munmap(ix->head, ix->size);
	else
		free(ix->head);
	*ix = (struct index){0};
}

uint64_t index_hash(const struct index *ix, const char *id, const char *ifname)
{
	uint64_t h = hash_text(ix->head->seed, id);

	return ifname ? hash_text(h ^ '\n', ifname) : h;
}

void index_touch(struct index *ix)
{
	ix->changed = true;
	ix->head->mtime = (struct index_time){0};
	/* A kill cannot come between in the order of the program; keep the compiler to it. */
	atomic_signal_fence(memory_order_seq_cst);
}

/* The slot in which this holder has this address; when there is none, *found is false and it is the
 * empty slot that ends the run, where it would go. NOT_A_SLOT: the index is broken. */
static size_t holder_slot(struct index *ix, uint64_t hash, struct addr addr, bool *found)
{
	uint32_t mask = ix->head->holder_slots - 1;

	*found = false;
	for (uint32_t n = 0; n <= mask; n++) {
		size_t i = (uint32_t)(hash + n) & mask;
		const struct index_holder *h = &ix->holders[i];

		if (!holder_ok(ix, i))
			break;
		if (!h->used)
			return i;
		if (h->hash == hash && same(h->addr, addr)) {
			*found = true;
			return i;
		}
	}
	ix->broken = true;
	return NOT_A_SLOT;
}

/* The same for a page. */
static size_t page_slot(struct index *ix, struct addr key, bool *found)
{
	uint32_t mask = ix->head->page_slots - 1;
	uint64_t hash = hash_words(ix->head->seed, (const uint64_t *)&key, 2);

	*found = false;
	for (uint32_t n = 0; n <= mask; n++) {
		size_t i = (uint32_t)(hash + n) & mask;

		if (!page_ok(ix, i))
			break;
		if (!ix->pages[i].used)
			return i;
		if (same(ix->pages[i].key, key)) {
			*found = true;
			return i;
		}
	}
	ix->broken = true;
	return NOT_A_SLOT;
}

static bool page_empty(const struct index_page *p)
{
	for (int i = 0; i < PAGE_WORDS; i++)
		if (p->taken[i])
			return false;
	return true;
}

static void put_holder(struct index *ix, uint64_t hash, struct addr addr)
{
	bool found;
	size_t i = holder_slot(ix, hash, addr, &found);

	if (i == NOT_A_SLOT || found)
		return;
	set_holder(ix, i, (struct index_holder){.hash = hash, .addr = addr, .used = 1});
	ix->head->holders++;
}

static size_t put_page(struct index *ix, struct addr key)
{
	bool found;
	size_t i = page_slot(ix, key, &found);

	if (i != NOT_A_SLOT && !found) {
		set_page(ix, i, (struct index_page){.key = key, .used = 1});
		ix->head->pages++;
	}
	return i;
}

/* Moves everything over to private memory of another size; index_publish() makes it the file.
 * Pages that became empty stay behind. */
static void resize(struct index *ix, uint32_t holder_slots, uint32_t page_slots)
{
	struct index to;

	if (init(&to, holder_slots, page_slots, ix->head->seed)) {
		ix->broken = true;
		return;
	}
	to.changed = true;
	for (size_t i = 0; i < ix->head->holder_slots; i++) {
		const struct index_holder *h = &ix->holders[i];

		to.broken |= !holder_ok(ix, i);
		if (h->used && !to.broken)
			put_holder(&to, h->hash, h->addr);
	}
	for (size_t i = 0; i < ix->head->page_slots; i++) {
		const struct index_page *p = &ix->pages[i];
		size_t at;

		to.broken |= !page_ok(ix, i);
		if (!p->used || page_empty(p) || to.broken)
			continue;
		at = put_page(&to, p->key);
		if (at != NOT_A_SLOT)
			set_page(&to, at, *p);
	}
	to.broken |= ix->broken;
	index_free(ix);
	*ix = to;
}

/* Room for one more of each: tables are at most three quarters full. */
static void make_room(struct index *ix)
{
	uint32_t holders = ix->head->holder_slots, pages = ix->head->page_slots;

	if ((uint64_t)(ix->head->holders + 1) * 4 > (uint64_t)holders * 3)
		holders *= 2;
	if ((uint64_t)(ix->head->pages + 1) * 4 > (uint64_t)pages * 3)
		pages *= 2;
	if (holders != ix->head->holder_slots || pages != ix->head->page_slots)
		resize(ix, holders, pages);
}

static void set_bits(struct index *ix, struct addr addr, bool taken, bool old)
{
	size_t i = put_page(ix, page_of(addr));
	unsigned int word = bit_of(addr) / 64;
	uint64_t mask = (uint64_t)1 << bit_of(addr) % 64;
	struct index_page p;

	if (i == NOT_A_SLOT)
		return;
	p = ix->pages[i];
	p.taken[word] = taken ? p.taken[word] | mask : p.taken[word] & ~mask;
	p.old[word] = old ? p.old[word] | mask : p.old[word] & ~mask;
	set_page(ix, i, p);
}

void index_add(struct index *ix, const struct ip *ip, uint64_t hash, bool old)
{
	struct addr addr = from_ip(ip);

	index_touch(ix);
	make_room(ix);
	if (ix->broken)
		return;
	put_holder(ix, hash, addr);
	set_bits(ix, addr, true, old);
}

void index_block(struct index *ix, const struct ip *ip)
{
	index_touch(ix);
	make_room(ix);
	if (!ix->broken)
		set_bits(ix, from_ip(ip), true, false);
}

/* Empties a slot and closes the gap, so that every run stays unbroken. */
static void clear_holder(struct index *ix, size_t gap)
{
	uint32_t mask = ix->head->holder_slots - 1;
	size_t i = gap;

	for (uint32_t n = 0; n < mask; n++) {
		struct index_holder *h;
		size_t home;

		i = (i + 1) & mask;
		h = &ix->holders[i];
		if (!h->used)
			break;
		home = h->hash & mask;
		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		set_holder(ix, gap, *h);
		gap = i;
	}
	set_holder(ix, gap, (struct index_holder){0});
	if (ix->head->holders)
		ix->head->holders--;
}

void index_del(struct index *ix, const struct ip *ip, uint64_t hash)
{
	struct addr addr = from_ip(ip);
	size_t i;
	bool found;

	index_touch(ix);
	if (ix->broken)
		return;
	i = holder_slot(ix, hash, addr, &found);
	if (!found) {
		ix->broken = true;
		return;
	}
	clear_holder(ix, i);
	set_bits(ix, addr, false, false);
}

bool index_held(struct index *ix, uint64_t hash, size_t *pos, struct ip *out)
{
	uint32_t mask = ix->head->holder_slots - 1;

	while (*pos <= mask && !ix->broken) {
		size_t i = (uint32_t)(hash + (*pos)++) & mask;
		const struct index_holder *h = &ix->holders[i];

		ix->broken = !holder_ok(ix, i);
		if (!h->used || ix->broken)
			return false;
		if (h->hash != hash)
			continue;
		*out = to_ip(h->addr);
		return true;
	}
	return false;
}

bool index_each(struct index *ix, size_t *pos, struct ip *out, uint64_t *hash)
{
	while (*pos < ix->head->holder_slots && !ix->broken) {
		size_t i = (*pos)++;
		const struct index_holder *h = &ix->holders[i];

		ix->broken = !holder_ok(ix, i);
		if (!h->used || ix->broken)
			continue;
		*out = to_ip(h->addr);
		*hash = h->hash;
		return true;
	}
	return false;
}

/* The first free (or old) address of a page, from the given bit on; PAGE_ADDRS when there is none.
 * A page that is not in the index (NULL) is free as a whole, and none of it is old. */
static unsigned int first_in_page(const struct index_page *p, unsigned int bit, bool old)
{
	if (!p)
		return old ? PAGE_ADDRS : bit;
	for (unsigned int w = bit / 64; w < PAGE_WORDS; w++, bit = w * 64) {
		uint64_t hits = (old ? p->old[w] : ~p->taken[w]) & ~(uint64_t)0 << bit % 64;

		if (hits)
			return w * 64 + (unsigned int)__builtin_ctzll(hits);
	}
	return PAGE_ADDRS;
}

/* Page by page. It is no longer than the number of pages there are, however large the range: a page
 * that is not there ends the search for a free address, and the second of them that for an old one.
 * The first may be one of which the range has nothing but its gateway, which nobody holds. */
static bool walk(
	struct index *ix, const struct ip *lo, const struct ip *hi, bool old, struct ip *out)
{
	struct addr at = from_ip(lo), end = from_ip(hi);
	int missing = 0;

	while (!after(at, end) && missing < 2) {
		unsigned int bit;
		bool found;
		size_t i = page_slot(ix, page_of(at), &found);

		if (i == NOT_A_SLOT)
			return false;
		missing += !found;
		bit = first_in_page(found ? &ix->pages[i] : NULL, bit_of(at), old);
		at.lo -= bit_of(at);
		if (bit < PAGE_ADDRS) {
			at.lo += bit;
			*out = to_ip(at);
			return !after(at, end);
		}
		at.lo += PAGE_ADDRS;
		at.hi += !at.lo;
		if (!at.hi && !at.lo)
			return false;
	}
	return false;
}

bool index_is_empty(const struct index *ix)
{
	if (ix->head->holders)
		return false;
	for (size_t i = 0; i < ix->head->page_slots; i++)
		if (ix->pages[i].used && !page_empty(&ix->pages[i]))
			return false;
	return true;
}

bool index_next_free(struct index *ix, const struct ip *lo, const struct ip *hi, struct ip *out)
{
	return walk(ix, lo, hi, false, out);
}

bool index_next_old(struct index *ix, const struct ip *lo, const struct ip *hi, struct ip *out)
{
	return walk(ix, lo, hi, true, out);
}

struct timespec index_stamp(const struct index *ix)
{
	struct timespec t;
	uint64_t words[2];

	clock_gettime(CLOCK_REALTIME, &t);
	words[0] = (uint64_t)t.tv_sec;
	words[1] = (uint64_t)t.tv_nsec;
	/* A second ago: what others change from now on gets a later time, also where times are
	 * rounded to seconds. Odd: no file system that rounds keeps it, by which it shows. */
	t.tv_sec--;
	t.tv_nsec = (long)(hash_words(ix->head->seed, words, 2) % 1000000000u | 1);
	return t;
}

void index_seal(struct index *ix, const struct stat *st, const char *boot, const char *store)
{
	struct index_head *h = ix->head;

	h->dev = st->st_dev;
	h->ino = st->st_ino;
	memset(h->boot, 0, sizeof(h->boot));
	memcpy(h->boot, boot, strnlen(boot, INDEX_BOOT_LEN));
	memset(h->store, 0, sizeof(h->store));
	if (strlen(store) < sizeof(h->store))
		memcpy(h->store, store, strlen(store));
	h->ctime = (struct index_time){st->st_ctim.tv_sec, st->st_ctim.tv_nsec};
	atomic_signal_fence(memory_order_seq_cst);
	h->mtime = (struct index_time){st->st_mtim.tv_sec, st->st_mtim.tv_nsec};
	h->check = head_check(h);
	ix->changed = false;
}

int index_publish(const struct index *ix, int dirfd, const char *name)
{
	return file_replace(dirfd, name, ix->head, ix->size, 0600, false);
}

int index_origin(int fd, struct index_origin *out)
{
	struct index_head h;
	ssize_t n = pread(fd, &h, sizeof(h), 0);

	if (n < 0)
		return -errno;
	if (n != (ssize_t)sizeof(h) || memcmp(h.magic, MAGIC, sizeof(h.magic)))
		return -EINVAL;
	*out = (struct index_origin){.dev = h.dev, .ino = h.ino};
	memcpy(out->path, h.store, strnlen(h.store, sizeof(h.store) - 1));
	return 0;
}
