/* The reader follows Go's grammar (flags "Perl"); what it writes is a small part of POSIX extended
 * expressions, on which C libraries agree:
 *
 *   Go                              written
 *   . [a-f\d] \w \S [[:alpha:]]     [...] with every character spelled out
 *   a \. \x41 \n                    the character, with a backslash where it is an operator
 *   (x) (?:x)                       (x)
 *   ^ \A $ \z                       (^) ($)
 *   x* x+ x? x{2,3} and x*? ...     the same without the "?", which only says what matches first
 *
 * Whether a text matches is all that is asked, so greediness and which alternative wins do not
 * matter. */
#include "tuning/regexp.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 100 /* parentheses in parentheses; the C library recurses with them */
/* RE_DUP_MAX of POSIX, and all that musl knows. */
#define MAX_COUNT 255
/* What Go allows of counts within counts, multiplied: regexp/syntax, repeatIsValid(). */
#define MAX_REPEAT 1000
/* Positions of an expression with its counts written out: the C library copies what is repeated. */
#define MAX_SIZE 2000

/* Texts are UTF-8, the C library is asked about bytes: a character that is not ASCII becomes one
 * byte that is in no text. As no expression can name such a character, one byte does for all. A
 * line feed becomes another one: where one is in the text, glibc takes its place for a line's start
 * even when told not to. The third is in no text at all: it stands first in a bracket expression,
 * where "^" would mean something, and is the only member of a set of nothing. */
#define NOT_ASCII '\xff'
#define LINE_FEED '\xfd'
#define NEVER     '\xfe'

/* A character of an expression or a text as the C library sees it. */
static char byte_for(int c)
{
	return c == '\n' ? LINE_FEED : c >= 128 ? NOT_ASCII : (char)c;
}

/* A set of characters: has[c] of ASCII, has[128] of all others together. */
struct set {
	bool has[129];
};

/* What is known of a part of the expression. */
struct part {
	uint32_t size;   /* how large it becomes */
	uint32_t repeat; /* the product of the counts in it */
	bool empty;      /* it may match nothing at all ... */
	bool anchor;     /* ... where an anchor allows it */
};

struct reader {
	const char *all;
	const char *at;
	struct buf out;
	int depth;
	struct err *e;
};

/* Of ways to match nothing, musl takes the first and its anchor alone: "(^)?a" is "^a" there. */
#define ANCHOR "an anchor that is repeated or optional is not supported"

static int read_alternatives(struct reader *r, struct part *p);

/* `from` up to the reader's place is what is meant. */
static int refuse(const struct reader *r, const char *from, const char *why)
{
	err_set(r->e, ERR_INVALID_CONFIG, "invalid regular expression \"%s\"", r->all);
	return err_detail(r->e, "%s: `%.*s`", why, (int)(r->at - from), from);
}

/* A character of several bytes, the reader behind the first of them. */
static int refuse_foreign(struct reader *r, const char *from)
{
	while ((*r->at & 0xc0) == 0x80)
		r->at++;
	return refuse(r, from, "characters that are not ASCII are not supported");
}

static void put_char(struct reader *r, int c)
{
	char byte = byte_for(c);

	if (strchr("^.[$()|*+?{\\", c))
		buf_put(&r->out, "\\", 1);
	buf_put(&r->out, &byte, 1);
}

/* "]" is a member only as the first, "-" as the last, "^" and "[" anywhere but there and before
 * punctuation. */
static void put_set(struct reader *r, const struct set *s)
{
	static const char special[] = "][^-";
	char list[130] = "[";
	size_t n = 1;

	list[n++] = s->has[']'] ? ']' : NEVER;
	for (int c = 1; c < 128; c++)
		if (s->has[c] && !strchr(special, c))
			list[n++] = byte_for(c);
	if (s->has[128])
		list[n++] = NOT_ASCII;
	for (const char *c = special + 1; *c; c++)
		if (s->has[(unsigned char)*c])
			list[n++] = *c;
	list[n++] = ']';
	buf_put(&r->out, list, n);
}

static void invert(struct set *s)
{
	for (size_t i = 0; i < array_len(s->has); i++)
		s->has[i] = !s->has[i];
}

static void add_set(struct set *to, const struct set *s)
{
	for (size_t i = 0; i < array_len(s->has); i++)
		to->has[i] |= s->has[i];
}

/* ---- escapes ---- */

static int is_word(int c)
{
	return isalnum(c) || c == '_';
}

/* \s has no vertical tab, other than [[:space:]]. */
static int is_blank(int c)
{
	return c && strchr("\t\n\f\r ", c);
}

