/* dummy: an interface without any other end, to hold addresses. reference/links.md, section 8;
 * docs/dummy.md. */
#include "attach/attach.h"
#include "attach/child.h"

static int attach(struct attach *a, struct err *e)
{
	return child_attach(a, NULL, e);
}

static const struct attach_type type = {
	.kind = &kind_dummy,
	.keys = KEY_MTU | KEY_MAC | KEY_MAC_CONF,
	.ipam_required = true,
	.attach = attach,
	.detach = child_detach,
	.collect = child_collect,
};

const struct applet applet_dummy = {
	.name = "dummy",
	.help = "Gives a container an interface without another end",
	.kind = APPLET_MAIN,
	ATTACH_VERBS(&type),
};
