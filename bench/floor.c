/* The floor under the dbnet chain: the same kernel work as bridge + host-local + tuning + portmap,
 * done by raw netlink and libnftables in one process, without config, checks, undo or result. What
 * a plugin needs beyond this is its own cost; less than this is not to be had.
 *
 *   floor add NETNS MAC N     attach, 10.1.0.N, host port 8000 + N
 *   floor del N               detach
 *
 * Prints the microseconds of the work itself, the start of the process left out. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <nftables/libnftables.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BRIDGE "cni0"
#define LEASES "/var/lib/cni/floor"

static void die(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- netlink ---- */

/* Messages of one send; every one asks for an ack, but a GETLINK, whose answer is one. */
struct batch {
	struct mnl_socket *nl;
	char buf[4096];
	size_t len;
	unsigned int n;
	struct nlmsghdr *nlh; /* the one being built */
};

static void open_batch(struct batch *b)
{
	b->nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!b->nl || mnl_socket_bind(b->nl, 0, MNL_SOCKET_AUTOPID) < 0)
		die("netlink");
	b->len = 0;
	b->n = 0;
}

static void *message(struct batch *b, uint16_t type, uint16_t flags, size_t extra)
{
	b->nlh = mnl_nlmsg_put_header(b->buf + b->len);
	b->nlh->nlmsg_type = type;
	b->nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	b->nlh->nlmsg_seq = ++b->n;
	return mnl_nlmsg_put_extra_header(b->nlh, extra);
}

static void end(struct batch *b)
{
	b->len += NLMSG_ALIGN(b->nlh->nlmsg_len);
}

/* Sends all and takes as many answers. Returns the index of a link answered, 0 for none; *error is
 * the last errno answered. */
static int send_batch(struct batch *b, int *error)
{
	char in[16384];
	int index = 0;

	if (mnl_socket_sendto(b->nl, b->buf, b->len) < 0)
		die("send");
	*error = 0;
	for (unsigned int left = b->n; left;) {
		ssize_t got = mnl_socket_recvfrom(b->nl, in, sizeof(in));
		int len = (int)got;

		if (got < 0)
			die("receive");
		for (struct nlmsghdr *h = (void *)in; mnl_nlmsg_ok(h, len);
			h = mnl_nlmsg_next(h, &len)) {
			if (h->nlmsg_type == NLMSG_ERROR) {
				int e = ((struct nlmsgerr *)mnl_nlmsg_get_payload(h))->error;

				*error = e ? -e : *error;
				left--;
			} else if (h->nlmsg_type == RTM_NEWLINK) {
				index = ((struct ifinfomsg *)mnl_nlmsg_get_payload(h))->ifi_index;
				left--;
			}
		}
	}
	b->len = 0;
	b->n = 0;
	return index;
}

static void commit(struct batch *b, const char *what)
{
	int error;

	send_batch(b, &error);
	if (error) {
		errno = error;
		die(what);
	}
}

