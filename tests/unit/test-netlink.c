/* Netlink: what the builder writes can be read back, and what the nf_tables code encodes is what
 * the nft tool prints, can load again, and what our own reading finds. The second half needs root:
 * it works in a network namespace of its own. */
#include "base/cleanup.h"
#include "netlink/nft.h"
#include "netlink/nftmap.h"
#include "netlink/nl.h"

#include "check.h"

#include <errno.h>
#include <limits.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* In the order one reads it: what is expected, what there is. */
#define SAME(expected, got) CHECK_STR(got, expected)

static struct prefix prefix(const char *text)
{
	struct prefix p = {0};

	CHECK(prefix_parse(text, &p));
	return p;
}

/* ---- the builder ---- */

static void test_builder(void)
{
	const struct nlattr *a[4], *inner[4];
	struct ifinfomsg *ifi;
	autoreq r = {0};
	char big[3000];
	size_t nest;

	memset(big, 'x', sizeof(big));
	ifi = nl_msg(&r, RTM_NEWLINK, NLM_F_ACK, sizeof(*ifi));
	ifi->ifi_index = 7;
	nl_put_str(&r, 1, "eth0");
	nest = nl_nest(&r, 2);
	nl_put_u16(&r, 1, 0x1234);
	nl_put_be32(&r, 2, 0x01020304);
	nl_put(&r, 3, NULL, 0);
	nl_nest_end(&r, nest);
	nl_put(&r, 3, big, sizeof(big)); /* moves the buffer */
	CHECK(!r.overflow);
	CHECK(r.msg->nlmsg_len == r.len);
	CHECK(r.msg->nlmsg_flags == (NLM_F_REQUEST | NLM_F_ACK));
	nl_parse(r.msg, sizeof(*ifi), a, 3);
	SAME("eth0", nl_str(a[1]));
	nl_parse_nested(a[2], inner, 3);
	CHECK(nl_u16(inner[1]) == 0x1234);
	CHECK(nl_be32(inner[2]) == 0x01020304);
	CHECK(inner[3] && nl_len(inner[3]) == 0);
	CHECK(nl_u32(inner[3]) == 0); /* too short reads as 0 */
	CHECK(nl_len(a[3]) == sizeof(big) && !memcmp(nl_data(a[3]), big, sizeof(big)));
	SAME("", nl_str(a[3])); /* not terminated */
	CHECK(!a[0]);
}

/* An attribute's length has 16 bits: more must be refused, not wrapped around. */
static void test_builder_limits(void)
{
	autofree char *big = calloc(1, 70000);
	autoreq r = {0};
	size_t nest;

	nl_msg(&r, RTM_NEWLINK, 0, sizeof(struct ifinfomsg));
	nl_put(&r, 1, big, 70000);
	CHECK(r.overflow);
	nl_req_free(&r);
	nl_msg(&r, RTM_NEWLINK, 0, sizeof(struct ifinfomsg));
	nest = nl_nest(&r, 1);
	nl_put(&r, 1, big, 40000);
	nl_put(&r, 1, big, 40000);
	nl_nest_end(&r, nest);
	CHECK(r.overflow);
}

/* ---- rules as text ---- */

static const struct nft_table inet = {NFPROTO_INET, "t"};

static void built(struct nft *n, int line, const char *expected)
{
	char text[NFT_RULE_TEXT];

	nft_rule_end(n);
	CHECK(nft_built_text(n, text));
	check_str(text, expected, "the encoding", __FILE__, line);
}

/* Against what `nft --debug=netlink` shows for the same rule. */
static void test_encoding(void)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	struct prefix p;
	autonft *n = NULL;
	autoerr e = {0};

	if (nft_open(&n, &e))
		return;
	nft_begin(n, 0);
	nft_rule_begin(n, &inet, "c", NFT_APPEND, "comment");
	p = prefix("10.1.2.3/32");
	nft_match_addr(n, NFT_SRC, &p, false);
	p = prefix("10.1.2.3/24");
	nft_match_addr(n, NFT_DST, &p, true);
	nft_x_masq(n, 0);
	built(n, __LINE__,
		"[meta 15 r0 -][cmp r0 0 0x02][payload r0 1 12 4 -][cmp r0 0 0x0a010203]"
		"[payload r0 1 16 3 -][cmp r0 1 0x0a0102][masq 0 -]");
	nft_rule_begin(n, &inet, "c", NFT_APPEND, NULL);
	p = prefix("fd00::ffff/61");
	nft_match_addr(n, NFT_DST, &p, false);
	nft_x_verdict(n, NFT_GOTO, "other");
	built(n, __LINE__,
		"[meta 15 r0 -][cmp r0 0 0x0a][payload r0 1 24 16 -]"
		"[bitwise r0 r0 16 0 0xfffffffffffffff80000000000000000"
		" 0x00000000000000000000000000000000]"
		"[cmp r0 0 0xfd000000000000000000000000000000][immediate v -4 other]");
	nft_rule_begin(n, &(struct nft_table){NFPROTO_BRIDGE, "b"}, "c", NFT_APPEND, NULL);
	nft_match_ether(n, NFT_SRC, mac, false);
	nft_x_verdict(n, NFT_RETURN, NULL);
	built(n, __LINE__, "[payload r0 0 6 6 -][cmp r0 0 0x020000000001][immediate v -5 ]");
}

