#include "node.h"

#include <libmnl/libmnl.h>

#include <arpa/inet.h>
#include <net/if.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "node: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ---- namespaces ---- */

static void must_mount(
	const char *what, const char *dir, const char *type, unsigned long flags, const char *data)
{
	if (mount(what, dir, type, flags, data) < 0)
		die(dir);
}

static void must_mkdir(const char *dir)
{
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		die(dir);
}

/* A private empty directory at parent/name, with nothing written to the disk below. */
static void cover(const char *parent, const char *tag, const char *name)
{
	char path[64], options[256], up[64], work[64];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", parent, name);
	if (stat(path, &st) < 0) {
		snprintf(up, sizeof(up), "/run/.node/%s-up", tag);
		snprintf(work, sizeof(work), "/run/.node/%s-work", tag);
		must_mkdir("/run/.node");
		must_mkdir(up);
		must_mkdir(work);
		snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s", parent, up,
			work);
		must_mount("node", parent, "overlay", 0, options);
		must_mkdir(path);
	}
	must_mount("node", path, "tmpfs", 0, "mode=755");
}

static void lo_up(void)
{
	struct ifreq req = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &req) < 0)
		die("lo");
	close(fd);
}

static void set(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, value, strlen(value)) < 0)
			perror(path);
		close(fd);
	}
}

void node_enter(void)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0)
		die("unshare");
	must_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	must_mount("node", "/run", "tmpfs", 0, "mode=755");
	must_mkdir("/run/netns");
	must_mkdir("/run/lock");
	cover("/var/lib", "lib", "cni");
	cover("/etc", "etc", "cni");
	must_mkdir("/etc/cni/net.d");
	/* Settings of a new namespace are copied from the machine: start from known ones. */
	set("/proc/sys/net/ipv4/ip_forward", "0");
	set("/proc/sys/net/ipv4/conf/all/route_localnet", "0");
	set("/proc/sys/net/ipv4/conf/default/route_localnet", "0");
	lo_up();
}

static int own_netns(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("/proc/thread-self/ns/net");
	return fd;
}

static void enter(int fd)
{
	if (setns(fd, CLONE_NEWNET) < 0)
		die("setns");
	close(fd);
}

void node_netns(const char *name)
{
	char path[64];
	int own = own_netns(), fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		die(path);
	close(fd);
	if (unshare(CLONE_NEWNET) < 0)
		die("unshare");
	must_mount("/proc/thread-self/ns/net", path, NULL, MS_BIND, NULL);
	enter(own);
}

void node_netns_gone(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	if (umount2(path, MNT_DETACH) < 0 || unlink(path) < 0)
		die(path);
}

void node_master(void)
{
	if (system("ip link add m0 up type bridge") != 0)
		die("m0");
}

void node_devices(void)
{
	if (system("for n in 1 2; do ip link add d$n mtu 1400 address 02:00:00:00:0d:0$n "
		   "type veth peer name p$n address 02:00:00:00:0e:0$n && "
		   "ip link set p$n up && ip link set d$n up alias device$n || exit; done") != 0)
		die("d1");
}

void node_set(const char *name, const char *path, const char *value)
{
	char full[128];
	int own = own_netns(), fd;

	snprintf(full, sizeof(full), "/run/netns/%s", name);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(full);
	enter(fd);
	snprintf(full, sizeof(full), "/proc/sys/%s", path);
	set(full, value);
	enter(own);
}

/* ---- lines ---- */

struct lines {
	char **list;
	size_t len;
};

static void add_line(struct lines *l, char *text)
{
	l->list = realloc(l->list, (l->len + 1) * sizeof(*l->list));
	l->list[l->len++] = text;
}

#define LINE(l, ...)                                                                               \
	do {                                                                                       \
		char *line_ = NULL;                                                                \
		if (asprintf(&line_, __VA_ARGS__) >= 0)                                            \
			add_line(l, line_);                                                        \
	} while (0)

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *join(struct lines *l)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	qsort(l->list, l->len, sizeof(*l->list), by_text);
	for (size_t i = 0; i < l->len; i++) {
		fprintf(f, "%s\n", l->list[i]);
		free(l->list[i]);
	}
	fclose(f);
	free(l->list);
	return text;
}

/* ---- netlink ---- */

