/* Results: every version pair (result.vectors), and what is refused. */
#include "check.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "result/result.h"

#include <fcntl.h>

#define SHAPES 3

/* A case of result.vectors; texts point into the file. */
struct vector {
	char name[80];
	char *in[SHAPES];
	char *out[SHAPES];
};

static int shape_of(const char *version)
{
	return version[0] == '1' ? 2 : version[2] >= '3' ? 1 : 0;
}

/* The text with each @V@ replaced. Owned by the caller. */
static char *with_version(const char *text, const char *version)
{
	struct buf b = {0};
	const char *mark;

	while ((mark = strstr(text, "@V@"))) {
		buf_put(&b, text, (size_t)(mark - text));
		buf_puts(&b, version);
		text = mark + 3;
	}
	buf_puts(&b, text);
	return b.data;
}

/* Reads text as a document; what fails is in *e. */
static int read_text(struct result *r, const char *text, const char *assume, struct err *e)
{
	autojson *doc = json_parse(text, strlen(text), ERR_DECODE, e);

	*r = (struct result){0};
	return doc ? result_read(r, doc, assume, ERR_DECODE, e) : -1;
}

/* The document, or "error: TEXT". Owned by the caller. */
static char *written(const struct result *r, const char *version)
{
	struct buf b = {0};
	autoerr e = {0};

	if (result_write(r, version, &b, &e) < 0) {
		buf_free(&b);
		buf_printf(&b, "error: %s", e.msg);
	}
	return b.data;
}

/* Converting must be the same as printing and reading again: what is left then looks the same in
 * every version. */
static void test_convert(const struct result *r, const char *version, const char *printed)
{
	struct result converted, reread;
	autoerr e = {0};

	CHECK(!result_copy(&converted, r, &e));
	if (!strncmp(printed, "error: ", 7)) {
		CHECK(result_convert(&converted, version, &e) < 0);
		CHECK_STR(e.msg, printed + 7);
		result_free(&converted);
		return;
	}
	CHECK(!result_convert(&converted, version, &e));
	CHECK(!read_text(&reread, printed, "", &e));
	for (size_t i = 0; i < cni_versions_len; i++) {
		autofree char *a = written(&converted, cni_versions[i]);
		autofree char *b = written(&reread, cni_versions[i]);

		CHECK_STR(a, b);
	}
	result_free(&converted);
	result_free(&reread);
}

static void test_pair(const struct vector *v, const char *from, const char *to)
{
	autofree char *in = with_version(v->in[shape_of(from)], from);
	autofree char *expected = with_version(v->out[shape_of(to)], to);
	autofree char *out = NULL;
	autoresult r = {0};
	autoerr e = {0};

	if (!CHECK(!read_text(&r, in, "unused", &e))) {
		fprintf(stderr, "  %s: %s\n", v->name, e.msg);
		return;
	}
	out = written(&r, to);
	if (!CHECK_STR(out, expected))
		fprintf(stderr, "  %s, from %s to %s\n", v->name, from, to);
	test_convert(&r, to, out);
}

static int test_vector(const struct vector *v)
{
	int pairs = 0;

	for (int i = 0; i < SHAPES; i++)
		if (!v->out[i] && *v->name && !CHECK(v->out[i] != NULL)) {
			fprintf(stderr, "  %s\n", v->name);
			return 0;
		}
	for (size_t i = 0; i < cni_versions_len; i++) {
		if (!v->in[shape_of(cni_versions[i])])
			continue;
		for (size_t k = 0; k < cni_versions_len; k++, pairs++)
			test_pair(v, cni_versions[i], cni_versions[k]);
	}
	return pairs;
}

/* Where the text of a line "--- in X" or "--- out X" belongs. */
static char **slot(struct vector *v, const char *line)
{
	bool in = !strncmp(line, "--- in ", 7);
	int shape = line[in ? 7 : 8] - 'A';

	if (!CHECK(shape >= 0 && shape < SHAPES))
		return NULL;
	return in ? &v->in[shape] : &v->out[shape];
}

