#include "series.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct series {
	char table[64], row[64], unit[8];
	int side;
	double *v;
	int n;
};
static struct series *all;
static int series_count;
const char *side_names[SIDES];
int side_count;

void die(const char *what)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

void sample(const char *table, const char *row, const char *unit, int side, double v)
{
	struct series *s = NULL;

	for (int i = 0; i < series_count && !s; i++)
		if (all[i].side == side && !strcmp(all[i].row, row) && !strcmp(all[i].table, table))
			s = &all[i];
	if (!s) {
		all = realloc(all, (size_t)(series_count + 1) * sizeof(*all));
		s = &all[series_count++];
		memset(s, 0, sizeof(*s));
		snprintf(s->table, sizeof(s->table), "%s", table);
		snprintf(s->row, sizeof(s->row), "%s", row);
		snprintf(s->unit, sizeof(s->unit), "%s", unit);
		s->side = side;
	}
	s->v = realloc(s->v, (size_t)(s->n + 1) * sizeof(*s->v));
	s->v[s->n++] = v;
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(struct series *s, double q)
{
	double at = q * (s->n - 1);
	int i = (int)at;

	qsort(s->v, (size_t)s->n, sizeof(*s->v), order);
	return i + 1 < s->n ? s->v[i] + (at - i) * (s->v[i + 1] - s->v[i]) : s->v[i];
}

static struct series *find(const struct series *like, int side)
{
	for (int i = 0; i < series_count; i++)
		if (all[i].side == side && !strcmp(all[i].row, like->row) &&
			!strcmp(all[i].table, like->table))
			return &all[i];
	return NULL;
}

static void print_row(const struct series *first)
{
	double own = 0;

	printf("| %s |", first->row);
	for (int side = 0; side < side_count; side++) {
		struct series *s = find(first, side);
		double m = s ? quantile(s, 0.5) : 0;

		if (!s)
			printf(" |");
		else if (!strcmp(s->unit, "ms"))
			printf(" %.2f ms |", m);
		else
			printf(" %.0f%s%s |", m, *s->unit ? " " : "", s->unit);
		own = side ? own : m;
	}
	for (int side = 1; side < side_count; side++) {
		struct series *s = find(first, side);
		double m = s ? quantile(s, 0.5) : 0;

		if (!s || own <= 0)
			printf(" |");
		else
			printf(m / own < 9.95 ? " %.2f× |" : " %.1f× |", m / own);
	}
	puts("");
}

static bool seen_before(int i, bool row)
{
	for (int j = 0; j < i; j++)
		if (!strcmp(all[j].table, all[i].table) &&
			(!row || !strcmp(all[j].row, all[i].row)))
			return true;
	return false;
}

static void print_head(const char *table)
{
	printf("\n| %s |", table);
	for (int s = 0; s < side_count; s++)
		printf(" %s |", side_names[s]);
	for (int s = 1; s < side_count; s++)
		printf(" %s / %s |", side_names[s], side_names[0]);
	printf("\n|---|");
	for (int s = 0; s < 2 * side_count - 1; s++)
		printf("---:|");
	puts("");
}

/* A row is there once, whichever side has it. */
void print_tables(void)
{
	for (int i = 0; i < series_count; i++) {
		if (seen_before(i, false))
			continue;
		print_head(all[i].table);
		for (int j = i; j < series_count; j++)
			if (!strcmp(all[j].table, all[i].table) && !seen_before(j, true))
				print_row(&all[j]);
	}
}

void print_json(void)
{
	json_t *list = json_array();

	for (int i = 0; i < series_count; i++) {
		struct series *s = &all[i];

		json_array_append_new(
			list, json_pack("{ss ss ss ss si sf sf sf}", "table", s->table, "row",
				      s->row, "side", side_names[s->side], "unit", s->unit, "n",
				      s->n, "median", quantile(s, 0.5), "p10", quantile(s, 0.1),
				      "p90", quantile(s, 0.9)));
	}
	json_dumpf(list, stdout, JSON_INDENT(1));
	puts("");
	json_decref(list);
}
