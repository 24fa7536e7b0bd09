#include "node.h"

#include "call.h"
#include "series.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/if.h> /* after sys/socket.h */

#define POOL 4 /* container namespaces per side, used in turn */

static const char dbnet[] =
	"[{\"type\": \"bridge\", \"bridge\": \"cni0\", \"isGateway\": true, \"ipMasq\": true,"
	"  \"ipam\": {\"type\": \"host-local\", \"subnet\": \"10.1.0.0/16\","
	"   \"gateway\": \"10.1.0.1\", \"routes\": [{\"dst\": \"0.0.0.0/0\"}]},"
	"  \"dns\": {\"nameservers\": [\"10.1.0.1\"]}},"
	" {\"type\": \"tuning\", \"sysctl\": {\"net.core.somaxconn\": \"500\"},"
	"  \"runtimeConfig\": {\"mac\": \"00:11:22:33:44:66\"}},"
	" {\"type\": \"portmap\", \"runtimeConfig\": {\"portMappings\":"
	"  [{\"hostPort\": 8080, \"containerPort\": 80, \"protocol\": \"tcp\"}]}}]";
/* An address, nothing more: what the plugin itself takes. */
#define IPAM(subnet)                                                                               \
	"\"ipam\": {\"type\": \"host-local\", \"subnet\": \"" subnet                               \
	"\", \"routes\": [{\"dst\": \"0.0.0.0/0\"}]}"

const struct list lists[] = {
	{"dbnet", dbnet},
	{"bridge", "[{\"type\": \"bridge\", \"bridge\": \"cni1\", \"isGateway\": true, " IPAM(
			   "10.2.0.0/16") "}]"},
	{"ptp", "[{\"type\": \"ptp\", " IPAM("10.3.0.0/16") "}]"},
	{"dummy", "[{\"type\": \"dummy\", " IPAM("10.4.0.0/16") "}]"},
	{"static", "[{\"type\": \"static\", \"ipam\": {\"type\": \"static\", \"addresses\":"
		   " [{\"address\": \"10.5.0.5/16\", \"gateway\": \"10.5.0.1\"}]}}]"},
	{"vlan", "[{\"type\": \"vlan\", \"master\": \"m0\", \"vlanId\": 7, " IPAM(
			 "10.7.0.0/16") "}]"},
	{"macvlan", "[{\"type\": \"macvlan\", \"master\": \"m0\", " IPAM("10.6.0.0/16") "}]"},
	{"ipvlan", "[{\"type\": \"ipvlan\", \"master\": \"m0\", " IPAM("10.7.0.0/16") "}]"},
	{"host-device",
		"[{\"type\": \"host-device\", \"device\": \"d0\", " IPAM("10.8.0.0/16") "}]"},
	{"tap", "[{\"type\": \"tap\", " IPAM("10.9.0.0/16") "}]"},
};
const int list_count = sizeof(lists) / sizeof(*lists);

static const char shaped[] =
	"{\"type\": \"bandwidth\", \"runtimeConfig\": {\"bandwidth\": {\"ingressRate\": 100000000,"
	" \"ingressBurst\": 1000000, \"egressRate\": 100000000, \"egressBurst\": 1000000}}}";

static void id_of(unsigned int n, char id[static 65])
{
	snprintf(id, 65, "%064x", n * 2654435761u);
}

/* One of the pool, or one's own for those that stay. */
static void netns_of(const struct order *o, char path[static 64])
{
	snprintf(path, 64, "/run/netns/c%u", o->crowd ? POOL - 1 + o->crowd : o->round % POOL);
}

static void take(struct reply *r, const char *plugin, struct call *c)
{
	int i = r->steps++;

	snprintf(r->plugin[i], sizeof(r->plugin[i]), "%s", plugin);
	r->ms[i] = c->ms;
	r->cpu_ms[i] = c->cpu_ms;
	r->peak_kb[i] = c->peak_kb;
	r->programs[i] = c->programs;
	r->failed[i] = c->status != 0;
}

static void set_port(json_t *conf, int port)
{
	json_t *list = json_object_get(json_object_get(conf, "runtimeConfig"), "portMappings");

	json_object_set_new(json_array_get(list, 0), "hostPort", json_integer(port));
}

