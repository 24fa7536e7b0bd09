/* tuning: sysctls and link settings of a container's interface. A chained plugin.
 *
 * The sysctls stay until the namespace goes. The link may outlive it (a physical one goes back to
 * the host), so what its settings were is kept in a file, in the form and place the Go plugin has
 * it, and DEL restores them. reference/meta.md, section 1. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mac.h"
#include "cni/applet.h"
#include "cni/args.h"
#include "netlink/link.h"
#include "netlink/netns.h"
#include "netlink/sysctl.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DATA_DIR      "/run/cni/tuning"
#define ALLOWLIST     "/etc/cni/tuning/allowlist.conf"
#define ALLOWLIST_MAX (1u << 20)
#define BACKUP_MAX    65536
#define MAX_SYSCTLS   1024

/* ---- configuration ---- */

struct sysctl {
	char *name;  /* as configured; owned */
	char *value; /* owned */
	char *path;  /* below /proc/sys, owned */
	char *old;   /* what was there before, owned; NULL: not changed or not readable */
};

struct settings {
	struct sysctl *sysctls;
	size_t len;
	bool has_mac, promisc, has_allmulti, allmulti, has_txqlen;
	uint8_t mac[6];
	uint32_t mtu; /* 0: leave */
	uint32_t txqlen;
};

static void settings_free(struct settings *s)
{
	for (size_t i = 0; i < s->len; i++) {
		free(s->sysctls[i].name);
		free(s->sysctls[i].value);
		free(s->sysctls[i].path);
		free(s->sysctls[i].old);
	}
	free(s->sysctls);
	*s = (struct settings){0};
}

#define autosettings __attribute__((cleanup(settings_free))) struct settings

static bool touches_link(const struct settings *s)
{
	return s->has_mac || s->promisc || s->mtu || s->has_allmulti || s->has_txqlen;
}

static int set_sysctl(struct settings *s, const char *name, const char *value, struct err *e)
{
	struct sysctl *list;
	size_t i = 0;

	while (i < s->len && strcmp(s->sysctls[i].name, name) != 0)
		i++;
	if (i == MAX_SYSCTLS)
		return err_set(e, ERR_INVALID_CONFIG, "more than %d sysctls", MAX_SYSCTLS);
	if (i == s->len) {
		list = reallocarray(s->sysctls, s->len + 1, sizeof(*list));
		if (!list)
			return err_memory(e);
		s->sysctls = list;
		list[s->len++] = (struct sysctl){.name = strdup(name)};
	}
	free(s->sysctls[i].value);
	s->sysctls[i].value = strdup(value);
	if (!s->sysctls[i].name || !s->sysctls[i].value)
		return err_memory(e);
	return 0;
}

static int read_sysctls(const json *from, struct settings *s, struct err *e)
{
	const json *map = NULL;

	if (json_get_object(from, "sysctl", &map, e))
		return -1;
	for (void *it = json_iter(map); it; it = json_iter_next(map, it)) {
		const char *value = json_str(json_iter_value(it));

		if (!value && !json_is_null(json_iter_value(it)))
			return err_set(e, ERR_INVALID_CONFIG,
				"invalid sysctl \"%s\": expected string, found %s",
				json_iter_key(it), json_type_name(json_iter_value(it)));
		if (set_sysctl(s, json_iter_key(it), value ? value : "", e))
			return -1;
	}
	return 0;
}

static int set_mac(struct settings *s, const char *text, struct err *e)
{
	s->has_mac = *text;
	if (*text && !mac_parse(text, s->mac))
		return err_set(e, ERR_INVALID_CONFIG,
			"invalid MAC address \"%s\": six bytes wanted", text);
	return 0;
}

/* The keys that "args"."cni" has in common with the config itself. */
static int read_keys(const json *from, struct settings *s, struct err *e)
{
	int64_t mtu = s->mtu, txqlen = -1;
	bool promisc = s->promisc;

	if (read_sysctls(from, s, e) || json_get_bool(from, "promisc", &promisc, e) ||
		json_get_int(from, "mtu", 0, INT32_MAX, &mtu, e) ||
		json_get_bool(from, "allmulti", &s->allmulti, e) ||
		json_get_int(from, "txQLen", 0, INT32_MAX, &txqlen, e))
		return -1;
	s->promisc = promisc;
	s->mtu = (uint32_t)mtu;
	if (json_get(from, "allmulti"))
		s->has_allmulti = true;
	if (txqlen >= 0) {
		s->has_txqlen = true;
		s->txqlen = (uint32_t)txqlen;
	}
	return 0;
}

/* Weakest first: the config, CNI_ARGS, runtimeConfig, args.cni. An empty text in CNI_ARGS or
 * runtimeConfig says nothing, in args.cni it says "leave the MAC alone". */
