#include "tuning/linkstate.h"

#include "base/cleanup.h"
#include "base/mac.h"

#include <string.h>

bool linkstate_any(const struct linkstate *s)
{
	return s->has_mac || s->has_promisc || s->has_mtu || s->has_allmulti || s->has_txqlen;
}

void linkstate_keep(struct linkstate *to, const struct linkstate *wanted, const struct link *l)
{
	/* A link without an Ethernet address has none to go back to. */
	if (wanted->has_mac && !to->has_mac && l->has_mac) {
		memcpy(to->mac, l->mac, sizeof(to->mac));
		to->has_mac = true;
	}
	if (wanted->has_promisc && !to->has_promisc) {
		to->promisc = l->flags & IFF_PROMISC;
		to->has_promisc = true;
	}
	if (wanted->has_mtu && !to->has_mtu) {
		to->mtu = l->mtu;
		to->has_mtu = true;
	}
	if (wanted->has_allmulti && !to->has_allmulti) {
		to->allmulti = l->flags & IFF_ALLMULTI;
		to->has_allmulti = true;
	}
	if (wanted->has_txqlen && !to->has_txqlen) {
		to->txqlen = l->txqlen;
		to->has_txqlen = true;
	}
}

/* One message a setting, so that one the driver refuses does not keep the others from being made.
 */
int linkstate_apply(struct nl *nl, uint32_t index, const struct linkstate *s, const char **what)
{
	const struct {
		bool wanted;
		const char *what;
		struct link_set set;
	} steps[] = {
		{s->has_mtu, "MTU", {.mtu = s->mtu}},
		{s->has_mac, "MAC address", {.mac = s->mac}},
		{s->has_promisc, "promiscuous mode",
			{.flags_set = s->promisc ? IFF_PROMISC : 0,
				.flags_clear = s->promisc ? 0 : IFF_PROMISC}},
		{s->has_allmulti, "all-multicast mode",
			{.flags_set = s->allmulti ? IFF_ALLMULTI : 0,
				.flags_clear = s->allmulti ? 0 : IFF_ALLMULTI}},
		{s->has_txqlen, "transmit queue length", {.has_txqlen = true, .txqlen = s->txqlen}},
	};
	int first = 0;

	for (size_t i = 0; i < array_len(steps); i++) {
		struct link_set set = steps[i].set;
		int ret = 0;

		set.index = index;
		if (steps[i].wanted)
			ret = link_apply(nl, &set);
		if (ret && !first) {
			first = ret;
			*what = steps[i].what;
		}
	}
	return first;
}

static const char *truth(bool b)
{
	return b ? "true" : "false";
}

/* "configured X of LINK is A, current value is B", as callers know it. */
static int differs(
	struct err *e, const struct link *l, const char *what, const char *wanted, const char *has)
{
	return err_set(e, ERR_CHECK, "Error: Tuning configured %s of %s is %s, current value is %s",
		what, l->name, wanted, has);
}

static int differ(
	struct err *e, const struct link *l, const char *what, uint32_t wanted, uint32_t has)
{
	return err_set(e, ERR_CHECK, "Error: Tuning configured %s of %s is %u, current value is %u",
		what, l->name, wanted, has);
}

int linkstate_check(const struct linkstate *s, const struct link *l, struct err *e)
{
	char wanted[MAC_STRLEN], has[MAC_STRLEN];
	bool allmulti = l->flags & IFF_ALLMULTI, promisc = l->flags & IFF_PROMISC;

	if (s->has_mac && (!l->has_mac || memcmp(s->mac, l->mac, sizeof(s->mac)) != 0))
		return differs(
			e, l, "Ethernet", mac_format(s->mac, wanted), mac_format(l->mac, has));
	if (s->has_promisc && s->promisc != promisc)
		return err_set(e, ERR_CHECK,
			"Error: Tuning link %s configured promisc is %s, current value is %s",
			l->name, truth(s->promisc), truth(promisc));
	if (s->has_mtu && s->mtu != l->mtu)
		return differ(e, l, "MTU", s->mtu, l->mtu);
	if (s->has_allmulti && s->allmulti != allmulti)
		return differs(e, l, "all-multicast mode", truth(s->allmulti), truth(allmulti));
	if (s->has_txqlen && s->txqlen != l->txqlen)
		return differ(e, l, "transmit queue length", s->txqlen, l->txqlen);
	return 0;
}
