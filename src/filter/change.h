/* Changing nf_tables rules that others change too: look at what is there, put what should be
 * different into a batch, commit it, and look again when somebody was faster. And the two questions
 * every user of nf_tables has: is there any here, and whose is what was found. */
#pragma once

#include "base/err.h"
#include "cni/owner.h"
#include "cni/request.h"
#include "netlink/nft.h"

/* Opens nf_tables for a verb that only removes. Returns 1; 0 when this kernel has no nf_tables
 * (compiled out, or its modules cannot be loaded), so that nothing of ours can be there; or -1 with
 * e set. *n is owned by the caller. */
int change_open(struct nft **n, struct err *e);

/* How often a change is tried. Each refusal lasts an RCU grace period, 5 to 20 ms, so that this is
 * a second or two of bad luck; and portmap needs an attempt for each dead container whose port it
 * takes over. */
#define CHANGE_ATTEMPTS 100

/* On a node whose rules never rest, a batch that insists on an unchanged rule set (nft_begin() with
 * a generation number) may never get through: it is given up after so many attempts. */
#define CHANGE_PATIENCE 8

/* One change. The loop is
 *
 *	struct change c = {.n = n};
 *	int ret = 0;
 *
 *	while (change_again(&c, &ret))
 *		ret = look_and_commit(n, …, &c.failure);
 */
struct change {
	struct nft *n;
	struct nft_failure failure; /* of the last commit, filled in by the loop's body */
	int attempt;                /* the current one: 1, 2, … */
	uint32_t genid;             /* the rule set after the last failure, 0: not asked */
	int index;                  /* of the message refused then */
};

/* Whether to make the first, or another attempt; *ret is what the last one ended with: 0 or -errno.
 * It goes on when somebody else has changed the same objects (nft_raced()), and ends
 * - with success or any other failure;
 * - after CHANGE_ATTEMPTS;
 * - when the same message was refused twice with -ENOENT and the rule set was the same before and
 *   after: then nothing has changed, but the kernel lacks what the message asks for. *ret becomes
 *   -EOPNOTSUPP. (Newer kernels tell at once, see nft_commit().) */
bool change_again(struct change *c, int *ret);

/* Reports a change that failed for good: "what: what the kernel lacks", with errno and the kernel's
 * text as details. ERR_TRY_AGAIN while others keep changing the rules, else code. Returns -1. */
int change_failed(struct err *e, int ret, const struct nft_failure *f, int code, const char *fmt,
	...) __attribute__((format(printf, 5, 6)));

/* For STATUS: whether the kernel would take what `put` puts into a batch (nothing: yes). Modules
 * are loaded on the way, nothing is kept. Returns 0, or -1 with e set (ERR_NOT_AVAILABLE): "what is
 * not available: the kernel lacks …". */
int change_probe(void (*put)(struct nft *n), const char *what, struct err *e);

/* Whether what carries this mark belongs to an attachment of the request's network that is not in
 * the set: GC removes it. */
bool change_is_stale(
	const struct request *req, const struct valid_set *valid, const struct owner_ref *ref);