static int read_mac(
	const struct request *req, const json *args_cni, struct settings *s, struct err *e)
{
	static const char *const known[] = {"MAC", NULL};
	const char *mac = "", *more = "";
	autofree char *from_args = NULL;
	const json *runtime;

	if (request_cni_args(req, known, &from_args, e) || request_runtime_config(req, &runtime, e))
		return -1;
	if (json_get_str(req->conf, "mac", &mac, e))
		return -1;
	if (from_args && *from_args)
		mac = from_args;
	if (runtime && json_get_str(runtime, "mac", &more, e))
		return -1;
	if (*more)
		mac = more;
	if (args_cni && json_get_str(args_cni, "mac", &mac, e))
		return -1;
	return set_mac(s, mac, e);
}

/* ---- duplicate sysctl names ---- */

/* Behind the closing quote of the string that starts at p. */
static const char *skip_string(const char *p)
{
	for (p++; *p && *p != '"'; p++)
		if (*p == '\\' && p[1])
			p++;
	return *p ? p + 1 : p;
}

static const char *skip_blank(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* Behind the value, and the comma after it, of the key that ends at p. Values are strings or null.
 */
static const char *skip_value(const char *p)
{
	p = skip_blank(skip_blank(p) + 1);
	p = *p == '"' ? skip_string(p) : p + strcspn(p, ",}");
	p = skip_blank(p);
	return skip_blank(p + (*p == ','));
}

/* Looks at one sysctl object, p behind its brace. */
static int find_duplicate(const char *p, struct err *e)
{
	const char *first = skip_blank(p);
	size_t n = 0;

	for (p = first; *p == '"' && n++ <= MAX_SYSCTLS; p = skip_value(skip_string(p))) {
		size_t len = (size_t)(skip_string(p) - p);

		for (const char *q = first; q < p; q = skip_value(skip_string(q)))
			if (!strncmp(q, p, len))
				return err_set(e, ERR_INVALID_CONFIG,
					"Duplicate sysctl keys: %.*s is given twice", (int)len, p);
	}
	return 0;
}

/* A parsed document has lost all but the last of equal keys, so this reads the text, which is known
 * to be well-formed: keys of the outermost object. */
static int refuse_duplicates(const char *text, struct err *e)
{
	int depth = 0;

	for (const char *p = text; *p;) {
		const char *end;

		if (*p == '{' || *p == '[')
			depth++;
		else if (*p == '}' || *p == ']')
			depth--;
		if (*p != '"') {
			p++;
			continue;
		}
		end = skip_string(p);
		if (depth == 1 && !strncasecmp(p, "\"sysctl\"", 8) && *skip_blank(end) == ':') {
			const char *object = skip_blank(skip_blank(end) + 1);

			if (*object == '{' && find_duplicate(object + 1, e))
				return -1;
		}
		p = end;
	}
	return 0;
}

/* ---- sysctl names ---- */

/* The path below /proc/sys for a name: dots become slashes, the first IFNAME the interface, empty
 * parts vanish. Only what lies below net/ belongs to the namespace. No part can be ".." but by an
 * interface of that name, which the checks of the environment refuse; refused here all the same. */
static int sysctl_path(struct sysctl *s, const char *ifname, struct err *e)
{
	autofree char *slashes = strdup(s->name);
	autobuf whole = {0}, path = {0};
	char *at, *part, *rest;

	if (!slashes)
		return err_memory(e);
	for (char *p = slashes; *p; p++)
		if (*p == '.')
			*p = '/';
	at = strstr(slashes, "IFNAME");
	if (at) {
		buf_put(&whole, slashes, (size_t)(at - slashes));
		buf_puts(&whole, ifname);
		buf_puts(&whole, at + strlen("IFNAME"));
	} else {
		buf_puts(&whole, slashes);
	}
	if (whole.failed || !whole.data)
		return err_set(e, ERR_INVALID_CONFIG, "invalid net sysctl key: \"%s\"", s->name);
	rest = whole.data;
	while ((part = strsep(&rest, "/"))) {
		if (!strcmp(part, ".") || !strcmp(part, ".."))
			return err_set(
				e, ERR_INVALID_CONFIG, "invalid net sysctl key: \"%s\"", s->name);
		if (*part)
			buf_printf(&path, "%s%s", path.len ? "/" : "", part);
	}
	if (path.failed)
		return err_memory(e);
	if (!path.data || strncmp(path.data, "net/", 4) != 0)
		return err_set(e, ERR_INVALID_CONFIG, "invalid net sysctl key: \"%s\"", slashes);
	free(s->path);
	s->path = take_ptr(path.data);
	return 0;
}

static int read_settings(const struct request *req, struct settings *s, struct err *e)
{
	const json *args_cni;

	/* The order matters: the search for duplicates relies on the types being right. */
	if (request_args_cni(req, &args_cni, e) || read_keys(req->conf, s, e) ||
		refuse_duplicates(req->text, e) || (args_cni && read_keys(args_cni, s, e)) ||
		read_mac(req, args_cni, s, e))
		return -1;
	for (size_t i = 0; i < s->len; i++)
		if (sysctl_path(&s->sysctls[i], req->ifname, e))
			return -1;
	return 0;
}

static int data_dir(const struct request *req, const char **dir, struct err *e)
{
	*dir = "";
	if (json_get_str(req->conf, "dataDir", dir, e))
		return -1;
	if (!**dir)
		*dir = DATA_DIR;
	return 0;
}

/* ---- the allowlist ---- */

/* The regular expression library: loaded only where there is an allowlist. */
struct regex {
	void *lib;
	__typeof__(pcre2_compile) *compile;
	__typeof__(pcre2_match) *match;
	__typeof__(pcre2_match_data_create_from_pattern) *data_new;
	__typeof__(pcre2_match_data_free) *data_free;
	__typeof__(pcre2_code_free) *code_free;
	__typeof__(pcre2_get_error_message) *message;
};

static void regex_close(struct regex *r)
{
	if (r->lib)
		dlclose(r->lib);
}

static int regex_open(struct regex *r, struct err *e)
{
	struct {
		const char *name;
		void **fn;
	} symbols[] = {
		{"pcre2_compile_8", (void **)&r->compile},
		{"pcre2_match_8", (void **)&r->match},
		{"pcre2_match_data_create_from_pattern_8", (void **)&r->data_new},
		{"pcre2_match_data_free_8", (void **)&r->data_free},
		{"pcre2_code_free_8", (void **)&r->code_free},
		{"pcre2_get_error_message_8", (void **)&r->message},
	};

	r->lib = dlopen("libpcre2-8.so.0", RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; r->lib && i < array_len(symbols); i++)
		if (!(*symbols[i].fn = dlsym(r->lib, symbols[i].name)))
			return err_set(e, ERR_NOT_AVAILABLE,
				"%s cannot be applied: libpcre2-8.so.0 lacks %s", ALLOWLIST,
				symbols[i].name);
	return r->lib ? 0
		      : err_set(e, ERR_NOT_AVAILABLE, "%s cannot be applied: no libpcre2-8.so.0",
				ALLOWLIST);
}

/* An entry as Go's regexp reads it: unanchored, $ only at the very end, no multi-line mode. */
static pcre2_code *regex_compile(const struct regex *r, const char *entry, struct err *e)
{
	char text[256] = "";
	PCRE2_SIZE at;
	int code;
	pcre2_code *re = r->compile((PCRE2_SPTR)entry, PCRE2_ZERO_TERMINATED,
		PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);

	if (re)
		return re;
	r->message(code, (PCRE2_UCHAR *)text, sizeof(text));
	err_set(e, ERR_INVALID_CONFIG, "invalid regular expression \"%s\" in %s", entry, ALLOWLIST);
	err_detail(e, "%s", text);
	return NULL;
}

/* 1: it matches, 0: it does not, -1: e is set. */
static int regex_matches(const struct regex *r, const char *entry, const char *name, struct err *e)
{
	pcre2_code *re = regex_compile(r, entry, e);
	pcre2_match_data *data = re ? r->data_new(re, NULL) : NULL;
	int ret = -1;

	if (data) {
		int n = r->match(re, (PCRE2_SPTR)name, PCRE2_ZERO_TERMINATED, 0, 0, data, NULL);

		/* Also where matching was given up: what is not known to be allowed is not. */
		ret = n >= 0;
	} else if (re) {
		err_memory(e);
	}
	if (data)
		r->data_free(data);
	if (re)
		r->code_free(re);
	return ret;
}

/* The next entry of the file, trimmed; NULL at its end. */
static char *next_entry(char **rest)
{
	char *line;

	while ((line = strsep(rest, "\n"))) {
		char *end = line + strlen(line);

		while (isspace((unsigned char)*line))
			line++;
		while (end > line && isspace((unsigned char)end[-1]))
			*--end = '\0';
		if (*line)
			return line;
	}
	return NULL;
}

static int allowed(const struct regex *r, const char *list, const char *name, struct err *e)
{
	autofree char *copy = strdup(list);
	char *rest = copy, *entry;
	int ret = 0;

	if (!copy)
		return err_memory(e);
	while (!ret && (entry = next_entry(&rest)))
		ret = regex_matches(r, entry, name, e);
	if (ret)
		return ret < 0 ? -1 : 0;
	err_set(e, ERR_INVALID_CONFIG, "Sysctl %s is not allowed: it is not in the allowlist %s",
		name, ALLOWLIST);
	return err_detail(e, "%s", list);
}

static int check_allowlist(const struct settings *s, struct err *e)
{
	autofree char *list = NULL;
	struct regex r = {0};
	int ret = s->len ? file_read(AT_FDCWD, ALLOWLIST, ALLOWLIST_MAX, &list, NULL) : -ENOENT;

	if (ret == -ENOENT || ret == -ENOTDIR)
		return 0;
	if (ret)
		return err_sys(e, -ret, ERR_IO, "failed to read the allowlist %s", ALLOWLIST);
	ret = regex_open(&r, e);
	for (size_t i = 0; !ret && i < s->len; i++)
		ret = allowed(&r, list, s->sysctls[i].name, e);
	regex_close(&r);
	return ret;
}

/* ---- the backup file ---- */

/* What a link was before; only what is about to change is kept. */
struct backup {
	bool has_mac, has_promisc, has_mtu, has_allmulti, has_txqlen;
	uint8_t mac[6];
	bool promisc, allmulti;
	uint32_t mtu, txqlen;
	const char *network; /* borrowed from doc; NULL: the Go plugin wrote it */
	int64_t netns;       /* inode of the namespace the link is in; 0: likewise */
	json *doc;
	char *text; /* what was read, NULL: nothing */
	size_t len;
};

static void backup_free(struct backup *b)
{
	free(b->text);
	json_freep(&b->doc);
}

#define autobackup __attribute__((cleanup(backup_free))) struct backup

static int backup_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Owned by the caller, NULL without memory. The parts are checked: no slash in either. */
static char *backup_name(const char *id, const char *ifname)
{
	char *name = NULL;

	return asprintf(&name, "%s_%s.json", id, ifname) < 0 ? NULL : name;
}

static bool read_u32(const json *doc, const char *key, uint32_t *out)
{
	int64_t value = -1;
	autoerr ignored = {0};

	if (json_get_int(doc, key, 0, UINT32_MAX, &value, &ignored) || value < 0)
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool read_flag(const json *doc, const char *key, bool *out)
{
	const json *value = json_get(doc, key);

	if (!json_is_bool(value))
		return false;
	*out = json_bool(value);
	return true;
}

/* Returns 0, -ENOENT, -EBADMSG for something that is no backup, or -errno. */
static int backup_read(int dir, const char *name, struct backup *b)
{
	autoerr ignored = {0};
	const char *mac;
	int ret;

	*b = (struct backup){0};
	ret = file_read(dir, name, BACKUP_MAX, &b->text, &b->len);
	if (ret)
		return ret == -EFBIG || ret == -EINVAL ? -EBADMSG : ret;
	b->doc = json_parse(b->text, b->len, ERR_DECODE, &ignored);
	if (!json_is_object(b->doc))
		return -EBADMSG;
	mac = json_str(json_get(b->doc, "mac"));
	b->has_mac = mac && mac_parse(mac, b->mac);
	b->has_promisc = read_flag(b->doc, "promisc", &b->promisc);
	b->has_mtu = read_u32(b->doc, "mtu", &b->mtu) && b->mtu;
	b->has_allmulti = read_flag(b->doc, "allmulti", &b->allmulti);
	b->has_txqlen = read_u32(b->doc, "txQLen", &b->txqlen);
	b->network = json_str(json_get(b->doc, "network"));
	json_get_int(b->doc, "netns", 0, INT64_MAX, &b->netns, &ignored);
	return 0;
}

/* Container IDs and paths are used again; what was a link's state in one namespace is not that of
 * its like in another. */
static bool backup_is_of(const struct backup *b, uint64_t netns)
{
	return !b->netns || (uint64_t)b->netns == netns;
}

/* Keys in the Go plugin's order and its indentation of one space; "network" and "netns" are ours,
 * its reader passes over them. */
static void backup_format(
	const struct backup *b, const char *network, uint64_t netns, struct buf *out)
{
	char mac[MAC_STRLEN];

	buf_puts(out, "{\n");
	if (b->has_mac)
		buf_printf(out, " \"mac\": \"%s\",\n", mac_format(b->mac, mac));
	if (b->has_promisc)
		buf_printf(out, " \"promisc\": %s,\n", b->promisc ? "true" : "false");
	if (b->has_mtu)
		buf_printf(out, " \"mtu\": %u,\n", b->mtu);
	if (b->has_allmulti)
		buf_printf(out, " \"allmulti\": %s,\n", b->allmulti ? "true" : "false");
	if (b->has_txqlen)
		buf_printf(out, " \"txQLen\": %u,\n", b->txqlen);
	buf_puts(out, " \"network\": ");
	json_write_string(out, network);
	buf_printf(out, ",\n \"netns\": %llu\n}", (unsigned long long)netns);
}

/* Adds what the settings change and the backup does not hold yet: what it holds is from an earlier
 * ADD, or an earlier tuning in the list, and that is what DEL has to go back to. */
static void backup_fill(struct backup *b, const struct settings *s, const struct link *l)
{
	if (s->has_mac && !b->has_mac && l->has_mac) {
		memcpy(b->mac, l->mac, sizeof(b->mac));
		b->has_mac = true;
	}
	if (s->promisc && !b->has_promisc) {
		b->promisc = l->flags & IFF_PROMISC;
		b->has_promisc = true;
	}
	if (s->mtu && !b->has_mtu) {
		b->mtu = l->mtu;
		b->has_mtu = true;
	}
	if (s->has_allmulti && !b->has_allmulti) {
		b->allmulti = l->flags & IFF_ALLMULTI;
		b->has_allmulti = true;
	}
	if (s->has_txqlen && !b->has_txqlen) {
		b->txqlen = l->txqlen;
		b->has_txqlen = true;
	}
}

/* One message per setting, so that one the driver refuses does not keep the others from being made.
 * The first failure is the return value, 0 or -errno, *what its name. */
static int apply_link(struct nl *nl, uint32_t index, const struct backup *b, const char **what)
{
	const struct {
		bool wanted;
		const char *what;
		struct link_set set;
	} steps[] = {
		{b->has_mtu, "MTU", {.mtu = b->mtu}},
		{b->has_mac, "MAC address", {.mac = b->mac}},
		{b->has_promisc, "promiscuous mode",
			{.flags_set = b->promisc ? IFF_PROMISC : 0,
				.flags_clear = b->promisc ? 0 : IFF_PROMISC}},
		{b->has_allmulti, "all-multicast mode",
			{.flags_set = b->allmulti ? IFF_ALLMULTI : 0,
				.flags_clear = b->allmulti ? 0 : IFF_ALLMULTI}},
		{b->has_txqlen, "transmit queue length", {.has_txqlen = true, .txqlen = b->txqlen}},
	};
	int first = 0;

	for (size_t i = 0; i < array_len(steps); i++) {
		struct link_set set = steps[i].set;
		int ret = 0;

		set.index = index;
		if (steps[i].wanted)
			ret = link_apply(nl, &set);
		if (ret && !first) {
			first = ret;
			*what = steps[i].what;
		}
	}
	return first;
}

/* With the number it is known by. */
static enum netns_state open_netns(const char *path, int *fd, uint64_t *inode, struct err *e)
{
	enum netns_state state = netns_open(path, fd, e);

	if (state != NETNS_OK)
		return state;
	*inode = netns_inode(*fd);
	if (*inode)
		return NETNS_OK;
	err_sys(e, errno, ERR_INVALID_NETNS, "failed to open netns \"%s\"", path);
	return NETNS_ERROR;
}

struct restore {
	const char *ifname;
	const struct backup *backup;
};

/* Inside the namespace. A link that is gone needs nothing. */
static int restore_link(void *arg, struct err *e)
{
	const struct restore *r = arg;
	const char *what = "";
	autonl *nl = NULL;
	struct link l;
	int ret;

	if (nl_open(&nl, NETLINK_ROUTE, e))
		return -1;
	ret = link_get(nl, r->ifname, &l);
	if (ret == -ENODEV)
		return 0;
	if (!ret)
		ret = apply_link(nl, l.index, r->backup, &what);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to restore the %s of \"%s\"", what,
			     r->ifname)
		   : 0;
}

/* ---- ADD ---- */

/* An ADD under way, and what it takes to undo it. */
struct change {
	struct settings settings;
	const char *ifname; /* borrowed: the request outlives the undo stack */
	const char *network;
	int netns;
	uint64_t inode; /* of the namespace */
	int dir;        /* of the backup, -1 while there is none */
	char *file;     /* its name in there */
	char *previous; /* what was in it, NULL: it did not exist */
	size_t previous_len;
	bool file_written;
	size_t written;       /* sysctls so far */
	struct backup before; /* of the link, all that is about to change */
	bool link_touched;
};

static void change_free(void *arg)
{
	struct change *c = arg;

	settings_free(&c->settings);
	backup_free(&c->before);
	cleanup_closep(&c->netns);
	cleanup_closep(&c->dir);
	free(c->file);
	free(c->previous);
	free(c);
}

static int restore_inside(void *arg, struct err *e)
{
	struct change *c = arg;
	struct restore r = {c->ifname, &c->before};
	int ret = c->link_touched ? restore_link(&r, e) : 0;

	for (size_t i = c->written; i > 0; i--)
		if (c->settings.sysctls[i - 1].old)
			sysctl_set(c->settings.sysctls[i - 1].path, c->settings.sysctls[i - 1].old);
	return ret;
}

/* A link that could not be restored keeps its backup, for DEL to try again. */
static void undo_change(void *arg)
{
	struct change *c = arg;
	autoerr ignored = {0};

	if (netns_run(c->netns, restore_inside, c, &ignored) || !c->file_written)
		return;
	if (c->previous)
		file_replace(c->dir, c->file, c->previous, c->previous_len, 0600, false);
	else
		file_remove(c->dir, c->file);
}

/* Before the link is touched: a process killed in between leaves a backup that DEL finds. */
static int save_backup(struct change *c, const struct link *l, struct err *e)
{
	autobackup file = {0};
	autobuf text = {0};
	int ret = backup_read(c->dir, c->file, &file);

	if (ret && ret != -ENOENT && ret != -EBADMSG)
		return err_sys(e, -ret, ERR_IO, "failed to read the backup file %s", c->file);
	c->previous = take_ptr(file.text);
	c->previous_len = file.len;
	/* What belongs to another network or namespace is left over from a container that is gone.
	 */
	if (ret || !backup_is_of(&file, c->inode) ||
		(file.network && strcmp(file.network, c->network) != 0)) {
		backup_free(&file);
		file = (struct backup){0};
	}
	backup_fill(&file, &c->settings, l);
	backup_format(&file, c->network, c->inode, &text);
	if (text.failed)
		return err_memory(e);
	ret = file_replace(c->dir, c->file, text.data, text.len, 0600, false);
	if (ret)
		return err_sys(e, -ret, ERR_IO, "failed to write the backup file %s", c->file);
	c->file_written = true;
	return 0;
}

static int write_sysctls(struct change *c, struct err *e)
{
	for (; c->written < c->settings.len; c->written++) {
		struct sysctl *s = &c->settings.sysctls[c->written];
		char old[4096];
		int ret;

		if (!sysctl_get(s->path, old, sizeof(old))) {
			s->old = strdup(old);
			if (!s->old)
				return err_memory(e);
		}
		ret = sysctl_set(s->path, s->value);
		if (ret)
			return err_sys(e, -ret, ERR_SYSTEM,
				"failed to set sysctl %s to \"%s\": /proc/sys/%s", s->name,
				s->value, s->path);
	}
	return 0;
}

/* Runs inside the namespace, all of it: sockets and sysctls are the container's. */
static int change_inside(void *arg, struct err *e)
{
	struct change *c = arg;
	struct backup wanted = {.has_mac = c->settings.has_mac,
		.has_promisc = c->settings.promisc,
		.promisc = true,
		.has_mtu = c->settings.mtu,
		.mtu = c->settings.mtu,
		.has_allmulti = c->settings.has_allmulti,
		.allmulti = c->settings.allmulti,
		.has_txqlen = c->settings.has_txqlen,
		.txqlen = c->settings.txqlen};
	const char *what = "";
	autonl *nl = NULL;
	struct link l;
	int ret;

	memcpy(wanted.mac, c->settings.mac, sizeof(wanted.mac));
	if (touches_link(&c->settings) &&
		(nl_open(&nl, NETLINK_ROUTE, e) || link_need(nl, c->ifname, &l, e)))
		return -1;
	if (write_sysctls(c, e))
		return -1;
	if (!nl)
		return 0;
	if (save_backup(c, &l, e))
		return -1;
	backup_fill(&c->before, &c->settings, &l);
	c->link_touched = true;
	ret = apply_link(nl, l.index, &wanted, &what);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to set the %s of \"%s\"", what, c->ifname)
		   : 0;
}