/* The line break before the next head line, from p on. */
static char *next_head(char *p)
{
	while ((p = strchr(p, '\n')) && strncmp(p + 1, "=== ", 4) && strncmp(p + 1, "--- ", 4))
		p++;
	return p;
}

/* Cuts the file at its head lines: the line break before one ends the text before it. */
static void test_vectors(void)
{
	autofree char *data = NULL;
	struct vector v = {0};
	int pairs = 0;
	size_t len;

	if (!CHECK(!file_read(AT_FDCWD, "result.vectors", 1 << 20, &data, &len)))
		return;
	data[len - 1] = '\0';
	for (char *head = next_head(data), *next; head; head = next) {
		char *text = strchr(head + 1, '\n') + 1;
		char **where;

		next = next_head(head + 1);
		*head++ = '\0';
		if (*head == '-') {
			where = slot(&v, head);
			if (where)
				*where = text;
			continue;
		}
		pairs += test_vector(&v);
		v = (struct vector){0};
		snprintf(v.name, sizeof(v.name), "%.*s", (int)(text - 1 - head), head);
	}
	pairs += test_vector(&v);
	/* The rich documents alone are all of 7 x 7. */
	CHECK(pairs > 49);
}

/* Fields that came with 1.1.0: of a wrong type they are an error there and nobody's business
 * before. */
static void test_new_fields(void)
{
	static const char wrong[] =
		"{\"interfaces\":[{\"name\":\"a\",\"mtu\":\"x\",\"pciID\":5,"
		"\"socketPath\":[]}],\"routes\":[{\"dst\":\"0.0.0.0/0\",\"mtu\":1.5,"
		"\"scope\":\"link\",\"table\":{}}],\"ip4\":{\"ip\":\"10.0.0.1/8\","
		"\"routes\":[{\"dst\":\"0.0.0.0/0\",\"advmss\":\"x\"}]}}";
	static const char right[] =
		"{\"interfaces\":[{\"name\":\"a\",\"mtu\":1400}],"
		"\"routes\":[{\"dst\":\"0.0.0.0/0\",\"mtu\":1300,\"scope\":0}]}";

	for (size_t i = 0; i < cni_versions_len; i++) {
		const char *version = cni_versions[i];
		autoresult bad = {0}, good = {0};
		autoerr e = {0}, f = {0};

		if (!strcmp(version, CNI_CURRENT)) {
			CHECK(read_text(&bad, wrong, version, &e) < 0);
		} else {
			CHECK(!read_text(&bad, wrong, version, &e));
			CHECK_INT(bad.routes_len, 1);
			CHECK(!bad.routes[0].mtu && !bad.routes[0].has_scope &&
				!bad.routes[0].has_table);
		}
		CHECK(!read_text(&good, right, version, &f));
		if (!shape_of(version))
			continue;
		CHECK_INT(good.ifaces[0].mtu, 1400);
		CHECK(good.routes[0].mtu == 1300 && good.routes[0].has_scope);
	}
}

struct refusal {
	const char *label;
	const char *members; /* of the document */
	const char *message;
};

