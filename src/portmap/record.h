/* The port mappings of one attachment, and their record: the lines of text that portrules.c keeps
 * in the kernel beside the mappings, so that DEL, GC and a conflicting ADD need nothing else.
 *
 *   0  cnibox <net> <hash> <network> <id> <ifname>             the owner (cni/owner.h)
 *   1  records=4 dev=veth12 gates=4 from=127.0.0.0/8,10.1.2.0/24
 *      name <network> <id> <ifname>                             only when line 0 is cut
 *      netns <inode> <path>                                     whether the owner still lives
 *      map tcp 0.0.0.0 10.1.2.3 8080>80 8443>443                hostIP, container, ports
 *
 * Each fits an nf_tables comment. */
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
};

#define PORT_SOURCES 4

struct portmaps {
	char hash[OWNER_HASH + 1];
	char owner[NFT_COMMENT_SIZE]; /* comment form, may be cut */
	char name[NFT_COMMENT_SIZE];  /* "<network> <id> <ifname>" */
	struct port_mapping *list;    /* sorted: see portmaps_sort() */
	size_t len;
	size_t cap;
	struct prefix from[PORT_SOURCES]; /* connections from there are masqueraded */
	size_t from_len;
	char dev[IFNAMSIZ]; /* the host's link to this container alone, "": shared or unknown */
	bool gates[2];      /* there are conditions for IPv4, IPv6 */
	char netns[NFT_COMMENT_SIZE]; /* "": unknown */
	uint64_t netns_inode;
	size_t records; /* how many lines there are */
};

/* An empty list of this owner. portmaps_free() releases what is added. */
void portmaps_init(struct portmaps *m, const struct owner *o);
void portmaps_free(struct portmaps *m);
#define autoportmaps __attribute__((cleanup(portmaps_free))) struct portmaps

/* Copies the mapping. Returns 0 or -1 (out of memory). */
int portmaps_add(struct portmaps *m, const struct port_mapping *p);

/* Sorts by what arrives (family, host address, protocol, host port), drops exact repetitions.
 * Fails with ERR_INVALID_CONFIG when one host port leads to two places. */
int portmaps_sort(struct portmaps *m, struct err *e);

static inline bool ip_is_any(const struct ip *ip)
{
	struct ip zero = {.family = ip->family};

	return !ip_cmp(ip, &zero);
}

/* "tcp", "udp", "sctp". portproto_parse() takes any case; 0: none of them. */
const char *portproto_name(uint8_t proto);
uint8_t portproto_parse(const char *name);

/* The record as text. Allocated; m->records is set. Returns NULL when out of memory. */
typedef char portmaps_text[NFT_COMMENT_SIZE];
portmaps_text *portmaps_record(struct portmaps *m);

/* Takes in one line of a record. Lines it does not understand are skipped, so that a record that
 * somebody mangled still yields the rest. Returns 0, or -ENOMEM. */
int portmaps_read(struct portmaps *m, const char *line);

/* Whether the sandbox the record names is gone. What cannot be told counts as alive. */
bool portmaps_dead(const struct portmaps *m);

/* Whether the owner is an attachment of this container, by the name. */
bool portmaps_of_container(const struct portmaps *m, const char *id);