/* The directory is made with a mode that can be entered, unlike the Go plugin's 0600. */
static int open_backup(const struct request *req, struct change *c, struct err *e)
{
	const char *path;
	int ret;

	if (data_dir(req, &path, e))
		return -1;
	ret = file_mkdirs(path, 0700);
	if (ret)
		return err_sys(e, -ret, ERR_IO, "failed to create the directory %s", path);
	c->dir = backup_dir(path);
	if (c->dir < 0)
		return err_sys(e, errno, ERR_IO, "failed to open the directory %s", path);
	c->file = backup_name(req->id, req->ifname);
	return c->file ? 0 : err_memory(e);
}

/* The container's interface in the result now has another MAC address, and since 1.1.0 an MTU. */
static int update_result(
	const struct request *req, const struct settings *s, struct result *r, struct err *e)
{
	char mac[MAC_STRLEN];

	for (size_t i = 0; i < r->ifaces_len; i++) {
		struct iface *f = &r->ifaces[i];

		if (!f->sandbox || strcmp(f->name, req->ifname) != 0)
			continue;
		if (s->has_mac && result_set_str(&f->mac, mac_format(s->mac, mac), e))
			return -1;
		if (s->mtu && !strcmp(req->version, "1.1.0"))
			f->mtu = s->mtu;
	}
	return 0;
}

