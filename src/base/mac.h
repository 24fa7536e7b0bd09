/* MAC addresses of 6 bytes (IEEE 802 EUI-48). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MAC_STRLEN 18

/* Reads "02:00:..", "02-00-.." or "0200.0000.0096", as the Go plugins do. False when the text is
 * none of them; out may have been written to then. */
bool mac_parse(const char *text, uint8_t out[static 6]);

/* Writes lower-case digits with colons and returns out. */
const char *mac_format(const uint8_t mac[static 6], char out[static MAC_STRLEN]);

/* Makes a locally administered unicast address. Returns 0, or -errno when the kernel gives no
 * random bytes (a seccomp filter may forbid them). */
int mac_random(uint8_t out[static 6]);

/* The same for a bridge port: fe:…, so that it is never the lowest. A bridge takes over the lowest
 * address of its ports unless one was set, and its own would change as containers come and go. */
int mac_random_port(uint8_t out[static 6]);
