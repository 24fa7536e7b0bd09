#include "runtime/cache.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "cni/names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define KIND "cniCacheV1"

void cache_entry_free(struct cache_entry *c)
{
	free(c->network);
	free(c->id);
	free(c->ifname);
	free(c->netns);
	free(c->args);
	free(c->config);
	json_free(c->cap_args);
	json_free(c->result);
	*c = (struct cache_entry){0};
}

/* ---- base64, RFC 4648, section 4 ---- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *encode(const char *data, size_t len)
{
	const uint8_t *p = (const uint8_t *)data;
	char *out = malloc((len + 2) / 3 * 4 + 1), *at = out;

	if (!out)
		return NULL;
	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;

		v |= i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0;
		v |= i + 2 < len ? p[i + 2] : 0;
		*at++ = alphabet[v >> 18];
		*at++ = alphabet[v >> 12 & 63];
		*at++ = i + 1 < len ? alphabet[v >> 6 & 63] : '=';
		*at++ = i + 2 < len ? alphabet[v & 63] : '=';
	}
	*at = '\0';
	return out;
}

static char *decode(const char *text, size_t *len)
{
	size_t n = strlen(text);
	char *out = malloc(n / 4 * 3 + 1), *at = out;

	for (size_t i = 0; out && i < n; i += 4) {
		uint32_t v = 0;
		int pad = 0;

		for (size_t k = 0; k < 4; k++) {
			char c = i + k < n ? text[i + k] : '\0';
			const char *where = c && c != '=' ? strchr(alphabet, c) : NULL;
			bool padding = c == '=' && i + 4 == n && k >= 2;

			if ((!where && !padding) || (where && pad)) {
				free(out);
				return NULL;
			}
			pad += padding;
			v = v << 6 | (where ? (uint32_t)(where - alphabet) : 0);
		}
		*at++ = (char)(v >> 16);
		if (pad < 2)
			*at++ = (char)(v >> 8);
		if (pad < 1)
			*at++ = (char)v;
	}
	if (out) {
		*at = '\0';
		*len = (size_t)(at - out);
	}
	return out;
}

/* ---- the lock ---- */

/* A byte of the file for each key, as good as never shared; NULL is all of them. */
static int lock_byte(int fd, const char *key)
{
	struct flock part = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char digits[16];

	if (key) {
		hash_hex(digits, 15, key, NULL);
		part.l_start = strtoll(digits, NULL, 16);
		part.l_len = 1;
	}
	return fcntl(fd, F_OFD_SETLKW, &part);
}

int cache_lock(const char *dir, const char *id)
{
	autofree char *path = NULL;
	autoclose int fd = -1;

	if (asprintf(&path, "%s/cnitool.lock", dir) < 0) {
		path = NULL;
		return -1;
	}
	if (file_mkdirs(dir, 0700))
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd >= 0 && lock_byte(fd, id) < 0 ? -1 : take_fd(&fd);
}

void cache_lock_also(int lock, const char *key)
{
	if (lock >= 0)
		lock_byte(lock, key);
}

/* ---- names ---- */

/* The parts end up in a file name, so they must be what the protocol allows them to be. */
static int file_name(
	const char *network, const char *id, const char *ifname, char *out, struct err *e)
{
	const char *details;

	if (!name_valid(network) || !name_valid(id) || ifname_invalid(ifname, &details))
		return err_set(e, ERR_INVALID_ENVIRONMENT,
			"invalid network name, container ID or interface name");
	/* ".NAME.tmp" has to fit as well. */
	if (snprintf(out, NAME_MAX + 1, "%s-%s-%s", network, id, ifname) > NAME_MAX - 5)
		return err_set(e, ERR_INVALID_ENVIRONMENT,
			"network name and container ID are too long for a cache entry");
	return 0;
}

static int open_results(const char *dir, bool create, struct err *e)
{
	autofree char *path = NULL;
	int fd, ret = 0;

	if (asprintf(&path, "%s/results", dir) < 0) {
		path = NULL;
		return err_memory(e);
	}
	if (create)
		ret = file_mkdirs(path, 0700);
	fd = ret ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret || fd < 0)
		return err_sys(e, ret ? -ret : errno, ERR_IO, "result cache %s", path);
	return fd;
}

/* ---- writing ---- */

static json *attempt_object(const struct attempt *a)
{
	json *o = json_new_object();

	if (json_set(o, "occupied", json_new_bool(a->occupied)) ||
		(a->netns >= 0 && json_set(o, "netnsIdentity", json_new_int(a->netns)))) {
		json_free(o);
		return NULL;
	}
	return o;
}

static json *args_array(const char *args)
{
	json *list = json_new_array();
	autofree char *text = strdup(args);
	char *save = NULL;

	for (char *pair = text ? strtok_r(text, ";", &save) : NULL; list && pair;
		pair = strtok_r(NULL, ";", &save)) {
		char *eq = strchr(pair, '=');
		json *two = json_new_array();

		if (eq)
			*eq = '\0';
		if (json_append(two, json_new_string(pair)) ||
			json_append(two, json_new_string(eq ? eq + 1 : "")) ||
			json_append(list, two)) {
			json_free(list);
			return NULL;
		}
	}
	return list;
}

