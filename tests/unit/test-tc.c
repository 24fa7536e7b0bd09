/* Traffic control: the bucket's arithmetic, and that what is encoded is what the kernel has and the
 * tc tool shows. The second half needs root: it works in a network namespace of its own. */
#include "netlink/nl.h"
#include "netlink/tc.h"

#include "check.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>

/* Ticks of 64 ns: burst * 10^9 / rate / 64, modulo 2^32. Computed with integers without a bound. */
static void test_ticks(void)
{
	static const struct {
		uint64_t rate;
		uint32_t burst;
		uint32_t ticks;
	} cases[] = {
		{1, UINT32_MAX, 4279342296u},
		{1, 1, 15625000},
		{3, UINT32_MAX, 1426447432u},
		{125000, 125000, 15625000},
		{1000000, UINT32_MAX, 2684354544u},
		{1000000000, 64, 1},
		{1000000000, 63, 0},
		{UINT32_MAX, UINT32_MAX, 15625000},
		{UINT64_MAX, UINT32_MAX, 0},
		{UINT64_MAX, 1, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct tbf tbf = {.rate = cases[i].rate, .burst = cases[i].burst};

		CHECK_INT(tbf_ticks(&tbf), cases[i].ticks);
		CHECK(tbf_buffer_is(cases[i].ticks, &tbf));
		/* Two microseconds off is rounding, three are not, on either side of the wrap. */
		CHECK(tbf_buffer_is(cases[i].ticks - 32, &tbf));
		CHECK(tbf_buffer_is(cases[i].ticks + 32, &tbf));
	}
	CHECK(!tbf_buffer_is(15625000 - 33, &(struct tbf){.rate = 1, .burst = 1}));
	CHECK(!tbf_buffer_is(15625000 + 33, &(struct tbf){.rate = 1, .burst = 1}));
	CHECK(!tbf_buffer_is(UINT32_MAX - 32, &(struct tbf){.rate = UINT64_MAX, .burst = 1}));
}

/* What a command prints, up to the first line's end. */
static const char *shown(const char *cmd)
{
	static char line[1024];
	FILE *f = popen(cmd, "r");

	line[0] = '\0';
	if (!f || !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		pclose(f);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static void test_bucket(struct nl *nl, uint32_t index)
{
	static const struct tbf buckets[] = {
		{.rate = 125000, .burst = 125000, .limit = 250000},
		{.rate = 1, .burst = UINT32_MAX, .limit = UINT32_MAX},
		{.rate = 5000000000, .burst = 1000000, .limit = 2000000}, /* 64 bits */
		{.rate = 12500000, .burst = 512000000, .limit = 1000000},
	};
	autoerr e = {0};
	struct qdisc q;
	bool created;

	CHECK_INT(tc_qdisc_get(nl, index, TC_H_INGRESS, &q), -ENOENT);
	for (size_t i = 0; i < sizeof(buckets) / sizeof(*buckets); i++) {
		CHECK(!tc_tbf_set(nl, index, "v0", &buckets[i], &created, &e));
		CHECK(created == (i == 0)); /* then changed in place */
		CHECK_INT(tc_qdisc_get(nl, index, TC_H_ROOT, &q), 0);
		CHECK(tc_is_tbf(&q) && q.rate == buckets[i].rate && q.limit == buckets[i].limit);
		CHECK(tbf_buffer_is(q.buffer, &buckets[i]));
	}
	CHECK(!tc_tbf_set(nl, index, "v0", &buckets[0], &created, &e));
	CHECK_STR(shown("tc qdisc show dev v0 root | sed 's/refcnt [0-9]* //'"),
		"qdisc tbf 1: root rate 1Mbit burst 125000b lat 1s ");
	CHECK_INT(tc_qdisc_del(nl, index, TC_H_ROOT), 0);
	/* Somebody else's is not replaced. */
	CHECK(!system("tc qdisc add dev v0 root handle 7: pfifo"));
	CHECK(tc_tbf_set(nl, index, "v0", &buckets[0], &created, &e) == -1);
	CHECK(e.set && strstr(e.msg, "kind pfifo (handle 7:)"));
	CHECK(!tc_qdisc_get(nl, index, TC_H_ROOT, &q) && !tc_is_tbf(&q));
	CHECK_STR(q.kind, "pfifo");
}

static void test_redirect(struct nl *nl, uint32_t index, uint32_t to)
{
	struct redirect r = {0};
	uint32_t parent = 0, same = 0;
	bool created, plain;
	autoerr e = {0};
	char ext[160];

	CHECK_INT(tc_ingress_get(nl, index, &parent, NULL), -ENOENT);
	CHECK(!tc_ingress_ensure(nl, index, "v0", &parent, &created, &e) && created);
	CHECK(!tc_ingress_ensure(nl, index, "v0", &same, &created, &e) && !created &&
		same == parent);
	CHECK(!tc_ingress_get(nl, index, &same, &plain) && plain && same == parent);
	CHECK_INT(tc_has_filters(nl, index, parent), 0);
	CHECK_INT(tc_redirect_get(nl, index, parent, 0, &r), -ENOENT);
	CHECK_INT(tc_redirect_add(nl, index, parent, to, ext, sizeof(ext)), 0);
	CHECK_INT(tc_has_filters(nl, index, parent), 1);
	CHECK_INT(tc_redirect_get(nl, index, parent, to + 1, &r), -ENOENT);
	CHECK_INT(tc_redirect_get(nl, index, parent, 0, &r), 0);
	CHECK(r.to == to && r.handle && r.info);
	CHECK_STR(shown("tc filter show dev v0 ingress | grep -o 'Egress Redirect to device v1'"),
		"Egress Redirect to device v1");
	CHECK_STR(shown("tc filter show dev v0 ingress | grep -o 'match 00000000/00000000 at 0'"),
		"match 00000000/00000000 at 0");
	CHECK_INT(tc_redirect_del(nl, index, parent, &r), 0);
	CHECK_INT(tc_redirect_get(nl, index, parent, to, &r), -ENOENT);
	/* A filter that looks at something redirects not everything. */
	CHECK(!system(
		"tc filter add dev v0 ingress protocol all prio 1 u32 match ip dst 10.0.0.1/32 "
		"action mirred egress redirect dev v1"));
	CHECK_INT(tc_redirect_get(nl, index, parent, to, &r), -ENOENT);
	CHECK_INT(tc_qdisc_del(nl, index, TC_H_INGRESS), 0);
	/* clsact, which others put there, will do. */
	CHECK(!system("tc qdisc add dev v0 clsact"));
	CHECK(!tc_ingress_ensure(nl, index, "v0", &parent, &created, &e) && !created);
	CHECK_INT(tc_redirect_add(nl, index, parent, to, ext, sizeof(ext)), 0);
	CHECK(!tc_redirect_get(nl, index, parent, to, &r) && r.to == to);
}

static void with_kernel(void)
{
	autoerr e = {0};
	autonl *nl = NULL;

	if (unshare(CLONE_NEWNET) || system("ip link add v0 type veth peer name v1 2>/dev/null")) {
		printf("not root: only the arithmetic was looked at\n");
		return;
	}
	if (!CHECK(!nl_open(&nl, NETLINK_ROUTE, &e)))
		return;
	if (tc_probe(nl, &e)) {
		printf("%s\n", e.msg);
		return;
	}
	test_bucket(nl, if_nametoindex("v0"));
	test_redirect(nl, if_nametoindex("v0"), if_nametoindex("v1"));
}

int main(void)
{
	test_ticks();
	with_kernel();
	return check_done();
}
