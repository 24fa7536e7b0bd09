/* A request: environment and stdin of one call, read and checked once. CNI spec 1.1.0, section 2;
 * reference/protocol.md, section 1. */
#pragma once

#include "base/err.h"
#include "cni/owner.h"
#include "result/result.h"
#include "json/json.h"

enum verb { VERB_ADD, VERB_DEL, VERB_CHECK, VERB_GC, VERB_STATUS, VERB_VERSION };

struct applet;

struct attachment {
	const char *id;
	const char *ifname;
};

struct request {
	enum verb verb;
	/* From the environment; "" when unset. netns is verbatim: it goes into the result as is. */
	const char *id;
	const char *netns;
	const char *ifname;
	const char *args;
	const char *path;

	const struct applet *applet;
	const struct request *caller; /* who delegated this call, in this process; or NULL */
	const json *conf;             /* the whole document on stdin */
	const char *text;             /* the same, byte for byte: what a delegate gets */
	size_t text_len;
	const char *network; /* its "name" */
	const char *version; /* its "cniVersion", "" read as 0.1.0 */
	struct owner owner;
};

/* As it stands in CNI_COMMAND. */
const char *verb_name(enum verb v);
/* The verb spelled exactly so; false for anything else. */
bool verb_parse(const char *text, enum verb *out);

/* Reads "prevResult" of the config. *present tells whether there was one; `required` makes its
 * absence an error with that text (NULL: absence is fine). r is empty when absent. */
int request_prev_result(const struct request *req, struct result *r, bool *present,
	const char *required, struct err *e);

/* "runtimeConfig" and "args"."cni" of the config: objects, or NULL when absent. Wrong type: -1. */
int request_runtime_config(const struct request *req, const json **out, struct err *e);
int request_args_cni(const struct request *req, const json **out, struct err *e);

/* The set of valid attachments of a GC: both spellings of the key; absent, null and empty alike
 * mean that none is valid (protocol.md, section 7). */
struct valid_set {
	struct attachment *list; /* strings borrowed from the config */
	size_t len;
	struct owner *owners; /* the same for this request's network, sorted by hash */
};
int request_valid_set(const struct request *req, struct valid_set *set, struct err *e);
void valid_set_free(struct valid_set *set);
/* Whether any attachment of that container is valid. */
bool valid_set_has_id(const struct valid_set *set, const char *id);
/* By hash, as owner_parse() yields it. */
bool valid_set_has_hash(const struct valid_set *set, const char *hash);
