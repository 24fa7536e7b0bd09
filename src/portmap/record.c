#include "portmap/record.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vec.h"

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

void record_init(struct port_record *m, const struct owner *o)
{
	*m = (struct port_record){.nsid = -1};
	memcpy(m->hash, o->hash, sizeof(m->hash));
	owner_comment(o, m->owner, sizeof(m->owner));
	/* Too long a name is for people only; losing its end is fine. */
	if (snprintf(m->name, sizeof(m->name), "%s %s %s", o->network, o->id, o->ifname) < 0)
		m->name[0] = '\0';
}

void record_free(struct port_record *m)
{
	free(m->list);
	free(m->heirs);
	*m = (struct port_record){.nsid = -1};
}

int record_add(struct port_record *m, const struct port_mapping *p)
{
	struct port_mapping *last = vec_add(m->list, m->len);

	if (last)
		*last = *p;
	return last ? 0 : -1;
}

int record_add_heir(struct port_record *m, const char *hash)
{
	char(*last)[OWNER_HASH + 1];

	for (size_t i = 0; i < m->heirs_len; i++)
		if (!strcmp(m->heirs[i], hash))
			return 0;
	last = vec_add(m->heirs, m->heirs_len);
	if (!last)
		return -1;
	snprintf(*last, sizeof(*last), "%s", hash);
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

int record_sort(struct port_record *m, struct err *e)
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

bool record_maps(const struct port_record *m, uint8_t family)
{
	for (size_t i = 0; i < m->len; i++)
		if (!m->list[i].yielded && (!family || m->list[i].addr.family == family))
			return true;
	return false;
}

bool record_same_claim(const struct port_mapping *a, const struct port_mapping *b)
{
	return !by_arrival(a, b);
}

const char *record_when(const struct port_record *m, const struct port_mapping *p)
{
	return m->when[p->addr.family == AF_INET6];
}

/* ---- writing ---- */

struct lines {
	record_line *text;
	size_t len;
	bool failed;
};

/* A further line; a line that nobody reads once memory is short. */
static char *next_line(struct lines *l)
{
	static record_line nowhere;
	record_line *line = l->failed ? NULL : vec_add(l->text, l->len);

	l->failed = !line;
	return line ? *line : nowhere;
}

static bool same_group(const struct port_mapping *a, const struct port_mapping *b)
{
	return a->proto == b->proto && a->yielded == b->yielded && !ip_cmp(&a->host, &b->host) &&
	       !ip_cmp(&a->addr, &b->addr);
}

/* As many ports to a line as fit. */
static void put_maps(struct lines *l, const struct port_record *m)
{
	char host[IP_STRLEN], addr[IP_STRLEN], pair[16];
	char *line = NULL;
	size_t used = 0;

	for (size_t i = 0; i < m->len; i++) {
		const struct port_mapping *p = &m->list[i];
		size_t len = (size_t)snprintf(pair, sizeof(pair), " %u>%u", p->host_port, p->port);

		if (!line || !same_group(p - 1, p) || used + len >= NFT_COMMENT_SIZE) {
			line = next_line(l);
			used = (size_t)snprintf(line, NFT_COMMENT_SIZE, "%s %s %s %s",
				p->yielded ? "yield" : "map", portproto_name(p->proto),
				ip_format(&p->host, host), ip_format(&p->addr, addr));
		}
		memcpy(line + used, pair, len + 1);
		used += len;
	}
}

static void put_info(const struct port_record *m, char line[static NFT_COMMENT_SIZE])
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

/* The sandbox, and what else tells whether it lives. */
static void put_sandbox(struct lines *l, const struct port_record *m)
{
	char link[24] = "", nsid[24] = "";

	/* A path that does not fit whole is worth nothing. */
	if (m->netns[0] && snprintf(next_line(l), NFT_COMMENT_SIZE, "netns %" PRIu64 " %s",
				   m->netns_inode, m->netns) >= NFT_COMMENT_SIZE)
		l->len -= !l->failed;
	if (m->link)
		snprintf(link, sizeof(link), " link=%" PRIu32, m->link);
	if (m->nsid >= 0)
		snprintf(nsid, sizeof(nsid), " nsid=%" PRId32, m->nsid);
	if (m->link || m->nsid >= 0 || m->via[0])
		snprintf(next_line(l), NFT_COMMENT_SIZE, "seen%s%s%s%s", link, nsid,
			m->via[0] ? " via=" : "", m->via);
}

/* Three hashes to a line. */
static void put_heirs(struct lines *l, const struct port_record *m)
{
	for (size_t i = 0; i < m->heirs_len; i += 3)
		snprintf(next_line(l), NFT_COMMENT_SIZE, "heir %s %s %s", m->heirs[i],
			i + 1 < m->heirs_len ? m->heirs[i + 1] : "",
			i + 2 < m->heirs_len ? m->heirs[i + 2] : "");
}

record_line *record_text(struct port_record *m)
{
	struct lines l = {0};
	size_t size = strlen(m->name);
	bool cut =
		strlen(m->owner) < size || strcmp(m->owner + strlen(m->owner) - size, m->name) != 0;

	memcpy(next_line(&l), m->owner, sizeof(m->owner));
	next_line(&l);
	/* Longer than the line, names lose their end, which is for people only. */
	if (cut && snprintf(next_line(&l), NFT_COMMENT_SIZE, "name %s", m->name) < 0)
		l.failed = true;
	put_sandbox(&l, m);
	if (m->pod[0] && snprintf(next_line(&l), NFT_COMMENT_SIZE, "pod %s", m->pod) < 0)
		l.failed = true;
	if (m->when[0][0] || m->when[1][0])
		snprintf(next_line(&l), NFT_COMMENT_SIZE, "when 4=%s 6=%s", m->when[0], m->when[1]);
	put_heirs(&l, m);
	put_maps(&l, m);
	if (l.failed) {
		free(l.text);
		return NULL;
	}
	m->records = l.len;
	put_info(m, l.text[1]);
	return l.text;
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

static int read_map(struct port_record *m, char *text, bool yielded)
{
	char *save = NULL, *word[3];
	struct port_mapping p = {.yielded = yielded};
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
			take_port(end + 1, &end, &p.port) && record_add(m, &p))
			return -ENOMEM;
	return 0;
}

static void read_info(struct port_record *m, char *text)
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

static void read_netns(struct port_record *m, const char *text)
{
	char *end;
	uint64_t inode = strtoull(text, &end, 10);

	if (*end != ' ' || end[1] != '/' || strlen(end + 1) >= sizeof(m->netns))
		return;
	strcpy(m->netns, end + 1);
	m->netns_inode = inode;
}

/* The value of "key=value"; NULL when the word is something else. */
static const char *value_of(const char *word, const char *key)
{
	size_t len = strlen(key);

	return !strncmp(word, key, len) && word[len] == '=' ? word + len + 1 : NULL;
}

static void read_seen(struct port_record *m, char *text)
{
	char *save = NULL;

	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		const char *link = value_of(word, "link"), *nsid = value_of(word, "nsid"),
			   *via = value_of(word, "via");

		if (link)
			m->link = (uint32_t)strtoul(link, NULL, 10);
		if (nsid && *nsid >= '0' && *nsid <= '9')
			m->nsid = (int32_t)strtol(nsid, NULL, 10);
		if (via && strlen(via) < sizeof(m->via))
			strcpy(m->via, via);
	}
}

