/* Times CNI plugins against each other: see bench/run, which builds and calls it.
 *
 *   bench [--rounds N] [--leases N,N,...] [--store DIR] [--json] --side NAME=DIR...
 *
 * DIR holds the plugins, or is the floor program when it is a file. Each side is a process with a
 * network and a mount namespace of its own: a node that the others cannot disturb. All of them take
 * turns, call by call, and who begins changes every round, so that whatever the machine does in
 * between hits all alike.
 *
 * A call is what a runtime's is: posix_spawn (vfork), config on standard input, result from
 * standard output. The clock runs from the spawn until the process is reaped. What a runtime does
 * between the plugins of a list (prevResult from one to the next) is done outside of it; the time
 * of a chain is the sum of its plugins'. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/if.h> /* after sys/socket.h */

#define POOL   4 /* container namespaces per side, used in turn */
#define STEPS  4 /* plugins of a chain, at most */
#define SIDES  4
#define LEVELS 8

static void die(const char *what)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- samples and tables ---- */

struct series {
	char table[64], row[64], unit[8];
	int side;
	double *v;
	int n;
};
static struct series *all;
static int series_count;
static const char *side_names[SIDES];
static int side_count;

static void sample(const char *table, const char *row, const char *unit, int side, double v)
{
	struct series *s = NULL;

	for (int i = 0; i < series_count && !s; i++)
		if (all[i].side == side && !strcmp(all[i].row, row) && !strcmp(all[i].table, table))
			s = &all[i];
	if (!s) {
		all = realloc(all, (size_t)(series_count + 1) * sizeof(*all));
		s = &all[series_count++];
		memset(s, 0, sizeof(*s));
		snprintf(s->table, sizeof(s->table), "%s", table);
		snprintf(s->row, sizeof(s->row), "%s", row);
		snprintf(s->unit, sizeof(s->unit), "%s", unit);
		s->side = side;
	}
	s->v = realloc(s->v, (size_t)(s->n + 1) * sizeof(*s->v));
	s->v[s->n++] = v;
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(struct series *s, double q)
{
	double at = q * (s->n - 1);
	int i = (int)at;

	qsort(s->v, (size_t)s->n, sizeof(*s->v), order);
	return i + 1 < s->n ? s->v[i] + (at - i) * (s->v[i + 1] - s->v[i]) : s->v[i];
}

static struct series *find(const struct series *like, int side)
{
	for (int i = 0; i < series_count; i++)
		if (all[i].side == side && !strcmp(all[i].row, like->row) &&
			!strcmp(all[i].table, like->table))
			return &all[i];
	return NULL;
}

static void print_row(const struct series *first)
{
	double own = 0;

	printf("| %s |", first->row);
	for (int side = 0; side < side_count; side++) {
		struct series *s = find(first, side);
		double m = s ? quantile(s, 0.5) : 0;

		if (!s)
			printf(" |");
		else if (!strcmp(s->unit, "ms"))
			printf(" %.2f ms |", m);
		else
			printf(" %.0f%s%s |", m, *s->unit ? " " : "", s->unit);
		own = side ? own : m;
	}
	for (int side = 1; side < side_count; side++) {
		struct series *s = find(first, side);
		double m = s ? quantile(s, 0.5) : 0;

		if (!s || own <= 0)
			printf(" |");
		else
			printf(m / own < 9.95 ? " %.2f× |" : " %.1f× |", m / own);
	}
	puts("");
}

static bool seen_before(int i, bool row)
{
	for (int j = 0; j < i; j++)
		if (!strcmp(all[j].table, all[i].table) &&
			(!row || !strcmp(all[j].row, all[i].row)))
			return true;
	return false;
}

static void print_head(const char *table)
{
	printf("\n| %s |", table);
	for (int s = 0; s < side_count; s++)
		printf(" %s |", side_names[s]);
	for (int s = 1; s < side_count; s++)
		printf(" %s / %s |", side_names[s], side_names[0]);
	printf("\n|---|");
	for (int s = 0; s < 2 * side_count - 1; s++)
		printf("---:|");
	puts("");
}

/* A row is there once, whichever side has it. */
static void print_tables(void)
{
	for (int i = 0; i < series_count; i++) {
		if (seen_before(i, false))
			continue;
		print_head(all[i].table);
		for (int j = i; j < series_count; j++)
			if (!strcmp(all[j].table, all[i].table) && !seen_before(j, true))
				print_row(&all[j]);
	}
}

static void print_json(void)
{
	json_t *list = json_array();

	for (int i = 0; i < series_count; i++) {
		struct series *s = &all[i];

		json_array_append_new(
			list, json_pack("{ss ss ss ss si sf sf sf}", "table", s->table, "row",
				      s->row, "side", side_names[s->side], "unit", s->unit, "n",
				      s->n, "median", quantile(s, 0.5), "p10", quantile(s, 0.1),
				      "p90", quantile(s, 0.9)));
	}
	json_dumpf(list, stdout, JSON_INDENT(1));
	puts("");
	json_decref(list);
}

/* ---- calls ---- */

struct call {
	const char *verb, *path, *id, *netns, *dir;
	char *const *argv; /* NULL: just the path */
	const char *input;
	bool trace;    /* follow the processes instead of timing */
	bool may_fail; /* do not end everything */
	/* out */
	double ms, cpu_ms; /* wall clock; user and system time, of children too */
	long peak_kb;      /* the largest process, by VmHWM; traced calls only */
	int programs;      /* executed, the plugin included; traced calls only */
	char *output;      /* freed by the caller */
	int status;
};

static int in_pipe(const char *text)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		die("pipe");
	if (write(p[1], text, strlen(text)) != (ssize_t)strlen(text))
		die("write");
	close(p[1]);
	return p[0];
}

