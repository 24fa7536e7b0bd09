#include "cni/ownedlink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *owned_link_name(const char *hash, char out[static OWNED_LINK_NAME])
{
	snprintf(out, OWNED_LINK_NAME, "veth%.8s", hash);
	return out;
}

static void altname_of(const char *hash, char out[static OWNER_ALTNAME])
{
	struct owner o = {0};

	memcpy(o.hash, hash, sizeof(o.hash));
	owner_altname(&o, out);
}

static bool is_owned(const struct link *l, const char *hash)
{
	struct owner_ref ref;

	return owner_parse(l->alias, &ref) && !strcmp(ref.hash, hash);
}

struct search {
	const char *hash;
	struct link *out;
	bool found;
};

static int match(const struct link *l, void *arg)
{
	struct search *s = arg;

	if (!is_owned(l, s->hash))
		return 0;
	*s->out = *l;
	s->found = true;
	return 1;
}

/* By name and alias. When the name is somebody else's, ours was random: all are looked at. */
static int search(struct nl *nl, const char *hash, struct link *out)
{
	struct search s = {.hash = hash, .out = out};
	char name[OWNED_LINK_NAME];
	int ret = link_get(nl, owned_link_name(hash, name), out);

	if (!ret && is_owned(out, hash))
		return 0;
	if (ret && ret != -ENODEV)
		return ret;
	ret = link_each(nl, "veth", match, &s);
	return s.found ? 0 : ret ? ret : -ENODEV;
}

/* What a kernel says that knows no alternative names: to it the message names no link at all. */
static bool is_unknown(int ret)
{
	return ret == -EINVAL || ret == -EOPNOTSUPP;
}

int owned_link_get(struct nl *nl, const char *hash, struct link *out)
{
	char altname[OWNER_ALTNAME];
	int ret;

	altname_of(hash, altname);
	ret = link_get(nl, altname, out);
	return is_unknown(ret) ? search(nl, hash, out) : ret;
}

int owned_link_del(struct nl *nl, const char *hash)
{
	char altname[OWNER_ALTNAME];
	struct link l;
	int ret;

	altname_of(hash, altname);
	ret = link_del_name(nl, altname);
	/* Kernels before 5.19 say of a link that is not there that the message is invalid. */
	if (!is_unknown(ret))
		return ret;
	ret = owned_link_get(nl, hash, &l);
	return ret ? ret : link_del(nl, l.index);
}
