#include "store/lease.h"

#include "base/cleanup.h"
#include "store/place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#define BOOT_XATTR "user.cnibox.boot"
#define BOOT_FILE  "/proc/sys/kernel/random/boot_id"

/* Content of the lease being looked at; holders read from it point here until the next is read. */
static char content[LEASE_MAX + 1];

bool holder_same(const struct holder *a, const struct holder *b)
{
	if (strcmp(a->id, b->id) || !a->ifname != !b->ifname)
		return false;
	return !a->ifname || !strcmp(a->ifname, b->ifname);
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* No white space, no control characters, at least one byte. */
static bool is_word(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] <= ' ' || s[i] == 0x7f)
			return false;
	return len > 0;
}

/* The Go plugin takes what the kernel does: all but white space. */
static bool is_ifname(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (is_space(s[i]) || !s[i])
			return false;
	return len > 0;
}

enum lease_kind lease_parse(char *text, size_t len, struct holder *out)
{
	size_t zeros = 0, id;

	/* Some filesystems show a file that was never written out as zeros. */
	while (zeros < len && !text[zeros])
		zeros++;
	if (zeros == len)
		return LEASE_DEBRIS;
	while (len && is_space(*text)) {
		text++;
		len--;
	}
	while (len && is_space(text[len - 1]))
		len--;
	text[len] = '\0';
	for (id = 0; id < len && text[id] != '\r'; id++)
		;
	if (!is_word(text, id))
		return LEASE_FOREIGN;
	if (id < len && (text[id + 1] != '\n' || !is_ifname(text + id + 2, len - id - 2)))
		return LEASE_FOREIGN;
	*out = (struct holder){.id = text, .ifname = id < len ? text + id + 2 : NULL};
	text[id] = '\0';
	return LEASE_HELD;
}

/* What opening or reading something that is no regular file ends with: a symlink, a socket or a
 * device without driver, a directory, a FIFO. All else (EIO, EMFILE, ENOMEM) says nothing about the
 * file, and must not be taken for an answer: the lease may well be there. */
static bool is_foreign(int err)
{
	return err == ELOOP || err == ENXIO || err == ENODEV || err == EISDIR || err == EAGAIN ||
	       err == EINVAL;
}

int lease_read(int dir, const char *name, struct holder *out, int *fd)
{
	struct stat st;
	ssize_t n;

	do
		*fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	while (*fd < 0 && errno == EINTR);
	if (*fd < 0 && errno == ENOENT)
		return LEASE_NONE;
	do
		n = *fd < 0 ? -1 : read(*fd, content, LEASE_MAX);
	while (*fd >= 0 && n < 0 && errno == EINTR);
	if (n < 0)
		return is_foreign(errno) ? LEASE_FOREIGN : -errno;
	if (n == LEASE_MAX)
		return LEASE_FOREIGN;
	/* A FIFO or device of that name is no debris. */
	if (!n && fstat(*fd, &st) < 0)
		return -errno;
	if (!n && !S_ISREG(st.st_mode))
		return LEASE_FOREIGN;
	return (int)lease_parse(content, (size_t)n, out);
}

void boot_read(struct boot *b, int dir)
{
	autoclose int fd = place_is_local(dir) ? open(BOOT_FILE, O_RDONLY | O_CLOEXEC) : -1;
	char text[INDEX_BOOT_LEN];

	*b = (struct boot){0};
	if (fd >= 0 && place_is_proc(fd) && read(fd, text, sizeof(text)) == (ssize_t)sizeof(text) &&
		is_word(text, sizeof(text)))
		memcpy(b->id, text, sizeof(text));
}

enum lease_age lease_age(const struct boot *b, int fd)
{
	char value[INDEX_BOOT_LEN + 1];
	ssize_t n = *b->id ? fgetxattr(fd, BOOT_XATTR, value, sizeof(value)) : -1;

	if (n != INDEX_BOOT_LEN)
		return LEASE_AGE_UNKNOWN;
	return memcmp(value, b->id, INDEX_BOOT_LEN) ? LEASE_OF_EARLIER_BOOT : LEASE_OF_THIS_BOOT;
}

void lease_stamp(const struct boot *b, int fd)
{
	if (*b->id)
		fsetxattr(fd, BOOT_XATTR, b->id, INDEX_BOOT_LEN, 0);
}
