/* Sets, maps and their elements. */

#include "base/cleanup.h"
#include "netlink/nftpriv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

/* The types as libnftables numbers and names them (its enum datatypes), so that the nft tool prints
 * the elements; the kernel only stores the numbers. */
static const struct {
	uint8_t type;
	uint8_t len;
	uint8_t order; /* 1 host, 2 network */
} fields[] = {
	[NFT_FIELD_IPV4] = {7, 4, 2},
	[NFT_FIELD_IPV6] = {8, 16, 2},
	[NFT_FIELD_ETHER] = {9, 6, 1},
	[NFT_FIELD_PROTO] = {12, 1, 2},
	[NFT_FIELD_PORT] = {13, 2, 2},
	[NFT_FIELD_MARK] = {19, 4, 1},
	[NFT_FIELD_IFNAME] = {41, IFNAMSIZ, 1},
};

#define CONCAT_BITS 6 /* each type takes so many bits of a concatenation's number */

struct shape {
	uint32_t type;
	uint32_t len;
	uint32_t order;
	unsigned count;
};

static struct shape shape_of(const uint8_t list[static NFT_FIELDS_MAX])
{
	struct shape s = {0};

	for (size_t i = 0; i < NFT_FIELDS_MAX && list[i] && list[i] < array_len(fields); i++) {
		s.type = s.type << CONCAT_BITS | fields[list[i]].type;
		s.len = (s.len + 3) / 4 * 4 + fields[list[i]].len;
		s.order = fields[list[i]].order;
		s.count++;
	}
	if (s.count > 1) {
		s.len = (s.len + 3) / 4 * 4;
		s.order = 0;
	}
	return s;
}

/* Ranges in a concatenation need to know where each field ends. */
static void put_description(struct nl_req *r, const uint8_t key[static NFT_FIELDS_MAX])
{
	size_t desc = nl_nest(r, NFTA_SET_DESC), concat = nl_nest(r, NFTA_SET_DESC_CONCAT);

	for (size_t i = 0; i < NFT_FIELDS_MAX && key[i] && key[i] < array_len(fields); i++) {
		size_t field = nl_nest(r, NFTA_LIST_ELEM);

		nl_put_be32(r, NFTA_SET_FIELD_LEN, fields[key[i]].len);
		nl_nest_end(r, field);
	}
	nl_nest_end(r, concat);
	nl_nest_end(r, desc);
}

static void put_set_udata(
	struct nl_req *r, const struct shape *key, const struct shape *data, const char *comment)
{
	uint8_t udata[2 * 6 + 2 + NFT_COMMENT_SIZE];
	char text[NFT_COMMENT_SIZE] = {0};
	size_t len;

	len = nft_udata(udata, 0, UDATA_SET_KEYBYTEORDER, &key->order, sizeof(key->order));
	if (data->count)
		len = nft_udata(
			udata, len, UDATA_SET_DATABYTEORDER, &data->order, sizeof(data->order));
	if (comment && *comment) {
		size_t size = nft_comment_len(comment);

		memcpy(text, comment, size);
		len = nft_udata(udata, len, UDATA_SET_COMMENT, text, size + 1);
	}
	nl_put(r, NFTA_SET_USERDATA, udata, len);
}

static int new_set(
	struct nft *n, const struct nft_table *t, const struct nft_set *s, uint16_t flags)
{
	int index = nft_message(n, NFT_MSG_NEWSET, flags, t->family);
	struct shape key = shape_of(s->key), data = shape_of(s->data);
	bool verdicts = s->data[0] == NFT_FIELD_VERDICT;
	bool ranges = key.count > 1 && s->flags & NFT_SET_INTERVAL;
	struct nl_req *r = &n->batch;

	if (!key.count && !n->fail)
		n->fail = -EINVAL;
	nft_put_name(n, NFTA_SET_TABLE, t->name);
	nft_put_name(n, NFTA_SET_NAME, s->name);
	nl_put_be32(r, NFTA_SET_FLAGS,
		s->flags | (verdicts || data.count ? NFT_SET_MAP : 0) |
			(ranges ? NFT_SET_CONCAT : 0));
	nl_put_be32(r, NFTA_SET_KEY_TYPE, key.type);
	nl_put_be32(r, NFTA_SET_KEY_LEN, key.len);
	if (verdicts) {
		nl_put_be32(r, NFTA_SET_DATA_TYPE, NFT_DATA_VERDICT);
		nl_put_be32(r, NFTA_SET_DATA_LEN, 0);
	} else if (data.count) {
		nl_put_be32(r, NFTA_SET_DATA_TYPE, data.type);
		nl_put_be32(r, NFTA_SET_DATA_LEN, data.len);
	}
	nl_put_be32(r, NFTA_SET_ID, ++n->set_id);
	if (ranges)
		put_description(r, s->key);
	put_set_udata(r, &key, &data, s->comment);
	return index;
}

