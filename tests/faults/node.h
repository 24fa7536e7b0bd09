/* A node to attack: namespaces of its own, and its whole state as text. */
#pragma once

#include <stdbool.h>

/* Gives this process a network and a mount namespace of its own, with lo up and private, empty
 * /run, /var/lib/cni and /etc/cni. Dies when it cannot. */
void node_enter(void);

/* Makes or removes the network namespace /run/netns/NAME. */
void node_netns(const char *name);
void node_netns_gone(const char *name);

/* Makes a link m0, for others to be put on, up. */
void node_master(void);

/* Makes links that may be taken: d1 and d2, up, each with an alias. */
void node_devices(void);

/* Writes a setting below /proc/sys in namespace NAME. */
void node_set(const char *name, const char *path, const char *value);

/* What is there, sorted lines: links with kind, alias, MTU, master and MAC; addresses, routes,
 * rules and qdiscs that the kernel did not put there by itself; the nftables ruleset; the files
 * below /var/lib/cni, /run and /etc/cni. Files that are documented to stay (the store's lock and
 * markers, indexes) are left out. The same, without files, rules and ruleset, for each namespace
 * named in `names` (NULL-terminated). `sysctls`: also their settings that the chain changes. The
 * caller frees. */
char *node_state(const char *const *names, bool sysctls);

/* The lines that only one of the two has, with - and +. The caller frees; "" when they are equal.
 */
char *state_diff(const char *before, const char *after);
