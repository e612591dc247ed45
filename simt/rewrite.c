/* rewrite.c - turns CUDA C++ into C++ that g++ compiles for the CPU.
 *
 *     g++ -E -x c++ -include cuda_runtime.h k.cu | rewrite > k.cpp
 *
 * It reads text that the preprocessor has been through. So a launch in a macro or in an included header is like any
 * other, and code that is switched off is never judged; the preprocessor's line markers (# 12 "k.cuh") say where each
 * token came from. What is not C++ is little:
 *
 *     kernel<<<grid, block>>>(x, n)       ::simt::kern("kernel", "k.cu", 12, [=](auto... a) { kernel(a...); })
 *                                             .cfg(grid, block).run(x, n)           (one line; include/simt/launch.h)
 *     __shared__ float tile[32];          static thread_local float tile[32];       a block runs on one OS thread
 *     extern __shared__ float s[];        float (&s)[] = *(float (*)[])simt_dynamic_shared();
 *     __device__ int count;               static int count, in a section of its own: host code is told from device data
 *     #pragma unroll 4                    #pragma GCC unroll 4
 *     __global__, __device__, ...         nothing
 *
 * A token is never moved: it is left out, replaced, or gets text before or after it, and the space between tokens is
 * written as it was read. Hence every line keeps its number, in the compiler's messages and in the debugger.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text that grows ---- */

typedef struct Text {
  char *data;
  size_t length, capacity;
} Text;

static void *need(void *memory) {
  if (!memory) {
    fprintf(stderr, "simt rewrite: out of memory\n");
    exit(1);
  }
  return memory;
}

static void append(Text *text, const char *data, size_t length) {
  if (text->length + length + 1 > text->capacity) {
    text->capacity = 2 * (text->length + length + 1);
    text->data = need(realloc(text->data, text->capacity));
  }
  memcpy(text->data + text->length, data, length);
  text->length += length;
  text->data[text->length] = 0;
}

__attribute__((format(printf, 2, 3))) static void appendf(Text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  char *data = need(malloc((size_t)length + 1));
  va_start(arguments, format);
  vsnprintf(data, (size_t)length + 1, format, arguments);
  va_end(arguments);
  append(text, data, (size_t)length);
  free(data);
}

/* ---- tokens ---- */

typedef enum Kind { IDENTIFIER, NUMBER, STRING, SYMBOL, END } Kind;

typedef struct Token {
  Kind kind;
  const char *text; /* in the input */
  size_t length;
  const char *file; /* as the line marker spells it: escaped */
  int line;
  int match; /* the bracket that belongs to this one, -1: none */
  bool left_out;
  Text before, after; /* the edit */
} Token;

static Token *tokens;
static int token_count;
static int errors;

static bool is(int i, const char *text) {
  if (i < 0 || i >= token_count) return false;
  return strlen(text) == tokens[i].length && memcmp(tokens[i].text, text, tokens[i].length) == 0;
}

static bool is_one_of(int i, const char *const *texts) {
  for (; *texts; texts++)
    if (is(i, *texts)) return true;
  return false;
}

static bool is_identifier(int i) { return i >= 0 && i < token_count && tokens[i].kind == IDENTIFIER; }

__attribute__((format(printf, 2, 3))) static void refuse(int i, const char *format, ...) {
  fprintf(stderr, "%s:%d: error: simt: ", tokens[i].file, tokens[i].line);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  errors++;
}

static Token *add_token(Kind kind, const char *text, size_t length, const char *file, int line) {
  static int capacity;
  if (token_count == capacity) {
    capacity = capacity ? 2 * capacity : 1 << 14;
    tokens = need(realloc(tokens, (size_t)capacity * sizeof *tokens));
  }
  Token *token = &tokens[token_count++];
  *token = (Token){.kind = kind, .text = text, .length = length, .file = file, .line = line, .match = -1};
  return token;
}

static bool starts_identifier(unsigned char c) { return isalpha(c) || c == '_' || c == '$' || c >= 0x80; }

