/* Reading: lists, single objects, and rules as comparable text. */

#include "base/cleanup.h"
#include "netlink/nftpriv.h"

#include <errno.h>
#include <limits.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HDR sizeof(struct nfgenmsg)

/* The comment in userdata, of that TLV type; "" when there is none. */
static const char *get_comment(const struct nlattr *udata, uint8_t type)
{
	const uint8_t *at = nl_data(udata);
	size_t left = nl_len(udata);

	while (at && left >= 2) {
		size_t len = at[1];

		if (len > left - 2)
			break;
		if (at[0] == type && len && at[2 + len - 1] == '\0')
			return (const char *)at + 2;
		at += 2 + len;
		left -= 2 + len;
	}
	return "";
}

static bool is_message(const struct nlmsghdr *msg, uint16_t type)
{
	return msg->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | type);
}

static uint8_t family_of(const struct nlmsghdr *msg)
{
	const struct nfgenmsg *g = (const void *)((const char *)msg + NLMSG_HDRLEN);

	return msg->nlmsg_len >= NLMSG_HDRLEN + HDR ? g->nfgen_family : 0;
}

/* ---- single numbers ---- */

static int take_genid(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[NFTA_GEN_MAX + 1];

	if (is_message(msg, NFT_MSG_NEWGEN)) {
		nl_parse(msg, HDR, a, NFTA_GEN_MAX);
		*(uint32_t *)arg = nl_be32(a[NFTA_GEN_ID]);
	}
	return 0;
}

int nft_genid(struct nft *n, uint32_t *genid)
{
	autoreq r = {0};
	int ret;

	*genid = 0;
	nft_question(&r, NFT_MSG_GETGEN, 0, AF_UNSPEC);
	ret = nl_query(n->nl, &r, take_genid, NULL, genid);
	return ret ? ret : *genid ? 0 : -EOPNOTSUPP;
}

static int take_table(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[NFTA_TABLE_MAX + 1];

	if (!is_message(msg, NFT_MSG_NEWTABLE) || !arg)
		return 0;
	nl_parse(msg, HDR, a, NFTA_TABLE_MAX);
	snprintf(arg, NFT_COMMENT_SIZE, "%s", get_comment(a[NFTA_TABLE_USERDATA], UDATA_COMMENT));
	return 0;
}

static int get_table(struct nft *n, const struct nft_table *t, char *comment)
{
	autoreq r = {0};

	nft_question(&r, NFT_MSG_GETTABLE, 0, t->family);
	nl_put_str(&r, NFTA_TABLE_NAME, t->name);
	return nl_query(n->nl, &r, take_table, NULL, comment);
}

int nft_table_get(struct nft *n, const struct nft_table *t)
{
	return get_table(n, t, NULL);
}

int nft_table_comment(struct nft *n, const struct nft_table *t, char out[static NFT_COMMENT_SIZE])
{
	out[0] = '\0';
	return get_table(n, t, out);
}

/* ---- rules ---- */

const struct nlattr *nft_expr_next(const struct nft_rule_info *r, const struct nlattr *at,
	const char **name, const struct nlattr **data)
{
	const struct nlattr *a[NFTA_EXPR_MAX + 1];

	if (!r->exprs)
		return NULL;
	at = at ? nl_next(r->exprs, at) : nl_first(r->exprs);
	if (!at)
		return NULL;
	nl_parse_nested(at, a, NFTA_EXPR_MAX);
	*name = nl_str(a[NFTA_EXPR_NAME]);
	*data = a[NFTA_EXPR_DATA];
	return at;
}

/* The verdict in a data attribute. */
static bool verdict_of(const struct nlattr *data, int *code, const char **chain)
{
	const struct nlattr *d[NFTA_DATA_MAX + 1], *v[NFTA_VERDICT_MAX + 1];

	nl_parse_nested(data, d, NFTA_DATA_MAX);
	if (!d[NFTA_DATA_VERDICT])
		return false;
	nl_parse_nested(d[NFTA_DATA_VERDICT], v, NFTA_VERDICT_MAX);
	*code = (int)nl_be32(v[NFTA_VERDICT_CODE]);
	*chain = nl_str(v[NFTA_VERDICT_CHAIN]);
	return true;
}