struct view {
	struct lines *lines;
	const char *where; /* "" or "NAME: " */
	const struct nlattr *attr[64];
};

static int to_table(const struct nlattr *a, void *arg)
{
	struct view *v = arg;

	if (mnl_attr_get_type(a) < 64)
		v->attr[mnl_attr_get_type(a)] = a;
	return MNL_CB_OK;
}

static void parse(struct view *v, const struct nlmsghdr *m, size_t header)
{
	memset(v->attr, 0, sizeof(v->attr));
	mnl_attr_parse(m, (unsigned)header, to_table, v);
}

static const char *text(const struct nlattr *a)
{
	return a ? mnl_attr_get_str(a) : "";
}

static uint32_t number(const struct nlattr *a)
{
	return a ? mnl_attr_get_u32(a) : 0;
}

static const char *address(uint8_t family, const struct nlattr *a, char *out)
{
	if (!a || !inet_ntop(family, mnl_attr_get_payload(a), out, INET6_ADDRSTRLEN))
		return "default";
	return out;
}

static const char *name_of(uint32_t index, char *out)
{
	if (!if_indextoname(index, out))
		snprintf(out, IF_NAMESIZE, "#%u", index);
	return out;
}

static void kind_of(const struct nlattr *info, const char **kind)
{
	const struct nlattr *a;

	*kind = "";
	if (info)
		mnl_attr_for_each_nested(a, info) if (mnl_attr_get_type(a) ==
						      IFLA_INFO_KIND) *kind = mnl_attr_get_str(a);
}

/* Those that are ours: a mark that stays is as bad as a link that does. */
static void add_altnames(struct view *v)
{
	const struct nlattr *a;

	if (!v->attr[IFLA_PROP_LIST])
		return;
	mnl_attr_for_each_nested(a, v->attr[IFLA_PROP_LIST])
	{
		if (mnl_attr_get_type(a) == IFLA_ALT_IFNAME && !strncmp(text(a), "cnibox", 6))
			LINE(v->lines, "%saltname %s %s", v->where, text(v->attr[IFLA_IFNAME]),
				text(a));
	}
}

static int on_link(const struct nlmsghdr *m, void *arg)
{
	const struct ifinfomsg *i = mnl_nlmsg_get_payload(m);
	struct view *v = arg;
	const uint8_t *mac;
	const char *kind;
	char master[IF_NAMESIZE] = "";

	parse(v, m, sizeof(*i));
	kind_of(v->attr[IFLA_LINKINFO], &kind);
	mac = v->attr[IFLA_ADDRESS] ? mnl_attr_get_payload(v->attr[IFLA_ADDRESS]) : NULL;
	if (v->attr[IFLA_MASTER])
		name_of(number(v->attr[IFLA_MASTER]), master);
	/* A bridge's MAC address is made at random; that of lo is none. */
	if (i->ifi_type == 772 || !strcmp(kind, "bridge") || !mac)
		mac = (const uint8_t *)"\0\0\0\0\0\0";
	LINE(v->lines, "%slink %s %s %s mtu %u master %s alias %s mac %02x%02x%02x%02x%02x%02x %u",
		v->where, text(v->attr[IFLA_IFNAME]), kind, i->ifi_flags & IFF_UP ? "up" : "down",
		number(v->attr[IFLA_MTU]), master, text(v->attr[IFLA_IFALIAS]), mac[0], mac[1],
		mac[2], mac[3], mac[4], mac[5], number(v->attr[IFLA_PROMISCUITY]));
	add_altnames(v);
	return MNL_CB_OK;
}

static int on_addr(const struct nlmsghdr *m, void *arg)
{
	const struct ifaddrmsg *i = mnl_nlmsg_get_payload(m);
	char ip[INET6_ADDRSTRLEN], name[IF_NAMESIZE];
	struct view *v = arg;

	/* Link-local ones come and go by themselves. */
	if (i->ifa_scope == RT_SCOPE_LINK)
		return MNL_CB_OK;
	parse(v, m, sizeof(*i));
	LINE(v->lines, "%saddr %s %s/%u", v->where, name_of(i->ifa_index, name),
		address(i->ifa_family, v->attr[IFA_ADDRESS], ip), i->ifa_prefixlen);
	return MNL_CB_OK;
}

