#include "portmap/layout.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"

#include <errno.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

const struct nft_table port_table = {NFPROTO_INET, "cnibox_portmap"};

/* Priorities of linux/netfilter_ipv4.h: raw, dstnat, srcnat. */
enum { PRIO_RAW = -300, PRIO_DSTNAT = -100, PRIO_SRCNAT = 100 };

/* What there is once per family. Gates are the conditions of records of the old form. */
static const struct layout {
	uint8_t family;
	uint8_t nfproto;
	uint8_t addr;               /* NFT_FIELD_* */
	const char *ip, *addr_type; /* in nft's syntax */
	const char *ports, *hosts, *gates, *gate_hosts, *translate;
	const char *when[2]; /* chains, by enum layout_map */
} layouts[] = {
	{AF_INET, NFPROTO_IPV4, NFT_FIELD_IPV4, "ip", "ipv4_addr", "ports4", "hosts4", "gates4",
		"gate_hosts4", "translate4", {"when_ports4", "when_hosts4"}},
	{AF_INET6, NFPROTO_IPV6, NFT_FIELD_IPV6, "ip6", "ipv6_addr", "ports6", "hosts6", "gates6",
		"gate_hosts6", "translate6", {"when_ports6", "when_hosts6"}},
};

static const struct layout *layout_of_family(uint8_t family)
{
	return &layouts[family == AF_INET6];
}

static const struct layout *layout_of(const struct ip *ip)
{
	return layout_of_family(ip->family);
}

/* ---- the table ---- */

/* map NAME { type [ipv4_addr .] inet_proto . inet_service : ipv4_addr . inet_service } */
static struct nft_set map_of(
	const struct layout *l, enum layout_map which, const char *name, const char *comment)
{
	struct nft_set s = {.name = name, .data = {l->addr, NFT_FIELD_PORT}, .comment = comment};
	const uint8_t any[] = {NFT_FIELD_PROTO, NFT_FIELD_PORT},
		      one[] = {l->addr, NFT_FIELD_PROTO, NFT_FIELD_PORT};

	memcpy(s.key, which == LAYOUT_ONE ? one : any,
		which == LAYOUT_ONE ? sizeof(one) : sizeof(any));
	return s;
}

static void put_maps(struct nft *n, const struct layout *l)
{
	const struct nft_set sets[] = {
		map_of(l, LAYOUT_ANY, l->ports,
			"any local address: protocol . host port : container"),
		map_of(l, LAYOUT_ONE, l->hosts,
			"one address: hostIP . protocol . host port : container"),
	};

	for (size_t i = 0; i < array_len(sets); i++)
		nft_set_add(n, &port_table, &sets[i]);
}

/* [ip daddr .] meta l4proto . th dport */
static void load_key(struct nft *n, const struct layout *l, enum layout_map which)
{
	unsigned slot = 0;

	if (which == LAYOUT_ONE)
		nft_load_addr(n, NFT_DST, l->family, &slot);
	nft_load_proto(n, &slot);
	nft_load_port(n, NFT_DST, &slot);
}

/* jump CHAIN */
static void put_jump(struct nft *n, const char *from, const char *to)
{
	nft_rule_begin(n, &port_table, from, NFT_APPEND, NULL);
	nft_x_verdict(n, NFT_JUMP, to);
	nft_rule_end(n);
}

/* dnat ip to [ip daddr .] meta l4proto . th dport map @MAP: ends the hook where there is an
 * element, otherwise the next rule is looked at. */
static void put_lookup(
	struct nft *n, const struct layout *l, enum layout_map which, const char *map)
{
	nft_rule_begin(n, &port_table, l->translate, NFT_APPEND, NULL);
	load_key(n, l, which);
	nft_dnat_map(n, l->family, map, true);
	nft_rule_end(n);
}

/* [ip daddr .] meta l4proto . th dport vmap @GATES, of the old form: a gate returns when its
 * conditions are met and accepts, that is ends the hook without translation, when they are not. */
static void put_gates(
	struct nft *n, const struct layout *l, enum layout_map which, const char *gates)
{
	nft_rule_begin(n, &port_table, l->translate, NFT_APPEND, NULL);
	load_key(n, l, which);
	nft_vmap(n, gates);
	nft_rule_end(n);
}

/* From the special to the general: one address before any, with conditions before without. */
static void put_translate(struct nft *n, const struct layout *l, bool gates)
{
	put_jump(n, l->translate, l->when[LAYOUT_ONE]);
	if (gates)
		put_gates(n, l, LAYOUT_ONE, l->gate_hosts);
	put_lookup(n, l, LAYOUT_ONE, l->hosts);
	put_jump(n, l->translate, l->when[LAYOUT_ANY]);
	if (gates)
		put_gates(n, l, LAYOUT_ANY, l->gates);
	put_lookup(n, l, LAYOUT_ANY, l->ports);
}

