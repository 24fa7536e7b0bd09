/* What IPAM plugins read alike: addresses that the caller asks for, and what old versions of the
 * specification have room for. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "cni/request.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>

/* More than any interface carries; each is compared with each. */
#define IPAM_ADDRESSES_MAX 1024

struct ip_request {
	struct prefix address;
	bool has_len; /* written as a prefix; otherwise address.len is all bits */
};

struct ip_requests {
	struct ip_request *list; /* owned: free() */
	size_t len;
};

/* "ips" of an object, which is args.cni or runtimeConfig and called `where` in messages; NULL has
 * none. Appended to out. Returns 0, or -1 with e set (ERR_INVALID_CONFIG). */
int ipam_read_ips(const json *parent, const char *where, struct ip_requests *out, struct err *e);

/* IP of CNI_ARGS, one address or, empty, none. Appended to out. Returns 0, or -1 with e set. */
int ipam_read_args_ip(const struct request *req, struct ip_requests *out, struct err *e);

/* Whether a result of this version holds so many addresses: before 0.3.0 it has room for one of
 * each family. Returns 0, or -1 with e set. */
int ipam_check_version(const char *version, size_t v4, size_t v6, struct err *e);
