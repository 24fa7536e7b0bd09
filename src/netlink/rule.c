#include "netlink/rule.h"

#include "base/vec.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

/* ---- changing ---- */

static void put_prefix(struct nl_req *req, uint16_t attr, const struct prefix *p)
{
	struct ip network = prefix_network(p);

	if (p->len)
		nl_put_ip(req, attr, &network);
}

static void put_rule(struct nl_req *req, uint16_t type, uint16_t flags, const struct rule_spec *r)
{
	struct fib_rule_hdr *hdr = nl_msg(req, type, (uint16_t)(NLM_F_ACK | flags), sizeof(*hdr));

	hdr->family = r->family;
	hdr->src_len = r->src.len;
	hdr->dst_len = r->dst.len;
	hdr->table = r->table < 256 ? (uint8_t)r->table : RT_TABLE_UNSPEC;
	hdr->action = FR_ACT_TO_TBL;
	nl_put_u32(req, FRA_TABLE, r->table);
	put_prefix(req, FRA_SRC, &r->src);
	put_prefix(req, FRA_DST, &r->dst);
	if (r->priority)
		nl_put_u32(req, FRA_PRIORITY, r->priority);
}

void rule_put(struct nl_req *req, const struct rule_spec *r)
{
	put_rule(req, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, r);
}

void rule_put_del(struct nl_req *req, const struct rule_spec *r)
{
	put_rule(req, RTM_DELRULE, 0, r);
}

/* ---- reading ---- */

static int copy_rule(const struct nlmsghdr *msg, void *arg)
{
	const struct fib_rule_hdr *hdr = (const void *)((const char *)msg + NLMSG_HDRLEN);
	const struct nlattr *a[FRA_MAX + 1];
	struct rule_list *list = arg;
	struct rule_copy *copy;

	if (hdr->family != AF_INET && hdr->family != AF_INET6)
		return 0;
	nl_parse(msg, sizeof(*hdr), a, FRA_MAX);
	copy = vec_add(list->list, list->len);
	if (!copy)
		return -ENOMEM;
	copy->spec = (struct rule_spec){
		.family = hdr->family,
		.src = {.ip.family = hdr->family, .len = hdr->src_len},
		.dst = {.ip.family = hdr->family, .len = hdr->dst_len},
		.table = a[FRA_TABLE] ? nl_u32(a[FRA_TABLE]) : hdr->table,
		.priority = nl_u32(a[FRA_PRIORITY]),
	};
	nl_ip(a[FRA_SRC], hdr->family, &copy->spec.src.ip);
	nl_ip(a[FRA_DST], hdr->family, &copy->spec.dst.ip);
	copy->msg = malloc(msg->nlmsg_len);
	if (!copy->msg)
		return -ENOMEM;
	memcpy(copy->msg, msg, msg->nlmsg_len);
	return 0;
}

void rule_list_free(struct rule_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->list[i].msg);
	free(l->list);
	*l = (struct rule_list){0};
}

static void forget(void *arg)
{
	rule_list_free(arg);
}

int rule_list_get(struct nl *nl, uint8_t family, struct rule_list *out)
{
	autoreq req = {0};
	struct fib_rule_hdr *hdr;
	int ret;

	*out = (struct rule_list){0};
	hdr = nl_msg(&req, RTM_GETRULE, NLM_F_DUMP, sizeof(*hdr));
	hdr->family = family;
	ret = nl_query(nl, &req, copy_rule, forget, out);
	if (ret)
		rule_list_free(out);
	return ret;
}

/* ---- copies ---- */

static void put_copy(struct nl_req *req, uint16_t type, uint16_t flags, const struct rule_copy *r)
{
	const struct fib_rule_hdr *from = (const void *)((const char *)r->msg + NLMSG_HDRLEN);
	const struct nlattr *a[FRA_MAX + 1];
	struct fib_rule_hdr *hdr = nl_msg(req, type, (uint16_t)(NLM_F_ACK | flags), sizeof(*hdr));

	*hdr = *from;
	hdr->flags &= FIB_RULE_PERMANENT | FIB_RULE_INVERT;
	nl_parse(r->msg, sizeof(*from), a, FRA_MAX);
	for (uint16_t i = 1; i <= FRA_MAX; i++)
		if (a[i])
			nl_put(req, a[i]->nla_type, nl_data(a[i]), nl_len(a[i]));
}

void rule_put_del_copy(struct nl_req *req, const struct rule_copy *r)
{
	put_copy(req, RTM_DELRULE, 0, r);
}

void rule_put_copy(struct nl_req *req, const struct rule_copy *r)
{
	put_copy(req, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, r);
}
