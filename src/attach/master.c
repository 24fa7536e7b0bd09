#include "attach/master.h"

#include "netlink/route.h"

#include <errno.h>
#include <linux/rtnetlink.h>

/* The dump is in the order in which routes are preferred: 1 ends it. */
static int keep_default(const struct route_spec *r, void *arg)
{
	if (r->dst.len || r->type != RTN_UNICAST || !r->index)
		return 0;
	*(uint32_t *)arg = r->index;
	return 1;
}

static int find_default(struct nl *nl, struct link *out, struct err *e)
{
	uint32_t index = 0;
	int ret = route_each(nl, AF_INET, RT_TABLE_MAIN, keep_default, &index);

	if (!ret)
		ret = route_each(nl, AF_INET6, RT_TABLE_MAIN, keep_default, &index);
	if (!ret)
		return err_set(e, ERR_INVALID_CONFIG,
			"no default route interface: no master is given and there is no default "
			"route");
	if (ret > 0)
		ret = link_get_index(nl, index, out);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to look up the default route's interface")
		   : 0;
}

int master_find(struct nl *nl, const char *name, struct link *out, struct err *e)
{
	int ret;

	if (!name)
		return find_default(nl, out, e);
	ret = link_get(nl, name, out);
	if (ret == -ENODEV)
		return err_set(e, ERR_INVALID_CONFIG,
			"failed to lookup master \"%s\": Link not found", name);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to lookup master \"%s\"", name) : 0;
}
