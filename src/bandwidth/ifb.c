#include "bandwidth/ifb.h"

#include "base/hash.h"
#include "base/hex.h"
#include "base/vec.h"
#include "netlink/kind.h"
#include "netlink/tc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- identity ---- */

/* The Go plugin names an IFB after network and container alone. We take the same name, the first,
 * while it is free, so that either side finds the other's, and one that includes the interface when
 * another interface of the container holds it. */
struct ifb_names {
	char name[2][IFNAMSIZ];
};

static struct ifb_names ifb_names(const struct owner *o)
{
	struct ifb_names n;
	char hex[12 + 1];

	hash_hex(hex, 12, o->network, o->id, NULL);
	snprintf(n.name[0], IFNAMSIZ, "bwp%s", hex);
	snprintf(n.name[1], IFNAMSIZ, "bwp%.12s", o->hash);
	return n;
}

/* The owner in the link's MAC address: the alias cannot be set in the message that creates the
 * link, and a process can be killed between two. Bytes 1 to 4 are of the network, the others of the
 * attachment; the first is locally administered, unicast. */
static void ifb_mac(const struct owner *o, uint8_t mac[static 6])
{
	mac[0] = (uint8_t)((hex_byte(o->hash) & 0xfc) | 2);
	for (int i = 0; i < 4; i++)
		mac[1 + i] = (uint8_t)hex_byte(o->net + 2 * i);
	mac[5] = (uint8_t)hex_byte(o->hash + 2);
}

static bool ifb_mac_of_network(const struct link *l, const struct owner *o)
{
	uint8_t mac[6];

	ifb_mac(o, mac);
	return !memcmp(l->mac + 1, mac + 1, 4);
}

static bool ifb_mac_is(const struct link *l, const struct owner *o)
{
	uint8_t mac[6];

	ifb_mac(o, mac);
	return !memcmp(l->mac, mac, sizeof(mac));
}

/* ---- finding ---- */

/* Whether what a link receives is redirected to another: 1, 0, or -errno. */
static int redirects(struct nl *nl, uint32_t from, uint32_t to)
{
	struct redirect r;
	uint32_t parent;
	int ret = tc_ingress_get(nl, from, &parent, NULL);

	if (!ret)
		ret = tc_redirect_get(nl, from, parent, to, &r);
	return !ret ? 1 : tc_is_absent(ret) ? 0 : ret;
}

struct links {
	uint32_t *list;
	size_t len;
};

static int keep(const struct link *l, void *arg)
{
	struct links *links = arg;
	uint32_t *index = vec_add(links->list, links->len);

	if (!index)
		return -ENOMEM;
	*index = l->index;
	return 0;
}

/* Whether any veth of the host is redirected there: 1, 0, or -errno. Only asked about an IFB that
 * the Go plugin made, under a name that several interfaces of one container share. */
static int is_in_use(struct nl *nl, uint32_t ifb)
{
	struct links veths = {0};
	int ret = link_each(nl, "veth", keep, &veths);

	for (size_t i = 0; !ret && i < veths.len; i++)
		ret = redirects(nl, veths.list[i], ifb);
	free(veths.list);
	return ret;
}

/* Whether the link under one of the attachment's names is its IFB: 1, 0, or -errno. veth: the
 * host's end of its pair, NULL when it is not known. */
static int belongs(
	struct nl *nl, const struct owner *o, const struct link *l, const struct link *veth)
{
	struct owner_ref ref;
	int ret;

	if (strcmp(l->kind, "ifb") != 0)
		return 0;
	if (owner_parse(l->alias, &ref))
		return !strcmp(ref.hash, o->hash);
	if (ifb_mac_of_network(l, o))
		return ifb_mac_is(l, o);
	/* The Go plugin's. Its name is all that it carries, and where the pair is not known all
	 * there is to go by; else it is the attachment's if its pair is redirected there, or
	 * none. */
	if (!veth)
		return 1;
	ret = redirects(nl, veth->index, l->index);
	if (ret)
		return ret;
	ret = is_in_use(nl, l->index);
	return ret < 0 ? ret : !ret;
}

/* The name that nobody else can have comes first. */
int ifb_find(struct nl *nl, const struct owner *o, const struct link *veth, struct link *ifb,
	char name[static IFNAMSIZ])
{
	struct ifb_names names = ifb_names(o);

	for (int i = 1; i >= 0; i--) {
		int ret = link_get(nl, names.name[i], ifb);

		snprintf(name, IFNAMSIZ, "%s", names.name[i]);
		if (ret == -ENODEV)
			continue;
		if (!ret)
			ret = belongs(nl, o, ifb, veth);
		if (ret)
			return ret < 0 ? ret : 0;
		if (i == 0)
			snprintf(name, IFNAMSIZ, "%s", names.name[1]);
	}
	return -ENODEV;
}

/* ---- making ---- */

int ifb_create(struct nl *nl, const struct owner *o, const char *name, uint32_t mtu,
	struct link *ifb, struct err *e)
{
	uint8_t mac[6];
	struct link_new new = {.name = name, .kind = &kind_ifb, .mtu = mtu, .mac = mac};
	char ext[256] = "";
	int ret;

	ifb_mac(o, mac);
	ret = link_create(nl, &new, NULL, ext, sizeof(ext));
	if (ret)
		return err_kernel(e, -ret, ext, ERR_SYSTEM, "adding link: IFB %s", name);
	ret = link_get(nl, name, ifb);
	if (ret) {
		link_del_name(nl, name);
		return err_sys(e, -ret, ERR_SYSTEM, "get ifb device: \"%s\"", name);
	}
	return 0;
}

/* ---- sweeping ---- */

struct sweep {
	const struct owner *owner;
	const struct valid_set *valid;
	struct links stale;
};

static bool looks_like_ifb(const char *name)
{
	return strlen(name) == 15 && !strncmp(name, "bwp", 3) &&
	       strspn(name + 3, "0123456789abcdef") == 12;
}

static int keep_stale(const struct link *l, void *arg)
{
	struct sweep *s = arg;
	const struct owner *o = s->owner;
	struct owner_ref ref;

	if (!looks_like_ifb(l->name))
		return 0;
	if (owner_parse(l->alias, &ref)) {
		if (strcmp(ref.net, o->net) != 0 || valid_set_has_hash(s->valid, ref.hash))
			return 0;
		return keep(l, &s->stale);
	}
	if (l->alias[0] || !ifb_mac_of_network(l, o))
		return 0;
	for (size_t i = 0; i < s->valid->len; i++)
		if (ifb_mac_is(l, &s->valid->owners[i]))
			return 0;
	return keep(l, &s->stale);
}

int ifb_sweep(struct nl *nl, const struct owner *o, const struct valid_set *valid)
{
	struct sweep s = {.owner = o, .valid = valid};
	int ret = link_each(nl, "ifb", keep_stale, &s);

	if (!ret && s.stale.len)
		ret = link_del_many(nl, s.stale.list, s.stale.len);
	free(s.stale.list);
	return ret;
}
