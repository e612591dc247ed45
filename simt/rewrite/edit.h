/* edit.h - edits of the tokens, and tokens as text. */
#ifndef SIMT_REWRITE_EDIT_H
#define SIMT_REWRITE_EDIT_H

#include "lex.h"

void leave_out(int i);
void leave_out_between(int first, int end); /* the tokens [first, end) */
void replace(int i, const char *text);
/* The tokens [first, end) in one line: a space where there was any, but k<int> for k < int >. */
char *spell(int first, int end);
/* As a string literal, with its quotes. */
char *quote(const char *string);

#endif /* SIMT_REWRITE_EDIT_H */