static int add(const struct request *req, struct reply *reply, struct err *e)
{
	struct change *c = calloc(1, sizeof(*c));
	bool present;

	if (!c)
		return err_memory(e);
	*c = (struct change){
		.ifname = req->ifname, .network = req->network, .netns = -1, .dir = -1};
	if (read_settings(req, &c->settings, e) || check_allowlist(&c->settings, e) ||
		request_prev_result(
			req, &reply->result, &present, "Required prevResult missing", e) ||
		update_result(req, &c->settings, &reply->result, e) ||
		open_netns(req->netns, &c->netns, &c->inode, e) != NETNS_OK ||
		(touches_link(&c->settings) && open_backup(req, c, e))) {
		change_free(c);
		return -1;
	}
	/* One inverse for all of it: it knows how far we came. */
	if (undo_push(&reply->undo, undo_change, change_free, c, e))
		return -1;
	return netns_run(c->netns, change_inside, c, e);
}

/* ---- DEL and GC ---- */

/* Gives the link back what it had, if it is there still. */
static int restore(const struct request *req, const struct backup *backup, struct err *e)
{
	struct restore r = {req->ifname, backup};
	autoclose int netns = -1;
	uint64_t inode;

	if (!*req->netns)
		return 0;
	switch (open_netns(req->netns, &netns, &inode, e)) {
	case NETNS_OK:
		return backup_is_of(backup, inode) ? netns_run(netns, restore_link, &r, e) : 0;
	case NETNS_ERROR: return -1;
	default: err_clear(e); return 0;
	}
}