/* ---- with the kernel ---- */

/* Runs the nft tool; its output, or "" when it failed. */
static char *nft_tool(const char *args)
{
	char cmd[200], *out = calloc(1, 1 << 20);
	size_t len;
	FILE *f;

	snprintf(cmd, sizeof(cmd), "nft %s 2>&1", args);
	f = popen(cmd, "r");
	len = f ? fread(out, 1, (1 << 20) - 1, f) : 0;
	out[len] = '\0';
	CHECK(f && pclose(f) == 0);
	return out;
}

static void add_objects(struct nft *n)
{
	struct nft_elem el = {.comment = "web"};

	nft_table_add(n, &inet, "of the test");
	nft_set_add(n, &inet,
		&(struct nft_set){.name = "maps",
			.key = {NFT_FIELD_IPV4, NFT_FIELD_PROTO, NFT_FIELD_PORT},
			.data = {NFT_FIELD_IPV4, NFT_FIELD_PORT},
			.comment = "by address"});
	nft_set_add(n, &inet,
		&(struct nft_set){.name = "wild",
			.key = {NFT_FIELD_PROTO, NFT_FIELD_PORT},
			.data = {NFT_FIELD_IPV6, NFT_FIELD_PORT}});
	nft_set_add(n, &inet,
		&(struct nft_set){.name = "chains",
			.key = {NFT_FIELD_PROTO, NFT_FIELD_PORT},
			.data = {NFT_FIELD_VERDICT}});
	nft_set_add(n, &inet,
		&(struct nft_set){.name = "pairs",
			.key = {NFT_FIELD_IPV4, NFT_FIELD_IPV4},
			.flags = NFT_SET_INTERVAL});
	nft_set_add(n, &inet, &(struct nft_set){.name = "ports", .key = {NFT_FIELD_PORT}});
	nft_set_add(n, &inet, &(struct nft_set){.name = "names", .key = {NFT_FIELD_IFNAME}});
	nft_chain_add(n, &inet, &(struct nft_chain){.name = "sub", .comment = "a chain"});
	nft_chain_add(n, &inet,
		&(struct nft_chain){
			.name = "pre", .type = "nat", .hook = NF_INET_PRE_ROUTING, .prio = -100});
	nft_chain_add(n, &inet,
		&(struct nft_chain){.name = "through",
			.type = "filter",
			.hook = NF_INET_FORWARD,
			.prio = 5,
			.drop = true});

	nft_key_ip(&el.key, &(struct ip){AF_INET, {192, 0, 2, 1}});
	nft_key_proto(&el.key, IPPROTO_TCP);
	nft_key_port(&el.key, 8080);
	nft_key_ip(&el.data, &(struct ip){AF_INET, {10, 0, 0, 2}});
	nft_key_port(&el.data, 80);
	nft_elems_add(n, &inet, "maps", &el, 1);
	el = (struct nft_elem){.has_verdict = true, .verdict = NFT_GOTO, .chain = "sub"};
	nft_key_proto(&el.key, IPPROTO_UDP);
	nft_key_port(&el.key, 53);
	nft_elems_add(n, &inet, "chains", &el, 1);
	el = (struct nft_elem){.comment = "hairpin"};
	nft_key_ip(&el.key, &(struct ip){AF_INET, {10, 0, 0, 0}});
	nft_key_ip(&el.key, &(struct ip){AF_INET, {10, 0, 0, 2}});
	nft_key_ip(&el.end, &(struct ip){AF_INET, {10, 0, 0, 255}});
	nft_key_ip(&el.end, &(struct ip){AF_INET, {10, 0, 0, 2}});
	nft_elems_add(n, &inet, "pairs", &el, 1);
	el = (struct nft_elem){0};
	nft_key_port(&el.key, 443);
	nft_elems_add(n, &inet, "ports", &el, 1);
	el = (struct nft_elem){0};
	nft_key_ifname(&el.key, "cni0");
	nft_elems_add(n, &inet, "names", &el, 1);
}