/* A copy with the keys of every object in it sorted. NULL when out of memory. */
static json *sorted(const json *j)
{
	autobuf text = {0};
	autoerr e = {0};

	json_write(&text, j, JSON_COMPACT_SORTED);
	return text.failed ? NULL : json_parse(text.data, text.len, ERR_SYSTEM, &e);
}

/* Key order is libcni's: readers do not care, people comparing files do. */
static json *document(const struct cache_entry *c)
{
	json *doc = json_new_object();
	autofree char *config = encode(c->config ? c->config : "", c->config_len);

	if (!doc || !config || json_set(doc, "kind", json_new_string(KIND)) ||
		json_set(doc, "containerId", json_new_string(c->id)) ||
		json_set(doc, "config", json_new_string(config)) ||
		json_set(doc, "ifName", json_new_string(c->ifname)) ||
		json_set(doc, "networkName", json_new_string(c->network)) ||
		(c->netns && *c->netns && json_set(doc, "netns", json_new_string(c->netns))) ||
		(c->args && *c->args && json_set(doc, "cniArgs", args_array(c->args))) ||
		(c->cap_args && json_set(doc, "capabilityArgs", sorted(c->cap_args))) ||
		json_set(doc, c->result ? "result" : "attempt",
			c->result ? sorted(c->result) : attempt_object(&c->attempt))) {
		json_free(doc);
		return NULL;
	}
	return doc;
}

int cache_write(const char *dir, const struct cache_entry *c, bool flush, struct err *e)
{
	char name[NAME_MAX + 1];
	autoclose int fd = -1;
	autojson *doc = NULL, *again = NULL;
	autobuf text = {0};
	int ret;

	if (file_name(c->network, c->id, c->ifname, name, e))
		return -1;
	fd = open_results(dir, true, e);
	if (fd < 0)
		return -1;
	doc = document(c);
	if (doc)
		json_write(&text, doc, JSON_COMPACT);
	if (!doc || text.failed)
		return err_memory(e);
	/* An entry is one level deeper than the result in it, and larger than both its parts: what
	 * could not be read again would be lost to GC. */
	again = json_parse(text.data, text.len, ERR_DECODE, e);
	if (!again)
		return err_wrap(e, "the cache entry %s/results/%s", dir, name);
	ret = file_replace(fd, name, text.data, text.len, 0600, flush);
	if (!ret && flush && fsync(fd) < 0)
		ret = -errno;
	return ret ? err_sys(e, -ret, ERR_IO, "failed to write the cache entry %s/results/%s", dir,
			     name)
		   : 0;
}

/* ---- reading ---- */

static char *copy_str(const json *doc, const char *key)
{
	const char *s = json_str(json_get(doc, key));

	return strdup(s ? s : "");
}

static char *join_args(const json *list)
{
	struct buf b = {0};

	for (size_t i = 0; i < json_len(list); i++) {
		const char *key = json_str(json_at(json_at(list, i), 0));
		const char *value = json_str(json_at(json_at(list, i), 1));

		if (key && value)
			buf_printf(&b, "%s%s=%s", b.len ? ";" : "", key, value);
	}
	if (b.failed) {
		buf_free(&b);
		return NULL;
	}
	return b.data ? b.data : strdup("");
}

static struct attempt read_attempt(const json *o)
{
	const json *netns = json_get(o, "netnsIdentity");

	return (struct attempt){
		.occupied = json_bool(json_get(o, "occupied")),
		.netns = json_is_int(netns) ? json_int(netns) : -1,
	};
}

static int take_entry(const json *doc, struct cache_entry *c, struct err *why)
{
	const char *kind = json_str(json_get(doc, "kind"));
	const char *config = json_str(json_get(doc, "config"));
	const json *caps = json_get(doc, "capabilityArgs"), *result = json_get(doc, "result");

	if (!kind || strcmp(kind, KIND) != 0)
		return err_set(why, ERR_DECODE, "wrong kind: %s", kind ? kind : "none");
	c->network = copy_str(doc, "networkName");
	c->id = copy_str(doc, "containerId");
	c->ifname = copy_str(doc, "ifName");
	c->netns = copy_str(doc, "netns");
	c->args = join_args(json_get(doc, "cniArgs"));
	c->config = config ? decode(config, &c->config_len) : strdup("");
	c->cap_args = json_is_object(caps) ? json_ref(caps) : NULL;
	c->result = json_is_object(result) ? json_ref(result) : NULL;
	c->attempt = read_attempt(json_get(doc, "attempt"));
	if (!c->network || !c->id || !c->ifname || !c->netns || !c->args)
		return err_sys(why, ENOMEM, ERR_SYSTEM, "cannot be read");
	if (!*c->ifname || !*c->network)
		return err_set(why, ERR_DECODE, "names no network or interface");
	if (!c->config)
		return err_set(why, ERR_DECODE, "its config is not base64");
	return 0;
}

