/* What /sys knows of the devices behind links: which link a device has, which driver, which PCI
 * address. What /sys/class/net and the net folders of devices list are the links of the namespace
 * that /sys was mounted in. Documentation/ABI/testing/sysfs-class-net. */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

/* "0000:04:00.0", with domains of up to 8 digits, and its NUL. */
#define SYSFS_PCI 20

/* Whether text is one name of a folder in /sys: an ID that may be put into a path. */
bool sysfs_id_valid(const char *text);

/* Whether the folder exists: 1, 0, or -errno when that cannot be told. */
int sysfs_exists(const char *dir);

/* The name of the first link, by name, of the device in that folder (dir/net). 0, -ENOENT when it
 * has none, or another -errno. */
int sysfs_link(const char *dir, char out[static IFNAMSIZ]);

/* The same for a PCI device, whose link may be a virtio device's below it. */
int sysfs_pci_link(const char *id, char out[static IFNAMSIZ]);

/* The name of the driver that a PCI device is bound to. 0, -ENOENT when there is no such device or
 * it has none, or another -errno. */
int sysfs_pci_driver(const char *id, char *out, size_t size);

/* The PCI address of the device behind a link, "" when there is none or it cannot be told. */
void sysfs_pci_of_link(const char *name, char out[static SYSFS_PCI]);
