#include "attach/loan.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mac.h"
#include "base/vec.h"
#include "cni/names.h"
#include "netlink/addr.h"
#include "netlink/altname.h"
#include "netlink/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#define MARK   "cnibox-dev-"
#define RECORD "cnibox-was-"

/* Where runtimes and ip(8) keep the namespaces of containers. */
#define NAMED "/run/netns"

/* What an alternative name holds, with its NUL (ALTIFNAMSIZ of linux/if.h). */
#define ALTNAME 128

/* Which flags come back: those that the administrator sets. */
#define FLAGS (IFF_UP | IFF_PROMISC | IFF_ALLMULTI | IFF_NOARP | IFF_MULTICAST)

/* What a link was on the host. */
struct was {
	char name[IFNAMSIZ];
	char alias[LINK_ALIAS];
	bool complete; /* the rest is known: not of what the Go plugin lent */
	uint32_t flags;
	uint32_t mtu;
	bool has_mac;
	uint8_t mac[6];
};

/* ---- marks and records as text ---- */

static void mark_text(const struct owner *o, char out[static ALTNAME])
{
	snprintf(out, ALTNAME, MARK "%s-%s", o->net, o->hash);
}

/* The alias last: all of it or nothing. */
static void record_text(const struct owner *o, const struct was *w, char out[static ALTNAME])
{
	char mac[MAC_STRLEN];
	int len = snprintf(out, ALTNAME, RECORD "%.8s-%x-%u-%s-%s ", o->hash, w->flags & FLAGS,
		w->mtu, w->has_mac ? mac_format(w->mac, mac) : "x", w->name);

	if (len + strlen(w->alias) < ALTNAME)
		strcpy(out + len, w->alias);
}

static bool is_link_name(const char *text)
{
	const char *details;

	return !ifname_invalid(text, &details) && !ifname_is_template(text);
}

static bool parse_record(const char *text, struct was *w)
{
	char mac[MAC_STRLEN];
	int end = 0;

	*w = (struct was){.complete = true};
	if (sscanf(text, RECORD "%*8[0-9a-f]-%x-%u-%17[0-9a-f:x]-%15[^ ]%n", &w->flags, &w->mtu,
		    mac, w->name, &end) != 4 ||
		text[end] != ' ' || !is_link_name(w->name))
		return false;
	w->has_mac = mac_parse(mac, w->mac);
	snprintf(w->alias, sizeof(w->alias), "%s", text + end + 1);
	return true;
}

/* ---- marks and records on links ---- */

/* Two ADDs that are after the same link may both have marked it: more is not expected. */
struct marks {
	char names[4][ALTNAME];
	size_t len;
	struct was was; /* name "": there is no record */
};

static bool begins(const char *text, const char *head)
{
	return !strncmp(text, head, strlen(head));
}

static int take_mark(const char *name, void *arg)
{
	struct marks *m = arg;

	if ((!begins(name, MARK) && !begins(name, RECORD)) || m->len == array_len(m->names))
		return 0;
	if (begins(name, RECORD) && !parse_record(name, &m->was))
		m->was = (struct was){0};
	snprintf(m->names[m->len++], ALTNAME, "%s", name);
	return 0;
}

/* 0 or -errno; that the link is gone is -ENODEV. */
static int read_marks(struct nl *nl, uint32_t index, struct marks *m)
{
	*m = (struct marks){0};
	return altname_each(nl, index, take_mark, m);
}

/* Without a record the alias says what it was called, as for the Go plugin. */
static void choose_was(const struct link *l, const struct marks *m, struct was *w)
{
	const char *name = is_link_name(l->alias) ? l->alias : l->name;

	*w = m->was;
	if (*w->name)
		return;
	*w = (struct was){0};
	memcpy(w->name, name, strnlen(name, sizeof(w->name) - 1));
}

static int find_marked(struct nl *nl, const struct owner *owner, struct link *l)
{
	char mark[ALTNAME];

	mark_text(owner, mark);
	return link_get(nl, mark, l);
}

/* The mark last, by which it is found when this is not the end of it. */
static int strip(struct nl *nl, uint32_t index)
{
	struct marks m;
	int ret = read_marks(nl, index, &m);

	for (int marks = 0; marks < 2; marks++)
		for (size_t i = 0; !ret && i < m.len; i++)
			if (begins(m.names[i], marks ? MARK : RECORD))
				ret = altname_del(nl, index, m.names[i]);
	return ret;
}