static void run_chain(const struct side *s, const struct order *o, struct reply *r)
{
	static json_t *prev;
	json_t *list = json_loads(lists[o->list].plugins, 0, NULL);
	char path[512], id[65], netns[64];
	bool back = !strcmp(o->verb, "DEL");
	size_t n;

	if (o->bandwidth)
		json_array_append_new(list, json_loads(shaped, 0, NULL));
	n = json_array_size(list);
	id_of(o->round, id);
	netns_of(o, netns);
	for (size_t i = 0; i < n; i++) {
		json_t *conf = json_deep_copy(json_array_get(list, back ? n - 1 - i : i));
		const char *type = json_string_value(json_object_get(conf, "type"));
		struct call c = {.verb = o->verb,
			.path = path,
			.id = id,
			.netns = netns,
			.dir = s->path,
			.trace = o->trace,
			/* portmap 1.1.1 misses an IPv6 chain where there is no IPv6. Whether a list
			 * of the table works depends on the kernel. */
			.may_fail = !strcmp(o->verb, "CHECK") || o->list};

		snprintf(path, sizeof(path), "%s/%s", s->path, type);
		json_object_set_new(conf, "cniVersion", json_string("1.0.0"));
		json_object_set_new(conf, "name", json_string(lists[o->list].name));
		if (prev)
			json_object_set(conf, "prevResult", prev);
		if (!strcmp(type, "portmap"))
			set_port(conf, 8080 + (int)o->crowd);
		c.input = json_dumps(conf, JSON_COMPACT);
		call(&c);
		take(r, type, &c);
		if (!strcmp(o->verb, "ADD")) {
			json_decref(prev);
			prev = json_loads(c.output, 0, NULL);
		}
		free((char *)c.input);
		free(c.output);
		json_decref(conf);
	}
	json_decref(list);
	if (back) {
		json_decref(prev);
		prev = NULL;
	}
}

static void run_floor(const struct side *s, const struct order *o, struct reply *r)
{
	char netns[64], n[16];
	bool add = !strcmp(o->verb, "ADD");
	char *args[6] = {
		"floor", add ? "add" : "del", add ? netns : n, "00:11:22:33:44:66", n, NULL};
	struct call c = {.verb = o->verb,
		.path = s->path,
		.id = "",
		.netns = "",
		.dir = "",
		.input = "",
		.argv = args,
		.trace = o->trace};

	netns_of(o, netns);
	snprintf(n, sizeof(n), "%u", o->crowd ? 10 + o->crowd : 2 + o->round % 8);
	if (!add)
		args[3] = NULL;
	call(&c);
	take(r, "floor", &c);
	r->ms[STEPS - 1] = atof(c.output) / 1e3; /* the work without the process */
	free(c.output);
}

static void run_program(const struct side *s, const struct order *o, struct reply *r)
{
	char path[512], id[65];
	char input[512] = "{\"cniVersion\": \"1.0.0\"}";
	const char *netns = "/run/netns/c0";
	struct call c = {.verb = o->verb,
		.path = path,
		.id = id,
		.netns = netns,
		.dir = s->path,
		.input = input,
		.trace = o->trace};

	id_of(o->round, id);
	if (o->what == PROGRAM)
		snprintf(path, sizeof(path), "%s%s%s", *o->program == '/' ? "" : s->path,
			*o->program == '/' ? "" : "/", o->program);
	else
		snprintf(path, sizeof(path), "%s/host-local", s->path);
	if (o->what == LEASE)
		snprintf(input, sizeof(input),
			"{\"cniVersion\": \"1.0.0\", \"name\": \"leases%u\", \"type\": \"bridge\","
			"\"ipam\": {\"type\": \"host-local\", \"subnet\": \"10.1.0.0/16\"}}",
			o->leases);
	else
		snprintf(input, sizeof(input),
			"{\"cniVersion\": \"1.0.0\", \"name\": \"lo\", \"type\": \"loopback\"}");
	call(&c);
	take(r, o->what == LEASE ? "host-local" : "program", &c);
	free(c.output);
}

