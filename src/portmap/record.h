/* What one attachment has mapped, and its record: lines of text that are kept in the kernel beside
 * the mappings, so that DEL, GC and a conflicting ADD need nothing else.
 *
 *   0  cnibox <net> <hash> <network> <id> <ifname>             the owner (cni/owner.h)
 *   1  records=7 dev=veth12 from=127.0.0.0/8,10.1.2.0/24
 *      name <network> <id> <ifname>                             only when line 0 is cut
 *      netns <inode> <path>                                     its sandbox
 *      seen link=17 nsid=3 via=cni0                             what else tells whether that lives
 *      pod <hash> <namespace>/<name>
 *      when 4=<conditions> 6=<conditions>                       conditions.h
 *      heir <hash> <hash>                                       who takes the ports up, see heirs.h
 *      map tcp 0.0.0.0 10.1.2.3 8080>80 8443>443                hostIP, container, ports
 *      yield tcp 0.0.0.0 10.1.2.3 8081>81                       the same: somebody else has them
 *
 * Each fits an nf_tables comment; the order of the lines behind 1 means nothing. Records of the
 * versions before 0.2 have neither seen, pod, when, heir nor yield, and "gates=46" in line 1 where
 * there were conditions (layout.h). */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "cni/owner.h"
#include "netlink/nft.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct port_mapping {
	uint8_t proto;  /* IPPROTO_TCP, _UDP, _SCTP */
	struct ip host; /* destination; all zeros: any local address of the family */
	uint16_t host_port;
	struct ip addr; /* of the container */
	uint16_t port;
	bool yielded; /* another attachment of the same container has the host port */
};

/* Networks from which connections are masqueraded: two a family, the container's and loopback. */
#define PORT_SOURCES 4

/* The hash that stands for a set of conditions, in hex digits. */
#define PORT_CONDITIONS 16

struct port_record {
	char hash[OWNER_HASH + 1];
	char owner[NFT_COMMENT_SIZE]; /* comment form, may be cut */
	char name[NFT_COMMENT_SIZE];  /* "<network> <id> <ifname>" */
	struct port_mapping *list;    /* sorted: see record_sort() */
	size_t len;
	struct prefix from[PORT_SOURCES]; /* connections from there are masqueraded */
	size_t from_len;
	char dev[IFNAMSIZ]; /* guarded for this attachment alone (localnet.h), "": none */
	char via[IFNAMSIZ]; /* the link that will need the guard, should yielded ports come back */
	char when[2][PORT_CONDITIONS + 1]; /* conditions of IPv4 and IPv6 mappings, "": none */
	bool gates[2];                     /* the same in a record of the old form */
	char netns[NFT_COMMENT_SIZE];      /* "": unknown */
	uint64_t netns_inode;
	uint32_t link; /* index of the host's end of the container's veth pair, 0: unknown */
	int32_t nsid;  /* of the sandbox (netlink/netns.h), -1: unknown */
	char pod[NFT_COMMENT_SIZE]; /* "<hash> <namespace>/<name>", the names may be cut */
	char (*heirs)[OWNER_HASH + 1];
	size_t heirs_len;
	size_t records; /* how many lines there are */
};

/* An empty record of this owner. record_free() releases what is added. */
void record_init(struct port_record *m, const struct owner *o);
void record_free(struct port_record *m);
#define autorecord __attribute__((cleanup(record_free))) struct port_record

/* Copies the mapping. Returns 0 or -1 (out of memory). */
int record_add(struct port_record *m, const struct port_mapping *p);

/* Sorts by what arrives (family, host address, protocol, host port), drops exact repetitions.
 * Fails with ERR_INVALID_CONFIG when one host port leads to two places. */
int record_sort(struct port_record *m, struct err *e);

/* Whether it has mappings of a family (AF_UNSPEC: of any) that were not yielded. */
bool record_maps(const struct port_record *m, uint8_t family);

/* Whether two mappings claim the same: host address, protocol and port. */
bool record_same_claim(const struct port_mapping *a, const struct port_mapping *b);

/* The conditions of a mapping, by the family of its container's address; "" for none. */
const char *record_when(const struct port_record *m, const struct port_mapping *p);

/* Adds one that takes over what this one leaves; once. Returns 0 or -1 (out of memory). */
int record_add_heir(struct port_record *m, const char *hash);

/* "tcp", "udp", "sctp". portproto_parse() takes any case; 0: none of them. */
const char *portproto_name(uint8_t proto);
uint8_t portproto_parse(const char *name);

/* The record as text. Allocated; m->records is set. Returns NULL when out of memory. */
typedef char record_line[NFT_COMMENT_SIZE];
record_line *record_text(struct port_record *m);

/* Takes in one line of a record. Lines it does not understand are skipped, so that a record that
 * somebody mangled still yields the rest. Returns 0, or -ENOMEM. */
int record_read(struct port_record *m, const char *line);

/* Whether the owner is an attachment of the container with this id, by the name. */
bool record_of_container(const struct port_record *m, const char *id);

/* Names the pod: K8S_POD_NAMESPACE and K8S_POD_NAME. */
void record_set_pod(struct port_record *m, const char *space, const char *name);
/* Whether both name the same one; false when one names none. */
bool record_same_pod(const struct port_record *a, const struct port_record *b);
