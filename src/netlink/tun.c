#include "netlink/tun.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>

int tun_available(void)
{
	autoclose int fd = open(TUN_DEVICE, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : 0;
}

static int set_id(int fd, int request, int64_t id)
{
	return id >= 0 && ioctl(fd, request, (unsigned long)id) < 0 ? -errno : 0;
}

/* Whoever opens it chooses anew whether frames have headers; of queues there are one or many for
 * good. */
int tun_make(const struct tun_spec *spec)
{
	autoclose int fd = open(TUN_DEVICE, O_RDWR | O_CLOEXEC);
	struct ifreq req = {.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_TUN_EXCL)};
	int ret;

	if (fd < 0)
		return -errno;
	if (spec->multi_queue)
		req.ifr_flags |= IFF_MULTI_QUEUE;
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", spec->name);
	if (ioctl(fd, TUNSETIFF, &req) < 0)
		return errno == EBUSY ? -EEXIST : -errno;
	ret = set_id(fd, TUNSETOWNER, spec->owner);
	if (!ret)
		ret = set_id(fd, TUNSETGROUP, spec->group);
	return ret ? ret : take_fd(&fd);
}

int tun_keep(int fd)
{
	return ioctl(fd, TUNSETPERSIST, 1) < 0 ? -errno : 0;
}
