#include "runtime/valid.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <fcntl.h>
#include <string.h>

static int add_valid(json *list, const char *id, const char *ifname)
{
	json *item = json_new_object();

	if (json_set(item, "containerID", json_new_string(id)) ||
		json_set(item, "ifname", json_new_string(ifname)) || json_append(list, item))
		return -1;
	return 0;
}

int valid_add_pair(json *list, const char *pair, struct err *e)
{
	autofree char *id = strdup(pair);
	char *slash = id ? strrchr(id, '/') : NULL;

	if (!id)
		return err_memory(e);
	if (!slash || slash == id || !slash[1])
		return err_set(e, ERR_INVALID_ENVIRONMENT,
			"--valid wants CONTAINERID/IFNAME, not \"%s\"", pair);
	*slash = '\0';
	return add_valid(list, id, slash + 1) ? err_memory(e) : 0;
}

int valid_add_file(json *list, const char *path, struct err *e)
{
	autofree char *text = NULL;
	autojson *doc = NULL;
	size_t len;
	int ret = strcmp(path, "-") != 0 ? file_read(AT_FDCWD, path, JSON_MAX_SIZE, &text, &len)
					 : file_read_fd(STDIN_FILENO, JSON_MAX_SIZE, &text, &len);

	if (ret)
		return err_sys(e, -ret, ERR_IO, "error reading %s", path);
	doc = json_parse(text, len, ERR_DECODE, e);
	if (!doc)
		return err_wrap(e, "%s", path);
	if (!json_is_array(doc))
		return err_set(
			e, ERR_DECODE, "%s: expected array, got %s", path, json_type_name(doc));
	for (size_t i = 0; i < json_len(doc); i++) {
		const char *id = json_str(json_get(json_at(doc, i), "containerID"));
		const char *ifname = json_str(json_get(json_at(doc, i), "ifname"));

		if (!id || !ifname)
			return err_set(e, ERR_DECODE,
				"%s: each attachment wants containerID and ifname", path);
		if (add_valid(list, id, ifname))
			return err_memory(e);
	}
	return 0;
}

bool valid_has(const json *list, const char *id, const char *ifname)
{
	for (size_t i = 0; i < json_len(list); i++) {
		const json *item = json_at(list, i);

		if (!strcmp(json_str(json_get(item, "containerID")), id) &&
			!strcmp(json_str(json_get(item, "ifname")), ifname))
			return true;
	}
	return false;
}
