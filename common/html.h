/* html.h - text, tables and pictures of a page that needs no other file.
 *
 *     html_text(file, "a < b");                       // a &lt; b
 *     html_picture(file, &image, 84, 84, "a 4");      // <img>, with the pixels in it
 *
 *     HtmlRows rows = {{{"", ""}}, 0};
 *     html_row(&rows, "batch size", "%d", 64);
 *     html_table(file, &rows);
 *
 * All that comes from outside (names, paths, options) passes html_text(), within quotation marks, too.
 */
#ifndef COMMON_HTML_H
#define COMMON_HTML_H

#include "common/error.h"
#include "common/image.h"

enum { HTML_ROWS = 64 };

typedef struct HtmlRow {
  char name[48], value[1024];
} HtmlRow;

/* What is said of a run, name by name. */
typedef struct HtmlRows {
  HtmlRow row[HTML_ROWS];
  int count;
} HtmlRows;

__attribute__((format(printf, 3, 4))) static inline void html_row(HtmlRows *rows, const char *name, const char *format,
                                                                  ...) {
  va_list args;
  if (rows->count == HTML_ROWS) return;
  HtmlRow *row = &rows->row[rows->count++];
  snprintf(row->name, sizeof row->name, "%s", name);
  va_start(args, format);
  vsnprintf(row->value, sizeof row->value, format, args);
  va_end(args);
}

/* Bytes of the UTF-8 character at `text`; 0 where there is none. */
static inline int html_character(const unsigned char *text) {
  const int size = text[0] < 0x80   ? 1
                   : text[0] < 0xC2 ? 0
                   : text[0] < 0xE0 ? 2
                   : text[0] < 0xF0 ? 3
                   : text[0] < 0xF5 ? 4
                                    : 0;
  for (int i = 1; i < size; i++)
    if ((text[i] & 0xC0) != 0x80) return 0;
  if (size == 3 && ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] >= 0xA0))) return 0;
  if (size == 4 && ((text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] >= 0x90))) return 0;
  return size;
}

/* The text as a browser shows it: markup escaped; control characters and bytes that are no UTF-8 become '?'. */
static inline void html_text(FILE *out, const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  while (*at != '\0') {
    const int size = html_character(at);
    if (*at == '&')
      fputs("&amp;", out);
    else if (*at == '<')
      fputs("&lt;", out);
    else if (*at == '>')
      fputs("&gt;", out);
    else if (*at == '"')
      fputs("&quot;", out);
    else if (*at == '\'')
      fputs("&#39;", out);
    else if (size == 0 || *at == 127 || (*at < ' ' && *at != '\n' && *at != '\t'))
      fputc('?', out);
    else
      fwrite(at, 1, (size_t)size, out);
    at += size > 0 ? size : 1;
  }
}

/* RFC 4648, section 4. */
static inline void html_base64(FILE *out, const unsigned char *bytes, size_t size) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < size; i += 3) {
    const unsigned left = size - i < 3 ? (unsigned)(size - i) : 3;
    const unsigned long group = (unsigned long)bytes[i] << 16 | (left > 1 ? (unsigned long)bytes[i + 1] << 8 : 0) |
                                (left > 2 ? bytes[i + 2] : 0);
    for (unsigned d = 0; d < 4; d++) fputc(d <= left ? digits[group >> (18 - 6 * d) & 63] : '=', out);
  }
}

/* A picture, shown in so many pixels of the page; returns the bytes of its PNG file. */
static inline size_t html_picture(FILE *out, const Image *image, int width, int height, const char *what) {
  char *bytes = NULL;
  size_t size = 0;
  FILE *png = open_memstream(&bytes, &size);
  if (png == NULL) die("out of memory: a picture of %d x %d pixels", image->width, image->height);
  stbi_write_png_to_func(image_write_piece, png, image->width, image->height, image->channels, image->pixels,
                         image->width * image->channels);
  fclose(png);
  fprintf(out, "<img width=\"%d\" height=\"%d\" alt=\"", width, height);
  html_text(out, what);
  fputs("\" src=\"data:image/png;base64,", out);
  html_base64(out, (const unsigned char *)bytes, size);
  fputs("\">", out);
  free(bytes);
  return size;
}

static inline void html_table(FILE *out, const HtmlRows *rows) {
  fputs("<table class=\"facts\">\n", out);
  for (int i = 0; i < rows->count; i++) {
    fputs("<tr><th scope=\"row\">", out);
    html_text(out, rows->row[i].name);
    fputs("</th><td>", out);
    html_text(out, rows->row[i].value);
    fputs("</td></tr>\n", out);
  }
  fputs("</table>\n", out);
}

#endif /* COMMON_HTML_H */
