/* The keys that main plugins have in common. Which of them a plugin has is a set of bits. */
#pragma once

#include "base/err.h"
#include "cni/request.h"
#include "result/result.h"

#include <stdbool.h>
#include <stdint.h>

enum attach_key {
	KEY_MTU = 1 << 0,      /* mtu */
	KEY_MAC = 1 << 1,      /* runtimeConfig.mac, args.cni.mac */
	KEY_MAC_ENV = 1 << 2,  /* MAC in CNI_ARGS, which is then refused when it has other keys */
	KEY_MAC_CONF = 1 << 3, /* mac */
	KEY_MASTER = 1 << 4, /* master; without it prevResult's interface, or the default route's */
	KEY_INSIDE = 1 << 5, /* linkInContainer: the master is in the container */
	KEY_MASQ = 1 << 6,   /* ipMasq, ipMasqBackend */
	KEY_CHAINED = 1 << 7, /* without ipam the addresses are prevResult's */
};

struct attach_conf {
	const char *ipam; /* ipam.type; NULL: layer 2 only */
	struct dns dns;   /* owned */
	bool has_dns;     /* it replaces what IPAM says */
	uint32_t mtu;     /* 0: the kernel's default */
	bool has_mac;
	uint8_t mac[6];
	const char *master; /* borrowed; NULL: none given */
	bool inside;
	bool ip_masq;
};

/* Reads ipam, dns and the keys of the set, all checked. The first of a MAC address given in several
 * ways counts: runtimeConfig, args, CNI_ARGS, config; an empty string is none. An mtu below 1 is
 * the default. Code ERR_INVALID_CONFIG. attach_conf_free() in either case. */
int attach_conf_read(
	struct attach_conf *c, const struct request *req, unsigned keys, struct err *e);
void attach_conf_free(struct attach_conf *c);
