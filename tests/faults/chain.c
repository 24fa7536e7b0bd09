#include "chain.h"

#include <jansson.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Milliseconds: more is a hang. */
static int timeout = 60000;

const char *plugin_dir;

/* ---- configs ---- */

char *format(const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	return text;
}

/* Two ranges, or one where the container is of another subnet. */
static char *ipam(const struct container *c)
{
	return format(
		"\"ipam\":{\"type\":\"host-local\",\"ranges\":[[{\"subnet\":\"10.%u.0.0/16\"}]%s],"
		"\"routes\":[{\"dst\":\"0.0.0.0/0\"}%s]}",
		c->subnet ? c->subnet : 88, c->subnet ? "" : ",[{\"subnet\":\"fd00:88::/64\"}]",
		c->subnet ? "" : ",{\"dst\":\"::/0\"}");
}

static char *bridge_own(const struct container *c)
{
	char *addresses = ipam(c), *own;

	own = format("{\"type\":\"bridge\",\"bridge\":\"%s\",\"isGateway\":true,\"ipMasq\":true,%s",
		c->bridge ? c->bridge : "cni0", addresses);
	free(addresses);
	return own;
}

static char *tuning_own(const struct container *c)
{
	(void)c;
	return format("{\"type\":\"tuning\",\"capabilities\":{\"mac\":true},"
		      "\"sysctl\":{\"net.core.somaxconn\":\"500\"}");
}

static char *tuning_capability(const struct container *c)
{
	return format("\"mac\":\"02:00:00:00:%02x:%02x\"", c->number / 256 % 256, c->number % 256);
}

static char *portmap_own(const struct container *c)
{
	(void)c;
	return format("{\"type\":\"portmap\",\"capabilities\":{\"portMappings\":true}");
}

static char *portmap_capability(const struct container *c)
{
	unsigned port = 10000 + c->number;

	return format(
		"\"portMappings\":[{\"hostPort\":%u,\"containerPort\":80,\"protocol\":\"tcp\"},"
		"{\"hostPort\":%u,\"containerPort\":53,\"protocol\":\"udp\"}]",
		port, port);
}

static char *bandwidth_own(const struct container *c)
{
	(void)c;
	return format("{\"type\":\"bandwidth\",\"capabilities\":{\"bandwidth\":true}");
}

static char *bandwidth_capability(const struct container *c)
{
	(void)c;
	return format("\"bandwidth\":{\"ingressRate\":1000000,\"ingressBurst\":2000000,"
		      "\"egressRate\":3000000,\"egressBurst\":4000000}");
}

static char *loopback_own(const struct container *c)
{
	(void)c;
	return format("{\"type\":\"loopback\"");
}

static char *ptp_own(const struct container *c)
{
	char *addresses = ipam(c), *own = format("{\"type\":\"ptp\",\"ipMasq\":true,%s", addresses);

	free(addresses);
	return own;
}

static char *dummy_own(const struct container *c)
{
	char *addresses = ipam(c), *own = format("{\"type\":\"dummy\",%s", addresses);

	free(addresses);
	return own;
}

/* It gives what it is told: to each container another address. */
static char *static_own(const struct container *c)
{
	return format("{\"type\":\"static\",\"ipam\":{\"type\":\"static\",\"addresses\":["
		      "{\"address\":\"10.89.%u.%u/16\",\"gateway\":\"10.89.255.254\"},"
		      "{\"address\":\"fd00:89::%x/64\"}],\"routes\":[{\"dst\":\"0.0.0.0/0\"}],"
		      "\"dns\":{\"nameservers\":[\"10.89.255.254\"]}}",
		c->number / 250 % 250, c->number % 250 + 1, c->number + 1);
}

static char *macvlan_own(const struct container *c)
{
	char *addresses = ipam(c),
	     *own = format("{\"type\":\"macvlan\",\"master\":\"m0\",%s", addresses);

	free(addresses);
	return own;
}

static char *ipvlan_own(const struct container *c)
{
	char *addresses = ipam(c),
	     *own = format("{\"type\":\"ipvlan\",\"master\":\"m0\",%s", addresses);

	free(addresses);
	return own;
}

/* A VLAN has room for one container. */
static char *vlan_own(const struct container *c)
{
	char *addresses = ipam(c),
	     *own = format("{\"type\":\"vlan\",\"master\":\"m0\",\"vlanId\":%u,%s",
		     c->number % 4094 + 1, addresses);

	free(addresses);
	return own;
}

static char *hostdev_own(const struct container *c)
{
	char *addresses = ipam(c),
	     *own = format("{\"type\":\"host-device\",\"device\":\"d%u\",%s", c->number, addresses);

	free(addresses);
	return own;
}

static char *tap_own(const struct container *c)
{
	char *addresses = ipam(c), *own = format("{\"type\":\"tap\",\"mtu\":1400,%s", addresses);

	free(addresses);
	return own;
}

