#include "base/mac.h"

#include "base/hex.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

bool mac_parse(const char *text, uint8_t out[static 6])
{
	size_t len = strlen(text), n = 0;
	bool dotted = len == 14;
	char sep = len == 17 ? text[2] : '.';

	if (!(len == 17 && (sep == ':' || sep == '-')) && !dotted)
		return false;
	for (size_t i = 0; i < len; n++) {
		int byte = hex_byte(text + i);

		if (byte < 0)
			return false;
		out[n] = (uint8_t)byte;
		i += 2;
		if (i < len && (!dotted || n % 2) && text[i++] != sep)
			return false;
	}
	return n == 6;
}

const char *mac_format(const uint8_t mac[static 6], char out[static MAC_STRLEN])
{
	snprintf(out, MAC_STRLEN, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
		mac[4], mac[5]);
	return out;
}

int mac_random(uint8_t out[static 6])
{
	while (getrandom(out, 6, 0) != 6)
		if (errno != EINTR)
			return -errno;
	out[0] = (uint8_t)((out[0] | 2) & ~1);
	return 0;
}

int mac_random_port(uint8_t out[static 6])
{
	int ret = mac_random(out);

	out[0] = 0xfe;
	return ret;
}