static int on_route(const struct nlmsghdr *m, void *arg)
{
	const struct rtmsg *r = mnl_nlmsg_get_payload(m);
	char ip[INET6_ADDRSTRLEN], gw[INET6_ADDRSTRLEN], name[IF_NAMESIZE];
	struct view *v = arg;
	const uint8_t *dst;

	parse(v, m, sizeof(*r));
	dst = v->attr[RTA_DST] ? mnl_attr_get_payload(v->attr[RTA_DST]) : NULL;
	if (r->rtm_table == RT_TABLE_LOCAL || r->rtm_flags & RTM_F_CLONED ||
		(r->rtm_family == AF_INET6 && dst && dst[0] >= 0xfe))
		return MNL_CB_OK;
	LINE(v->lines, "%sroute %s/%u via %s dev %s table %u", v->where,
		address(r->rtm_family, v->attr[RTA_DST], ip), r->rtm_dst_len,
		address(r->rtm_family, v->attr[RTA_GATEWAY], gw),
		name_of(number(v->attr[RTA_OIF]), name), r->rtm_table);
	return MNL_CB_OK;
}

static int on_rule(const struct nlmsghdr *m, void *arg)
{
	const struct fib_rule_hdr *r = mnl_nlmsg_get_payload(m);
	struct view *v = arg;

	parse(v, m, sizeof(*r));
	LINE(v->lines, "%srule %u table %u", v->where, number(v->attr[FRA_PRIORITY]),
		number(v->attr[FRA_TABLE]));
	return MNL_CB_OK;
}

static int on_qdisc(const struct nlmsghdr *m, void *arg)
{
	const struct tcmsg *t = mnl_nlmsg_get_payload(m);
	struct view *v = arg;
	char name[IF_NAMESIZE];
	const char *kind;

	parse(v, m, sizeof(*t));
	kind = text(v->attr[TCA_KIND]);
	/* What links are born with. */
	if (strcmp(kind, "noqueue") && strcmp(kind, "pfifo_fast") && strcmp(kind, "fq_codel") &&
		strcmp(kind, "fq") && strcmp(kind, "mq"))
		LINE(v->lines, "%sqdisc %s %s", v->where, name_of((uint32_t)t->tcm_ifindex, name),
			kind);
	return MNL_CB_OK;
}

static int on_table(const struct nlmsghdr *m, void *arg)
{
	(void)m;
	++*(int *)arg;
	return MNL_CB_OK;
}

static void dump(
	struct mnl_socket *s, uint16_t type, size_t header, uint8_t family, mnl_cb_t cb, void *arg)
{
	char buf[32768];
	struct nlmsghdr *m = mnl_nlmsg_put_header(buf);
	uint8_t *body = mnl_nlmsg_put_extra_header(m, header);
	ssize_t n;
	int more = 1;

	m->nlmsg_type = type;
	m->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	m->nlmsg_seq = 1;
	memset(body, 0, header);
	body[0] = family;
	if (mnl_socket_sendto(s, m, m->nlmsg_len) < 0)
		die("netlink");
	while (more > 0) {
		n = mnl_socket_recvfrom(s, buf, sizeof(buf));
		more = n < 0 ? -1 : mnl_cb_run(buf, (size_t)n, 1, 0, cb, arg);
	}
}

static struct mnl_socket *open_socket(int protocol)
{
	struct mnl_socket *s = mnl_socket_open2(protocol, SOCK_CLOEXEC);

	if (!s || mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0)
		die("netlink");
	return s;
}

static void see_network(struct view *v)
{
	struct mnl_socket *s = open_socket(NETLINK_ROUTE);

	dump(s, RTM_GETLINK, sizeof(struct ifinfomsg), AF_UNSPEC, on_link, v);
	dump(s, RTM_GETADDR, sizeof(struct ifaddrmsg), AF_UNSPEC, on_addr, v);
	dump(s, RTM_GETROUTE, sizeof(struct rtmsg), AF_INET, on_route, v);
	dump(s, RTM_GETROUTE, sizeof(struct rtmsg), AF_INET6, on_route, v);
	dump(s, RTM_GETRULE, sizeof(struct fib_rule_hdr), AF_INET, on_rule, v);
	dump(s, RTM_GETRULE, sizeof(struct fib_rule_hdr), AF_INET6, on_rule, v);
	dump(s, RTM_GETQDISC, sizeof(struct tcmsg), AF_UNSPEC, on_qdisc, v);
	mnl_socket_close(s);
}

