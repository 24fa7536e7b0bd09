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

static double range_size(const struct range *r)
{
	double n = 0, first = 0;

	for (size_t i = 0; i < ip_size(&r->start); i++) {
		n = n * 256 + r->end.bytes[i];
		first = first * 256 + r->start.bytes[i];
	}
	/* Its own gateway is not handed out. */
	return n - first + 1 - (range_has(r, &r->gateway) ? 1 : 0);
}

double range_sets_capacity(const struct range_sets *sets)
{
	double n = 0;

	for (size_t i = 0; i < sets->len; i++)
		for (size_t j = 0; j < sets->list[i].len; j++)
			n += range_size(&sets->list[i].list[j]);
	return n;
}

void range_sets_free(struct range_sets *sets)
{
	for (size_t i = 0; i < sets->len; i++)
		range_set_free(&sets->list[i]);
	free(sets->list);
	*sets = (struct range_sets){0};
}
