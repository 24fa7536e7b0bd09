#include "portmap/layout.h"
#include "base/hex.h"

#include "base/cleanup.h"

#include <errno.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

const struct nft_table port_table = {NFPROTO_INET, PORTRULES_TABLE};

/* Priorities of linux/netfilter_ipv4.h: raw, dstnat, srcnat. */
enum { PRIO_RAW = -300, PRIO_DSTNAT = -100, PRIO_SRCNAT = 100 };

/* What there is once per family. */
static const struct layout {
	uint8_t family;
	uint8_t nfproto;
	uint8_t addr; /* NFT_FIELD_* */
	const char *ports, *hosts, *gates, *gate_hosts, *translate;
} layouts[] = {
	{AF_INET, NFPROTO_IPV4, NFT_FIELD_IPV4, "ports4", "hosts4", "gates4", "gate_hosts4",
		"translate4"},
	{AF_INET6, NFPROTO_IPV6, NFT_FIELD_IPV6, "ports6", "hosts6", "gates6", "gate_hosts6",
		"translate6"},
};

static const struct layout *layout_of(const struct ip *ip)
{
	return &layouts[ip->family == AF_INET6];
}

/* ---- the table ---- */

static void put_maps(struct nft *n, const struct layout *l)
{
	const struct nft_set sets[] = {
		{.name = l->ports,
			.key = {NFT_FIELD_PROTO, NFT_FIELD_PORT},
			.data = {l->addr, NFT_FIELD_PORT},
			.comment = "any local address: protocol . host port : container"},
		{.name = l->hosts,
			.key = {l->addr, NFT_FIELD_PROTO, NFT_FIELD_PORT},
			.data = {l->addr, NFT_FIELD_PORT},
			.comment = "one address: hostIP . protocol . host port : container"},
		{.name = l->gates,
			.key = {NFT_FIELD_PROTO, NFT_FIELD_PORT},
			.data = {NFT_FIELD_VERDICT},
			.comment = "conditions of entries of ports"},
		{.name = l->gate_hosts,
			.key = {l->addr, NFT_FIELD_PROTO, NFT_FIELD_PORT},
			.data = {NFT_FIELD_VERDICT},
			.comment = "conditions of entries of hosts"},
	};

	for (size_t i = 0; i < array_len(sets); i++)
		nft_set_add(n, &port_table, &sets[i]);
}

static void load_key(struct nft *n, const struct layout *l, bool with_addr)
{
	unsigned slot = 0;

	if (with_addr)
		nft_load_addr(n, NFT_DST, l->family, &slot);
	nft_load_proto(n, &slot);
	nft_load_port(n, NFT_DST, &slot);
}

/* A gate returns when its conditions are met and accepts, that is ends the hook without
 * translation, when they are not. */
static void put_lookup(
	struct nft *n, const struct layout *l, const char *gates, const char *map, bool with_addr)
{
	nft_rule_begin(n, &port_table, l->translate, NFT_APPEND, NULL);
	load_key(n, l, with_addr);
	nft_vmap(n, gates);
	nft_rule_end(n);
	nft_rule_begin(n, &port_table, l->translate, NFT_APPEND, NULL);
	load_key(n, l, with_addr);
	nft_dnat_map(n, l->family, map, true);
	nft_rule_end(n);
}

/* Only what is addressed to this host is translated, never what passes through. [::1] is left
 * alone: there is no IPv6 counterpart of route_localnet, so the answer could not come back. */
static void put_hook(struct nft *n, const char *chain)
{
	const struct prefix loopback6 = {{AF_INET6, {[15] = 1}}, 128};

	for (size_t i = 0; i < array_len(layouts); i++) {
		const struct layout *l = &layouts[i];

		nft_rule_begin(n, &port_table, chain, NFT_APPEND, NULL);
		nft_match_family(n, l->nfproto);
		if (l->family == AF_INET6)
			nft_match_addr(n, NFT_DST, &loopback6, true);
		nft_match_fib_type(n, NFT_DST, RTN_LOCAL, false);
		nft_x_verdict(n, NFT_JUMP, l->translate);
		nft_rule_end(n);
	}
}

