/* Network namespaces. After netns_open() and the opening of sockets no code switches namespace,
 * except to write a sysctl. linux/net_namespace.h, linux/nsfs.h. */
#pragma once

#include "base/err.h"
#include "netlink/nl.h"

#include <stdbool.h>
#include <stdint.h>

/* How netns_open() failed, where the caller's answer differs (DEL forgives the first two). */
enum netns_state { NETNS_OK, NETNS_GONE, NETNS_NOT_A_NETNS, NETNS_ERROR };

/* Opens a namespace path, read-only, close-on-exec; a FIFO or device does not hang. The file must
 * be on nsfs or procfs and be a *network* namespace (NS_GET_NSTYPE). *fd is owned by the caller.
 * e may be NULL when only the state matters. Code ERR_INVALID_NETNS. */
enum netns_state netns_open(const char *path, int *fd, struct err *e);

/* The same where a path that leads to no namespace is fine: 1, 0, or -1 with e set, when that could
 * not be looked at just now (err_is_passing()). */
int netns_try(const char *path, int *fd, struct err *e);

/* Whether fd is the namespace this process is in; true when that cannot be told. */
bool netns_is_own(int fd);

/* The inode number behind an open namespace: its identity while it lives. The next one may get it.
 */
uint64_t netns_inode(int fd);

/* What no other namespace ever has: a hash of the boot and of the cookie that the kernel gives
 * each, SO_NETNS_COOKIE (5.14), larger than any inode number. On older kernels, and when it cannot
 * be had, the inode number; 0 when not even that. For records that outlive the namespace. */
uint64_t netns_identity(int fd);
/* Whether that was said of this namespace, now or, an inode number, by an older version. Where the
 * identity cannot be had just now, it may have been: true. */
bool netns_is(int fd, uint64_t identity);
/* That of the namespace this process is in now. */
uint64_t netns_own_inode(void);

/* True when path is certainly not, right now, the network namespace with this identity (0: any).
 * What could not be looked at may be. */
bool netns_is_another(const char *path, uint64_t identity);

/* Runs fn inside the namespace and returns to the own one. fn's return value is handed on; when
 * entering fails e is set and -1 returned; returning cannot fail without ending the process. */
int netns_run(int fd, int (*fn)(void *arg, struct err *e), void *arg, struct err *e);

/* nl_open() and nl_watch() in the namespace; fd -1: in the one this process is in. */
int netns_nl_open(int fd, struct nl **nl, int protocol, struct err *e);
int netns_nl_watch(int fd, struct nl **nl, uint32_t groups, struct err *e);

/* What the namespace of nl calls the one behind fd: *id is -1 for itself, and for one it has no
 * name for. Return 0 or -errno. The second form gives it a name then; the kernel takes it back with
 * the namespace. */
int netns_id(struct nl *nl, int fd, int32_t *id);
int netns_id_make(struct nl *nl, int fd, int32_t *id);

/* Whether any living namespace has this number now: 1, 0, or -errno. It is free again at the moment
 * the namespace goes, and given to the next one. */
int netns_id_is_used(struct nl *nl, int32_t id);

/* Calls fn with each name that the namespace of nl has for another one; fn as in nl_query(). */
int netns_each_id(struct nl *nl, int (*fn)(int32_t id, void *arg), void *arg);

/* Opens the namespace this process is in. A descriptor, close-on-exec, or -1 with errno set. */
int netns_own_open(void);
