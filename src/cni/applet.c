#include "cni/applet.h"

#include <string.h>

const struct applet *applet_find(const char *name)
{
	for (size_t i = 0; applets[i]; i++)
		if (!strcmp(applets[i]->name, name))
			return applets[i];
	return NULL;
}