/* \d \w \s and their negations, the reader behind the backslash: adds the set and moves on. */
static bool read_class_escape(struct reader *r, struct set *to)
{
	static const struct {
		char letter;
		int (*is)(int c);
	} classes[] = {{'d', isdigit}, {'w', is_word}, {'s', is_blank}};
	struct set s = {0};

	for (size_t i = 0; i < array_len(classes); i++) {
		if (tolower((unsigned char)*r->at) != classes[i].letter)
			continue;
		for (int c = 0; c < 128; c++)
			s.has[c] = classes[i].is(c);
		if (*r->at != classes[i].letter)
			invert(&s);
		r->at++;
		add_set(to, &s);
		return true;
	}
	return false;
}

/* \x41 and \x{41}, the reader behind the x: the number, -1 when it is none. */
static int read_hex(struct reader *r)
{
	bool braces = *r->at == '{';
	int value = 0, digits = 0, d;

	if (braces)
		r->at++;
	while ((d = hex_digit(*r->at)) >= 0 && (braces ? value < 0x110000 : digits < 2)) {
		value = value * 16 + d;
		digits++;
		r->at++;
	}
	if (braces ? *r->at != '}' || !digits : digits != 2)
		return -1;
	r->at += braces;
	return value;
}

/* An escape that stands for one character, the reader at the backslash. Returns it, or -1 with e
 * set. */
static int read_escape(struct reader *r)
{
	static const char letters[] = "afnrtv", means[] = "\a\f\n\r\t\v";
	const char *from = r->at++, *letter;
	int c = (unsigned char)*r->at;

	if (!c)
		return refuse(r, from, "trailing backslash at end of expression");
	r->at++;
	letter = strchr(letters, c);
	if (letter)
		return means[letter - letters];
	if (c == 'x') {
		c = read_hex(r);
		if (c < 0)
			return refuse(r, from, "invalid escape sequence");
		return c > 0 && c < 128 ? c : refuse_foreign(r, from);
	}
	if (isdigit(c))
		return refuse(r, from, "back references and octal numbers are not supported");
	if (c == 'p' || c == 'P')
		return refuse(r, from, "Unicode classes are not supported");
	if (c == 'Q')
		return refuse(r, from, "quoting is not supported");
	/* C libraries have them, but do not agree on where a word ends. */
	if (c == 'b' || c == 'B')
		return refuse(r, from, "word boundaries are not supported");
	if (c >= 128)
		return refuse_foreign(r, from);
	return isalnum(c) ? refuse(r, from, "invalid escape sequence") : c;
}

/* ---- bracket expressions ---- */

/* [:alpha:] or [:^alpha:], the reader at its bracket. 1: read; 0: it is none; -1: there is no such
 * class. */
static int read_named_class(struct reader *r, struct set *to)
{
	static const struct {
		const char *name;
		int (*is)(int c);
	} classes[] = {{"alnum", isalnum}, {"alpha", isalpha}, {"ascii", isascii},
		{"blank", isblank}, {"cntrl", iscntrl}, {"digit", isdigit}, {"graph", isgraph},
		{"lower", islower}, {"print", isprint}, {"punct", ispunct}, {"space", isspace},
		{"upper", isupper}, {"word", is_word}, {"xdigit", isxdigit}};
	const char *from = r->at, *name, *end;
	struct set s = {0};
	bool negated;

	end = from[0] == '[' && from[1] == ':' ? strstr(from + 2, ":]") : NULL;
	if (!end)
		return 0;
	negated = from[2] == '^';
	name = from + 2 + negated;
	r->at = end + 2;
	for (size_t i = 0; i < array_len(classes); i++) {
		if (strlen(classes[i].name) != (size_t)(end - name) ||
			strncmp(classes[i].name, name, (size_t)(end - name)) != 0)
			continue;
		for (int c = 0; c < 128; c++)
			s.has[c] = classes[i].is(c);
		if (negated)
			invert(&s);
		add_set(to, &s);
		return 1;
	}
	return refuse(r, from, "invalid character class range");
}

/* One character in brackets, or -1 with e set. */
static int read_class_char(struct reader *r)
{
	const char *from = r->at;
	int c = (unsigned char)*from;

	if (c == '\\')
		return read_escape(r);
	if (!c)
		return refuse(r, r->all, "missing closing ]");
	r->at++;
	return c < 128 ? c : refuse_foreign(r, from);
}

