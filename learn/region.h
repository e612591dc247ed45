/* region.h - the lines of a source file that a student writes.
 *
 * In the course's own source the solution stands between two markers, after the hints:
 *
 *     // >>> exercise vector_add_index: find this thread's element and add it
 *     // hint: ...
 *     size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
 *     if (i < n) c[i] = a[i] + b[i];
 *     // <<< exercise
 *
 * In a student's tree the solution is out of sight, and its place is the student's:
 *
 *     // >>> exercise vector_add_index: find this thread's element and add it
 *   #if !MINE(vector_add_index)  // ...
 *   #include ".learn/reference/vector_add_index.cuh"
 *   #else
 *     TODO(vector_add_index);
 *   #endif
 *     // <<< exercise
 *
 * regions_find() reads both. A region that is damaged has a `problem`, one sentence; the others can be used.
 */
#ifndef LEARN_REGION_H
#define LEARN_REGION_H

#include "learn/text.h"

enum { REGION_HINTS = 8, REGIONS_MAX = 64, REGION_LINES = 512 };

typedef struct Region {
  const char *name, *task;
  const char *hint[REGION_HINTS];
  int hints;
  int line;                    /* of the opening marker; the first of a file is 1 */
  int body_line;               /* of the first line of the body */
  size_t begin, end;           /* bytes, with both markers */
  size_t body_begin, body_end; /* whole lines: what the student writes, or hints and solution */
  bool cut;                    /* as in a student's tree */
  const char *problem;         /* NULL: all is well */
} Region;

typedef struct Regions {
  Region item[REGIONS_MAX];
  int count;
  const char *problem; /* of the file as a whole */
} Regions;

static const char region_open[] = "// >>> exercise", region_close[] = "// <<< exercise", region_hint[] = "// hint:";

/* The line without white space before it, if it starts with the prefix; else NULL. */
static inline const char *line_starts(const char *bytes, size_t begin, size_t end, const char *prefix) {
  while (begin < end && (bytes[begin] == ' ' || bytes[begin] == '\t')) begin++;
  size_t length = strlen(prefix);
  return end - begin >= length && memcmp(bytes + begin, prefix, length) == 0 ? bytes + begin : NULL;
}

/* "// >>> exercise NAME: TASK" */
static inline void region_read_marker(Region *region, const char *bytes, size_t begin, size_t end) {
  const char *at = line_starts(bytes, begin, end, region_open) + strlen(region_open), *stop = bytes + end;
  while (at < stop && *at == ' ') at++;
  const char *name = at;
  while (at < stop && (islower((unsigned char)*at) || isdigit((unsigned char)*at) || *at == '_')) at++;
  region->name = keep_bytes(name, (size_t)(at - name));
  if (at == name || at == stop || *at != ':')
    region->problem =
        keep_printf("line %d: expected \"%s NAME: what to do\", the name in a-z, 0-9 and _", region->line, region_open);
  else
    region->task = keep_trimmed(bytes, (size_t)(at + 1 - bytes), end);
}

/* Inside the markers: what the cutter put there, or the hints. `start` has the offsets of the lines between them. */
static inline void region_read_inside(Region *region, const char *bytes, const size_t *start, int lines) {
  region->body_begin = start[0];
  region->body_end = start[lines];
  region->body_line = region->line + 1;
  if (lines > 0 && line_starts(bytes, start[0], start[1], "#if !MINE(") != NULL) {
    region->cut = true;
    const char *include = keep_printf("#include \".learn/reference/%s.cuh\"", region->name);
    if (lines < 4 || line_starts(bytes, start[1], start[2], include) == NULL ||
        line_starts(bytes, start[2], start[3], "#else") == NULL ||
        line_starts(bytes, start[lines - 1], start[lines], "#endif") == NULL) {
      region->problem = keep_printf("line %d: the lines #if, #include, #else and #endif around your code were changed",
                                    region->line + 1);
      return;
    }
    region->body_begin = start[3];
    region->body_end = start[lines - 1];
    region->body_line = region->line + 4;
  }
  for (int i = 0; i < lines && !region->cut; i++) {
    if (line_starts(bytes, start[i], start[i + 1], region_hint) == NULL) continue;
    if (region->hints == REGION_HINTS) {
      region->problem = keep_printf("line %d: more than %d hints", region->line + 1 + i, REGION_HINTS);
      return;
    }
    const char *text = line_starts(bytes, start[i], start[i + 1], region_hint) + strlen(region_hint);
    region->hint[region->hints++] = keep_trimmed(bytes, (size_t)(text - bytes), start[i + 1]);
  }
}

