#include "portmap/conditions.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "portmap/record.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

void conditions_free(struct port_conds *c)
{
	free(c->list);
	free(c->nft);
	free(c->text);
	*c = (struct port_conds){.family = c->family};
}

enum cond_syntax conditions_syntax(const json *array)
{
	const char *first = json_str(json_at(array, 0));

	if (!first || !*first)
		return COND_NONE;
	return *first == '-' || *first == '!' ? COND_IPTABLES : COND_NFT;
}

/* ---- iptables ---- */

static const struct {
	const char *name;
	const char *longer;
	enum port_match what;
} options[] = {
	{"-s", "--source", MATCH_SADDR},
	{"-s", "--src", MATCH_SADDR},
	{"-d", "--destination", MATCH_DADDR},
	{"-d", "--dst", MATCH_DADDR},
	{"-i", "--in-interface", MATCH_IIF},
	{"-o", "--out-interface", MATCH_OIF},
	{"-p", "--protocol", MATCH_PROTO},
	{"--sport", "--source-port", MATCH_SPORT},
	{"--dport", "--destination-port", MATCH_DPORT},
};

static bool parse_addr(struct port_cond *c, uint8_t family, const char *text)
{
	autofree char *with_len = NULL;
	struct ip ip, mask;
	char *slash;

	if (prefix_parse(text, &c->addr))
		return c->addr.ip.family == family;
	with_len = strdup(text);
	slash = with_len ? strchr(with_len, '/') : NULL;
	if (slash)
		*slash = '\0';
	if (!with_len || !ip_parse(with_len, &ip) || ip.family != family)
		return false;
	c->addr = (struct prefix){.ip = ip, .len = ip_bits(&ip)};
	if (!slash)
		return true;
	/* ADDRESS/MASK. Only masks that are prefixes. */
	if (!ip_parse(slash + 1, &mask) || mask.family != family)
		return false;
	for (c->addr.len = 0; c->addr.len < ip_bits(&mask); c->addr.len++)
		if (!(mask.bytes[c->addr.len / 8] & 0x80 >> c->addr.len % 8))
			break;
	c->addr.ip = mask;
	ip = prefix_network(&c->addr);
	if (ip_cmp(&ip, &mask))
		return false;
	return ip_parse(with_len, &c->addr.ip);
}

static bool parse_ports(struct port_cond *c, const char *text)
{
	unsigned long from, to;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	from = to = strtoul(text, &end, 10);
	if (*end == ':') {
		if (end[1] < '0' || end[1] > '9')
			return false;
		to = strtoul(end + 1, &end, 10);
	}
	c->port = (uint16_t)from;
	c->last = (uint16_t)to;
	return !*end && from <= to && to <= UINT16_MAX;
}

/* iptables writes "eth+" for what nft calls "eth*". */
static bool parse_ifname(struct port_cond *c, const char *text)
{
	size_t len = strlen(text);

	if (!len || len >= sizeof(c->ifname))
		return false;
	strcpy(c->ifname, text);
	if (text[len - 1] == '+')
		c->ifname[len - 1] = '*';
	return true;
}

static bool parse_value(struct port_cond *c, uint8_t family, const char *text)
{
	switch (c->what) {
	case MATCH_SADDR:
	case MATCH_DADDR: return parse_addr(c, family, text);
	case MATCH_IIF:
	case MATCH_OIF: return parse_ifname(c, text);
	case MATCH_PROTO: return (c->proto = portproto_parse(text));
	case MATCH_SPORT:
	case MATCH_DPORT: return parse_ports(c, text);
	}
	return false;
}

static bool find_option(const char *word, enum port_match *what)
{
	for (size_t i = 0; i < array_len(options); i++) {
		if (!strcmp(word, options[i].name) || !strcmp(word, options[i].longer)) {
			*what = options[i].what;
			return true;
		}
	}
	return false;
}

struct words {
	char **word;
	size_t len;
	size_t at;
};

static const char *take(struct words *w)
{
	return w->at < w->len ? w->word[w->at++] : NULL;
}

static int parse_option(struct port_conds *c, struct words *w, const char *key, struct err *e)
{
	struct port_cond cond = {0};
	const char *word = take(w), *value;

	if (word && !strcmp(word, "!")) {
		cond.negate = true;
		word = take(w);
	}
	if (word && (!strcmp(word, "-m") || !strcmp(word, "--match")) && !cond.negate) {
		value = take(w);
		if (value && portproto_parse(value))
			return 0;
		return err_set(e, ERR_INVALID_CONFIG, "%s: match \"%s\" is not supported", key,
			value ? value : "");
	}
	if (!word || !find_option(word, &cond.what))
		return err_set(e, ERR_INVALID_CONFIG,
			"%s: \"%s\" is not supported; of iptables' options these are: ! -s -d -i "
			"-o -p --sport --dport",
			key, word ? word : "!");
	value = take(w);
	if (value && !strcmp(value, "!")) {
		cond.negate = true;
		value = take(w);
	}
	if (!value || !parse_value(&cond, c->family, value))
		return err_set(e, ERR_INVALID_CONFIG, "%s: invalid value \"%s\" of %s", key,
			value ? value : "", word);
	c->list[c->len++] = cond;
	return 0;
}