void nft_read_rule(const struct nlmsghdr *msg, struct nft_rule_info *out)
{
	const struct nlattr *a[NFTA_RULE_MAX + 1], *data, *x[NFTA_IMMEDIATE_MAX + 1];
	const char *name;

	nl_parse(msg, HDR, a, NFTA_RULE_MAX);
	*out = (struct nft_rule_info){
		.handle = nl_be64(a[NFTA_RULE_HANDLE]),
		.table = nl_str(a[NFTA_RULE_TABLE]),
		.chain = nl_str(a[NFTA_RULE_CHAIN]),
		.comment = get_comment(a[NFTA_RULE_USERDATA], UDATA_COMMENT),
		.exprs = a[NFTA_RULE_EXPRESSIONS],
		.verdict = INT_MAX,
		.jump = "",
	};
	for (const struct nlattr *at = NULL; (at = nft_expr_next(out, at, &name, &data));) {
		if (strcmp(name, "immediate") != 0)
			continue;
		nl_parse_nested(data, x, NFTA_IMMEDIATE_MAX);
		verdict_of(x[NFTA_IMMEDIATE_DATA], &out->verdict, &out->jump);
	}
}

struct rule_list {
	const struct nft_table *t;
	const char *chain;
	nft_rule_fn *fn;
	nft_reset_fn *reset;
	void *arg;
};

static int take_rule(const struct nlmsghdr *msg, void *arg)
{
	const struct rule_list *l = arg;
	struct nft_rule_info info;

	if (!is_message(msg, NFT_MSG_NEWRULE))
		return 0;
	nft_read_rule(msg, &info);
	/* Old kernels do not filter. */
	if (family_of(msg) != l->t->family || strcmp(info.table, l->t->name) != 0 ||
		strcmp(info.chain, l->chain) != 0)
		return 0;
	return l->fn(&info, l->arg);
}

static void reset_rules(void *arg)
{
	const struct rule_list *l = arg;

	if (l->reset)
		l->reset(l->arg);
}

int nft_rules(struct nft *n, const struct nft_table *t, const char *chain, nft_rule_fn *fn,
	nft_reset_fn *reset, void *arg)
{
	struct rule_list l = {t, chain, fn, reset, arg};
	autoreq r = {0};

	nft_question(&r, NFT_MSG_GETRULE, NLM_F_DUMP, t->family);
	nl_put_str(&r, NFTA_RULE_TABLE, t->name);
	nl_put_str(&r, NFTA_RULE_CHAIN, chain);
	return nl_query(n->nl, &r, take_rule, reset_rules, &l);
}

/* Whether the attribute of an expression holds these bytes. */
static bool has_bytes(const struct nlattr *data, uint16_t attr, const struct ip *ip)
{
	const struct nlattr *x[8], *d[NFTA_DATA_MAX + 1];

	nl_parse_nested(data, x, 7);
	if (!x[attr])
		return false;
	nl_parse_nested(x[attr], d, NFTA_DATA_MAX);
	return nl_len(d[NFTA_DATA_VALUE]) == ip_size(ip) &&
	       !memcmp(nl_data(d[NFTA_DATA_VALUE]), ip->bytes, ip_size(ip));
}

bool nft_rule_mentions(const struct nft_rule_info *r, const struct ip *ip)
{
	const struct nlattr *at = NULL, *data;
	const char *name;

	while ((at = nft_expr_next(r, at, &name, &data)))
		if ((!strcmp(name, "immediate") && has_bytes(data, NFTA_IMMEDIATE_DATA, ip)) ||
			(!strcmp(name, "cmp") && has_bytes(data, NFTA_CMP_DATA, ip)))
			return true;
	return false;
}

bool nft_rule_xt_comment(const struct nft_rule_info *r, char out[static NFT_XT_COMMENT])
{
	const struct nlattr *data, *a[NFTA_MATCH_MAX + 1], *at = NULL;
	const char *name;

	while ((at = nft_expr_next(r, at, &name, &data))) {
		if (strcmp(name, "match") != 0)
			continue;
		nl_parse_nested(data, a, NFTA_MATCH_MAX);
		if (strcmp(nl_str(a[NFTA_MATCH_NAME]), "comment") != 0)
			continue;
		/* struct xt_comment_info: not terminated if it is full. */
		snprintf(out, NFT_XT_COMMENT, "%.*s", (int)nl_len(a[NFTA_MATCH_INFO]),
			a[NFTA_MATCH_INFO] ? (const char *)nl_data(a[NFTA_MATCH_INFO]) : "");
		return true;
	}
	return false;
}

/* ---- rules as text ---- */

