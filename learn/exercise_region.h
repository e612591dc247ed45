/* exercise_region.h - the lines of a source file that a student writes.
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
 * A file with exercises there also has a place at file scope for functions and constants of the student's own:
 *
 *     // >>> helpers: functions and constants of your own, for your lines below
 *     #if MINE_ANY(phase1_building_blocks_vector_add)  // ...
 *     namespace {
 *     __device__ float square(float x) { return x * x; }
 *     }
 *     #endif
 *     // <<< helpers
 *
 * regions_find() reads all three. A region that is damaged has a `problem`, one sentence; the others can be used.
 */
#ifndef LEARN_EXERCISE_REGION_H
#define LEARN_EXERCISE_REGION_H

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
  bool helpers;                /* the student's own functions; its name is "helpers" */
  const char *problem;         /* NULL: all is well */
} Region;

typedef struct Regions {
  Region item[REGIONS_MAX];
  int count;
  const char *problem; /* of the file as a whole */
} Regions;

static const char region_open[] = "// >>> exercise", region_close[] = "// <<< exercise", region_hint[] = "// hint:";
static const char hidden_open[] = "// >>> hidden", hidden_close[] = "// <<< hidden"; /* solution_leaks.h */
static const char helpers_open[] = "// >>> helpers", helpers_close[] = "// <<< helpers";

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
  if (at == name || at == stop || *at != ':' || strcmp(region->name, "helpers") == 0)
    region->problem =
        keep_printf("line %d: expected \"%s NAME: what to do\", the name in a-z, 0-9 and _", region->line, region_open);
  else
    region->task = keep_trimmed(bytes, (size_t)(at + 1 - bytes), end);
}

