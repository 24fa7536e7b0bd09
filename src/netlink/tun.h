/* Taps: Ethernet links whose other end is whoever opens them. The one kind of link that is made by
 * ioctl, in the namespace of the calling thread. Documentation/networking/tuntap.rst,
 * linux/if_tun.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tun_spec {
	const char *name;
	bool multi_queue;
	/* User and group that may open it without CAP_NET_ADMIN; -1: not restricted to any. */
	int64_t owner;
	int64_t group;
};

#define TUN_DEVICE "/dev/net/tun"

/* Whether taps can be made here: 0, or -errno of opening TUN_DEVICE. */
int tun_available(void);

/* Makes a new tap, which goes when the descriptor is closed: that is the return value, close on
 * exec. -errno on failure; -EEXIST: the name is taken. */
int tun_make(const struct tun_spec *spec);

/* Makes it stay. 0 or -errno. */
int tun_keep(int fd);