/* After the closing quote; at the end of the line where there is none. */
static const char *skip_quoted(const char *p) {
  char quote = *p++;
  while (*p && *p != quote && *p != '\n') p += *p == '\\' && p[1] ? 2 : 1;
  return *p == quote ? p + 1 : p;
}

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

/* Operators of more than one character, as far as that matters: '<' and '>' are brackets and stay alone. */
static size_t symbol_length(const char *p) {
  static const char *const longer[] = {
      "<=>", "...", "::", "->", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", NULL};
  for (int i = 0; longer[i]; i++)
    if (strncmp(p, longer[i], strlen(longer[i])) == 0) return strlen(longer[i]);
  return 1;
}

/* Where we are, as the last line marker said. */
typedef struct Place {
  const char *file;
  int line;
  bool system;           /* inside a system header; ours are among them: nothing to rewrite */
  const char *user_file; /* the last file that is not a system header */
} Place;

/* # 12 "file" flags. A system header's macro that is used in a student's line also has flag 3, and that line's file. */
static void read_line_marker(const char *p, Place *place) {
  char *end;
  long line = strtol(p, &end, 10);
  if (end == p || end[0] != ' ' || end[1] != '"') return;
  const char *name = end + 2, *quote = skip_quoted(end + 1) - 1;
  if (!place->file || strlen(place->file) != (size_t)(quote - name) ||
      memcmp(place->file, name, (size_t)(quote - name)) != 0)
    place->file = need(strndup(name, (size_t)(quote - name)));
  bool moves = false, system = false;
  for (p = quote + 1; *p && *p != '\n'; p++) {
    if (*p == '1' || *p == '2') moves = true;
    if (*p == '3') system = true;
  }
  place->line = (int)line - 1; /* the end of the marker's line counts */
  place->system = system && (moves || !place->user_file || strcmp(place->file, place->user_file) != 0);
  if (!place->system) place->user_file = place->file;
}

static void tokenise(const char *p) {
  Place place = {.file = "<stdin>", .line = 1};
  bool at_line_start = true;
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
    } else if (place.system) {
      p += strcspn(p, "\n");
    } else if (p[0] == '/' && p[1] == '/') {
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
      add_token(kind, p, (size_t)(end - p), place.file, place.line);
      for (at_line_start = false; p < end; p++) place.line += *p == '\n';
    }
  }
  add_token(END, p, 0, place.file, place.line);
}

static void match_brackets(void) {
  int *open = need(malloc((size_t)token_count * sizeof *open)), depth = 0;
  for (int i = 0; i < token_count; i++) {
    if (tokens[i].kind != SYMBOL || tokens[i].length != 1) continue;
    char c = *tokens[i].text;
    if (c == '(' || c == '[' || c == '{') open[depth++] = i;
    if (c != ')' && c != ']' && c != '}') continue;
    char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
    /* An unbalanced bracket is the compiler's to report; keep the outer ones right. */
    int level = depth;
    while (level > 0 && *tokens[open[level - 1]].text != wanted) level--;
    if (!level) continue;
    depth = level - 1;
    tokens[open[depth]].match = i;
    tokens[i].match = open[depth];
  }
  free(open);
}

/* ---- edits ---- */

static void leave_out(int i) { tokens[i].left_out = true; }

static void leave_out_group(int i) { /* ( ... ) */
  for (int end = tokens[i].match; i <= end; i++) leave_out(i);
}

static void replace(int i, const char *text) {
  leave_out(i);
  tokens[i].before.length = 0;
  appendf(&tokens[i].before, "%s", text);
}

/* The tokens [first, end) on one line. */
static char *spell(int first, int end) {
  Text text = {0};
  append(&text, "", 0);
  for (int i = first; i < end; i++) {
    if (i > first && tokens[i - 1].text + tokens[i - 1].length != tokens[i].text) append(&text, " ", 1);
    append(&text, tokens[i].text, tokens[i].length);
  }
  return text.data;
}

static char *quote(const char *string) {
  Text text = {0};
  append(&text, "\"", 1);
  for (; *string; string++) {
    if (*string == '"' || *string == '\\') append(&text, "\\", 1);
    append(&text, string, 1);
  }
  append(&text, "\"", 1);
  return text.data;
}

