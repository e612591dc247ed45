/* headers.h - the headers that are refused: libraries that exist only for a GPU, and parts that simt does not have. */
#ifndef SIMT_REWRITE_HEADERS_H
#define SIMT_REWRITE_HEADERS_H

#include <stdbool.h>

typedef struct Header {
  const char *name;   /* with '/' at the end: a folder; else the beginning of a file's name */
  const char *when;   /* it is refused: see headers.c */
  const char *reason; /* for people */
} Header;

/* Why `path` (as included, or with folders before it) is refused. NULL: it is not. */
const Header *refused_header(const char *path);
/* The header's reason; for a part of Thrust, with the names of those that are beside it in our folder. */
const char *reason_for(const Header *header, const char *path);
/* The file `path` is included at at_file:at_line: refuses it where it is one of those. A program's own file is not
 * judged by its name. */
void check_header(const char *at_file, int at_line, const char *path, bool system);

#endif /* SIMT_REWRITE_HEADERS_H */
