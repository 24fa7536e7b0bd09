#include "store/place.h"

#include "base/cleanup.h"

#include <stdint.h>
#include <sys/statfs.h>

/* The numbers are those of linux/magic.h, where it has them. */
#define PROC_MAGIC 0x9fa0

static uint32_t magic_of(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) < 0 ? 0 : (uint32_t)st.f_type;
}

bool place_is_local(int fd)
{
	static const uint32_t local[] = {0xef53 /* ext4 */, 0x58465342 /* xfs */,
		0x9123683e /* btrfs */, 0x01021994 /* tmpfs */, 0x794c7630 /* overlay */,
		0x2fc12fc1 /* zfs */, 0xf2f52010 /* f2fs */, 0xca451a4e /* bcachefs */,
		0x24051905 /* ubifs */, 0x858458f6 /* ramfs */};
	uint32_t magic = magic_of(fd);

	for (size_t i = 0; i < array_len(local); i++)
		if (magic == local[i])
			return true;
	return false;
}

bool place_is_proc(int fd)
{
	return magic_of(fd) == PROC_MAGIC;
}
