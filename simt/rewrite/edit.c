/* edit.c - leaves tokens out, replaces them, spells them. */
#include "edit.h"

void leave_out(int i) { tokens[i].left_out = true; }

void leave_out_between(int first, int end) {
  for (; first < end; first++) leave_out(first);
}

void replace(int i, const char *text) {
  leave_out(i);
  tokens[i].before.length = 0;
  appendf(&tokens[i].before, "%s", text);
}

char *spell(int first, int end) {
  Text text = {0};
  int depth = 0; /* of parentheses: a < there is an operator */
  append(&text, "", 0);
  for (int i = first; i < end; i++) {
    bool words = i > first && tokens[i - 1].kind != SYMBOL && tokens[i].kind != SYMBOL;
    bool tight = is(i, "::") || is(i - 1, "::") || (depth == 0 && (is_one_of(i, "< > , ) ]") || is(i - 1, "<")));
    if (i > first && (words || (!tight && !adjacent(i - 1)))) append(&text, " ", 1);
    append(&text, tokens[i].text, tokens[i].length);
    depth += is(i, "(") - is(i, ")");
  }
  return text.data;
}

char *quote(const char *string) {
  Text text = {0};
  append(&text, "\"", 1);
  for (; *string; string++) {
    if (*string == '"' || *string == '\\') append(&text, "\\", 1);
    append(&text, string, 1);
  }
  append(&text, "\"", 1);
  return text.data;
}
