#include "netlink/nftmap.h"

#include "netlink/nftpriv.h"

int nft_set_del_empty(struct nft *n, const struct nft_table *t, const char *set)
{
	int index = nft_message(n, NFT_MSG_DELSET, NLM_F_NONREC, t->family);

	nft_put_name(n, NFTA_SET_TABLE, t->name);
	nft_put_name(n, NFTA_SET_NAME, set);
	return index;
}

struct nl *nft_socket(struct nft *n)
{
	return n->nl;
}
