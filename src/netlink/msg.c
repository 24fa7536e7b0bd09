#include "netlink/msg.h"

#include <endian.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- building ---- */

/* A place to write to when there is no memory: the builder stays usable, the request is refused
 * when it is sent. Larger than any fixed header; headers are written to it as what they are. */
static _Alignas(max_align_t) char sink[512];

static void *grow(struct nl_req *r, size_t more)
{
	size_t aligned = MNL_ALIGN(more);
	void *p;

	if (!r->overflow && r->len + aligned > r->cap) {
		size_t cap = r->cap ? r->cap : 1024;
		size_t msg = r->msg ? (size_t)((char *)r->msg - r->buf) : 0;
		char *buf;

		while (cap < r->len + aligned)
			cap *= 2;
		buf = realloc(r->buf, cap);
		if (buf) {
			r->buf = buf;
			r->cap = cap;
			if (r->msg)
				r->msg = (struct nlmsghdr *)(void *)(buf + msg);
		} else {
			r->overflow = true;
		}
	}
	if (r->overflow) {
		memset(sink, 0, sizeof(sink));
		return sink;
	}
	p = r->buf + r->len;
	memset(p, 0, aligned);
	r->len += aligned;
	if (r->msg)
		r->msg->nlmsg_len += (uint32_t)aligned;
	return p;
}

void *nl_msg(struct nl_req *r, uint16_t type, uint16_t flags, size_t size)
{
	struct nlmsghdr *msg;

	r->msg = NULL;
	msg = grow(r, NLMSG_HDRLEN);
	msg->nlmsg_len = NLMSG_HDRLEN;
	msg->nlmsg_type = type;
	msg->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	if (!r->overflow)
		r->msg = msg;
	return grow(r, size);
}

void nl_put(struct nl_req *r, uint16_t attr, const void *data, size_t len)
{
	struct nlattr *a;

	if (len > UINT16_MAX - NLA_HDRLEN) {
		r->overflow = true;
		return;
	}
	a = grow(r, NLA_HDRLEN + len);
	if (r->overflow)
		return;
	a->nla_type = attr;
	a->nla_len = (uint16_t)(NLA_HDRLEN + len);
	if (len)
		memcpy((char *)a + NLA_HDRLEN, data, len);
}

void nl_put_u8(struct nl_req *r, uint16_t attr, uint8_t v)
{
	nl_put(r, attr, &v, sizeof(v));
}

void nl_put_u16(struct nl_req *r, uint16_t attr, uint16_t v)
{
	nl_put(r, attr, &v, sizeof(v));
}

void nl_put_u32(struct nl_req *r, uint16_t attr, uint32_t v)
{
	nl_put(r, attr, &v, sizeof(v));
}

void nl_put_u64(struct nl_req *r, uint16_t attr, uint64_t v)
{
	nl_put(r, attr, &v, sizeof(v));
}

void nl_put_be32(struct nl_req *r, uint16_t attr, uint32_t v)
{
	nl_put_u32(r, attr, htobe32(v));
}

void nl_put_be64(struct nl_req *r, uint16_t attr, uint64_t v)
{
	nl_put_u64(r, attr, htobe64(v));
}

void nl_put_str(struct nl_req *r, uint16_t attr, const char *s)
{
	nl_put(r, attr, s, strlen(s) + 1);
}

void nl_put_ip(struct nl_req *r, uint16_t attr, const struct ip *ip)
{
	nl_put(r, attr, ip->bytes, ip_size(ip));
}

void nl_put_invalid(struct nl_req *r)
{
	r->overflow = r->invalid = true;
}

void *nl_put_raw(struct nl_req *r, size_t len)
{
	return grow(r, len);
}

size_t nl_nest(struct nl_req *r, uint16_t attr)
{
	size_t at = r->len;
	struct nlattr *a = grow(r, NLA_HDRLEN);

	a->nla_type = NLA_F_NESTED | attr;
	return at;
}

void nl_nest_end(struct nl_req *r, size_t nest)
{
	size_t len = r->len - nest;

	if (r->overflow)
		return;
	if (len > UINT16_MAX) {
		r->overflow = true;
		return;
	}
	((struct nlattr *)(void *)(r->buf + nest))->nla_len = (uint16_t)len;
}