/* ---- nftables ---- */

/* Elements of a set come in any order, so each is a line of its own. */
static void see_ruleset(struct lines *l)
{
	struct mnl_socket *s = open_socket(NETLINK_NETFILTER);
	int tables = 0;
	char *line = NULL, *part, *save;
	size_t size = 0;
	FILE *f;

	dump(s, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE, sizeof(struct nfgenmsg), AF_UNSPEC,
		on_table, &tables);
	mnl_socket_close(s);
	if (!tables)
		return;
	f = popen("nft -s list ruleset", "r");
	while (f && getline(&line, &size, f) > 0)
		for (part = strtok_r(line, "{},\n", &save); part;
			part = strtok_r(NULL, "{},\n", &save)) {
			part += strspn(part, " \t");
			if (*part && strcmp(part, "elements = ") != 0)
				LINE(l, "nft %s", part);
		}
	free(line);
	if (!f || pclose(f))
		die("nft list ruleset");
}

/* ---- files ---- */

static struct lines *files;

static bool stays(const char *name)
{
	const char *dot = strrchr(name, '.');

	return !strncmp(name, "last_reserved_ip.", 17) || !strcmp(name, "lock") ||
	       !strcmp(name, "cnitool.lock") || (name[0] != '.' && dot && !strcmp(dot, ".index"));
}

static int on_file(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st;
	if (flag == FTW_D || stays(path + at->base) || !strncmp(path, "/run/netns/", 11) ||
		!strncmp(path, "/run/.node", 10) || !strncmp(path, "/etc/cni/net.d/", 15))
		return 0;
	LINE(files, "file %s", path);
	return 0;
}

static void see_files(struct lines *l)
{
	files = l;
	nftw("/var/lib/cni", on_file, 16, FTW_PHYS);
	nftw("/etc/cni", on_file, 16, FTW_PHYS);
	nftw("/run", on_file, 16, FTW_PHYS);
}

/* ---- settings ---- */

static void see_sysctl(struct view *v, const char *path)
{
	char full[128], value[128];
	ssize_t n;
	int fd;

	snprintf(full, sizeof(full), "/proc/sys/%s", path);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, value, sizeof(value) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return;
	value[n - 1] = '\0';
	LINE(v->lines, "%ssysctl %s %s", v->where, path, value);
}

char *node_state(const char *const *names, bool sysctls)
{
	struct lines l = {0};
	struct view v = {.lines = &l, .where = ""};

	see_network(&v);
	see_ruleset(&l);
	see_files(&l);
	see_sysctl(&v, "net/ipv4/conf/cni0/route_localnet");
	for (; names && *names; names++) {
		char path[64], where[32];
		int own = own_netns(), fd;

		snprintf(path, sizeof(path), "/run/netns/%s", *names);
		snprintf(where, sizeof(where), "%s: ", *names);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			die(path);
		enter(fd);
		v.where = where;
		see_network(&v);
		if (sysctls)
			see_sysctl(&v, "net/core/somaxconn");
		enter(own);
	}
	return join(&l);
}

/* ---- comparing ---- */

static char *next_line(const char **at)
{
	size_t n = strcspn(*at, "\n");
	char *line;

	if (!**at)
		return NULL;
	line = strndup(*at, n);
	*at += n + ((*at)[n] ? 1 : 0);
	return line;
}

char *state_diff(const char *before, const char *after)
{
	char *text = NULL, *a = next_line(&before), *b = next_line(&after);
	size_t size;
	FILE *f = open_memstream(&text, &size);

	while (a || b) {
		int cmp = !a ? 1 : !b ? -1 : strcmp(a, b);

		if (cmp < 0)
			fprintf(f, "-%s\n", a);
		if (cmp > 0)
			fprintf(f, "+%s\n", b);
		if (cmp <= 0) {
			free(a);
			a = next_line(&before);
		}
		if (cmp >= 0) {
			free(b);
			b = next_line(&after);
		}
	}
	fclose(f);
	return text;
}
