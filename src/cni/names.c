#include "cni/names.h"

#include "base/cleanup.h"
#include "json/json.h"

#include <string.h>

bool name_valid(const char *name)
{
	static const char rest[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	return *name && strspn(name, rest) == strlen(name) && !strchr("_.-", *name);
}

/* White space in the sense of Unicode, at the start of s: its length in bytes, or 0. */
static size_t white_space(const char *s)
{
	static const char *const wide[] = {
		"\xc2\x85",
		"\xc2\xa0",
		"\xe1\x9a\x80",
		"\xe2\x80\x80",
		"\xe2\x80\x81",
		"\xe2\x80\x82",
		"\xe2\x80\x83",
		"\xe2\x80\x84",
		"\xe2\x80\x85",
		"\xe2\x80\x86",
		"\xe2\x80\x87",
		"\xe2\x80\x88",
		"\xe2\x80\x89",
		"\xe2\x80\x8a",
		"\xe2\x80\xa8",
		"\xe2\x80\xa9",
		"\xe2\x80\xaf",
		"\xe2\x81\x9f",
		"\xe3\x80\x80",
	};

	if (*s == ' ' || (*s >= '\t' && *s <= '\r'))
		return 1;
	for (size_t i = 0; i < array_len(wide); i++)
		if (!strncmp(s, wide[i], strlen(wide[i])))
			return strlen(wide[i]);
	return 0;
}

const char *ifname_invalid(const char *name, const char **details)
{
	bool odd;

	*details = NULL;
	if (!*name)
		return "interface name is empty";
	if (strlen(name) > 15) {
		*details = "interface name should be less than 16 characters";
		return "interface name is too long";
	}
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return "interface name is . or ..";
	for (const char *s = name; *s; s++)
		if (*s == '/' || *s == ':' || white_space(s))
			return "interface name contains / or : or whitespace characters";
	odd = !json_is_utf8(name);
	/* Such a name could be put neither into a lease nor into JSON and be found again. */
	for (const char *s = name; *s; s++)
		odd |= (unsigned char)*s < ' ' || *s == 0x7f;
	return odd ? "interface name contains control characters or is not UTF-8" : NULL;
}

bool ifname_is_template(const char *name)
{
	return strchr(name, '%');
}
