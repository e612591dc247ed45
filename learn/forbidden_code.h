/* forbidden_code.h - lines that a grader does not compile: what no exercise needs, and what could leave its place.
 *
 *     const char *refused = forbidden_lines(lines, 40);  // NULL, or a sentence; the first is line 40 of its file
 *     const char *refused = forbidden_written(lines, 40, helpers, 20);  // of an exercise and its file's helpers
 *
 * A student's own check refuses the same, so that nobody is surprised.
 * It makes mischief cumbersome. What holds is the sandbox (process.h), and that the judge is another program (check.h):
 * whoever gets past these words still meets those.
 */
#ifndef LEARN_FORBIDDEN_CODE_H
#define LEARN_FORBIDDEN_CODE_H

#include "learn/exercise_region.h"

enum { FORBIDDEN_CODE_BYTES = 64 << 10 }; /* the longest exercise has 1 KB */

/* "#pragma unroll", "#pragma unroll 4", "#pragma unroll(N)": nothing that begins a string or a comment. */
static inline bool forbidden_allows_pragma(const char *line) {
  const char *pragma = line + 1 + strspn(line + 1, " \t");
  return starts_with(pragma, "pragma unroll") &&
         pragma[strspn(pragma, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_() \t")] == '\0';
}

/* Names of the harness, and names through which text reaches the assembler. */
static inline const char *forbidden_word(const char *word) {
  static const char *const harness[] = {"simt", "SIMT_", "lesson_", "learn_not", "__tsan", "__sanitizer"};
  static const char *const compiler[] = {"__attr", "_Pragma", "__pragma", "__declspec", "__REDIRECT", "__STRING"};
  for (size_t i = 0; i < sizeof harness / sizeof *harness; i++)
    if (starts_with(word, harness[i]))
      return keep_printf("%.40s: names that begin with %s belong to the harness", word, harness[i]);
  for (size_t i = 0; i < sizeof compiler / sizeof *compiler; i++)
    if (starts_with(word, compiler[i])) return keep_printf("%.40s is not allowed in an exercise", word);
  const char *letters = word + strspn(word, "_");
  if (starts_with(letters, "asm") && letters[3 + strspn(letters + 3, "_")] == '\0')
    return "inline assembler is not allowed in an exercise";
  return NULL;
}

/* What to write instead of a line of the preprocessor. */
static inline const char *forbidden_instead(const char *line) {
  const char *word = line + 1 + strspn(line + 1, " \t");
  if (starts_with(word, "define")) return "; write a constant or a function instead, in the place for helpers";
  if (starts_with(word, "include")) return "; what an exercise needs is included already";
  if (starts_with(word, "if") || starts_with(word, "el") || starts_with(word, "endif"))
    return "; put lines that you want to leave out into a comment";
  return "";
}

/* "line 42: ...", for what is at `at`, where the lines begin in line `first`. */
static inline const char *forbidden_in_line(const char *lines, const char *at, int first, const char *sentence) {
  for (const char *c = lines; c < at; c++) first += *c == '\n';
  return keep_printf("line %d: %s", first, sentence);
}

/* NULL, or a sentence; `first` is the number of the first of the lines in its file. */
static inline const char *forbidden_lines(const char *lines, int first) {
  if (strlen(lines) > FORBIDDEN_CODE_BYTES) return "these lines are longer than 64 KB: an exercise needs a few";
  const char *code = code_only(lines), *refused = code_brackets(lines), *raw = strstr(code, "R\"");
  if (raw != NULL) return forbidden_in_line(code, raw, first, "raw strings (R\"...\") are not allowed in an exercise");
  for (const char *c = lines; (c = strstr(c, "''")) != NULL; c++) /* compilers disagree on 1''2 */
    if (c == lines || c[-1] != '\\') return forbidden_in_line(lines, c, first, "'' is not allowed in an exercise");
  for (size_t at = 0, length = strlen(lines); at < length; at = line_end(lines, length, at))
    if (ends_with(keep_trimmed(lines, at, line_end(lines, length, at)), "\\")) /* in a comment it hides the next line */
      return forbidden_in_line(lines, lines + at, first, "a line that ends with \\ is not allowed in an exercise");
  if (refused != NULL) return refused;
  for (size_t at = 0, length = strlen(code); at < length; at = line_end(code, length, at)) {
    size_t end = line_end(code, length, at);
    const char *line = keep_trimmed(code, at, end), *says = NULL;
    if (strstr(line, "%:") != NULL || strstr(line, "<:") != NULL || strstr(line, "\?\?") != NULL)
      says = "digraphs and trigraphs for # and [ are not allowed in an exercise";
    else if (line[0] == '#' && !forbidden_allows_pragma(line))
      says = keep_printf("\"%.40s\": of the preprocessor only #pragma unroll is allowed in an exercise%s", line,
                         forbidden_instead(line));
    else if (line[0] != '#' && strchr(line, '#') != NULL)
      says = "a # in the middle of a line is not allowed in an exercise";
    if (says != NULL) return forbidden_in_line(code, code + at, first, says);
  }
  for (const char *c = code; *c != '\0';) {
    const char *end = code_word_end(c);
    if (*c == '[' && c[1 + strspn(c + 1, " \t\r\n\v\f")] == '[')
      refused = "attributes ([[...]]) are not allowed in an exercise; no exercise needs one, leave it out";
    else if (end > c)
      refused = forbidden_word(keep_bytes(c, (size_t)(end - c)));
    if (refused != NULL) return forbidden_in_line(code, c, first, refused);
    c = end > c ? end : c + 1;
  }
  return NULL;
}

/* Helpers stand at file scope, in a namespace without a name: what they define cannot take the place of a function of
 * the harness or of the C library, unless it is declared extern "C", or leaves the namespace. */
static inline const char *forbidden_helpers(const char *helpers, int first) {
  static const char *const words[] = {"extern", "namespace", "using"};
  const char *refused = forbidden_lines(helpers, first), *code = code_only(helpers);
  if (refused != NULL) return keep_printf("helpers: %s", refused);
  for (const char *c = code; *c != '\0';) {
    const char *end = code_word_end(c);
    for (size_t i = 0; end > c && i < sizeof words / sizeof *words; i++)
      if (strlen(words[i]) == (size_t)(end - c) && starts_with(c, words[i]))
        return keep_printf(
            "helpers: %s",
            forbidden_in_line(
                code, c, first,
                keep_printf("\"%s\" is not allowed there; write functions, constants and types", words[i])));
    c = end > c ? end : c + 1;
  }
  return NULL;
}

/* What a grader and a check refuse of what a student has written. NULL, or a sentence. */
static inline const char *forbidden_written(const char *lines, int first, const char *helpers, int helpers_first) {
  const char *refused = forbidden_lines(lines, first);
  return refused != NULL ? refused : forbidden_helpers(helpers, helpers_first);
}

#endif /* LEARN_FORBIDDEN_CODE_H */