void nl_req_free(struct nl_req *r)
{
	free(r->buf);
	*r = (struct nl_req){0};
}

/* ---- reading attributes ---- */

/* The attributes between two addresses of an answer. */
static const struct nlattr *attr_at(const char *at, const char *end)
{
	return mnl_attr_ok((const void *)at, (int)(end - at)) ? (const void *)at : NULL;
}

static const char *attr_end(const struct nlattr *a)
{
	return (const char *)a + MNL_ALIGN(a->nla_len);
}

/* The first attribute behind a fixed header of that size, NULL when there is none. */
static const struct nlattr *attr_first(const struct nlmsghdr *msg, size_t hdr)
{
	if (mnl_nlmsg_get_payload_len(msg) < MNL_ALIGN(hdr))
		return NULL;
	return attr_at((const char *)msg + NLMSG_HDRLEN + MNL_ALIGN(hdr),
		(const char *)msg + msg->nlmsg_len);
}

#define for_each_attr(a, msg, hdr)                                                                 \
	for (const struct nlattr *a = attr_first(msg, hdr); a;                                     \
		a = attr_at(attr_end(a), (const char *)(msg) + (msg)->nlmsg_len))

static void into_table(const struct nlattr *a, const struct nlattr **table, uint16_t max)
{
	uint16_t type = mnl_attr_get_type(a);

	if (type <= max)
		table[type] = a;
}

void nl_parse(const struct nlmsghdr *msg, size_t hdr, const struct nlattr **table, uint16_t max)
{
	memset(table, 0, sizeof(*table) * ((size_t)max + 1));
	for_each_attr (a, msg, hdr)
		into_table(a, table, max);
}

void nl_parse_nested(const struct nlattr *nest, const struct nlattr **table, uint16_t max)
{
	memset(table, 0, sizeof(*table) * ((size_t)max + 1));
	nl_for_each_attr (a, nest)
		into_table(a, table, max);
}

const struct nlattr *nl_first(const struct nlattr *nest)
{
	return nest ? attr_at((const char *)nest + NLA_HDRLEN, (const char *)nest + nest->nla_len)
		    : NULL;
}

const struct nlattr *nl_next(const struct nlattr *nest, const struct nlattr *a)
{
	return attr_at(attr_end(a), (const char *)nest + nest->nla_len);
}

uint16_t nl_type(const struct nlattr *a)
{
	return mnl_attr_get_type(a);
}

const void *nl_data(const struct nlattr *a)
{
	return a ? mnl_attr_get_payload(a) : NULL;
}

size_t nl_len(const struct nlattr *a)
{
	return a ? mnl_attr_get_payload_len(a) : 0;
}

#define READ(type)                                                                                 \
	type v = 0;                                                                                \
                                                                                                   \
	if (nl_len(a) >= sizeof(v))                                                                \
		memcpy(&v, mnl_attr_get_payload(a), sizeof(v));                                    \
	return v

uint8_t nl_u8(const struct nlattr *a)
{
	READ(uint8_t);
}

uint16_t nl_u16(const struct nlattr *a)
{
	READ(uint16_t);
}

uint32_t nl_u32(const struct nlattr *a)
{
	READ(uint32_t);
}

uint64_t nl_u64(const struct nlattr *a)
{
	READ(uint64_t);
}

uint32_t nl_be32(const struct nlattr *a)
{
	return be32toh(nl_u32(a));
}

uint64_t nl_be64(const struct nlattr *a)
{
	return be64toh(nl_u64(a));
}

const char *nl_str(const struct nlattr *a)
{
	const char *s = nl_data(a);

	return s && memchr(s, '\0', nl_len(a)) ? s : "";
}

bool nl_ip(const struct nlattr *a, uint8_t family, struct ip *out)
{
	struct ip ip = {.family = family};

	if (nl_len(a) != ip_size(&ip))
		return false;
	memcpy(ip.bytes, nl_data(a), ip_size(&ip));
	*out = ip;
	return true;
}
