#include "attach/conf.h"

#include "base/cleanup.h"
#include "base/mac.h"
#include "cni/args.h"
#include "cni/delegate.h"

#include <linux/if_ether.h>
#include <string.h>

/* ---- MAC ---- */

static int mac_from_env(const struct request *req, char **text, struct err *e)
{
	static const char *const known[] = {"MAC", NULL};

	return request_cni_args(req, known, text, e);
}

/* The text of the first that is given, or NULL: *env is the one of CNI_ARGS. All are read, so that
 * a wrong type is refused wherever it is. */
static int choose_mac(
	const struct request *req, unsigned keys, const char *env, const char **text, struct err *e)
{
	const char *in_runtime = NULL, *in_args = NULL, *in_conf = NULL;
	const json *runtime, *args;

	if (request_runtime_config(req, &runtime, e) || request_args_cni(req, &args, e))
		return -1;
	if ((runtime && json_get_str(runtime, "mac", &in_runtime, e)) ||
		(args && json_get_str(args, "mac", &in_args, e)) ||
		(keys & KEY_MAC_CONF && json_get_str(req->conf, "mac", &in_conf, e)))
		return -1;
	const char *all[] = {in_runtime, in_args, env, in_conf};

	*text = NULL;
	for (size_t i = 0; i < array_len(all) && !*text; i++)
		*text = all[i] && *all[i] ? all[i] : NULL;
	return 0;
}

static int read_mac(struct attach_conf *c, const struct request *req, unsigned keys, struct err *e)
{
	autofree char *env = NULL;
	const char *text;

	if (keys & KEY_MAC_ENV && mac_from_env(req, &env, e))
		return -1;
	if (choose_mac(req, keys, env, &text, e))
		return -1;
	if (!text)
		return 0;
	if (!mac_parse(text, c->mac))
		return err_set(e, ERR_INVALID_CONFIG, "address %s: invalid MAC address", text);
	if (c->mac[0] & 1 || !memcmp(c->mac, (uint8_t[6]){0}, sizeof(c->mac)))
		return err_set(e, ERR_INVALID_CONFIG,
			"address %s: a multicast or zero address cannot be an interface's", text);
	c->has_mac = true;
	return 0;
}

/* ---- the others ---- */

static int read_mtu(struct attach_conf *c, const json *conf, struct err *e)
{
	int64_t mtu = 0;

	if (json_get_int(conf, "mtu", INT32_MIN, INT32_MAX, &mtu, e))
		return -1;
	if (mtu > 0 && (mtu < ETH_MIN_MTU || mtu > ETH_MAX_MTU))
		return err_set(e, ERR_INVALID_CONFIG, "mtu %lld: invalid argument, not %d to %d",
			(long long)mtu, ETH_MIN_MTU, ETH_MAX_MTU);
	c->mtu = mtu > 0 ? (uint32_t)mtu : 0;
	return 0;
}

/* ipMasqBackend chooses between tools that we do not need; it is checked and otherwise ignored. */
static int read_masq(struct attach_conf *c, const json *conf, struct err *e)
{
	const char *backend = NULL;

	if (json_get_bool(conf, "ipMasq", &c->ip_masq, e) ||
		json_get_str(conf, "ipMasqBackend", &backend, e))
		return -1;
	if (c->ip_masq && backend && strcmp(backend, "iptables") != 0 &&
		strcmp(backend, "nftables") != 0)
		return err_set(e, ERR_INVALID_CONFIG, "unknown ipmasq backend \"%s\"", backend);
	return 0;
}

/* The Go plugins replace IPAM's DNS as soon as one of the lists is there, even as []. */
static int read_dns(struct attach_conf *c, const json *conf, struct err *e)
{
	const json *dns = NULL;
	const char *domain = NULL;

	if (json_get_object(conf, "dns", &dns, e))
		return -1;
	if (!dns)
		return 0;
	if (result_read_dns(&c->dns, dns, ERR_INVALID_CONFIG, e) ||
		json_get_str(dns, "domain", &domain, e))
		return -1;
	c->has_dns = json_get(dns, "nameservers") || json_get(dns, "search") ||
		     json_get(dns, "options") || (domain && *domain);
	return 0;
}

static int read_master(struct attach_conf *c, const json *conf, unsigned keys, struct err *e)
{
	if (keys & KEY_MASTER && json_get_str(conf, "master", &c->master, e))
		return -1;
	if (c->master && !*c->master)
		c->master = NULL;
	return keys & KEY_INSIDE ? json_get_bool(conf, "linkInContainer", &c->inside, e) : 0;
}

int attach_conf_read(struct attach_conf *c, const struct request *req, unsigned keys, struct err *e)
{
	const json *conf = req->conf;

	*c = (struct attach_conf){0};
	if (delegate_ipam_type(req, &c->ipam, e) || read_dns(c, conf, e) ||
		read_master(c, conf, keys, e))
		return -1;
	if ((keys & KEY_MTU && read_mtu(c, conf, e)) || (keys & KEY_MASQ && read_masq(c, conf, e)))
		return -1;
	return keys & (KEY_MAC | KEY_MAC_ENV | KEY_MAC_CONF) ? read_mac(c, req, keys, e) : 0;
}

void attach_conf_free(struct attach_conf *c)
{
	dns_free(&c->dns);
	*c = (struct attach_conf){0};
}