/* The entry may be a good one: it was not seen. */
static bool is_unseen(int sys)
{
	return err_is_passing(sys) || sys == EPERM || sys == EACCES;
}

/* Before libcni had entries it kept the bare result. */
static bool is_bare_result(const json *doc)
{
	return !json_get(doc, "kind") && (json_get(doc, "ips") || json_get(doc, "interfaces") ||
						 json_get(doc, "ip4") || json_get(doc, "ip6"));
}

/* Returns 0, or 1 with why set. A bare result is accepted where `bare` names its attachment. */
static int read_entry(int fd, const char *name, const struct cache_entry *bare,
	struct cache_entry *c, struct err *why)
{
	autofree char *text = NULL;
	autojson *doc = NULL;
	size_t len;
	int ret = file_read(fd, name, JSON_MAX_SIZE, &text, &len);

	*c = (struct cache_entry){0};
	if (ret) {
		err_sys(why, -ret, ERR_IO, "cannot be read");
		return 1;
	}
	doc = json_parse(text, len, ERR_DECODE, why);
	if (doc && bare && is_bare_result(doc)) {
		*c = (struct cache_entry){
			.network = strdup(bare->network),
			.id = strdup(bare->id),
			.ifname = strdup(bare->ifname),
			.netns = strdup(""),
			.args = strdup(""),
			.config = strdup(""),
			.result = json_ref(doc),
		};
		if (c->network && c->id && c->ifname && c->netns && c->args && c->config)
			return 0;
	}
	if (!doc || take_entry(doc, c, why)) {
		cache_entry_free(c);
		return 1;
	}
	return 0;
}

int cache_read(const char *dir, const char *network, const char *id, const char *ifname,
	struct cache_entry *c, struct err *why, struct err *e)
{
	const struct cache_entry bare = {
		.network = (char *)network, .id = (char *)id, .ifname = (char *)ifname};
	char name[NAME_MAX + 1];
	autoclose int fd = -1;
	autoerr nobody = {0};
	struct stat st;

	*c = (struct cache_entry){0};
	if (!why)
		why = &nobody;
	if (file_name(network, id, ifname, name, e))
		return -1;
	fd = open_results(dir, false, e);
	if (fd < 0 && e->sys == ENOENT) {
		err_clear(e);
		return 1;
	}
	if (fd < 0)
		return -1;
	if (fstatat(fd, name, &st, 0) < 0)
		return errno == ENOENT
			       ? 1
			       : err_sys(e, errno, ERR_IO, "cache entry %s/results/%s", dir, name);
	if (read_entry(fd, name, &bare, c, why)) {
		if (!is_unseen(why->sys))
			return 1;
		err_merge(e, why);
		return err_wrap(e, "cache entry %s/results/%s", dir, name);
	}
	/* "a-b" + "c" and "a" + "b-c" share a file name. */
	if (!strcmp(c->network, network) && !strcmp(c->id, id) && !strcmp(c->ifname, ifname))
		return 0;
	err_set(why, ERR_CONFLICT, "it belongs to network %s, container %s, interface %s",
		c->network, c->id, c->ifname);
	cache_entry_free(c);
	return 1;
}

int cache_remove(
	const char *dir, const char *network, const char *id, const char *ifname, struct err *e)
{
	char name[NAME_MAX + 1];
	autoclose int fd = -1;
	int ret;

	if (file_name(network, id, ifname, name, e))
		return -1;
	fd = open_results(dir, false, e);
	if (fd < 0 && e->sys == ENOENT) {
		err_clear(e);
		return 0;
	}
	if (fd < 0)
		return -1;
	ret = file_remove(fd, name);
	return ret ? err_sys(e, -ret, ERR_IO, "failed to remove the cache entry %s/results/%s", dir,
			     name)
		   : 0;
}

int cache_each(const char *dir, int (*fn)(const struct cache_entry *c, void *arg), void *arg,
	struct err *e)
{
	autonames names = {0};
	autoclose int fd = open_results(dir, false, e);
	int ret = 0;

	if (fd < 0 && e->sys == ENOENT) {
		err_clear(e);
		return 0;
	}
	if (fd < 0)
		return -1;
	ret = file_names(fd, &names);
	if (ret)
		return err_sys(e, -ret, ERR_IO, "result cache %s/results", dir);
	for (size_t i = 0; i < names.len; i++) {
		autoentry c = {0};
		autoerr why = {0};

		if (!ret && !read_entry(fd, names.list[i], NULL, &c, &why))
			ret = fn(&c, arg);
		else if (is_unseen(why.sys))
			err_merge(e, &why);
	}
	return !ret && e->set ? -1 : ret;
}