enum kind { END, REG, NUM, BYTE, TEXT, DATA };

/* What distinguishes one expression from another of that name, in a fixed order. Left out is what
 * the kernel adds by itself. */
static const struct {
	const char *name;
	struct {
		uint8_t attr;
		uint8_t kind;
	} parts[6];
} shapes[] = {
	{"payload", {{NFTA_PAYLOAD_DREG, REG}, {NFTA_PAYLOAD_BASE, NUM}, {NFTA_PAYLOAD_OFFSET, NUM},
			    {NFTA_PAYLOAD_LEN, NUM}, {NFTA_PAYLOAD_SREG, REG}}},
	{"meta", {{NFTA_META_KEY, NUM}, {NFTA_META_DREG, REG}, {NFTA_META_SREG, REG}}},
	{"cmp", {{NFTA_CMP_SREG, REG}, {NFTA_CMP_OP, NUM}, {NFTA_CMP_DATA, DATA}}},
	{"range", {{NFTA_RANGE_SREG, REG}, {NFTA_RANGE_OP, NUM}, {NFTA_RANGE_FROM_DATA, DATA},
			  {NFTA_RANGE_TO_DATA, DATA}}},
	{"bitwise", {{NFTA_BITWISE_SREG, REG}, {NFTA_BITWISE_DREG, REG}, {NFTA_BITWISE_LEN, NUM},
			    {NFTA_BITWISE_OP, NUM}, {NFTA_BITWISE_MASK, DATA},
			    {NFTA_BITWISE_XOR, DATA}}},
	{"ct", {{NFTA_CT_KEY, NUM}, {NFTA_CT_DREG, REG}, {NFTA_CT_SREG, REG},
		       {NFTA_CT_DIRECTION, BYTE}}},
	{"fib", {{NFTA_FIB_DREG, REG}, {NFTA_FIB_RESULT, NUM}, {NFTA_FIB_FLAGS, NUM}}},
	{"lookup", {{NFTA_LOOKUP_SET, TEXT}, {NFTA_LOOKUP_SREG, REG}, {NFTA_LOOKUP_DREG, REG},
			   {NFTA_LOOKUP_FLAGS, NUM}}},
	{"immediate", {{NFTA_IMMEDIATE_DREG, REG}, {NFTA_IMMEDIATE_DATA, DATA}}},
	{"nat", {{NFTA_NAT_TYPE, NUM}, {NFTA_NAT_FAMILY, NUM}, {NFTA_NAT_REG_ADDR_MIN, REG},
			{NFTA_NAT_REG_PROTO_MIN, REG}}},
	{"masq", {{NFTA_MASQ_FLAGS, NUM}, {NFTA_MASQ_REG_PROTO_MIN, REG}}},
	{"notrack", {{0, END}}},
	{"counter", {{0, END}}},
};

struct text {
	char *out;
	size_t used;
	bool full;
};

static void __attribute__((format(printf, 2, 3))) say(struct text *t, const char *fmt, ...)
{
	size_t room = NFT_RULE_TEXT - t->used;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(t->out + t->used, room, fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= room)
		t->full = true;
	else
		t->used += (size_t)len;
}

/* Registers have two spellings: 1 to 4 of 16 bytes each, and 8 to 23 of 4 bytes. */
static void say_reg(struct text *t, const struct nlattr *a)
{
	uint32_t reg = nl_be32(a);

	if (!a)
		say(t, " -");
	else if (reg == NFT_REG_VERDICT)
		say(t, " v");
	else
		say(t, " r%u", reg < NFT_REG32_00 ? (reg - 1) * 4 : reg - NFT_REG32_00);
}

static void say_data(struct text *t, const struct nlattr *a)
{
	const struct nlattr *d[NFTA_DATA_MAX + 1];
	const uint8_t *bytes;
	const char *chain;
	int code;

	if (verdict_of(a, &code, &chain)) {
		say(t, " %d %s", code, chain);
		return;
	}
	nl_parse_nested(a, d, NFTA_DATA_MAX);
	bytes = nl_data(d[NFTA_DATA_VALUE]);
	say(t, " 0x");
	for (size_t i = 0; bytes && i < nl_len(d[NFTA_DATA_VALUE]); i++)
		say(t, "%02x", bytes[i]);
}

