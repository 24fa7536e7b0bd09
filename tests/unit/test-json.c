/* JSON: what is read and what it becomes, look-ups, key tables, what is written. */
#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "json/json.h"
#include "json/keys.h"

/* What json_parse() makes of a text: written again, or "error: TEXT". */
static char *reprint(const char *text, size_t len, enum json_style style)
{
	struct buf b = {0};
	autoerr e = {0};
	autojson *j = json_parse(text, len, ERR_DECODE, &e);

	if (j)
		json_write(&b, j, style);
	else
		buf_printf(&b, "error: %s", e.msg);
	return b.data;
}

static void test_text(void)
{
	static const struct {
		const char *in, *out;
		enum json_style style;
	} cases[] = {
		{"", "error: unexpected end of JSON input", JSON_COMPACT},
		{" \n\t", "error: unexpected end of JSON input", JSON_COMPACT},
		{"{\"a\":", "error: unexpected end of JSON input", JSON_COMPACT},
		{"[1,2", "error: unexpected end of JSON input", JSON_COMPACT},
		{"\"abc", "error: unexpected end of JSON input", JSON_COMPACT},
		{"\"abc\\", "error: unexpected end of JSON input", JSON_COMPACT},
		{"\"abc\\u12", "error: unexpected end of JSON input", JSON_COMPACT},
		{"\n\"a\\x\"",
			"error: invalid JSON: line 2: invalid character 'x' in string escape code",
			JSON_COMPACT},
		{"{\"a\" 1}", "error: invalid JSON: line 1: invalid character '1' after object key",
			JSON_COMPACT},
		{"1 \xff",
			"error: invalid JSON: line 1: invalid character '\\xff' after top-level value",
			JSON_COMPACT},
		{" null ", "null", JSON_COMPACT},
		{"\"\\u00e9\\ud83d\\ude00<>&\\u2028\\u2029\\u0001\\n\\r\\t\\b\\\"\\\\/\\u007f\"",
			"\"\xc3\xa9\xf0\x9f\x98\x80\\u003c\\u003e\\u0026\\u2028\\u2029\\u0001\\n"
			"\\r\\t\\u0008\\\"\\\\/\x7f\"",
			JSON_COMPACT},
		{"[0,-1,999999999999999999,9223372036854775807,-9223372036854775808]",
			"[0,-1,999999999999999999,9223372036854775807,-9223372036854775808]",
			JSON_COMPACT},
		{"[18446744073709551616,1.50,1e3,-0,1E+400,0.1]",
			"[18446744073709551616,1.50,1e3,-0,1E+400,0.1]", JSON_COMPACT},
		{"{\"b\":{},\"a\":[],\"B\":[1,{\"x\":true}]}",
			"{\n    \"b\": {},\n    \"a\": [],\n    \"B\": [\n        1,\n        "
			"{\n            \"x\": true\n        }\n    ]\n}",
			JSON_INDENT},
		{"{\"b\":{\"z\":1,\"y\":2},\"a\":[],\"B\":false}",
			"{\n    \"B\": false,\n    \"a\": [],\n    \"b\": {\n        \"y\": 2,\n"
			"        \"z\": 1\n    }\n}",
			JSON_INDENT_SORTED},
		{"{\"b\":1, \"\\u00e9\":2,\"a\" : 3}", "{\"a\":3,\"b\":1,\"\xc3\xa9\":2}",
			JSON_COMPACT_SORTED},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		autofree char *out = reprint(cases[i].in, strlen(cases[i].in), cases[i].style);

		CHECK_STR(out, cases[i].out);
	}
}

static void test_malformed(void)
{
	static const char *const bad[] = {"{} x", "\xef\xbb\xbf{}", "01", "1.", ".5", "1.5.5",
		"1.5e", "+1", "-", "0x1", "1.5\"a\"", "tru", "{1.5:2}", "{a:1}", "[1,]",
		"{\"a\":1,}", "\"\\u12g4\"", "\"\\u\"", "\"\t\"", "'a'", "[]]", "NaN", "1.5 1.5",
		"\"a\" 1.5"};

	for (size_t i = 0; i < array_len(bad); i++) {
		autofree char *out = reprint(bad[i], strlen(bad[i]), JSON_COMPACT);

		if (!CHECK(!strncmp(out, "error: ", 7)))
			fprintf(stderr, "  accepted: %s as %s\n", bad[i], out);
	}
}