static char *drain(int fd)
{
	char *text = calloc(1, 65537);
	ssize_t got;
	size_t len = 0;

	while (len < 65536 && (got = read(fd, text + len, 65536 - len)) > 0)
		len += (size_t)got;
	return text;
}

static long peak_of(pid_t pid)
{
	char path[64], line[256];
	long kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

/* Follows a stopped child and all it starts to their ends. ru_maxrss would not do: it starts with
 * what the parent had when it forked. */
static int follow(pid_t pid, struct call *c)
{
	const long options = PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK |
			     PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
	int status, result = -1;
	pid_t who;

	waitpid(pid, &status, WUNTRACED);
	if (ptrace(PTRACE_SEIZE, pid, 0, options))
		die("ptrace");
	kill(pid, SIGCONT);
	while ((who = waitpid(-1, &status, __WALL)) > 0) {
		int event = status >> 16, sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

		if (!WIFSTOPPED(status)) {
			result = who == pid ? status : result;
			continue;
		}
		if (event == PTRACE_EVENT_EXIT && peak_of(who) > c->peak_kb)
			c->peak_kb = peak_of(who);
		c->programs += event == PTRACE_EVENT_EXEC;
		ptrace(PTRACE_CONT, who, 0, event || sig == SIGTRAP ? 0 : sig);
	}
	return result;
}

static pid_t start_stopped(const char *path, char *const *argv, char *const *env, const int *io)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (int i = 0; i < 3; i++)
		dup2(io[i], i);
	raise(SIGSTOP);
	execve(path, argv, env);
	_exit(127);
}

static pid_t start(const char *path, char *const *argv, char *const *env, const int *io)
{
	posix_spawn_file_actions_t files;
	pid_t pid;
	int error;

	posix_spawn_file_actions_init(&files);
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&files, io[i], i);
	error = posix_spawn(&pid, path, &files, NULL, argv, env);
	posix_spawn_file_actions_destroy(&files);
	if (error) {
		errno = error;
		die(path);
	}
	return pid;
}