/* A file that is no backup, or no file: nothing can be learned from it. */
static bool is_rubbish(int ret)
{
	return ret == -EBADMSG || ret == -ELOOP || ret == -ENXIO;
}

/* What cannot be restored is reported, but no reason to keep a container from going away. */
static int del(const struct request *req, struct err *e)
{
	autofree char *name = backup_name(req->id, req->ifname);
	autoerr failed = {0}, invalid = {0};
	autobackup backup = {0};
	autoclose int dir = -1;
	const char *path;
	int ret;

	if (!name)
		return err_memory(e);
	/* No ADD succeeded with a wrong one. */
	if (data_dir(req, &path, &invalid))
		path = DATA_DIR;
	dir = backup_dir(path);
	ret = dir < 0 ? -errno : backup_read(dir, name, &backup);
	if (ret == -ENOENT || (dir < 0 && ret == -ENOTDIR))
		return 0;
	if (dir < 0)
		return err_sys(e, -ret, ERR_IO, "failed to open the directory %s", path);
	if (ret && !is_rubbish(ret))
		return err_sys(e, -ret, ERR_IO, "failed to read the backup file %s/%s", path, name);
	if (!ret && restore(req, &backup, &failed)) {
		fprintf(stderr, "tuning: %s: %s; keeping %s/%s\n", failed.msg,
			failed.details ? failed.details : "", path, name);
		return 0;
	}
	ret = file_remove(dir, name);
	return ret ? err_sys(e, -ret, ERR_IO, "failed to remove the backup file %s/%s", path, name)
		   : 0;
}

