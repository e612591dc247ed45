/* text.h - growing text, sets of names, lists of words. */
#ifndef SIMT_REWRITE_TEXT_H
#define SIMT_REWRITE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Text {
  char *data;
  size_t length, capacity;
} Text;

typedef struct Names {
  char **name;
  int count;
} Names;

void *need(void *memory); /* ends the program where it is NULL */
void append(Text *text, const char *data, size_t length);
void appendv(Text *text, const char *format, va_list arguments);
__attribute__((format(printf, 2, 3))) void appendf(Text *text, const char *format, ...);
/* NULL: stdin. Ends the program where the file cannot be read. */
char *read_file(const char *name);
bool has_name(const Names *names, const char *name);
void add_name(Names *names, const char *name);
bool begins(const char *text, const char *prefix);
/* Is the word of this length one of `words`, which stand between single spaces? */
bool is_among(const char *word, size_t length, const char *words);

#endif /* SIMT_REWRITE_TEXT_H */
