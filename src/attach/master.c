#include "attach/master.h"

#include "netlink/route.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

static bool is_in(const struct iface *i, const char *netns)
{
	if (!netns || !i->sandbox)
		return !netns && !i->sandbox;
	return !strcmp(i->sandbox, netns);
}

const char *master_chained(const struct result *prev, const char *netns)
{
	const char *name = NULL;
	size_t n = 0;

	for (size_t i = 0; i < prev->ifaces_len; i++) {
		const struct iface *iface = &prev->ifaces[i];

		if (!*iface->name || !is_in(iface, netns))
			continue;
		name = iface->name;
		n++;
	}
	if (!n && prev->ifaces_len == 1 && *prev->ifaces->name && !prev->ifaces->sandbox)
		return prev->ifaces->name;
	return n == 1 ? name : NULL;
}

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
