#include "runtime/conflist.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"
#include "cni/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ---- parsing ---- */

/* Type names as they stand in libcni's messages. */
static const char *go_type(const json *j)
{
	if (json_is_object(j))
		return "map[string]interface {}";
	if (json_is_array(j))
		return "[]interface {}";
	if (json_is_string(j))
		return "string";
	if (json_is_bool(j))
		return "bool";
	return !j || json_is_null(j) ? "<nil>" : "float64";
}

static int bad(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int bad(struct err *e, const char *fmt, ...)
{
	autofree char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return err_set(e, ERR_INVALID_CONFIG, "error parsing configuration list: %s",
		text ? text : "out of memory");
}

/* A key of a list: spelled exactly, and null is not absent but of a wrong type. */
static const json *member(const json *doc, const char *key)
{
	for (void *it = json_is_object(doc) ? json_iter(doc) : NULL; it;
		it = json_iter_next(doc, it))
		if (!strcmp(json_iter_key(it), key))
			return json_iter_value(it);
	return NULL;
}

/* A flag of a list may be written as a string. */
static int read_flag(const json *doc, const char *key, bool *out, struct err *e)
{
	const json *node = member(doc, key);
	const char *text = json_str(node);

	if (!node)
		return 0;
	if (json_is_bool(node)) {
		*out = json_bool(node);
		return 0;
	}
	if (!text)
		return bad(e, "invalid type %s for %s", go_type(node), key);
	if (strcasecmp(text, "true") != 0 && strcasecmp(text, "false") != 0)
		return bad(e, "invalid value \"%s\" for %s", text, key);
	*out = !strcasecmp(text, "true");
	return 0;
}

/* The highest version that we know of, of cniVersion and cniVersions. */
static int choose_version(const json *doc, const char *version, const char **chosen, struct err *e)
{
	const json *list = member(doc, "cniVersions");
	autoerr why = {0};
	bool any = false;
	int cmp = 0;

	*chosen = version;
	if (!list)
		return 0;
	if (!json_is_array(list))
		return bad(e, "invalid type for cniVersions: %s", go_type(list));
	if (*version && cni_version_cmp(version, CNI_CURRENT, &cmp, &why))
		return bad(e, "invalid cniVersion %s: %s", version, why.msg);
	any = *version && cmp <= 0;
	for (size_t i = 0; i < json_len(list); i++) {
		const char *entry = json_str(json_at(list, i));

		if (!entry)
			return bad(e, "invalid type for cniVersions index %zu: %s", i,
				go_type(json_at(list, i)));
		if (cni_version_cmp(entry, CNI_CURRENT, &cmp, &why))
			return bad(e, "invalid cniVersions entry %s at index %zu: %s", entry, i,
				why.msg);
		if (cmp > 0)
			continue;
		if (any && cni_version_cmp(entry, *chosen, &cmp, &why))
			return bad(e, "invalid cniVersion %s: %s", *chosen, why.msg);
		if (!any || cmp > 0)
			*chosen = entry;
		any = true;
	}
	return 0;
}

static int bad_plugin(const struct conflist *l, struct err *e, const char *fmt, const char *what)
{
	err_set(e, ERR_INVALID_CONFIG, fmt, what);
	return err_wrap(
		e, "failed to parse plugin config %zu: error parsing configuration", l->len);
}

static int append_plugin(struct conflist *l, const json *conf, struct err *e)
{
	const char *type = json_str(json_get(conf, "type"));
	const json *caps = json_get(conf, "capabilities");
	struct plugin_conf *p;

	if (!json_is_object(conf))
		return bad_plugin(l, e, "expected object, got %s", json_type_name(conf));
	if (!type || !*type)
		return bad_plugin(l, e, "%s", "missing 'type'");
	if (caps && !json_is_object(caps))
		return bad_plugin(
			l, e, "capabilities: expected object, got %s", json_type_name(caps));
	for (void *it = caps ? json_iter(caps) : NULL; it; it = json_iter_next(caps, it))
		if (!json_is_bool(json_iter_value(it)))
			return bad_plugin(
				l, e, "capability %s: expected boolean", json_iter_key(it));
	p = vec_add(l->plugins, l->len);
	if (!p)
		return err_memory(e);
	*p = (struct plugin_conf){type, json_ref(conf)};
	return 0;
}

static int read_inline(struct conflist *l, const json *doc, bool only_inlined, struct err *e)
{
	const json *plugins = member(doc, "plugins");

	if (!plugins)
		return only_inlined
			       ? bad(e, "`loadOnlyInlinedPlugins` is true, and no 'plugins' key")
			       : 0;
	if (!json_is_array(plugins))
		return bad(e, "invalid 'plugins' type %s", go_type(plugins));
	if (!json_len(plugins))
		return bad(e, "no plugins in list");
	for (size_t i = 0; i < json_len(plugins); i++)
		if (append_plugin(l, json_at(plugins, i), e))
			return -1;
	return 0;
}

static bool has_ext(const char *name, const char *ext)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, ext);
}

