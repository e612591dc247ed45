/* lex.c - reads preprocessed text: line markers, tokens, and which brackets belong together. */
#include "lex.h"

#include <ctype.h>

#include "headers.h"

Token *tokens;
int token_count;

typedef struct Place { /* as the last line marker says */
  const char *file;
  int line;
  bool system;           /* inside a system header; ours are among them: nothing to rewrite */
  const char *user_file; /* the last file that is not a system header */
  int depth;             /* of includes */
  int refused_depth;     /* of the refused header that we are in; 0: none */
} Place;

/* After the closing quote; at the end of the line where there is none. */
static const char *skip_quoted(const char *p) {
  char quote = *p++;
  while (*p && *p != quote && *p != '\n') p += *p == '\\' && p[1] ? 2 : 1;
  return *p == quote ? p + 1 : p;
}

/* p is at the number in: # 12 "file" flags. Flag 1: a file is entered, 2: left, 3: it is a system header. The text that
 * a system header's macro leaves in a student's line has flag 3 as well, but that line's file. */
static void read_line_marker(const char *p, Place *place) {
  char *end;
  int line = (int)strtol(p, &end, 10);
  if (end == p || end[0] != ' ' || end[1] != '"') return;
  const char *name = end + 2, *quote = skip_quoted(end + 1) - 1;
  bool enters = false, leaves = false, system = false;
  for (p = quote + 1; *p && *p != '\n'; p++) {
    if (*p == '1') enters = true;
    if (*p == '2') leaves = true;
    if (*p == '3') system = true;
  }
  size_t length = (size_t)(quote - name);
  if (!place->file || strlen(place->file) != length || memcmp(place->file, name, length) != 0) {
    char *file = need(strndup(name, length));
    if (enters && !place->refused_depth) {
      int before = errors;
      check_header(place->file, place->line, file, system);
      if (errors > before) place->refused_depth = place->depth + 1;
    }
    place->file = file;
  }
  place->depth += enters - leaves;
  if (place->depth < place->refused_depth) place->refused_depth = 0;
  place->line = line - 1; /* the end of the marker's line counts */
  place->system = (system && (enters || leaves || !place->user_file || strcmp(place->file, place->user_file) != 0)) ||
                  place->refused_depth;
  if (!place->system) place->user_file = place->file;
}

static bool starts_identifier(unsigned char c) { return isalpha(c) || c == '_' || c == '$' || c >= 0x80; }

/* R"delimiter( ... )delimiter"; p is at the quote. */
static const char *skip_raw_string(const char *p) {
  char closing[32] = ")";
  size_t length = strcspn(p + 1, "(");
  if (length > 16) return skip_quoted(p);
  memcpy(closing + 1, p + 1, length);
  closing[length + 1] = '"';
  const char *end = strstr(p + 1 + length, closing);
  return end ? end + length + 2 : p + strlen(p);
}

static const char *skip_number(const char *p) {
  while (isalnum((unsigned char)*p) || *p == '_' || *p == '.' || (*p == '\'' && isalnum((unsigned char)p[1])))
    p += strchr("eEpP", *p) && (p[1] == '+' || p[1] == '-') ? 2 : 1;
  return p;
}

/* Operators of more than one character, as far as that matters. '<' and '>' stay alone: they may be brackets. */
static size_t symbol_length(const char *p) {
  static const char *const longer[] = {"<=>", "...", "::", "->", "==", "!=", "<=", ">=", "+=", "-=",
                                       "*=",  "/=",  "%=", "&=", "|=", "^=", "&&", "||", NULL};
  for (int i = 0; longer[i]; i++)
    if (strncmp(p, longer[i], strlen(longer[i])) == 0) return strlen(longer[i]);
  return 1;
}

static void add_token(Kind kind, const char *text, const char *end, const Place *place) {
  static int capacity;
  if (token_count == 0) capacity = 0; /* a second text has its own array */
  if (token_count == capacity) {
    capacity = capacity ? 2 * capacity : 1 << 14;
    tokens = need(realloc(tokens, (size_t)capacity * sizeof *tokens));
  }
  tokens[token_count++] = (Token){.kind = kind,
                                  .text = text,
                                  .length = (size_t)(end - text),
                                  .file = place->file,
                                  .line = place->line,
                                  .match = -1,
                                  .parent = -1,
                                  .function = -1};
}

void tokenise(const char *p) {
  Place place = {.file = "<stdin>", .line = 1};
  bool at_line_start = true;
  tokens = NULL;
  token_count = 0;
  while (*p) {
    if (*p == '\n') {
      place.line++;
      at_line_start = true;
      p++;
    } else if (isspace((unsigned char)*p)) {
      p++;
    } else if (at_line_start && *p == '#') {
      const char *word = p + 1 + strspn(p + 1, " \t");
      if (isdigit((unsigned char)*word)) read_line_marker(word, &place);
      p += strcspn(p, "\n");
    } else if (place.system || (p[0] == '/' && p[1] == '/')) {
      p += strcspn(p, "\n");
    } else if (p[0] == '/' && p[1] == '*') {
      const char *end = strstr(p + 2, "*/");
      for (end = end ? end + 2 : p + strlen(p); p < end; p++) place.line += *p == '\n';
    } else {
      Kind kind = SYMBOL;
      const char *end = p;
      if (starts_identifier((unsigned char)*p)) {
        kind = IDENTIFIER;
        while (starts_identifier((unsigned char)*end) || isdigit((unsigned char)*end)) end++;
        if ((*end == '"' || *end == '\'') && end - p <= 3 && strspn(p, "LuU8R") == (size_t)(end - p)) {
          kind = STRING;
          end = end[-1] == 'R' && *end == '"' ? skip_raw_string(end) : skip_quoted(end);
        }
      } else if (isdigit((unsigned char)*p) || (*p == '.' && isdigit((unsigned char)p[1]))) {
        kind = NUMBER;
        end = skip_number(p);
      } else if (*p == '"' || *p == '\'') {
        kind = STRING;
        end = skip_quoted(p);
      } else {
        end = p + symbol_length(p);
      }
      add_token(kind, p, end, &place);
      for (at_line_start = false; p < end; p++) place.line += *p == '\n';
    }
  }
  add_token(END, p, p, &place);
}

void match_brackets(void) {
  int *open = need(malloc((size_t)token_count * sizeof *open)), depth = 0;
  for (int i = 0; i < token_count; i++) {
    tokens[i].parent = depth ? open[depth - 1] : -1;
    if (tokens[i].kind != SYMBOL || tokens[i].length != 1) continue;
    char c = *tokens[i].text;
    if (c == '(' || c == '[' || c == '{') open[depth++] = i;
    if (c != ')' && c != ']' && c != '}') continue;
    char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
    int level = depth; /* a bracket too many is the compiler's to report: the others are matched in spite of it */
    while (level > 0 && *tokens[open[level - 1]].text != wanted) level--;
    if (!level) continue;
    depth = level - 1;
    tokens[open[depth]].match = i;
    tokens[i].match = open[depth];
    tokens[i].parent = tokens[open[depth]].parent;
  }
  free(open);
}
