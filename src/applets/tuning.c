/* tuning: sysctls and link settings of a container's interface. A chained plugin.
 *
 * The sysctls stay until the namespace goes. The link may outlive it (a physical one goes back to
 * the host), so what its settings were is kept in a file (tuning/backup.h), and DEL restores them.
 * reference/meta.md, section 1. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mac.h"
#include "base/vec.h"
#include "cni/applet.h"
#include "cni/args.h"
#include "netlink/netns.h"
#include "netlink/sysctl.h"
#include "tuning/allowlist.h"
#include "tuning/backup.h"
#include "tuning/linkstate.h"
#include "json/keys.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Far beyond what there is to set, so that a config of megabytes is refused and not applied. */
#define MAX_SYSCTLS 1024

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
	struct linkstate link; /* what is wanted of the interface */
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

static int set_sysctl(struct settings *s, const char *name, const char *value, struct err *e)
{
	struct sysctl *at = NULL;

	for (size_t i = 0; i < s->len && !at; i++)
		if (!strcmp(s->sysctls[i].name, name))
			at = &s->sysctls[i];
	if (!at) {
		char *copy;

		if (s->len == MAX_SYSCTLS)
			return err_set(e, ERR_INVALID_CONFIG, "more than %d sysctls", MAX_SYSCTLS);
		copy = strdup(name);
		at = copy ? vec_add(s->sysctls, s->len) : NULL;
		if (!at) {
			free(copy);
			return err_memory(e);
		}
		at->name = copy;
	}
	free(at->value);
	at->value = strdup(value);
	return at->value ? 0 : err_memory(e);
}