static void add_nat_rules(struct nft *n)
{
	struct prefix p = prefix("192.0.2.7/32");
	unsigned slot = 0;

	nft_rule_begin(n, &inet, "pre", NFT_APPEND, "by address");
	nft_match_fib_type(n, NFT_DST, RTN_LOCAL, false);
	nft_load_addr(n, NFT_DST, AF_INET, &slot);
	nft_load_proto(n, &slot);
	nft_load_port(n, NFT_DST, &slot);
	nft_dnat_map(n, AF_INET, "maps", true);
	nft_rule_end(n);
	slot = 0;
	nft_rule_begin(n, &inet, "pre", NFT_APPEND, NULL);
	nft_match_fib_type(n, NFT_DST, RTN_LOCAL, false);
	nft_load_proto(n, &slot);
	nft_load_port(n, NFT_DST, &slot);
	nft_dnat_map(n, AF_INET6, "wild", true);
	nft_rule_end(n);
	slot = 0;
	nft_rule_begin(n, &inet, "pre", NFT_APPEND, NULL);
	nft_load_proto(n, &slot);
	nft_load_port(n, NFT_DST, &slot);
	nft_vmap(n, "chains");
	nft_rule_end(n);
	nft_rule_begin(n, &inet, "pre", NFT_APPEND, NULL);
	nft_match_addr(n, NFT_DST, &p, false);
	nft_match_port(n, IPPROTO_UDP, NFT_DST, 1000, 2000, false);
	nft_x_verdict(n, NFT_RETURN, NULL);
	nft_rule_end(n);
	p = prefix("fd00::1/128");
	nft_rule_begin(n, &inet, "pre", NFT_INSERT, "first");
	nft_match_addr(n, NFT_DST, &p, false);
	nft_match_port(n, IPPROTO_SCTP, NFT_DST, 80, 0, false);
	nft_x_verdict(n, NFT_JUMP, "sub");
	nft_rule_end(n);
}

static void add_filter_rules(struct nft *n)
{
	struct prefix p;
	unsigned slot = 0;

	nft_rule_begin(n, &inet, "through", NFT_APPEND, NULL);
	nft_load_addr(n, NFT_SRC, AF_INET, &slot);
	nft_load_addr(n, NFT_DST, AF_INET, &slot);
	nft_match_set(n, "pairs", false);
	nft_x_verdict(n, NF_ACCEPT, NULL);
	nft_rule_end(n);
	slot = 0;
	nft_rule_begin(n, &inet, "through", NFT_APPEND, NULL);
	nft_load_iifname(n, &slot);
	nft_match_set(n, "names", true);
	nft_x_verdict(n, NF_DROP, NULL);
	nft_rule_end(n);
	nft_rule_begin(n, &inet, "through", NFT_APPEND, NULL);
	nft_match_iifname(n, "eth*", false);
	nft_match_oifname(n, "cni0", true);
	nft_match_ct_status(n, IPS_DST_NAT);
	nft_x_verdict(n, NFT_JUMP, "sub");
	nft_rule_end(n);
	nft_rule_begin(n, &inet, "through", NFT_APPEND, NULL);
	nft_match_proto(n, IPPROTO_TCP);
	nft_x_verdict(n, NFT_RETURN, NULL);
	nft_rule_end(n);
	nft_rule_begin(n, &inet, "through", NFT_APPEND, NULL);
	p = prefix("10.128.0.0/9");
	nft_match_addr(n, NFT_SRC, &p, false);
	p = prefix("10.4.0.0/16");
	nft_match_addr(n, NFT_DST, &p, true);
	nft_match_port(n, IPPROTO_UDP, NFT_SRC, 53, 60, true);
	nft_x_verdict(n, NF_ACCEPT, NULL);
	nft_rule_end(n);
}

