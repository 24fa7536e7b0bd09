#include "attach/sandbox.h"

#include "base/cleanup.h"

#include <linux/netlink.h>

static int open_inside(void *arg, struct err *e)
{
	return nl_open(arg, NETLINK_ROUTE, e);
}

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
	if (nl_open(&s->host, NETLINK_ROUTE, e) || netns_run(s->netns, open_inside, &s->nl, e)) {
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