/* Whether a file of that name belongs to a valid attachment. Its name is made of id and interface
 * and cannot be taken apart (both may contain '_'), but it can be made again. */
static bool is_valid_name(const struct valid_set *valid, const char *name)
{
	for (size_t i = 0; i < valid->len; i++) {
		autofree char *kept = backup_name(valid->list[i].id, valid->list[i].ifname);

		if (!kept || !strcmp(kept, name))
			return true;
	}
	return false;
}

static bool is_backup_name(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && name[0] != '.' && !strcmp(name + len - 5, ".json");
}

/* Removes the file when it says it is of this network. What the Go plugin wrote does not say. */
static int sweep_file(const struct request *req, int dir, const char *name, struct err *e)
{
	autobackup b = {0};
	int ret = backup_read(dir, name, &b);

	if (ret && ret != -ENOENT && !is_rubbish(ret))
		return err_sys(e, -ret, ERR_IO, "failed to read the backup file %s", name);
	if (ret || !b.network || strcmp(b.network, req->network) != 0)
		return 0;
	ret = file_remove(dir, name);
	return ret ? err_sys(e, -ret, ERR_IO, "failed to remove the backup file %s", name) : 0;
}

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

static int gc(const struct request *req, struct err *e)
{
	__attribute__((cleanup(closedirp))) DIR *d = NULL;
	struct valid_set valid = {0};
	struct dirent *entry;
	const char *path;

	if (data_dir(req, &path, e))
		return -1;
	d = opendir(path);
	if (!d)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_sys(e, errno, ERR_IO, "failed to open the directory %s", path);
	if (request_valid_set(req, &valid, e))
		return -1;
	while ((errno = 0, entry = readdir(d))) {
		autoerr one = {0};

		if (!is_backup_name(entry->d_name) || is_valid_name(&valid, entry->d_name))
			continue;
		if (sweep_file(req, dirfd(d), entry->d_name, &one))
			err_merge(e, &one);
	}
	if (errno)
		err_sys(e, errno, ERR_IO, "failed to read the directory %s", path);
	valid_set_free(&valid);
	return e->set ? -1 : 0;
}