/* A plugin that hangs is ended, and with it the run. */
static volatile pid_t running;
static void late(int sig)
{
	(void)sig;
	if (running > 0)
		kill(running, SIGKILL);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void call(struct call *c)
{
	char *env[8], *plain[2] = {(char *)c->path, NULL};
	char *const *argv = c->argv ? c->argv : plain;
	int out[2], io[3], n = 0;
	struct rusage used = {0};
	double from;
	pid_t pid;

	env[n++] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	asprintf(&env[n++], "CNI_COMMAND=%s", c->verb);
	asprintf(&env[n++], "CNI_CONTAINERID=%s", c->id);
	asprintf(&env[n++], "CNI_NETNS=%s", c->netns);
	asprintf(&env[n++], "CNI_IFNAME=%s", strstr(c->path, "loopback") ? "lo" : "eth0");
	asprintf(&env[n++], "CNI_PATH=%s", c->dir);
	env[n] = NULL;
	if (pipe2(out, O_CLOEXEC) < 0)
		die("pipe");
	io[0] = in_pipe(c->input);
	io[1] = out[1];
	io[2] = memfd_create("stderr", MFD_CLOEXEC);

	alarm(30);
	from = now_ms();
	if (c->trace) {
		pid = running = start_stopped(c->path, argv, env, io);
		c->status = follow(pid, c);
	} else {
		pid = running = start(c->path, argv, env, io);
		wait4(pid, &c->status, 0, &used);
	}
	c->ms = now_ms() - from;
	c->cpu_ms = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
		    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
	alarm(0);

	close(io[0]);
	close(out[1]);
	c->output = drain(out[0]);
	if (c->status && !c->may_fail) {
		char *err;

		lseek(io[2], 0, SEEK_SET);
		err = drain(io[2]);
		fprintf(stderr, "bench: %s %s: status %#x\n%s\n%s\n", c->verb, c->path,
			(unsigned int)c->status, c->output, err);
		exit(1);
	}
	close(out[0]);
	close(io[2]);
	for (int i = 1; i < n; i++)
		free(env[i]);
}

/* ---- a side: the process that is a node ---- */

enum what { CHAIN, LEASE, FILL, PROGRAM, NETNS, STOP };
struct order {
	enum what what;
	char verb[8];
	unsigned int round;
	unsigned int leases;
	unsigned int crowd; /* which of those that are there to stay; 0: none of them */
	bool trace, bandwidth;
	char program[256];
};
struct reply {
	int steps;
	char plugin[STEPS][16];
	double ms[STEPS], cpu_ms[STEPS];
	long peak_kb[STEPS];
	int programs[STEPS];
	bool failed[STEPS];
};
struct side {
	const char *name, *path;
	bool floor;
	pid_t pid;
	int sock;
};

static const char dbnet[] =
	"[{\"type\": \"bridge\", \"bridge\": \"cni0\", \"isGateway\": true, \"ipMasq\": true,"
	"  \"ipam\": {\"type\": \"host-local\", \"subnet\": \"10.1.0.0/16\","
	"   \"gateway\": \"10.1.0.1\", \"routes\": [{\"dst\": \"0.0.0.0/0\"}]},"
	"  \"dns\": {\"nameservers\": [\"10.1.0.1\"]}},"
	" {\"type\": \"tuning\", \"sysctl\": {\"net.core.somaxconn\": \"500\"},"
	"  \"runtimeConfig\": {\"mac\": \"00:11:22:33:44:66\"}},"
	" {\"type\": \"portmap\", \"runtimeConfig\": {\"portMappings\":"
	"  [{\"hostPort\": 8080, \"containerPort\": 80, \"protocol\": \"tcp\"}]}}]";
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
	static json_t *list, *prev;
	char path[512], id[65], netns[64];
	bool back = !strcmp(o->verb, "DEL");
	size_t n;

	if (!list)
		list = json_loads(dbnet, 0, NULL);
	if (o->bandwidth && json_array_size(list) == 3)
		json_array_append_new(list, json_loads(shaped, 0, NULL));
	n = o->bandwidth ? 4 : 3;
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
			/* portmap 1.1.1 misses an IPv6 chain where there is no IPv6. */
			.may_fail = !strcmp(o->verb, "CHECK")};

		snprintf(path, sizeof(path), "%s/%s", s->path, type);
		json_object_set_new(conf, "cniVersion", json_string("1.0.0"));
		json_object_set_new(conf, "name", json_string("dbnet"));
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

/* ---- the conductor ---- */

static struct side sides[SIDES];
static const char *store_dir;

static void start_side(struct side *s)
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

static void stop_side(struct side *s)
{
	struct order o = {.what = STOP};

	if (write(s->sock, &o, sizeof(o)) < 0)
		die(s->name);
	waitpid(s->pid, NULL, 0);
	close(s->sock);
}

static struct reply ask(const struct side *s, const struct order *o)
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

/* Every side once, a different one first each round. */
#define EACH(i, round)                                                                             \
	for (int k_ = 0, i = (int)((round) % (unsigned int)side_count); k_ < side_count;           \
		k_++, i = (i + 1) % side_count)

static const char *const verbs[] = {"ADD", "CHECK", "DEL"};

static void chain_sample(int i, const char *verb, const struct reply *r, unsigned int others)
{
	char row[80], table[64], some[32] = "";
	double sum = 0, cpu = 0;
	bool failed = false;

	for (int k = 0; k < r->steps; k++) {
		sum += r->ms[k];
		cpu += r->cpu_ms[k];
		failed |= r->failed[k];
	}
	if (others)
		snprintf(some, sizeof(some), ", %u others there", others);
	snprintf(row, sizeof(row), "chain %s%s", verb, some);
	if (!failed) {
		sample("dbnet chain, time", row, "ms", i, sum);
		sample("dbnet chain, CPU time", row, "ms", i, cpu);
	}
	snprintf(table, sizeof(table), "of which%s", some);
	if (sides[i].floor) {
		snprintf(row, sizeof(row), "without the process: %s", verb);
		sample(table, row, "ms", i, r->ms[STEPS - 1]);
		return;
	}
	for (int k = 0; k < r->steps; k++) {
		snprintf(row, sizeof(row), "%s %s%s", r->plugin[k], verb,
			r->failed[k] ? ", failing" : "");
		sample(table, row, "ms", i, r->ms[k]);
	}
}

