#include "runtime/inventory.h"

#include <string.h>

static const char *text_of(const json *node, const char *key)
{
	const char *s = json_str(json_get(node, key));

	return s ? s : "";
}

/* "tcp *:8080 to 10.1.0.2:80" */
static void port_text(struct buf *out, const json *port)
{
	const char *host = text_of(port, "hostIP"), *addr = text_of(port, "containerIP");

	buf_printf(out, "%s %s:%lld to %s%s%s:%lld", text_of(port, "protocol"), *host ? host : "*",
		(long long)json_int(json_get(port, "hostPort")), strchr(addr, ':') ? "[" : "", addr,
		strchr(addr, ':') ? "]" : "", (long long)json_int(json_get(port, "containerPort")));
}

/* ---- the tree ---- */

/* "├─ " for all but the last of a list, and what goes in front of the lines below it. */
static const char *branch(bool last)
{
	return last ? "└─ " : "├─ ";
}

static const char *trunk(bool last)
{
	return last ? "   " : "│  ";
}

static void tree_line(struct buf *out, bool last, const char *label, const char *value)
{
	if (*value)
		buf_printf(out, "%s   %-10s %s\n", trunk(last), label, value);
}

static void tree_list(struct buf *out, bool last, const char *label, const json *list)
{
	for (size_t i = 0; i < json_len(list); i++)
		tree_line(out, last, i ? "" : label, json_str(json_at(list, i)));
}

static void tree_attachment(struct buf *out, const json *a, bool last)
{
	const char *state = text_of(a, "state"), *master = text_of(a, "master");
	const json *ports = json_get(a, "ports");

	buf_printf(out, "%s%s %s%s%s%s\n", branch(last), text_of(a, "containerID"),
		text_of(a, "ifname"), strcmp(state, "attached") != 0 ? "  [" : "",
		strcmp(state, "attached") != 0 ? state : "",
		strcmp(state, "attached") != 0 ? "]" : "");
	tree_line(out, last, "netns", text_of(a, "netns"));
	tree_list(out, last, "address", json_get(a, "addresses"));
	if (*text_of(a, "link"))
		buf_printf(out, "%s   %-10s %s%s%s\n", trunk(last), "link", text_of(a, "link"),
			*master ? " on " : "", master);
	tree_line(out, last, "ifb", text_of(a, "ifb"));
	for (size_t i = 0; i < json_len(ports); i++) {
		buf_printf(out, "%s   %-10s ", trunk(last), i ? "" : "host port");
		port_text(out, json_at(ports, i));
		buf_puts(out, "\n");
	}
}

static void tree_network(struct buf *out, const json *n)
{
	const json *plugins = json_get(n, "plugins"), *leases = json_get(n, "leases");
	const json *list = json_get(n, "attachments");

	buf_printf(out, "%s", text_of(n, "name"));
	for (size_t i = 0; i < json_len(plugins); i++)
		buf_printf(out, "%s%s", i ? ", " : "  (", json_str(json_at(plugins, i)));
	if (json_len(plugins))
		buf_puts(out, ")");
	buf_printf(out, "  %s\n",
		*text_of(n, "file") ? text_of(n, "file") : "[no configuration; in the cache only]");
	if (leases)
		buf_printf(out, "%s  leases: %lld used, %lld free in %s\n",
			json_len(list) ? "│" : " ", (long long)json_int(json_get(leases, "used")),
			(long long)json_int(json_get(leases, "free")), text_of(leases, "dir"));
	for (size_t i = 0; i < json_len(list); i++)
		tree_attachment(out, json_at(list, i), i + 1 == json_len(list));
}

void inventory_tree(const json *inv, struct buf *out)
{
	const json *networks = json_get(inv, "networks"), *unowned = json_get(inv, "unowned");

	if (!json_len(networks) && !json_len(unowned))
		buf_puts(out, "no networks\n");
	for (size_t i = 0; i < json_len(networks); i++) {
		if (i)
			buf_puts(out, "\n");
		tree_network(out, json_at(networks, i));
	}
	if (!json_len(unowned))
		return;
	buf_printf(out, "%sbelongs to no attachment\n", json_len(networks) ? "\n" : "");
	for (size_t i = 0; i < json_len(unowned); i++) {
		const json *u = json_at(unowned, i);

		buf_printf(out, "%s%s %s  (%s)\n", branch(i + 1 == json_len(unowned)),
			text_of(u, "kind"), text_of(u, "name"), text_of(u, "owner"));
	}
}

/* ---- the graph ---- */

static void dot_quote(struct buf *out, const char *text)
{
	buf_puts(out, "\"");
	for (const char *s = text; *s; s++) {
		if (*s == '"' || *s == '\\')
			buf_puts(out, "\\");
		buf_put(out, s, 1);
	}
	buf_puts(out, "\"");
}

static void dot_edge(struct buf *out, const char *from, const char *to, const char *label)
{
	buf_puts(out, "  ");
	dot_quote(out, from);
	buf_puts(out, " -- ");
	dot_quote(out, to);
	buf_puts(out, " [label=");
	dot_quote(out, label);
	buf_puts(out, "];\n");
}

static void dot_attachment(struct buf *out, const json *network, const json *a)
{
	const json *addresses = json_get(a, "addresses"), *ports = json_get(a, "ports");
	const char *master = text_of(a, "master");
	struct buf label = {0};

	buf_printf(&label, "%s\n%s", text_of(a, "containerID"), text_of(a, "netns"));
	dot_edge(out, *master ? master : text_of(network, "name"), label.data ? label.data : "",
		text_of(a, "link"));
	buf_puts(out, "  ");
	dot_quote(out, label.data ? label.data : "");
	buf_printf(out, " [shape=box, xlabel=\"%s", text_of(a, "ifname"));
	for (size_t i = 0; i < json_len(addresses); i++)
		buf_printf(out, "\\n%s", json_str(json_at(addresses, i)));
	buf_puts(out, "\"];\n");
	for (size_t i = 0; i < json_len(ports); i++) {
		struct buf text = {0};

		port_text(&text, json_at(ports, i));
		dot_edge(out, "host", label.data ? label.data : "", text.data ? text.data : "");
		buf_free(&text);
	}
	if (*master)
		dot_edge(out, text_of(network, "name"), master, "");
	buf_free(&label);
}

void inventory_dot(const json *inv, struct buf *out)
{
	const json *networks = json_get(inv, "networks"), *unowned = json_get(inv, "unowned");

	buf_puts(out, "strict graph cni {\n  rankdir=LR;\n  node [shape=ellipse];\n");
	for (size_t i = 0; i < json_len(networks); i++) {
		const json *n = json_at(networks, i), *list = json_get(n, "attachments");

		buf_puts(out, "  ");
		dot_quote(out, text_of(n, "name"));
		buf_puts(out, " [shape=diamond];\n");
		for (size_t k = 0; k < json_len(list); k++)
			dot_attachment(out, n, json_at(list, k));
	}
	for (size_t i = 0; i < json_len(unowned); i++) {
		buf_puts(out, "  ");
		dot_quote(out, text_of(json_at(unowned, i), "name"));
		buf_puts(out, " [shape=box, style=dashed, color=red, xlabel=");
		dot_quote(out, text_of(json_at(unowned, i), "owner"));
		buf_puts(out, "];\n");
	}
	buf_puts(out, "}\n");
}