/* What Go accepts: text that is not UTF-8, halves of surrogate pairs, NUL characters. */
static void test_odd_strings(void)
{
	static const char *const cases[][2] = {
		{"\"a\xff\xc3\xa9\xe2\x80z\"",
			"\"a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbdz\""},
		{"\"\xed\xa0\x80\"", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\"\xc0\x80\"", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\"\\ud800\"", "\"\xef\xbf\xbd\""},
		{"\"\\udc00x\"", "\"\xef\xbf\xbdx\""},
		{"\"\\ud800\\ud83d\\ude00\"", "\"\xef\xbf\xbd\xf0\x9f\x98\x80\""},
		{"\"\\ud800\\u0041\"", "\"\xef\xbf\xbd"
				       "A\""},
		{"\"\\udbff\\udfff\"", "\"\xf4\x8f\xbf\xbf\""},
		{"\"\\u0000\"", "\"\\u0000\""},
		{"{\"a\\u0000b\":\"\\u0000\\u0000c\"}", "{\"a\\u0000b\":\"\\u0000\\u0000c\"}"},
		{"{\"\xff\":1,\"\\ud800\":2}", "{\"\xef\xbf\xbd\":2}"},
	};
	static const char text[] =
		"{\"path\":\"/etc\\u0000/x\",\"a\\u0000\":1,\"list\":[\"\\u0000\"]}";
	const char *s = "kept";
	autoerr e = {0};
	autojson *j = NULL;

	for (size_t i = 0; i < array_len(cases); i++) {
		autofree char *out = reprint(cases[i][0], strlen(cases[i][0]), JSON_COMPACT);

		CHECK_STR(out, cases[i][1]);
	}
	j = json_parse(text, strlen(text), ERR_DECODE, &e);
	CHECK(json_get_str(j, "path", &s, &e) < 0);
	CHECK_STR(e.msg, "invalid \"path\": expected string, found string with a NUL character");
	CHECK_STR(s, "kept");
	CHECK(!json_str(json_get(j, "path")) && !json_is_string(json_at(json_get(j, "list"), 0)));
	CHECK(!json_get(j, "a"));
}

/* Nested deeper than the tree goes: kept as text, checked all the same. */
static void test_deep(void)
{
	static const char *const good[] = {"{}", "[]", "1.50", "\"\\u0000\xc3\xa9\"", "null",
		"[1,{\"a\":[],\"b\":{\"c\":false}},\"x\"]"};
	static const char *const bad[] = {"{", "[1,]", "{\"a\":1,}", "[1}", "{\"a\"]", "{1:2}",
		"[1 2]", "tru", "\"\t\"", "01"};

	for (size_t i = 0; i < array_len(good) + array_len(bad); i++) {
		bool fine = i < array_len(good);
		const char *value = fine ? good[i] : bad[i - array_len(good)];
		struct buf text = {0};
		autofree char *out = NULL;

		for (int n = 0; n < 200; n++)
			buf_puts(&text, "[");
		buf_puts(&text, value);
		for (int n = 0; n < 200; n++)
			buf_puts(&text, "]");
		out = reprint(text.data, text.len, JSON_COMPACT);
		if (fine)
			CHECK_STR(out, text.data);
		else if (!CHECK(!strncmp(out, "error: ", 7)))
			fprintf(stderr, "  accepted: %s\n", value);
		buf_free(&text);
	}
}