static void bench_chain(unsigned int rounds, unsigned int others)
{
	const unsigned int warm = 2;

	for (unsigned int n = 0; n < rounds + warm; n++) {
		for (int v = 0; v < 3; v++) {
			struct order o = {.what = CHAIN, .round = n};

			strcpy(o.verb, verbs[v]);
			EACH(i, n)
			{
				struct reply r;

				if (sides[i].floor && v == 1)
					continue;
				r = ask(&sides[i], &o);
				if (n >= warm)
					chain_sample(i, verbs[v], &r, others);
			}
		}
	}
}

/* The same on a node where others are and stay, each with a port. */
static void bench_crowd(unsigned int rounds, unsigned int others)
{
	struct order o = {.what = NETNS, .crowd = others};

	for (int i = 0; i < side_count; i++)
		ask(&sides[i], &o);
	o.what = CHAIN;
	strcpy(o.verb, "ADD");
	for (o.crowd = 1; o.crowd <= others; o.crowd++) {
		o.round = 1000000 + o.crowd;
		for (int i = 0; i < side_count; i++)
			ask(&sides[i], &o);
	}
	bench_chain(rounds, others);
}

/* What only the first attachment of a node costs: on fresh nodes. */
static void bench_first(unsigned int rounds)
{
	for (unsigned int n = 0; n < rounds; n++) {
		EACH(i, n)
		{
			struct order o = {.what = CHAIN, .verb = "ADD", .round = n};
			struct side s = sides[i];
			struct reply r;
			double sum = 0;

			start_side(&s);
			r = ask(&s, &o);
			for (int k = 0; k < r.steps; k++)
				sum += r.ms[k];
			sample("dbnet chain, time", "first ADD of a node", "ms", i, sum);
			strcpy(o.verb, "DEL");
			ask(&s, &o);
			stop_side(&s);
		}
	}
}

static void bench_leases(const unsigned int *levels, unsigned int rounds)
{
	char row[64], table[64];

	snprintf(table, sizeof(table), "host-local alone, store on %s",
		store_dir ? "disk" : "tmpfs");
	for (int l = 0; l < LEVELS && (!l || levels[l]); l++) {
		struct order o = {.what = FILL, .leases = levels[l]};

		for (int i = 0; i < side_count; i++)
			if (!sides[i].floor)
				ask(&sides[i], &o);
		o.what = LEASE;
		for (unsigned int n = 0; n < rounds + 1; n++) {
			for (int v = 0; v < 3; v += 2) {
				strcpy(o.verb, verbs[v]);
				o.round = n;
				EACH(i, n)
				{
					struct reply r;

					if (sides[i].floor)
						continue;
					r = ask(&sides[i], &o);
					if (!n && v)
						continue;
					snprintf(row, sizeof(row), "%s, %u leases%s", o.verb,
						levels[l], n ? "" : ", first call");
					sample(table, row, "ms", i, r.ms[0]);
				}
			}
		}
	}
}

static void bench_start(unsigned int rounds)
{
	static const char *const programs[] = {"bridge", "host-local"};

	for (unsigned int n = 0; n < rounds; n++) {
		for (int p = 0; p < 3; p++) {
			struct order o = {.what = PROGRAM, .verb = "VERSION", .round = n};
			char row[64];

			snprintf(o.program, sizeof(o.program), "%s",
				p < 2 ? programs[p] : "/bin/true");
			snprintf(row, sizeof(row), "%.40s%s", o.program, p < 2 ? " VERSION" : "");
			EACH(i, n)
			{
				struct reply r;

				if (sides[i].floor)
					continue;
				r = ask(&sides[i], &o);
				sample("start of a process", row, "ms", i, r.ms[0]);
			}
		}
	}
}

static void memory_sample(int i, const char *verb, const struct reply *r, int programs)
{
	for (int k = 0; k < r->steps; k++) {
		char row[64];
		const char *what = programs ? "programs executed" : "peak resident memory";

		snprintf(row, sizeof(row), "%s %s", r->plugin[k], verb);
		if (programs)
			sample(what, row, "", i, r->programs[k]);
		else
			sample(what, row, "KB", i, (double)r->peak_kb[k]);
	}
}