static void test_refused(void)
{
	static const struct refusal cases[] = {
		{"1.1.0", "\"ips\":[{\"address\":\"10.0.0.1\"}]", "invalid CIDR address: 10.0.0.1"},
		{"0.4.0", "\"ips\":[{\"address\":\"010.0.0.1/8\"}]",
			"invalid CIDR address: 010.0.0.1/8"},
		{"0.2.0", "\"ip4\":{\"ip\":\"\"}", "invalid CIDR address: "},
		{"1.0.0", "\"ips\":[{\"address\":\"10.0.0.1/8\",\"gateway\":\"x\"}]",
			"invalid IP address: x"},
		{"0.1.0", "\"ip6\":{\"ip\":\"::1/8\",\"gateway\":\"::1/8\"}",
			"invalid IP address: ::1/8"},
		{"1.1.0", "\"routes\":[{\"dst\":\"::/0\",\"gw\":\"fe80::1%eth0\"}]",
			"invalid IP address: fe80::1%eth0"},
		{"0.1.0", "\"ip4\":{}", "missing \"ip\""},
		{"1.1.0", "\"ips\":[{}]", "missing \"address\""},
		{"0.3.1", "\"routes\":[{\"gw\":\"10.0.0.1\"}]", "missing \"dst\""},
		{"1.1.0", "\"ips\":[null]", "expected object, found null"},
		{"0.4.0", "\"interfaces\":[null]", "expected object, found null"},
		{"0.3.0", "\"routes\":[1]", "expected object, found integer"},
		{"1.1.0", "\"ips\":{}", "invalid \"ips\": expected array, found object"},
		{"1.1.0", "\"interfaces\":[{\"name\":1}]",
			"invalid \"name\": expected string, found integer"},
		{"1.1.0", "\"interfaces\":[{\"mtu\":1.5}]",
			"invalid \"mtu\": expected integer, found number"},
		{"1.1.0", "\"dns\":{\"search\":[null]}", "expected string, found null"},
		{"1.1.0", "\"dns\":[]", "invalid \"dns\": expected object, found array"},
		{"1.0.5", "\"ips\":[]", "unsupported CNI result version \"1.0.5\""},
		{"1.0", "\"ips\":[]", "unsupported CNI result version \"1.0\""},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		const struct refusal *c = &cases[i];
		struct buf text = {0};
		struct result r;
		autoerr e = {0};

		buf_printf(&text, "{\"cniVersion\":\"%s\",%s}", c->label, c->members);
		CHECK(read_text(&r, text.data, "", &e) < 0);
		CHECK_STR(e.msg, c->message);
		CHECK_INT(e.code, ERR_DECODE);
		CHECK(!r.ips && !r.ifaces && !r.routes && !r.extra);
		buf_free(&text);
	}
}

static void test_labels(void)
{
	autoerr e = {0};
	struct result r;
	autofree char *a = NULL, *b = NULL;

	/* Without a label the assumed version; an empty one is 0.1.0. */
	CHECK(!read_text(&r, "{\"ips\":[{\"address\":\"10.0.0.1/8\"}]}", "1.0.0", &e));
	CHECK_INT((long long)r.ips_len, 1);
	a = written(&r, "");
	CHECK_STR(a, "{\n    \"cniVersion\": \"0.1.0\",\n    \"ip4\": {\n        \"ip\": "
		     "\"10.0.0.1/8\"\n    },\n    \"dns\": {}\n}");
	b = written(&r, "9.9");
	CHECK_STR(b, "error: no converter for CNI result version 1.1.0 to 9.9");
	result_free(&r);
	CHECK(!read_text(&r, "{\"cniVersion\":\"\",\"ip4\":{\"ip\":\"10.0.0.1/8\"}}", "1.0.0", &e));
	CHECK_INT((long long)r.ips_len, 1);
	result_free(&r);
	CHECK(read_text(&r, "[]", "1.0.0", &e) < 0);
	CHECK_STR(e.msg, "expected object, found array");
}

struct prev {
	const char *config;
	const char *doc;
	const char *message; /* NULL: accepted */
};