static int set_sysctls(struct settings *s, const json *map, struct err *e)
{
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

/* What the config itself and its "args"."cni" can both say. */
struct keys {
	const json *sysctl;
	const char *mac; /* NULL: nothing; "": leave it */
	int64_t mtu;     /* 0: leave it */
	int64_t txqlen;  /* -1: nothing */
	bool promisc, allmulti;
};

static const struct json_key key_table[] = {
	JSON_KEY_OBJECT(struct keys, "sysctl", sysctl),
	JSON_KEY_STR(struct keys, "mac", mac),
	JSON_KEY_INT(struct keys, "mtu", mtu, 0, INT32_MAX),
	JSON_KEY_INT(struct keys, "txQLen", txqlen, 0, INT32_MAX),
	JSON_KEY_BOOL(struct keys, "promisc", promisc),
	JSON_KEY_BOOL(struct keys, "allmulti", allmulti),
	JSON_KEYS_END,
};

/* Reads the keys of one of the two over what the settings hold already. *mac stays as it is where
 * the key is absent. */
static int read_keys(const json *from, struct settings *s, const char **mac, struct err *e)
{
	struct linkstate *l = &s->link;
	struct keys k = {.mac = *mac, .mtu = l->mtu, .txqlen = -1, .promisc = l->promisc};

	if (json_read_keys(from, key_table, &k, e) || set_sysctls(s, k.sysctl, e))
		return -1;
	*mac = k.mac;
	l->mtu = (uint32_t)k.mtu;
	l->has_mtu = k.mtu;
	/* False means "leave it", not "off". */
	l->promisc = l->has_promisc = k.promisc;
	if (json_get(from, "allmulti")) {
		l->has_allmulti = true;
		l->allmulti = k.allmulti;
	}
	if (k.txqlen >= 0) {
		l->has_txqlen = true;
		l->txqlen = (uint32_t)k.txqlen;
	}
	return 0;
}

/* The MAC address that CNI_ARGS or the runtime ask for: *mac stays as it is where neither does. An
 * empty text asks for nothing. *from_args is what *mac may point to afterwards; owned. */
static int read_asked_mac(
	const struct request *req, char **from_args, const char **mac, struct err *e)
{
	static const char *const known[] = {"MAC", NULL};
	const json *runtime;
	const char *asked = "";

	if (request_cni_args(req, known, from_args, e) || request_runtime_config(req, &runtime, e))
		return -1;
	if (*from_args && **from_args)
		*mac = *from_args;
	if (runtime && json_get_str(runtime, "mac", &asked, e))
		return -1;
	if (*asked)
		*mac = asked;
	return 0;
}

static int set_mac(struct settings *s, const char *text, struct err *e)
{
	s->link.has_mac = *text;
	if (*text && !mac_parse(text, s->link.mac))
		return err_set(e, ERR_INVALID_CONFIG,
			"invalid MAC address \"%s\": six bytes wanted", text);
	return 0;
}

/* A parsed document has only the last of equal keys, and which value was meant nobody knows. */
static int refuse_duplicates(const struct request *req, struct err *e)
{
	autofree char *name = json_duplicate_key(req->text, "sysctl");

	if (!name)
		return 0;
	err_set(e, ERR_INVALID_CONFIG, "duplicated sysctl keys are not allowed");
	return err_detail(e, "\"%s\" is given twice", name);
}

/* ---- sysctl names ---- */

/* The path below /proc/sys for a name: dots become slashes, the first IFNAME the interface, empty
 * parts vanish. Only what lies below net/ belongs to the namespace. No part can be ".." but by an
 * interface of that name, which the checks of the environment refuse; refused here all the same. */
static int find_path(struct sysctl *s, const char *ifname, struct err *e)
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

/* Weakest first: the config, CNI_ARGS, runtimeConfig, args.cni. */
static int read_settings(const struct request *req, struct settings *s, struct err *e)
{
	autofree char *from_args = NULL;
	const char *mac = "";
	const json *args_cni;

	if (request_args_cni(req, &args_cni, e) || read_keys(req->conf, s, &mac, e) ||
		refuse_duplicates(req, e) || read_asked_mac(req, &from_args, &mac, e) ||
		(args_cni && read_keys(args_cni, s, &mac, e)) || set_mac(s, mac, e))
		return -1;
	for (size_t i = 0; i < s->len; i++)
		if (find_path(&s->sysctls[i], req->ifname, e))
			return -1;
	return 0;
}

static int read_dir(const struct request *req, const char **dir, struct err *e)
{
	*dir = "";
	if (json_get_str(req->conf, "dataDir", dir, e))
		return -1;
	if (!**dir)
		*dir = BACKUP_DIR;
	return 0;
}

static int check_allowlist(const struct settings *s, struct err *e)
{
	autoallowlist list = {0};

	if (!s->len)
		return 0;
	if (allowlist_open(&list, e))
		return -1;
	for (size_t i = 0; i < s->len; i++)
		if (allowlist_check(&list, s->sysctls[i].name, e))
			return -1;
	return 0;
}

/* ---- the link in its namespace ---- */

/* Opens a namespace and tells its identity, by which a backup knows again where its link was. */
static enum netns_state open_netns(const char *path, int *fd, uint64_t *identity, struct err *e)
{
	enum netns_state state = netns_open(path, fd, e);

	if (state != NETNS_OK)
		return state;
	*identity = netns_identity(*fd);
	if (*identity)
		return NETNS_OK;
	err_sys(e, errno, ERR_INVALID_NETNS, "failed to open netns \"%s\"", path);
	return NETNS_ERROR;
}

struct restore {
	const char *ifname;
	const struct linkstate *state;
};

/* Runs inside the namespace. A link that is gone needs nothing. */
static int restore_link(void *arg, struct err *e)
{
	const struct restore *restore = arg;
	const char *what = "";
	autonl *nl = NULL;
	struct link l;
	int ret;

	if (nl_open(&nl, NETLINK_ROUTE, e))
		return -1;
	ret = link_get(nl, restore->ifname, &l);
	if (ret == -ENODEV)
		return 0;
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up \"%s\"", restore->ifname);
	ret = linkstate_apply(nl, l.index, restore->state, &what);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to restore the %s of \"%s\"", what,
			     restore->ifname)
		   : 0;
}

/* ---- ADD ---- */

/* An ADD under way, and what it takes to undo it. */
struct change {
	struct settings settings;
	const char *ifname; /* borrowed: the request outlives the undo stack */
	const char *network;
	int netns;
	uint64_t identity; /* of the namespace */
	int dir;           /* of the backup, -1 while there is none */
	char *file;        /* its name in there */
	char *previous;    /* what was in it, NULL: it did not exist */
	size_t previous_len;
	bool file_written;
	size_t written;          /* sysctls so far */
	struct linkstate before; /* of the link, all that is about to change */
	bool link_touched;
};

static void change_free(void *arg)
{
	struct change *c = arg;

	settings_free(&c->settings);
	cleanup_closep(&c->netns);
	cleanup_closep(&c->dir);
	free(c->file);
	free(c->previous);
	free(c);
}

