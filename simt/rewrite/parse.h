/* parse.h - where template arguments, attributes, declarations, functions and statements begin and end: as much of C++
 * as the rewriter asks for. */
#ifndef SIMT_REWRITE_PARSE_H
#define SIMT_REWRITE_PARSE_H

#include "lex.h"

/* A declaration or definition that stands directly in a namespace or class. */
typedef struct Item {
  int start, end;            /* its tokens, up to and without `end` */
  int name;                  /* the function's or first variable's; -1: neither */
  int parameters;            /* the '(' of a function; -1: it is none */
  int body;                  /* the '{' of a function's definition; -1: none */
  const char *class_name;    /* of the class that it stands in; NULL: none */
  bool is_template;          /* template <...>, but not template <> */
  bool is_specialisation;    /* template <> */
  bool global, device, host; /* CUDA's words for it */
  bool constant, managed;
  enum { NOT_ASKED, NO, YES } used; /* is_used() */
} Item;

extern Item *items;
extern int item_count;

/* i is at a '<'; gives its '>', or -1. A '<' inside is a bracket after a name, an operator elsewhere. */
int angle_end(int i);
/* i is at a '>'; gives its '<', or -1. */
int angle_start(int i);
/* The end of the comma-separated piece that starts at i: its ',' or `end`. In a declaration a < after a name is a
 * bracket; among arguments it is one if what follows its > cannot be an operand: f<int, 3>(x), but a < b, c > d. */
int piece_end(int i, int end, bool is_declaration);
/* alignas(16), __attribute__((aligned(16))), [[maybe_unused]]: the end of it; i where there is none. */
int attribute_end(int i);
Item *function_at(int i); /* whose body token i is in; NULL: none */
bool in_function(int i);  /* a lambda's body counts */
bool is_kernel_or_device_only(const Item *item);
/* Makes `tokens` and `items` of the text. */
void parse(const char *text);
/* Stands one of these words in the declaration, before its parameters or value? */
bool head_has(const Item *item, const char *words);
bool ends_expression_before(int i); /* return, case, ...: an expression begins behind it */
/* The first token of the declaration that token i is in, and its ';'. */
int declaration_start(int i);
int declaration_end(int i);
/* The name that the declarator [first, end) declares: *a[4], (*a)[4], a = 3, a{3}. With the type before it, or not. */
int declared_name(int first, int end);
/* The token after the statement that begins at i. */
int statement_end(int i);

#endif /* SIMT_REWRITE_PARSE_H */
