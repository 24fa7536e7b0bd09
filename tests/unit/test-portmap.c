/* src/portmap: records as text and back, conditions and their names. */
#include "check.h"

#include "portmap/conditions.h"
#include "portmap/record.h"
#include "json/json.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static struct port_mapping mapping(
	const char *host, uint16_t host_port, const char *addr, uint16_t port, bool yielded)
{
	struct port_mapping p = {
		.proto = IPPROTO_TCP, .host_port = host_port, .port = port, .yielded = yielded};

	CHECK(ip_parse(host, &p.host) && ip_parse(addr, &p.addr));
	return p;
}

static void put(struct port_record *m, struct port_mapping p)
{
	CHECK(!record_add(m, &p));
}

/* Everything that a record can hold, as text, and read again. */
static void test_round_trip(void)
{
	static const char heir[] = "0123456789abcdef0123456789abcdef";
	struct err e = {0};
	autorecord m = {0}, back = {.nsid = -1};
	record_line *text;
	struct owner o;

	owner_init(&o, "a-network-with-quite-a-long-name-that-fills-the-line",
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "eth0");
	record_init(&m, &o);
	put(&m, mapping("0.0.0.0", 8080, "10.1.2.3", 80, false));
	put(&m, mapping("0.0.0.0", 8081, "10.1.2.3", 81, true));
	put(&m, mapping("::", 8080, "fd00::3", 80, false));
	CHECK(!record_sort(&m, &e));
	CHECK(prefix_parse("10.1.2.0/24", &m.from[m.from_len++]));
	strcpy(m.dev, "veth0");
	strcpy(m.via, "cni0");
	strcpy(m.when[1], "fedcba9876543210");
	strcpy(m.netns, "/run/netns/x");
	m.netns_inode = 4026532747;
	m.link = 17;
	m.nsid = 0;
	record_set_pod(&m, "kube-system", "etcd");
	for (char c = 'a'; c < 'e'; c++) {
		char hash[OWNER_HASH + 1];

		strcpy(hash, heir);
		hash[0] = c;
		CHECK(!record_add_heir(&m, hash) && !record_add_heir(&m, hash));
	}
	text = record_text(&m);
	CHECK(text != NULL);
	for (size_t i = 0; i < m.records; i++)
		CHECK(!record_read(&back, text[i]));
	free(text);
	CHECK(back.records == m.records && back.len == 3 && back.heirs_len == 4);
	CHECK(!record_sort(&back, &e) && record_same_claim(&back.list[1], &m.list[1]));
	CHECK(back.list[1].yielded && !back.list[0].yielded && !back.list[2].yielded);
	CHECK_STR(back.dev, "veth0");
	CHECK_STR(back.via, "cni0");
	CHECK_STR(back.when[0], "");
	CHECK_STR(record_when(&back, &back.list[2]), "fedcba9876543210");
	CHECK_STR(back.netns, "/run/netns/x");
	CHECK(back.netns_inode == 4026532747 && back.link == 17 && back.nsid == 0);
	CHECK(back.from_len == 1 && record_same_pod(&m, &back));
	CHECK(record_of_container(&back, o.id));
}

/* As version 0.1 wrote them, and as nobody did. */
static void test_other_lines(void)
{
	static const char *const lines[] = {"records=6 dev=veth1 gates=46 from=10.1.2.0/24",
		"netns 7 /x", "map tcp 0.0.0.0 10.1.2.3 8080>80 0>1 1>70000 x 5>6",
		"map tcp 1.2.3.4", "map icmp 0.0.0.0 10.1.2.3 1>1", "map tcp :: 10.1.2.3 1>1",
		"seen link= nsid=-3 via=", "seen via=a-name-longer-than-links-have",
		"when 4=short 6=", "heir abc", "heir", "pod ", "yield", "", "unknown word"};
	autorecord m = {.nsid = -1}, other = {0};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		CHECK(!record_read(&m, lines[i]));
	CHECK(m.records == 6 && m.gates[0] && m.gates[1] && m.len == 2);
	CHECK(m.nsid == -1 && m.link == 0 && !m.via[0] && !m.when[0][0] && !m.heirs_len);
	CHECK_STR(m.netns, "/x");
	CHECK(!record_same_pod(&m, &other) && !record_same_pod(&m, &m));
	CHECK(record_maps(&m, AF_INET) && !record_maps(&m, AF_INET6) && record_maps(&m, AF_UNSPEC));
}

/* The name that stands for conditions. */
static const char *name_of(const char *array, uint8_t family, char out[PORT_CONDITIONS + 1])
{
	struct port_conds c;
	struct err e = {0};
	json *j = json_parse(array, strlen(array), ERR_DECODE, &e);

	CHECK(j && !conditions_parse(&c, family, j, "conditionsV4", &e));
	strcpy(out, c.id);
	conditions_free(&c);
	json_free(j);
	return out;
}

static void test_conditions(void)
{
	char a[PORT_CONDITIONS + 1], b[PORT_CONDITIONS + 1];

	CHECK_STR(name_of("[]", AF_INET, a), "");
	CHECK_STR(name_of("[\"-m\",\"tcp\"]", AF_INET, a), "");
	CHECK_STR(name_of("[\"! -s\",\"10.1.2.3/24\"]", AF_INET, a),
		name_of("[\"--source\",\"!\",\"10.1.2.0/255.255.255.0\"]", AF_INET, b));
	CHECK(strcmp(name_of("[\"-s\",\"10.1.2.0/24\"]", AF_INET, a),
		      name_of("[\"-d\",\"10.1.2.0/24\"]", AF_INET, b)) != 0);
	CHECK(strcmp(name_of("[\"-i\",\"eth0\"]", AF_INET, a),
		      name_of("[\"-i\",\"eth0\"]", AF_INET6, b)) != 0);
	CHECK(strcmp(name_of("[\"iifname eth0\"]", AF_INET, a),
		      name_of("[\"iifname eth1\"]", AF_INET, b)) != 0);
}

int main(void)
{
	test_round_trip();
	test_other_lines();
	test_conditions();
	return check_done();
}
