/* Samples, and the tables made of them. */
#pragma once

#define SIDES 4

extern const char *side_names[SIDES];
extern int side_count;

/* Says what failed and why (errno), and ends everything. */
void die(const char *what) __attribute__((noreturn));

/* One measured value of a side, for a row of a table. */
void sample(const char *table, const char *row, const char *unit, int side, double v);

/* Everything that was sampled: medians for people; medians and percentiles as JSON. */
void print_tables(void);
void print_json(void);