static void test_deep_types(void)
{
	struct buf text = {0};
	autojson *j = NULL;
	const json *inner;
	autoerr e = {0};

	for (int n = 0; n < 200; n++)
		buf_puts(&text, n == 150 ? " { \"x\" : " : "[ ");
	for (int n = 200; n-- > 0;)
		buf_puts(&text, n == 150 ? "}" : "]");
	j = json_parse(text.data, text.len, ERR_DECODE, &e);
	for (inner = j; json_at(inner, 0);)
		inner = json_at(inner, 0);
	CHECK_STR(json_type_name(inner), "array");
	CHECK(!json_is_string(inner) && !json_is_int(inner) && !json_str(inner));
	CHECK(!json_is_array(inner) && !json_is_object(inner) && !json_get(inner, "x"));
	CHECK(!json_len(inner) && !json_iter(inner));
	buf_free(&text);
}

static void test_limits(void)
{
	struct buf deep = {0}, large = {0};
	autofree char *nul = reprint("[\0]", 3, JSON_COMPACT), *a = NULL, *b = NULL, *c = NULL;

	CHECK_STR(nul, "error: invalid JSON: line 1: invalid character '\\x00' looking for "
		       "beginning of value");
	for (int i = 0; i < JSON_MAX_DEPTH; i++)
		buf_puts(&deep, i % 2 ? "[" : "{\"[[[\":");
	for (int i = JSON_MAX_DEPTH; i-- > 0;)
		buf_puts(&deep, i % 2 ? "]" : "}");
	a = reprint(deep.data, deep.len, JSON_COMPACT);
	CHECK_STR(a, deep.data);
	buf_free(&deep);
	for (int i = 0; i < 100000; i++)
		buf_puts(&deep, "[");
	b = reprint(deep.data, deep.len, JSON_COMPACT);
	CHECK_STR(b, "error: invalid JSON: nested deeper than 10000 levels");
	buf_free(&deep);
	for (unsigned int i = 0; i <= JSON_MAX_SIZE; i += 16)
		buf_puts(&large, "                ");
	buf_puts(&large, "1");
	c = reprint(large.data, large.len, JSON_COMPACT);
	CHECK_STR(c, "error: invalid JSON: larger than 16777216 bytes");
	buf_free(&large);
}

static void test_keys(void)
{
	static const char text[] = "{\"Name\":\"x\",\"NAME\":null,\"name\":\"y\",\"nAmE\":\"z\","
				   "\"d\":1,\"d\":2,\"n\":null}";
	const char *s = "kept";
	autoerr e = {0};
	autojson *j = json_parse(text, strlen(text), ERR_DECODE, &e);
	autojson *copy = json_dup(j);

	CHECK_STR(json_str(json_get(j, "nAME")), "z");
	CHECK_STR(json_str(json_get_exact(j, "name")), "y");
	CHECK(!json_get_exact(j, "NAME") && !json_get(j, "n") && !json_get(j, "none"));
	CHECK_INT(json_int(json_get(j, "D")), 2);
	CHECK(!json_get_str(j, "none", &s, &e) && !json_get_str(j, "n", &s, &e));
	CHECK_STR(s, "kept");
	CHECK(json_get_str(j, "d", &s, &e) < 0);
	CHECK_STR(e.msg, "invalid \"d\": expected string, found integer");
	CHECK_INT(e.code, ERR_INVALID_CONFIG);
	json_del(copy, "NAME");
	CHECK(!json_get(copy, "name") && json_get(j, "name"));
	CHECK(!json_get(json_get(j, "d"), "x") && !json_get(NULL, "x"));
}

/* The last of equal keys counts; null takes back an array or an object, nothing else. */
static void test_null(void)
{
	static const char text[] = "{\"name\":\"net\",\"name\":null,\"n\":5,\"N\":null,"
				   "\"list\":[1],\"list\":null,\"o\":{},\"O\":null,"
				   "\"back\":null,\"BACK\":true,"
				   "\"a\":1,\"A\":2,\"a\":3,\"b\":1,\"B\":2,\"b\":null}";
	autoerr e = {0};
	autojson *j = json_parse(text, strlen(text), ERR_DECODE, &e);

	CHECK_STR(json_str(json_get(j, "name")), "net");
	CHECK_INT(json_int(json_get(j, "n")), 5);
	CHECK(!json_get(j, "list") && !json_get(j, "o"));
	CHECK(json_bool(json_get(j, "back")));
	CHECK_INT(json_int(json_get(j, "a")), 3);
	CHECK_INT(json_int(json_get(j, "b")), 2);
}

