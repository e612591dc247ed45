/* variables.c - __shared__, __device__, __constant__ and __managed__ variables.
 *
 *     __shared__ float tile[32];      static thread_local float tile[32];      a block runs on one OS thread
 *     extern __shared__ float s[];    float (&s)[] = *(float (*)[])simt_dynamic_shared();
 *     __device__ int count;           static int count __attribute__((section("simt_bss"...)));   device memory */
#include "variables.h"

#include "edit.h"
#include "options.h"

/* alignas is C++'s only in front of a declaration; CUDA takes it anywhere. */
static void move_alignas_to_front(int start, int end) {
  for (int i = start + 1; i < end && !is(i, "{"); i++) {
    if (!is(i, "alignas") || !opens(i + 1)) continue;
    Text front = {0};
    appendf(&front, "%s %s", spell(i, tokens[i + 1].match + 1),
            tokens[start].before.length ? tokens[start].before.data : "");
    tokens[start].before = front;
    leave_out_between(i, tokens[i + 1].match + 1);
  }
}

typedef struct DynamicShared { /* one at file scope: each function that uses it gets a declaration of its own */
  char *name, *declaration;
} DynamicShared;

static DynamicShared *dynamic_shared;
static int dynamic_shared_count;

/* extern __shared__ T a[]: a reference to the block's dynamic shared memory. Its type T (&)[] is what CUDA's has. */
static void rewrite_dynamic_shared(int start, int end) {
  bool at_file_scope = !in_function(start);
  for (int i = start, next; i < end; i = next) { /* no alignment is needed: the memory has 1024 bytes' */
    next = attribute_end(i);
    if (next > i || is_one_of(i, "extern __shared__ static"))
      leave_out_between(i, next = next > i ? next : i + 1);
    else
      next = i + 1;
  }
  Text type = {0};
  for (int i = start, next; i < end; i = next + 1) {
    next = piece_end(i, end, true);
    int name = declared_name(i, next), pointer = name;
    if (name < 0) {
      refuse(
          i,
          "this declaration is not understood; dynamic shared memory is declared as extern __shared__ float name[];");
      return;
    }
    while (pointer > i && (is(pointer - 1, "*") || (is_one_of(pointer - 1, "const volatile") && is(pointer - 2, "*"))))
      pointer--;
    if (!type.length)
      for (int k = i; k < pointer; k++)
        if (!tokens[k].left_out) appendf(&type, "%.*s ", (int)tokens[k].length, tokens[k].text);
    char *stars = spell(pointer, name), *dimensions = spell(name + 1, next);
    Text value = {0};
    appendf(&value, " = *(%s%s(*)%s)simt_dynamic_shared()", type.data, stars, dimensions);
    if (at_file_scope) {
      dynamic_shared = need(realloc(dynamic_shared, (size_t)(dynamic_shared_count + 1) * sizeof *dynamic_shared));
      Text declaration = {0};
      appendf(&declaration, "%s%s(&%s)%s%s; ", type.data, stars, name_of(name), dimensions, value.data);
      dynamic_shared[dynamic_shared_count++] = (DynamicShared){name_of(name), declaration.data};
    } else {
      appendf(&tokens[name].before, "(&");
      appendf(&tokens[name].after, ")");
      appendf(&tokens[next - 1].after, "%s", value.data);
    }
  }
  if (at_file_scope) leave_out_between(start, end + 1);
}

void declare_dynamic_shared_in_functions(void) {
  for (int f = 0; f < item_count; f++) {
    const Item *function = &items[f];
    if (function->body < 0 || !(function->global || function->device)) continue;
    int close = tokens[function->body].match;
    for (int d = 0; d < dynamic_shared_count; d++) {
      bool used = false, is_parameter = false;
      for (int i = function->parameters; i < close; i++) {
        if (!is(i, dynamic_shared[d].name) || is_one_of(i - 1, ". -> ::")) continue;
        used = true;
        if (i < function->body) is_parameter = true;
      }
      if (!used || is_parameter) continue;
      appendf(&tokens[function->body].after, " %s{", dynamic_shared[d].declaration);
      appendf(&tokens[close].before, "} ");
    }
  }
}

void rewrite_shared(int at) {
  int start = declaration_start(at), end = declaration_end(at);
  bool is_static = false;
  for (int i = start; i < end && !is(i, "{"); i++) {
    if (is(i, "extern")) {
      rewrite_dynamic_shared(start, end);
      return;
    }
    if (is(i, "static")) is_static = true;
  }
  for (int i = start, next; i < end; i = next + 1) {
    next = piece_end(i, end, true);
    int after = declared_name(i, next) + 1;
    while (after > 0 && is(after, "[") && opens(after)) after = tokens[after].match + 1;
    if (after == 0 || after >= next || !is_one_of(after, "= { (")) continue;
    refuse(after,
           "a __shared__ variable cannot be initialised where it is declared: let one thread assign the value, "
           "and then __syncthreads()");
  }
  replace(at, is_static ? "thread_local" : "static thread_local");
  move_alignas_to_front(start, end);
}