/* Ports mean nothing without the protocol they belong to. */
static int check_ports(const struct port_conds *c, const char *key, struct err *e)
{
	uint8_t proto = 0;
	bool ports = false;

	for (size_t i = 0; i < c->len; i++) {
		if (c->list[i].what == MATCH_PROTO && !c->list[i].negate)
			proto = c->list[i].proto;
		ports |= c->list[i].what == MATCH_SPORT || c->list[i].what == MATCH_DPORT;
	}
	for (size_t i = 0; i < c->len; i++)
		if (c->list[i].what == MATCH_SPORT || c->list[i].what == MATCH_DPORT)
			c->list[i].proto = proto;
	if (ports && !proto)
		return err_set(
			e, ERR_INVALID_CONFIG, "%s: a port needs its protocol (-p) as well", key);
	return 0;
}

static int parse_iptables(struct port_conds *c, char *text, const char *key, struct err *e)
{
	size_t max = strlen(text) / 2 + 1;
	autofree char **list = calloc(max, sizeof(*list));
	struct words w = {.word = list};
	char *save = NULL;

	c->list = calloc(max, sizeof(*c->list));
	if (!list || !c->list)
		return err_memory(e);
	for (char *word = strtok_r(text, " \t", &save); word; word = strtok_r(NULL, " \t", &save))
		w.word[w.len++] = word;
	while (w.at < w.len)
		if (parse_option(c, &w, key, e))
			return -1;
	return check_ports(c, key, e);
}

/* ---- nft ---- */

/* The text becomes the middle of a rule: it must not end the rule, the chain or the line. */
static const char *nft_objection(const char *text)
{
	int depth = 0;
	bool quoted = false;

	for (const char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ' && *c != '\t')
			return "control character";
		if (*c == '"')
			quoted = !quoted;
		if (quoted)
			continue;
		if (strchr(";#\\$", *c))
			return "one of ; # \\ $";
		depth += (*c == '{') - (*c == '}');
		if (depth < 0)
			return "unbalanced braces";
	}
	return quoted ? "unbalanced quotes" : depth ? "unbalanced braces" : NULL;
}

static void describe(struct buf *b, const struct port_cond *c)
{
	static const char *const words[] = {
		[MATCH_SADDR] = "-s",
		[MATCH_DADDR] = "-d",
		[MATCH_IIF] = "-i",
		[MATCH_OIF] = "-o",
		[MATCH_PROTO] = "-p",
		[MATCH_SPORT] = "--sport",
		[MATCH_DPORT] = "--dport",
	};
	struct prefix net = {.ip = prefix_network(&c->addr), .len = c->addr.len};
	char addr[PREFIX_STRLEN];

	buf_printf(b, "%s%s%s ", b->len ? " " : "", c->negate ? "! " : "", words[c->what]);
	switch (c->what) {
	case MATCH_SADDR:
	case MATCH_DADDR: buf_puts(b, prefix_format(&net, addr)); break;
	case MATCH_IIF:
	case MATCH_OIF: buf_puts(b, c->ifname); break;
	case MATCH_PROTO: buf_puts(b, portproto_name(c->proto)); break;
	case MATCH_SPORT:
	case MATCH_DPORT: buf_printf(b, "%u:%u", c->port, c->last); break;
	}
}

/* The same conditions have the same name, however they are spelled in iptables' syntax; nft's is
 * taken as it is. */
static int identify(struct port_conds *c, struct err *e)
{
	autobuf text = {0};

	if (!c->len && !c->nft)
		return 0;
	for (size_t i = 0; i < c->len; i++)
		describe(&text, &c->list[i]);
	buf_puts(&text, c->nft ? c->nft : "");
	if (text.failed)
		return err_memory(e);
	hash_hex(c->id, PORT_CONDITIONS, c->family == AF_INET ? "4 " : "6 ", text.data, NULL);
	c->text = take_ptr(text.data);
	return 0;
}

int conditions_parse(
	struct port_conds *c, uint8_t family, const json *array, const char *key, struct err *e)
{
	enum cond_syntax syntax = conditions_syntax(array);
	const char *wrong, *word;
	autobuf text = {0};