static void put_guard(struct nft *n, enum nft_side side)
{
	const struct prefix loopback = {{AF_INET, {127}}, 8};
	unsigned slot = 0;

	nft_rule_begin(n, &port_table, "guard", NFT_APPEND,
		"127.0.0.0/8 stays inside the host although route_localnet is set");
	nft_match_addr(n, side, &loopback, false);
	nft_load_iifname(n, &slot);
	nft_match_set(n, PORT_LOCALNET, false);
	nft_x_verdict(n, NF_DROP, NULL);
	nft_rule_end(n);
}

void portlayout_put_table(struct nft *n)
{
	static const struct nft_chain chains[] = {
		{.name = "guard", .type = "filter", .hook = NF_INET_PRE_ROUTING, .prio = PRIO_RAW},
		{.name = "prerouting",
			.type = "nat",
			.hook = NF_INET_PRE_ROUTING,
			.prio = PRIO_DSTNAT},
		{.name = "output", .type = "nat", .hook = NF_INET_LOCAL_OUT, .prio = PRIO_DSTNAT},
		{.name = "postrouting",
			.type = "nat",
			.hook = NF_INET_POST_ROUTING,
			.prio = PRIO_SRCNAT},
		{.name = "translate4"},
		{.name = "translate6"},
	};

	nft_table_add(n, &port_table, "port mappings of cnibox, see docs/portmap.md");
	nft_set_create(n, &port_table,
		&(struct nft_set){.name = PORT_OWNERS,
			.key = {NFT_FIELD_IPV6, NFT_FIELD_PORT},
			.comment = "owner's hash . line of its record"});
	nft_set_add(n, &port_table,
		&(struct nft_set){.name = PORT_LOCALNET,
			.key = {NFT_FIELD_IFNAME},
			.comment = "links with route_localnet"});
	for (size_t i = 0; i < array_len(layouts); i++)
		put_maps(n, &layouts[i]);
	for (size_t i = 0; i < array_len(chains); i++)
		nft_chain_add(n, &port_table, &chains[i]);
	for (size_t i = 0; i < array_len(layouts); i++) {
		put_lookup(n, &layouts[i], layouts[i].gate_hosts, layouts[i].hosts, true);
		put_lookup(n, &layouts[i], layouts[i].gates, layouts[i].ports, false);
	}
	put_hook(n, "prerouting");
	put_hook(n, "output");
	put_guard(n, NFT_SRC);
	put_guard(n, NFT_DST);
}

/* ---- masquerading ---- */

const char *portlayout_masq_name(const struct prefix *from, char out[static PORT_MASQ])
{
	snprintf(out, PORT_MASQ, "masq%d_%u", from->ip.family == AF_INET ? 4 : 6, from->len);
	return out;
}

static void put_masq(struct nft *n, const struct prefix *from)
{
	const struct layout *l = layout_of(&from->ip);
	uint8_t mask[16] = {0};
	char name[PORT_MASQ];
	unsigned slot = 0;

	nft_set_create(n, &port_table,
		&(struct nft_set){.name = portlayout_masq_name(from, name),
			.key = {l->addr, l->addr, NFT_FIELD_PROTO, NFT_FIELD_PORT},
			.comment = "source's network . container . protocol . container port"});
	for (unsigned i = 0; i < from->len; i++)
		mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
	nft_rule_begin(n, &port_table, "postrouting", NFT_APPEND, NULL);
	nft_match_ct_status(n, IPS_DST_NAT);
	nft_load_addr(n, NFT_SRC, l->family, &slot);
	/* A mask of all ones is left out, as nft does. */
	if (from->len < ip_bits(&from->ip))
		nft_x_bitwise(n, 0, 0, mask, NULL, (uint32_t)ip_size(&from->ip));
	nft_load_addr(n, NFT_DST, l->family, &slot);
	nft_load_proto(n, &slot);
	nft_load_port(n, NFT_DST, &slot);
	nft_match_set(n, name, false);
	nft_x_masq(n, 0);
	nft_rule_end(n);
}

size_t portlayout_masqs(const struct portmaps *m, size_t out[static PORT_SOURCES])
{
	size_t len = 0;

	for (size_t i = 0; i < m->from_len; i++) {
		bool seen = false;

		for (size_t j = 0; j < i; j++)
			seen |= m->from[j].len == m->from[i].len &&
				m->from[j].ip.family == m->from[i].ip.family;
		if (!seen)
			out[len++] = i;
	}
	return len;
}

void portlayout_put_masqs(struct nft *n, const struct portmaps *m, const bool *wanted)
{
	size_t list[PORT_SOURCES], len = portlayout_masqs(m, list);

	for (size_t i = 0; i < len; i++)
		if (!wanted || wanted[list[i]])
			put_masq(n, &m->from[list[i]]);
}

