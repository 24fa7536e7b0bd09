#include "netlink/sysfs.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PCI_DEVICES "/sys/bus/pci/devices/"

bool sysfs_id_valid(const char *text)
{
	if (!*text || *text == '.' || strlen(text) > NAME_MAX)
		return false;
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("_.:-", *c))
			return false;
	return true;
}

int sysfs_exists(const char *dir)
{
	struct stat st;

	if (!stat(dir, &st))
		return 1;
	return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
}

static int read_folder(const char *path, struct file_names *names)
{
	autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*names = (struct file_names){0};
	return fd < 0 ? -errno : file_names(fd, names);
}

int sysfs_link(const char *dir, char out[static IFNAMSIZ])
{
	char path[PATH_MAX];
	autonames names = {0};
	int ret = snprintf(path, sizeof(path), "%s/net", dir);

	if (ret < 0 || (size_t)ret >= sizeof(path))
		return -ENAMETOOLONG;
	ret = read_folder(path, &names);
	if (ret)
		return ret;
	if (!names.len)
		return -ENOENT;
	ret = snprintf(out, IFNAMSIZ, "%s", names.list[0]);
	return ret < IFNAMSIZ ? 0 : -ENAMETOOLONG;
}

int sysfs_pci_link(const char *id, char out[static IFNAMSIZ])
{
	char dir[sizeof(PCI_DEVICES) + NAME_MAX + 1], below[sizeof(dir) + NAME_MAX + 1];
	autonames names = {0};
	int ret, found;

	snprintf(dir, sizeof(dir), "%s%s", PCI_DEVICES, id);
	found = sysfs_link(dir, out);
	if (found != -ENOENT)
		return found;
	ret = read_folder(dir, &names);
	for (size_t i = 0; !ret && found == -ENOENT && i < names.len; i++) {
		if (strncmp(names.list[i], "virtio", strlen("virtio")) != 0)
			continue;
		snprintf(below, sizeof(below), "%s/%s", dir, names.list[i]);
		found = sysfs_link(below, out);
	}
	return ret ? ret : found;
}

/* The last part of where a symlink leads, or NULL with errno set. */
static const char *target(const char *path, char *buf, size_t size)
{
	ssize_t len = readlink(path, buf, size - 1);
	const char *slash;

	if (len < 0)
		return NULL;
	buf[len] = '\0';
	slash = strrchr(buf, '/');
	return slash ? slash + 1 : buf;
}

int sysfs_pci_driver(const char *id, char *out, size_t size)
{
	char path[sizeof(PCI_DEVICES) + NAME_MAX + sizeof("/driver")], link[PATH_MAX];
	const char *driver;

	snprintf(path, sizeof(path), "%s%s/driver", PCI_DEVICES, id);
	driver = target(path, link, sizeof(link));
	if (!driver)
		return -errno;
	snprintf(out, size, "%s", driver);
	return 0;
}

/* DOMAIN:BUS:SLOT.FUNCTION, in hexadecimal digits. */
static bool is_pci(const char *text, size_t len)
{
	size_t colons = 0;

	if (len < 12 || len >= SYSFS_PCI || text[len - 2] != '.')
		return false;
	for (size_t i = 0; i < len; i++) {
		colons += text[i] == ':';
		if (!isxdigit((unsigned char)text[i]) && text[i] != ':' && i != len - 2)
			return false;
	}
	return colons == 2;
}

/* Of the folders above the device's the nearest one that is a PCI device: between the two may be a
 * virtio device. */
void sysfs_pci_of_link(const char *name, char out[static SYSFS_PCI])
{
	char path[sizeof("/sys/class/net//device") + IFNAMSIZ], real[PATH_MAX];
	size_t len;

	*out = '\0';
	snprintf(path, sizeof(path), "/sys/class/net/%s/device", name);
	if (!realpath(path, real))
		return;
	for (char *slash; (slash = strrchr(real, '/')); *slash = '\0') {
		len = strlen(slash + 1);
		if (!is_pci(slash + 1, len))
			continue;
		memcpy(out, slash + 1, len + 1);
		return;
	}
}