/* A store as the Go plugin leaves it: one file per lease, in the order it hands them out. */
static void fill(unsigned int leases)
{
	char dir[128], path[192], text[128], id[65], ip[32] = "";
	int fd;

	mkdir("/var/lib/cni/networks", 0755);
	snprintf(dir, sizeof(dir), "/var/lib/cni/networks/leases%u", leases);
	mkdir(dir, 0755);
	for (unsigned int i = 0; i <= leases; i++) {
		if (i == leases) {
			if (!leases)
				break;
			snprintf(path, sizeof(path), "%s/last_reserved_ip.0", dir);
			snprintf(text, sizeof(text), "%s", ip);
		} else {
			snprintf(ip, sizeof(ip), "10.1.%u.%u", (i + 2) >> 8, (i + 2) & 255);
			snprintf(path, sizeof(path), "%s/%s", dir, ip);
			id_of(i + 1000000, id);
			snprintf(text, sizeof(text), "%s\r\neth0", id);
		}
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, text, strlen(text)) < 0)
			die(path);
		close(fd);
	}
	sync();
}

static void lo_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ifr.ifr_flags = IFF_UP;
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		die("lo");
	close(fd);
}

static void tmpfs(const char *dir)
{
	if (mount("bench", dir, "tmpfs", 0, "mode=755"))
		die(dir);
}

static void make_netns(unsigned int first, unsigned int count)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	char path[64];

	for (unsigned int i = first; i < first + count; i++) {
		snprintf(path, sizeof(path), "/run/netns/c%u", i);
		close(open(path, O_CREAT | O_CLOEXEC, 0600));
		if (unshare(CLONE_NEWNET) || mount("/proc/self/ns/net", path, NULL, MS_BIND, NULL))
			die(path);
		lo_up();
	}
	if (setns(home, CLONE_NEWNET))
		die("setns");
	close(home);
}

static void make_node(const char *store)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) ||
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("unshare");
	tmpfs("/run");
	if (!store)
		tmpfs("/var/lib");
	else if (mount(store, "/var/lib", NULL, MS_BIND, NULL))
		die(store);
	mkdir("/var/lib/cni", 0755);
	mkdir("/run/netns", 0755);
	lo_up();
	make_netns(0, POOL);
	/* The network's cable. */
	if (system("ip link add m0 up type veth peer name m1 && ip link set m1 up"))
		die("m0");
	/* For host-device. */
	if (system("ip link add d0 type veth peer name d1"))
		die("d0");
}

static void serve(const struct side *s, int sock, const char *store)
{
	struct order o;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, late);
	make_node(store);
	while (read(sock, &o, sizeof(o)) == sizeof(o)) {
		struct reply r = {0};

		switch (o.what) {
		case CHAIN: (s->floor ? run_floor : run_chain)(s, &o, &r); break;
		case FILL: fill(o.leases); break;
		case NETNS: make_netns(POOL, o.crowd); break;
		case STOP: exit(0);
		default: run_program(s, &o, &r);
		}
		if (write(sock, &r, sizeof(r)) != sizeof(r))
			die("write");
	}
	exit(0);
}

bool has_list(const struct side *s, int list)
{
	json_t *plugins = json_loads(lists[list].plugins, 0, NULL);
	bool there = !s->floor || !list;

	for (size_t i = 0; i < json_array_size(plugins) && !s->floor; i++) {
		json_t *conf = json_array_get(plugins, i);
		char path[512];

		snprintf(path, sizeof(path), "%s/%s", s->path,
			json_string_value(json_object_get(conf, "type")));
		there = there && !access(path, X_OK);
	}
	json_decref(plugins);
	return there;
}

void start_side(struct side *s, const char *store_dir)
{
	char store[512];
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die("socketpair");
	if (store_dir) {
		snprintf(store, sizeof(store), "%s/%s", store_dir, s->name);
		if (mkdir(store, 0755) && errno != EEXIST)
			die(store);
	}
	fflush(NULL);
	s->pid = fork();
	if (!s->pid) {
		close(pair[0]);
		serve(s, pair[1], store_dir ? store : NULL);
	}
	close(pair[1]);
	s->sock = pair[0];
}

void stop_side(struct side *s)
{
	struct order o = {.what = STOP};

	if (write(s->sock, &o, sizeof(o)) < 0)
		die(s->name);
	waitpid(s->pid, NULL, 0);
	close(s->sock);
}

struct reply ask(const struct side *s, const struct order *o)
{
	struct reply r;

	if (write(s->sock, o, sizeof(*o)) != sizeof(*o) ||
		read(s->sock, &r, sizeof(r)) != sizeof(r)) {
		fprintf(stderr, "bench: %s has failed\n", s->name);
		exit(1);
	}
	/* Let what the kernel put off (RCU, link events) happen outside of the next one's time. */
	usleep(3000);
	return r;
}
