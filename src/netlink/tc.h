/* Traffic control: the token bucket, the ingress hook, and the redirection of everything a link
 * receives to another link. linux/pkt_sched.h, linux/pkt_cls.h, tc-tbf(8), tc-u32(8),
 * tc-mirred(8). */
#pragma once

#include "base/err.h"
#include "netlink/nl.h"

#include <linux/pkt_sched.h>
#include <stdbool.h>
#include <stdint.h>

/* A token bucket filter, in bytes. */
struct tbf {
	uint64_t rate;  /* bytes per second, not 0 */
	uint32_t burst; /* bytes, not 0: what may pass at once after a pause */
	uint32_t limit; /* bytes that may wait */
};

/* One queueing discipline as the kernel describes it. */
struct qdisc {
	char kind[16];
	uint32_t handle;
	/* Of a tbf only. The kernel keeps the burst as time: buffer is in ticks of 64 ns modulo
	 * 2^32, see tbf_ticks(). */
	uint64_t rate;
	uint32_t limit;
	uint32_t buffer;
};

/* The handle of every tbf made here, as `tc` shows it: "1:". */
#define TBF_HANDLE 0x10000u

/* The qdisc at a parent of a link: TC_H_ROOT or TC_H_INGRESS. Returns 0, -ENOENT when there is none
 * (a default that the kernel hides counts as none), or -errno. */
int tc_qdisc_get(struct nl *nl, uint32_t index, uint32_t parent, struct qdisc *out);

/* Deletes it. Returns 0 or -errno (-ENOENT, -EINVAL or -ENODEV: there was none). */
int tc_qdisc_del(struct nl *nl, uint32_t index, uint32_t parent);

/* Whether an errno of these functions means that there is no such thing; everything else means that
 * it could not be looked at. */
bool tc_is_absent(int ret);

/* Makes a tbf the root of a link, or changes the one that is there under our handle in place. A
 * root qdisc of another kind is refused, not replaced. *created (may be NULL) tells which. `name`
 * is for messages. Returns 0, or -1 with e set. */
int tc_tbf_set(struct nl *nl, uint32_t index, const char *name, const struct tbf *tbf,
	bool *created, struct err *e);

/* Whether that qdisc is a tbf of ours. */
bool tc_is_tbf(const struct qdisc *q);

/* The burst as the kernel reports it for this rate: ticks of 64 ns modulo 2^32. */
uint32_t tbf_ticks(const struct tbf *tbf);

/* Whether the kernel's buffer is this burst: it (and tools that count in microseconds) rounds. */
bool tbf_buffer_is(uint32_t buffer, const struct tbf *tbf);

/* Makes sure that the link has an ingress hook: an ingress qdisc, or the clsact qdisc somebody else
 * put there. *parent is what filters attach to. *created (may be NULL) is false when it was there.
 * Returns 0, or -1 with e set. */
int tc_ingress_ensure(struct nl *nl, uint32_t index, const char *name, uint32_t *parent,
	bool *created, struct err *e);

/* The same without making one: 0, -ENOENT, or -errno. *kind_ingress (may be NULL): it is a plain
 * ingress qdisc, not clsact. */
int tc_ingress_get(struct nl *nl, uint32_t index, uint32_t *parent, bool *kind_ingress);

/* A filter that sends everything received to another link. */
struct redirect {
	uint32_t to;     /* interface index; 0: the link it went to is gone, it drops everything */
	uint32_t handle; /* with priority and protocol the filter's identity */
	uint32_t info;
};

/* Installs one: u32, matching all, egress redirect. Returns 0 or -errno with the kernel's text. */
int tc_redirect_add(
	struct nl *nl, uint32_t index, uint32_t parent, uint32_t to, char *ext, size_t size);

/* Looks for one that goes to `to` (0: to anywhere or nowhere) among the filters of this one link.
 * Returns 0, -ENOENT, or -errno. */
int tc_redirect_get(
	struct nl *nl, uint32_t index, uint32_t parent, uint32_t to, struct redirect *out);

/* Removes that filter; 0 or -errno. */
int tc_redirect_del(
	struct nl *nl, uint32_t index, uint32_t parent, const struct redirect *redirect);

/* Whether any filter hangs there: 1, 0, or -errno. */
int tc_has_filters(struct nl *nl, uint32_t index, uint32_t parent);

/* Whether this kernel can do what is above, and make IFB links. Changes nothing: each part is asked
 * for in a form the kernel must refuse, and the refusal tells whether it knows the part. Modules
 * are loaded on the way. e names the first one missing (ERR_NOT_AVAILABLE). */
int tc_probe(struct nl *nl, struct err *e);
