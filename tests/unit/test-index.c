/* src/store/index: against a plain array, at the ends of the address space, and between pages. */
#include "check.h"

#include "base/cleanup.h"
#include "store/index.h"

#include <stdlib.h>

static struct ip ip(const char *text)
{
	struct ip out = {0};

	if (*text)
		CHECK(ip_parse(text, &out));
	return out;
}

#define MODEL 4096

/* What the index should hold: a plain array. */
struct model {
	struct ip addr[MODEL];
	bool taken[MODEL], old[MODEL];
};

/* Address i belongs to container i / 3. */
static uint64_t hash_of(const struct index *ix, int i)
{
	char id[16];

	snprintf(id, sizeof(id), "c%d", i / 3);
	return index_hash(ix, id, "eth0");
}

static void change(struct index *ix, struct model *m, int i, bool fill, bool old)
{
	if (fill && !m->taken[i]) {
		index_add(ix, &m->addr[i], hash_of(ix, i), old);
		m->taken[i] = true;
		m->old[i] = old;
	} else if (!fill && m->taken[i]) {
		index_del(ix, &m->addr[i], hash_of(ix, i));
		m->taken[i] = m->old[i] = false;
	}
}

/* The next free address from i on, and those of i's container. */
static void compare_at(struct index *ix, const struct model *m, int i)
{
	int free_at = i, held = 0, expected = 0;
	size_t pos = 0;
	struct ip found;
	bool any = index_next_free(ix, &m->addr[i], &m->addr[MODEL - 1], &found);

	while (free_at < MODEL && m->taken[free_at])
		free_at++;
	if (any != (free_at < MODEL) || (any && ip_cmp(&found, &m->addr[free_at])))
		CHECK(false);
	for (int n = i / 3 * 3; n < i / 3 * 3 + 3 && n < MODEL; n++)
		expected += m->taken[n];
	while (index_held(ix, hash_of(ix, i), &pos, &found))
		held++;
	if (held != expected)
		CHECK_INT(held, expected);
}

static void compare_all(struct index *ix, const struct model *m)
{
	size_t pos = 0, n = 0, expected = 0;
	uint64_t hash;
	struct ip found;

	while (index_each(ix, &pos, &found, &hash))
		n++;
	for (int i = 0; i < MODEL; i++)
		expected += m->taken[i];
	CHECK_INT(n, expected);
	/* Fill what is free: then the old ones are found, in order. */
	for (int i = 0; i < MODEL; i++)
		if (!m->taken[i])
			index_block(ix, &m->addr[i]);
	CHECK(!index_next_free(ix, &m->addr[0], &m->addr[MODEL - 1], &found));
	for (int i = 0; i < MODEL; i++) {
		int at = i;

		while (at < MODEL && !m->old[at])
			at++;
		if (index_next_old(ix, &m->addr[i], &m->addr[MODEL - 1], &found) != (at < MODEL) ||
			(at < MODEL && ip_cmp(&found, &m->addr[at])))
			CHECK(false);
	}
}

/* Random changes. Crosses pages, grows and shrinks. */
static void test_index_model(const char *base)
{
	static struct model m;
	struct ip first = ip(base);
	struct index ix;
	unsigned int seed = 1;

	m = (struct model){0};
	CHECK(!index_init(&ix));
	for (int i = 0; i < MODEL; i++, first = ip_next(first))
		m.addr[i] = first;
	for (int round = 0; round < 40000; round++) {
		int i = rand_r(&seed) % MODEL;
		bool fill = round % 20000 < 12000 ? rand_r(&seed) % 4 : !(rand_r(&seed) % 4);

		change(&ix, &m, i, fill, rand_r(&seed) % 2);
		if (round % 16 == 0)
			compare_at(&ix, &m, i);
	}
	CHECK(!ix.broken);
	compare_all(&ix, &m);
	index_free(&ix);
}

/* Where nothing is free but one page that is not there: what is old lies behind it. */
static void test_index_old_behind(void)
{
	struct ip lo = ip("10.0.1.255"), hi = ip("10.0.3.9"), old = ip("10.0.2.3"), found;
	struct index ix;

	CHECK(!index_init(&ix));
	CHECK(index_is_empty(&ix));
	CHECK(!index_next_old(&ix, &lo, &hi, &found));
	index_add(&ix, &old, 7, true);
	CHECK(!index_is_empty(&ix));
	CHECK(index_next_old(&ix, &lo, &hi, &found) && !ip_cmp(&found, &old));
	index_del(&ix, &old, 7);
	CHECK(index_is_empty(&ix));
	index_block(&ix, &old);
	CHECK(!index_is_empty(&ix));
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

int main(void)
{
	test_index_model("10.0.0.77");
	test_index_model("fd00::1:ff00");
	test_index_edges();
	test_index_old_behind();
	return check_done();
}
