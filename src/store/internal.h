/* What the files of the store share among themselves. */
#pragma once

#include "store/store.h"

/* A lease on its way to its name, where there are no unnamed files. No address; goes with the next
 * scan or lease if we are killed. */
#define STORE_TEMP ".lease.tmp"
