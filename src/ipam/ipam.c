#include "ipam/ipam.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "cni/args.h"

#include <string.h>

static bool parse(const char *text, struct ip_request *out)
{
	*out = (struct ip_request){.has_len = strchr(text, '/')};
	if (out->has_len)
		return prefix_parse(text, &out->address);
	if (!ip_parse(text, &out->address.ip))
		return false;
	out->address.len = ip_bits(&out->address.ip);
	return true;
}

static int push(struct ip_requests *out, const struct ip_request *r, struct err *e)
{
	struct ip_request *p;

	if (out->len == IPAM_ADDRESSES_MAX)
		return err_set(e, ERR_INVALID_CONFIG, "more than %d addresses", IPAM_ADDRESSES_MAX);
	p = vec_add(out->list, out->len);
	if (!p)
		return err_memory(e);
	*p = *r;
	return 0;
}

int ipam_read_ips(const json *parent, const char *where, struct ip_requests *out, struct err *e)
{
	const json *ips = NULL;

	if (json_get_array(parent, "ips", &ips, e))
		return err_wrap(e, "%s", where);
	for (size_t i = 0; i < json_len(ips); i++) {
		const char *text = json_str(json_at(ips, i));
		struct ip_request r;

		if (!text)
			return err_set(e, ERR_INVALID_CONFIG,
				"%s.ips[%zu]: expected a string, found %s", where, i,
				json_type_name(json_at(ips, i)));
		if (!*text)
			return err_set(e, ERR_INVALID_CONFIG, "cannot understand ip: \"\"");
		if (!parse(text, &r))
			return err_set(e, ERR_INVALID_CONFIG, "invalid IP address %s", text);
		if (push(out, &r, e))
			return -1;
	}
	return 0;
}

int ipam_read_args_ip(const struct request *req, struct ip_requests *out, struct err *e)
{
	static const char *const known[] = {"IP", NULL};
	char *values[1] = {NULL};
	autofree char *text = NULL;
	struct ip_request r;
	int ret = request_cni_args(req, known, values, e);

	text = values[0];
	if (ret)
		return -1;
	if (!text || !*text)
		return 0;
	if (!parse(text, &r))
		return err_set(e, ERR_INVALID_CONFIG,
			"ARGS: error parsing value of pair \"IP=%s\": invalid IP address %s", text,
			text);
	return push(out, &r, e);
}

int ipam_check_version(const char *version, size_t v4, size_t v6, struct err *e)
{
	int cmp;

	if (cni_version_cmp(version, "0.3.0", &cmp, e))
		return -1;
	if (cmp < 0 && (v4 > 1 || v6 > 1))
		return err_set(e, ERR_INVALID_CONFIG,
			"CNI version %s does not support more than 1 address per family", version);
	return 0;
}
