#include "store/marker.h"

#include "base/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *marker_name(size_t n, char name[static 40])
{
	snprintf(name, 40, "last_reserved_ip.%zu", n);
	return name;
}

void marker_read(const struct store *s, size_t n, struct marker *m)
{
	char name[40], text[IP_STRLEN + 1];
	ssize_t len;

	*m = (struct marker){0};
	m->fd = openat(s->dir, marker_name(n, name),
		O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	len = m->fd < 0 ? -1 : read(m->fd, text, sizeof(text) - 1);
	if (len <= 0)
		return;
	m->len = (size_t)len;
	text[len] = '\0';
	if (strlen(text) == (size_t)len)
		ip_parse(text, &m->last);
}

/* In place: no new file, no change of the directory, a third of the calls of a rename. Torn by a
 * crash it is absent or another address, and the search begins there. */
static int put(struct marker *m, const char *text)
{
	size_t len = strlen(text);

	if (pwrite(m->fd, text, len, 0) != (ssize_t)len)
		return errno ? -errno : -EIO;
	return m->len > len && ftruncate(m->fd, (off_t)len) < 0 ? -errno : 0;
}

void marker_write(struct store *s, size_t n, struct marker *m, const struct ip *ip)
{
	uint64_t start = trace_start();
	char name[40], text[IP_STRLEN];
	int ret;

	marker_name(n, name);
	if (m->fd < 0) {
		store_change(s);
		m->fd = openat(
			s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (m->fd >= 0)
			store_changed(s);
	}
	ret = m->fd < 0 ? -errno : put(m, ip_format(ip, text));
	trace_step(start, TRACE_FILE, -ret, "write %s", name);
	marker_close(m);
}

void marker_close(struct marker *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}