static int restore_inside(void *arg, struct err *e)
{
	struct change *c = arg;
	struct restore link = {c->ifname, &c->before};
	int ret = c->link_touched ? restore_link(&link, e) : 0;

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
	autobackup old = {0};
	struct linkstate keep = {0};
	int ret = backup_read(c->dir, c->file, &old);

	if (ret && ret != -ENOENT && ret != -EBADMSG)
		return err_sys(e, -ret, ERR_IO, "failed to read the backup file %s", c->file);
	c->previous = take_ptr(old.text);
	c->previous_len = old.len;
	/* What belongs to another network or namespace is left over from a container that is gone.
	 */
	if (!ret && backup_is_of(&old, c->netns) &&
		(!old.network || !strcmp(old.network, c->network)))
		keep = old.link;
	linkstate_keep(&keep, &c->settings.link, l);
	ret = backup_write(c->dir, c->file, &keep, c->network, c->identity);
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
	const struct linkstate *wanted = &c->settings.link;
	const char *what = "";
	autonl *nl = NULL;
	struct link l;
	int ret;

	if (linkstate_any(wanted) &&
		(nl_open(&nl, NETLINK_ROUTE, e) || link_need(nl, c->ifname, &l, e)))
		return -1;
	if (write_sysctls(c, e))
		return -1;
	if (!nl)
		return 0;
	if (save_backup(c, &l, e))
		return -1;
	linkstate_keep(&c->before, wanted, &l);
	c->link_touched = true;
	ret = linkstate_apply(nl, l.index, wanted, &what);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to set the %s of \"%s\"", what, c->ifname)
		   : 0;
}

/* The directory is made with a mode that can be entered, unlike the Go plugin's 0600. */
static int open_backup(const struct request *req, struct change *c, struct err *e)
{
	const char *path;
	int ret;

	if (read_dir(req, &path, e))
		return -1;
	ret = file_mkdirs(path, 0700);
	if (ret)
		return err_sys(e, -ret, ERR_IO, "failed to create the directory %s", path);
	c->dir = backup_dir(path);
	if (c->dir < 0)
		return err_sys(e, -c->dir, ERR_IO, "failed to open the directory %s", path);
	c->file = backup_name(req->id, req->ifname);
	return c->file ? 0 : err_memory(e);
}

/* The container's interface in the result now has another MAC address, and since 1.1.0 an MTU. */
static int update_result(
	const struct request *req, const struct linkstate *l, struct result *r, struct err *e)
{
	char mac[MAC_STRLEN];

	for (size_t i = 0; i < r->ifaces_len; i++) {
		struct iface *f = &r->ifaces[i];

		if (!f->sandbox || strcmp(f->name, req->ifname) != 0)
			continue;
		if (l->has_mac && result_set_str(&f->mac, mac_format(l->mac, mac), e))
			return -1;
		if (l->has_mtu && !strcmp(req->version, "1.1.0"))
			f->mtu = l->mtu;
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
		update_result(req, &c->settings.link, &reply->result, e) ||
		open_netns(req->netns, &c->netns, &c->identity, e) != NETNS_OK ||
		(linkstate_any(&c->settings.link) && open_backup(req, c, e))) {
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
	struct restore link = {req->ifname, &backup->link};
	autoclose int netns = -1;
	uint64_t identity;

	if (!*req->netns)
		return 0;
	switch (open_netns(req->netns, &netns, &identity, e)) {
	case NETNS_OK:
		return backup_is_of(backup, netns) ? netns_run(netns, restore_link, &link, e) : 0;
	case NETNS_ERROR: return -1;
	default: err_clear(e); return 0;
	}
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
	/* With one that is no string no ADD succeeded: what there may be is in the usual place. */
	if (read_dir(req, &path, &invalid))
		path = BACKUP_DIR;
	dir = backup_dir(path);
	ret = dir < 0 ? dir : backup_read(dir, name, &backup);
	if (ret == -ENOENT || (dir < 0 && ret == -ENOTDIR))
		return 0;
	if (dir < 0)
		return err_sys(e, -ret, ERR_IO, "failed to open the directory %s", path);
	if (ret && !backup_is_rubbish(ret))
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

/* Removes the file when it says it is of this network. What the Go plugin wrote does not say. */
static int sweep_file(const struct request *req, int dir, const char *name, struct err *e)
{
	autobackup b = {0};
	int ret = backup_read(dir, name, &b);

	if (ret && ret != -ENOENT && !backup_is_rubbish(ret))
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

	if (read_dir(req, &path, e))
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

		if (!backup_is_name(entry->d_name) || is_valid_name(&valid, entry->d_name))
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
	return linkstate_check(&c->settings->link, &l, e);
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

	if (read_dir(req, &path, e) || read_settings(req, &settings, e))
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
