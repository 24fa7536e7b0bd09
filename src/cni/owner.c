#include "cni/owner.h"

#include "base/hash.h"

#include <stdio.h>
#include <string.h>

void owner_init(struct owner *o, const char *network, const char *id, const char *ifname)
{
	o->network = network;
	o->id = id;
	o->ifname = ifname;
	hash_hex(o->hash, OWNER_HASH, network, "\n", id, "\n", ifname, NULL);
	hash_hex(o->net, OWNER_NET, network, NULL);
}

void owner_comment(const struct owner *o, char *out, size_t size)
{
	/* Longer than the field is fine: only the readable end is lost. */
	if (snprintf(out, size, "cnibox %s %s %s %s %s", o->net, o->hash, o->network, o->id,
		    o->ifname) < 0)
		out[0] = '\0';
}

void owner_altname(const struct owner *o, char out[static OWNER_ALTNAME])
{
	snprintf(out, OWNER_ALTNAME, "cnibox-%s", o->hash);
}

/* Takes n hex digits and the blank behind them. */
static bool take_hash(const char **at, char *out, size_t n)
{
	if (strspn(*at, "0123456789abcdef") != n || (*at)[n] != ' ')
		return false;
	memcpy(out, *at, n);
	out[n] = '\0';
	*at += n + 1;
	return true;
}

bool owner_parse(const char *comment, struct owner_ref *out)
{
	static const char head[] = "cnibox ";
	const char *at = comment + sizeof(head) - 1;

	if (strncmp(comment, head, sizeof(head) - 1) != 0)
		return false;
	if (!take_hash(&at, out->net, OWNER_NET) || !take_hash(&at, out->hash, OWNER_HASH))
		return false;
	out->text = at;
	return true;
}
