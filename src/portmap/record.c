#include "portmap/record.h"

#include "base/cleanup.h"
#include "netlink/netns.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
	uint8_t proto;
	const char *name;
} protos[] = {
	{IPPROTO_TCP, "tcp"},
	{IPPROTO_UDP, "udp"},
	{IPPROTO_SCTP, "sctp"},
};

const char *portproto_name(uint8_t proto)
{
	for (size_t i = 0; i < array_len(protos); i++)
		if (protos[i].proto == proto)
			return protos[i].name;
	return "?";
}

uint8_t portproto_parse(const char *name)
{
	for (size_t i = 0; i < array_len(protos); i++)
		if (!strcasecmp(protos[i].name, name))
			return protos[i].proto;
	return 0;
}

void portmaps_init(struct portmaps *m, const struct owner *o)
{
	*m = (struct portmaps){0};
	memcpy(m->hash, o->hash, sizeof(m->hash));
	owner_comment(o, m->owner, sizeof(m->owner));
	/* Too long a name is for people only; losing its end is fine. */
	if (snprintf(m->name, sizeof(m->name), "%s %s %s", o->network, o->id, o->ifname) < 0)
		m->name[0] = '\0';
}

void portmaps_free(struct portmaps *m)
{
	free(m->list);
	*m = (struct portmaps){0};
}

int portmaps_add(struct portmaps *m, const struct port_mapping *p)
{
	if (m->len == m->cap) {
		size_t cap = m->cap ? m->cap * 2 : 8;
		struct port_mapping *list = reallocarray(m->list, cap, sizeof(*list));

		if (!list)
			return -1;
		m->list = list;
		m->cap = cap;
	}
	m->list[m->len++] = *p;
	return 0;
}

static int by_arrival(const void *x, const void *y)
{
	const struct port_mapping *a = x, *b = y;
	int c = ip_cmp(&a->host, &b->host);

	if (!c)
		c = a->proto - b->proto;
	return c ? c : a->host_port - b->host_port;
}

int portmaps_sort(struct portmaps *m, struct err *e)
{
	char host[IP_STRLEN];
	size_t kept = 0;

	if (m->len)
		qsort(m->list, m->len, sizeof(*m->list), by_arrival);
	for (size_t i = 0; i < m->len; i++) {
		const struct port_mapping *p = &m->list[i],
					  *last = kept ? &m->list[kept - 1] : NULL;

		if (!last || by_arrival(last, p)) {
			m->list[kept++] = *p;
			continue;
		}
		if (last->port != p->port || ip_cmp(&last->addr, &p->addr))
			return err_set(e, ERR_INVALID_CONFIG,
				"host port %u/%s of %s is mapped twice, to container ports %u and %u",
				p->host_port, portproto_name(p->proto), ip_format(&p->host, host),
				last->port, p->port);
	}
	m->len = kept;
	return 0;
}

/* ---- writing ---- */

struct lines {
	portmaps_text *text;
	size_t len;
	size_t cap;
};

static char *next_line(struct lines *l)
{
	if (l->len == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 8;
		portmaps_text *text = reallocarray(l->text, cap, sizeof(*text));

		if (!text)
			return NULL;
		l->text = text;
		l->cap = cap;
	}
	l->text[l->len][0] = '\0';
	return l->text[l->len++];
}

static bool same_group(const struct port_mapping *a, const struct port_mapping *b)
{
	return a->proto == b->proto && !ip_cmp(&a->host, &b->host) && !ip_cmp(&a->addr, &b->addr);
}

/* As many ports to a line as fit. */
static bool put_maps(struct lines *l, const struct portmaps *m)
{
	char host[IP_STRLEN], addr[IP_STRLEN], pair[16];
	char *line = NULL;
	size_t used = 0;

	for (size_t i = 0; i < m->len; i++) {
		const struct port_mapping *p = &m->list[i];
		size_t len = (size_t)snprintf(pair, sizeof(pair), " %u>%u", p->host_port, p->port);

		if (!line || !same_group(p - 1, p) || used + len >= NFT_COMMENT_SIZE) {
			line = next_line(l);
			if (!line)
				return false;
			used = (size_t)snprintf(line, NFT_COMMENT_SIZE, "map %s %s %s",
				portproto_name(p->proto), ip_format(&p->host, host),
				ip_format(&p->addr, addr));
		}
		memcpy(line + used, pair, len + 1);
		used += len;
	}
	return true;
}

static void put_info(const struct portmaps *m, char line[static NFT_COMMENT_SIZE])
{
	char prefix[PREFIX_STRLEN], from[PORT_SOURCES * PREFIX_STRLEN] = "";
	size_t used = 0;

	for (size_t i = 0; i < m->from_len; i++)
		used += (size_t)snprintf(from + used, sizeof(from) - used, "%s%s",
			i ? "," : " from=", prefix_format(&m->from[i], prefix));
	/* With the longest of everything this is 123 bytes. */
	if (snprintf(line, NFT_COMMENT_SIZE, "records=%zu%s%s%s%s%s%s", m->records,
		    m->dev[0] ? " dev=" : "", m->dev, m->gates[0] || m->gates[1] ? " gates=" : "",
		    m->gates[0] ? "4" : "", m->gates[1] ? "6" : "", from) >= NFT_COMMENT_SIZE)
		line[NFT_COMMENT_MAX] = '\0';
}

