/* tap: an Ethernet link in the container whose other end is a program there, a virtual machine for
 * instance. reference/links.md, section 9; docs/tap.md. */
#include "attach/attach.h"
#include "attach/child.h"
#include "base/cleanup.h"
#include "netlink/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

struct tap {
	bool multi_queue;
	int64_t owner, group;
	const char *label;
	const char *bridge;
};

static const struct json_key keys[] = {
	JSON_KEY_BOOL(struct tap, "multiQueue", multi_queue),
	JSON_KEY_INT(struct tap, "owner", owner, 0, UINT32_MAX),
	JSON_KEY_INT(struct tap, "group", group, 0, UINT32_MAX),
	JSON_KEY_STR(struct tap, "selinuxContext", label),
	JSON_KEY_STR(struct tap, "bridge", bridge),
	JSON_KEYS_END,
};

/* 0 is root's ID, so absence needs a value of its own. */
static int conf(struct attach *a, struct err *e)
{
	struct tap *t = a->own;

	(void)e;
	if (!json_get(a->req->conf, "owner") || json_is_null(json_get(a->req->conf, "owner")))
		t->owner = -1;
	if (!json_get(a->req->conf, "group") || json_is_null(json_get(a->req->conf, "group")))
		t->group = -1;
	if (t->label && !*t->label)
		t->label = NULL;
	if (t->bridge && !*t->bridge)
		t->bridge = NULL;
	return 0;
}

static int find_bridge(struct attach *a, struct link *bridge, struct err *e)
{
	const struct tap *t = a->own;
	int ret;

	*bridge = (struct link){0};
	if (!t->bridge)
		return 0;
	ret = link_get(a->sb.nl, t->bridge, bridge);
	if (ret && ret != -ENODEV)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", t->bridge);
	if (ret || strcmp(bridge->kind, kind_bridge.name) != 0)
		return err_set(e, ERR_INVALID_CONFIG,
			"failed to get bridge: there is no bridge \"%s\" in the container",
			t->bridge);
	return 0;
}

/* ---- making ---- */

struct making {
	struct tun_spec spec;
	const char *label;
	int fd; /* -1 where a child has made it */
};

static int not_made(const struct tun_spec *s, int ret, struct err *e)
{
	if (ret == -EEXIST)
		return err_set(
			e, ERR_CONFLICT, "failed to create tap: link \"%s\": file exists", s->name);
	if (ret == -ENOENT || ret == -ENODEV || ret == -ENXIO)
		return err_sys(e, -ret, ERR_SYSTEM,
			"failed to create tap: there is no " TUN_DEVICE
			" here, or the kernel lacks the module tun");
	return err_sys(e, -ret, ERR_SYSTEM, "failed to create tap: link \"%s\"", s->name);
}

/* What the next program that this thread starts runs as; "" as usual. proc(5). */
static int set_exec_label(const char *label)
{
	autoclose int fd = open("/proc/thread-self/attr/exec", O_WRONLY | O_CLOEXEC);
	size_t len = strlen(label);

	if (fd < 0)
		return -errno;
	return write(fd, label, len) == (ssize_t)len ? 0 : -errno;
}

static int start_child(const struct tun_spec *s, pid_t *pid)
{
	char owner[24], group[24];
	char *argv[] = {"tap", "make", (char *)s->name, s->multi_queue ? "multi" : "single", owner,
		group, NULL};
	char *env[] = {NULL};

	snprintf(owner, sizeof(owner), "%lld", (long long)s->owner);
	snprintf(group, sizeof(group), "%lld", (long long)s->group);
	*pid = fork();
	if (*pid)
		return *pid < 0 ? -errno : 0;
	execve("/proc/self/exe", argv, env);
	_exit(errno);
}

/* A tap has the SELinux label of whoever makes it, and a process gets another label only by
 * starting a program: this one, which the policy must allow to be entered with that label. */
static int make_labelled(const struct making *m, struct err *e)
{
	int ret = set_exec_label(m->label), status = 0;
	pid_t pid;

	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed set socket label \"%s\" for tap \"%s\"",
			m->label, m->spec.name);
	ret = start_child(&m->spec, &pid);
	set_exec_label("");
	if (!ret)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	if (!ret && status)
		ret = WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
	return ret ? not_made(&m->spec, ret, e) : 0;
}