int nft_set_add(struct nft *n, const struct nft_table *t, const struct nft_set *s)
{
	return new_set(n, t, s, NLM_F_CREATE);
}

int nft_set_create(struct nft *n, const struct nft_table *t, const struct nft_set *s)
{
	return new_set(n, t, s, NLM_F_CREATE | NLM_F_EXCL);
}

/* ---- keys ---- */

void nft_key_put(struct nft_key *k, const void *data, size_t len)
{
	size_t padded = (len + 3) / 4 * 4;

	k->overflow = k->overflow || len > sizeof(k->bytes) || k->len + padded > sizeof(k->bytes);
	if (k->overflow)
		return;
	memcpy(k->bytes + k->len, data, len);
	memset(k->bytes + k->len + len, 0, padded - len);
	k->bare = (uint8_t)(k->len + len);
	k->len = (uint8_t)(k->len + padded);
	k->fields++;
}

void nft_key_ip(struct nft_key *k, const struct ip *ip)
{
	nft_key_put(k, ip->bytes, ip_size(ip));
}

void nft_key_proto(struct nft_key *k, uint8_t proto)
{
	nft_key_put(k, &proto, sizeof(proto));
}

void nft_key_port(struct nft_key *k, uint16_t port)
{
	port = htons(port);
	nft_key_put(k, &port, sizeof(port));
}

void nft_key_ifname(struct nft_key *k, const char *name)
{
	char padded[IFNAMSIZ] = {0};

	snprintf(padded, sizeof(padded), "%s", name);
	nft_key_put(k, padded, sizeof(padded));
}

void nft_key_ether(struct nft_key *k, const uint8_t mac[static 6])
{
	nft_key_put(k, mac, 6);
}

size_t nft_key_size(const struct nft_key *k)
{
	return k->fields == 1 ? k->bare : k->len;
}

/* ---- elements ---- */

static void put_elem(struct nft *n, const struct nft_elem *el, bool whole)
{
	struct nl_req *r = &n->batch;
	size_t elem = nl_nest(r, NFTA_LIST_ELEM);

	if ((el->key.overflow || el->end.overflow || el->data.overflow) && !n->fail)
		n->fail = -EOVERFLOW;
	nft_put_value(r, NFTA_SET_ELEM_KEY, el->key.bytes, nft_key_size(&el->key));
	if (el->end.fields)
		nft_put_value(r, NFTA_SET_ELEM_KEY_END, el->end.bytes, nft_key_size(&el->end));
	if (el->interval_end)
		nl_put_be32(r, NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
	if (whole && el->has_verdict)
		nft_put_verdict(r, NFTA_SET_ELEM_DATA, el->verdict, el->chain);
	else if (whole && el->data.fields)
		nft_put_value(r, NFTA_SET_ELEM_DATA, el->data.bytes, nft_key_size(&el->data));
	if (whole)
		nft_put_comment(r, NFTA_SET_ELEM_USERDATA, el->comment);
	nl_nest_end(r, elem);
}

/* The list is an attribute and as such ends at 64 KB; the largest element takes about 500 bytes. */
#define LIST_MAX (60 * 1024)

static int elems(struct nft *n, uint16_t type, uint16_t flags, const struct nft_table *t,
	const char *set, const struct nft_elem *list, size_t len)
{
	struct nl_req *r = &n->batch;
	int first = -1;

	for (size_t i = 0; i < len;) {
		int index = nft_message(n, type, flags, t->family);
		size_t nest;

		first = first < 0 ? index : first;
		nft_put_name(n, NFTA_SET_ELEM_LIST_TABLE, t->name);
		nft_put_name(n, NFTA_SET_ELEM_LIST_SET, set);
		nest = nl_nest(r, NFTA_SET_ELEM_LIST_ELEMENTS);
		while (i < len && r->len - nest < LIST_MAX)
			put_elem(n, &list[i++], type == NFT_MSG_NEWSETELEM);
		nl_nest_end(r, nest);
	}
	return first;
}

int nft_elems_add(struct nft *n, const struct nft_table *t, const char *set,
	const struct nft_elem *list, size_t len)
{
	return elems(n, NFT_MSG_NEWSETELEM, NLM_F_CREATE, t, set, list, len);
}

int nft_elem_create(
	struct nft *n, const struct nft_table *t, const char *set, const struct nft_elem *elem)
{
	return elems(n, NFT_MSG_NEWSETELEM, NLM_F_CREATE | NLM_F_EXCL, t, set, elem, 1);
}

int nft_elems_del(struct nft *n, const struct nft_table *t, const char *set,
	const struct nft_elem *list, size_t len)
{
	return elems(n, NFT_MSG_DELSETELEM, 0, t, set, list, len);
}
