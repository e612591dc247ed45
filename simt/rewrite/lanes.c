/* lanes.c - warns of code that relies on the lanes of a warp running in step:
 *
 *     volatile float *s = ..;  s[t] += s[t + 32];  s[t] += s[t + 16];
 *
 * was right while a warp's lanes ran in step. Since compute capability 7.0 it needs __syncwarp(), and here, where one
 * thread runs after the other, the sums are wrong: a warning for each such function. */
#include "refuse.h"

#include <stdio.h>

#include "text.h"

static bool same_spelling(int i, int j, int count) {
  for (int k = 0; k < count; k++)
    if (tokens[i + k].length != tokens[j + k].length ||
        memcmp(tokens[i + k].text, tokens[j + k].text, tokens[i + k].length) != 0)
      return false;
  return true;
}

static bool meets_others(int first, int end) {
  for (int i = first; i < end; i++)
    if (is_identifier(i) && (begins(tokens[i].text, "__sync") || begins(tokens[i].text, "__shfl") ||
                             is_one_of(i, "sync wait arrive_and_wait else return __ballot_sync __reduce_add_sync")))
      return true;
  return false;
}

/* i is at s[t] = .. s[t + 8] ..: the offset's first token. -1: it is none such. */
static int neighbour_read(int i, const Names *names) {
  if (!is_identifier(i) || !is(i + 1, "[") || !opens(i + 1) || is_one_of(i - 1, ". ->") || !has_name(names, name_of(i)))
    return -1;
  int first = i + 2, close = tokens[i + 1].match, count = close - first, end = declaration_end(close);
  if (!is_one_of(close + 1, "= += -= *= |= &= ^=")) return -1;
  for (int k = close + 1; k < end; k++) {
    if (!is_same(k, i) || !is(k + 1, "[") || !opens(k + 1)) continue;
    int offset = k + 2 + count;
    if (offset < tokens[k + 1].match && is_one_of(offset, "+ - ^") && same_spelling(first, k + 2, count)) return offset;
  }
  return -1;
}

/* Is the statement repeated by a `for` whose variable is in the offset alone, and nobody waits for the others? */
static bool is_step_of_loop(const Item *function, int i, int offset) {
  for (int k = function->body; k < i; k++) {
    if (!is(k, "for") || !opens(k + 1) || statement_end(k) <= i || meets_others(k, statement_end(k))) continue;
    int variable = k + 2;
    while (variable < tokens[k + 1].match && !is(variable + 1, "=")) variable++;
    if (!is_identifier(variable)) continue;
    char *name = name_of(variable);
    bool in_index = false, in_offset = false;
    for (int t = i + 2; t < tokens[i + 1].match; t++) in_index = in_index || is(t, name);
    for (int t = offset; !is(t, "]"); t++) in_offset = in_offset || is(t, name);
    if (in_offset && !in_index) return true;
  }
  return false;
}

void check_lanes_in_step(const Item *function) {
  Names names = {0};
  for (int i = function->start; i < function->end; i++) {
    int name = -1;
    if (!is(i, "volatile")) continue;
    for (int k = i + 1; k < function->end && !is_one_of(k, "; , ) = [ { ("); k++)
      if (is_identifier(k)) name = k;
    if (name >= 0) add_name(&names, name_of(name));
  }
  if (!names.count) return;
  int before = -1;
  for (int i = function->body; i < function->end; i++) {
    int offset = neighbour_read(i, &names);
    if (offset < 0) continue;
    bool again = before >= 0 && is_same(before, i) && tokens[before + 1].match - before == tokens[i + 1].match - i &&
                 same_spelling(before, i, tokens[i + 1].match - i) && !meets_others(before, i);
    if (again || is_step_of_loop(function, i, offset)) {
      char *name = name_of(i), *who = function->name >= 0 ? name_of(function->name) : "a lambda";
      fprintf(
          stderr,
          "%s:%d: warning: simt: %s() relies on the lanes of a warp running in step: %s is volatile, and there is no "
          "__syncwarp() between the steps. Here threads run one after the other, and the result is wrong; on a GPU "
          "since compute capability 7.0 it may be. Put __syncwarp() between reading and writing, or use "
          "__shfl_down_sync()\n",
          tokens[i].file, tokens[i].line, who, name);
      return;
    }
    before = i;
  }
}
