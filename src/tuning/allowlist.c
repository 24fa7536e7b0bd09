#include "tuning/allowlist.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"
#include "tuning/regexp.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define ALLOWLIST     "/etc/cni/tuning/allowlist.conf"
#define ALLOWLIST_MAX (1u << 20)

struct allowlist_entry {
	const char *line;
	bool compiled; /* when first asked for */
	regex_t re;
};

/* Without the blanks around it. */
static char *trim(char *line)
{
	char *end = line + strlen(line);

	while (isspace((unsigned char)*line))
		line++;
	while (end > line && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return line;
}

static int split(struct allowlist *a, struct err *e)
{
	char *rest, *line;

	a->lines = rest = strdup(a->text);
	if (!rest)
		return err_memory(e);
	while ((line = strsep(&rest, "\n"))) {
		struct allowlist_entry *entry;

		line = trim(line);
		if (!*line)
			continue;
		entry = vec_add(a->entries, a->len);
		if (!entry)
			return err_memory(e);
		entry->line = line;
	}
	return 0;
}

int allowlist_open(struct allowlist *a, struct err *e)
{
	int ret;

	*a = (struct allowlist){0};
	ret = file_read(AT_FDCWD, ALLOWLIST, ALLOWLIST_MAX, &a->text, NULL);
	a->absent = ret == -ENOENT || ret == -ENOTDIR;
	if (a->absent)
		return 0;
	if (ret)
		return err_sys(e, -ret, ERR_IO, "failed to read the allowlist %s", ALLOWLIST);
	return split(a, e);
}

void allowlist_close(struct allowlist *a)
{
	for (size_t i = 0; i < a->len; i++)
		if (a->entries[i].compiled)
			regfree(&a->entries[i].re);
	free(a->entries);
	free(a->lines);
	free(a->text);
	*a = (struct allowlist){0};
}

/* 1, 0, or -1 with e set. */
static int matches(struct allowlist_entry *entry, const char *name, struct err *e)
{
	if (!entry->compiled) {
		if (regexp_compile(&entry->re, entry->line, e))
			return err_wrap(e, "%s", ALLOWLIST);
		entry->compiled = true;
	}
	return regexp_matches(&entry->re, name, e);
}

int allowlist_check(struct allowlist *a, const char *name, struct err *e)
{
	int ret = a->absent;

	for (size_t i = 0; !ret && i < a->len; i++)
		ret = matches(&a->entries[i], name, e);
	if (ret)
		return ret < 0 ? -1 : 0;
	err_set(e, ERR_INVALID_CONFIG, "Sysctl %s is not allowed: it is not in the allowlist %s",
		name, ALLOWLIST);
	return err_detail(e, "%s", a->text);
}
