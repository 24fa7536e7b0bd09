#include "base/ip.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool ip_parse(const char *text, struct ip *out)
{
	struct ip ip = {0};

	if (strchr(text, ':')) {
		ip.family = AF_INET6;
		if (inet_pton(AF_INET6, text, ip.bytes) != 1)
			return false;
		if (!memcmp(ip.bytes, mapped, sizeof(mapped))) {
			memmove(ip.bytes, ip.bytes + 12, 4);
			memset(ip.bytes + 4, 0, 12);
			ip.family = AF_INET;
		}
	} else {
		ip.family = AF_INET;
		if (inet_pton(AF_INET, text, ip.bytes) != 1)
			return false;
	}
	*out = ip;
	return true;
}

bool prefix_parse(const char *text, struct prefix *out)
{
	const char *slash = strchr(text, '/');
	char addr[IP_STRLEN];
	struct prefix p = {0};
	unsigned int len = 0, bits;

	if (!slash || (size_t)(slash - text) >= sizeof(addr) || !slash[1])
		return false;
	memcpy(addr, text, (size_t)(slash - text));
	addr[slash - text] = '\0';
	if (!ip_parse(addr, &p.ip))
		return false;
	for (const char *c = slash + 1; *c; c++) {
		if (*c < '0' || *c > '9' || c - slash > 3)
			return false;
		len = len * 10 + (unsigned int)(*c - '0');
	}
	/* The length counts in the family that was written: /120 of a mapped address is /24. */
	bits = strchr(addr, ':') ? 128 : 32;
	if (len > bits)
		return false;
	if (bits == 128 && p.ip.family == AF_INET) {
		if (len < 96)
			return false;
		len -= 96;
	}
	p.len = (uint8_t)len;
	*out = p;
	return true;
}

/* Finds the leftmost longest run of at least two zero groups; returns its length. */
static int zero_run(const uint16_t group[8], int *start)
{
	int best = 0;

	for (int i = 0; i < 8;) {
		int n = 0;

		while (i + n < 8 && !group[i + n])
			n++;
		if (n > best) {
			best = n;
			*start = i;
		}
		i += n + 1;
	}
	return best >= 2 ? best : 0;
}

static void format6(const uint8_t bytes[16], char out[IP_STRLEN])
{
	uint16_t group[8];
	int start = -1, run;
	char *p = out;

	for (int i = 0; i < 8; i++)
		group[i] = (uint16_t)(bytes[2 * i] << 8 | bytes[2 * i + 1]);
	run = zero_run(group, &start);
	for (int i = 0; i < 8; i++) {
		if (run && i == start) {
			*p++ = ':';
			*p++ = ':';
			i += run - 1;
			continue;
		}
		if (p > out && p[-1] != ':')
			*p++ = ':';
		p += snprintf(p, 5, "%x", group[i]);
	}
	*p = '\0';
}

const char *ip_format(const struct ip *ip, char out[static IP_STRLEN])
{
	if (ip->family == AF_INET)
		snprintf(out, IP_STRLEN, "%u.%u.%u.%u", ip->bytes[0], ip->bytes[1], ip->bytes[2],
			ip->bytes[3]);
	else if (ip->family == AF_INET6)
		format6(ip->bytes, out);
	else
		out[0] = '\0';
	return out;
}

const char *prefix_format(const struct prefix *p, char out[static PREFIX_STRLEN])
{
	char addr[IP_STRLEN];

	snprintf(out, PREFIX_STRLEN, "%s/%u", ip_format(&p->ip, addr), p->len);
	return out;
}

int ip_cmp(const struct ip *a, const struct ip *b)
{
	if (a->family != b->family)
		return a->family == AF_INET ? -1 : a->family - b->family;
	return memcmp(a->bytes, b->bytes, ip_size(a));
}

struct ip ip_next(struct ip a)
{
	for (size_t i = ip_size(&a); i-- > 0;)
		if (++a.bytes[i])
			break;
	return a;
}

struct ip ip_prev(struct ip a)
{
	for (size_t i = ip_size(&a); i-- > 0;)
		if (a.bytes[i]--)
			break;
	return a;
}

/* Sets or clears the host bits. */
static struct ip fill_host(const struct prefix *p, uint8_t fill)
{
	struct ip ip = p->ip;

	for (size_t i = 0; i < ip_size(&ip); i++) {
		size_t keep = p->len >= 8 * (i + 1) ? 8 : p->len > 8 * i ? p->len - 8 * i : 0;
		uint8_t host = (uint8_t)(0xffu >> keep);

		ip.bytes[i] = (uint8_t)((ip.bytes[i] & ~host) | (fill & host));
	}
	return ip;
}

struct ip prefix_network(const struct prefix *p)
{
	return fill_host(p, 0);
}

struct ip prefix_last(const struct prefix *p)
{
	return fill_host(p, 0xff);
}

bool prefix_contains(const struct prefix *p, const struct ip *ip)
{
	struct prefix q = {*ip, p->len};
	struct ip a, b;

	if (ip->family != p->ip.family)
		return false;
	a = prefix_network(p);
	b = prefix_network(&q);
	return !ip_cmp(&a, &b);
}