static inline void regions_find(const char *bytes, size_t length, Regions *regions) {
  size_t start[REGION_LINES + 1];
  Region *open = NULL;
  int number = 0, lines = 0;
  memset(regions, 0, sizeof *regions);
  for (size_t at = 0; at < length;) {
    size_t end = line_end(bytes, length, at);
    number++;
    if (line_starts(bytes, at, end, region_open) != NULL) {
      if (open != NULL) open->problem = keep_printf("its end, \"%s\", is missing before line %d", region_close, number);
      if (regions->count == REGIONS_MAX) {
        regions->problem = keep_printf("line %d: more than %d exercises in a file", number, REGIONS_MAX);
        return;
      }
      open = &regions->item[regions->count++];
      open->line = number;
      open->begin = at;
      open->end = end;
      lines = 0;
      start[0] = end;
      region_read_marker(open, bytes, at, end);
    } else if (line_starts(bytes, at, end, region_close) != NULL) {
      if (open == NULL) {
        regions->problem =
            keep_printf("line %d: \"%s\" without a beginning, \"%s NAME: ...\"", number, region_close, region_open);
      } else {
        open->end = end;
        if (open->problem == NULL) region_read_inside(open, bytes, start, lines);
        open = NULL;
      }
    } else if (open != NULL) {
      if (lines == REGION_LINES) {
        open->problem =
            keep_printf("it is longer than %d lines: is its end, \"%s\", missing?", REGION_LINES, region_close);
        open = NULL;
      } else {
        start[++lines] = end;
      }
    }
    at = end;
  }
  if (open != NULL) open->problem = keep_printf("its end, \"%s\", is missing", region_close);
  for (int i = 0; i < regions->count; i++)
    for (int j = 0; j < i; j++)
      if (strcmp(regions->item[i].name, regions->item[j].name) == 0)
        regions->item[i].problem = regions->item[j].problem =
            keep_printf("it is there twice, in lines %d and %d", regions->item[j].line, regions->item[i].line);
}

static inline Region *regions_named(Regions *regions, const char *name) {
  for (int i = 0; i < regions->count; i++)
    if (strcmp(regions->item[i].name, name) == 0) return &regions->item[i];
  return NULL;
}

/* The solution, or the student's lines: the body without hints. */
static inline char *region_lines(const char *bytes, const Region *region) {
  Text text = {0};
  for (size_t at = region->body_begin; at < region->body_end;) {
    size_t end = line_end(bytes, region->body_end, at);
    if (region->cut || line_starts(bytes, at, end, region_hint) == NULL) text_append(&text, bytes + at, end - at);
    at = end;
  }
  return keep_text(&text);
}

/* How far the marker is indented; so are the lines that go in. */
static inline char *region_indent(const char *bytes, const Region *region) {
  size_t at = region->begin;
  while (bytes[at] == ' ' || bytes[at] == '\t') at++;
  return keep_bytes(bytes + region->begin, at - region->begin);
}

/* What a student's tree has in a region's place. `lines` are whole lines. */
static inline void region_write_cut(Text *out, const char *indent, const Region *region, const char *lines) {
  text_printf(out, "%s%s %s: %s\n", indent, region_open, region->name, region->task);
  text_printf(out, "#if !MINE(%s)  // the reference, until your lines below have passed their check\n", region->name);
  text_printf(out, "#include \".learn/reference/%s.cuh\"\n#else\n%s", region->name, lines);
  text_printf(out, "#endif\n%s%s\n", indent, region_close);
}

