/* src/runtime/conflist: lists as libcni reads them, which file has a network, and what each plugin
 * is given on stdin. */
#include "check.h"

#include "base/cleanup.h"
#include "runtime/conflist.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/test-conflist.XXXXXX";

static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!CHECK(f != NULL))
		exit(1);
	fputs(text, f);
	fclose(f);
}

/* ---- parsing ---- */

#define ONE "\"plugins\":[{\"type\":\"a\"}]"

static void test_versions(void)
{
	static const struct {
		const char *keys, *version;
	} cases[] = {
		{"", ""},
		{"\"cniVersion\":\"0.4.0\",", "0.4.0"},
		{"\"cniVersions\":[\"0.3.1\",\"1.0.0\",\"0.4.0\"],", "1.0.0"},
		{"\"cniVersion\":\"1.0.0\",\"cniVersions\":[\"0.3.1\"],", "1.0.0"},
		/* One that we do not know does not count. */
		{"\"cniVersion\":\"0.4.0\",\"cniVersions\":[\"2.0.0\",\"1.1.0\"],", "1.1.0"},
		{"\"cniVersion\":\"2.0.0\",\"cniVersions\":[\"1.0.0\"],", "1.0.0"},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		char text[300];
		autolist l = {0};
		autoerr e = {0};

		snprintf(text, sizeof(text), "{\"name\":\"n\",%s" ONE "}", cases[i].keys);
		CHECK_INT(conflist_parse(&l, text, strlen(text), false, NULL, &e), 0);
		CHECK_STR(l.version, cases[i].version);
	}
}

static void test_flags(void)
{
	static const char text[] =
		"{\"name\":\"n\",\"disableCheck\":\"TRUE\",\"disableGC\":true," ONE "}";
	autolist l = {0};
	autoerr e = {0};

	CHECK_INT(conflist_parse(&l, text, strlen(text), false, NULL, &e), 0);
	CHECK(l.disable_check && l.disable_gc);
	CHECK_INT((long long)l.len, 1);
	CHECK_STR(l.plugins[0].type, "a");
}

static void test_broken(void)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		"{\"name\":7," ONE "}",
		"{\"name\":\"../n\"," ONE "}",
		"{\"name\":\"n\",\"plugins\":{}}",
		"{\"name\":\"n\",\"plugins\":[]}",
		"{\"name\":\"n\",\"plugins\":[{}]}",
		"{\"name\":\"n\",\"plugins\":[{\"type\":\"\"}]}",
		"{\"name\":\"n\",\"plugins\":[{\"type\":\"a\",\"capabilities\":{\"x\":1}}]}",
		"{\"name\":\"n\",\"disableCheck\":\"yes\"," ONE "}",
		"{\"name\":\"n\",\"cniVersion\":1," ONE "}",
		"{\"name\":\"n\",\"cniVersions\":\"1.0.0\"," ONE "}",
		"{\"name\":\"n\",\"loadOnlyInlinedPlugins\":true}",
	};

	for (size_t i = 0; i < array_len(texts); i++) {
		autolist l = {0};
		autoerr e = {0};

		CHECK_INT(conflist_parse(&l, texts[i], strlen(texts[i]), false, NULL, &e), -1);
		CHECK_INT(e.code, ERR_INVALID_CONFIG);
		CHECK(!l.name && !l.plugins);
	}
}

/* A single configuration becomes a list of one, which the cache gives back as the same. */
static void test_promoted(void)
{
	static const char text[] =
		"{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"a\",\"key\":1}";
	autolist l = {0}, again = {0};
	autoerr e = {0};

	CHECK_INT(conflist_parse(&l, text, strlen(text), true, NULL, &e), 0);
	CHECK_STR(l.name, "n");
	CHECK_INT((long long)l.len, 1);
	put("n.d", "");
	CHECK_INT(conflist_parse(&again, l.bytes, l.bytes_len, false, dir, &e), 0);
	CHECK_STR(again.name, "n");
	CHECK_INT((long long)again.len, 1);
	CHECK_STR(again.plugins[0].type, "a");
}

/* More plugins than a growing array has room for at first. */
static void test_many(void)
{
	autobuf text = {0};
	autolist l = {0};
	autoerr e = {0};

	buf_puts(&text, "{\"name\":\"n\",\"plugins\":[");
	for (int i = 0; i < 100; i++)
		buf_printf(&text, "%s{\"type\":\"p%d\"}", i ? "," : "", i);
	buf_puts(&text, "]}");
	CHECK_INT(conflist_parse(&l, text.data, text.len, false, NULL, &e), 0);
	CHECK_INT((long long)l.len, 100);
	CHECK_STR(l.plugins[99].type, "p99");
}

/* ---- finding ---- */

static void hear(const char *text, void *arg)
{
	struct buf *b = arg;

	buf_printf(b, "%s\n", text);
}

static void test_find(void)
{
	autobuf heard = {0};
	const struct report remarks = {hear, &heard};
	autolist l = {0}, m = {0}, none = {0};
	autoerr e = {0}, f = {0};
	char want[PATH_MAX];

	put("20.conf", "{\"name\":\"n\",\"type\":\"single\"}");
	put("10.json", "{\"name\":\"m\",\"type\":\"json\"}");
	put("99.conflist", "{\"name\":\"n\",\"plugins\":[{\"type\":\"list\"}]}");
	put("50.conflist", "{\"name\":\"n\",");
	put("00.txt", "{\"name\":\"n\",\"type\":\"no\"}");
	CHECK_INT(conflist_find(&l, dir, "n", &remarks, &e), 0);
	CHECK_STR(l.plugins[0].type, "list");
	snprintf(want, sizeof(want), "%s/99.conflist", dir);
	CHECK_STR(l.file, want);
	CHECK(heard.data && strstr(heard.data, "skipped: ") && strstr(heard.data, "50.conflist"));
	/* Nobody need listen. */
	CHECK_INT(conflist_find(&m, dir, "m", NULL, &e), 0);
	CHECK_STR(m.plugins[0].type, "json");
	CHECK_INT(conflist_find(&none, dir, "none", NULL, &f), -1);
	CHECK_INT(f.code, ERR_INVALID_CONFIG);
	CHECK_STR(f.details, "broken files were skipped: 50.conflist");
}