static const char ruleset[] =
	"table inet t {\n"
	"\tcomment \"of the test\"\n"
	"\tmap maps {\n"
	"\t\ttype ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service\n"
	"\t\tcomment \"by address\"\n"
	"\t\telements = { 192.0.2.1 . tcp . 8080 comment \"web\" : 10.0.0.2 . 80 }\n"
	"\t}\n\n"
	"\tmap wild {\n"
	"\t\ttype inet_proto . inet_service : ipv6_addr . inet_service\n"
	"\t}\n\n"
	"\tmap chains {\n"
	"\t\ttype inet_proto . inet_service : verdict\n"
	"\t\telements = { udp . 53 : goto sub }\n"
	"\t}\n\n"
	"\tset pairs {\n"
	"\t\ttype ipv4_addr . ipv4_addr\n"
	"\t\tflags interval\n"
	"\t\telements = { 10.0.0.0/24 . 10.0.0.2 comment \"hairpin\" }\n"
	"\t}\n\n"
	"\tset ports {\n"
	"\t\ttype inet_service\n"
	"\t\telements = { 443 }\n"
	"\t}\n\n"
	"\tset names {\n"
	"\t\ttype ifname\n"
	"\t\telements = { \"cni0\" }\n"
	"\t}\n\n"
	"\tchain sub {\n"
	"\t\tcomment \"a chain\"\n"
	"\t}\n\n"
	"\tchain pre {\n"
	"\t\ttype nat hook prerouting priority dstnat; policy accept;\n"
	"\t\tip6 daddr fd00::1 sctp dport 80 jump sub comment \"first\"\n"
	"\t\tfib daddr type local dnat ip to ip daddr . meta l4proto . th dport map @maps "
	"comment \"by address\"\n"
	"\t\tfib daddr type local dnat ip6 to meta l4proto . th dport map @wild\n"
	"\t\tmeta l4proto . th dport vmap @chains\n"
	"\t\tip daddr 192.0.2.7 udp dport 1000-2000 return\n"
	"\t}\n\n"
	"\tchain through {\n"
	"\t\ttype filter hook forward priority filter + 5; policy drop;\n"
	"\t\tip saddr . ip daddr @pairs accept\n"
	"\t\tiifname != @names drop\n"
	"\t\tiifname \"eth*\" oifname != \"cni0\" ct status dnat jump sub\n"
	"\t\tmeta l4proto tcp return\n"
	"\t\tip saddr 10.128.0.0/9 ip daddr != 10.4.0.0/16 udp sport != 53-60 accept\n"
	"\t}\n"
	"}\n";

static int count_rules(const struct nft_rule_info *r, void *arg)
{
	char text[NFT_RULE_TEXT];

	CHECK(r->handle && nft_rule_text(r, text));
	(*(int *)arg)++;
	return 0;
}

static int concat_texts(const struct nft_rule_info *r, void *arg)
{
	char text[NFT_RULE_TEXT];

	CHECK(nft_rule_text(r, text));
	strcat(strcat(arg, text), "\n");
	return 0;
}

/* What is listed, loaded again from the list, and listed again is the same, for the eyes of the
 * tool and for ours. */
/* From 1.1 on nft writes two comparisons of one register as one range, which means the same. */
static void spell_out_ranges(char *text, size_t size)
{
	char reg[16], low[64], high[64], pair[192], rest[8192];
	char *at = text, *end;

	while ((at = strstr(at, "[range ")) && (end = strchr(at, ']'))) {
		if (sscanf(at, "[range %15s 0 %63s %63[^]]]", reg, low, high) != 3)
			return;
		snprintf(rest, sizeof(rest), "%s", end + 1);
		snprintf(pair, sizeof(pair), "[cmp %s 5 %s][cmp %s 3 %s]", reg, low, reg, high);
		snprintf(at, size - (size_t)(at - text), "%s%s", pair, rest);
		at += strlen(pair);
	}
}

static void test_round_trip(struct nft *n)
{
	autofree char *first = NULL, *again = NULL, *loaded = NULL, *flushed = NULL;
	char path[] = "/tmp/nft-XXXXXX", cmd[64], before[8192] = "", after[8192] = "";
	FILE *f;
	int fd;

	first = nft_tool("list ruleset");
	SAME(ruleset, first);
	CHECK(nft_rules(n, &inet, "pre", concat_texts, NULL, before) == 0);
	CHECK(nft_rules(n, &inet, "through", concat_texts, NULL, before) == 0);
	fd = mkstemp(path);
	f = fdopen(fd, "w");
	CHECK(f && fputs(first, f) >= 0 && fclose(f) == 0);
	flushed = nft_tool("flush ruleset");
	snprintf(cmd, sizeof(cmd), "-f %s", path);
	loaded = nft_tool(cmd);
	SAME("", loaded);
	again = nft_tool("list ruleset");
	SAME(first, again);
	CHECK(nft_rules(n, &inet, "pre", concat_texts, NULL, after) == 0);
	CHECK(nft_rules(n, &inet, "through", concat_texts, NULL, after) == 0);
	spell_out_ranges(after, sizeof(after));
	SAME(before, after);
	unlink(path);
}

