#include "store/range.h"

#include "base/buf.h"

#include <stdlib.h>

static int check_subnet(const struct prefix *subnet, struct err *e)
{
	struct ip network;
	char text[PREFIX_STRLEN], right[IP_STRLEN];

	if (!subnet->ip.family)
		return err_set(e, ERR_INVALID_CONFIG, "IP <nil> not v4 nor v6");
	prefix_format(subnet, text);
	if (subnet->len > ip_bits(&subnet->ip) - 2)
		return err_set(
			e, ERR_INVALID_CONFIG, "Network %s too small to allocate from", text);
	network = prefix_network(subnet);
	if (ip_cmp(&network, &subnet->ip))
		return err_set(e, ERR_INVALID_CONFIG,
			"Network has host bits set. For a subnet mask of length %u the network "
			"address is %s",
			subnet->len, ip_format(&network, right));
	return 0;
}

int range_complete(struct range *r, struct err *e)
{
	char net[PREFIX_STRLEN], text[IP_STRLEN];
	struct ip last;

	if (check_subnet(&r->subnet, e))
		return -1;
	prefix_format(&r->subnet, net);
	last = prefix_last(&r->subnet);
	if (!r->gateway.family)
		r->gateway = ip_next(r->subnet.ip);
	/* Outside the subnet is fine, people rely on it; another family can only be a slip. */
	if (r->gateway.family != r->subnet.ip.family)
		return err_set(e, ERR_INVALID_CONFIG,
			"gateway %s is not of the address family of network %s",
			ip_format(&r->gateway, text), net);

	if (r->start.family && (!prefix_contains(&r->subnet, &r->start) ||
				       (r->end.family && ip_cmp(&r->start, &r->end) > 0)))
		return err_set(e, ERR_INVALID_CONFIG, "RangeStart %s not in network %s",
			ip_format(&r->start, text), net);
	if (!r->start.family)
		r->start = ip_next(r->subnet.ip);
	if (r->end.family &&
		(!prefix_contains(&r->subnet, &r->end) || ip_cmp(&r->end, &r->start) < 0))
		return err_set(e, ERR_INVALID_CONFIG, "RangeEnd %s not in network %s",
			ip_format(&r->end, text), net);
	if (!r->end.family)
		r->end = last.family == AF_INET ? ip_prev(last) : last;
	/* Only a start given as the broadcast address with no end gets here. */
	if (ip_cmp(&r->start, &r->end) > 0)
		return err_set(e, ERR_INVALID_CONFIG, "RangeStart %s not in network %s",
			ip_format(&r->start, text), net);
	return 0;
}

bool range_has(const struct range *r, const struct ip *ip)
{
	return ip->family == r->start.family && ip_cmp(ip, &r->start) >= 0 &&
	       ip_cmp(ip, &r->end) <= 0;
}

static bool overlap(const struct range *a, const struct range *b)
{
	return a->start.family == b->start.family && ip_cmp(&a->start, &b->end) <= 0 &&
	       ip_cmp(&b->start, &a->end) <= 0;
}

static void put_range(struct buf *out, const struct range *r)
{
	char start[IP_STRLEN], end[IP_STRLEN];

	buf_printf(out, "%s-%s", ip_format(&r->start, start), ip_format(&r->end, end));
}

int range_set_check(const struct range_set *set, struct err *e)
{
	if (!set->len)
		return err_set(e, ERR_INVALID_CONFIG, "empty range set");
	for (size_t i = 1; i < set->len; i++)
		if (set->list[i].start.family != set->list[0].start.family)
			return err_set(e, ERR_INVALID_CONFIG, "mixed address families");
	for (size_t i = 0; i < set->len; i++) {
		for (size_t j = i + 1; j < set->len; j++) {
			autobuf text = {0};

			if (!overlap(&set->list[i], &set->list[j]))
				continue;
			put_range(&text, &set->list[i]);
			buf_puts(&text, " and ");
			put_range(&text, &set->list[j]);
			return err_set(e, ERR_INVALID_CONFIG, "subnets %s overlap",
				text.failed ? "" : text.data);
		}
	}
	return 0;
}

const struct range *range_set_find(const struct range_set *set, const struct ip *ip)
{
	for (size_t i = 0; i < set->len; i++)
		if (range_has(&set->list[i], ip))
			return &set->list[i];
	return NULL;
}

bool range_set_overlap(const struct range_set *a, const struct range_set *b)
{
	for (size_t i = 0; i < a->len; i++)
		for (size_t j = 0; j < b->len; j++)
			if (overlap(&a->list[i], &b->list[j]))
				return true;
	return false;
}

char *range_set_text(const struct range_set *set)
{
	struct buf out = {0};

	for (size_t i = 0; i < set->len; i++) {
		if (i)
			buf_puts(&out, ",");
		put_range(&out, &set->list[i]);
	}
	if (out.failed)
		buf_free(&out);
	return out.data;
}

void range_set_free(struct range_set *set)
{
	free(set->list);
	*set = (struct range_set){0};
}
