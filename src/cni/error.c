#include "cni/error.h"

#include "result/result.h"
#include "json/json.h"

void write_error(const struct err *e, const char *version, struct buf *out)
{
	buf_puts(out, "{\n    \"cniVersion\": ");
	json_write_string(out, version && *version ? version : CNI_CURRENT);
	buf_printf(out, ",\n    \"code\": %d,\n    \"msg\": ", e->code);
	json_write_string(out, e->msg ? e->msg : "");
	if (e->details && *e->details) {
		buf_puts(out, ",\n    \"details\": ");
		json_write_string(out, e->details);
	}
	buf_puts(out, "\n}");
}
