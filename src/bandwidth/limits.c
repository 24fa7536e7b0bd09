#include "bandwidth/limits.h"

#include "json/keys.h"

#include <strings.h>

/* What the Go plugin takes: in bytes, less than 2^32 - 1. */
#define MAX_BURST   ((UINT64_C(4294967295) - 1) * 8 + 7)
#define MAX_LATENCY 60000

/* ---- configuration ---- */

static const struct json_key limit_keys[] = {
	JSON_KEY_U64(struct limits, "ingressRate", in.rate),
	JSON_KEY_U64(struct limits, "ingressBurst", in.burst),
	JSON_KEY_U64(struct limits, "egressRate", out.rate),
	JSON_KEY_U64(struct limits, "egressBurst", out.burst),
	JSON_KEYS_END,
};

static const struct json_key own_keys[] = {
	JSON_KEY_INT(struct limits, "latency", latency, 1, MAX_LATENCY),
	JSON_KEYS_END,
};

/* Whether any of the limits stands in the config itself: even null or 0 there switches off what the
 * runtime says, all of it. */
static bool has_static_limits(const json *conf)
{
	for (void *it = json_iter(conf); it; it = json_iter_next(conf, it))
		for (const struct json_key *k = limit_keys; k->name; k++)
			if (!strcasecmp(json_iter_key(it), k->name))
				return true;
	return false;
}

/* The messages are the Go plugin's, word for word; which direction it is stands in the details. */
static int check_limit(const struct limit *l, const char *direction, struct err *e)
{
	const char *wrong = NULL;

	if (l->rate && !l->burst)
		wrong = "if rate is set, burst must also be set";
	else if (l->burst && !l->rate)
		wrong = "if burst is set, rate must also be set";
	else if (l->burst > MAX_BURST)
		wrong = "burst cannot be more than 4GB";
	else if (l->rate && (l->rate < 8 || l->burst < 8))
		wrong = "rate and burst must be at least 8 bits, which is one byte";
	if (!wrong)
		return 0;
	err_set(e, ERR_INVALID_CONFIG, "%s", wrong);
	return err_detail(e, "%sRate is %llu, %sBurst is %llu", direction,
		(unsigned long long)l->rate, direction, (unsigned long long)l->burst);
}

int limits_read(const struct request *req, struct limits *l, struct err *e)
{
	const json *from = req->conf, *runtime = NULL;

	*l = (struct limits){0};
	if (json_read_keys(req->conf, own_keys, l, e))
		return -1;
	if (!has_static_limits(req->conf)) {
		if (request_runtime_config(req, &runtime, e))
			return -1;
		from = NULL;
		if (runtime && json_get_object(runtime, "bandwidth", &from, e))
			return -1;
	}
	if (!from)
		return 0;
	if (json_read_keys(from, limit_keys, l, e))
		return -1;
	return check_limit(&l->in, "ingress", e) || check_limit(&l->out, "egress", e) ? -1 : 0;
}

/* ---- the bucket ---- */

/* Any packet up to this size fits into the queue, segmentation offload included, as long as the
 * burst lets it pass at all. */
#define QUEUE_FLOOR 131072u

/* What a frame has beside the MTU's worth of it: an Ethernet header with a VLAN tag. */
#define FRAME_HEADER 18u

/* Kubernetes has annotations for rates, none for bursts, and the Go plugin wants both: runtimes
 * send the largest number they think it takes. As a bucket that is up to 4 GB, which pass before
 * the rate is felt at all. */
static bool is_given(uint64_t burst)
{
	return burst != INT32_MAX &&  /* dockershim, cri-dockerd */
	       burst != UINT32_MAX && /* containerd */
	       burst != MAX_BURST;    /* CRI-O */
}

/* The burst in bytes. Where none is given a tenth of a second's worth of the rate: over ten seconds
 * that is one per cent. Two full packets it must be, or one waits for the other's tokens. */
static uint32_t burst_bytes(const struct limit *l, uint32_t mtu)
{
	uint64_t burst = l->burst / 8, packets = 2 * ((uint64_t)mtu + FRAME_HEADER);

	if (!is_given(l->burst)) {
		burst = l->rate / 8 / 10;
		burst = burst > packets ? burst : packets;
	}
	return burst > UINT32_MAX ? UINT32_MAX : (uint32_t)burst;
}

/* How many bytes may wait: 25 ms worth of the rate and the burst, as the Go plugin has it, except
 * that the burst counts for at most a second, or packets would wait for minutes where it is one
 * that was not given. */
static uint64_t queue_bytes(const struct limit *l, int64_t latency)
{
	uint64_t rate = l->rate / 8, burst = l->burst / 8;
	uint64_t second = rate > QUEUE_FLOOR ? rate : QUEUE_FLOOR;
	uint64_t floor = burst < QUEUE_FLOOR ? burst : QUEUE_FLOOR;

	if (!latency)
		return rate / 40 + (burst < second ? burst : second);
	/* The kernel's 32 bits are full long before the product is larger than 64. */
	if (rate > UINT64_MAX / MAX_LATENCY)
		return UINT64_MAX;
	rate = rate * (uint64_t)latency / 1000;
	return rate > floor ? rate : floor;
}

struct tbf limit_bucket(const struct limit *l, int64_t latency, uint32_t mtu)
{
	uint64_t queue = queue_bytes(l, latency);

	return (struct tbf){.rate = l->rate / 8,
		.burst = burst_bytes(l, mtu),
		.limit = queue > UINT32_MAX ? UINT32_MAX : (uint32_t)queue};
}

/* ---- CHECK ---- */

/* The burst as the Go plugin hands it to the kernel: microseconds in 32 bits, made ticks of 64 ns
 * in 32 bits. Both wrap around where the burst is one that was not given and the rate is low. */
static uint32_t their_ticks(const struct limit *l)
{
	uint32_t usec = (uint32_t)(l->burst / 8 * 1000000 / (l->rate / 8));

	return (uint32_t)((uint64_t)usec * 125 / 8);
}

/* Whether the bucket's burst is what ADD sets, or the number as it stands in the config: what was
 * made by one who took a burst that is not given for one that is stays until it is added again. */
static bool burst_is(const struct qdisc *q, const struct limit *limit, const struct tbf *tbf)
{
	struct tbf literal = *tbf;
	/* They divide in floating point: a microsecond more or less, 16 ticks. */
	uint32_t off = q->buffer - their_ticks(limit) + 16;

	literal.burst = (uint32_t)(limit->burst / 8);
	return tbf_buffer_is(q->buffer, tbf) || tbf_buffer_is(q->buffer, &literal) || off <= 32;
}

int limit_check(const struct limit *limit, int64_t latency, const struct link *l,
	const struct qdisc *q, struct err *e)
{
	struct tbf tbf = limit_bucket(limit, latency, l->mtu);
	/* What the Go plugin sets, which adds up in 32 bits. */
	uint32_t theirs = (uint32_t)(tbf.rate / 40 + limit->burst / 8);

	if (q->rate != tbf.rate)
		return err_set(e, ERR_CHECK, "Rate doesn't match: %s has %llu bytes/s, not %llu",
			l->name, (unsigned long long)q->rate, (unsigned long long)tbf.rate);
	if (q->limit != tbf.limit && q->limit != theirs)
		return err_set(e, ERR_CHECK, "Limit doesn't match: %s has %u bytes, not %u",
			l->name, q->limit, tbf.limit);
	if (!burst_is(q, limit, &tbf))
		return err_set(e, ERR_CHECK, "Buffer doesn't match: %s has %u ticks, not %u",
			l->name, q->buffer, tbf_ticks(&tbf));
	return 0;
}