/* ---- elements ---- */

struct nft_key portlayout_owner_key(const char *hash, size_t index)
{
	struct nft_key key = {0};
	uint8_t bytes[OWNER_HASH / 2];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)hex_byte(hash + 2 * i);
	nft_key_put(&key, bytes, sizeof(bytes));
	nft_key_port(&key, (uint16_t)index);
	return key;
}

struct nft_key portlayout_dev_key(const char *dev)
{
	struct nft_key key = {0};

	nft_key_ifname(&key, dev);
	return key;
}

const char *portlayout_gate_name(const char *hash, char out[static PORT_GATE])
{
	snprintf(out, PORT_GATE, "gate_%s", hash);
	return out;
}

static struct nft_key arrival(const struct port_mapping *m)
{
	struct nft_key key = {0};

	if (!ip_is_any(&m->host))
		nft_key_ip(&key, &m->host);
	nft_key_proto(&key, m->proto);
	nft_key_port(&key, m->host_port);
	return key;
}

typedef int place_fn(struct port_place *p, void *arg);

static int each_claim(const struct portmaps *m, place_fn *fn, void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < m->len && !ret; i++) {
		const struct port_mapping *p = &m->list[i];
		const struct layout *l = layout_of(&p->addr);
		struct port_place place = {
			.set = ip_is_any(&p->host) ? l->ports : l->hosts,
			.elem = {.key = arrival(p), .comment = m->owner},
			.m = p,
			.claim = true,
		};

		nft_key_ip(&place.elem.data, &p->addr);
		nft_key_port(&place.elem.data, p->port);
		ret = fn(&place, arg);
	}
	return ret;
}

static int each_gate(const struct portmaps *m, place_fn *fn, void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < m->len && !ret; i++) {
		const struct port_mapping *p = &m->list[i];
		const struct layout *l = layout_of(&p->addr);
		struct port_place place = {
			.set = ip_is_any(&p->host) ? l->gates : l->gate_hosts,
			.elem = {.key = arrival(p),
				.comment = m->owner,
				.has_verdict = true,
				.verdict = NFT_JUMP,
				.chain = place.gate},
			.m = p,
		};

		if (!m->gates[l - layouts])
			continue;
		portlayout_gate_name(m->hash, place.gate);
		ret = fn(&place, arg);
	}
	return ret;
}

static int by_target(const void *x, const void *y)
{
	const struct port_mapping *const *a = x, *const *b = y;
	int c = ip_cmp(&(*a)->addr, &(*b)->addr);

	if (!c)
		c = (*a)->proto - (*b)->proto;
	return c ? c : (*a)->port - (*b)->port;
}

static int each_source(
	const struct portmaps *m, const struct port_mapping *p, place_fn *fn, void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < m->from_len && !ret; i++) {
		struct ip net = prefix_network(&m->from[i]);
		struct port_place place = {
			.elem = {.comment = m->owner},
			.m = p,
		};

		if (net.family != p->addr.family)
			continue;
		place.set = portlayout_masq_name(&m->from[i], place.masq);
		nft_key_ip(&place.elem.key, &net);
		nft_key_ip(&place.elem.key, &p->addr);
		nft_key_proto(&place.elem.key, p->proto);
		nft_key_port(&place.elem.key, p->port);
		ret = fn(&place, arg);
	}
	return ret;
}

/* Several host ports may lead to one container port, which is masqueraded once. */
static int each_masq(const struct portmaps *m, place_fn *fn, void *arg)
{
	autofree const struct port_mapping **list = calloc(m->len + 1, sizeof(*list));
	int ret = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < m->len; i++)
		list[i] = &m->list[i];
	if (m->len)
		qsort(list, m->len, sizeof(*list), by_target);
	for (size_t i = 0; i < m->len && !ret; i++)
		if (!i || by_target(&list[i - 1], &list[i]))
			ret = each_source(m, list[i], fn, arg);
	return ret;
}

int portlayout_each(const struct portmaps *m, place_fn *fn, void *arg)
{
	int ret = each_claim(m, fn, arg);

	if (!ret && (m->gates[0] || m->gates[1]))
		ret = each_gate(m, fn, arg);
	if (!ret && m->from_len)
		ret = each_masq(m, fn, arg);
	return ret;
}