static int read_range(struct reader *r, struct set *to)
{
	const char *from = r->at;
	int first = read_class_char(r), last = first;

	if (first < 0)
		return -1;
	if (r->at[0] == '-' && r->at[1] && r->at[1] != ']') {
		r->at++;
		last = read_class_char(r);
		if (last < 0)
			return -1;
		if (last < first)
			return refuse(r, from, "invalid character class range");
	}
	for (int c = first; c <= last; c++)
		to->has[c] = true;
	return 0;
}

/* The reader at the bracket. A "]" right behind it, or behind its "^", is a member. */
static int read_brackets(struct reader *r)
{
	bool negated = r->at[1] == '^';
	struct set s = {0};
	int ret;

	r->at += 1 + negated;
	for (bool first = true; *r->at != ']' || first; first = false) {
		ret = read_named_class(r, &s);
		if (ret < 0)
			return -1;
		if (ret)
			continue;
		if (r->at[0] == '\\' && strchr("dwsDWS", r->at[1]) && r->at[1]) {
			r->at++;
			read_class_escape(r, &s);
			continue;
		}
		if (read_range(r, &s))
			return -1;
	}
	r->at++;
	if (negated)
		invert(&s);
	put_set(r, &s);
	return 0;
}

/* ---- repetition ---- */

/* Go's numbers in braces have no leading zeros. Too large a one is cut at a value that is too large
 * as well. */
static bool read_number(const char **at, unsigned *out)
{
	const char *p = *at;

	if (!isdigit((unsigned char)*p) || (*p == '0' && isdigit((unsigned char)p[1])))
		return false;
	for (*out = 0; isdigit((unsigned char)*p); p++)
		if (*out < 100000)
			*out = *out * 10 + (unsigned)(*p - '0');
	*at = p;
	return true;
}

struct count {
	unsigned min, max;
	bool open; /* no max */
};

/* {2}, {2,} or {2,3}; anything else is a brace and what follows it, {,3} included. NULL then, else
 * its end. */
static const char *read_count(const char *p, struct count *n)
{
	*n = (struct count){0};
	if (*p++ != '{' || !read_number(&p, &n->min))
		return NULL;
	n->max = n->min;
	if (*p == ',') {
		p++;
		n->open = *p == '}';
		if (!n->open && !read_number(&p, &n->max))
			return NULL;
	}
	return *p == '}' ? p + 1 : NULL;
}

static bool is_repetition(const char *p)
{
	struct count n;

	return *p == '*' || *p == '+' || *p == '?' || read_count(p, &n);
}

static int read_braces(struct reader *r, const char *end, const struct count *n, struct part *p)
{
	const char *from = r->at;

	r->at = end;
	if (n->max < n->min)
		return refuse(r, from, "invalid repeat count");
	if (n->max > MAX_COUNT)
		return refuse(r, from, "a repeat count above 255 is not supported");
	/* Counts of 0 and 1 multiply nothing. */
	if (n->max > 1 && n->max * p->repeat > MAX_REPEAT)
		return refuse(r, from, "repeat counts multiply to more than 1000");
	p->repeat *= n->max > 1 ? n->max : 1;
	p->size *= n->max > 1 ? n->max : 1;
	buf_put(&r->out, from, (size_t)(end - from));
	return 0;
}

/* What may follow an element. */
static int read_repetition(struct reader *r, struct part *p)
{
	const char *from = r->at, *end;
	struct count n;

	if (!is_repetition(r->at))
		return 0;
	end = read_count(r->at, &n);
	if (p->anchor) {
		r->at = end ? end : r->at + 1;
		return refuse(r, from, ANCHOR);
	}
	if (end) {
		if (read_braces(r, end, &n, p))
			return -1;
	} else {
		buf_put(&r->out, r->at++, 1);
	}
	p->empty |= *from == '*' || *from == '?' || (end && !n.min);
	if (*r->at == '?')
		r->at++;
	if (!is_repetition(r->at))
		return 0;
	r->at++;
	return refuse(r, from, "invalid nested repetition operator");
}

/* ---- elements ---- */

static int read_group(struct reader *r, struct part *p)
{
	const char *from = r->at++;

	if (*r->at == '?') {
		r->at++;
		if (*r->at != ':') {
			r->at += strcspn(r->at, ":)");
			return refuse(
				r, from, "flags, named groups and look-around are not supported");
		}
		r->at++;
	}
	if (++r->depth > MAX_DEPTH)
		return refuse(r, from, "expression nests too deeply");
	buf_puts(&r->out, "(");
	if (read_alternatives(r, p))
		return -1;
	if (*r->at != ')')
		return refuse(r, r->all, "missing closing )");
	r->at++;
	r->depth--;
	buf_puts(&r->out, ")");
	return 0;
}

