/* The result of an ADD, and prevResult: one in-memory form (that of spec 1.1.0, with what we do not
 * know kept beside it), a reader and a writer per version family.
 *
 *   A: 0.1.0, 0.2.0          ip4 / ip6
 *   B: 0.3.0, 0.3.1, 0.4.0   interfaces / ips with "version"
 *   C: 1.0.0, 1.1.0          interfaces / ips
 *
 * CNI spec 1.1.0, section 5; reference/protocol.md, section 2. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/ip.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The versions there are, oldest first, and how many. */
extern const char *const cni_versions[];
extern const size_t cni_versions_len;
#define CNI_CURRENT "1.1.0"

/* Whether the string is literally one of them ("" counts as 0.1.0). */
bool cni_version_known(const char *version);

/* Compares two versions by number; "" is 0.1.0, missing parts are 0. *cmp is <0, 0, >0. Returns 0,
 * or -1 with e set (ERR_DECODE) when one cannot be parsed. */
int cni_version_cmp(const char *a, const char *b, int *cmp, struct err *e);

struct iface {
	char *name; /* never NULL */
	char *mac;  /* NULL when empty; likewise sandbox, socket_path, pci_id */
	char *sandbox;
	char *socket_path;
	char *pci_id;
	int64_t mtu; /* 0: none */
	json *extra; /* an object with the fields we do not know, or NULL */
};

struct ip_config {
	struct prefix address;
	struct ip gateway; /* family 0: none */
	bool has_iface;
	int64_t iface; /* index into ifaces, or out of its range: see result_ip_iface() */
	uint8_t block; /* of shape A, that it was read from: AF_INET for ip4, AF_INET6, or 0 */
	json *extra;
};

struct route {
	struct prefix dst;
	struct ip gw; /* family 0: none */
	int64_t mtu;  /* 0: none; likewise advmss, priority */
	int64_t advmss;
	int64_t priority;
	bool has_table;
	int64_t table;
	bool has_scope;
	int64_t scope;
	uint8_t block; /* as above */
	json *extra;
};

struct dns {
	char **nameservers; /* NULL-terminated, or NULL */
	char *domain;       /* NULL when empty */
	char **search;
	char **options;
	json *extra;
};

struct result {
	struct iface *ifaces;
	size_t ifaces_len;
	struct ip_config *ips;
	size_t ips_len;
	struct route *routes;
	size_t routes_len;
	struct dns dns;
	json *extra;     /* top-level fields we do not know */
	bool is_shape_a; /* was read from one of shape A, and goes back into it without addresses,
			    too */
};

/* Reads a result document. `assume` is the version of one without "cniVersion". Its own label
 * chooses the shape. Everything is copied; what *r held is not freed. On failure *r is empty and e
 * is set with `code`. Fields that only another shape has vanish, as they do upstream.
 * Fields that came with 1.1.0 are kept in results of older versions where they make sense there.
 *
 * Texts that are only passed on may hold a NUL character, in the form that json_get_text() gives.
 *
 * The errors are those of reference/protocol.md 2.2 and 2.4; entries without address or dst, and
 * null entries, are refused. */
int result_read(struct result *r, const json *doc, const char *assume, int code, struct err *e);

/* Reads a prevResult for a config of version `config_version`: no label means that version, a label
 * must belong to the same shape (protocol.md 2.6). */
int result_read_prev(struct result *r, const json *doc, const char *config_version, struct err *e);

/* Writes it in the given version ("" is 0.1.0), 4 spaces of indentation, no trailing newline.
 * Interface indexes are written as they are. Fails with e set: unknown version, and for shape A
 * "cannot convert: no valid IP addresses". Fields we do not know are kept in every shape; shape A
 * has no interfaces, so those are lost there. */
int result_write(const struct result *r, const char *version, struct buf *out, struct err *e);

/* What is left of a result after it was printed in that version and read again: what a caller sees
 * of a delegate. Same errors as result_write(); r stays as it is then. */
int result_convert(struct result *r, const char *version, struct err *e);

/* The document for a stdin config ("prevResult") or a cache entry: owned by the caller, NULL with e
 * set on failure. */
json *result_to_json(const struct result *r, const char *version, struct err *e);

/* Deep copy. Returns 0 or -1 (out of memory, e set; dst empty). */
int result_copy(struct result *dst, const struct result *src, struct err *e);

/* Frees what it holds, and makes it empty. */
void result_free(struct result *r);
#define autoresult __attribute__((cleanup(result_free))) struct result

/* Appending; strings are copied. Each returns the new entry, zeroed but for what is given, or NULL
 * with e set. Pointers to earlier entries are invalid afterwards. */
struct iface *result_add_iface(
	struct result *r, const char *name, const char *mac, const char *sandbox, struct err *e);
struct ip_config *result_add_ip(struct result *r, const struct prefix *address, struct err *e);
struct route *result_add_route(struct result *r, const struct prefix *dst, struct err *e);

/* Sets the MTU of an interface that we made or set up, for a result that is printed in that
 * version: the spec knows it since 1.1.0. (One that was read in an older result is passed on all
 * the same.) */
void iface_set_mtu(struct iface *i, const char *version, uint32_t mtu);

/* Forgets the interfaces; indexes that refer to them are left as they are. */
void result_drop_ifaces(struct result *r);

/* Replaces a string member of an iface (mac and the like): frees the old, copies the new. */
int result_set_str(char **slot, const char *value, struct err *e);

/* Reads an array of route objects, or a dns object, as configs contain them (ipam.routes, dns).
 * Appended to r->routes; r->dns is replaced. The key names the place in error messages. */
int result_read_routes(
	struct result *r, const json *array, const char *key, int code, struct err *e);
int result_read_dns(struct dns *dns, const json *object, int code, struct err *e);
void dns_free(struct dns *dns);
bool dns_empty(const struct dns *dns);

/* The entry of the interface that address i belongs to; NULL when it belongs to none: no index, or
 * one that names no entry. Such an index (-1, or beyond the end) is legal in what other plugins
 * hand out, and is passed on as it came; so this is the only way from an address to its interface.
 */
const struct iface *result_ip_iface(const struct result *r, size_t i);

/* The entry of the container's own interface: the last with this name and a non-empty sandbox equal
 * to netns. NULL when there is none. */
const struct iface *result_find_iface(const struct result *r, const char *name, const char *netns);
