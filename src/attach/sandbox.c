#include "attach/sandbox.h"

#include "base/cleanup.h"
#include "cni/names.h"
#include "netlink/link.h"

#include <errno.h>
#include <linux/netlink.h>

static int open_sockets(struct sandbox *s, struct err *e)
{
	if (!nl_open(&s->host, NETLINK_ROUTE, e) &&
		!netns_nl_open(s->netns, &s->nl, NETLINK_ROUTE, e))
		return 0;
	sandbox_close(s);
	return -1;
}

int sandbox_open(struct sandbox *s, const struct request *req, struct err *e)
{
	*s = (struct sandbox)SANDBOX_NONE;
	return netns_open(req->netns, &s->netns, e) == NETNS_OK ? open_sockets(s, e) : -1;
}

int sandbox_try(struct sandbox *s, const struct request *req, bool *there, struct err *e)
{
	enum netns_state state = NETNS_GONE;
	autoerr why = {0};

	*s = (struct sandbox)SANDBOX_NONE;
	*there = false;
	if (*req->netns)
		state = netns_open(req->netns, &s->netns, &why);
	if (state == NETNS_GONE || state == NETNS_NOT_A_NETNS)
		return 0;
	if (state != NETNS_OK) {
		err_merge(e, &why);
		return -1;
	}
	*there = true;
	return open_sockets(s, e);
}

int sandbox_name_free(const struct sandbox *s, const char *kind, const char *ifname, struct err *e)
{
	struct link there;
	int ret;

	if (ifname_is_template(ifname))
		return err_set(e, ERR_INVALID_ENVIRONMENT,
			"interface name \"%s\": a name with %% is a template to the kernel",
			ifname);
	ret = link_get(s->nl, ifname, &there);
	if (ret == -ENODEV)
		return 0;
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", ifname);
	return err_set(e, ERR_CONFLICT, "container %s name (\"%s\") already exists",
		kind ? kind : "link", ifname);
}

void sandbox_close(struct sandbox *s)
{
	nl_close(&s->host);
	nl_close(&s->nl);
	cleanup_closep(&s->netns);
	*s = (struct sandbox)SANDBOX_NONE;
}