static int only_conf(const struct dirent *d)
{
	return has_ext(d->d_name, ".conf");
}

static int bytewise(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void free_names(struct dirent **names, int n)
{
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static int append_file(struct conflist *l, const char *path, struct err *e)
{
	autofree char *text = NULL;
	autojson *conf = NULL;
	size_t len;
	int ret = file_read(AT_FDCWD, path, JSON_MAX_SIZE, &text, &len);

	if (ret == -EINVAL || ret == -EISDIR)
		return 0; /* a directory or the like, named as a file would be */
	if (ret)
		return err_sys(e, -ret, ERR_IO, "error reading %s", path);
	conf = json_parse(text, len, ERR_INVALID_CONFIG, e);
	if (!conf || append_plugin(l, conf, e))
		return err_wrap(e, "%s", path);
	return 0;
}

/* The plugins in files DIR/NAME/....conf; the name was checked before it became part of a path. */
static int read_plugin_dir(struct conflist *l, const char *dir, struct err *e)
{
	struct dirent **names;
	autofree char *sub = NULL;
	int n, ret = 0;

	if (asprintf(&sub, "%s/%s", dir, l->name) < 0) {
		sub = NULL;
		return err_memory(e);
	}
	n = scandir(sub, &names, only_conf, bytewise);
	if (n < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_sys(e, errno, ERR_IO, "error reading %s", sub);
	for (int i = 0; i < n && !ret; i++) {
		autofree char *path = NULL;

		if (asprintf(&path, "%s/%s", sub, names[i]->d_name) < 0) {
			path = NULL;
			ret = err_memory(e);
		} else {
			ret = append_file(l, path, e);
		}
	}
	free_names(names, n);
	return ret;
}

static int read_name(struct conflist *l, const json *doc, struct err *e)
{
	const json *name = member(doc, "name");

	if (!name)
		return bad(e, "no name");
	if (!json_is_string(name))
		return bad(e, "invalid name type %s", go_type(name));
	if (!name_valid(json_str(name)))
		return bad(e, "invalid characters found in network name \"%s\"", json_str(name));
	l->name = strdup(json_str(name));
	return l->name ? 0 : err_memory(e);
}

static int parse_list(struct conflist *l, const json *doc, const char *dir, struct err *e)
{
	const json *version = member(doc, "cniVersion");
	bool only_inlined = false;
	const char *chosen;

	if (!json_is_object(doc))
		return bad(e, "expected object, got %s", json_type_name(doc));
	if (read_name(l, doc, e))
		return -1;
	if (version && !json_is_string(version))
		return bad(e, "invalid cniVersion type %s", go_type(version));
	if (choose_version(doc, version ? json_str(version) : "", &chosen, e) ||
		read_flag(doc, "disableCheck", &l->disable_check, e) ||
		read_flag(doc, "disableGC", &l->disable_gc, e) ||
		read_flag(doc, "loadOnlyInlinedPlugins", &only_inlined, e) ||
		read_inline(l, doc, only_inlined, e))
		return -1;
	l->version = strdup(chosen);
	if (!l->version)
		return err_memory(e);
	if (!only_inlined && dir && read_plugin_dir(l, dir, e))
		return -1;
	return l->len ? 0 : err_set(e, ERR_INVALID_CONFIG, "no plugin configs found");
}

/* {"cniVersion":...,"name":...,"plugins":[CONF]}, keys sorted. */
static json *promote(const json *conf, struct err *e)
{
	const char *version = json_str(json_get(conf, "cniVersion"));
	const char *name = json_str(json_get(conf, "name"));
	json *list, *plugins;

	if (!json_str(json_get(conf, "type"))) {
		err_set(e, ERR_INVALID_CONFIG, "error parsing configuration: missing 'type'");
		return NULL;
	}
	list = json_new_object();
	plugins = json_new_array();
	if (!list || json_append(plugins, json_ref(conf)) ||
		json_set(list, "cniVersion", json_new_string(version ? version : "")) ||
		(name && json_set(list, "name", json_new_string(name))) ||
		json_set(list, "plugins", plugins)) {
		json_free(list);
		err_memory(e);
		return NULL;
	}
	return list;
}

/* True for what promote() made, read back from the cache: an inlined plugin has no name of its
 * own. */
static bool is_promoted(const json *doc)
{
	const json *plugins = member(doc, "plugins");
	const char *name = json_str(json_get_exact(doc, "name"));
	const char *own = json_str(json_get(json_at(plugins, 0), "name"));
	size_t keys = 0;

	for (void *it = json_is_object(doc) ? json_iter(doc) : NULL; it;
		it = json_iter_next(doc, it))
		keys++;
	return keys == 3 && json_get_exact(doc, "cniVersion") && json_len(plugins) == 1 && name &&
	       own && !strcmp(name, own);
}

static int keep_bytes(
	struct conflist *l, const json *promoted, const char *text, size_t len, struct err *e)
{
	struct buf b = {0};

	if (promoted)
		json_write(&b, promoted, JSON_COMPACT_SORTED);
	else
		buf_put(&b, text, len);
	if (b.failed) {
		buf_free(&b);
		return err_memory(e);
	}
	l->bytes = b.data;
	l->bytes_len = b.len;
	return 0;
}

int conflist_parse(struct conflist *l, const char *text, size_t len, bool single, const char *dir,
	struct err *e)
{
	autojson *doc = json_parse(text, len, ERR_INVALID_CONFIG, e);
	autojson *promoted = NULL;

	*l = (struct conflist){0};
	if (!doc)
		return err_wrap(e, single ? "error parsing configuration"
					  : "error parsing configuration list");
	if (single) {
		promoted = promote(doc, e);
		if (!promoted)
			return -1;
	}
	/* A promoted configuration has no plugin directory. */
	if (parse_list(l, single ? promoted : doc, single || is_promoted(doc) ? NULL : dir, e) ||
		keep_bytes(l, promoted, text, len, e)) {
		conflist_free(l);
		return -1;
	}
	return 0;
}

void conflist_free(struct conflist *l)
{
	for (size_t i = 0; i < l->len; i++)
		json_free(l->plugins[i].conf);
	free(l->plugins);
	free(l->file);
	free(l->name);
	free(l->version);
	free(l->bytes);
	*l = (struct conflist){0};
}

/* ---- finding ---- */

static int lists_only(const struct dirent *d)
{
	return has_ext(d->d_name, ".conflist");
}

static int singles_only(const struct dirent *d)
{
	return has_ext(d->d_name, ".conf") || has_ext(d->d_name, ".json");
}

/* One file; 1 when it is no regular file and so none of ours. */
static int load(struct conflist *l, const char *dir, const char *name, bool single, struct err *e)
{
	autofree char *path = NULL, *text = NULL;
	size_t len;
	int ret;

	*l = (struct conflist){0};
	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		path = NULL;
		return err_memory(e);
	}
	ret = file_read(AT_FDCWD, path, JSON_MAX_SIZE, &text, &len);
	if (ret == -EINVAL || ret == -EISDIR)
		return 1;
	if (ret)
		return err_sys(e, -ret, ERR_IO, "error reading %s", path);
	if (conflist_parse(l, text, len, single, dir, e))
		return err_wrap(e, "%s", path);
	l->file = take_ptr(path);
	return 0;
}

struct walk {
	int (*fn)(struct conflist *l, void *arg);
	void *arg;
	void (*broken)(const char *file, const struct err *why, void *arg);
	size_t files;
};

static int walk_files(const char *dir, bool single, struct walk *w, struct err *e)
{
	struct dirent **names;
	int n = scandir(dir, &names, single ? singles_only : lists_only, bytewise), ret = 0;

	if (n < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, ERR_IO, "error reading %s", dir);
	for (int i = 0; i < n && !ret; i++) {
		autolist l = {0};
		autoerr why = {0};
		int got = load(&l, dir, names[i]->d_name, single, &why);

		w->files += got <= 0;
		if (got < 0 && w->broken)
			w->broken(names[i]->d_name, &why, w->arg);
		if (!got)
			ret = w->fn(&l, w->arg);
	}
	free_names(names, n);
	return ret;
}

struct find {
	struct conflist *out;
	const char *name;
	const struct report *remarks;
	struct buf broken;
};

/* The match is taken out of the walk's hands, which frees what it read. */
static int match(struct conflist *l, void *arg)
{
	struct find *f = arg;

	if (strcmp(l->name, f->name) != 0)
		return 0;
	*f->out = *l;
	*l = (struct conflist){0};
	return 1;
}

static void note_broken(const char *file, const struct err *why, void *arg)
{
	struct find *f = arg;

	report(f->remarks, "skipped: %s", why->msg);
	buf_printf(&f->broken, "%s%s", f->broken.len ? ", " : "", file);
}

int conflist_find(struct conflist *l, const char *dir, const char *name,
	const struct report *remarks, struct err *e)
{
	struct find f = {.out = l, .name = name, .remarks = remarks};
	struct walk w = {match, &f, note_broken, 0};
	int ret = walk_files(dir, false, &w, e);

	if (!ret)
		ret = walk_files(dir, true, &w, e);
	if (!ret && !w.files)
		ret = err_set(e, ERR_INVALID_CONFIG, "no net configurations found in %s", dir);
	else if (!ret) {
		ret = err_set(e, ERR_INVALID_CONFIG, "no net configuration with name \"%s\" in %s",
			name, dir);
		if (f.broken.len)
			err_detail(e, "broken files were skipped: %s", f.broken.data);
	}
	buf_free(&f.broken);
	return ret > 0 ? 0 : -1;
}

struct names {
	int (*fn)(const struct conflist *l, void *arg);
	void (*broken)(const char *file, const struct err *why, void *arg);
	void *arg;
	struct buf seen; /* names, each with its NUL */
};

static int first_of_name(struct conflist *l, void *arg)
{
	struct names *n = arg;

	for (size_t at = 0; at < n->seen.len; at += strlen(n->seen.data + at) + 1)
		if (!strcmp(n->seen.data + at, l->name))
			return 0;
	buf_put(&n->seen, l->name, strlen(l->name) + 1);
	return n->fn(l, n->arg);
}

static void pass_broken(const char *file, const struct err *why, void *arg)
{
	struct names *n = arg;

	if (n->broken)
		n->broken(file, why, n->arg);
}

int conflist_each(const char *dir, int (*fn)(const struct conflist *l, void *arg), void *arg,
	void (*broken)(const char *file, const struct err *why, void *arg), struct err *e)
{
	struct names n = {.fn = fn, .broken = broken, .arg = arg};
	struct walk w = {first_of_name, &n, pass_broken, 0};
	int ret = walk_files(dir, false, &w, e);

	if (!ret)
		ret = walk_files(dir, true, &w, e);
	buf_free(&n.seen);
	return ret;
}

/* ---- a plugin's stdin ---- */

/* runtimeConfig: of the capability args those that the plugin declares. NULL: none of them. */
static int capabilities(const json *conf, const json *args, json **out)
{
	const json *caps = json_get(conf, "capabilities");

	*out = NULL;
	for (void *it = caps ? json_iter(caps) : NULL; it; it = json_iter_next(caps, it)) {
		const json *value = json_get_exact(args, json_iter_key(it));

		if (!json_bool(json_iter_value(it)) || !value)
			continue;
		if (!*out)
			*out = json_new_object();
		if (!*out || json_set(*out, json_iter_key(it), json_ref(value)))
			return -1;
	}
	return 0;
}

static int put(json *doc, const char *key, json *value)
{
	json_del(doc, key);
	return json_set(doc, key, value);
}

static int put_runtime_config(json *doc, const struct conflist *l, size_t plugin, const json *args,
	const struct report *remarks)
{
	json *runtime = NULL;

	if (capabilities(l->plugins[plugin].conf, args, &runtime)) {
		json_free(runtime);
		return -1;
	}
	if (!runtime)
		return 0;
	if (json_get(doc, "runtimeConfig"))
		report(remarks,
			"network \"%s\": the runtimeConfig in the file of plugin %s is replaced",
			l->name, l->plugins[plugin].type);
	return put(doc, "runtimeConfig", runtime);
}

int conflist_stdin(const struct conflist *l, size_t plugin, const struct plugin_input *in,
	const struct report *remarks, struct buf *out, struct err *e)
{
	autojson *doc = json_dup(l->plugins[plugin].conf);
	json *prev;

	if (!doc || put(doc, "name", json_new_string(l->name)) ||
		put(doc, "cniVersion", json_new_string(l->version)))
		return err_memory(e);
	json_del(doc, "capabilities");
	json_del(doc, "prevResult"); /* one that an operator left in the file is nobody's */
	if (in->capability_args && put_runtime_config(doc, l, plugin, in->capability_args, remarks))
		return err_memory(e);
	if (in->prev) {
		prev = result_to_json(in->prev, l->version, e);
		if (!prev)
			return -1;
		if (put(doc, "prevResult", prev))
			return err_memory(e);
	}
	if (in->attachments && (put(doc, "cni.dev/valid-attachments", json_ref(in->attachments)) ||
				       put(doc, "cni.dev/attachments", json_ref(in->attachments))))
		return err_memory(e);
	json_write(out, doc, JSON_COMPACT);
	return out->failed ? err_memory(e) : 0;
}