/* In the container's namespace. */
static int make(void *arg, struct err *e)
{
	struct making *m = arg;

	if (m->label)
		return make_labelled(m, e);
	m->fd = tun_make(&m->spec);
	return m->fd < 0 ? not_made(&m->spec, m->fd, e) : 0;
}

/* The child: tap make NAME multi|single OWNER GROUP. Exit status 0 or an errno. */
static int program(int argc, char **argv)
{
	struct tun_spec s = {0};
	int fd;

	if (argc != 6 || strcmp(argv[1], "make") != 0)
		return -1;
	s.name = argv[2];
	s.multi_queue = !strcmp(argv[3], "multi");
	s.owner = strtoll(argv[4], NULL, 10);
	s.group = strtoll(argv[5], NULL, 10);
	fd = tun_make(&s);
	return fd < 0 ? -fd : -tun_keep(fd);
}

static void remove_tap(void *arg)
{
	autoerr ignored = {0};

	child_detach(arg, &ignored);
}

/* One message each, so that the error says what was refused. */
static int set_up(struct attach *a, const struct link *bridge, struct err *e)
{
	const struct attach_conf *c = &a->conf;
	const char *name = a->req->ifname;
	char alias[LINK_ALIAS];
	autoreq req = {0};

	owner_comment(&a->req->owner, alias, sizeof(alias));
	link_put(&req, &(struct link_set){.name = name, .alias = alias});
	if (nl_do(a->sb.nl, &req, e, "failed to mark tap \"%s\"", name))
		return -1;
	if (c->mtu || c->has_mac)
		link_put(&req,
			&(struct link_set){
				.name = name, .mtu = c->mtu, .mac = c->has_mac ? c->mac : NULL});
	if ((c->mtu || c->has_mac) &&
		nl_do(a->sb.nl, &req, e, "failed to set MTU or MAC address of tap \"%s\"", name))
		return -1;
	link_put(&req, &(struct link_set){.name = name,
			       .has_master = bridge->index != 0,
			       .master = bridge->index,
			       .flags_set = a->up ? IFF_UP : 0});
	return nl_do(a->sb.nl, &req, e, "failed to set tap \"%s\" up, as a port of bridge \"%s\"",
		name, bridge->name);
}

/* Until it is whole it goes with the descriptor, whatever ends this process. */
static int attach(struct attach *a, struct err *e)
{
	const struct tap *t = a->own;
	struct making m = {
		.spec = {a->req->ifname, t->multi_queue, t->owner, t->group},
		.label = t->label,
		.fd = -1,
	};
	struct link bridge;
	int ret;

	if (find_bridge(a, &bridge, e) || netns_run(a->sb.netns, make, &m, e))
		return -1;
	autoclose int fd = m.fd;

	if (undo_push(&a->reply->undo, remove_tap, NULL, (void *)a->req, e) ||
		set_up(a, &bridge, e))
		return -1;
	ret = fd < 0 ? 0 : tun_keep(fd);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to keep tap \"%s\"", a->req->ifname);
	return link_need(a->sb.nl, a->req->ifname, &a->link, e);
}

/* ---- CHECK, STATUS ---- */

static int check(struct attach *a, struct err *e)
{
	struct link bridge;

	if (find_bridge(a, &bridge, e))
		return -1;
	if (bridge.index && a->link.master != bridge.index)
		return err_set(e, ERR_CHECK, "Interface %s is not a port of bridge %s",
			a->req->ifname, bridge.name);
	return 0;
}

static int status(struct attach *a, struct err *e)
{
	int ret = tun_available();

	(void)a;
	return ret ? err_sys(e, -ret, ERR_NOT_AVAILABLE,
			     "tap is not available: " TUN_DEVICE " cannot be opened")
		   : 0;
}

static const struct attach_type type = {
	.kind = &kind_tun,
	.keys = KEY_MTU | KEY_MAC | KEY_MAC_ENV | KEY_MAC_CONF,
	.table = keys,
	.conf_size = sizeof(struct tap),
	.conf = conf,
	.attach = attach,
	.check = check,
	.status = status,
	.detach = child_detach,
};

const struct applet applet_tap = {
	.name = "tap",
	.help = "Gives a container a tap for a virtual machine",
	.kind = APPLET_MAIN,
	.program = program,
	ATTACH_VERBS(&type),
};