const struct plugin plugins[PLUGINS] = {
	{"bridge", NULL, "eth0", .first = true, .result = true, .gc = true, .links = true,
		.remains = true, .own = bridge_own},
	{"tuning", NULL, "eth0", .result = true, .gc = true, .own = tuning_own,
		.capability = tuning_capability},
	{"portmap", NULL, "eth0", .result = true, .gc = true, .own = portmap_own,
		.capability = portmap_capability},
	{"bandwidth", NULL, "eth0", .result = true, .gc = true, .own = bandwidth_own,
		.capability = bandwidth_capability},
	{"loopback", "lo", "lo", .first = true, .own = loopback_own},
	{"ptp", "ptpnet", "eth0", .first = true, .result = true, .gc = true, .links = true,
		.own = ptp_own},
	{"dummy", "dummynet", "eth0", .kind = "dummy", .first = true, .result = true, .gc = true,
		.links = true, .own = dummy_own},
	{"static", "staticnet", "eth0", .first = true, .result = true, .gc = true,
		.own = static_own},
	{"macvlan", "macvlannet", "eth0", .kind = "macvlan", .master = true, .first = true,
		.result = true, .gc = true, .links = true, .own = macvlan_own},
	{"ipvlan", "ipvlannet", "eth0", .kind = "ipvlan", .master = true, .first = true,
		.result = true, .gc = true, .links = true, .own = ipvlan_own},
	{"vlan", "vlannet", "eth0", .kind = "vlan id 5", .master = true, .first = true,
		.result = true, .gc = true, .links = true, .own = vlan_own},
	{"host-device", "devnet", "eth0", .devices = true, .first = true, .result = true,
		.gc = true, .links = true, .own = hostdev_own},
	{"tap", "tapnet", "eth0", .first = true, .result = true, .links = true, .own = tap_own},
	{"cnitool", NULL, "eth0", .result = true, .gc = true, .links = true, .remains = true},
};

static char *capability(int plugin, const struct container *c)
{
	return plugins[plugin].capability ? plugins[plugin].capability(c) : NULL;
}

static const char *network(int plugin, const struct container *c)
{
	return plugins[plugin].network ? plugins[plugin].network : c->net ? c->net : "dbnet";
}

static char *config(const char *verb, int plugin, const struct container *c, const char *valid)
{
	char *own = plugins[plugin].own(c), *cap = capability(plugin, c), *text = NULL;
	bool gc = !strcmp(verb, "GC"), add = !strcmp(verb, "ADD");
	bool prev = c->result && !gc && plugins[plugin].result && (!add || !plugins[plugin].first);
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fprintf(f, "%s,\"name\":\"%s\",\"cniVersion\":\"%s\"", own, network(plugin, c),
		c->version ? c->version : "1.1.0");
	if (cap && !gc)
		fprintf(f, ",\"runtimeConfig\":{%s}", cap);
	if (prev)
		fprintf(f, ",\"prevResult\":%s", c->result);
	if (gc)
		fprintf(f, ",\"cni.dev/valid-attachments\":%s,\"cni.dev/attachments\":%s",
			valid ? valid : "[]", valid ? valid : "[]");
	fputc('}', f);
	fclose(f);
	free(own);
	free(cap);
	return text;
}

void write_conflist(const struct container *c)
{
	char *path = format("/etc/cni/net.d/%s.conflist", network(BRIDGE, c));
	FILE *f = fopen(path, "w");

	fprintf(f, "{\"cniVersion\":\"%s\",\"name\":\"%s\",\"plugins\":[",
		c->version ? c->version : "1.1.0", network(BRIDGE, c));
	for (int p = 0; p < CHAIN; p++) {
		char *own = plugins[p].own(c);

		fprintf(f, "%s%s}", p ? "," : "", own);
		free(own);
	}
	fputs("]}\n", f);
	fclose(f);
	free(path);
}

/* ---- calls ---- */

static void call_plugin(const char *verb, int plugin, const struct container *c, const char *valid,
	const struct injection *inj, struct ran *r)
{
	bool attachment = strcmp(verb, "GC") != 0 && strcmp(verb, "STATUS") != 0;
	char *text = config(verb, plugin, c, valid);
	char *file = format("%s/%s", plugin_dir, plugins[plugin].type);
	char *env[] = {
		format("CNI_COMMAND=%s", verb),
		format("CNI_CONTAINERID=%s", attachment ? c->name : ""),
		format("CNI_NETNS=%s%s", attachment ? "/run/netns/" : "",
			attachment ? c->name : ""),
		format("CNI_IFNAME=%s", attachment ? plugins[plugin].ifname : ""),
		format("CNI_PATH=%s", plugin_dir),
		format("CNI_ARGS="),
		format("PATH=%s", getenv("PATH")),
		NULL,
	};
	char *argv[] = {file, NULL};

	run_program(argv, env, text, strlen(text), inj, timeout, r);
	for (int i = 0; env[i]; i++)
		free(env[i]);
	free(file);
	free(text);
}

