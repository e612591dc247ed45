/* lex.h - tokens of the preprocessed text, each with its place in the source.
 *
 * A token is never moved: it is left out, replaced, or gets text before or after it, and the space between tokens is
 * written as it was read. Hence every line keeps its number, in the compiler's messages and in the debugger. */
#ifndef SIMT_REWRITE_LEX_H
#define SIMT_REWRITE_LEX_H

#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "text.h"

typedef enum Kind { IDENTIFIER, NUMBER, STRING, SYMBOL, END } Kind;

typedef struct Token {
  Kind kind;
  const char *text; /* in the input */
  size_t length;
  const char *file; /* as the line marker spells it: escaped */
  int line;
  int match;          /* a bracket's other half; -1: none */
  int parent;         /* the bracket that is open around this token; -1: none */
  bool is_scope;      /* the { of a namespace or class */
  int function;       /* the { of the function items[function]; -1: it is none */
  int unroll;         /* of a `for` with #pragma unroll: how many copies at most; 0: has none */
  bool sized;         /* a `for` that limit_unrolling() has seen */
  bool left_out;      /* an edit: it is not written */
  Text before, after; /* edits: text around it, or in its place */
} Token;

extern Token *tokens;
extern int token_count;

static inline bool is(int i, const char *text) {
  if (i < 0 || i >= token_count) return false;
  return strlen(text) == tokens[i].length && memcmp(tokens[i].text, text, tokens[i].length) == 0;
}

/* Are tokens i and k the same word? */
static inline bool is_same(int i, int k) {
  if (i < 0 || i >= token_count) return false;
  return tokens[i].length == tokens[k].length && memcmp(tokens[i].text, tokens[k].text, tokens[k].length) == 0;
}

/* Is token i one of these words, which stand between single spaces? */
static inline bool is_one_of(int i, const char *words) {
  if (i < 0 || i >= token_count || tokens[i].kind == STRING) return false;
  return is_among(tokens[i].text, tokens[i].length, words);
}

static inline bool is_kind(int i, Kind kind) { return i >= 0 && i < token_count && tokens[i].kind == kind; }
static inline bool is_identifier(int i) { return is_kind(i, IDENTIFIER); }
static inline bool opens(int i) { return (is(i, "(") || is(i, "[") || is(i, "{")) && tokens[i].match >= 0; }
static inline bool adjacent(int i) { return tokens[i].text + tokens[i].length == tokens[i + 1].text; }

static inline char *name_of(int i) { return need(strndup(tokens[i].text, tokens[i].length)); }

#define refuse(i, ...) refuse_at(tokens[i].file, tokens[i].line, __VA_ARGS__)

/* Makes `tokens` of the text. Code of system headers, simt's among them, gives none. */
void tokenise(const char *text);
/* Sets `match` and `parent` of each. */
void match_brackets(void);

#endif /* SIMT_REWRITE_LEX_H */