static int set_marks(struct nl *nl, const struct owner *owner, uint32_t index, const struct was *w)
{
	char mark[ALTNAME], record[ALTNAME];
	int ret;

	mark_text(owner, mark);
	record_text(owner, w, record);
	ret = altname_add(nl, index, mark);
	if (!ret)
		ret = altname_add(nl, index, record);
	/* A kernel that knows no alternative names. */
	return ret == -EOPNOTSUPP ? 0 : ret;
}

/* ---- bringing back ---- */

/* What a driver refuses it will refuse the next time, too. */
static bool may_work_later(int ret)
{
	return err_is_passing(-ret) || ret == -EPERM;
}

/* Whoever has the name on the host now keeps it. */
static int need_name(
	struct nl *host, const struct link *l, const struct was *w, bool inside, struct err *e)
{
	struct link there;
	int ret = link_get(host, w->name, &there);

	if (ret == -ENODEV || (!ret && !inside && there.index == l->index))
		return 0;
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", w->name);
	return err_set(e, ERR_CONFLICT,
		"failed to rename device \"%s\" back to \"%s\": file exists: another link of the "
		"host has that name",
		l->name, w->name);
}

static bool differs(const struct link *l, const struct was *w)
{
	return strcmp(l->name, w->name) != 0 || (w->mtu && w->mtu != l->mtu) ||
	       (w->has_mac && memcmp(w->mac, l->mac, sizeof(w->mac)) != 0);
}

/* Puts right what can be while it is still where it is, so that the host sees it under its own name
 * only. One message each: a driver may refuse one of them for good, which keeps nothing else from
 * coming back. Returns 0, or -errno of what may work the next time. */
static int put_right(struct nl *nl, const struct link *l, const struct was *w)
{
	autoreq req = {0};
	int ret;

	if (!differs(l, w))
		return 0;
	link_put(&req, &(struct link_set){.index = l->index, .flags_clear = IFF_UP});
	link_put(&req, &(struct link_set){.index = l->index, .mtu = w->mtu});
	if (w->has_mac)
		link_put(&req, &(struct link_set){.index = l->index, .mac = w->mac});
	link_put(&req, &(struct link_set){.index = l->index, .rename = w->name});
	ret = nl_ack(nl, &req, NULL, 0, NULL);
	return may_work_later(ret) ? ret : 0;
}

/* Its name, and by the same message its namespace. The alias of one that was not moved out is
 * nobody's business but its administrator's. */
static int put_back(struct nl *nl, const struct link *l, const struct was *w, bool inside)
{
	autoclose int own = inside ? netns_own_open() : -1;
	bool renamed = strcmp(l->name, w->name) != 0;
	bool lent = inside || !strcmp(l->alias, w->name);

	if (inside && own < 0)
		return -errno;
	if (!renamed && !lent)
		return 0;
	return link_apply(nl, &(struct link_set){
				      .index = l->index,
				      .rename = inside || renamed ? w->name : NULL,
				      .alias = lent ? w->alias : NULL,
				      .has_netns = inside,
				      .netns = own,
			      });
}

/* The marks go when all is done. 0 or -errno. */
static int finish(struct nl *host, const struct was *w)
{
	struct link l;
	int ret = link_get(host, w->name, &l);

	if (!ret && w->complete && (l.flags & FLAGS) != (w->flags & FLAGS)) {
		ret = link_apply(host, &(struct link_set){
					       .index = l.index,
					       .flags_set = w->flags & FLAGS,
					       .flags_clear = ~w->flags & FLAGS,
				       });
		ret = may_work_later(ret) ? ret : 0;
	}
	return ret ? ret : strip(host, l.index);
}

/* From a namespace to the host, or on the host (nl is host) to what it was. */
static int bring_back(
	struct nl *nl, struct nl *host, const struct link *l, const struct was *w, struct err *e)
{
	bool inside = nl != host;
	int ret;

	if (need_name(host, l, w, inside, e))
		return -1;
	ret = put_right(nl, l, w);
	if (!ret)
		ret = put_back(nl, l, w, inside);
	if (!ret)
		ret = finish(host, w);
	if (!ret || ret == -ENODEV)
		return 0;
	return err_sys(e, -ret, ERR_SYSTEM, "failed to move \"%s\" back to the host as \"%s\"",
		l->name, w->name);
}