static void test_duplicates(void)
{
	static const struct {
		const char *text, *found;
	} cases[] = {
		{"{}", NULL},
		{"[{\"s\":{\"a\":1,\"a\":2}}]", NULL},
		{"{\"s\":{\"a\":1,\"b\":2}}", NULL},
		{"{\"s\":{\"a\":1,\"A\":2}}", NULL},
		{"{\"s\":{\"a\":{\"x\":1,\"x\":2},\"b\":[\"a\",\"a\"]}}", NULL},
		{"{\"o\":{\"s\":{\"a\":1,\"a\":2}},\"t\":{\"a\":1,\"a\":1}}", NULL},
		{"{\"s\":\"{\",\"a\":1,\"a\":2}", NULL},
		{" { \"S\" : { \"a\" : \"}\" , \"b\" : 1 , \"a\" : null } } ", "a"},
		{"{\"s\":{\"a\":1,\"\\u0061\":2}}", "a"},
		{"{\"s\":{\"a\":1},\"s\":{\"b\":1,\"c\":[{}],\"b\":1}}", "b"},
		{"{\"s\":{\"x\":1,\"b\":1,\"a\":1,\"a\":2,\"b\":3}}", "a"},
		{"{\"s\":{\"a\":1", NULL},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		autofree char *found = json_duplicate_key(cases[i].text, "s");

		CHECK_STR(found, cases[i].found);
	}
}

struct table_conf {
	bool flag;
	int64_t number;
	const char *text;
	const json *object, *array;
};

static void test_tables(void)
{
	static const struct json_key keys[] = {
		JSON_KEY_BOOL(struct table_conf, "flag", flag),
		JSON_KEY_INT(struct table_conf, "number", number, 0, 10),
		JSON_KEY_STR(struct table_conf, "text", text),
		JSON_KEY_OBJECT(struct table_conf, "object", object),
		JSON_KEY_ARRAY(struct table_conf, "array", array),
		JSON_KEY_KNOWN("elsewhere"),
		JSON_KEYS_END,
	};
	static const struct {
		const char *text, *error;
	} bad[] = {
		{"{\"flag\":1}", "invalid \"flag\": expected boolean, found integer"},
		{"{\"number\":11}", "invalid \"number\": 11 is not between 0 and 10"},
		{"{\"text\":[]}", "invalid \"text\": expected string, found array"},
		{"{\"object\":\"\"}", "invalid \"object\": expected object, found string"},
		{"{\"array\":{}}", "invalid \"array\": expected array, found object"},
	};
	static const char good[] = "{\"FLAG\":true,\"number\":10,\"text\":\"x\",\"object\":{},"
				   "\"array\":[1],\"elsewhere\":5,\"unknown\":null}";
	struct table_conf c = {.text = "default", .number = 7};
	autojson *none = json_new_object(), *j = NULL;
	autoerr e = {0};

	CHECK(!json_read_keys(none, keys, &c, &e));
	CHECK(!c.flag && c.number == 7 && !c.object && !c.array);
	CHECK_STR(c.text, "default");
	j = json_parse(good, strlen(good), ERR_DECODE, &e);
	CHECK(!json_read_keys(j, keys, &c, &e));
	CHECK(c.flag && c.number == 10 && json_is_object(c.object) && json_len(c.array) == 1);
	CHECK_STR(c.text, "x");
	for (size_t i = 0; i < array_len(bad); i++) {
		autojson *wrong = json_parse(bad[i].text, strlen(bad[i].text), ERR_DECODE, &e);
		autoerr why = {0};

		CHECK(json_read_keys(wrong, keys, &c, &why) < 0);
		CHECK_STR(why.msg, bad[i].error);
		CHECK_INT(why.code, ERR_INVALID_CONFIG);
	}
}