static void read_when(struct port_record *m, char *text)
{
	char *save = NULL;

	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		for (size_t i = 0; i < array_len(m->when); i++) {
			const char *when = value_of(word, i ? "6" : "4");

			if (when && strlen(when) == PORT_CONDITIONS)
				strcpy(m->when[i], when);
		}
}

static int read_heirs(struct port_record *m, char *text)
{
	char *save = NULL;

	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (strlen(word) == OWNER_HASH && record_add_heir(m, word))
			return -ENOMEM;
	return 0;
}

/* The rest of a line that starts with this word; NULL for another. */
static char *rest_of(char *line, const char *word)
{
	size_t len = strlen(word);

	return !strncmp(line, word, len) && line[len] == ' ' ? line + len + 1 : NULL;
}

int record_read(struct port_record *m, const char *line)
{
	char text[NFT_COMMENT_SIZE], *rest;
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
	} else if ((rest = rest_of(text, "name"))) {
		strcpy(m->name, rest);
	} else if ((rest = rest_of(text, "netns"))) {
		read_netns(m, rest);
	} else if ((rest = rest_of(text, "seen"))) {
		read_seen(m, rest);
	} else if ((rest = rest_of(text, "pod"))) {
		strcpy(m->pod, rest);
	} else if ((rest = rest_of(text, "when"))) {
		read_when(m, rest);
	} else if ((rest = rest_of(text, "heir"))) {
		return read_heirs(m, rest);
	} else if ((rest = rest_of(text, "map"))) {
		return read_map(m, rest, false);
	} else if ((rest = rest_of(text, "yield"))) {
		return read_map(m, rest, true);
	}
	return 0;
}

bool record_of_container(const struct port_record *m, const char *id)
{
	const char *at = strchr(m->name, ' ');
	size_t len = strlen(id);

	return at && !strncmp(at + 1, id, len) && (at[1 + len] == ' ' || !at[1 + len]);
}

void record_set_pod(struct port_record *m, const char *space, const char *name)
{
	char hash[OWNER_HASH + 1];

	hash_hex(hash, OWNER_HASH, space, "/", name, NULL);
	/* Four bytes less than a line, for the word in front. */
	snprintf(m->pod, sizeof(m->pod) - 4, "%s %s/%s", hash, space, name);
}

bool record_same_pod(const struct port_record *a, const struct port_record *b)
{
	return a->pod[0] && strlen(b->pod) > OWNER_HASH && !strncmp(a->pod, b->pod, OWNER_HASH + 1);
}
