#include "result/result.h"

#include "base/cleanup.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

int result_set_str(char **slot, const char *value, struct err *e)
{
	char *copy = NULL;

	if (value && *value) {
		copy = strdup(value);
		if (!copy)
			return err_memory(e);
	}
	free(*slot);
	*slot = copy;
	return 0;
}

static void iface_clear(struct iface *i)
{
	free(i->name);
	free(i->mac);
	free(i->sandbox);
	free(i->socket_path);
	free(i->pci_id);
	json_free(i->extra);
}

struct iface *result_add_iface(
	struct result *r, const char *name, const char *mac, const char *sandbox, struct err *e)
{
	struct iface *p = vec_add(r->ifaces, r->ifaces_len);

	if (p)
		p->name = strdup(name);
	if (!p || !p->name)
		err_memory(e);
	if (p && p->name && !result_set_str(&p->mac, mac, e) &&
		!result_set_str(&p->sandbox, sandbox, e))
		return p;
	if (p)
		iface_clear(&r->ifaces[--r->ifaces_len]);
	return NULL;
}

void iface_set_mtu(struct iface *i, const char *version, uint32_t mtu)
{
	if (!strcmp(version, CNI_CURRENT))
		i->mtu = mtu;
}

struct ip_config *result_add_ip(struct result *r, const struct prefix *address, struct err *e)
{
	struct ip_config *p = vec_add(r->ips, r->ips_len);

	if (p)
		p->address = *address;
	else
		err_memory(e);
	return p;
}

struct route *result_add_route(struct result *r, const struct prefix *dst, struct err *e)
{
	struct route *p = vec_add(r->routes, r->routes_len);

	if (p)
		p->dst = *dst;
	else
		err_memory(e);
	return p;
}

static void strings_free(char **list)
{
	for (char **s = list; s && *s; s++)
		free(*s);
	free(list);
}

void dns_free(struct dns *dns)
{
	strings_free(dns->nameservers);
	free(dns->domain);
	strings_free(dns->search);
	strings_free(dns->options);
	json_free(dns->extra);
	*dns = (struct dns){0};
}

bool dns_empty(const struct dns *dns)
{
	return !(dns->nameservers && *dns->nameservers) && !dns->domain &&
	       !(dns->search && *dns->search) && !(dns->options && *dns->options) &&
	       !json_iter(dns->extra);
}

void result_drop_ifaces(struct result *r)
{
	for (size_t i = 0; i < r->ifaces_len; i++)
		iface_clear(&r->ifaces[i]);
	free(r->ifaces);
	r->ifaces = NULL;
	r->ifaces_len = 0;
}

void result_free(struct result *r)
{
	result_drop_ifaces(r);
	for (size_t i = 0; i < r->ips_len; i++)
		json_free(r->ips[i].extra);
	for (size_t i = 0; i < r->routes_len; i++)
		json_free(r->routes[i].extra);
	free(r->ips);
	free(r->routes);
	dns_free(&r->dns);
	json_free(r->extra);
	*r = (struct result){0};
}

static int copy_extra(json **dst, const json *src, struct err *e)
{
	if (!src)
		return 0;
	*dst = json_dup(src);
	return *dst ? 0 : err_memory(e);
}

static int copy_strings(char ***dst, char *const *src, struct err *e)
{
	size_t n = 0;

	if (!src)
		return 0;
	while (src[n])
		n++;
	*dst = calloc(n + 1, sizeof(**dst));
	if (!*dst)
		return err_memory(e);
	for (size_t i = 0; i < n; i++) {
		(*dst)[i] = strdup(src[i]);
		if (!(*dst)[i])
			return err_memory(e);
	}
	return 0;
}

static int copy_dns(struct dns *dst, const struct dns *src, struct err *e)
{
	if (copy_strings(&dst->nameservers, src->nameservers, e) < 0 ||
		result_set_str(&dst->domain, src->domain, e) < 0 ||
		copy_strings(&dst->search, src->search, e) < 0 ||
		copy_strings(&dst->options, src->options, e) < 0)
		return -1;
	return copy_extra(&dst->extra, src->extra, e);
}

static int copy_iface(struct result *r, const struct iface *src, struct err *e)
{
	struct iface *i = result_add_iface(r, src->name, src->mac, src->sandbox, e);

	if (!i || result_set_str(&i->socket_path, src->socket_path, e) < 0 ||
		result_set_str(&i->pci_id, src->pci_id, e) < 0)
		return -1;
	i->mtu = src->mtu;
	return copy_extra(&i->extra, src->extra, e);
}

static int copy_ip(struct result *r, const struct ip_config *src, struct err *e)
{
	struct ip_config *ip = result_add_ip(r, &src->address, e);

	if (!ip)
		return -1;
	*ip = *src;
	ip->extra = NULL;
	return copy_extra(&ip->extra, src->extra, e);
}

static int copy_route(struct result *r, const struct route *src, struct err *e)
{
	struct route *route = result_add_route(r, &src->dst, e);

	if (!route)
		return -1;
	*route = *src;
	route->extra = NULL;
	return copy_extra(&route->extra, src->extra, e);
}

int result_copy(struct result *dst, const struct result *src, struct err *e)
{
	autoresult copy = {0};

	for (size_t i = 0; i < src->ifaces_len; i++)
		if (copy_iface(&copy, &src->ifaces[i], e) < 0)
			return -1;
	for (size_t i = 0; i < src->ips_len; i++)
		if (copy_ip(&copy, &src->ips[i], e) < 0)
			return -1;
	for (size_t i = 0; i < src->routes_len; i++)
		if (copy_route(&copy, &src->routes[i], e) < 0)
			return -1;
	if (copy_dns(&copy.dns, &src->dns, e) < 0 || copy_extra(&copy.extra, src->extra, e) < 0)
		return -1;
	copy.is_shape_a = src->is_shape_a;
	*dst = copy;
	copy = (struct result){0};
	return 0;
}

/* Literally so: whatever a text loses or reorders is lost and reordered here. */
int result_convert(struct result *r, const char *version, struct err *e)
{
	struct result converted;
	autojson *doc = NULL;
	autobuf text = {0};

	if (result_write(r, version, &text, e) < 0)
		return -1;
	doc = json_parse(text.data, text.len, ERR_DECODE, e);
	if (!doc || result_read(&converted, doc, version, ERR_DECODE, e) < 0)
		return -1;
	result_free(r);
	*r = converted;
	return 0;
}

const struct iface *result_ip_iface(const struct result *r, size_t i)
{
	const struct ip_config *ip = &r->ips[i];

	if (!ip->has_iface || ip->iface < 0 || (uint64_t)ip->iface >= r->ifaces_len)
		return NULL;
	return &r->ifaces[ip->iface];
}

const struct iface *result_find_iface(const struct result *r, const char *name, const char *netns)
{
	for (size_t i = r->ifaces_len; i-- > 0;) {
		const struct iface *p = &r->ifaces[i];

		if (p->sandbox && !strcmp(p->name, name) && !strcmp(p->sandbox, netns))
			return p;
	}
	return NULL;
}