/* ---- CHECK and STATUS ---- */

/* Equal but for the width of blanks: the kernel prints tabs where people write one space. */
static bool same_value(const char *a, const char *b)
{
	for (;;) {
		size_t blank_a = strspn(a, " \t"), blank_b = strspn(b, " \t");

		a += blank_a;
		b += blank_b;
		if (!*a || !*b)
			return !*a && !*b;
		if (!blank_a != !blank_b || *a++ != *b++)
			return false;
	}
}

static int check_sysctl(const struct sysctl *s, struct err *e)
{
	char value[4096];
	int ret = sysctl_get(s->path, value, sizeof(value));

	/* Files that are only written to, like net/ipv4/route/flush, hold nothing to compare. */
	if (ret == -EACCES || ret == -EPERM)
		return 0;
	if (ret)
		return err_sys(e, -ret, ERR_CHECK, "failed to read sysctl %s: /proc/sys/%s",
			s->name, s->path);
	if (same_value(value, s->value))
		return 0;
	return err_set(e, ERR_CHECK,
		"Error: Tuning configured value of %s is %s, current value is %s", s->name,
		s->value, value);
}

static int check_link(const struct settings *s, const struct link *l, struct err *e)
{
	char want[MAC_STRLEN], have[MAC_STRLEN];

	if (s->has_mac && (!l->has_mac || memcmp(s->mac, l->mac, sizeof(s->mac)) != 0))
		return err_set(e, ERR_CHECK,
			"Error: Tuning configured Ethernet of %s is %s, current value is %s",
			l->name, mac_format(s->mac, want), mac_format(l->mac, have));
	if (s->promisc && !(l->flags & IFF_PROMISC))
		return err_set(e, ERR_CHECK,
			"Error: Tuning link %s configured promisc is true, current value is false",
			l->name);
	if (s->mtu && s->mtu != l->mtu)
		return err_set(e, ERR_CHECK,
			"Error: Tuning configured MTU of %s is %u, current value is %u", l->name,
			s->mtu, l->mtu);
	if (s->has_allmulti && s->allmulti != !!(l->flags & IFF_ALLMULTI))
		return err_set(e, ERR_CHECK,
			"Error: Tuning configured all-multicast mode of %s is %s, current value is "
			"%s",
			l->name, s->allmulti ? "true" : "false", s->allmulti ? "false" : "true");
	if (s->has_txqlen && s->txqlen != l->txqlen)
		return err_set(e, ERR_CHECK,
			"Error: Tuning configured transmit queue length of %s is %u, current value "
			"is %u",
			l->name, s->txqlen, l->txqlen);
	return 0;
}