void layout_put_upgrade(struct nft *n)
{
	for (size_t i = 0; i < array_len(layouts); i++) {
		const struct layout *l = &layouts[i];

		for (size_t j = 0; j < array_len(l->when); j++)
			nft_chain_create(n, &port_table, &(struct nft_chain){.name = l->when[j]});
		nft_chain_flush(n, &port_table, l->translate);
		put_translate(n, l, true);
	}
}

/* meta nfproto ipv4 fib daddr type local jump translate4
 * ip6 daddr != ::1 fib daddr type local jump translate6
 *
 * Only what is addressed to this host is translated, never what passes through. [::1] is left
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

/* ip saddr|daddr 127.0.0.0/8 iifname @localnet drop */
static void put_guard(struct nft *n, enum nft_side side)
{
	const struct prefix loopback = {{AF_INET, {127}}, 8};
	unsigned slot = 0;

	nft_rule_begin(n, &port_table, "guard", NFT_APPEND,
		"127.0.0.0/8 stays inside the host although route_localnet is set");
	nft_match_addr(n, side, &loopback, false);
	nft_load_iifname(n, &slot);
	nft_match_set(n, LAYOUT_LOCALNET, false);
	nft_x_verdict(n, NF_DROP, NULL);
	nft_rule_end(n);
}

void layout_put_table(struct nft *n)
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
		{.name = "when_hosts4"},
		{.name = "when_hosts6"},
		{.name = "when_ports4"},
		{.name = "when_ports6"},
	};

	nft_table_add(n, &port_table, "port mappings of cnibox, see docs/portmap.md");
	nft_set_create(n, &port_table,
		&(struct nft_set){.name = LAYOUT_OWNERS,
			.key = {NFT_FIELD_IPV6, NFT_FIELD_PORT},
			.comment = "owner's hash . line of its record"});
	nft_set_add(n, &port_table,
		&(struct nft_set){.name = LAYOUT_LOCALNET,
			.key = {NFT_FIELD_IFNAME},
			.comment = "links with route_localnet"});
	for (size_t i = 0; i < array_len(layouts); i++)
		put_maps(n, &layouts[i]);
	for (size_t i = 0; i < array_len(chains); i++)
		nft_chain_add(n, &port_table, &chains[i]);
	for (size_t i = 0; i < array_len(layouts); i++)
		put_translate(n, &layouts[i], false);
	put_hook(n, "prerouting");
	put_hook(n, "output");
	put_guard(n, NFT_SRC);
	put_guard(n, NFT_DST);
}

/* ---- masquerading ---- */

const char *layout_masq_name(const struct prefix *from, char out[static LAYOUT_MASQ])
{
	snprintf(out, LAYOUT_MASQ, "masq%d_%u", from->ip.family == AF_INET ? 4 : 6, from->len);
	return out;
}

