/* errors.c - prints what is refused, once for each place. */
#include "errors.h"

#include <stdio.h>
#include <stdlib.h>

#include "text.h"

int errors;

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

void refuse_at(const char *file, int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  refuse_once(file, line, false, format, arguments);
  va_end(arguments);
}

void refuse_call_at(const char *file, int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  refuse_once(file, line, true, format, arguments);
  va_end(arguments);
}