static void test_prev(void)
{
#define PREFIX "could not parse prevResult: "
	static const struct prev cases[] = {
		{"1.1.0", "{}", NULL},
		{"1.1.0", "{\"cniVersion\":\"1.0.0\"}", NULL},
		{"0.3.0", "{\"cniVersion\":\"0.4.0\"}", NULL},
		{"0.3.0", "{\"cniVersion\":null}", NULL},
		{"", "{\"cniVersion\":\"0.2.0\"}", NULL},
		{"0.2.0", "{\"cniVersion\":\"\"}", NULL},
		{"1.0.0", "{\"cniVersion\":\"0.4.0\"}",
			PREFIX "result type supports [1.0.0 1.1.0] but unmarshalled CNIVersion is "
			       "\"0.4.0\""},
		{"0.4.0", "{\"cniVersion\":\"1.1.0\"}",
			PREFIX "result type supports [0.3.0 0.3.1 0.4.0] but unmarshalled "
			       "CNIVersion is \"1.1.0\""},
		{"0.1.0", "{\"cniVersion\":\"0.3.0\"}",
			PREFIX "result type supports [ 0.1.0 0.2.0] but unmarshalled CNIVersion is "
			       "\"0.3.0\""},
		{"1.1.0", "{\"cniVersion\":\"\"}",
			PREFIX "result type supports [1.0.0 1.1.0] but unmarshalled CNIVersion is "
			       "\"\""},
		{"9.9", "{}", PREFIX "unsupported CNI result version \"9.9\""},
		{"1.1.0", "[]", PREFIX "expected object, found array"},
		{"1.1.0", "{\"ips\":[{\"address\":\"x\"}]}", PREFIX "invalid CIDR address: x"},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		autojson *doc = NULL;
		autoresult r = {0};
		autoerr e = {0};
		int ret;

		doc = json_parse(cases[i].doc, strlen(cases[i].doc), ERR_DECODE, &e);
		ret = result_read_prev(&r, doc, cases[i].config, &e);
		CHECK_INT(ret, cases[i].message ? -1 : 0);
		CHECK_STR(e.msg, cases[i].message);
		CHECK_INT(e.code, cases[i].message ? ERR_DECODE : 0);
	}
}

static void test_versions(void)
{
	static const struct {
		const char *a, *b;
		int cmp;
	} order[] = {
		{"0.4.0", "1.0.0", -1},
		{"1.1.0", "1.0.0", 1},
		{"", "0.1.0", 0},
		{"1", "1.0.0", 0},
		{"1.0", "1.0.1", -1},
		{"0.10.0", "0.9.9", 1},
		{"0.-42.0", "0.0.0", -1},
		{"+1.0.0", "1.0.0", 0},
	};
	static const struct {
		const char *version, *message;
	} bad[] = {
		{"abc", "failed to convert major version part \"abc\": strconv.Atoi: parsing "
			"\"abc\": invalid syntax"},
		{"1.x.0", "failed to convert minor version part \"x\": strconv.Atoi: parsing "
			  "\"x\": invalid syntax"},
		{"1.0.0-rc1", "failed to convert micro version part \"0-rc1\": strconv.Atoi: "
			      "parsing \"0-rc1\": invalid syntax"},
		{"1.", "failed to convert minor version part \"\": strconv.Atoi: parsing \"\": "
		       "invalid syntax"},
		{"99999999999999999999", "failed to convert major version part "
					 "\"99999999999999999999\": strconv.Atoi: parsing "
					 "\"99999999999999999999\": value out of range"},
		{"1.0.0.0", "invalid version \"1.0.0.0\": too many parts"},
	};
	int cmp;

	for (size_t i = 0; i < array_len(order); i++) {
		autoerr e = {0};

		CHECK(!cni_version_cmp(order[i].a, order[i].b, &cmp, &e));
		CHECK_INT(cmp, order[i].cmp);
	}
	for (size_t i = 0; i < array_len(bad); i++) {
		autoerr e = {0};

		CHECK(cni_version_cmp("1.0.0", bad[i].version, &cmp, &e) < 0);
		CHECK_STR(e.msg, bad[i].message);
		CHECK_INT(e.code, ERR_DECODE);
	}
	CHECK(cni_version_known("") && cni_version_known("0.3.1") && cni_version_known("1.1.0"));
	CHECK(!cni_version_known("1.0") && !cni_version_known("0.5.0"));
}