static void call_tool(
	const char *verb, const struct container *c, const struct injection *inj, struct ran *r)
{
	char *caps[CHAIN] = {NULL};
	bool gc = !strcmp(verb, "gc");
	char *file = format("%s/cnitool", plugin_dir), *netns = format("/run/netns/%s", c->name);
	char *argv[] = {file, (char *)verb, (char *)network(BRIDGE, c), netns, NULL, NULL};
	char *env[4] = {format("CNI_PATH=%s", plugin_dir), format("PATH=%s", getenv("PATH"))};

	for (int p = TUNING; p < CHAIN; p++)
		caps[p] = capability(p, c);
	env[2] = format("CAP_ARGS={%s,%s,%s}", caps[TUNING], caps[PORTMAP], caps[BANDWIDTH]);
	if (gc) {
		argv[1] = "gc";
		argv[3] = "--all";
	}
	run_program(argv, env, "", 0, inj, timeout, r);
	for (int p = 0; p < CHAIN; p++)
		free(caps[p]);
	for (int i = 0; env[i]; i++)
		free(env[i]);
	free(file);
	free(netns);
}

void call(const char *verb, int plugin, const struct container *c, const char *valid,
	const struct injection *inj, struct ran *r)
{
	if (plugin == CNITOOL)
		call_tool(verb, c, inj, r);
	else
		call_plugin(verb, plugin, c, valid, inj, r);
}

void call_for(const char *verb, int plugin, const struct container *c, int ms, struct ran *r)
{
	int was = timeout;

	timeout = ms;
	call(verb, plugin, c, NULL, NULL, r);
	timeout = was;
}

void keep_result(struct container *c, const char *text)
{
	free(c->result);
	c->result = text ? strdup(text) : NULL;
}

/* ---- what it said ---- */

static const char *error_object(const struct ran *r, int *code)
{
	json_error_t why;
	json_t *doc = json_loads(r->out, JSON_REJECT_DUPLICATES, &why);
	const char *msg = json_string_value(json_object_get(doc, "msg")), *wrong = NULL;
	json_t *number = json_object_get(doc, "code");

	if (!doc)
		wrong = "exit 1 without one JSON document";
	else if (!json_is_integer(number) || !json_integer_value(number) || !msg || !*msg)
		wrong = "exit 1 without code and msg";
	else
		*code = (int)json_integer_value(number);
	json_decref(doc);
	return wrong;
}

const char *verdict(const struct ran *r, int *code)
{
	*code = 0;
	if (r->timed_out)
		return "hangs";
	if (!WIFEXITED(r->status))
		return "ended by a signal";
	if (WEXITSTATUS(r->status) == 1)
		return error_object(r, code);
	return WEXITSTATUS(r->status) ? "exit status neither 0 nor 1" : NULL;
}

static bool failed(
	const char *verb, int plugin, const struct container *c, const struct ran *r, char **what)
{
	*what = format("%s %s %s: status %#x%s: %s%s", verb, plugins[plugin].type, c->name,
		(unsigned)r->status, r->timed_out ? ", hangs" : "", r->out, r->err);
	return false;
}

bool must(const char *verb, int plugin, struct container *c, const char *valid, char **what)
{
	bool add = !strcmp(verb, "ADD") || !strcmp(verb, "add"), ok;
	struct ran r;

	call(verb, plugin, c, valid, NULL, &r);
	ok = !r.status && (add ? r.out_len > 0 : !r.out_len);
	if (!ok)
		failed(verb, plugin, c, &r, what);
	else if (add && plugins[plugin].result)
		keep_result(c, r.out);
	ran_free(&r);
	return ok;
}

bool chain_add(struct container *c, int plugins, char **what)
{
	keep_result(c, NULL);
	for (int p = 0; p < plugins; p++)
		if (!must("ADD", p, c, NULL, what))
			return false;
	return true;
}

bool chain_check(struct container *c, int plugins, char **what)
{
	for (int p = 0; p < plugins; p++)
		if (!must("CHECK", p, c, NULL, what))
			return false;
	return true;
}

bool chain_del(struct container *c, int plugins, char **what)
{
	for (int p = plugins; p-- > 0;)
		if (!must("DEL", p, c, NULL, what))
			return false;
	keep_result(c, NULL);
	return true;
}

bool chain_gc(const struct container *c, int plugins, const char *valid, char **what)
{
	for (int p = 0; p < plugins; p++)
		if (!must("GC", p, (struct container *)c, valid, what))
			return false;
	return true;
}
