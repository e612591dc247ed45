/* solution_leaks.h - does a solution stand elsewhere in what a student sees? In a twin for the CPU, in a kernel that
 * differs in one line, in a test: a search for a word of the task finds it there. The author then hides those lines:
 *
 *     // >>> hidden transpose_naive
 *     if (row < rows && col < cols) out[(size_t)col * rows + row] = in[(size_t)row * cols + col];
 *     // <<< hidden
 *
 * In a student's tree an #include stands in their place.
 */
#ifndef LEARN_SOLUTION_LEAKS_H
#define LEARN_SOLUTION_LEAKS_H

#include "learn/tree_cut.h"

/* Of a solution's words and signs 60 %, in per cent, and no less than 25 of them: an index and its comparison with n,
 * with which every kernel begins, have 24. One after the other anywhere, or in one place of the same file in pieces of
 * 16 and more: an index, the head of a loop, the call of a helper are shorter. */
enum { LEAKS_SHARE = 60, LEAKS_LEAST = 25, LEAKS_PIECE = 16 };

typedef struct Tokens {
  uint64_t *token; /* their hashes */
  int *line;
  int count, capacity;
} Tokens;

static inline void tokens_add(Tokens *tokens, const char *code, size_t length, int line) {
  if (tokens->count == tokens->capacity) {
    tokens->capacity = 2 * tokens->capacity + 256;
    tokens->token = (uint64_t *)realloc(tokens->token, (size_t)tokens->capacity * sizeof *tokens->token);
    tokens->line = (int *)realloc(tokens->line, (size_t)tokens->capacity * sizeof *tokens->line);
    if (tokens->token == NULL || tokens->line == NULL) die("out of memory");
  }
  tokens->token[tokens->count] = hash_of(HASH_BEGIN, code, length);
  tokens->line[tokens->count++] = line;
}

/* Words and signs; comments are none, nor are the brackets round a block, which one statement does without. */
static inline void tokens_read(Tokens *tokens, const char *bytes) {
  bool comment = false;
  int line = 0;
  memset(tokens, 0, sizeof *tokens);
  for (size_t at = 0, length = strlen(bytes); at < length;) {
    const size_t end = line_end(bytes, length, at);
    Text one = {0};
    text_append(&one, bytes + at, end - at);
    line++;
    for (const char *c = code_only_from(one.bytes, &comment); *c != '\0';) {
      const char *word = code_word_end(c), *next = word > c ? word : c + 1;
      if (!isspace((unsigned char)*c) && *c != '{' && *c != '}') tokens_add(tokens, c, (size_t)(next - c), line);
      c = next;
    }
    text_free(&one);
    at = end;
  }
}

static inline void tokens_free(Tokens *tokens) {
  free(tokens->token);
  free(tokens->line);
}

/* The longest run of `a` that stands in `b` too, if it has at least `least` tokens, else 0; *line is where. */
static inline int tokens_run(const Tokens *a, const Tokens *b, int least, int *line) {
  int best = 0;
  for (int i = 0; i + least <= a->count; i++) {
    for (int j = 0; j + least <= b->count; j++) {
      if (a->token[i] != b->token[j] || a->token[i + least - 1] != b->token[j + least - 1]) continue;
      int run = 1;
      while (i + run < a->count && j + run < b->count && a->token[i + run] == b->token[j + run]) run++;
      if (run < least || run <= best) continue;
      best = run;
      *line = b->line[j];
    }
  }
  return best;
}

/* How many tokens of `a` are in `b` from token `from` on, before `to`, in runs of at least LEAKS_PIECE; *line is where
 * the longest of them is. */
static inline int tokens_covered(const Tokens *a, const Tokens *b, int from, int to, int *line) {
  int covered = 0, longest = 0, end = 0; /* end: of the tokens of `a` that are counted already */
  for (int i = 0; i < a->count; i++) {
    for (int j = from; j < to; j++) {
      int run = 0;
      while (i + run < a->count && j + run < to && a->token[i + run] == b->token[j + run]) run++;
      if (run < LEAKS_PIECE || i + run <= end) continue;
      covered += i + run - (i > end ? i : end);
      end = i + run;
      if (run <= longest) continue;
      longest = run;
      *line = b->line[j];
    }
  }
  return covered;
}

/* The most of `a` that stands in `b` in pieces, in one place: in twice as many tokens as `a` has. */
static inline int tokens_pieces(const Tokens *a, const Tokens *b, int *line) {
  int most = 0, at = 0;
  for (int from = 0; from < b->count; from += a->count) {
    const int to = from + 2 * a->count < b->count ? from + 2 * a->count : b->count;
    const int covered = tokens_covered(a, b, from, to, &at);
    if (covered <= most) continue;
    most = covered;
    *line = at;
  }
  return most;
}

/* Where most of the exercise's solution stands elsewhere, "FILE:LINE (of a student's tree), N %"; NULL: nowhere. `seen`
 * are the files as a student sees them. */
static inline const char *leaks_elsewhere(const Source *source, const Tokens *seen, const Exercise *exercise) {
  Tokens solution;
  const char *where = NULL;
  int most = 0, line = 0;
  tokens_read(&solution, exercise->solution);
  int least = (LEAKS_SHARE * solution.count + 99) / 100;
  if (least < LEAKS_LEAST) least = LEAKS_LEAST;
  for (int i = 0; i < source->files && exercise->broken == NULL; i++) {
    int run = tokens_run(&solution, &seen[i], least, &line);
    const bool here = strcmp(source->file[i], exercise->file) == 0;
    if (run == 0 && here && solution.count >= least) run = tokens_pieces(&solution, &seen[i], &line);
    if (run < least || run <= most) continue;
    most = run;
    where = keep_printf("%s:%d (of a student's tree), %d %%", source->file[i], line, 100 * run / solution.count);
  }
  tokens_free(&solution);
  return where;
}

/* The code of the course as a student sees it, file by file. */
static inline Tokens *leaks_read(Source *source) {
  Tokens *seen = (Tokens *)xcalloc((size_t)source->files, sizeof *seen);
  for (int i = 0; i < source->files; i++) {
    const char *file = source->file[i];
    Text text = {0};
    if (!source_is_code(file) || cut_leaves_out(file) || strchr(file, '/') == NULL || starts_with(file, "simt/"))
      continue;
    if (text_read_file(&text, keep_printf("%s/%s", source->root, file), NULL) != 0) continue;
    const char *bytes = cut_hidden(file, text.bytes, NULL, NULL);
    if (bytes != NULL && cut_has_exercises(source, file)) bytes = cut_file(source, file, bytes);
    if (bytes != NULL) tokens_read(&seen[i], regions_hollow(bytes)); /* what an exercise begins with is its author's */
    text_free(&text);
  }
  return seen;
}

static inline void leaks_free(const Source *source, Tokens *seen) {
  for (int i = 0; i < source->files; i++) tokens_free(&seen[i]);
  free(seen);
}

#endif /* LEARN_SOLUTION_LEAKS_H */
