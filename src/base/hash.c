#include "base/hash.h"

#include <sha2.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

void hash_hex(char *out, size_t digits, ...)
{
	static const char hex[] = "0123456789abcdef";
	uint8_t sum[SHA512_DIGEST_LENGTH];
	const char *part;
	SHA2_CTX ctx;
	va_list ap;

	SHA512Init(&ctx);
	va_start(ap, digits);
	while ((part = va_arg(ap, const char *)))
		SHA512Update(&ctx, (const uint8_t *)part, strlen(part));
	va_end(ap);
	SHA512Final(sum, &ctx);
	for (size_t i = 0; i < digits; i++)
		out[i] = hex[i % 2 ? sum[i / 2] & 15 : sum[i / 2] >> 4];
	out[digits] = '\0';
}