static int take_chain(const struct nft_chain_info *c, void *arg)
{
	*(struct nft_chain_info *)arg = *c;
	((struct nft_chain_info *)arg)->name = NULL;
	if (!strcmp(c->name, "sub"))
		SAME("a chain", c->comment);
	return 0;
}

static int count_chains(const struct nft_chain_info *c, void *arg)
{
	SAME("t", c->table);
	(*(int *)arg)++;
	return 0;
}

static int take_elem(const struct nft_elem_info *el, void *arg)
{
	SAME("web", el->comment);
	CHECK(el->key_len == 12 && el->data_len == 8);
	CHECK(el->data && el->data[3] == 2 && el->data[5] == 80);
	(*(int *)arg)++;
	return 0;
}

static int take_verdict(const struct nft_elem_info *el, void *arg)
{
	CHECK(el->has_verdict && el->verdict == NFT_GOTO);
	SAME("sub", el->chain);
	(*(int *)arg)++;
	return 0;
}

static void test_reading(struct nft *n)
{
	const struct nft_table none = {NFPROTO_INET, "none"};
	struct nft_chain_info info = {0};
	struct nft_key key = {0}, other = {0};
	int count = 0;

	CHECK(nft_table_get(n, &inet) == 0);
	CHECK(nft_table_get(n, &none) == -ENOENT);
	CHECK(nft_chain_get(n, &inet, "pre", take_chain, &info) == 0);
	CHECK(info.base && info.prio == -100 && info.hook == NF_INET_PRE_ROUTING);
	CHECK(nft_chain_get(n, &inet, "sub", take_chain, &info) == 0);
	CHECK(!info.base && info.use == 3); /* two rules and an element */
	CHECK(nft_chain_get(n, &inet, "gone", NULL, NULL) == -ENOENT);
	CHECK(nft_chains(n, &inet, count_chains, NULL, &count) == 0 && count == 3);
	count = 0;
	CHECK(nft_set_get(n, &inet, "maps") == 0);
	CHECK(nft_set_get(n, &inet, "gone") == -ENOENT);
	count = 0;
	CHECK(nft_rules(n, &inet, "pre", count_rules, NULL, &count) == 0 && count == 5);
	CHECK(nft_rules(n, &inet, "gone", count_rules, NULL, &count) == 0 && count == 5);
	nft_key_ip(&key, &(struct ip){AF_INET, {192, 0, 2, 1}});
	nft_key_proto(&key, IPPROTO_TCP);
	nft_key_port(&key, 8080);
	count = 0;
	CHECK(nft_elem_get(n, &inet, "maps", &key, take_elem, &count) == 0 && count == 1);
	CHECK(nft_elems(n, &inet, "maps", take_elem, NULL, &count) == 0 && count == 2);
	CHECK(nft_elems(n, &inet, "chains", take_verdict, NULL, &count) == 0 && count == 3);
	CHECK(nft_elems(n, &inet, "gone", take_verdict, NULL, &count) == -ENOENT);
	nft_key_ip(&other, &(struct ip){AF_INET, {192, 0, 2, 1}});
	nft_key_proto(&other, IPPROTO_TCP);
	nft_key_port(&other, 8081);
	CHECK(nft_elem_get(n, &inet, "maps", &other, NULL, NULL) == -ENOENT);
}