/* ---- template arguments: which '<' is a bracket ---- */

static bool adjacent(int i) { return tokens[i].text + tokens[i].length == tokens[i + 1].text; }

/* i is at a '<'; gives its '>', or -1. A '<' inside is a bracket after a name, an operator elsewhere. */
static int angle_end(int i) {
  int depth = 0;
  for (; i < token_count; i++) {
    if (is(i, "<") && is(i + 1, "<") && adjacent(i))
      i++; /* a shift */
    else if (is(i, "<") && (depth == 0 || is_identifier(i - 1)))
      depth++;
    else if (is(i, ">") && --depth == 0)
      return i;
    else if (is(i, "(") || is(i, "[") || is(i, "{"))
      i = tokens[i].match >= 0 ? tokens[i].match : token_count;
    else if (is(i, ";") || is(i, ")") || is(i, "]") || is(i, "}"))
      return -1;
  }
  return -1;
}

/* i is at a '>'; gives its '<', or -1. */
static int angle_start(int i) {
  int depth = 0;
  for (; i >= 0; i--) {
    if (is(i, "<") && is(i - 1, "<") && adjacent(i - 1))
      i--;
    else if (is(i, ">"))
      depth++;
    else if (is(i, "<") && --depth == 0)
      return i;
    else if (is(i, ")") || is(i, "]") || is(i, "}"))
      i = tokens[i].match; /* -1 ends the search */
    else if (is(i, ";") || is(i, "(") || is(i, "[") || is(i, "{"))
      return -1;
  }
  return -1;
}

/* The end of the comma-separated piece that starts at i: its ',' or `end`. */
static int piece_end(int i, int end) {
  for (; i < end; i++) {
    if (is(i, ",")) return i;
    if ((is(i, "(") || is(i, "[") || is(i, "{")) && tokens[i].match >= 0) {
      i = tokens[i].match;
    } else if (is(i, "<") && is_identifier(i - 1)) {
      int close = angle_end(i);
      bool is_template = close >= 0 && close < end &&
                         (is(close + 1, "(") || is(close + 1, "::") || is(close + 1, "{") || is(close + 1, ",") ||
                          is(close + 1, "*") || is_identifier(close + 1) || close + 1 == end);
      if (is_template) i = close;
    }
  }
  return end;
}

/* ---- launches ---- */

static bool is_launch(int i) {
  return is(i, "<") && is(i + 1, "<") && is(i + 2, "<") && !is(i - 1, "operator") && !is(i - 1, "<");
}

static bool is_statement_word(int i) {
  static const char *const words[] = {"return", "else", "do", "case", "goto", "throw", "co_return", "co_yield", NULL};
  return is_one_of(i, words);
}

/* The first token of the expression that ends at `last`: k, ns::k<int>, kernels[i], (*k), object.k, choose(n), ... */
static int callee_start(int last) {
  int i = last;
  for (;;) {
    if (is(i, ">")) i = angle_start(i) - 1;
    if (i < 0) return -1;
    if (is(i, "]")) {
      i = tokens[i].match - 1;
      continue;
    }
    if (is(i, ")")) {
      static const char *const heads[] = {"if", "while", "for", "switch", "constexpr", NULL};
      int open = tokens[i].match, before = open - 1;
      if (open < 0) return -1;
      bool after_condition = is(before, ")") && is_one_of(tokens[before].match - 1, heads);
      bool is_call = (is_identifier(before) && !is_statement_word(before) && !is_one_of(before, heads)) ||
                     is(before, ">") || is(before, "]") || (is(before, ")") && !after_condition);
      if (!is_call) return open;
      i = before;
      continue;
    }
    if (!is_identifier(i) || is_statement_word(i)) return -1;
    if (is(i - 1, "template")) i--;
    if (is(i - 1, ".") || is(i - 1, "->")) {
      i -= 2;
      continue;
    }
    if (!is(i - 1, "::")) return i;
    if ((!is_identifier(i - 2) || is_statement_word(i - 2)) && !is(i - 2, ">")) return i - 1;
    i -= 2;
  }
}

