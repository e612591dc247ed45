/* rewrite_text.h - what the parts of the rewriter share: text that grows, and sets of names. */
#ifndef SIMT_REWRITE_TEXT_H
#define SIMT_REWRITE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *memory) {
  if (!memory) {
    fprintf(stderr, "simt rewrite: out of memory\n");
    exit(2);
  }
  return memory;
}

typedef struct Text {
  char *data;
  size_t length, capacity;
} Text;

static void append(Text *text, const char *data, size_t length) {
  if (text->length + length + 1 > text->capacity) {
    text->capacity = 2 * (text->length + length + 1);
    text->data = need(realloc(text->data, text->capacity));
  }
  memcpy(text->data + text->length, data, length);
  text->length += length;
  text->data[text->length] = 0;
}

static void appendv(Text *text, const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  char *data = need(malloc((size_t)length + 1));
  vsnprintf(data, (size_t)length + 1, format, again);
  va_end(again);
  append(text, data, (size_t)length);
  free(data);
}

__attribute__((format(printf, 2, 3))) static void appendf(Text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  appendv(text, format, arguments);
  va_end(arguments);
}

static char *read_file(const char *name) { /* NULL: stdin */
  FILE *in = name ? fopen(name, "r") : stdin;
  if (!in) {
    fprintf(stderr, "simt rewrite: cannot read %s\n", name);
    exit(2);
  }
  Text text = {0};
  char buffer[1 << 16];
  size_t length;
  append(&text, "", 0);
  while ((length = fread(buffer, 1, sizeof buffer, in)) > 0) append(&text, buffer, length);
  if (name) fclose(in);
  return text.data;
}

typedef struct Names {
  char **name;
  int count;
} Names;

static bool has_name(const Names *names, const char *name) {
  for (int i = 0; i < names->count; i++)
    if (strcmp(names->name[i], name) == 0) return true;
  return false;
}

static void add_name(Names *names, const char *name) {
  if (has_name(names, name)) return;
  names->name = need(realloc(names->name, (size_t)(names->count + 1) * sizeof *names->name));
  names->name[names->count++] = need(strdup(name));
}

static bool begins(const char *text, const char *prefix) {
  return prefix && *prefix && strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Is the word of this length one of `words`, which stand between single spaces? */
static bool is_among(const char *word, size_t length, const char *words) {
  for (const char *p = words; *p; p += strcspn(p, " "), p += *p == ' ')
    if (strcspn(p, " ") == length && memcmp(p, word, length) == 0) return true;
  return false;
}

/* ---- errors ---- */

static int errors;

/* As printf. One error per line, the first, for others may follow from it; but of calls that are refused each one, and
 * once: a template is seen as often as it is instantiated. */
static void refuse_once(const char *file, int line, bool is_call, const char *format, va_list arguments) {
  static Names lines, lines_with_calls, messages;
  Text place = {0}, message = {0};
  appendf(&place, "%s:%d", file, line);
  appendf(&message, "%s: error: simt: ", place.data);
  appendv(&message, format, arguments);
  if (!has_name(&lines, place.data) &&
      !(is_call ? has_name(&messages, message.data) : has_name(&lines_with_calls, place.data))) {
    add_name(is_call ? &lines_with_calls : &lines, place.data);
    add_name(&messages, message.data);
    errors++;
    fprintf(stderr, "%s\n", message.data);
  }
  free(place.data);
  free(message.data);
}

__attribute__((format(printf, 3, 4))) static void refuse_at(const char *file, int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  refuse_once(file, line, false, format, arguments);
  va_end(arguments);
}

__attribute__((format(printf, 3, 4))) static void refuse_call_at(const char *file, int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  refuse_once(file, line, true, format, arguments);
  va_end(arguments);
}

#endif /* SIMT_REWRITE_TEXT_H */