static int count(const struct conflist *l, void *arg)
{
	struct buf *b = arg;

	buf_printf(b, "%s:%s ", l->name, l->plugins[0].type);
	return 0;
}

static void test_each(void)
{
	autobuf seen = {0};
	autoerr e = {0};

	CHECK_INT(conflist_each(dir, count, &seen, NULL, &e), 0);
	CHECK_STR(seen.data, "n:list m:json ");
}

static void test_plugin_dir(void)
{
	static const char text[] = "{\"name\":\"more\"," ONE "}",
			  only[] = "{\"name\":\"more\",\"loadOnlyInlinedPlugins\":true," ONE "}";
	char path[PATH_MAX];
	autolist l = {0}, inlined = {0};
	autoerr e = {0};

	snprintf(path, sizeof(path), "%s/more", dir);
	CHECK(!mkdir(path, 0755));
	put("more/20.conf", "{\"type\":\"c\"}");
	put("more/10.conf", "{\"type\":\"b\"}");
	put("more/30.txt", "{\"type\":\"no\"}");
	CHECK_INT(conflist_parse(&l, text, strlen(text), false, dir, &e), 0);
	CHECK_INT((long long)l.len, 3);
	CHECK_STR(l.plugins[1].type, "b");
	CHECK_STR(l.plugins[2].type, "c");
	CHECK_INT(conflist_parse(&inlined, only, strlen(only), false, dir, &e), 0);
	CHECK_INT((long long)inlined.len, 1);
}

/* ---- a plugin's stdin ---- */

static void stdin_is(const char *plugin, const char *caps, const char *expected, const char *remark)
{
	autobuf list = {0}, out = {0}, heard = {0};
	const struct report remarks = {hear, &heard};
	autoerr e = {0};
	autojson *args = caps ? json_parse(caps, strlen(caps), ERR_DECODE, &e) : NULL;
	struct plugin_input in = {.capability_args = args};
	autolist l = {0};

	buf_printf(&list, "{\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"plugins\":[%s]}", plugin);
	CHECK_INT(conflist_parse(&l, list.data, list.len, false, NULL, &e), 0);
	CHECK_INT(conflist_stdin(&l, 0, &in, &remarks, &out, &e), 0);
	CHECK_STR(out.data, expected);
	CHECK_STR(heard.data, remark);
}

#define BASE ",\"name\":\"n\",\"cniVersion\":\"1.0.0\""

static void test_stdin(void)
{
	stdin_is("{\"type\":\"a\",\"n\":9007199254740993}", NULL,
		"{\"type\":\"a\",\"n\":9007199254740993" BASE "}", NULL);
	stdin_is("{\"type\":\"a\",\"capabilities\":{\"x\":true,\"y\":false}}",
		"{\"x\":[1],\"y\":2,\"z\":3}",
		"{\"type\":\"a\"" BASE ",\"runtimeConfig\":{\"x\":[1]}}", NULL);
	stdin_is("{\"type\":\"a\",\"capabilities\":{\"x\":true},\"runtimeConfig\":{\"o\":1}}",
		"{\"x\":1}", "{\"type\":\"a\"" BASE ",\"runtimeConfig\":{\"x\":1}}",
		"network \"n\": the runtimeConfig in the file of plugin a is replaced\n");
	stdin_is("{\"type\":\"a\",\"runtimeConfig\":{\"o\":1}}", "{\"x\":1}",
		"{\"type\":\"a\",\"runtimeConfig\":{\"o\":1}" BASE "}", NULL);
	stdin_is("{\"type\":\"a\",\"prevResult\":{}}", NULL, "{\"type\":\"a\"" BASE "}", NULL);
}

static void test_stdin_prev(void)
{
	static const char text[] = "{\"name\":\"n\",\"cniVersion\":\"1.0.0\"," ONE "}";
	struct result prev = {0};
	struct plugin_input in = {.prev = &prev};
	autolist l = {0};
	autobuf out = {0};
	autoerr e = {0};

	CHECK_INT(conflist_parse(&l, text, strlen(text), false, NULL, &e), 0);
	CHECK(result_add_iface(&prev, "eth0", NULL, NULL, &e) != NULL);
	CHECK_INT(conflist_stdin(&l, 0, &in, NULL, &out, &e), 0);
	CHECK_STR(out.data,
		"{\"type\":\"a\"" BASE ",\"prevResult\":{\"cniVersion\":\"1.0.0\",\"interfaces\":"
		"[{\"name\":\"eth0\"}]}}");
	result_free(&prev);
}

int main(void)
{
	char cmd[PATH_MAX];

	if (!mkdtemp(dir))
		return 1;
	test_versions();
	test_flags();
	test_broken();
	test_promoted();
	test_many();
	test_find();
	test_each();
	test_plugin_dir();
	test_stdin();
	test_stdin_prev();
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	CHECK(!system(cmd));
	return check_done();
}