/* The first '>' of the '>>>' that closes the launch: the last one before a '(' in the statement. */
static int configuration_end(int open) {
  int found = -1;
  for (int i = open + 3; i < token_count; i++) {
    if (is(i, ";") || is(i, ")") || is(i, "]") || is(i, "}") || is_launch(i)) break;
    if (is(i, ">") && is(i - 1, ">") && is(i - 2, ">") && is(i + 1, "(") && i - 2 >= open + 3) found = i - 2;
    if ((is(i, "(") || is(i, "[") || is(i, "{")) && tokens[i].match >= 0) i = tokens[i].match;
  }
  return found;
}

static bool in_function(int i);

/* Arguments that must stay in the call itself: 0 and NULL are numbers or pointers, {1, 2} is what the parameter is. */
static bool stays_in_call(int first, int end) {
  if (end - first == 1) return is(first, "0") || is(first, "__null");
  return is(first, "{") && tokens[first].match == end - 1;
}

static void rewrite_launch(int open) {
  int first = callee_start(open - 1), close = configuration_end(open);
  if (first < 0) {
    refuse(open, "there is no kernel's name before <<<");
    return;
  }
  if (close < 0) {
    refuse(open, "this <<< has no >>>(arguments) after it; a launch is kernel<<<grid, block>>>(arguments)");
    return;
  }
  int count = 0;
  for (int i = open + 3; i < close; i = piece_end(i, close) + 1) count++;
  if (count < 2 || count > 4) {
    refuse(open,
           "a launch is kernel<<<grid, block, shared bytes, stream>>>(arguments), the last two may be left out; "
           "here are %d",
           count);
    return;
  }
  int arguments = close + 3, end = tokens[arguments].match;
  if (end < 0) {
    refuse(open, "the launch's argument list is not closed");
    return;
  }

  Text parameters = {0}, call = {0};
  bool has_fixed = false, has_pack = false;
  int number = 0;
  for (int i = arguments + 1; i < end; number++) {
    int next = piece_end(i, end);
    if (is(next - 1, "...")) has_pack = true;
    if (stays_in_call(i, next)) {
      has_fixed = true;
      appendf(&parameters, "%sauto", number ? ", " : "");
      appendf(&call, "%s%s", number ? ", " : "", spell(i, next));
    } else {
      appendf(&parameters, "%sauto simt_%d", number ? ", " : "", number);
      appendf(&call, "%ssimt_%d", number ? ", " : "", number);
    }
    i = next + 1;
  }
  if (has_fixed && !has_pack) {
    for (int i = arguments + 1; i < end;) {
      int next = piece_end(i, end);
      if (stays_in_call(i, next)) {
        for (int k = i; k < next; k++) leave_out(k);
        appendf(&tokens[i].before, "::simt::literal_zero{}");
      }
      i = next + 1;
    }
  } else {
    parameters.length = call.length = 0;
    appendf(&parameters, "auto... simt_a");
    appendf(&call, "simt_a...");
  }

  Token *name = &tokens[first];
  appendf(&name->before, " ::simt::kern(%s, \"%s\", %d, [%s](%s) { ", quote(spell(first, open)), name->file, name->line,
          in_function(first) ? "=" : "", parameters.data);
  appendf(&tokens[open].before, "(%s); }).cfg(", call.data);
  appendf(&tokens[close].before, ").run");
  for (int i = 0; i < 3; i++) {
    leave_out(open + i);
    leave_out(close + i);
  }
}

/* ---- __shared__ ---- */

static int declaration_start(int i) {
  for (; i > 0; i--) {
    if (is(i - 1, ";") || is(i - 1, "{") || is(i - 1, "}") || (is(i - 1, ":") && !is(i - 2, ":"))) return i;
    if (is(i - 1, ")") && !is_one_of(tokens[i - 1].match - 1,
                                     (const char *const[]){"alignas", "__align__", "__attribute__", "_Alignas", NULL}))
      return i;
  }
  return i;
}

