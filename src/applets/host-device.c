/* host-device: a device of the host for the container alone. It is moved there and comes back as it
 * was; what it was, and whose it is, travels with it (attach/loan.h). A device that a program in
 * user space drives (DPDK) has no link: then only the result says what it is.
 * reference/links.md, section 7; docs/host-device.md. */
#include "attach/attach.h"
#include "attach/loan.h"
#include "base/cleanup.h"
#include "base/mac.h"
#include "base/path.h"
#include "netlink/sysfs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PCI_DEVICES "/sys/bus/pci/devices/"
#define AUX_DEVICES "/sys/bus/auxiliary/devices/"
#define DEVICES     "/sys/devices/"

struct hostdev {
	/* As configured, "" read as absent. In this order the first that is given counts. */
	const char *device;
	const char *hwaddr;
	const char *kernelpath;
	const char *pci;
	const char *aux; /* by runtimeConfig.deviceID, which may also mean pci */
	bool later;      /* deviceID is declared, and not known yet */
	bool dpdk;
	char pci_id[SYSFS_PCI];
};

static const struct json_key keys[] = {
	JSON_KEY_STR(struct hostdev, "device", device),
	JSON_KEY_STR(struct hostdev, "hwaddr", hwaddr),
	JSON_KEY_STR(struct hostdev, "kernelpath", kernelpath),
	JSON_KEY_STR(struct hostdev, "pciBusID", pci),
	JSON_KEYS_END,
};

/* ---- the config ---- */