portmaps_text *portmaps_record(struct portmaps *m)
{
	struct lines l = {0};
	size_t size = strlen(m->name);
	bool cut =
		strlen(m->owner) < size || strcmp(m->owner + strlen(m->owner) - size, m->name) != 0;
	char *line = next_line(&l);

	if (line)
		memcpy(line, m->owner, sizeof(m->owner));
	if (!line || !next_line(&l))
		goto fail;
	if (cut) {
		line = next_line(&l);
		if (!line)
			goto fail;
		if (snprintf(line, NFT_COMMENT_SIZE, "name %s", m->name) < 0)
			line[0] = '\0';
	}
	/* A path that does not fit whole is worth nothing. */
	if (m->netns[0]) {
		line = next_line(&l);
		if (!line)
			goto fail;
		if (snprintf(line, NFT_COMMENT_SIZE, "netns %" PRIu64 " %s", m->netns_inode,
			    m->netns) >= NFT_COMMENT_SIZE)
			l.len--;
	}
	if (!put_maps(&l, m))
		goto fail;
	m->records = l.len;
	put_info(m, l.text[1]);
	return l.text;
fail:
	free(l.text);
	return NULL;
}

/* ---- reading ---- */

static bool take_port(const char *text, const char **end, uint16_t *port)
{
	char *stop;
	unsigned long v;

	if (*text < '0' || *text > '9')
		return false;
	v = strtoul(text, &stop, 10);
	*end = stop;
	*port = (uint16_t)v;
	return v >= 1 && v <= UINT16_MAX;
}

static int read_map(struct portmaps *m, char *text)
{
	char *save = NULL, *word[3];
	struct port_mapping p = {0};
	const char *end;

	for (size_t i = 0; i < array_len(word); i++) {
		word[i] = strtok_r(i ? NULL : text, " ", &save);
		if (!word[i])
			return 0;
	}
	p.proto = portproto_parse(word[0]);
	if (!p.proto || !ip_parse(word[1], &p.host) || !ip_parse(word[2], &p.addr) ||
		p.host.family != p.addr.family)
		return 0;
	for (char *pair; (pair = strtok_r(NULL, " ", &save));)
		if (take_port(pair, &end, &p.host_port) && *end == '>' &&
			take_port(end + 1, &end, &p.port) && portmaps_add(m, &p))
			return -ENOMEM;
	return 0;
}

static void read_info(struct portmaps *m, char *text)
{
	char *save = NULL, *list = NULL;

	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (!strncmp(word, "records=", 8)) {
			m->records = strtoul(word + 8, NULL, 10);
		} else if (!strncmp(word, "dev=", 4) && strlen(word + 4) < sizeof(m->dev)) {
			strcpy(m->dev, word + 4);
		} else if (!strncmp(word, "gates=", 6)) {
			m->gates[0] = strchr(word + 6, '4');
			m->gates[1] = strchr(word + 6, '6');
		} else if (!strncmp(word, "from=", 5)) {
			list = word + 5;
		}
	}
	if (m->records > UINT16_MAX)
		m->records = UINT16_MAX;
	for (char *p = list ? strtok_r(list, ",", &save) : NULL; p; p = strtok_r(NULL, ",", &save))
		if (m->from_len < PORT_SOURCES && prefix_parse(p, &m->from[m->from_len]))
			m->from_len++;
}

static void read_netns(struct portmaps *m, const char *text)
{
	char *end;
	uint64_t inode = strtoull(text, &end, 10);

	if (*end != ' ' || end[1] != '/' || strlen(end + 1) >= sizeof(m->netns))
		return;
	strcpy(m->netns, end + 1);
	m->netns_inode = inode;
}

int portmaps_read(struct portmaps *m, const char *line)
{
	char text[NFT_COMMENT_SIZE];
	struct owner_ref ref;

	if (strlen(line) >= sizeof(text))
		return 0;
	strcpy(text, line);
	if (owner_parse(line, &ref)) {
		memcpy(m->owner, text, sizeof(text));
		if (!m->name[0])
			strcpy(m->name, ref.text);
	} else if (!strncmp(line, "records=", 8)) {
		read_info(m, text);
	} else if (!strncmp(line, "name ", 5)) {
		strcpy(m->name, line + 5);
	} else if (!strncmp(line, "netns ", 6)) {
		read_netns(m, line + 6);
	} else if (!strncmp(line, "map ", 4)) {
		return read_map(m, text + 4);
	}
	return 0;
}

bool portmaps_dead(const struct portmaps *m)
{
	return m->netns[0] && netns_is_another(m->netns, m->netns_inode);
}

bool portmaps_of_container(const struct portmaps *m, const char *id)
{
	const char *at = strchr(m->name, ' ');
	size_t len = strlen(id);

	return at && !strncmp(at + 1, id, len) && (at[1 + len] == ' ' || !at[1 + len]);
}
