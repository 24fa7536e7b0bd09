#include "result/resolvconf.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#define FILE_MAX (1u << 20)
#define WAIT_MS  2000

/* The longest line that the Go plugin reads. */
#define LINE_MAX_LEN 65536

/* Far beyond what any resolver looks at. */
#define WORDS_MAX 1024

/* The list is NULL-terminated; as an array it is one longer than the words it has. */
static int push_word(char ***list, const char *word, struct err *e)
{
	size_t len = 0;

	while (*list && (*list)[len])
		len++;
	if (len == WORDS_MAX)
		return err_set(e, ERR_INVALID_CONFIG, "resolvConf: more than %d words", WORDS_MAX);
	if (*list)
		len++;
	else if (!vec_add(*list, len))
		return err_memory(e);
	if (!vec_add(*list, len))
		return err_memory(e);
	(*list)[len - 2] = strdup(word);
	return (*list)[len - 2] ? 0 : err_memory(e);
}

static int read_line(char *line, struct dns *dns, struct err *e)
{
	static const char space[] = " \t\v\f\r";
	char *save = NULL, *key = strtok_r(line, space, &save);
	const char *word = key ? strtok_r(NULL, space, &save) : NULL;
	char ***list;

	if (!word || *key == '#' || *key == ';')
		return 0;
	if (!strcmp(key, "nameserver"))
		return push_word(&dns->nameservers, word, e);
	if (!strcmp(key, "domain"))
		return result_set_str(&dns->domain, word, e);
	list = !strcmp(key, "search")    ? &dns->search
	       : !strcmp(key, "options") ? &dns->options
					 : NULL;
	for (; list && word; word = strtok_r(NULL, space, &save))
		if (push_word(list, word, e))
			return -1;
	return 0;
}

/* All that can be read from fd, which is non-blocking, until its end. Returns 0 or -errno. */
static int read_all(int fd, struct buf *text)
{
	int64_t end = clock_ms() + WAIT_MS;

	for (;;) {
		int64_t left = end - clock_ms();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		char part[4096];
		ssize_t n;

		if (poll(&p, 1, left > 0 ? (int)left : 0) == 0)
			return -ETIMEDOUT;
		n = read(fd, part, sizeof(part));
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n == 0)
			return text->failed ? -ENOMEM : 0;
		if (n > 0)
			buf_put(text, part, (size_t)n);
		if (text->len > FILE_MAX)
			return -EFBIG;
	}
}

int resolvconf_read(const char *path, struct dns *dns, struct err *e)
{
	/* Not to hang in open() when it is a FIFO that nobody writes to. */
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	autobuf text = {0};
	int ret;

	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_IO, "open %s: no such file or directory", path);
	if (fd < 0)
		return err_sys(e, errno, ERR_IO, "open %s", path);
	ret = read_all(fd, &text);
	if (ret)
		return err_sys(e, -ret, ERR_IO, "read %s", path);
	for (char *line = text.data, *end; line && line < text.data + text.len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text.data + text.len - line));
		if (!end)
			end = text.data + text.len;
		if (end - line >= LINE_MAX_LEN)
			return err_set(e, ERR_IO, "%s: token too long", path);
		*end = '\0';
		if (read_line(line, dns, e))
			return -1;
	}
	return 0;
}