/* The same by what the link says about itself. */
static int bring_back_marked(struct nl *nl, struct nl *host, const struct link *l, struct err *e)
{
	struct marks m;
	struct was w;
	int ret = read_marks(nl, l->index, &m);

	if (ret == -ENODEV)
		return 0;
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", l->name);
	/* A mark without a record is from before the move, or the last that is left of a return. */
	if (nl == host && m.len && !*m.was.name)
		ret = strip(host, l->index);
	if (ret && ret != -ENODEV)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to unmark link \"%s\"", l->name);
	if (nl == host && m.len && !*m.was.name)
		return 0;
	choose_was(l, &m, &w);
	return bring_back(nl, host, l, &w, e);
}

int loan_free(struct nl *host, const struct link *dev, bool *freed, struct err *e)
{
	struct marks m;
	int ret = read_marks(host, dev->index, &m);

	*freed = !ret && m.len;
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", dev->name);
	return *freed ? bring_back_marked(host, host, dev, e) : 0;
}

/* Brings back the link with the attachment's mark; that there is none sets *found false. */
static int bring_own(
	struct nl *nl, struct nl *host, const struct owner *owner, bool *found, struct err *e)
{
	struct link l;
	int ret = find_marked(nl, owner, &l);

	*found = !ret;
	if (ret && ret != -ENODEV)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up the device of \"%s\" %s",
			owner->id, owner->ifname);
	return ret ? 0 : bring_back_marked(nl, host, &l, e);
}

int loan_free_own(struct nl *host, const struct owner *owner, struct err *e)
{
	bool found;

	return bring_own(host, host, owner, &found, e);
}

/* ---- giving ---- */

/* What an ADD that fails puts back. */
struct saved {
	const struct request *req;
	struct was was;
	uint32_t master;
	struct nlmsghdr **addrs; /* owned, the messages too */
	size_t addrs_len;
};

static void saved_free(void *arg)
{
	struct saved *s = arg;

	for (size_t i = 0; i < s->addrs_len; i++)
		free(s->addrs[i]);
	free(s->addrs);
	free(s);
}

static int keep_address(const struct addr *a, void *arg)
{
	struct saved *s = arg;
	struct nlmsghdr **kept = vec_add(s->addrs, s->addrs_len);

	if (!kept)
		return -ENOMEM;
	*kept = malloc(a->msg->nlmsg_len);
	if (!*kept)
		return -ENOMEM;
	memcpy(*kept, a->msg, a->msg->nlmsg_len);
	return 0;
}

static struct saved *save(struct attach *a, const struct link *dev, struct err *e)
{
	struct saved *s = calloc(1, sizeof(*s));
	int ret;

	if (!s) {
		err_memory(e);
		return NULL;
	}
	s->req = a->req;
	s->master = dev->master;
	s->was = (struct was){
		.complete = true,
		.flags = dev->flags,
		.mtu = dev->mtu,
		.has_mac = dev->has_mac,
	};
	memcpy(s->was.name, dev->name, sizeof(s->was.name));
	memcpy(s->was.alias, dev->alias, sizeof(s->was.alias));
	memcpy(s->was.mac, dev->mac, sizeof(s->was.mac));
	ret = addr_each(a->sb.host, dev->index, AF_UNSPEC, keep_address, s);
	if (!ret)
		return s;
	saved_free(s);
	err_sys(e, -ret, ERR_SYSTEM, "failed to list addresses of \"%s\"", dev->name);
	return NULL;
}

/* What no move leaves on a link. An address that the kernel has made again by itself is refused. */
static void restore_rest(struct nl *host, const struct saved *s)
{
	autoreq req = {0};
	struct link l;

	if (link_get(host, s->was.name, &l))
		return;
	if (s->master && l.master != s->master)
		link_put(&req, &(struct link_set){
				       .index = l.index, .has_master = true, .master = s->master});
	for (size_t i = 0; i < s->addrs_len; i++)
		addr_put_copy(&req, l.index, s->addrs[i]);
	if (s->addrs_len || s->master)
		nl_ack(host, &req, NULL, 0, NULL);
}