	*c = (struct port_conds){.family = family};
	for (size_t i = 0; i < json_len(array); i++) {
		word = json_str(json_at(array, i));
		if (!word)
			return err_set(
				e, ERR_INVALID_CONFIG, "%s: element %zu is not a string", key, i);
		buf_puts(&text, i ? " " : "");
		buf_puts(&text, word);
	}
	if (syntax == COND_NONE)
		return 0;
	if (text.failed)
		return err_memory(e);
	if (syntax == COND_IPTABLES)
		return parse_iptables(c, text.data, key, e) || identify(c, e) ? -1 : 0;
	wrong = nft_objection(text.data);
	if (wrong)
		return err_set(e, ERR_INVALID_CONFIG, "%s: %s in \"%s\"", key, wrong, text.data);
	c->nft = take_ptr(text.data);
	return identify(c, e);
}

/* ---- rules ---- */

static void put_proto(struct nft *n, const struct port_cond *c)
{
	if (!c->negate) {
		nft_match_proto(n, c->proto);
		return;
	}
	nft_x_meta(n, NFT_META_L4PROTO, 0);
	nft_x_cmp(n, 0, NFT_CMP_NEQ, &c->proto, sizeof(c->proto));
}

void conditions_put(struct nft *n, const struct port_conds *conds)
{
	for (size_t i = 0; i < conds->len; i++) {
		const struct port_cond *c = &conds->list[i];

		switch (c->what) {
		case MATCH_SADDR: nft_match_addr(n, NFT_SRC, &c->addr, c->negate); break;
		case MATCH_DADDR: nft_match_addr(n, NFT_DST, &c->addr, c->negate); break;
		case MATCH_IIF: nft_match_iifname(n, c->ifname, c->negate); break;
		case MATCH_OIF: nft_match_oifname(n, c->ifname, c->negate); break;
		case MATCH_PROTO: put_proto(n, c); break;
		case MATCH_SPORT:
			nft_match_port(n, c->proto, NFT_SRC, c->port, c->last, c->negate);
			break;
		case MATCH_DPORT:
			nft_match_port(n, c->proto, NFT_DST, c->port, c->last, c->negate);
			break;
		}
	}
}

/* What we need of libnftables; see nftables/libnftables.h. Its types are opaque. */
struct libnft {
	void *(*ctx_new)(uint32_t flags);
	void (*ctx_free)(void *ctx);
	int (*ctx_buffer_error)(void *ctx);
	const char *(*ctx_get_error_buffer)(void *ctx);
	int (*run_cmd_from_buffer)(void *ctx, const char *text);
};

/* Stays loaded: the process is about to end, and closing it is what costs. */
static int load(struct libnft *l, struct err *e)
{
	void *lib = dlopen("libnftables.so.1", RTLD_NOW | RTLD_LOCAL);
	struct {
		const char *name;
		void *slot;
	} symbols[] = {
		{"nft_ctx_new", &l->ctx_new},
		{"nft_ctx_free", &l->ctx_free},
		{"nft_ctx_buffer_error", &l->ctx_buffer_error},
		{"nft_ctx_get_error_buffer", &l->ctx_get_error_buffer},
		{"nft_run_cmd_from_buffer", &l->run_cmd_from_buffer},
	};

	for (size_t i = 0; lib && i < array_len(symbols); i++) {
		void *symbol = dlsym(lib, symbols[i].name);

		if (!symbol)
			lib = NULL;
		memcpy(symbols[i].slot, &symbol, sizeof(symbol));
	}
	if (!lib) {
		err_set(e, ERR_INVALID_CONFIG,
			"conditions in nft's syntax need libnftables.so.1; iptables' syntax does not");
		return err_detail(e, "%s", dlerror());
	}
	return 0;
}

int conditions_run(const struct port_conds *c, const char *text, struct err *e)
{
	struct libnft l;
	const char *said;
	void *ctx;
	int ret;

	if (load(&l, e))
		return -1;
	ctx = l.ctx_new(0);
	if (!ctx)
		return err_memory(e);
	l.ctx_buffer_error(ctx);
	ret = l.run_cmd_from_buffer(ctx, text);
	said = ret ? l.ctx_get_error_buffer(ctx) : "";
	if (ret && strstr(said, strerror(ENOENT))) {
		ret = -ENOENT;
	} else if (ret && strstr(said, strerror(EEXIST))) {
		ret = -EEXIST;
	} else if (ret) {
		err_set(e, ERR_INVALID_CONFIG, "%s: nft does not accept \"%s\"",
			c->family == AF_INET ? "conditionsV4" : "conditionsV6", c->nft);
		ret = err_detail(e, "%s", said);
	}
	l.ctx_free(ctx);
	return ret;
}
