#include "filter/change.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What the kernel says to a question about nf_tables when there is no nfnetlink (the socket cannot
 * be made) and when nfnetlink does not know nf_tables. nfnetlink.c, nfnetlink_rcv_msg(). */
static bool is_absent(int ret)
{
	return ret == -EPROTONOSUPPORT || ret == -EAFNOSUPPORT || ret == -EINVAL ||
	       ret == -EOPNOTSUPP;
}

int change_open(struct nft **n, struct err *e)
{
	autoerr failed = {0};
	uint32_t genid;
	int ret = nft_open(n, &failed) ? -failed.sys : nft_genid(*n, &genid);

	if (!ret)
		return 1;
	if (is_absent(ret))
		return 0;
	if (failed.set)
		err_merge(e, &failed);
	else
		err_sys(e, -ret, ERR_SYSTEM, "cannot read the state of nf_tables");
	return -1;
}

/* Nothing has changed since the same message was refused before. */
static bool is_refused_again(struct change *c, int ret)
{
	uint32_t before = c->genid;
	int index = c->index;

	c->genid = 0;
	c->index = c->failure.index;
	return ret == -ENOENT && !nft_genid(c->n, &c->genid) && before == c->genid &&
	       index == c->index;
}

bool change_again(struct change *c, int *ret)
{
	uint32_t genid;

	if (c->attempt && is_absent(*ret) && !c->failure.lacks[0] &&
		is_absent(nft_genid(c->n, &genid))) {
		*ret = -EOPNOTSUPP;
		strcpy(c->failure.lacks, "nf_tables (module nf_tables)");
	}
	if (c->attempt && (!nft_raced(*ret) || c->attempt >= CHANGE_ATTEMPTS))
		return false;
	if (c->attempt && is_refused_again(c, *ret)) {
		*ret = c->index < 0 ? *ret : -EOPNOTSUPP;
		return false;
	}
	c->attempt++;
	c->failure = (struct nft_failure){.index = -1};
	return true;
}

int change_failed(
	struct err *e, int ret, const struct nft_failure *f, int code, const char *fmt, ...)
{
	bool lacks = ret == -EOPNOTSUPP && f->lacks[0];
	autofree char *what = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&what, fmt, ap) < 0)
		what = NULL;
	va_end(ap);
	if (nft_raced(ret) && code == ERR_SYSTEM)
		code = ERR_TRY_AGAIN;
	return err_kernel(e, -ret, f->ext, code, "%s%s%s%s", what ? what : "nf_tables",
		lacks ? ": the kernel lacks " : "", lacks ? f->lacks : "",
		code == ERR_TRY_AGAIN ? ": the rules keep changing" : "");
}

int change_probe(void (*put)(struct nft *n), const char *what, struct err *e)
{
	autoerr failed = {0};
	struct change c = {0};
	autonft *n = NULL;
	int ret = 0;

	if (nft_open(&n, &failed))
		return err_sys(e, failed.sys, ERR_NOT_AVAILABLE, "%s is not available: %s", what,
			failed.msg);
	c.n = n;
	while (change_again(&c, &ret)) {
		nft_begin(n, 0);
		put(n);
		ret = nft_check(n, &c.failure);
	}
	return ret ? change_failed(
			     e, ret, &c.failure, ERR_NOT_AVAILABLE, "%s is not available", what)
		   : 0;
}

bool change_is_stale(
	const struct request *req, const struct valid_set *valid, const struct owner_ref *ref)
{
	return !strcmp(ref->net, req->owner.net) && !valid_set_has_hash(valid, ref->hash);
}
