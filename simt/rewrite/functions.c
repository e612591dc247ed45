/* functions.c - the linkage of __device__ functions; the list of functions that check_calls() reads. */
#include "functions.h"

#include <ctype.h>

#include "calls.h"
#include "edit.h"
#include "errors.h"
#include "options.h"

void rewrite_device_function(const Item *item, const Names *friends) {
  if (option_rdc || item->class_name || item->is_template || item->name < 0) return;
  if (head_has(item, "static inline __inline__ __inline __forceinline__ constexpr consteval friend")) return;
  int keyword = item->start;
  while (!is(keyword, "__device__")) keyword++;
  for (int i = item->start; i < keyword; i++) {
    if (is(i, "extern") && is_kind(i + 1, STRING)) return;
    if (is(i, "extern")) leave_out(i);
  }
  bool explicit_instantiation = is(item->start, "template") && !item->is_specialisation;
  if (explicit_instantiation) return;
  bool is_member = is(item->name - 1, "::") || (is(item->name - 1, "~") && is(item->name - 2, "::"));
  if (item->is_specialisation || is_member || has_name(friends, name_of(item->name)))
    replace(keyword, "inline");
  else
    replace(keyword, "static __attribute__((unused))"); /* nobody wants a warning of a header's functions */
}

void note_parameters(const Item *item) {
  int end = tokens[item->parameters].match, after = tokens[item->body].match + 1;
  Text names = {0};
  append(&names, "", 0);
  for (int i = item->parameters + 1, next; i < end; i = next + 1) {
    next = piece_end(i, end, true);
    int name = declared_name(i, next);
    appendf(&names, ",%s", name >= 0 && name > i ? name_of(name) : "");
  }
  appendf(&tokens[after].before,
          " static const char simt_parameters_%d[] __attribute__((section(\"simt_parameters\"), used)) = \"%s%s\"; ",
          (int)(item - items), name_of(item->name), names.data);
}

Names cluster_kernels;

/* The __cluster_dims__ of a kernel; -1: it has none. */
static int cluster_dims(const Item *item) {
  for (int i = item->start; i < item->name; i++)
    if (is(i, "__cluster_dims__") && opens(i + 1)) return i;
  return -1;
}

static bool is_kernel(const Item *item) {
  return item->global && item->name >= 0 && item->parameters >= 0 && !item->class_name;
}

/* Of the declarations of the kernel in this scope: the one with __cluster_dims__, else the first. */
static bool tells_cluster(const Item *item) {
  const Item *first = NULL;
  for (const Item *other = items; other < items + item_count; other++) {
    if (!is_kernel(other) || !is_same(other->name, item->name) ||
        tokens[other->start].parent != tokens[item->start].parent)
      continue;
    if (cluster_dims(other) >= 0) return other == item;
    if (!first) first = other;
  }
  return first == item;
}

void find_clusters(void) {
  for (int k = 0; k < item_count; k++)
    if (is_kernel(&items[k]) && cluster_dims(&items[k]) >= 0) add_name(&cluster_kernels, name_of(items[k].name));
}

void note_cluster(const Item *item) {
  if (!is_kernel(item) || !has_name(&cluster_kernels, name_of(item->name)) || !tells_cluster(item)) return;
  int i = cluster_dims(item), end = item->body >= 0 ? tokens[item->body].match + 1 : item->end;
  for (int d = i + 2; i >= 0 && item->is_template && d < tokens[i + 1].match; d++)
    for (int p = item->start; p < i && !is(p, "__global__"); p++)
      if (is_identifier(d) && is_same(d, p)) {
        refuse(i,
               "__cluster_dims__ with a parameter of the template is not supported; launch the kernel by "
               "cudaLaunchKernelEx() with cudaLaunchAttributeClusterDimension");
        return;
      }
  char *blocks = i >= 0 ? spell(i + 2, tokens[i + 1].match) : NULL;
  appendf(&tokens[end].before, " [[maybe_unused]] static const ::simt::ClusterDims simt_cluster_of_%s{%s}; ",
          name_of(item->name), blocks ? blocks : "");
  if (blocks && !item->is_template && !item->is_specialisation) /* for launches by address */
    appendf(&tokens[end].before, "static const ::simt::ClusterEntry simt_cluster_%d(%s, simt_cluster_of_%s); ",
            (int)(item - items), name_of(item->name), name_of(item->name));
  free(blocks);
}

/* ---- the list of functions for check_calls() ---- */

/* Where a body includes a file, it lies in several pieces. */
static void list_function(FILE *out, int space, int first, int last, const char *of_class, const char *name) {
  for (int from = first, to = first; from <= last; from = ++to) {
    while (to < last && strcmp(tokens[to + 1].file, tokens[from].file) == 0) to++;
    fprintf(out, "%c\t%d\t%d\t%s\t%s\t%s\n", space, tokens[from].line, tokens[to].line, tokens[from].file, of_class,
            name);
  }
}

/* The class of a function: struct C { void f(); }; void C<int>::f() {}. "": none. */
static const char *class_of(const Item *item) {
  if (item->class_name) return item->class_name;
  int i = item->name - (is(item->name - 1, "~") ? 2 : 1);
  if (!is(i, "::")) return "";
  i = is(i - 1, ">") ? angle_start(i - 1) - 1 : i - 1;
  return is_identifier(i) ? name_of(i) : "";
}

void list_functions(FILE *out) {
  for (int i = 0; i + 2 < token_count; i++) { /* cuda::std and thrust::complex are the C++ library's here */
    if (!is(i + 1, "::") || !((is(i, "cuda") && is(i + 2, "std")) || (is(i, "thrust") && is(i + 2, "complex"))))
      continue;
    list_function(out, STANDARD, i, i, "", "std");
    break;
  }
  for (int k = 0; k < item_count; k++) {
    const Item *item = &items[k];
    if (item->parameters < 0 || item->name < 0) continue;
    if (item->body < 0 && is_one_of(item->end - 2, "default delete")) continue; /* the compiler's own */
    Space space = item->global || (item->device && !item->host) ? DEVICE
                  : item->device                                ? BOTH
                  : head_has(item, "constexpr consteval")       ? CONSTEXPR
                                                                : HOST;
    list_function(out, item->body < 0 ? tolower(space) : (int)space, item->start, item->end - 1, class_of(item),
                  name_of(item->name));
  }
  for (int i = 0; i < token_count; i++) { /* [=] __host__ __device__(int i) { .. } */
    if (!is(i, "__device__") || !in_function(i)) continue;
    int first = i, last = i + 1;
    while (is_one_of(first - 1, "__host__ __device__")) first--;
    while (is_one_of(last, "__host__ __device__")) last++;
    if (!is(first - 1, "]")) continue;
    bool both = false;
    for (int k = first; k < last; k++) both = both || is(k, "__host__");
    while (last < token_count && !is_one_of(last, "{ ; }")) last = opens(last) ? tokens[last].match + 1 : last + 1;
    if (is(last, "{") && opens(last))
      list_function(out, both ? BOTH : DEVICE, first, tokens[last].match, "", "operator");
  }
}
