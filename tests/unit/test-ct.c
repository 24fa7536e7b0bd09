/* Conntrack entries: that exactly the wanted ones are deleted, whoever does the choosing, kernel or
 * we. Needs root: it works in a network namespace of its own, with entries made by the conntrack
 * tool. */
#include "netlink/ct.h"
#include "netlink/nl.h"

#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>

/* One entry: client → address:port, answered by another address (translated) or the same. */
static void add(
	const char *proto, const char *src, const char *dst, int port, const char *from, int zone)
{
	char cmd[300];

	snprintf(cmd, sizeof(cmd),
		"conntrack -I -p %s -s %s -d %s --sport 4000 --dport %d -r %s -q %s --reply-port-src %d "
		"--reply-port-dst 4000 -t 300 %s -w %d >/dev/null 2>&1",
		proto, src, dst, port, from, src, port + 27,
		strcmp(proto, "tcp") ? "" : "--state ESTABLISHED", zone);
	CHECK(!system(cmd));
}

static void fill(void)
{
	CHECK(!system("conntrack -F >/dev/null 2>&1"));
	add("udp", "192.0.2.2", "192.0.2.1", 53, "10.0.0.2", 0);
	add("udp", "192.0.2.3", "192.0.2.1", 53, "10.0.0.3", 0);
	add("udp", "192.0.2.2", "192.0.2.1", 54, "10.0.0.2", 0);
	add("udp", "192.0.2.2", "192.0.2.1", 53, "10.0.0.2", 7);
	add("tcp", "192.0.2.2", "192.0.2.1", 53, "10.0.0.2", 0);
	add("udp", "2001:db8::2", "2001:db8::1", 53, "fd00::2", 0);
}

/* How many entries there are that the conntrack tool would list with these words in them. */
static int left(const char *words)
{
	char cmd[200];
	int n = -1;
	FILE *f;

	snprintf(cmd, sizeof(cmd),
		"(conntrack -L -f ipv4; conntrack -L -f ipv6) 2>/dev/null | grep -E '192.0.2|2001:db8' | grep -c '%s'",
		words);
	f = popen(cmd, "r");
	if (f) {
		CHECK(fscanf(f, "%d", &n) == 1);
		pclose(f);
	}
	return n;
}

static bool from_2(const struct ct_flow *flow, void *arg)
{
	struct ip client = {AF_INET, {192, 0, 2, 2}};

	(*(int *)arg)++;
	CHECK(flow->orig.proto == IPPROTO_UDP && flow->orig.sport == 4000 &&
		flow->reply.sport == 80);
	CHECK(flow->reply.dport == 4000 && flow->id);
	return !ip_cmp(&flow->orig.src, &client);
}

static void test_filters(struct nl *nl)
{
	struct ct_filter f = {.proto = IPPROTO_UDP};
	unsigned count = 99;
	int asked = 0;

	fill();
	CHECK_INT(left("="), 6);
	/* Nothing like that. */
	f.orig_dport = 99;
	CHECK_INT(ct_flush(nl, &f, NULL, NULL, &count), 0);
	CHECK(count == 0 && left("=") == 6);
	/* By port, in both families and every zone; another port and protocol stay. */
	f.orig_dport = 53;
	CHECK_INT(ct_flush(nl, &f, NULL, NULL, &count), 0);
	CHECK_INT(count, 4);
	CHECK(left("=") == 2 && left("dport=54") == 1 && left("tcp") == 1);
	/* One family: the kernel chooses. */
	fill();
	f.family = AF_INET6;
	CHECK_INT(ct_flush(nl, &f, NULL, NULL, &count), 0);
	CHECK(count == 1 && left("=") == 5 && left("2001:db8::1") == 0);
	/* By whoever answers, whatever the port. */
	fill();
	f = (struct ct_filter){AF_INET, IPPROTO_UDP, 0, {AF_INET, {10, 0, 0, 2}}};
	CHECK_INT(ct_flush(nl, &f, NULL, NULL, &count), 0);
	CHECK(count == 3 && left("=") == 3 && left("10.0.0.3") == 1);
	/* The last word is the caller's. */
	fill();
	f = (struct ct_filter){.family = AF_INET, .proto = IPPROTO_UDP, .orig_dport = 53};
	CHECK_INT(ct_flush(nl, &f, from_2, &asked, &count), 0);
	CHECK_INT(asked, 3);
	CHECK(count == 2 && left("src=192.0.2.3") == 1 && left("zone=7") == 0 && left("=") == 4);
}

int main(void)
{
	autoerr e = {0};
	autonl *nl = NULL;

	if (unshare(CLONE_NEWNET) || system("conntrack -L >/dev/null 2>&1")) {
		printf("1..0 # not root, or no conntrack\n");
		return 77;
	}
	if (CHECK(!nl_open(&nl, NETLINK_NETFILTER, &e)))
		test_filters(nl);
	return check_done();
}