static void undo_loan(void *arg)
{
	const struct saved *s = arg;
	autosandbox sb = SANDBOX_NONE;
	autoerr ignored = {0};
	autonl *host = NULL;
	struct link l;
	bool there;

	if (nl_open(&host, NETLINK_ROUTE, &ignored))
		return;
	if (!sandbox_try(&sb, s->req, &there, &ignored) && there &&
		!find_marked(sb.nl, &s->req->owner, &l))
		bring_back(sb.nl, host, &l, &s->was, &ignored);
	else if (!find_marked(host, &s->req->owner, &l))
		bring_back(host, host, &l, &s->was, &ignored);
	restore_rest(host, s);
}

static int move_inside(struct attach *a, const struct link *dev, struct err *e)
{
	autoreq req = {0};
	char ext[256];
	int ret;

	link_put(&req, &(struct link_set){
			       .index = dev->index,
			       .rename = a->req->ifname,
			       .alias = dev->name,
			       .flags_set = a->up ? IFF_UP : 0,
			       .has_netns = true,
			       .netns = a->sb.netns,
		       });
	ret = nl_ack(a->sb.host, &req, ext, sizeof(ext), NULL);
	return ret ? err_kernel(e, -ret, ext, ERR_SYSTEM,
			     "failed to move link \"%s\" to \"%s\" as \"%s\"", dev->name,
			     a->req->netns, a->req->ifname)
		   : 0;
}

int loan_give(struct attach *a, const struct link *dev, struct err *e)
{
	struct saved *s = save(a, dev, e);
	int ret;

	if (!s || undo_push(&a->reply->undo, undo_loan, saved_free, s, e))
		return -1;
	ret = set_marks(a->sb.host, &a->req->owner, dev->index, &s->was);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to mark link \"%s\"", dev->name);
	return move_inside(a, dev, e) ? -1 : link_need(a->sb.nl, a->req->ifname, &a->link, e);
}

/* ---- taking back ---- */

/* A link that the Go plugin put there: its alias is the name it had, and nobody has marked it. */
static int bring_unmarked(struct nl *nl, struct nl *host, const struct request *req,
	const struct link *l, loan_is_ours *is_ours, struct err *e)
{
	struct marks m;
	int ret = read_marks(nl, l->index, &m);

	if (ret)
		return ret == -ENODEV ? 0
				      : err_sys(e, -ret, ERR_SYSTEM,
						"failed to look up link \"%s\"", l->name);
	if (m.len || !is_link_name(l->alias) || !is_ours(req, nl, l, nl != host))
		return 0;
	return bring_back_marked(nl, host, l, e);
}

static int return_from_inside(const struct sandbox *sb, const struct request *req,
	loan_is_ours *is_ours, bool *found, struct err *e)
{
	struct link l;
	int ret;

	if (bring_own(sb->nl, sb->host, &req->owner, found, e) || *found)
		return e->set ? -1 : 0;
	ret = link_get(sb->nl, req->ifname, &l);
	if (ret)
		return ret == -ENODEV ? 0
				      : err_sys(e, -ret, ERR_SYSTEM,
						"failed to look up link \"%s\"", req->ifname);
	return bring_unmarked(sb->nl, sb->host, req, &l, is_ours, e);
}

struct returned {
	const char *ifname;
	struct link link; /* index 0: none */
};

/* A physical link that the kernel took out of a namespace which ended: under the name it had there,
 * or, where that was taken, by its index. */
static int find_returned(const struct link *l, void *arg)
{
	struct returned *r = arg;
	char by_index[IFNAMSIZ];

	snprintf(by_index, sizeof(by_index), "dev%u", l->index);
	if (*l->kind || !is_link_name(l->alias) || !strcmp(l->alias, l->name) ||
		(strcmp(l->name, r->ifname) != 0 && strcmp(l->name, by_index) != 0))
		return 0;
	r->link = *l;
	return 1;
}

static int return_from_host(
	struct nl *host, const struct request *req, loan_is_ours *is_ours, struct err *e)
{
	struct returned r = {.ifname = req->ifname};
	int ret = link_each(host, NULL, find_returned, &r);

	if (ret < 0)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to list links");
	return r.link.index ? bring_unmarked(host, host, req, &r.link, is_ours, e) : 0;
}