/* The text with other lines in the region's body. */
static inline void region_paste(Text *out, const char *bytes, size_t length, const Region *region, const char *lines) {
  text_append(out, bytes, region->body_begin);
  text_add(out, lines);
  text_append(out, bytes + region->body_end, length - region->body_end);
}

/* The end of the word or number at `c`, as the preprocessor reads it: in 1'000 and even in 1e+'x the ' is a part of the
 * number, in L'x' and return'x' it begins a character. */
static inline const char *code_word_end(const char *c) {
  const bool number = isdigit((unsigned char)*c) || (c[0] == '.' && isdigit((unsigned char)c[1]));
  for (bool more = true; more; c += more) {
    const bool letter = isalnum((unsigned char)*c) || *c == '_' || *c == '$' || (unsigned char)*c >= 0x80;
    const bool apostrophe = *c == '\'' && (isalnum((unsigned char)c[1]) || c[1] == '_');
    const bool sign = (*c == '+' || *c == '-') && strchr("eEpP", c[-1]) != NULL; /* c[-1]: never the first */
    more = letter || (number && (*c == '.' || apostrophe || sign));
  }
  return c;
}

/* The code as the compiler sees it: comments are gone, strings and characters are empty. */
static inline char *code_only(const char *code) {
  Text text = {0};
  text_add(&text, "");
  for (const char *c = code; *c != '\0';) {
    if (c[0] == '/' && c[1] == '/') {
      while (*c != '\0' && *c != '\n') c += c[0] == '\\' && c[1] == '\n' ? 2 : 1; /* a spliced line goes on */
    } else if (c[0] == '/' && c[1] == '*') {
      const char *end = strstr(c + 2, "*/");
      c = end == NULL ? c + strlen(c) : end + 2;
      text_add(&text, " ");
    } else if (code_word_end(c) > c) {
      text_append(&text, c, (size_t)(code_word_end(c) - c));
      c = code_word_end(c);
    } else if (*c == '"' || *c == '\'') {
      char quote = *c++;
      while (*c != '\0' && *c != quote && *c != '\n') c += c[0] == '\\' && c[1] != '\0' ? 2 : 1;
      if (*c == quote) c++;
      text_printf(&text, "%c%c", quote, quote);
    } else {
      text_append(&text, c++, 1);
    }
  }
  return keep_text(&text);
}

/* Brackets that do not match: NULL, or a sentence. */
static inline const char *code_brackets(const char *code) {
  static const char open[] = "({[", close[] = ")}]";
  int depth[3] = {0, 0, 0};
  for (const char *c = code_only(code); *c != '\0'; c++) {
    const char *o = strchr(open, *c), *e = strchr(close, *c);
    if (o != NULL) depth[o - open]++;
    if (e != NULL && --depth[e - close] < 0)
      return keep_printf("a '%c' closes what was not opened in the exercise's lines", *c);
  }
  for (int i = 0; i < 3; i++)
    if (depth[i] != 0) return keep_printf("a '%c' is not closed in the exercise's lines", open[i]);
  return NULL;
}

/* Is there anything but comments and TODO(name)? */
static inline bool code_has_todo(const char *code) { return strstr(code_only(code), "TODO(") != NULL; }
static inline bool code_is_empty(const char *code) {
  const char *rest = code_only(code);
  const char *todo = strstr(rest, "TODO(");
  for (const char *c = rest; *c != '\0'; c++) {
    if (c == todo) {
      while (*c != '\0' && *c != ';') c++;
      if (*c == '\0') break;
      continue;
    }
    if (!isspace((unsigned char)*c)) return false;
  }
  return true;
}

#endif /* LEARN_REGION_H */
