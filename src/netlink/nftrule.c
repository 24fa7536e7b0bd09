/* Rules: expressions, and matches and statements made of them. */

#include "netlink/nftpriv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_nat.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <string.h>

/* Header offsets: RFC 791, RFC 8200, and source and destination port of TCP, UDP, SCTP. */
enum { IP4_SADDR = 12, IP4_DADDR = 16, IP6_SADDR = 8, IP6_DADDR = 24, PORT_DST = 2 };

int nft_rule_begin(struct nft *n, const struct nft_table *t, const char *chain,
	enum nft_where where, const char *comment)
{
	uint16_t flags = NLM_F_CREATE | (where == NFT_APPEND ? NLM_F_APPEND : 0);
	size_t start;
	int index;

	if (!n->batch.len)
		nft_begin(n, 0);
	start = n->batch.len;
	index = nft_message(n, NFT_MSG_NEWRULE, flags, t->family);
	nft_put_name(n, NFTA_RULE_TABLE, t->name);
	nft_put_name(n, NFTA_RULE_CHAIN, chain);
	nft_put_comment(&n->batch, NFTA_RULE_USERDATA, comment);
	n->rule.family = t->family;
	n->rule.nfproto =
		t->family == NFPROTO_IPV4 || t->family == NFPROTO_IPV6 ? t->family : NFPROTO_UNSPEC;
	n->rule.l4 = 0;
	n->rule.start = start;
	n->rule.nest = nl_nest(&n->batch, NFTA_RULE_EXPRESSIONS);
	return index;
}

void nft_rule_end(struct nft *n)
{
	nl_nest_end(&n->batch, n->rule.nest);
}

bool nft_built_text(const struct nft *n, char out[static NFT_RULE_TEXT])
{
	struct nft_rule_info info;

	out[0] = '\0';
	if (n->batch.overflow || n->rule.start + sizeof(struct nlmsghdr) > n->batch.len)
		return false;
	nft_read_rule((const void *)(n->batch.buf + n->rule.start), &info);
	return nft_rule_text(&info, out);
}

/* ---- expressions ---- */

struct expr {
	size_t elem, data;
};

static struct expr expr_begin(struct nft *n, const char *name)
{
	struct expr x = {.elem = nl_nest(&n->batch, NFTA_LIST_ELEM)};

	nl_put_str(&n->batch, NFTA_EXPR_NAME, name);
	x.data = nl_nest(&n->batch, NFTA_EXPR_DATA);
	return x;
}

static void expr_end(struct nft *n, struct expr x)
{
	nl_nest_end(&n->batch, x.data);
	nl_nest_end(&n->batch, x.elem);
}

static void put_reg(struct nft *n, uint16_t attr, unsigned slot)
{
	nl_put_be32(&n->batch, attr, NFT_REG32_00 + slot);
}

static void x_payload(struct nft *n, uint32_t base, uint32_t offset, uint32_t len, unsigned dreg)
{
	struct expr x = expr_begin(n, "payload");

	put_reg(n, NFTA_PAYLOAD_DREG, dreg);
	nl_put_be32(&n->batch, NFTA_PAYLOAD_BASE, base);
	nl_put_be32(&n->batch, NFTA_PAYLOAD_OFFSET, offset);
	nl_put_be32(&n->batch, NFTA_PAYLOAD_LEN, len);
	expr_end(n, x);
}

void nft_x_meta(struct nft *n, uint32_t key, unsigned dreg)
{
	struct expr x = expr_begin(n, "meta");

	nl_put_be32(&n->batch, NFTA_META_KEY, key);
	put_reg(n, NFTA_META_DREG, dreg);
	expr_end(n, x);
}

void nft_x_cmp(struct nft *n, unsigned sreg, uint32_t op, const void *data, size_t len)
{
	struct expr x = expr_begin(n, "cmp");

	put_reg(n, NFTA_CMP_SREG, sreg);
	nl_put_be32(&n->batch, NFTA_CMP_OP, op);
	nft_put_value(&n->batch, NFTA_CMP_DATA, data, len);
	expr_end(n, x);
}