struct comparison {
	const struct settings *settings;
	const char *ifname;
};

static int check_inside(void *arg, struct err *e)
{
	const struct comparison *c = arg;
	autonl *nl = NULL;
	struct link l;

	for (size_t i = 0; i < c->settings->len; i++)
		if (check_sysctl(&c->settings->sysctls[i], e))
			return -1;
	if (nl_open(&nl, NETLINK_ROUTE, e) || link_need(nl, c->ifname, &l, e))
		return -1;
	return check_link(c->settings, &l, e);
}

static int check(const struct request *req, struct err *e)
{
	struct comparison c = {.ifname = req->ifname};
	autosettings settings = {0};
	autoresult prev = {0};
	autoclose int netns = -1;
	bool present;

	c.settings = &settings;
	if (read_settings(req, &settings, e) ||
		request_prev_result(req, &prev, &present, "Required prevResult missing", e) ||
		netns_open(req->netns, &netns, e) != NETNS_OK)
		return -1;
	return netns_run(netns, check_inside, &c, e);
}

/* Whether an ADD of this config would be refused for what the node has: the configured sysctls are
 * allowed, the allowlist can be read and applied. */
static int status(const struct request *req, struct err *e)
{
	autosettings settings = {0};
	const char *path;

	if (data_dir(req, &path, e) || read_settings(req, &settings, e))
		return -1;
	return check_allowlist(&settings, e);
}

const struct applet applet_tuning = {
	.name = "tuning",
	.help = "set sysctls and link settings of a container's interface, chained",
	.kind = APPLET_META,
	.add = add,
	.del = del,
	.check = check,
	.gc = gc,
	.status = status,
};