/* ct status dnat ip saddr & MASK . ip daddr . meta l4proto . th dport @masq4_24 masquerade */
static void put_masq(struct nft *n, const struct prefix *from)
{
	const struct layout *l = layout_of(&from->ip);
	uint8_t mask[16] = {0};
	char name[LAYOUT_MASQ];
	unsigned slot = 0;

	nft_set_create(n, &port_table,
		&(struct nft_set){.name = layout_masq_name(from, name),
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

size_t layout_masqs(const struct port_record *m, size_t out[static PORT_SOURCES])
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

void layout_put_masqs(struct nft *n, const struct port_record *m, const bool *wanted)
{
	size_t list[PORT_SOURCES], len = layout_masqs(m, list);

	for (size_t i = 0; i < len; i++)
		if (!wanted || wanted[list[i]])
			put_masq(n, &m->from[list[i]]);
}

/* ---- conditions ---- */

const char *layout_map_name(
	uint8_t family, enum layout_map which, const char *when, char out[static LAYOUT_MAP])
{
	const struct layout *l = layout_of_family(family);

	snprintf(out, LAYOUT_MAP, "%s_%.*s", which == LAYOUT_ONE ? l->hosts : l->ports,
		PORT_CONDITIONS, when);
	return out;
}

const char *layout_when_chain(uint8_t family, enum layout_map which)
{
	return layout_of_family(family)->when[which];
}

/* CONDITIONS dnat ip to [ip daddr .] meta l4proto . th dport map @ports4_… comment "…" */
void layout_put_conditions(struct nft *n, const struct port_conds *c)
{
	const struct layout *l = layout_of_family(c->family);
	char name[LAYOUT_MAP];

	for (enum layout_map which = LAYOUT_ANY; which <= LAYOUT_ONE; which++) {
		const struct nft_set map =
			map_of(l, which, layout_map_name(c->family, which, c->id, name), c->text);

		nft_set_create(n, &port_table, &map);
		nft_rule_begin(n, &port_table, l->when[which], NFT_APPEND, c->id);
		conditions_put(n, c);
		load_key(n, l, which);
		nft_dnat_map(n, l->family, name, true);
		nft_rule_end(n);
	}
}

int layout_apply_conditions(const struct port_conds *c, struct err *e)
{
	const struct layout *l = layout_of_family(c->family);
	char name[LAYOUT_MAP];
	autobuf text = {0};

	for (enum layout_map which = LAYOUT_ANY; which <= LAYOUT_ONE; which++) {
		const char *addr = which == LAYOUT_ONE ? l->addr_type : "",
			   *daddr = which == LAYOUT_ONE ? l->ip : "";

		layout_map_name(c->family, which, c->id, name);
		buf_printf(&text,
			"create map inet %s %s { type %s%sinet_proto . inet_service : %s . "
			"inet_service; comment \"conditions in nft's syntax\"; }\n",
			port_table.name, name, addr, *addr ? " . " : "", l->addr_type);
		buf_printf(&text,
			"add rule inet %s %s %s dnat %s to %s%smeta l4proto . th dport map @%s "
			"comment \"%s\"\n",
			port_table.name, l->when[which], c->nft, l->ip, daddr,
			*daddr ? " daddr . " : "", name, c->id);
	}
	return text.failed ? err_memory(e) : conditions_run(c, text.data, e);
}

/* ---- elements ---- */

struct nft_key layout_owner_key(const char *hash, size_t index)
{
	struct nft_key key = {0};
	uint8_t bytes[OWNER_HASH / 2];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)hex_byte(hash + 2 * i);
	nft_key_put(&key, bytes, sizeof(bytes));
	nft_key_port(&key, (uint16_t)index);
	return key;
}

struct nft_key layout_dev_key(const char *dev)
{
	struct nft_key key = {0};

	nft_key_ifname(&key, dev);
	return key;
}

const char *layout_gate_name(const char *hash, char out[static LAYOUT_GATE])
{
	snprintf(out, LAYOUT_GATE, "gate_%s", hash);
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

static int each_claim(const struct port_record *m, place_fn *fn, void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < m->len && !ret; i++) {
		const struct port_mapping *p = &m->list[i];
		const struct layout *l = layout_of(&p->addr);
		enum layout_map which = ip_is_any(&p->host) ? LAYOUT_ANY : LAYOUT_ONE;
		struct port_place place = {
			.set = which == LAYOUT_ANY ? l->ports : l->hosts,
			.elem = {.key = arrival(p), .comment = m->owner},
			.m = p,
			.claim = true,
		};

		if (p->yielded)
			continue;
		if (*record_when(m, p))
			place.set =
				layout_map_name(l->family, which, record_when(m, p), place.name);
		nft_key_ip(&place.elem.data, &p->addr);
		nft_key_port(&place.elem.data, p->port);
		ret = fn(&place, arg);
	}
	return ret;
}

/* Of the old form; the claims are without conditions then. */
static int each_gate(const struct port_record *m, place_fn *fn, void *arg)
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

		if (p->yielded || !m->gates[l - layouts])
			continue;
		layout_gate_name(m->hash, place.gate);
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
	const struct port_record *m, const struct port_mapping *p, place_fn *fn, void *arg)
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
		place.set = layout_masq_name(&m->from[i], place.name);
		nft_key_ip(&place.elem.key, &net);
		nft_key_ip(&place.elem.key, &p->addr);
		nft_key_proto(&place.elem.key, p->proto);
		nft_key_port(&place.elem.key, p->port);
		ret = fn(&place, arg);
	}
	return ret;
}

/* Several host ports may lead to one container port, which is masqueraded once. */
static int each_masq(const struct port_record *m, place_fn *fn, void *arg)
{
	autofree const struct port_mapping **list = calloc(m->len + 1, sizeof(*list));
	size_t len = 0;
	int ret = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < m->len; i++)
		if (!m->list[i].yielded)
			list[len++] = &m->list[i];
	if (len)
		qsort(list, len, sizeof(*list), by_target);
	for (size_t i = 0; i < len && !ret; i++)
		if (!i || by_target(&list[i - 1], &list[i]))
			ret = each_source(m, list[i], fn, arg);
	return ret;
}

int layout_each(const struct port_record *m, place_fn *fn, void *arg)
{
	int ret = each_claim(m, fn, arg);

	if (!ret && (m->gates[0] || m->gates[1]))
		ret = each_gate(m, fn, arg);
	if (!ret && m->from_len)
		ret = each_masq(m, fn, arg);
	return ret;
}
