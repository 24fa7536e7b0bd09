/* What is worth telling a person though it fails nothing. No code of this room prints: whoever
 * calls it says where such remarks go. */
#pragma once

struct report {
	/* One remark, a sentence without full stop or line feed. NULL: they are dropped. */
	void (*fn)(const char *text, void *arg);
	void *arg;
};

/* Makes a remark; `to` may be NULL, and then nobody hears it. */
void report(const struct report *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