static void x_range(
	struct nft *n, unsigned sreg, uint32_t op, const void *from, const void *to, size_t len)
{
	struct expr x = expr_begin(n, "range");

	put_reg(n, NFTA_RANGE_SREG, sreg);
	nl_put_be32(&n->batch, NFTA_RANGE_OP, op);
	nft_put_value(&n->batch, NFTA_RANGE_FROM_DATA, from, len);
	nft_put_value(&n->batch, NFTA_RANGE_TO_DATA, to, len);
	expr_end(n, x);
}

void nft_x_bitwise(
	struct nft *n, unsigned sreg, unsigned dreg, const void *mask, const void * xor, size_t len)
{
	static const uint8_t zeros[16];
	struct expr x = expr_begin(n, "bitwise");

	put_reg(n, NFTA_BITWISE_SREG, sreg);
	put_reg(n, NFTA_BITWISE_DREG, dreg);
	nl_put_be32(&n->batch, NFTA_BITWISE_LEN, (uint32_t)len);
	nft_put_value(&n->batch, NFTA_BITWISE_MASK, mask, len);
	nft_put_value(&n->batch, NFTA_BITWISE_XOR, xor? xor : zeros, len);
	if (len > sizeof(zeros) && !n->fail)
		n->fail = -EINVAL;
	expr_end(n, x);
}

static void x_ct(struct nft *n, uint32_t key, int dir, unsigned dreg)
{
	struct expr x = expr_begin(n, "ct");

	nl_put_be32(&n->batch, NFTA_CT_KEY, key);
	put_reg(n, NFTA_CT_DREG, dreg);
	if (dir >= 0)
		nl_put_u8(&n->batch, NFTA_CT_DIRECTION, (uint8_t)dir);
	expr_end(n, x);
}

static void x_fib(struct nft *n, uint32_t flags, uint32_t result, unsigned dreg)
{
	struct expr x = expr_begin(n, "fib");

	put_reg(n, NFTA_FIB_DREG, dreg);
	nl_put_be32(&n->batch, NFTA_FIB_RESULT, result);
	nl_put_be32(&n->batch, NFTA_FIB_FLAGS, flags);
	expr_end(n, x);
}

