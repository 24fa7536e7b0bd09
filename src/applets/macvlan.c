/* macvlan: a link of the container with a MAC address of its own on a link of the host.
 * reference/links.md, section 4; docs/macvlan.md; linux/if_link.h, IFLA_MACVLAN_*. */
#include "attach/attach.h"
#include "attach/child.h"
#include "attach/slaac.h"
#include "attach/verify.h"
#include "base/cleanup.h"

#include <linux/if_link.h>
#include <string.h>

/* Whoever asks for more has no router. */
#define SLAAC_MAX_S 60

struct macvlan {
	const char *mode;
	int64_t bcqueuelen;
	bool dad;
	int64_t slaac; /* seconds, 0: not waited for */

	struct macvlan_data data;
};

static const struct json_key keys[] = {
	JSON_KEY_STR(struct macvlan, "mode", mode),
	JSON_KEY_INT(struct macvlan, "bcqueuelen", bcqueuelen, 0, UINT32_MAX),
	JSON_KEY_BOOL(struct macvlan, "enabledad", dad),
	JSON_KEY_INT(struct macvlan, "slaacWait", slaac, 0, SLAAC_MAX_S),
	JSON_KEYS_END,
};

static const struct mode {
	const char *name;
	uint32_t mode;
} modes[] = {
	{"bridge", MACVLAN_MODE_BRIDGE},
	{"private", MACVLAN_MODE_PRIVATE},
	{"vepa", MACVLAN_MODE_VEPA},
	{"passthru", MACVLAN_MODE_PASSTHRU},
};

static const char *mode_name(uint32_t mode)
{
	for (size_t i = 0; i < array_len(modes); i++)
		if (modes[i].mode == mode)
			return modes[i].name;
	return "source";
}

static int conf(struct attach *a, struct err *e)
{
	struct macvlan *m = a->own;
	const char *name = m->mode && *m->mode ? m->mode : "bridge";

	m->data.bcqueuelen = (uint32_t)m->bcqueuelen;
	a->dad = m->dad;
	a->no_ra = !m->slaac;
	for (size_t i = 0; i < array_len(modes); i++) {
		if (strcmp(modes[i].name, name) != 0)
			continue;
		m->data.mode = modes[i].mode;
		return 0;
	}
	return err_set(e, ERR_INVALID_CONFIG, "unknown macvlan mode: \"%s\"", name);
}

static int attach(struct attach *a, struct err *e)
{
	const struct macvlan *m = a->own;

	return child_attach(a, &m->data, e);
}

/* The master may be down, or without a cable: nobody waits for that. But neighbours are told. */
static int ready(struct attach *a, struct err *e)
{
	(void)a;
	(void)e;
	return 0;
}

static int late(struct attach *a, struct err *e)
{
	const struct macvlan *m = a->own;

	return m->slaac ? slaac_wait(a, (int)m->slaac, e) : 0;
}

static int check(struct attach *a, struct err *e)
{
	const struct macvlan *m = a->own;
	const char *name = a->req->ifname;
	struct macvlan_data now = {0};
	struct link l;
	int ret = link_get_data(a->sb.nl, name, &kind_macvlan, &l, &now);

	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", name);
	if (now.mode != m->data.mode)
		return err_set(e, ERR_CHECK,
			"Container macvlan mode %s does not match expected value: %s",
			mode_name(now.mode), mode_name(m->data.mode));
	if (m->data.bcqueuelen && now.bcqueuelen != m->data.bcqueuelen)
		return err_set(e, ERR_CHECK, "macvlan link %s: bcqueuelen is %u, not %u", name,
			now.bcqueuelen, m->data.bcqueuelen);
	/* Without IPAM the addresses are those that it got by itself. */
	if (m->slaac && !a->conf.ipam && ifcheck(&a->sb, name, a->result, e))
		return -1;
	return child_check(a, e);
}

static const struct attach_type type = {
	.kind = &kind_macvlan,
	.keys = KEY_MTU | KEY_MAC | KEY_MAC_ENV | KEY_MAC_CONF | KEY_MASTER | KEY_INSIDE,
	.table = keys,
	.conf_size = sizeof(struct macvlan),
	.conf = conf,
	.attach = attach,
	.ready = ready,
	.late = late,
	.check = check,
	.status = child_status,
	.detach = child_detach,
	.collect = child_collect,
};

const struct applet applet_macvlan = {
	.name = "macvlan",
	.help = "Gives a container a link with its own MAC address on a link of the host",
	.kind = APPLET_MAIN,
	ATTACH_VERBS(&type),
};