static int link_index(struct batch *b, const char *name)
{
	int error;

	message(b, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(b->nlh, IFLA_IFNAME, name);
	mnl_attr_put_u32(b->nlh, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	end(b);
	return send_batch(b, &error);
}

static void put_address(struct batch *b, int index, const char *text)
{
	struct ifaddrmsg *m =
		message(b, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sizeof(*m));
	uint32_t ip = inet_addr(text);

	m->ifa_family = AF_INET;
	m->ifa_prefixlen = 16;
	m->ifa_index = (uint32_t)index;
	mnl_attr_put_u32(b->nlh, IFA_LOCAL, ip);
	mnl_attr_put_u32(b->nlh, IFA_ADDRESS, ip);
	mnl_attr_put_u32(b->nlh, IFA_BROADCAST, inet_addr("10.1.255.255"));
	end(b);
}

static void put_default_route(struct batch *b, int index, const char *gateway)
{
	struct rtmsg *m =
		message(b, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sizeof(*m));

	m->rtm_family = AF_INET;
	m->rtm_table = RT_TABLE_MAIN;
	m->rtm_protocol = RTPROT_BOOT;
	m->rtm_scope = RT_SCOPE_UNIVERSE;
	m->rtm_type = RTN_UNICAST;
	mnl_attr_put_u32(b->nlh, RTA_GATEWAY, inet_addr(gateway));
	mnl_attr_put_u32(b->nlh, RTA_OIF, (uint32_t)index);
	end(b);
}

static void put_up(struct batch *b, int index)
{
	struct ifinfomsg *m = message(b, RTM_NEWLINK, NLM_F_ACK, sizeof(*m));

	m->ifi_index = index;
	m->ifi_flags = m->ifi_change = IFF_UP;
	end(b);
}

static void put_bridge(struct batch *b)
{
	struct ifinfomsg *m =
		message(b, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sizeof(*m));
	struct nlattr *info;

	m->ifi_flags = m->ifi_change = IFF_UP;
	mnl_attr_put_strz(b->nlh, IFLA_IFNAME, BRIDGE);
	info = mnl_attr_nest_start(b->nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(b->nlh, IFLA_INFO_KIND, "bridge");
	mnl_attr_nest_end(b->nlh, info);
	end(b);
}

/* Both ends, each in its place and named; the container's with its MAC, the host's up and in the
 * bridge. The kernel opens no peer that is still being made (ENOTCONN): that is put_up's. */
static void put_veth(struct batch *b, const char *host, int bridge, int netns, const char *mac)
{
	struct ifinfomsg *m =
		message(b, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sizeof(*m));
	struct nlattr *info, *data, *peer;
	unsigned char hw[6];

	sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", hw, hw + 1, hw + 2, hw + 3, hw + 4, hw + 5);
	m->ifi_flags = m->ifi_change = IFF_UP;
	mnl_attr_put_strz(b->nlh, IFLA_IFNAME, host);
	mnl_attr_put_u32(b->nlh, IFLA_MASTER, (uint32_t)bridge);
	info = mnl_attr_nest_start(b->nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(b->nlh, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(b->nlh, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(b->nlh, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(b->nlh, sizeof(*m));
	mnl_attr_put_strz(b->nlh, IFLA_IFNAME, "eth0");
	mnl_attr_put(b->nlh, IFLA_ADDRESS, sizeof(hw), hw);
	mnl_attr_put_u32(b->nlh, IFLA_NET_NS_FD, (uint32_t)netns);
	mnl_attr_nest_end(b->nlh, peer);
	mnl_attr_nest_end(b->nlh, data);
	mnl_attr_nest_end(b->nlh, info);
	end(b);
}

/* ---- the rest ---- */

static void write_file(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static void nft(const char *text)
{
	struct nft_ctx *ctx = nft_ctx_new(NFT_CTX_DEFAULT);

	if (!ctx || nft_run_cmd_from_buffer(ctx, text))
		die("nft");
	nft_ctx_free(ctx);
}

/* What only the first attachment of a node needs. */
static int first(struct batch *b)
{
	int index;

	put_bridge(b);
	commit(b, BRIDGE);
	index = link_index(b, BRIDGE);
	put_address(b, index, "10.1.0.1");
	commit(b, "10.1.0.1");
	write_file("/proc/sys/net/ipv4/ip_forward", 0, "1");
	write_file("/proc/sys/net/ipv4/conf/" BRIDGE "/route_localnet", 0, "1");
	nft("table ip floor {\n"
	    "map ports { type inet_proto . inet_service : ipv4_addr . inet_service\n}\n"
	    "set nets { type ipv4_addr\n}\n"
	    "chain mapped { fib daddr type local dnat to meta l4proto . th dport map @ports\n}\n"
	    "chain pre { type nat hook prerouting priority -100\njump mapped\n}\n"
	    "chain out { type nat hook output priority -100\njump mapped\n}\n"
	    "chain post { type nat hook postrouting priority 100\n"
	    "ip saddr @nets ip daddr != 10.1.0.0/16 masquerade\n"
	    "ip saddr 127.0.0.0/8 oifname " BRIDGE " masquerade\n}\n}\n");
	mkdir(LEASES, 0755);
	return index;
}

static void add(const char *path, const char *mac, const char *n)
{
	char ip[24], file[64], text[256], host[16];
	struct batch node, container;
	int netns = open(path, O_RDONLY | O_CLOEXEC);
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int bridge, index;

	if (netns < 0 || home < 0)
		die(path);
	open_batch(&node);
	bridge = link_index(&node, BRIDGE);
	if (!bridge)
		bridge = first(&node);
	snprintf(ip, sizeof(ip), "10.1.0.%s", n);
	snprintf(file, sizeof(file), LEASES "/%s", ip);
	write_file(file, O_CREAT | O_EXCL, mac);
	snprintf(host, sizeof(host), "floor%s", n);
	put_veth(&node, host, bridge, netns, mac);
	commit(&node, host);

	if (setns(netns, CLONE_NEWNET))
		die("setns");
	open_batch(&container);
	write_file("/proc/sys/net/core/somaxconn", 0, "500");
	if (setns(home, CLONE_NEWNET))
		die("setns");
	index = link_index(&container, "eth0");
	put_up(&container, index);
	put_address(&container, index, ip);
	put_default_route(&container, index, "10.1.0.1");
	commit(&container, ip);
	snprintf(text, sizeof(text),
		"add element ip floor ports { tcp . %d : %s . 80 }\n"
		"add element ip floor nets { %s }\n",
		8000 + atoi(n), ip, ip);
	nft(text);
}

static void del(const char *n)
{
	char file[64], text[256], host[16];
	struct batch node;

	snprintf(text, sizeof(text),
		"delete element ip floor ports { tcp . %d }\n"
		"delete element ip floor nets { 10.1.0.%s }\n",
		8000 + atoi(n), n);
	nft(text);
	open_batch(&node);
	snprintf(host, sizeof(host), "floor%s", n);
	message(&node, RTM_DELLINK, NLM_F_ACK, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(node.nlh, IFLA_IFNAME, host);
	end(&node);
	commit(&node, host);
	snprintf(file, sizeof(file), LEASES "/10.1.0.%s", n);
	if (unlink(file))
		die(file);
}

int main(int argc, char **argv)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	if (argc == 5 && !strcmp(argv[1], "add"))
		add(argv[2], argv[3], argv[4]);
	else if (argc == 3 && !strcmp(argv[1], "del"))
		del(argv[2]);
	else
		return fputs("usage: floor add NETNS MAC N | floor del N\n", stderr), 2;
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%ld\n", (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
	return 0;
}