/* Sections, so that the runtime can tell where a variable lives: initialised, and not. "#" hides what the compiler adds
 * to the section's flags: without @nobits an array of 100 MB would fill 100 MB of the program's file. */
static const char *section_of(const Item *item, bool initialised) {
#if defined(__ELF__)
#ifdef __aarch64__
#define NOBITS(name) name ",\\\"aw\\\",@nobits//"
#else
#define NOBITS(name) name ",\\\"aw\\\",@nobits#"
#endif
  if (item->managed) return initialised || option_clang ? "simt_managed" : NOBITS("simt_mbss");
  if (item->constant) return initialised || option_clang ? "simt_constant" : NOBITS("simt_cbss");
  return initialised || option_clang ? "simt_device" : NOBITS("simt_bss");
#else
  (void)item, (void)initialised;
  return NULL;
#endif
}

static Names extern_variables;

void rewrite_device_variable(const Item *item) {
  int end = item->end - 1, keyword = item->start;
  if (item->class_name || item->is_template || head_has(item, "inline constexpr typedef using friend")) return;
  while (!is_one_of(keyword, "__device__ __constant__ __managed__")) keyword++;
  bool is_extern = head_has(item, "extern"), is_const = false, is_member = false;
  for (int i = item->start, next; i < end; i = next + 1) {
    next = piece_end(i, end, true);
    int name = declared_name(i, next), after = name + 1;
    if (name < 0) return;
    is_member = is(name - 1, "::");
    bool points = false, const_here = i > item->start && is_const;
    for (int k = i; k < name; k++) {
      if (is(k, "<") && is_identifier(k - 1) && angle_end(k) > 0) k = angle_end(k);
      if (is(k, "*") || is(k, "&")) points = true, const_here = false;
      if (is(k, "const")) const_here = true;
    }
    if (i == item->start) is_const = const_here && !points;
    while (is(after, "[") && opens(after)) after = tokens[after].match + 1;
    if (is(after, ")") && opens(after + 1)) after = tokens[after + 1].match + 1; /* (*f)(int) */
    const char *section = section_of(item, is_one_of(after, "= { ("));
    if (!is_extern && !const_here && section)
      appendf(&tokens[after - 1].after, " __attribute__((unused, section(\"%s\")))", section);
    if (is_extern) add_name(&extern_variables, name_of(name));
    if (has_name(&extern_variables, name_of(name))) is_extern = true;
  }
  if (!is_extern && !is_member && !option_rdc && !head_has(item, "static")) replace(keyword, "static");
  move_alignas_to_front(item->start, end);
}

void rewrite_template_variable(const Item *item) {
  if (item->class_name || head_has(item, "const constexpr typedef using friend")) return;
  int name = declared_name(item->start, item->end - 1);
  if (name < 0) return;
  char keyword = item->managed ? 'm' : item->constant ? 'c' : 'd';
  for (int i = item->end; i < token_count; i++) {
    if (!is_same(i, name) || !is(i + 1, "<") || is_one_of(i - 1, ". ->")) continue;
    int first = i, close = angle_end(i + 1);
    const Item *function = function_at(i);
    if (close < 0 || !function) continue;
    while (is(first - 1, "::")) first -= is_identifier(first - 2) ? 2 : 1;
    appendf(&tokens[first].before, "::simt::symbol_of<");
    appendf(&tokens[close].after, ", '%c'>()", keyword);
  }
}

void register_static_local(int i) {
  const Item *function = function_at(i);
  int start = declaration_start(i), end = declaration_end(i);
  if (!function || !is(end, ";") || !is_one_of(start - 1, "; { }")) return;
  bool is_device = is_kernel_or_device_only(function), is_const = false;
  for (int k = start; k < end && !is_one_of(k, "= ( {"); k++) {
    if (is(k, "<") && is_identifier(k - 1) && angle_end(k) > 0) k = angle_end(k);
    if (is_one_of(k, "constexpr __shared__ thread_local struct class union enum")) return;
    if (is(k, "__device__")) is_device = true;
    if (is(k, "const")) is_const = true;
    if (is(k, "*")) is_const = false;
  }
  if (!is_device || is_const) return;
  for (int k = start, next; k < end; k = next + 1) {
    next = piece_end(k, end, true);
    int name = declared_name(k, next);
    if (name < 0 || !is_one_of(name + 1, "; , = [ {")) return;
    appendf(&tokens[end].after, " (void)&::simt::RegisteredSymbol<%s, 'd'>::done;", name_of(name));
  }
}