static void test_numbers(void)
{
	static const char text[] =
		"{\"i\":-5,\"f\":1500.0,\"e\":1e3,\"h\":1.5,"
		"\"u\":18446744073709551615,\"o\":18446744073709551616,"
		"\"m\":-9223372036854775808,\"x\":1e400,\"uf\":1.8e19,\"s\":\"1\"}";
	autoerr e = {0}, wrong = {0}, range = {0}, over = {0};
	autojson *j = json_parse(text, strlen(text), ERR_DECODE, &e);
	int64_t v = 7;
	uint64_t u = 7;

	CHECK(!json_get_int(j, "none", 0, 1, &v, &e) && v == 7);
	CHECK(!json_get_int(j, "i", -5, 0, &v, &e) && v == -5);
	CHECK(!json_get_int(j, "f", 0, 1500, &v, &e) && v == 1500);
	CHECK(!json_get_int(j, "e", 0, 1500, &v, &e) && v == 1000);
	CHECK(!json_get_int(j, "m", INT64_MIN, 0, &v, &e) && v == INT64_MIN);
	CHECK(json_get_int(j, "h", 0, 10, &v, &wrong) < 0);
	CHECK_STR(wrong.msg, "invalid \"h\": expected integer, found number");
	CHECK(json_get_int(j, "i", 0, 10, &v, &range) < 0);
	CHECK_STR(range.msg, "invalid \"i\": -5 is not between 0 and 10");
	CHECK(json_get_int(j, "u", 0, 10, &v, &over) < 0);
	CHECK_STR(over.msg, "invalid \"u\": 18446744073709551615 is not between 0 and 10");
	CHECK(!json_get_u64(j, "u", UINT64_MAX, &u, &e) && u == UINT64_MAX);
	CHECK(!json_get_u64(j, "uf", UINT64_MAX, &u, &e) && u == 18000000000000000000u);
	CHECK(!json_get_u64(j, "e", UINT64_MAX, &u, &e) && u == 1000);
	err_clear(&over);
	CHECK(json_get_u64(j, "o", UINT64_MAX, &u, &over) < 0);
	CHECK_STR(over.msg,
		"invalid \"o\": 18446744073709551616 is not between 0 and 18446744073709551615");
	err_clear(&over);
	CHECK(json_get_u64(j, "i", UINT64_MAX, &u, &over) < 0);
	CHECK_STR(json_type_name(json_get(j, "x")), "number");
	CHECK_STR(json_type_name(json_get(j, "u")), "integer");
	CHECK_STR(json_type_name(json_get(j, "f")), "integer");
	CHECK(!json_is_string(json_get(j, "u")) && !json_str(json_get(j, "h")));
	CHECK(json_is_string(json_get(j, "s")) && !json_is_int(json_get(j, "s")));
	CHECK(!e.set);
}

static void test_build(void)
{
	autojson *o = json_new_object(), *a = json_new_array();
	struct buf b = {0};

	CHECK(json_set(o, "a", NULL) < 0);
	CHECK(json_set(NULL, "a", json_new_int(1)) < 0);
	CHECK(!json_set(o, "s", json_new_string("a\xff\xc3\xa9\xe2\x80")));
	CHECK(!json_append(a, json_new_bool(true)));
	CHECK(!json_set(o, "l", json_ref(a)));
	json_write(&b, o, JSON_COMPACT);
	CHECK_STR(b.data, "{\"s\":\"a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\",\"l\":[true]}");
	buf_free(&b);
	json_write_string(&b, "a\xff<\xed\xa0\x80");
	CHECK_STR(b.data, "\"a\\ufffd\\u003c\\ufffd\\ufffd\\ufffd\"");
	buf_free(&b);
}

int main(void)
{
	test_text();
	test_malformed();
	test_odd_strings();
	test_deep();
	test_deep_types();
	test_limits();
	test_keys();
	test_null();
	test_duplicates();
	test_tables();
	test_numbers();
	test_build();
	return check_done();
}