static int declaration_end(int i) {
  for (; i < token_count - 1 && !is(i, ";"); i++)
    if ((is(i, "(") || is(i, "[") || is(i, "{")) && tokens[i].match >= 0) i = tokens[i].match;
  return i;
}

/* alignas(16), __attribute__((aligned(16))): the end of it, or i where there is none. */
static int attribute_end(int i) {
  static const char *const words[] = {"alignas", "_Alignas", "__align__", "__attribute__", "__attribute", NULL};
  if (is_one_of(i, words) && is(i + 1, "(") && tokens[i + 1].match >= 0) return tokens[i + 1].match + 1;
  if (is(i, "[") && is(i + 1, "[") && tokens[i].match >= 0) return tokens[i].match + 1;
  return i;
}

/* The name that the declarator [first, end) declares: *a[4], (*a)[4], a = 3, a{3}. */
static int declared_name(int first, int end) {
  int name = -1;
  for (int i = first; i < end; i++) {
    if (is(i, "=") || is(i, "[") || is(i, "{")) break;
    if (is(i, "(") && name >= 0 && !is(i + 1, "*")) break;
    if (is(i, "<") && is_identifier(i - 1) && angle_end(i) > 0) i = angle_end(i);
    int skipped = attribute_end(i);
    if (skipped > i) {
      i = skipped - 1;
      continue;
    }
    if (is_identifier(i) && !is(i, "const") && !is(i, "volatile") && !is(i, "__restrict__")) name = i;
  }
  return name;
}

/* extern __shared__ T a[]: a reference to the block's dynamic shared memory, one for each declarator. */
static void rewrite_dynamic_shared(int start, int end) {
  int first = start;
  for (int i = start; i < end;) { /* qualifiers go; alignment too: the memory has 1024 bytes' */
    int skipped = attribute_end(i);
    if (skipped > i || is(i, "extern") || is(i, "__shared__") || is(i, "static")) {
      for (skipped = skipped > i ? skipped : i + 1; i < skipped; i++) leave_out(i);
    } else {
      i++;
    }
  }
  while (first < end && tokens[first].left_out) first++;
  int type_end = 0;
  char *type = NULL;
  for (int i = first; i < end;) {
    int next = piece_end(i, end), name = declared_name(i, next);
    if (name < 0) {
      refuse(i, "this `extern __shared__` declaration is not understood; write extern __shared__ type name[];");
      return;
    }
    int pointer = name;
    while (pointer > i && (is(pointer - 1, "*") || is(pointer - 1, "const") || is(pointer - 1, "volatile")) &&
           (is(pointer - 1, "*") || is(pointer - 2, "*")))
      pointer--;
    if (!type) {
      type_end = pointer;
      Text spelled = {0};
      for (int k = first; k < type_end; k++)
        if (!tokens[k].left_out) appendf(&spelled, "%.*s ", (int)tokens[k].length, tokens[k].text);
      type = spelled.data;
    }
    appendf(&tokens[name].before, "(&");
    appendf(&tokens[name].after, ")");
    appendf(&tokens[next - 1].after, " = *(%s%s(*)%s)simt_dynamic_shared()", type ? type : "", spell(pointer, name),
            spell(name + 1, next));
    i = next + 1;
  }
}

static void rewrite_shared(int at) {
  int start = declaration_start(at), end = declaration_end(at);
  bool is_static = false;
  for (int i = start; i < end && !is(i, "{"); i++) {
    if (is(i, "extern")) {
      rewrite_dynamic_shared(start, end);
      return;
    }
    if (is(i, "static")) is_static = true;
  }
  replace(at, is_static ? "thread_local" : "static thread_local");
  /* alignas is C++'s only in front of a declaration; CUDA takes it anywhere. */
  for (int i = start + 1; i < end && !is(i, "{"); i++) {
    if (!is(i, "alignas") || !is(i + 1, "(") || tokens[i + 1].match < 0) continue;
    char *alignment = spell(i, tokens[i + 1].match + 1);
    Text front = {0};
    appendf(&front, "%s %s", alignment, tokens[start].before.data ? tokens[start].before.data : "");
    tokens[start].before = front;
    leave_out(i);
    leave_out_group(i + 1);
  }
}

