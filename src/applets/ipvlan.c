/* ipvlan: a link of the container on a link of the host, with that one's MAC address.
 * reference/links.md, section 5; docs/ipvlan.md; linux/if_link.h, IFLA_IPVLAN_*. */
#include "attach/attach.h"
#include "attach/child.h"
#include "attach/reach.h"
#include "base/cleanup.h"

#include <linux/if_link.h>
#include <string.h>

struct ipvlan {
	const char *mode;
	const char *flag;

	struct ipvlan_data data;
};

static const struct json_key keys[] = {
	JSON_KEY_STR(struct ipvlan, "mode", mode),
	JSON_KEY_STR(struct ipvlan, "flag", flag),
	JSON_KEYS_END,
};

struct word {
	const char *name;
	uint16_t value;
};

static const struct word modes[] = {
	{"l2", IPVLAN_MODE_L2},
	{"l3", IPVLAN_MODE_L3},
	{"l3s", IPVLAN_MODE_L3S},
	{NULL, 0},
};

static const struct word flags[] = {
	{"bridge", 0},
	{"private", IPVLAN_F_PRIVATE},
	{"vepa", IPVLAN_F_VEPA},
	{NULL, 0},
};

/* The first word of a list is what a missing or empty one means. */
static int read_word(
	const struct word *list, const char *what, const char *text, uint16_t *value, struct err *e)
{
	const char *name = text && *text ? text : list->name;

	for (const struct word *w = list; w->name; w++) {
		if (strcmp(w->name, name) != 0)
			continue;
		*value = w->value;
		return 0;
	}
	return err_set(e, ERR_INVALID_CONFIG, "unknown ipvlan %s: \"%s\"", what, name);
}

static const char *word_of(const struct word *list, uint16_t value)
{
	for (const struct word *w = list; w->name; w++)
		if (w->value == value)
			return w->name;
	return "unknown";
}

static int conf(struct attach *a, struct err *e)
{
	struct ipvlan *v = a->own;

	a->no_ra = true;
	if (read_word(modes, "mode", v->mode, &v->data.mode, e))
		return -1;
	return read_word(flags, "flag", v->flag, &v->data.flags, e);
}

static bool is_same(const struct ipvlan_data *a, const struct ipvlan_data *b)
{
	return a->mode == b->mode && a->flags == b->flags;
}

/* Mode and flag are the master's: a link that is made with others changes them for all that are
 * there. */
static int check_others(struct attach *a, struct err *e)
{
	const struct ipvlan *v = a->own;
	/* The kernel puts one that is to sit on an ipvlan link beside that. */
	bool beside = !strcmp(a->master.kind, kind_ipvlan.name);
	uint32_t index = beside ? a->master.peer : a->master.index;
	struct ipvlan_data have = {0};
	char owner[REACH_OWNER];
	struct reached r;
	int ret;

	if (a->conf.inside) {
		ret = reach_upper_in(a->sb.nl, &kind_ipvlan, index, &r, &have);
	} else {
		reach_neighbours(a->sb.host, a->req->netns);
		ret = reach_upper(a->sb.host, &kind_ipvlan, index, &r, &have);
	}
	if (ret < 0)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look for ipvlan links on \"%s\"",
			a->master.name);
	if (!ret || is_same(&have, &v->data))
		return 0;
	return err_set(e, ERR_CONFLICT,
		"\"%s\" is the master of an ipvlan link in mode %s, flag %s: %s; all of a master's "
		"links have one mode and flag, so %s, %s cannot be beside it",
		a->master.name, word_of(modes, have.mode), word_of(flags, have.flags),
		reach_owner(&r.link, owner), word_of(modes, v->data.mode),
		word_of(flags, v->data.flags));
}

static int attach(struct attach *a, struct err *e)
{
	const struct ipvlan *v = a->own;

	return check_others(a, e) ? -1 : child_attach(a, &v->data, e);
}

static int check(struct attach *a, struct err *e)
{
	const struct ipvlan *v = a->own;
	const char *name = a->req->ifname;
	struct ipvlan_data now = {0};
	struct link l;
	int ret = link_get_data(a->sb.nl, name, &kind_ipvlan, &l, &now);

	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", name);
	if (now.mode != v->data.mode)
		return err_set(e, ERR_CHECK,
			"Container IPVlan mode %s does not match expected value: %s",
			word_of(modes, now.mode), word_of(modes, v->data.mode));
	if (now.flags != v->data.flags)
		return err_set(e, ERR_CHECK,
			"Container IPVlan flag %s does not match expected value: %s",
			word_of(flags, now.flags), word_of(flags, v->data.flags));
	return child_check(a, e);
}

static const struct attach_type type = {
	.kind = &kind_ipvlan,
	.keys = KEY_MTU | KEY_MASTER | KEY_INSIDE | KEY_CHAINED,
	.table = keys,
	.conf_size = sizeof(struct ipvlan),
	.conf = conf,
	.attach = attach,
	.check = check,
	.status = child_status,
	.detach = child_detach,
	.collect = child_collect,
};

const struct applet applet_ipvlan = {
	.name = "ipvlan",
	.help = "Gives a container a link on a link of the host, with that one's MAC address",
	.kind = APPLET_MAIN,
	ATTACH_VERBS(&type),
};
