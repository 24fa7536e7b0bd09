/* IP addresses and prefixes as CNI documents write them. Parsing and text follow what the Go
 * plugins accept and print (net.ParseIP, net.ParseCIDR): an IPv4-mapped IPv6 address is IPv4, no
 * zones, no leading zeros, canonical lower-case output (RFC 5952 without the dotted tail that
 * inet_ntop() prints for ::/96). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* An address; all zero is none. */
struct ip {
	uint8_t family;    /* AF_INET, AF_INET6, or 0 (AF_UNSPEC) for "no address" */
	uint8_t bytes[16]; /* network order; the first 4 for IPv4 */
};

/* An address with its prefix length, as 10.0.0.5/8. */
struct prefix {
	struct ip ip; /* host bits are kept */
	uint8_t len;  /* in bits */
};

#define IP_STRLEN     46
#define PREFIX_STRLEN 50

/* 4 or 16. */
static inline size_t ip_size(const struct ip *ip)
{
	return ip->family == AF_INET ? 4 : 16;
}

/* 32 or 128. */
static inline uint8_t ip_bits(const struct ip *ip)
{
	return ip->family == AF_INET ? 32 : 128;
}

/* Both return false when the text is not one, and leave *out alone. */
bool ip_parse(const char *text, struct ip *out);
bool prefix_parse(const char *text, struct prefix *out);

/* Write the canonical text and return out. */
const char *ip_format(const struct ip *ip, char out[static IP_STRLEN]);
const char *prefix_format(const struct prefix *p, char out[static PREFIX_STRLEN]);

/* <0, 0, >0 like memcmp; IPv4 sorts before IPv6. */
int ip_cmp(const struct ip *a, const struct ip *b);

/* 0.0.0.0 or ::. */
static inline bool ip_is_any(const struct ip *ip)
{
	return !ip_cmp(ip, &(struct ip){.family = ip->family});
}

/* The next or previous address, wrapping around within the family. */
struct ip ip_next(struct ip a);
struct ip ip_prev(struct ip a);

/* The network address (host bits cleared), and the last address (host bits set). */
struct ip prefix_network(const struct prefix *p);
struct ip prefix_last(const struct prefix *p);

/* Whether the address lies inside; false for another family. */
bool prefix_contains(const struct prefix *p, const struct ip *ip);