/* The folder of a device, "PREFIX/ID". */
static const char *folder(const char *prefix, const char *id, char out[static PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s%s", prefix, id);
	return out;
}

static int check_id(const char *key, const char *id, struct err *e)
{
	return sysfs_id_valid(id) ? 0
				  : err_set(e, ERR_INVALID_CONFIG,
					    "%s \"%s\": not the ID of a device", key, id);
}

/* Which of the two kinds it is, only /sys knows. */
static int resolve_id(struct hostdev *h, const char *id, struct err *e)
{
	char path[PATH_MAX];
	int pci, aux;

	if (check_id("deviceID", id, e))
		return -1;
	pci = sysfs_exists(folder(PCI_DEVICES, id, path));
	aux = pci ? 0 : sysfs_exists(folder(AUX_DEVICES, id, path));
	if (pci < 0 || aux < 0)
		return err_sys(
			e, pci < 0 ? -pci : -aux, ERR_SYSTEM, "failed to look up device %s", id);
	if (!pci && !aux)
		return err_set(e, ERR_INVALID_CONFIG,
			"runtimeConfig.deviceID: device %s not found or unsupported", id);
	h->pci = pci ? id : NULL;
	h->aux = aux ? id : NULL;
	return 0;
}

static int read_device_id(struct hostdev *h, const struct request *req, struct err *e)
{
	const json *runtime, *caps = NULL;
	const char *id = NULL;

	if (request_runtime_config(req, &runtime, e) ||
		(runtime && json_get_str(runtime, "deviceID", &id, e)) ||
		json_get_object(req->conf, "capabilities", &caps, e) ||
		(caps && json_get_bool(caps, "deviceID", &h->later, e)))
		return -1;
	return id && *id ? resolve_id(h, id, e) : 0;
}

static void drop_empty(const char **text)
{
	if (*text && !**text)
		*text = NULL;
}

static void drop_empties(struct hostdev *h)
{
	drop_empty(&h->device);
	drop_empty(&h->hwaddr);
	drop_empty(&h->kernelpath);
	drop_empty(&h->pci);
}

static bool has_selector(const struct hostdev *h)
{
	return h->device || h->hwaddr || h->kernelpath || h->pci || h->aux;
}

/* Owned by the caller; NULL when it is not one of a device. */
static char *clean_kernelpath(const char *path)
{
	autofree char *clean = *path == '/' ? path_absolute(path) : NULL;

	if (!clean || strncmp(clean, DEVICES, strlen(DEVICES)) != 0)
		return NULL;
	return take_ptr(clean);
}

static int check_selectors(const struct hostdev *h, struct err *e)
{
	autofree char *path = h->kernelpath ? clean_kernelpath(h->kernelpath) : NULL;
	uint8_t mac[6];

	if (h->hwaddr && !mac_parse(h->hwaddr, mac))
		return err_set(e, ERR_INVALID_CONFIG,
			"failed to find host device: hwaddr \"%s\": invalid MAC address",
			h->hwaddr);
	if (h->kernelpath && !path)
		return err_set(e, ERR_INVALID_CONFIG,
			"failed to find host device: kernel device path %s must be absolute and "
			"begin with " DEVICES,
			h->kernelpath);
	return h->pci ? check_id("pciBusID", h->pci, e) : 0;
}

/* Whether a program in user space drives the device. 0, or -errno of the driver's name. */
static int find_dpdk(struct hostdev *h)
{
	static const char *const drivers[] = {"vfio-pci", "uio_pci_generic", "igb_uio"};
	char driver[64];
	int ret = sysfs_pci_driver(h->pci, driver, sizeof(driver));

	for (size_t i = 0; !ret && i < array_len(drivers); i++)
		h->dpdk = h->dpdk || !strcmp(driver, drivers[i]);
	return ret;
}

static int conf(struct attach *a, struct err *e)
{
	struct hostdev *h = a->own;
	bool status = a->req->verb == VERB_STATUS;
	int ret = 0;

	drop_empties(h);
	if (read_device_id(h, a->req, e) || check_selectors(h, e))
		return -1;
	if (!has_selector(h) && !(status && h->later))
		return err_set(e, ERR_INVALID_CONFIG,
			"specify either \"device\", \"hwaddr\", \"kernelpath\" or \"pciBusID\"");
	if (h->pci)
		ret = find_dpdk(h);
	/* A device without a driver has no link, but may have one when it is needed. */
	if (ret && !status)
		return err_sys(e, -ret, ERR_INVALID_CONFIG,
			"failed to find host device: PCI device %s or its driver", h->pci);
	a->no_link = h->dpdk;
	return 0;
}

/* ---- finding the device ---- */

struct by_mac {
	uint8_t mac[6];
	struct link link; /* index 0: none */
};

/* Links on top of a physical one may have its address. */
static int match_mac(const struct link *l, void *arg)
{
	struct by_mac *m = arg;

	if (!l->has_mac || memcmp(l->mac, m->mac, sizeof(m->mac)) != 0 ||
		(m->link.index && *l->kind))
		return 0;
	m->link = *l;
	return !*l->kind;
}

static int find_by_mac(struct nl *nl, const char *text, struct link *out, struct err *e)
{
	struct by_mac m = {0};
	int ret;

	mac_parse(text, m.mac);
	ret = link_each(nl, NULL, match_mac, &m);
	if (ret < 0)
		return err_sys(e, -ret, ERR_SYSTEM, "failed to list links");
	if (!m.link.index)
		return err_set(e, ERR_INVALID_CONFIG,
			"failed to find host device: no physical interface with MAC address %s "
			"found",
			text);
	*out = m.link;
	return 0;
}

/* Reads the name of the device's link from /sys; *what is the device in words. */
static int name_from_sysfs(const struct hostdev *h, const char **what, char name[static IFNAMSIZ])
{
	autofree char *path = NULL;
	char dir[PATH_MAX];

	if (h->kernelpath) {
		*what = h->kernelpath;
		path = clean_kernelpath(h->kernelpath);
		return path ? sysfs_link(path, name) : -ENOMEM;
	}
	*what = h->pci ? h->pci : h->aux;
	return h->pci ? sysfs_pci_link(h->pci, name)
		      : sysfs_link(folder(AUX_DEVICES, h->aux, dir), name);
}

static int find_by_sysfs(struct nl *nl, const struct hostdev *h, struct link *out, struct err *e)
{
	char name[IFNAMSIZ];
	const char *what;
	int ret = name_from_sysfs(h, &what, name);

	if (ret)
		return err_sys(e, -ret, ERR_INVALID_CONFIG,
			"failed to find host device: no net directory under device %s", what);
	ret = link_get(nl, name, out);
	return ret ? err_sys(e, -ret, ERR_INVALID_CONFIG,
			     "failed to find host device: Link not found: \"%s\" of device %s",
			     name, what)
		   : 0;
}

static int find_by_name(struct nl *nl, const char *name, struct link *out, struct err *e)
{
	int ret = link_get(nl, name, out);

	if (ret == -ENODEV)
		return err_set(e, ERR_INVALID_CONFIG,
			"failed to find host device: Link not found: \"%s\" is not on the host: a "
			"container has it, or it was a virtual one and ended with its container's "
			"namespace",
			name);
	return ret ? err_sys(e, -ret, ERR_SYSTEM, "failed to look up link \"%s\"", name) : 0;
}

static int find(struct nl *nl, const struct hostdev *h, struct link *out, struct err *e)
{
	if (h->device)
		return find_by_name(nl, h->device, out, e);
	return h->hwaddr ? find_by_mac(nl, h->hwaddr, out, e) : find_by_sysfs(nl, h, out, e);
}

/* ---- ADD ---- */

static void note_pci(struct hostdev *h, const struct link *dev)
{
	if (h->pci && !h->device && !h->hwaddr && !h->kernelpath)
		snprintf(h->pci_id, sizeof(h->pci_id), "%s", h->pci);
	else
		sysfs_pci_of_link(dev->name, h->pci_id);
}

/* What is on the host is no container's: a mark on it is of one that was lost. */
static int attach(struct attach *a, struct err *e)
{
	struct hostdev *h = a->own;
	struct link dev;
	bool freed;

	if (h->dpdk)
		return 0;
	if (loan_free_own(a->sb.host, &a->req->owner, e) || find(a->sb.host, h, &dev, e) ||
		loan_free(a->sb.host, &dev, &freed, e) || (freed && find(a->sb.host, h, &dev, e)))
		return -1;
	if (dev.flags & IFF_LOOPBACK)
		return err_set(e, ERR_INVALID_CONFIG,
			"failed to find host device: \"%s\" is the loopback interface", dev.name);
	note_pci(h, &dev);
	return loan_give(a, &dev, e);
}

static int entries(struct attach *a, struct err *e)
{
	const struct hostdev *h = a->own;
	const char *pci = h->dpdk ? h->pci : h->pci_id;

	if (attach_add_entry(a, e))
		return -1;
	return *pci ? result_set_str(&a->result->ifaces[a->result->ifaces_len - 1].pci_id, pci, e)
		    : 0;
}

/* ---- DEL: whatever of the config can be read ---- */

static void read_leniently(struct hostdev *h, const struct request *req)
{
	autoerr ignored = {0};

	*h = (struct hostdev){0};
	for (const struct json_key *k = keys; k->name; k++) {
		autoerr bad = {0};

		json_get_str(req->conf, k->name, (const char **)((char *)h + k->offset), &bad);
	}
	drop_empties(h);
	if (check_selectors(h, &ignored))
		*h = (struct hostdev){0};
	err_clear(&ignored);
	read_device_id(h, req, &ignored);
	if (h->pci)
		find_dpdk(h);
}

/* Of a device that is in a container /sys does not tell the link. */
static bool is_ours(const struct request *req, struct nl *nl, const struct link *l, bool inside)
{
	struct hostdev h;
	struct link same;
	char name[IFNAMSIZ];
	const char *what;
	uint8_t mac[6];

	read_leniently(&h, req);
	if (h.dpdk || !has_selector(&h))
		return false;
	if (h.device)
		return !strcmp(l->alias, h.device) ||
		       (!link_get(nl, h.device, &same) && same.index == l->index);
	if (h.hwaddr)
		return mac_parse(h.hwaddr, mac) && l->has_mac && !memcmp(mac, l->mac, sizeof(mac));
	return inside || (!name_from_sysfs(&h, &what, name) && !strcmp(name, l->name));
}

static int detach(const struct request *req, struct err *e)
{
	return loan_return(req, is_ours, e);
}

/* ---- CHECK, STATUS ---- */

static int check(struct attach *a, struct err *e)
{
	return a->no_link ? 0 : loan_check(a, e);
}

/* A link that is not on the host may be a container's, which is in order. A device is in /sys
 * wherever its link is. */
static int status(struct attach *a, struct err *e)
{
	const struct hostdev *h = a->own;
	autofree char *clean = NULL;
	char path[PATH_MAX];
	const char *dir = NULL;

	if (h->device || h->hwaddr)
		return 0;
	if (h->kernelpath)
		dir = clean = clean_kernelpath(h->kernelpath);
	else if (h->pci)
		dir = folder(PCI_DEVICES, h->pci, path);
	if (dir && !sysfs_exists(dir))
		return err_set(
			e, ERR_NOT_AVAILABLE, "host-device is not available: there is no %s", dir);
	return 0;
}

static const struct attach_type type = {
	.table = keys,
	.conf_size = sizeof(struct hostdev),
	.conf = conf,
	.attach = attach,
	.entries = entries,
	.check = check,
	.status = status,
	.detach = detach,
	.collect = loan_collect,
};

const struct applet applet_host_device = {
	.name = "host-device",
	.help = "Moves a device of the host into a container",
	.kind = APPLET_MAIN,
	ATTACH_VERBS(&type),
};
