#include "tuning/backup.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mac.h"
#include "netlink/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* A whole one has 200 bytes and the network's name. */
#define BACKUP_MAX 65536

void backup_free(struct backup *b)
{
	free(b->text);
	json_free(b->doc);
	*b = (struct backup){0};
}

int backup_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

char *backup_name(const char *id, const char *ifname)
{
	char *name = NULL;

	return asprintf(&name, "%s_%s.json", id, ifname) < 0 ? NULL : name;
}

bool backup_is_name(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && name[0] != '.' && !strcmp(name + len - 5, ".json");
}

/* A value of another type or out of its bounds counts as absent: the others are worth restoring. */
static bool read_u32(const json *doc, const char *key, uint32_t *out)
{
	int64_t value = -1;
	autoerr ignored = {0};

	if (json_get_int(doc, key, 0, UINT32_MAX, &value, &ignored) || value < 0)
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool read_flag(const json *doc, const char *key, bool *out)
{
	const json *value = json_get(doc, key);

	if (!json_is_bool(value))
		return false;
	*out = json_bool(value);
	return true;
}

static void read_link(const json *doc, struct linkstate *l)
{
	const char *mac = json_str(json_get(doc, "mac"));

	l->has_mac = mac && mac_parse(mac, l->mac);
	l->has_promisc = read_flag(doc, "promisc", &l->promisc);
	l->has_mtu = read_u32(doc, "mtu", &l->mtu) && l->mtu;
	l->has_allmulti = read_flag(doc, "allmulti", &l->allmulti);
	l->has_txqlen = read_u32(doc, "txQLen", &l->txqlen);
}

int backup_read(int dir, const char *name, struct backup *b)
{
	autoerr ignored = {0};
	int ret;

	*b = (struct backup){0};
	ret = file_read(dir, name, BACKUP_MAX, &b->text, &b->len);
	if (ret)
		return ret == -EFBIG || ret == -EINVAL ? -EBADMSG : ret;
	b->doc = json_parse(b->text, b->len, ERR_DECODE, &ignored);
	if (!json_is_object(b->doc))
		return -EBADMSG;
	read_link(b->doc, &b->link);
	b->network = json_str(json_get(b->doc, "network"));
	json_get_int(b->doc, "netns", 0, INT64_MAX, &b->netns, &ignored);
	return 0;
}

bool backup_is_rubbish(int ret)
{
	return ret == -EBADMSG || ret == -ELOOP || ret == -ENXIO;
}

bool backup_is_of(const struct backup *b, int netns)
{
	return !b->netns || netns_is(netns, (uint64_t)b->netns);
}

/* Keys in the Go plugin's order, with its indentation of one space. */
static void format(const struct linkstate *l, const char *network, uint64_t netns, struct buf *out)
{
	char mac[MAC_STRLEN];

	buf_puts(out, "{\n");
	if (l->has_mac)
		buf_printf(out, " \"mac\": \"%s\",\n", mac_format(l->mac, mac));
	if (l->has_promisc)
		buf_printf(out, " \"promisc\": %s,\n", l->promisc ? "true" : "false");
	if (l->has_mtu)
		buf_printf(out, " \"mtu\": %u,\n", l->mtu);
	if (l->has_allmulti)
		buf_printf(out, " \"allmulti\": %s,\n", l->allmulti ? "true" : "false");
	if (l->has_txqlen)
		buf_printf(out, " \"txQLen\": %u,\n", l->txqlen);
	buf_puts(out, " \"network\": ");
	json_write_string(out, network);
	buf_printf(out, ",\n \"netns\": %llu\n}", (unsigned long long)netns);
}

int backup_write(int dir, const char *name, const struct linkstate *link, const char *network,
	uint64_t netns)
{
	autobuf text = {0};

	format(link, network, netns, &text);
	return text.failed ? -ENOMEM : file_replace(dir, name, text.data, text.len, 0600, false);
}
