#include "runtime/report.h"

#include "base/cleanup.h"

#include <stdarg.h>
#include <stdio.h>

void report(const struct report *to, const char *fmt, ...)
{
	autofree char *text = NULL;
	va_list ap;

	if (!to || !to->fn)
		return;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (text)
		to->fn(text, to->arg);
}
