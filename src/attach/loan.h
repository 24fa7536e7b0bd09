/* A link of the host that is lent to a container for as long as an attachment lasts, and comes back
 * as it was. What it was travels with it, wherever it is moved and whatever it is called:
 *
 *   cnibox-dev-<net>-<hash>      alternative name: whose attachment it is lent to
 *   cnibox-was-<hash, 8>-<flags>-<mtu>-<MAC>-<name> <alias>
 *                                alternative name: what it was; an alias that is too long for it is
 *                                lost
 *   alias                        its name on the host and nothing else, as the Go plugin has it
 *
 * A kernel without alternative names (before 5.5) leaves the alias, so the name alone comes back.
 */
#pragma once

#include "attach/attach.h"

/* Gives dev, a link of the host (loan_find_own() and loan_free() were called), to the container
 * under CNI_IFNAME, up when a->up, and fills in a->link. Its return is pushed on the undo stack:
 * that also restores the addresses and the bridge, which no move leaves on it. */
int loan_give(struct attach *a, const struct link *dev, struct err *e);

/* Brings a link that is on the host and still carries a mark back to what it was there: an ADD that
 * was killed, or a namespace that ended, left it like that. Other links are left alone, and *freed
 * is false. */
int loan_free(struct nl *host, const struct link *dev, bool *freed, struct err *e);

/* The same for the link of the host with this attachment's mark, if there is one. */
int loan_free_own(struct nl *host, const struct owner *owner, struct err *e);

/* Whether the config means this link, which carries no mark and has the name it had on the host as
 * its alias: the Go plugin may have lent it. nl is a socket where it is, inside: in the container.
 */
typedef bool loan_is_ours(
	const struct request *req, struct nl *nl, const struct link *l, bool inside);

/* Takes the attachment's link back: from the container, by its mark, whatever it is called there;
 * else from the host, where the kernel puts a physical one whose namespace has ended. What the Go
 * plugin lent is known by CNI_IFNAME, alias and is_ours(). That it is nowhere is no failure. Fails
 * with ERR_CONFLICT when its name on the host is taken; it stays where it is then. */
int loan_return(const struct request *req, loan_is_ours *is_ours, struct err *e);

/* Whether the link in the container is one on loan to this attachment: by its mark, or by an alias
 * as the Go plugin sets it. ERR_CHECK. */
int loan_check(struct attach *a, struct err *e);

/* Brings back what was lent to attachments of the network that are not in the set, as far as it can
 * be reached: from the namespaces in /run/netns, and what is on the host. */
int loan_collect(const struct request *req, const struct valid_set *valid, struct err *e);