static void say_expr(struct text *t, const char *name, const struct nlattr *data)
{
	const struct nlattr *a[16];
	size_t i = 0;

	say(t, "[%s", name);
	while (i < array_len(shapes) && strcmp(shapes[i].name, name) != 0)
		i++;
	nl_parse_nested(data, a, array_len(a) - 1);
	for (size_t k = 0; i < array_len(shapes) && k < array_len(shapes[i].parts); k++) {
		const struct nlattr *part = a[shapes[i].parts[k].attr];

		switch (shapes[i].parts[k].kind) {
		case REG: say_reg(t, part); break;
		case NUM: say(t, " %u", nl_be32(part)); break;
		case BYTE: say(t, part ? " %u" : " -", nl_u8(part)); break;
		case TEXT: say(t, " %s", nl_str(part)); break;
		case DATA: say_data(t, part); break;
		default: break;
		}
	}
	say(t, "]");
}

bool nft_rule_text(const struct nft_rule_info *r, char out[static NFT_RULE_TEXT])
{
	struct text t = {.out = out};
	const struct nlattr *data;
	const char *name;

	out[0] = '\0';
	for (const struct nlattr *at = NULL; (at = nft_expr_next(r, at, &name, &data));)
		say_expr(&t, name, data);
	return !t.full;
}

/* ---- chains ---- */

struct chain_list {
	const struct nft_table *t;
	nft_chain_fn *fn;
	nft_reset_fn *reset;
	void *arg;
};

static int take_chain(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[NFTA_CHAIN_MAX + 1], *h[NFTA_HOOK_MAX + 1];
	const struct chain_list *l = arg;
	struct nft_chain_info info;

	if (!is_message(msg, NFT_MSG_NEWCHAIN) || family_of(msg) != l->t->family || !l->fn)
		return 0;
	nl_parse(msg, HDR, a, NFTA_CHAIN_MAX);
	nl_parse_nested(a[NFTA_CHAIN_HOOK], h, NFTA_HOOK_MAX);
	info = (struct nft_chain_info){
		.table = nl_str(a[NFTA_CHAIN_TABLE]),
		.name = nl_str(a[NFTA_CHAIN_NAME]),
		.handle = nl_be64(a[NFTA_CHAIN_HANDLE]),
		.comment = get_comment(a[NFTA_CHAIN_USERDATA], UDATA_COMMENT),
		.use = nl_be32(a[NFTA_CHAIN_USE]),
		.base = a[NFTA_CHAIN_HOOK],
		.type = nl_str(a[NFTA_CHAIN_TYPE]),
		.hook = nl_be32(h[NFTA_HOOK_HOOKNUM]),
		.prio = (int32_t)nl_be32(h[NFTA_HOOK_PRIORITY]),
	};
	return strcmp(info.table, l->t->name) != 0 ? 0 : l->fn(&info, l->arg);
}

static void reset_chains(void *arg)
{
	const struct chain_list *l = arg;

	if (l->reset)
		l->reset(l->arg);
}

int nft_chains(
	struct nft *n, const struct nft_table *t, nft_chain_fn *fn, nft_reset_fn *reset, void *arg)
{
	struct chain_list l = {t, fn, reset, arg};
	autoreq r = {0};

	nft_question(&r, NFT_MSG_GETCHAIN, NLM_F_DUMP, t->family);
	nl_put_str(&r, NFTA_CHAIN_TABLE, t->name);
	return nl_query(n->nl, &r, take_chain, reset_chains, &l);
}

int nft_chain_get(
	struct nft *n, const struct nft_table *t, const char *chain, nft_chain_fn *fn, void *arg)
{
	struct chain_list l = {t, fn, NULL, arg};
	autoreq r = {0};

	nft_question(&r, NFT_MSG_GETCHAIN, 0, t->family);
	nl_put_str(&r, NFTA_CHAIN_TABLE, t->name);
	nl_put_str(&r, NFTA_CHAIN_NAME, chain);
	return nl_query(n->nl, &r, take_chain, NULL, &l);
}

/* ---- sets ---- */

static int ignore(const struct nlmsghdr *msg, void *arg)
{
	(void)msg;
	(void)arg;
	return 0;
}

int nft_set_get(struct nft *n, const struct nft_table *t, const char *set)
{
	autoreq r = {0};

	nft_question(&r, NFT_MSG_GETSET, 0, t->family);
	nl_put_str(&r, NFTA_SET_TABLE, t->name);
	nl_put_str(&r, NFTA_SET_NAME, set);
	return nl_query(n->nl, &r, ignore, NULL, NULL);
}

/* ---- elements ---- */