/* Inside the markers of the helpers' place. */
static inline void region_read_helpers(Region *region, const char *bytes, const size_t *start, int lines) {
  region->cut = true;
  if (lines < 4 || line_starts(bytes, start[0], start[1], "#if MINE_ANY(") == NULL ||
      line_starts(bytes, start[1], start[2], "namespace {") == NULL ||
      line_starts(bytes, start[lines - 2], start[lines - 1], "}") == NULL ||
      line_starts(bytes, start[lines - 1], start[lines], "#endif") == NULL) {
    region->problem = keep_printf("line %d: the lines #if, namespace {, } and #endif around your helpers were changed",
                                  region->line + 1);
    return;
  }
  region->body_begin = start[2];
  region->body_end = start[lines - 2];
  region->body_line = region->line + 3;
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

static inline const char *region_end_marker(const Region *region) {
  return region->helpers ? helpers_close : region_close;
}

static inline void regions_find(const char *bytes, size_t length, Regions *regions) {
  size_t start[REGION_LINES + 1];
  Region *open = NULL;
  int number = 0, lines = 0;
  memset(regions, 0, sizeof *regions);
  for (size_t at = 0; at < length;) {
    size_t end = line_end(bytes, length, at);
    number++;
    const bool opens_helpers = line_starts(bytes, at, end, helpers_open) != NULL;
    const bool closes_helpers = line_starts(bytes, at, end, helpers_close) != NULL;
    if (opens_helpers || line_starts(bytes, at, end, region_open) != NULL) {
      if (open != NULL)
        open->problem = keep_printf("its end, \"%s\", is missing before line %d", region_end_marker(open), number);
      if (regions->count == REGIONS_MAX) {
        regions->problem = keep_printf("line %d: more than %d exercises in a file", number, REGIONS_MAX);
        return;
      }
      open = &regions->item[regions->count++];
      open->line = number;
      open->begin = at;
      open->end = end;
      open->helpers = opens_helpers;
      lines = 0;
      start[0] = end;
      if (opens_helpers)
        open->name = "helpers";
      else
        region_read_marker(open, bytes, at, end);
    } else if (closes_helpers || line_starts(bytes, at, end, region_close) != NULL) {
      if (open == NULL || open->helpers != closes_helpers) {
        regions->problem = keep_printf("line %d: \"%s\" without a beginning, \"%s\"", number,
                                       closes_helpers ? helpers_close : region_close,
                                       closes_helpers ? "// >>> helpers: ..." : "// >>> exercise NAME: ...");
      } else {
        open->end = end;
        if (open->problem == NULL && open->helpers) region_read_helpers(open, bytes, start, lines);
        if (open->problem == NULL && !open->helpers) region_read_inside(open, bytes, start, lines);
        open = NULL;
      }
    } else if (open != NULL) {
      if (lines == REGION_LINES) {
        open->problem = keep_printf("it is longer than %d lines: is its end, \"%s\", missing?", REGION_LINES,
                                    region_end_marker(open));
        open = NULL;
      } else {
        start[++lines] = end;
      }
    }
    at = end;
  }
  if (open != NULL) open->problem = keep_printf("its end, \"%s\", is missing", region_end_marker(open));
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

/* The code as the compiler sees it: comments are gone, except for the ends of their lines, strings and characters are
 * empty. `comment` says whether it begins in a comment, and then whether it ends in one. */
static inline char *code_only_from(const char *code, bool *comment) {
  Text text = {0};
  text_add(&text, "");
  for (const char *c = code; *c != '\0';) {
    if (*comment) {
      const char *end = strstr(c, "*/");
      *comment = end == NULL;
      for (end = end == NULL ? c + strlen(c) : end + 2; c < end; c++)
        if (*c == '\n') text_add(&text, "\n");
      text_add(&text, " ");
    } else if (c[0] == '/' && c[1] == '/') {
      while (*c != '\0' && *c != '\n') c += c[0] == '\\' && c[1] == '\n' ? 2 : 1; /* a spliced line goes on */
    } else if (c[0] == '/' && c[1] == '*') {
      *comment = true;
      c += 2;
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

static inline char *code_only(const char *code) {
  bool comment = false;
  return code_only_from(code, &comment);
}

/* The same code, white space and comments aside? */
static inline bool code_same(const char *a, const char *b) {
  const char *x = code_only(a), *y = code_only(b);
  for (;;) {
    while (isspace((unsigned char)*x)) x++;
    while (isspace((unsigned char)*y)) y++;
    if (*x != *y) return false;
    if (*x == '\0') return true;
    x++;
    y++;
  }
}

/* What a student's tree has in a region's place. `lines` are whole lines. */
static inline void region_write_cut(Text *out, const char *indent, const Region *region, const char *lines) {
  text_printf(out, "%s%s %s: %s\n", indent, region_open, region->name, region->task);
  text_printf(out, "#if !MINE(%s)  // the reference, until your lines below have passed their check\n", region->name);
  text_printf(out, "#include \".learn/reference/%s.cuh\"\n#else\n%s", region->name, lines);
  text_printf(out, "#endif\n%s%s\n", indent, region_close);
}

/* The place for helpers; `any` is what MINE_ANY() calls the file's exercises. `lines` are whole lines. */
static inline void helpers_write(Text *out, const char *any, const char *lines) {
  text_printf(out, "%s: functions and constants of your own, for your lines below\n", helpers_open);
  text_printf(out, "#if MINE_ANY(%s)  // used where your lines are used\nnamespace {\n%s", any, lines);
  text_printf(out, "}\n#endif\n%s\n\n", helpers_close);
}

/* Where the helpers' place goes: above the comment and the function that `before` is in, after the last empty line at
 * file scope. A file that has none gets it at its beginning. */
static inline size_t helpers_place(const char *bytes, size_t before) {
  size_t place = 0;
  int depth = 0;
  bool comment = false;
  for (size_t at = 0; at < before;) {
    const size_t end = line_end(bytes, before, at);
    if (depth == 0 && !comment && end == at + 1) place = end;
    const char *line = keep_bytes(bytes + at, end - at), *code = code_only_from(line, &comment);
    for (; *code != '\0'; code++) depth += (*code == '{') - (*code == '}');
    at = end;
  }
  return place;
}

/* The text with other lines in the region's body. */
static inline void region_paste(Text *out, const char *bytes, size_t length, const Region *region, const char *lines) {
  text_append(out, bytes, region->body_begin);
  text_add(out, lines);
  text_append(out, bytes + region->body_end, length - region->body_end);
}

/* The text with other lines in the region of this name; false: it has no such place. They begin at line `line`, if that
 * is not 0: below empty lines, so that a compiler's messages show the right ones. */
static inline bool regions_paste(Text *out, const char *bytes, size_t length, const char *name, int line,
                                 const char *lines) {
  static Regions regions;
  regions_find(bytes, length, &regions);
  const Region *region = regions_named(&regions, name);
  if (region == NULL || region->problem != NULL) return false;
  const char *end = lines[0] == '\0' || ends_with(lines, "\n") ? "" : "\n"; /* not a comment that hides the #endif */
  const char *number = line > 0 && line < region->body_line ? keep_printf("#line %d\n", line) : "";
  Text body = {0};
  text_add(&body, number);
  for (int at = region->body_line; at < line; at++) text_add(&body, "\n");
  text_printf(&body, "%s%s", lines, end);
  region_paste(out, bytes, length, region, body.bytes);
  text_free(&body);
  return true;
}

/* The same text with nothing in the student's places but the ends of their lines. */
static inline char *regions_hollow(const char *bytes) {
  static Regions regions;
  char *hollow = keep(bytes);
  regions_find(bytes, strlen(bytes), &regions);
  for (int i = 0; i < regions.count; i++) {
    const Region *region = &regions.item[i];
    if (!region->cut || region->problem != NULL) continue;
    for (size_t at = region->body_begin; at < region->body_end; at++)
      if (hollow[at] != '\n') hollow[at] = ' ';
  }
  return hollow;
}

/* The next line that has code: that, without comments and white space at its ends. NULL: there is none. */
static inline const char *next_code(const char *bytes, size_t *at, int *number, bool *comment) {
  for (const size_t length = strlen(bytes); *at < length;) {
    const size_t end = line_end(bytes, length, *at);
    const char *code = code_only_from(keep_bytes(bytes + *at, end - *at), comment);
    *at = end;
    ++*number;
    code = keep_trimmed(code, 0, strlen(code));
    if (code[0] != '\0') return code;
  }
  return NULL;
}

/* The number of the first line of `text` whose code is another than in `other`, the student's places aside, and that
 * line; 0: there is none. */
static inline int regions_differ(const char *text, const char *other, const char **line) {
  const char *a = regions_hollow(text), *b = regions_hollow(other);
  size_t a_at = 0, b_at = 0;
  int a_number = 0, b_number = 0;
  bool a_comment = false, b_comment = false;
  for (;;) {
    const char *x = next_code(a, &a_at, &a_number, &a_comment), *y = next_code(b, &b_at, &b_number, &b_comment);
    if (x == NULL && y == NULL) return 0;
    if (x != NULL && y != NULL && code_same(x, y)) continue;
    *line = x == NULL ? "" : x;
    return a_number;
  }
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

#endif /* LEARN_EXERCISE_REGION_H */