/* All or nothing, and the culprit is named. */
static void test_failures(struct nft *n)
{
	char name[300];
	struct nft_failure f;
	struct nft_elem el = {0};
	uint32_t genid, now;

	nft_begin(n, 0);
	nft_chain_add(n, &inet, &(struct nft_chain){.name = "new"});
	CHECK(nft_chain_del(n, &inet, "gone") == 1);
	CHECK(nft_commit(n, &f) == -ENOENT && f.index == 1);
	CHECK(nft_chain_get(n, &inet, "new", NULL, NULL) == -ENOENT);

	nft_begin(n, 0);
	nft_chain_del(n, &inet, "sub");
	CHECK(nft_commit(n, &f) == -EBUSY && f.index == 0);

	nft_begin(n, 0);
	nft_chain_create(n, &inet, &(struct nft_chain){.name = "sub"});
	CHECK(nft_commit(n, &f) == -EEXIST && nft_raced(-EEXIST));

	/* The same key with other data. */
	nft_key_ip(&el.key, &(struct ip){AF_INET, {192, 0, 2, 1}});
	nft_key_proto(&el.key, IPPROTO_TCP);
	nft_key_port(&el.key, 8080);
	nft_key_ip(&el.data, &(struct ip){AF_INET, {10, 0, 0, 3}});
	nft_key_port(&el.data, 80);
	nft_begin(n, 0);
	nft_elems_add(n, &inet, "maps", &el, 1);
	CHECK(nft_commit(n, &f) == -EEXIST && f.index == 0);

	CHECK(nft_genid(n, &genid) == 0 && genid);
	nft_begin(n, genid);
	nft_chain_add(n, &inet, &(struct nft_chain){.name = "one"});
	CHECK(nft_commit(n, &f) == 0 && f.index == -1);
	CHECK(nft_genid(n, &now) == 0 && now != genid);
	nft_begin(n, genid);
	nft_chain_add(n, &inet, &(struct nft_chain){.name = "two"});
	CHECK(nft_commit(n, &f) == -ERESTART && f.index == -1);
	nft_begin(n, 0);
	nft_chain_del(n, &inet, "one");
	CHECK(nft_commit(n, NULL) == 0);
	CHECK(nft_commit(n, NULL) == 0); /* nothing to do */

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	nft_begin(n, 0);
	nft_chain_add(n, &inet, &(struct nft_chain){.name = name});
	CHECK(nft_commit(n, &f) == -ENAMETOOLONG);
}

/* Far more than a socket buffer holds, in one transaction; then far more refusals than fit. */
static void test_large(struct nft *n)
{
	enum { N = 20000 };
	autofree struct nft_elem *list = calloc(N, sizeof(*list));
	char comment[200];
	struct nft_failure f;
	int count = 0;

	memset(comment, 'c', sizeof(comment) - 1);
	comment[sizeof(comment) - 1] = '\0';
	CHECK(list);
	for (int i = 0; list && i < N; i++) {
		nft_key_proto(&list[i].key, IPPROTO_TCP);
		nft_key_port(&list[i].key, (uint16_t)(i + 1));
		nft_key_ip(&list[i].data, &(struct ip){AF_INET6, {0xfd}});
		nft_key_port(&list[i].data, 80);
		list[i].comment = comment;
	}
	nft_begin(n, 0);
	nft_elems_add(n, &inet, "wild", list, N);
	CHECK(nft_commit(n, &f) == 0);
	nft_begin(n, 0);
	for (int i = 0; list && i < N; i++)
		nft_elem_create(n, &inet, "wild", &list[i]);
	CHECK(nft_commit(n, &f) == -EEXIST);
	CHECK(f.index == 0);
	CHECK(nft_rules(n, &inet, "pre", count_rules, NULL, &count) == 0 && count == 5);
	/* Twice: the rest of such a listing is not read, and must not be in the way. */
	CHECK(nft_set_is_empty(n, &inet, "wild") == 0);
	CHECK(nft_set_is_empty(n, &inet, "wild") == 0);
	nft_begin(n, 0);
	nft_elems_del(n, &inet, "wild", list, N);
	CHECK(nft_commit(n, &f) == 0);
	CHECK(nft_set_is_empty(n, &inet, "wild") == 1);
	CHECK(nft_set_is_empty(n, &inet, "none") == -ENOENT);
	nft_begin(n, 0);
	for (int i = 0; i < 2000; i++) {
		nft_rule_begin(n, &inet, "sub", NFT_APPEND, comment);
		nft_match_proto(n, (uint8_t)i);
		nft_rule_end(n);
	}
	CHECK(nft_commit(n, &f) == 0);
	count = 0;
	CHECK(nft_rules(n, &inet, "sub", count_rules, NULL, &count) == 0 && count == 2000);
}

static void with_kernel(void)
{
	autonft *n = NULL;
	autoerr e = {0};

	if (unshare(CLONE_NEWNET) || nft_open(&n, &e)) {
		puts("skipped what needs a network namespace");
		return;
	}
	nft_begin(n, 0);
	add_objects(n);
	add_nat_rules(n);
	add_filter_rules(n);
	CHECK(nft_commit(n, NULL) == 0);
	test_reading(n);
	test_failures(n);
	if (system("nft --version >/dev/null 2>&1") == 0)
		test_round_trip(n);
	test_large(n);
}

int main(void)
{
	test_builder();
	test_builder_limits();
	test_encoding();
	with_kernel();
	return check_done();
}
