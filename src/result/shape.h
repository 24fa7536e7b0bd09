/* What the files of src/result/ share: the version families. */
#pragma once

#include "result/result.h"

enum cni_shape { SHAPE_NONE, SHAPE_A, SHAPE_B, SHAPE_C };

/* The family of a version, "" being 0.1.0; SHAPE_NONE for one we do not know. */
enum cni_shape cni_shape(const char *version);

/* Its versions as the upstream message lists them (the first of A is the empty one). */
const char *cni_shape_versions(enum cni_shape shape);
