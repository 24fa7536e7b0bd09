/* The regular expressions of tuning's allowlist, held to Go's package regexp: regexp.vectors has
 * what that says. */
#include "check.h"
#include "tuning/regexp.h"

#include <stdlib.h>

static const char *const texts[] = {"net.core.somaxconn", "net/core/somaxconn",
	"net.ipv4.conf.IFNAME.arp_filter", "net.ipv4.conf.eth0.1.x", "a", "aa", "aaa", "b", "ab",
	"ba", "n", ".", "_", "x1", "1", "-", "^", "$", "]", "}", "{", "[", "\\", " ", "a b", "é",
	"aéb", "net.é", "A", "Z", "/", "::", "{,3}", "a{,3}", "net.a\nb", "net.", "\t", "", "a,b"};
#define TEXTS (sizeof(texts) / sizeof(texts[0]))

/* What regexp_compile() and regexp_matches() say, in the words of the vectors. */
static void answer(const char *expression, char out[static 64])
{
	struct err e = {0};
	regex_t re;
	size_t n = 0;

	if (regexp_compile(&re, expression, &e)) {
		CHECK_INT(e.code, ERR_INVALID_CONFIG);
		CHECK(strstr(e.msg, expression) != NULL);
		strcpy(out, e.details && strstr(e.details, "support") ? "unsupported" : "refused");
		err_clear(&e);
		return;
	}
	for (; n < TEXTS; n++)
		out[n] = regexp_matches(&re, texts[n], &e) == 1 ? '1' : '.';
	out[n] = '\0';
	CHECK(!e.set);
	regfree(&re);
}

static void test_vectors(void)
{
	FILE *f = fopen("regexp.vectors", "r");
	char line[256], got[64];
	int n = 0;

	if (!CHECK(f != NULL))
		return;
	while (fgets(line, sizeof(line), f)) {
		char *expression = strchr(line, ' ');

		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#' || !expression)
			continue;
		*expression++ = '\0';
		answer(expression, got);
		/* What neither takes may be refused in either word. */
		if (!strcmp(line, "refused") && !strcmp(got, "unsupported"))
			strcpy(got, line);
		if (!CHECK_STR(got, line))
			fprintf(stderr, "  for %s\n", expression);
		n++;
	}
	fclose(f);
	CHECK(n > 250);
}

/* Refusals say what it is that is not supported. */
static void test_words(void)
{
	static const char *const cases[][2] = {{"(?i)net", "`(?i`"}, {"x(?P<n>a)", "named groups"},
		{"a\\b", "word boundaries"}, {"\\1", "back references"},
		{"\\pL", "Unicode classes"}, {"(?=a)", "look-around"}, {"\\Qa\\E", "quoting"},
		{"\303\251", "not ASCII"}, {"a{256}", "`{256}`"}, {"(^)?", "anchor"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		regex_t re;

		CHECK_INT(regexp_compile(&re, cases[i][0], &e), -1);
		if (!CHECK(e.details && strstr(e.details, cases[i][1])))
			fprintf(stderr, "  %s: %s\n", cases[i][0], e.details);
		err_clear(&e);
	}
}

/* Expressions that could take for ever, or all memory, are refused or done in a moment. */
static void test_size(void)
{
	char *many = calloc(1, 20000), got[64];

	if (!CHECK(many != NULL))
		return;
	for (int i = 0; i < 2000; i++)
		strcat(many, "(a*)*");
	answer(many, got);
	CHECK_STR(got, "refused");
	memset(many, '(', 10000);
	many[10000] = '\0';
	answer(many, got);
	CHECK_STR(got, "refused");
	answer("((a{0,10}){0,10}){0,10}b$", got);
	answer("(a|b|[a-z]*){100}x{90}", got);
	answer("(((a{200}){200}){200}){200}", got);
	CHECK_STR(got, "refused");
	free(many);
}

int main(void)
{
	test_vectors();
	test_words();
	test_size();
	return check_done();
}