static void x_lookup(struct nft *n, const char *set, unsigned sreg, int dreg, bool not )
{
	struct expr x = expr_begin(n, "lookup");

	nft_put_name(n, NFTA_LOOKUP_SET, set);
	put_reg(n, NFTA_LOOKUP_SREG, sreg);
	if (dreg >= 0)
		put_reg(n, NFTA_LOOKUP_DREG, (unsigned)dreg);
	if (not )
		nl_put_be32(&n->batch, NFTA_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
	expr_end(n, x);
}

static void x_vmap(struct nft *n, const char *map, unsigned sreg)
{
	struct expr x = expr_begin(n, "lookup");

	nft_put_name(n, NFTA_LOOKUP_SET, map);
	put_reg(n, NFTA_LOOKUP_SREG, sreg);
	nl_put_be32(&n->batch, NFTA_LOOKUP_DREG, NFT_REG_VERDICT);
	expr_end(n, x);
}

void nft_x_verdict(struct nft *n, int code, const char *chain)
{
	struct expr x = expr_begin(n, "immediate");

	nl_put_be32(&n->batch, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	nft_put_verdict(&n->batch, NFTA_IMMEDIATE_DATA, code, chain);
	expr_end(n, x);
}

static void x_nat(struct nft *n, uint32_t type, uint8_t family, int addr, int port, uint32_t flags)
{
	struct expr x = expr_begin(n, "nat");

	nl_put_be32(&n->batch, NFTA_NAT_TYPE, type);
	nl_put_be32(&n->batch, NFTA_NAT_FAMILY, family);
	if (addr >= 0)
		put_reg(n, NFTA_NAT_REG_ADDR_MIN, (unsigned)addr);
	if (port >= 0)
		put_reg(n, NFTA_NAT_REG_PROTO_MIN, (unsigned)port);
	if (flags)
		nl_put_be32(&n->batch, NFTA_NAT_FLAGS, flags);
	expr_end(n, x);
}

void nft_x_notrack(struct nft *n)
{
	expr_end(n, expr_begin(n, "notrack"));
}

void nft_x_masq(struct nft *n, uint32_t flags)
{
	struct expr x = expr_begin(n, "masq");

	if (flags)
		nl_put_be32(&n->batch, NFTA_MASQ_FLAGS, flags);
	expr_end(n, x);
}

/* ---- matches ---- */

static uint32_t equality(bool not )
{
	return not ? NFT_CMP_NEQ : NFT_CMP_EQ;
}

void nft_match_family(struct nft *n, uint8_t nfproto)
{
	uint16_t type = htons(nfproto == NFPROTO_IPV4 ? ETH_P_IP : ETH_P_IPV6);

	if (n->rule.nfproto == nfproto)
		return;
	if (n->rule.family == NFPROTO_BRIDGE) {
		nft_x_meta(n, NFT_META_PROTOCOL, 0);
		nft_x_cmp(n, 0, NFT_CMP_EQ, &type, sizeof(type));
	} else {
		nft_x_meta(n, NFT_META_NFPROTO, 0);
		nft_x_cmp(n, 0, NFT_CMP_EQ, &nfproto, sizeof(nfproto));
	}
	n->rule.nfproto = nfproto;
}

static uint32_t addr_offset(uint8_t nfproto, enum nft_side side)
{
	if (nfproto == NFPROTO_IPV4)
		return side == NFT_SRC ? IP4_SADDR : IP4_DADDR;
	return side == NFT_SRC ? IP6_SADDR : IP6_DADDR;
}

static uint8_t nfproto_of(uint8_t family)
{
	return family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6;
}

void nft_match_addr(struct nft *n, enum nft_side side, const struct prefix *p, bool not )
{
	struct ip net = prefix_network(p);
	uint8_t nfproto = nfproto_of(net.family), mask[16] = {0};
	uint32_t size = (uint32_t)ip_size(&net);

	nft_match_family(n, nfproto);
	if (!p->len && !not )
		return;
	/* Prefixes of whole bytes are compared without a mask. */
	if (p->len && p->len % 8 == 0) {
		size = p->len / 8;
		x_payload(n, NFT_PAYLOAD_NETWORK_HEADER, addr_offset(nfproto, side), size, 0);
	} else {
		for (unsigned i = 0; i < p->len; i++)
			mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
		x_payload(n, NFT_PAYLOAD_NETWORK_HEADER, addr_offset(nfproto, side), size, 0);
		nft_x_bitwise(n, 0, 0, mask, NULL, size);
	}
	nft_x_cmp(n, 0, equality(not ), net.bytes, size);
}

void nft_match_ether(struct nft *n, enum nft_side side, const uint8_t mac[static 6], bool not )
{
	x_payload(n, NFT_PAYLOAD_LL_HEADER, side == NFT_SRC ? ETH_ALEN : 0, ETH_ALEN, 0);
	nft_x_cmp(n, 0, equality(not ), mac, ETH_ALEN);
}

void nft_match_proto(struct nft *n, uint8_t proto)
{
	if (n->rule.l4 == proto)
		return;
	nft_x_meta(n, NFT_META_L4PROTO, 0);
	nft_x_cmp(n, 0, NFT_CMP_EQ, &proto, sizeof(proto));
	n->rule.l4 = proto;
}

void nft_match_port(
	struct nft *n, uint8_t proto, enum nft_side side, uint16_t port, uint16_t last, bool not )
{
	uint16_t from = htons(port), to = htons(last);

	nft_match_proto(n, proto);
	x_payload(n, NFT_PAYLOAD_TRANSPORT_HEADER, side == NFT_SRC ? 0 : PORT_DST, 2, 0);
	if (last <= port) {
		nft_x_cmp(n, 0, equality(not ), &from, sizeof(from));
	} else if (not ) {
		x_range(n, 0, NFT_RANGE_NEQ, &from, &to, sizeof(from));
	} else {
		nft_x_cmp(n, 0, NFT_CMP_GTE, &from, sizeof(from));
		nft_x_cmp(n, 0, NFT_CMP_LTE, &to, sizeof(to));
	}
}

static void match_ifname(struct nft *n, uint32_t key, const char *name, bool not )
{
	char padded[IFNAMSIZ] = {0};
	size_t len = strlen(name);

	if ((!len || len >= IFNAMSIZ) && !n->fail)
		n->fail = -EINVAL;
	memcpy(padded, name, strnlen(name, IFNAMSIZ - 1));
	nft_x_meta(n, key, 0);
	if (len > 1 && name[len - 1] == '*')
		len--;
	else
		len = IFNAMSIZ;
	nft_x_cmp(n, 0, equality(not ), padded, len < IFNAMSIZ ? len : IFNAMSIZ);
}

void nft_match_iifname(struct nft *n, const char *name, bool not )
{
	match_ifname(n, NFT_META_IIFNAME, name, not );
}

void nft_match_oifname(struct nft *n, const char *name, bool not )
{
	match_ifname(n, NFT_META_OIFNAME, name, not );
}

void nft_match_fib_type(struct nft *n, enum nft_side side, uint32_t type, bool not )
{
	x_fib(n, side == NFT_SRC ? NFTA_FIB_F_SADDR : NFTA_FIB_F_DADDR, NFT_FIB_RESULT_ADDRTYPE, 0);
	nft_x_cmp(n, 0, equality(not ), &type, sizeof(type));
}

void nft_match_ct_status(struct nft *n, uint32_t bits)
{
	uint32_t zero = 0;

	x_ct(n, NFT_CT_STATUS, -1, 0);
	nft_x_bitwise(n, 0, 0, &bits, NULL, sizeof(bits));
	nft_x_cmp(n, 0, NFT_CMP_NEQ, &zero, sizeof(zero));
}

/* ---- lookups ---- */

void nft_load_addr(struct nft *n, enum nft_side side, uint8_t family, unsigned *slot)
{
	uint8_t nfproto = nfproto_of(family);
	uint32_t size = family == AF_INET ? 4 : 16;

	/* The check uses register 0 too, which is why an address comes first in a key. */
	if (*slot && n->rule.nfproto != nfproto && !n->fail)
		n->fail = -EINVAL;
	nft_match_family(n, nfproto);
	x_payload(n, NFT_PAYLOAD_NETWORK_HEADER, addr_offset(nfproto, side), size, *slot);
	*slot += size / 4;
}

void nft_load_proto(struct nft *n, unsigned *slot)
{
	nft_x_meta(n, NFT_META_L4PROTO, (*slot)++);
}

void nft_load_port(struct nft *n, enum nft_side side, unsigned *slot)
{
	x_payload(n, NFT_PAYLOAD_TRANSPORT_HEADER, side == NFT_SRC ? 0 : PORT_DST, 2, (*slot)++);
}

void nft_load_iifname(struct nft *n, unsigned *slot)
{
	nft_x_meta(n, NFT_META_IIFNAME, *slot);
	*slot += IFNAMSIZ / 4;
}

void nft_load_iifname_ether(struct nft *n, enum nft_side side)
{
	uint16_t type = ARPHRD_ETHER;
	unsigned slot = 0;

	/* What nft itself adds, and does not print: that there are Ethernet addresses at all. */
	nft_x_meta(n, NFT_META_IIFTYPE, 0);
	nft_x_cmp(n, 0, NFT_CMP_EQ, &type, sizeof(type));
	nft_load_iifname(n, &slot);
	x_payload(n, NFT_PAYLOAD_LL_HEADER, side == NFT_SRC ? ETH_ALEN : 0, ETH_ALEN, slot);
}

void nft_match_set(struct nft *n, const char *set, bool not )
{
	x_lookup(n, set, 0, -1, not );
}

void nft_vmap(struct nft *n, const char *map)
{
	x_vmap(n, map, 0);
}

void nft_dnat_map(struct nft *n, uint8_t family, const char *map, bool with_port)
{
	x_lookup(n, map, 0, 0, false);
	x_nat(n, NFT_NAT_DNAT, nfproto_of(family), 0, with_port ? (family == AF_INET ? 1 : 4) : -1,
		0);
}
