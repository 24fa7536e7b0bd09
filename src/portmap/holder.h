/* Who holds a host port that an ADD wants, whether that one still lives, and what to say of it. */
#pragma once

#include "base/err.h"
#include "netlink/nl.h"
#include "portmap/layout.h"
#include "portmap/record.h"

/* Notes in the record what else than its path tells whether a sandbox lives: the host's end of the
 * container's veth pair, and our number for its namespace. m->hash is that of the attachment;
 * netns: the path, ifname: of the interface in there. What cannot be found is left out. */
void holder_note(struct nl *rt, struct port_record *m, const char *netns, const char *ifname);

/* What became of a sandbox. Its path alone proves nothing: a caller in another mount or PID
 * namespace does not see it. */
enum holder_state { HOLDER_LIVES, HOLDER_UNKNOWN, HOLDER_GONE };
enum holder_state holder_state(
	struct nl *rt, const struct port_record *holder, const struct port_record *ours);

/* Fails with ERR_CONFLICT, naming the holder of the port that p is about. */
int holder_conflict(const struct port_place *p, const struct port_record *holder,
	enum holder_state state, struct err *e);
