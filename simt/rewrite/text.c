/* text.c - growing text, sets of names, lists of words. */
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *need(void *memory) {
  if (!memory) {
    fprintf(stderr, "simt rewrite: out of memory\n");
    exit(2);
  }
  return memory;
}

void append(Text *text, const char *data, size_t length) {
  if (text->length + length + 1 > text->capacity) {
    text->capacity = 2 * (text->length + length + 1);
    text->data = need(realloc(text->data, text->capacity));
  }
  memcpy(text->data + text->length, data, length);
  text->length += length;
  text->data[text->length] = 0;
}

void appendv(Text *text, const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  char *data = need(malloc((size_t)length + 1));
  vsnprintf(data, (size_t)length + 1, format, again);
  va_end(again);
  append(text, data, (size_t)length);
  free(data);
}

void appendf(Text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  appendv(text, format, arguments);
  va_end(arguments);
}

char *read_file(const char *name) {
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

bool has_name(const Names *names, const char *name) {
  for (int i = 0; i < names->count; i++)
    if (strcmp(names->name[i], name) == 0) return true;
  return false;
}

void add_name(Names *names, const char *name) {
  if (has_name(names, name)) return;
  names->name = need(realloc(names->name, (size_t)(names->count + 1) * sizeof *names->name));
  names->name[names->count++] = need(strdup(name));
}

bool begins(const char *text, const char *prefix) {
  return prefix && *prefix && strncmp(text, prefix, strlen(prefix)) == 0;
}

bool is_among(const char *word, size_t length, const char *words) {
  for (const char *p = words; *p; p += strcspn(p, " "), p += *p == ' ')
    if (strcspn(p, " ") == length && memcmp(p, word, length) == 0) return true;
  return false;
}
