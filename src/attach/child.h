/* A link of the container that has one end only: macvlan, ipvlan, vlan, dummy. Made whole by one
 * message inside the container; found there by kind and mark. The mark is the alias that links on
 * the host have too (docs/design.md, "Ownership"). */
#pragma once

#include "attach/attach.h"

/* For the attach hook: makes a link of the type's kind under CNI_IFNAME, with the MAC address and
 * MTU of the config, on a->master where the type has KEY_MASTER, up when a->up. data: of the kind,
 * or NULL. An MTU above the master's is refused. Fills in a->link, pushes the removal on the undo
 * stack. */
int child_attach(struct attach *a, const void *data, struct err *e);

/* The detach hook: removes the link of the type's kind that carries the attachment's mark, whatever
 * it is called now; or has its name and no mark of ours at all, as the Go plugins make them. A
 * namespace that is gone, not given or no namespace is no failure. */
int child_detach(const struct request *req, struct err *e);

/* The collect hook: removes them from living namespaces, by their marks. Where it is set, ADD gives
 * the container's namespace a name in the host's, which is how GC gets there. */
int child_collect(const struct request *req, const struct valid_set *valid, struct err *e);

/* For the check hook: the link is on the master that the config names, and has the MTU that it
 * names or that somebody later in the list has put into the result. ERR_CHECK. */
int child_check(struct attach *a, struct err *e);

/* The status hook: the master is there, or, where none is named, a default route. Not looked at
 * when it is in the container or prevResult's. ERR_NOT_AVAILABLE. */
int child_status(struct attach *a, struct err *e);