/* Traced, not timed: the largest process of each call, and how many programs it executes. */
static void bench_memory(void)
{
	struct reply r[SIDES][8] = {0};
	struct order o = {.what = CHAIN, .round = 3, .trace = true, .bandwidth = true};
	int plan = 0;

	for (int v = 0; v < 3; v++, plan++) {
		strcpy(o.verb, verbs[v]);
		for (int i = 0; i < side_count; i++)
			if (!sides[i].floor || v != 1)
				r[i][plan] = ask(&sides[i], &o);
	}
	for (int v = 0; v < 3; v += 2, plan++) {
		o.what = LEASE;
		strcpy(o.verb, verbs[v]);
		for (int i = 0; i < side_count; i++)
			if (!sides[i].floor)
				r[i][plan] = ask(&sides[i], &o);
	}
	for (int v = 0; v < 3; v += 2, plan++) {
		o.what = PROGRAM;
		strcpy(o.verb, verbs[v]);
		strcpy(o.program, "loopback");
		for (int i = 0; i < side_count; i++)
			if (!sides[i].floor) {
				r[i][plan] = ask(&sides[i], &o);
				strcpy(r[i][plan].plugin[0], "loopback");
			}
	}
	for (int programs = 0; programs < 2; programs++)
		for (int p = 0; p < plan; p++)
			for (int i = 0; i < side_count; i++)
				memory_sample(
					i, verbs[p < 3 ? p : (p - 3) % 2 * 2], &r[i][p], programs);
}

/* Code and data as installed; the plugins of the chain, and bandwidth and loopback. */
static void bench_size(void)
{
	static const char *const names[] = {
		"bridge", "host-local", "tuning", "portmap", "bandwidth", "loopback"};

	for (int i = 0; i < side_count; i++) {
		char path[512];
		struct stat st;
		ino_t seen[6];
		double sum = 0;
		int n = 0;

		for (int k = 0; k < 6 && !sides[i].floor; k++) {
			bool again = false;

			snprintf(path, sizeof(path), "%s/%s", sides[i].path, names[k]);
			if (stat(path, &st))
				continue;
			for (int j = 0; j < n; j++)
				again |= seen[j] == st.st_ino;
			if (again)
				continue;
			seen[n++] = st.st_ino;
			sum += (double)st.st_size / 1024;
		}
		if (!sides[i].floor)
			sample("size on disk", "six plugins, stripped", "KB", i, sum);
	}
}

static void add_side(const char *arg)
{
	const char *eq = strchr(arg, '=');
	struct stat st;

	if (!eq || side_count == SIDES || stat(eq + 1, &st))
		die(arg);
	sides[side_count].name = side_names[side_count] = strndup(arg, (size_t)(eq - arg));
	sides[side_count].path = eq + 1;
	sides[side_count].floor = S_ISREG(st.st_mode);
	side_count++;
}

static bool wanted(const char *list, const char *what)
{
	return !list || strstr(list, what);
}

int main(int argc, char **argv)
{
	unsigned int rounds = 100, levels[LEVELS] = {0, 10000, 50000, 60000};
	const char *only = NULL;
	bool json = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;
		else if (i + 1 == argc)
			die(argv[i]);
		else if (!strcmp(argv[i], "--rounds"))
			rounds = (unsigned int)atoi(argv[++i]);
		else if (!strcmp(argv[i], "--store"))
			store_dir = argv[++i];
		else if (!strcmp(argv[i], "--only"))
			only = argv[++i];
		else if (!strcmp(argv[i], "--side"))
			add_side(argv[++i]);
	}
	for (int i = 0; i < side_count; i++)
		start_side(&sides[i]);
	if (wanted(only, "chain"))
		bench_chain(rounds, 0);
	if (wanted(only, "first"))
		bench_first(rounds / 10 + 1);
	if (wanted(only, "leases"))
		bench_leases(levels, rounds / 5 + 1);
	if (wanted(only, "start"))
		bench_start(rounds);
	if (wanted(only, "memory"))
		bench_memory();
	if (wanted(only, "size"))
		bench_size();
	if (wanted(only, "crowd"))
		bench_crowd(rounds / 4 + 1, 200);
	for (int i = 0; i < side_count; i++)
		stop_side(&sides[i]);
	(json ? print_json : print_tables)();
	return 0;
}