int loan_return(const struct request *req, loan_is_ours *is_ours, struct err *e)
{
	autosandbox sb = SANDBOX_NONE;
	autonl *host = NULL;
	bool there, found = false;

	if (sandbox_try(&sb, req, &there, e) || nl_open(&host, NETLINK_ROUTE, e))
		return -1;
	if (there && return_from_inside(&sb, req, is_ours, &found, e))
		return -1;
	if (found)
		return 0;
	if (bring_own(host, host, &req->owner, &found, e))
		return -1;
	return there || found ? 0 : return_from_host(host, req, is_ours, e);
}

/* ---- CHECK, GC ---- */

int loan_check(struct attach *a, struct err *e)
{
	struct marks m;
	struct link l;
	int ret = find_marked(a->sb.nl, &a->req->owner, &l);

	if (!ret && l.index == a->link.index)
		return 0;
	if (!ret || ret == -ENODEV)
		ret = read_marks(a->sb.nl, a->link.index, &m);
	if (ret)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", a->link.name);
	if (!m.len && is_link_name(a->link.alias))
		return 0;
	return err_set(e, ERR_CHECK,
		"Interface %s is not the device of the host that this attachment was given",
		a->link.name);
}

struct stale {
	const struct request *req;
	const struct valid_set *valid;
	uint32_t *list;
	size_t len;
};

static int collect_stale(uint32_t index, const char *name, void *arg)
{
	struct stale *s = arg;
	const char *at = name + strlen(MARK);
	uint32_t *kept;

	if (!begins(name, MARK) || !begins(at, s->req->owner.net) || at[OWNER_NET] != '-' ||
		valid_set_has_hash(s->valid, at + OWNER_NET + 1))
		return 0;
	kept = vec_add(s->list, s->len);
	if (!kept)
		return -ENOMEM;
	*kept = index;
	return 0;
}

/* Those of one namespace. */
static void collect_in(struct nl *nl, struct nl *host, const struct request *req,
	const struct valid_set *valid, struct err *e)
{
	struct stale s = {.req = req, .valid = valid};
	int ret = altname_each_link(nl, collect_stale, &s);
	struct link l;

	if (ret)
		err_sys(e, -ret, ERR_SYSTEM, "failed to list links");
	for (size_t i = 0; i < s.len; i++) {
		autoerr part = {0};

		ret = link_get_index(nl, s.list[i], &l);
		if (ret && ret != -ENODEV)
			err_sys(&part, -ret, ERR_SYSTEM, "failed to look up link %u", s.list[i]);
		if (!ret)
			bring_back_marked(nl, host, &l, &part);
		err_merge(e, &part);
	}
	free(s.list);
}

/* A namespace that ends meanwhile has its links brought to the host by the kernel. */
static void collect_named(const char *name, struct nl *host, const struct request *req,
	const struct valid_set *valid, struct err *e)
{
	char path[sizeof(NAMED) + NAME_MAX + 1];
	autoclose int fd = -1;
	autoerr part = {0};
	autonl *nl = NULL;

	uint64_t here = netns_own_inode(), there;
	enum netns_state state;

	snprintf(path, sizeof(path), NAMED "/%s", name);
	state = netns_open(path, &fd, &part);
	if (state == NETNS_GONE || state == NETNS_NOT_A_NETNS)
		return;
	there = state == NETNS_OK ? netns_inode(fd) : 0;
	if (state == NETNS_OK && (!here || !there))
		err_set(&part, ERR_INVALID_NETNS, "failed to look at netns \"%s\"", path);
	if (!part.set && here == there)
		return;
	if (!part.set && !netns_nl_open(fd, &nl, NETLINK_ROUTE, &part))
		collect_in(nl, host, req, valid, &part);
	err_merge(e, &part);
}

/* That there is no such folder is fine. */
static int list_named(struct file_names *names, struct err *e)
{
	autoclose int dir = open(NAMED, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret = dir < 0 ? -errno : file_names(dir, names);

	return ret && ret != -ENOENT
		       ? err_sys(e, -ret, ERR_IO, "failed to list the namespaces in " NAMED)
		       : 0;
}

int loan_collect(const struct request *req, const struct valid_set *valid, struct err *e)
{
	autonames names = {0};
	autonl *host = NULL;

	if (nl_open(&host, NETLINK_ROUTE, e))
		return -1;
	list_named(&names, e);
	for (size_t i = 0; i < names.len; i++)
		collect_named(names.list[i], host, req, valid, e);
	collect_in(host, host, req, valid, e);
	return e->set ? -1 : 0;
}
