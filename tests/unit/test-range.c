/* src/store/range, src/ipam/rangeconf: what ranges hold, and what is refused. */
#include "check.h"

#include "base/cleanup.h"
#include "ipam/rangeconf.h"
#include "store/range.h"

static struct ip ip(const char *text)
{
	struct ip out = {0};

	if (*text)
		CHECK(ip_parse(text, &out));
	return out;
}

static struct range range(const char *subnet, const char *start, const char *end, const char *gw)
{
	struct range r = {.start = ip(start), .end = ip(end), .gateway = ip(gw)};

	if (*subnet)
		CHECK(prefix_parse(subnet, &r.subnet));
	return r;
}

static const struct {
	const char *subnet, *start, *end, *gw, *expected;
} range_cases[] = {
	{"10.0.0.0/24", "", "", "", "10.0.0.1-10.0.0.254 gw 10.0.0.1"},
	{"10.0.0.0/30", "", "", "", "10.0.0.1-10.0.0.2 gw 10.0.0.1"},
	{"10.0.0.0/24", "10.0.0.0", "10.0.0.255", "192.168.0.1",
		"10.0.0.0-10.0.0.255 gw 192.168.0.1"},
	{"10.0.0.0/24", "10.0.0.9", "10.0.0.9", "10.0.0.9", "10.0.0.9-10.0.0.9 gw 10.0.0.9"},
	{"fd00::/64", "", "", "", "fd00::1-fd00::ffff:ffff:ffff:ffff gw fd00::1"},
	{"fd00::/126", "", "", "", "fd00::1-fd00::3 gw fd00::1"},
	{"0.0.0.0/0", "", "", "", "0.0.0.1-255.255.255.254 gw 0.0.0.1"},
	{"", "", "", "", "! IP <nil> not v4 nor v6"},
	{"10.0.0.0/31", "", "", "", "! Network 10.0.0.0/31 too small to allocate from"},
	{"fd00::/127", "", "", "", "! Network fd00::/127 too small to allocate from"},
	{"10.0.0.1/24", "", "", "",
		"! Network has host bits set. For a subnet mask of length 24 the network "
		"address is 10.0.0.0"},
	{"10.0.0.0/24", "10.0.1.1", "", "", "! RangeStart 10.0.1.1 not in network 10.0.0.0/24"},
	{"10.0.0.0/24", "10.0.0.9", "10.0.0.8", "",
		"! RangeStart 10.0.0.9 not in network 10.0.0.0/24"},
	{"10.0.0.0/24", "10.0.0.255", "", "", "! RangeStart 10.0.0.255 not in network 10.0.0.0/24"},
	{"10.0.0.0/24", "", "10.0.1.8", "", "! RangeEnd 10.0.1.8 not in network 10.0.0.0/24"},
	{"10.0.0.0/24", "", "10.0.0.0", "", "! RangeEnd 10.0.0.0 not in network 10.0.0.0/24"},
	{"10.0.0.0/24", "fd00::1", "", "", "! RangeStart fd00::1 not in network 10.0.0.0/24"},
	{"10.0.0.0/24", "", "", "fd00::1",
		"! gateway fd00::1 is not of the address family of network 10.0.0.0/24"},
};

static void test_range(void)
{
	for (size_t i = 0; i < array_len(range_cases); i++) {
		struct range r = range(range_cases[i].subnet, range_cases[i].start,
			range_cases[i].end, range_cases[i].gw);
		char a[IP_STRLEN], b[IP_STRLEN], c[IP_STRLEN], text[256];
		autoerr e = {0};

		if (range_complete(&r, &e)) {
			CHECK_INT(e.code, ERR_INVALID_CONFIG);
			snprintf(text, sizeof(text), "! %s", e.msg);
		} else {
			snprintf(text, sizeof(text), "%s-%s gw %s", ip_format(&r.start, a),
				ip_format(&r.end, b), ip_format(&r.gateway, c));
		}
		CHECK_STR(text, range_cases[i].expected);
	}
}

static void test_range_set(void)
{
	struct range list[3] = {range("10.0.0.0/24", "10.0.0.10", "10.0.0.19", ""),
		range("10.0.0.0/24", "10.0.0.20", "10.0.0.29", ""), range("fd00::/64", "", "", "")};
	struct range_set two = {list, 2}, three = {list, 3}, none = {list, 0}, one = {list + 2, 1};
	struct range wide[1] = {range("10.0.0.0/16", "", "", "")};
	struct range_set set = {wide, 1};
	struct ip a = ip("10.0.0.20"), b = ip("10.0.0.30");
	autofree char *text = NULL;
	autoerr e = {0};

	for (int i = 0; i < 3; i++)
		CHECK(!range_complete(&list[i], &e));
	CHECK(!range_complete(&wide[0], &e));
	CHECK(!range_set_check(&two, &e));
	text = range_set_text(&two);
	CHECK_STR(text, "10.0.0.10-10.0.0.19,10.0.0.20-10.0.0.29");
	CHECK(range_set_find(&two, &a) == &list[1]);
	CHECK(!range_set_find(&two, &b));
	CHECK(range_set_overlap(&two, &set));
	CHECK(!range_set_overlap(&two, &one));
	CHECK(range_set_check(&none, &e) < 0);
	CHECK_STR(e.msg, "empty range set");
	err_clear(&e);
	CHECK(range_set_check(&three, &e) < 0);
	CHECK_STR(e.msg, "mixed address families");
	err_clear(&e);
	list[1].start = ip("10.0.0.19");
	CHECK(range_set_check(&two, &e) < 0);
	CHECK_STR(e.msg, "subnets 10.0.0.10-10.0.0.19 and 10.0.0.19-10.0.0.29 overlap");
}

/* How many addresses a list of ranges "start-end gateway" holds. */
static void test_capacity(void)
{
	static const struct {
		const char *start, *end, *gw;
		uint64_t expected;
	} cases[] = {
		{"10.0.0.1", "10.0.0.254", "10.0.0.1", 253},
		{"10.0.0.1", "10.0.0.254", "10.0.1.1", 254},
		{"10.0.0.9", "10.0.0.9", "10.0.0.9", 0},
		{"0.0.0.1", "255.255.255.254", "0.0.0.1", 4294967293},
		{"fd00::1", "fd00::ff", "fd00::1", 254},
		{"fd00::10", "fd00::1000:0:0:10", "fd00::1", 0x1000000000000001},
		{"fd00::1", "fd00::ffff:ffff:ffff:ffff", "fd00::1", UINT64_MAX - 1},
		{"fd00::ffff:ffff:ffff:fff0", "fd00:0:0:1::f", "fd00::1", 32},
		{"fd00::", "fd00::ffff:ffff:ffff:ffff", "fe80::1", UINT64_MAX},
		{"fd00::1", "fd00:0:0:1::1", "fe80::1", UINT64_MAX},
		{"fd00::", "fdff::", "fd00::1", UINT64_MAX},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		struct range list[2] = {range("", cases[i].start, cases[i].end, cases[i].gw),
			range("", "10.9.0.1", "10.9.0.2", "10.9.0.1")};
		struct range_set set[2] = {{list, 1}, {list + 1, 1}};
		uint64_t n = cases[i].expected;

		CHECK(range_sets_capacity(&(struct range_sets){set, 1}) == n);
		CHECK(range_sets_capacity(&(struct range_sets){set, 2}) == (n + 1 ? n + 1 : n));
	}
}

int main(void)
{
	test_range();
	test_range_set();
	test_capacity();
	return check_done();
}