static void test_build(void)
{
	struct prefix address;
	autoresult r = {0}, copy = {0};
	struct ip_config *ip;
	autofree char *text = NULL;
	autoerr e = {0};

	CHECK(prefix_parse("10.0.0.1/8", &address));
	CHECK(result_add_iface(&r, "eth0", "", NULL, &e) != NULL);
	CHECK(!r.ifaces[0].mac && !r.ifaces[0].sandbox);
	CHECK(result_add_iface(&r, "eth0", NULL, "/ns", &e) != NULL);
	CHECK(result_add_iface(&r, "eth0", "00:00:00:00:00:01", "/ns", &e) != NULL);
	CHECK(result_find_iface(&r, "eth0", "/ns") == &r.ifaces[2]);
	CHECK(!result_find_iface(&r, "eth0", "/other") && !result_find_iface(&r, "eth0", ""));
	CHECK(!result_find_iface(&r, "eth1", "/ns"));
	ip = result_add_ip(&r, &address, &e);
	ip->has_iface = true;
	ip->iface = -1;
	text = written(&r, "1.1.0");
	CHECK(strstr(text, "\"interface\": -1") != NULL && !result_ip_iface(&r, 0));
	ip->iface = 3;
	CHECK(!result_ip_iface(&r, 0));
	ip->iface = INT64_MIN;
	CHECK(!result_ip_iface(&r, 0));
	ip->iface = 2;
	CHECK(result_ip_iface(&r, 0) == &r.ifaces[2]);
	ip->has_iface = false;
	CHECK(!result_ip_iface(&r, 0));
	ip->has_iface = true;
	ip->extra = json_new_object();
	CHECK(!json_set(ip->extra, "k", json_new_int(1)));
	CHECK(result_add_route(&r, &(struct prefix){0}, &e) != NULL);
	free(text);
	text = written(&r, "1.1.0");
	CHECK_STR(text, "error: routes[0] has no destination");
	CHECK(!result_copy(&copy, &r, &e));
	CHECK(!json_set(copy.ips[0].extra, "k", json_new_int(2)));
	CHECK_INT(json_int(json_get(r.ips[0].extra, "k")), 1);
	CHECK(!result_set_str(&r.ifaces[0].mac, "x", &e) &&
		!result_set_str(&r.ifaces[0].mac, "", &e));
	CHECK(!r.ifaces[0].mac);
}

static void test_parts(void)
{
	static const char routes[] = "[{\"dst\":\"0.0.0.0/0\"},{\"dst\":\"1.2.3.4\"}]";
	static const char dns[] = "{\"nameservers\":[\"1.1.1.1\"],\"Domain\":\"d\"}";
	struct dns parsed = {0};
	autojson *a = NULL, *d = NULL;
	autoresult r = {0};
	autoerr e = {0};

	a = json_parse(routes, strlen(routes), ERR_DECODE, &e);
	CHECK(result_read_routes(&r, a, "ipam.routes", ERR_INVALID_CONFIG, &e) < 0);
	CHECK_STR(e.msg, "invalid CIDR address: 1.2.3.4");
	CHECK_STR(e.details, "in ipam.routes[1]");
	CHECK_INT(e.code, ERR_INVALID_CONFIG);
	CHECK(dns_empty(&parsed));
	d = json_parse(dns, strlen(dns), ERR_DECODE, &e);
	CHECK(!result_read_dns(&parsed, d, ERR_INVALID_CONFIG, &e));
	CHECK(!result_read_dns(&parsed, d, ERR_INVALID_CONFIG, &e));
	CHECK(!dns_empty(&parsed));
	CHECK_STR(parsed.domain, "d");
	CHECK_STR(parsed.nameservers[0], "1.1.1.1");
	dns_free(&parsed);
}

int main(void)
{
	test_vectors();
	test_new_fields();
	test_refused();
	test_labels();
	test_prev();
	test_versions();
	test_build();
	test_parts();
	return check_done();
}
