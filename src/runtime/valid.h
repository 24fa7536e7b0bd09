/* The valid set of a GC as a runtime hands it to plugins: a JSON array of objects with containerID
 * and ifname. CNI spec 1.1.0, section 2, "GC". */
#pragma once

#include "base/err.h"
#include "json/json.h"

#include <stdbool.h>

/* Appends an attachment written as CONTAINERID/IFNAME. Returns 0, or -1 with e set. */
int valid_add_pair(json *list, const char *pair, struct err *e);

/* Appends those of a file that holds such an array ("-": standard input). */
int valid_add_file(json *list, const char *path, struct err *e);

/* Whether an attachment is in it. */
bool valid_has(const json *list, const char *id, const char *ifname);
