/* emit.c - goes through all declarations and all tokens, has each edited or refused, and writes the result. */
#include "emit.h"

#include "edit.h"
#include "functions.h"
#include "launch.h"
#include "options.h"
#include "parse.h"
#include "refuse.h"
#include "unroll.h"
#include "variables.h"

static void rewrite_items(FILE *kernels) {
  Names friends = {0};
  for (int k = 0; k < item_count; k++)
    if (items[k].name >= 0 && items[k].device && head_has(&items[k], "friend"))
      add_name(&friends, name_of(items[k].name));
  for (int k = 0; k < item_count; k++) {
    const Item *item = &items[k];
    if (item->global && item->name >= 0) add_name(&kernel_names, name_of(item->name));
    if (item->global && item->name >= 0 && item->parameters >= 0) check_kernel(item);
    note_cluster(item);
    if (*option_launcher && item->global && item->name >= 0 && item->body >= 0 && !item->class_name)
      note_parameters(item);
    if (kernels && item->global && item->body >= 0 && item->name >= 0)
      fprintf(kernels, "%d\t%s\t%s\n", tokens[item->name].line, tokens[item->name].file, name_of(item->name));
    if (item->parameters >= 0) {
      if (item->device && !item->host && !item->global) rewrite_device_function(item, &friends);
    } else if (item->device || item->constant || item->managed) {
      if (item->is_template) rewrite_template_variable(item);
      rewrite_device_variable(item);
    }
    if (item->parameters < 0) note_host_variable(item);
  }
}

static void rewrite_word(int i) {
  if (is_one_of(i, "__global__ __device__ __host__ __constant__ __managed__ __grid_constant__")) {
    leave_out(i);
  } else if (is_one_of(i, "__launch_bounds__ __maxnreg__ __cluster_dims__ __block_size__") && opens(i + 1)) {
    leave_out_between(i, tokens[i + 1].match + 1);
  } else if (is(i, "__shared__")) {
    rewrite_shared(i);
  } else if (is(i, "static")) {
    register_static_local(i);
  } else if (is(i, "__forceinline__")) {
    bool is_inline = false; /* g++ does not take the word twice */
    for (int k = declaration_start(i); k < token_count && !is_one_of(k, "( ; {"); k++)
      if (is_one_of(k, "inline __inline__ __inline") || (k < i && is(k, "__forceinline__"))) is_inline = true;
    replace(i, is_inline ? "__attribute__((always_inline))" : "inline __attribute__((always_inline))");
  } else if (is(i, "__noinline__")) { /* also a word inside __attribute__((..)) */
    if (!is_one_of(i - 1, "( ,")) replace(i, "__attribute__((noinline))");
  } else if (is_one_of(i, "asm __asm__ __asm")) {
    check_assembly(i);
  }
}

void rewrite(FILE *kernels) {
  for (int k = 0; k < item_count; k++)
    if (items[k].body >= 0 && is_kernel_or_device_only(&items[k])) check_lanes_in_step(&items[k]);
  find_clusters();
  rewrite_items(kernels);
  for (int i = 0; i < token_count; i++) {
    if (is_launch(i)) {
      rewrite_launch(i);
      i += 2;
    } else if (is_identifier(i)) {
      rewrite_word(i);
      check_name(i);
      check_call(i);
      check_variable(i);
      if (begins(tokens[i].text, "cuda")) rewrite_kernel_argument(i);
      rewrite_kernel_address(i);
    }
  }
  declare_dynamic_shared_in_functions();
}

/* The space before token i, as it was read. Only `#pragma unroll` changes: g++ takes its own form of it, directly
 * before a loop and with a number. */
static void write_space(FILE *out, const char *from, int i) {
  const char *end = tokens[i].text;
  while (from < end) {
    const char *line_end = memchr(from, '\n', (size_t)(end - from));
    line_end = line_end ? line_end + 1 : end;
    if (unroll_pragma(from)) {
      if (tokens[i].unroll > 1) fprintf(out, "#pragma GCC unroll %d", tokens[i].unroll);
      from = line_end - (line_end[-1] == '\n');
    }
    fwrite(from, 1, (size_t)(line_end - from), out);
    from = line_end;
  }
}

void write_text(FILE *out, const char *input) {
  const char *from = input;
  for (int i = 0; i < token_count; i++) {
    const Token *token = &tokens[i];
    write_space(out, from, i);
    if (token->before.length) fwrite(token->before.data, 1, token->before.length, out);
    if (!token->left_out) fwrite(token->text, 1, token->length, out);
    if (token->after.length) fwrite(token->after.data, 1, token->after.length, out);
    from = token->text + token->length;
  }
}
