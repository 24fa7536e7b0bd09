/* Masquerading of what leaves a network (`ipMasq`), in the table upstream's nftables backend uses,
 * so that either side's DEL cleans what the other's ADD made. reference/bridge-ptp.md 2.7. All of
 * it happens in the host's namespace. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "cni/owner.h"
#include "cni/request.h"

#include <stdbool.h>
#include <stdint.h>

/* A gateway that is not the bridge itself but a link whose other end is one of the bridge's ports
 * (`<bridge>.<vlan>`). Frames to and from it are bridged before, or after, the host routes what is
 * in them; with bridge-nf-call-iptables they would be masqueraded then, and get lost. */
struct ipmasq_gateway {
	const char *bridge;
	uint8_t mac[6]; /* the gateway's */
};

/* Installs (or replaces) the rules for these addresses of the attachment: one transaction. The
 * prefix of each is the network that is not masqueraded. via is NULL when the gateway is the bridge
 * itself. Returns 0 or -1 with e set. */
int ipmasq_add(const struct owner *o, const struct prefix *addrs, size_t n,
	const struct ipmasq_gateway *via, struct err *e);

/* Removes the rules of the attachment, whoever made them: ours and upstream's nftables backend by
 * comment prefix, upstream's iptables (nf_tables variant) chain by its hash. Nothing there is
 * success. Needs neither addresses nor netns. */
int ipmasq_del(const struct owner *o, struct err *e);

/* Fails with ERR_CHECK when a rule of the attachment is missing. */
int ipmasq_check(const struct owner *o, const struct prefix *addrs, size_t n,
	const struct ipmasq_gateway *via, struct err *e);

/* Removes the rules of this request's network whose attachment is not in the set. */
int ipmasq_gc(const struct request *req, const struct valid_set *valid, struct err *e);

/* Fails with ERR_NOT_AVAILABLE, naming what is missing, when the kernel cannot masquerade. via: the
 * gateway will be a link behind a port of the bridge. Changes nothing. */
int ipmasq_status(bool via, struct err *e);