/* ---- the rest ---- */

static bool in_function(int i) {
  (void)i;
  return true;
}

static void rewrite_keyword(int i) {
  static const char *const vanish[] = {"__global__",  "__device__",        "__host__", "__constant__",
                                       "__managed__", "__grid_constant__", NULL};
  static const char *const vanish_with_arguments[] = {"__launch_bounds__", "__maxnreg__", "__cluster_dims__",
                                                      "__block_size__", NULL};
  if (is_one_of(i, vanish)) {
    leave_out(i);
  } else if (is_one_of(i, vanish_with_arguments) && is(i + 1, "(") && tokens[i + 1].match >= 0) {
    leave_out(i);
    leave_out_group(i + 1);
  } else if (is(i, "__forceinline__")) {
    bool is_inline = false;
    for (int k = declaration_start(i); !is(k, "(") && !is(k, ";") && !is(k, "{") && tokens[k].kind != END; k++)
      if (is(k, "inline") || is(k, "__inline__") || is(k, "__inline") || (k < i && is(k, "__forceinline__")))
        is_inline = true;
    replace(i, is_inline ? "__attribute__((always_inline))" : "inline __attribute__((always_inline))");
  } else if (is(i, "__noinline__")) { /* also a word inside __attribute__((..)) */
    if (!is(i - 1, "(") && !is(i - 1, ",")) replace(i, "__attribute__((noinline))");
  }
}

/* The space before token i, as it was read; #pragma unroll is the only thing in it to change. g++ takes its own form of
 * it only directly before a loop and with a number. */
static void write_space(FILE *out, const char *from, int i) {
  const char *end = tokens[i].text;
  while (from < end) {
    const char *line_end = memchr(from, '\n', (size_t)(end - from));
    line_end = line_end ? line_end + 1 : end;
    const char *p = from + strspn(from, " \t");
    if (strncmp(p, "#pragma", 7) == 0) {
      p += 7 + strspn(p + 7, " \t");
      bool none = strncmp(p, "nounroll", 8) == 0;
      if (none || strncmp(p, "unroll", 6) == 0) {
        p += none ? 8 : 6;
        p += strspn(p, " \t(");
        long count = none ? 1 : isdigit((unsigned char)*p) ? strtol(p, NULL, 10) : 32;
        if (count > 64) count = 64;
        if (is(i, "for") || is(i, "while") || is(i, "do")) fprintf(out, "#pragma GCC unroll %ld", count);
        from = line_end - (line_end[-1] == '\n');
      }
    }
    fwrite(from, 1, (size_t)(line_end - from), out);
    from = line_end;
  }
}

static void write_text(FILE *out, const char *input) {
  const char *from = input;
  for (int i = 0; i < token_count; i++) {
    Token *token = &tokens[i];
    write_space(out, from, i);
    if (token->before.length) fwrite(token->before.data, 1, token->before.length, out);
    if (!token->left_out) fwrite(token->text, 1, token->length, out);
    if (token->after.length) fwrite(token->after.data, 1, token->after.length, out);
    from = token->text + token->length;
  }
}

static char *read_all(FILE *in) {
  Text text = {0};
  char buffer[1 << 16];
  size_t length;
  append(&text, "", 0);
  while ((length = fread(buffer, 1, sizeof buffer, in)) > 0) append(&text, buffer, length);
  return text.data;
}

int main(int argc, char **argv) {
  FILE *in = argc > 1 ? fopen(argv[1], "r") : stdin;
  if (!in) {
    perror(argv[1]);
    return 2;
  }
  char *input = read_all(in);
  tokenise(input);
  match_brackets();
  for (int i = 0; i < token_count; i++) {
    if (is_launch(i)) {
      rewrite_launch(i);
      i += 2;
    } else if (is(i, "__shared__")) {
      rewrite_shared(i);
    } else if (tokens[i].kind == IDENTIFIER && tokens[i].length > 8 && strncmp(tokens[i].text, "__", 2) == 0) {
      rewrite_keyword(i);
    }
  }
  if (errors) return 1;
  write_text(stdout, input);
  return 0;
}
