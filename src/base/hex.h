/* Hexadecimal digits, of either case. */
#pragma once

/* The value of a digit, -1 when it is none. */
static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that the first two characters of a string stand for, -1 when they are no digits. */
static inline int hex_byte(const char *s)
{
	int high = hex_digit(s[0]), low = high < 0 ? -1 : hex_digit(s[1]);

	return low < 0 ? -1 : high << 4 | low;
}
