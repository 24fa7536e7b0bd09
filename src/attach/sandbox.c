#include "attach/sandbox.h"

#include "base/cleanup.h"

#include <linux/netlink.h>

int sandbox_open(
	struct sandbox *s, const struct request *req, enum netns_state *state, struct err *e)
{
	enum netns_state got;

	*s = (struct sandbox)SANDBOX_NONE;
	got = netns_open(req->netns, &s->netns, e);
	if (state)
		*state = got;
	if (got != NETNS_OK)
		return -1;
	if (nl_open(&s->host, NETLINK_ROUTE, e) ||
		netns_nl_open(s->netns, &s->nl, NETLINK_ROUTE, e)) {
		sandbox_close(s);
		return -1;
	}
	return 0;
}

void sandbox_close(struct sandbox *s)
{
	nl_close(&s->host);
	nl_close(&s->nl);
	cleanup_closep(&s->netns);
	*s = (struct sandbox)SANDBOX_NONE;
}
