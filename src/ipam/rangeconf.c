#include "ipam/rangeconf.h"

#include <stdlib.h>
#include <string.h>

static int read_ip(const json *range, const char *key, struct ip *out, struct err *e)
{
	const char *text = "";

	if (json_get_str(range, key, &text, e))
		return -1;
	if (*text && !ip_parse(text, out))
		return err_set(e, ERR_INVALID_CONFIG, "%s: invalid IP address: %s", key, text);
	return 0;
}

/* Reads what is written; range_complete() judges it. */
static int read_range(const json *range, struct range *r, struct err *e)
{
	const char *subnet = "";

	if (json_get_str(range, "subnet", &subnet, e) ||
		read_ip(range, "rangeStart", &r->start, e) ||
		read_ip(range, "rangeEnd", &r->end, e) || read_ip(range, "gateway", &r->gateway, e))
		return -1;
	if (*subnet && !prefix_parse(subnet, &r->subnet))
		return err_set(e, ERR_INVALID_CONFIG, "invalid CIDR address: %s", subnet);
	if (r->subnet.ip.family == AF_INET && strchr(subnet, ':'))
		return err_set(
			e, ERR_INVALID_CONFIG, "IPNet IP and Mask version mismatch: %s", subnet);
	return 0;
}

static struct range_set *add_set(struct range_sets *c, size_t len, struct err *e)
{
	struct range_set *sets = reallocarray(c->list, c->len + 1, sizeof(*sets));
	struct range_set set = {.list = calloc(len + 1, sizeof(*set.list)), .len = len};

	if (sets)
		c->list = sets;
	if (!sets || !set.list) {
		free(set.list);
		err_memory(e);
		return NULL;
	}
	c->list[c->len] = set;
	return &c->list[c->len++];
}

/* "ranges" and runtimeConfig.ipRanges: a list of lists. */
static int read_sets(const json *parent, const char *key, struct range_sets *c, struct err *e)
{
	const json *sets = NULL;

	if (json_get_array(parent, key, &sets, e))
		return -1;
	for (size_t i = 0; i < json_len(sets); i++) {
		const json *list = json_at(sets, i);
		struct range_set *set;

		if (!json_is_array(list) && !json_is_null(list))
			return err_set(e, ERR_INVALID_CONFIG,
				"%s[%zu]: expected an array, found %s", key, i,
				json_type_name(list));
		set = add_set(c, json_len(list), e);
		for (size_t j = 0; set && j < set->len; j++) {
			const json *range = json_at(list, j);

			if (!json_is_object(range) && !json_is_null(range))
				return err_set(e, ERR_INVALID_CONFIG,
					"%s[%zu][%zu]: expected an object, found %s", key, i, j,
					json_type_name(range));
			if (read_range(range, &set->list[j], e))
				return -1;
		}
		if (!set)
			return -1;
	}
	return 0;
}

/* "subnet" and its companions beside "type"; without "subnet" they mean nothing. */
static int read_legacy_range(const json *ipam, struct range_sets *c, struct err *e)
{
	struct range r = {0};
	struct range_set *set;

	if (read_range(ipam, &r, e))
		return -1;
	if (!r.subnet.ip.family)
		return 0;
	set = add_set(c, 1, e);
	if (!set)
		return -1;
	set->list[0] = r;
	return 0;
}

/* Each is compared with each. */
#define RANGES_MAX 4096

static int check_sets(const struct range_sets *c, struct err *e)
{
	size_t ranges = 0;

	for (size_t i = 0; i < c->len; i++)
		ranges += c->list[i].len;
	if (ranges > RANGES_MAX || c->len > RANGES_MAX)
		return err_set(e, ERR_INVALID_CONFIG, "more than %d ranges", RANGES_MAX);
	for (size_t i = 0; i < c->len; i++) {
		struct range_set *set = &c->list[i];
		int ret = 0;

		for (size_t j = 0; j < set->len && !ret; j++)
			ret = range_complete(&set->list[j], e);
		if (ret || range_set_check(set, e))
			return err_wrap(e, "invalid range set %zu", i);
	}
	for (size_t i = 0; i < c->len; i++)
		for (size_t j = i + 1; j < c->len; j++)
			if (range_set_overlap(&c->list[i], &c->list[j]))
				return err_set(e, ERR_INVALID_CONFIG,
					"range set %zu overlaps with %zu", i, j);
	return 0;
}

int rangeconf_read(const json *ipam, const json *runtime, struct range_sets *sets, struct err *e)
{
	*sets = (struct range_sets){0};
	if (read_sets(runtime, "ipRanges", sets, e) || read_legacy_range(ipam, sets, e) ||
		read_sets(ipam, "ranges", sets, e))
		return -1;
	return check_sets(sets, e);
}

static uint64_t eight_bytes(const uint8_t *bytes)
{
	uint64_t n = 0;

	for (int i = 0; i < 8; i++)
		n = n << 8 | bytes[i];
	return n;
}

/* The last 64 bits of an address as a number; *hi receives those before, 0 for IPv4. */
static uint64_t low_bits(const struct ip *ip, uint64_t *hi)
{
	uint8_t bytes[16] = {0};

	memcpy(bytes + sizeof(bytes) - ip_size(ip), ip->bytes, ip_size(ip));
	*hi = eight_bytes(bytes);
	return eight_bytes(bytes + 8);
}

static uint64_t range_size(const struct range *r)
{
	uint64_t first_hi, last_hi;
	uint64_t first = low_bits(&r->start, &first_hi), last = low_bits(&r->end, &last_hi);
	uint64_t n = last - first;

	if (last_hi - first_hi != (last < first))
		return UINT64_MAX;
	/* Both ends count, its own gateway does not. */
	return range_has(r, &r->gateway) || n == UINT64_MAX ? n : n + 1;
}

uint64_t range_sets_capacity(const struct range_sets *sets)
{
	uint64_t n = 0;

	for (size_t i = 0; i < sets->len; i++)
		for (size_t j = 0; j < sets->list[i].len; j++)
			if (__builtin_add_overflow(n, range_size(&sets->list[i].list[j]), &n))
				return UINT64_MAX;
	return n;
}

void range_sets_free(struct range_sets *sets)
{
	for (size_t i = 0; i < sets->len; i++)
		range_set_free(&sets->list[i]);
	free(sets->list);
	*sets = (struct range_sets){0};
}