struct elem_list {
	nft_elem_fn *fn;
	nft_reset_fn *reset;
	void *arg;
};

static const uint8_t *value_of(const struct nlattr *data, size_t *len)
{
	const struct nlattr *d[NFTA_DATA_MAX + 1];

	nl_parse_nested(data, d, NFTA_DATA_MAX);
	*len = nl_len(d[NFTA_DATA_VALUE]);
	return nl_data(d[NFTA_DATA_VALUE]);
}

static int take_elem(const struct nlattr *elem, const struct elem_list *l)
{
	const struct nlattr *a[NFTA_SET_ELEM_MAX + 1];
	struct nft_elem_info info = {.chain = ""};

	nl_parse_nested(elem, a, NFTA_SET_ELEM_MAX);
	info.key = value_of(a[NFTA_SET_ELEM_KEY], &info.key_len);
	info.end = value_of(a[NFTA_SET_ELEM_KEY_END], &info.end_len);
	info.has_verdict = verdict_of(a[NFTA_SET_ELEM_DATA], &info.verdict, &info.chain);
	if (!info.has_verdict)
		info.data = value_of(a[NFTA_SET_ELEM_DATA], &info.data_len);
	info.flags = nl_be32(a[NFTA_SET_ELEM_FLAGS]);
	info.comment = get_comment(a[NFTA_SET_ELEM_USERDATA], UDATA_COMMENT);
	return l->fn(&info, l->arg);
}

static int take_elems(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *a[NFTA_SET_ELEM_LIST_MAX + 1];
	const struct elem_list *l = arg;
	int ret = 0;

	if (!is_message(msg, NFT_MSG_NEWSETELEM) || !l->fn)
		return 0;
	nl_parse(msg, HDR, a, NFTA_SET_ELEM_LIST_MAX);
	nl_for_each_attr (elem, a[NFTA_SET_ELEM_LIST_ELEMENTS]) {
		ret = take_elem(elem, l);
		if (ret)
			break;
	}
	return ret;
}

static void reset_elems(void *arg)
{
	const struct elem_list *l = arg;

	if (l->reset)
		l->reset(l->arg);
}

int nft_elems(struct nft *n, const struct nft_table *t, const char *set, nft_elem_fn *fn,
	nft_reset_fn *reset, void *arg)
{
	struct elem_list l = {fn, reset, arg};
	autoreq r = {0};

	nft_question(&r, NFT_MSG_GETSETELEM, NLM_F_DUMP, t->family);
	nl_put_str(&r, NFTA_SET_ELEM_LIST_TABLE, t->name);
	nl_put_str(&r, NFTA_SET_ELEM_LIST_SET, set);
	return nl_query(n->nl, &r, take_elems, reset_elems, &l);
}

int nft_elem_get(struct nft *n, const struct nft_table *t, const char *set,
	const struct nft_key *key, nft_elem_fn *fn, void *arg)
{
	struct elem_list l = {fn, NULL, arg};
	size_t list, elem;
	autoreq r = {0};

	if (key->overflow)
		return -EOVERFLOW;
	nft_question(&r, NFT_MSG_GETSETELEM, 0, t->family);
	nl_put_str(&r, NFTA_SET_ELEM_LIST_TABLE, t->name);
	nl_put_str(&r, NFTA_SET_ELEM_LIST_SET, set);
	list = nl_nest(&r, NFTA_SET_ELEM_LIST_ELEMENTS);
	elem = nl_nest(&r, NFTA_LIST_ELEM);
	nft_put_value(&r, NFTA_SET_ELEM_KEY, key->bytes, nft_key_size(key));
	nl_nest_end(&r, elem);
	nl_nest_end(&r, list);
	return nl_query(n->nl, &r, take_elems, NULL, &l);
}

/* ---- jumps ---- */

struct jumps {
	const char *to;
	struct nft_handles *handles;
};

static void jumps_reset(void *arg)
{
	((struct jumps *)arg)->handles->len = 0;
}

static int jumps_take(const struct nft_rule_info *r, void *arg)
{
	const struct jumps *j = arg;

	if (!strcmp(r->jump, j->to))
		nft_handles_put(j->handles, r->handle);
	return 0;
}

int nft_jumps(struct nft *n, const struct nft_table *t, const char *chain, const char *to,
	struct nft_handles *h)
{
	struct jumps j = {to, h};

	h->len = 0;
	return nft_rules(n, t, chain, jumps_take, jumps_reset, &j);
}
