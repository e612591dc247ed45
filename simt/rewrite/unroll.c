/* unroll.c - which loops are unrolled, and how often. */
#include "unroll.h"

#include <ctype.h>
#include <stdio.h>

#include "options.h"
#include "parse.h"

/* g++ complains of the pragma, and no option silences it, where the condition has branches. */
static bool can_be_unrolled(int i) {
  if (!is(i, "for") || !opens(i + 1)) return false;
  for (int k = i + 1; k < tokens[i + 1].match; k++)
    if (is_one_of(k, "&& || ?")) return false;
  return true;
}

int unroll_pragma(const char *p) {
  p += strspn(p, " \t");
  if (!begins(p, "#pragma")) return 0;
  p += 7 + strspn(p + 7, " \t");
  if (begins(p, "nounroll")) return 1;
  if (!begins(p, "unroll")) return 0;
  p += 6 + strspn(p + 6, " \t(");
  long count = isdigit((unsigned char)*p) ? strtol(p, NULL, 10) : 32;
  return count > 64 ? 64 : count < 1 ? 1 : (int)count;
}

/* The value of a number, or of a constant of the program: const int N = 8. -1: not known. */
static long constant_value(int i) {
  if (is_kind(i, NUMBER)) return strtol(tokens[i].text, NULL, 0);
  for (int k = 0; is_identifier(i) && k + 2 < token_count; k++)
    if (is_same(k, i) && is(k + 1, "=") && is_kind(k + 2, NUMBER) && is_one_of(k + 3, "; , }") &&
        !is_one_of(k - 1, "( . ->"))
      return strtol(tokens[k + 2].text, NULL, 0);
  return -1;
}

/* How often `for (int i = A; i < B; i += C)` runs; what is not known, as a template's argument, counts as 8. */
static long trip_count(int i) {
  int open = i + 1, close = tokens[open].match, first = -1, bound = -1;
  long step = 1;
  for (int k = open; k < close; k++) {
    if (is(k, "=") && first < 0) first = k + 1;
    if (is_one_of(k, "< <=") && bound < 0) bound = k + 1;
    if (is(k, "+=")) step = constant_value(k + 1);
    if (is_one_of(k, "*= /= > >=")) return 8;
  }
  if (first < 0 || bound < 0 || !is(first + 1, ";") || !is(bound + 1, ";")) return 8;
  long from = constant_value(first), to = constant_value(bound);
  if (to < 0) from = 0, to = 8;
  to += is(bound - 1, "<=");
  if (from < 0 || to < from || step < 1) return 8;
  return (to - from + step - 1) / step;
}

/* Loops in loops, each with #pragma unroll, multiply: g++ takes a second for some 50000 tokens, and minutes for many.
 * The outer ones stay loops then. Gives the size in tokens of the unrolled loop at i. */
static double limit_unrolling(int i) {
  static const double limit = 150000;
  static int notes;
  int end = statement_end(i);
  double size = 0;
  tokens[i].sized = true;
  for (int k = i + 1; k < end; k++) {
    if (is(k, "for") && opens(k + 1)) {
      size += limit_unrolling(k);
      k = statement_end(k) - 1;
    } else {
      size++;
    }
  }
  if (tokens[i].unroll < 2) return size;
  long count = trip_count(i);
  if (count > tokens[i].unroll) count = tokens[i].unroll;
  if (size * (double)count <= limit) return size * (double)count;
  tokens[i].unroll = 0;
  if (notes++ == 0)
    fprintf(
        stderr,
        "%s:%d: note: simt: #pragma unroll is ignored for this loop: with the loops in it, it would become %.0f times "
        "as long as written and compile very slowly; --no-unroll leaves all loops as they are\n",
        tokens[i].file, tokens[i].line, size * (double)count / (end - i));
  return size;
}

void find_unrolled_loops(void) {
  for (int i = 1; i < token_count; i++) {
    if (!is(i, "for") || option_no_unroll || !can_be_unrolled(i)) continue;
    const char *p = tokens[i - 1].text + tokens[i - 1].length;
    for (; p && p < tokens[i].text; p = memchr(p, '\n', (size_t)(tokens[i].text - p)), p = p ? p + 1 : p) {
      int count = unroll_pragma(p);
      if (count) tokens[i].unroll = count;
    }
  }
  for (int i = 0; i < token_count; i++)
    if (is(i, "for") && opens(i + 1) && !tokens[i].sized) limit_unrolling(i);
}