/* The reader at a backslash, outside of brackets. */
static int read_backslash(struct reader *r, struct part *p)
{
	struct set s = {0};
	int c;

	if (r->at[1] == 'A' || r->at[1] == 'z') {
		p->empty = p->anchor = true;
		buf_puts(&r->out, r->at[1] == 'A' ? "(^)" : "($)");
		r->at += 2;
		return 0;
	}
	r->at++;
	if (read_class_escape(r, &s)) {
		put_set(r, &s);
		return 0;
	}
	r->at--;
	c = read_escape(r);
	if (c < 0)
		return -1;
	put_char(r, c);
	return 0;
}

static int read_element(struct reader *r, struct part *p)
{
	const char *from = r->at;
	struct set line = {0};

	*p = (struct part){.size = 1, .repeat = 1};
	if (is_repetition(from)) {
		r->at++;
		return refuse(r, from, "missing argument to repetition operator");
	}
	switch (*from) {
	case '(': return read_group(r, p);
	case '[': return read_brackets(r);
	case '\\': return read_backslash(r, p);
	case '^':
	case '$':
		p->empty = p->anchor = true;
		buf_printf(&r->out, "(%c)", *r->at++);
		return 0;
	case '.':
		line.has['\n'] = true;
		invert(&line);
		put_set(r, &line);
		r->at++;
		return 0;
	default: break;
	}
	r->at++;
	if ((unsigned char)*from >= 128)
		return refuse_foreign(r, from);
	put_char(r, *from);
	return 0;
}

/* Elements up to the next "|", a closing parenthesis or the end. */
static int read_sequence(struct reader *r, struct part *p)
{
	*p = (struct part){.size = 1, .repeat = 1, .empty = true};
	while (*r->at && *r->at != ')' && *r->at != '|') {
		struct part one;

		if (read_element(r, &one) || read_repetition(r, &one))
			return -1;
		p->size += one.size;
		p->repeat = one.repeat > p->repeat ? one.repeat : p->repeat;
		p->empty &= one.empty;
		p->anchor |= one.anchor;
		if (p->size > MAX_SIZE)
			return refuse(r, r->all, "expression too large");
	}
	p->anchor &= p->empty;
	return 0;
}

/* Up to a closing parenthesis or the end. Empty alternatives stay empty: they match. */
static int read_alternatives(struct reader *r, struct part *p)
{
	const char *from = r->at;

	if (read_sequence(r, p))
		return -1;
	while (*r->at == '|') {
		struct part one;
		bool both;

		buf_put(&r->out, r->at++, 1);
		if (read_sequence(r, &one))
			return -1;
		both = p->empty && one.empty;
		p->size += one.size;
		p->repeat = one.repeat > p->repeat ? one.repeat : p->repeat;
		p->empty |= one.empty;
		p->anchor |= one.anchor;
		if (p->size > MAX_SIZE)
			return refuse(r, r->all, "expression too large");
		if (both && p->anchor)
			return refuse(r, from, ANCHOR);
	}
	return 0;
}

int regexp_compile(regex_t *re, const char *expression, struct err *e)
{
	struct reader r = {.all = expression, .at = expression, .e = e};
	struct part whole;
	char why[128];
	int ret = read_alternatives(&r, &whole);

	if (!ret && *r.at) {
		r.at++;
		ret = refuse(&r, r.all, "unexpected )");
	}
	buf_puts(&r.out, "");
	if (!ret && r.out.failed)
		ret = err_memory(e);
	if (!ret)
		ret = regcomp(re, r.out.data, REG_EXTENDED | REG_NOSUB);
	if (ret > 0) {
		regerror(ret, re, why, sizeof(why));
		err_set(e, ERR_INVALID_CONFIG, "invalid regular expression \"%s\"", expression);
		ret = err_detail(e, "%s", why);
	}
	buf_free(&r.out);
	return ret;
}

int regexp_matches(const regex_t *re, const char *text, struct err *e)
{
	autofree char *bytes = strdup(text);
	char *to = bytes;
	int ret;

	if (!bytes)
		return err_memory(e);
	for (const char *from = text; *from; from++) {
		if ((*from & 0xc0) == 0x80)
			continue; /* belongs to the character before */
		*to++ = byte_for((unsigned char)*from);
	}
	*to = '\0';
	ret = regexec(re, bytes, 0, NULL, 0);
	return !ret ? 1 : ret == REG_NOMATCH ? 0 : err_memory(e);
}
