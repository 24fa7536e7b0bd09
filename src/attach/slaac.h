/* Addresses that a router's advertisement gives a container's link: stateless autoconfiguration,
 * RFC 4862. */
#pragma once

#include "attach/attach.h"

/* For the late hook: lets routers configure the container's link, which is up, and waits for the
 * first global address that is not tentative any more; it is then in the result, the link's.
 * ERR_TRY_AGAIN when there is none after so many seconds. */
int slaac_wait(struct attach *a, int seconds, struct err *e);
