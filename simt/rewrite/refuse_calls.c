/* refuse_calls.c - what nvcc refuses and g++ would not: calls from the wrong side, kernels that return something, the
 * host's variables in kernels. */
#include "refuse.h"

#include "edit.h"
#include "library.h"
#include "options.h"

enum { HOST_ONLY = 1, DEVICE_ONLY = 2, KERNEL = 4, ANYWHERE = 8 };

static int kind_of(const Item *item) {
  if (item->global) return KERNEL;
  if (item->device) return item->host ? ANYWHERE : DEVICE_ONLY;
  return option_relaxed_constexpr && head_has(item, "constexpr consteval") ? ANYWHERE : HOST_ONLY;
}

/* The program's functions of this name. 0: none; or a class has a member of that name, and which one is meant only a
 * compiler knows; or CUDA has such a function for kernels, too. */
static int kinds_of_name(int i) {
  int kinds = 0;
  if (is_one_of(i, "min max abs fabs pow sqrt exp log floor ceil round fma swap norm")) return 0;
  for (int k = 0; k < item_count; k++) {
    const Item *item = &items[k];
    if (item->parameters < 0 && item->class_name)
      for (int t = item->start; t < item->end; t++)
        if (is_same(t, i)) return 0;
    if (item->parameters < 0 || item->name < 0 || !is_same(item->name, i)) continue;
    if (item->class_name && !head_has(item, "friend")) return 0;
    kinds |= kind_of(item);
  }
  return kinds;
}

/* int f; float *f = ..; auto [f, g] = ..; int n = 3, f = 4; */
static bool is_declared_at(int i) {
  if (is_identifier(i - 1)) return !ends_expression_before(i - 1) && !is_one_of(i - 1, "sizeof delete");
  int start = declaration_start(i), next = start + 1;
  return is_one_of(i - 1, "* & && > , [") && is_one_of(i + 1, "= ; , ) ] [ { :") && is_identifier(start) &&
         !ends_expression_before(start) &&
         (is_identifier(next) || is_one_of(next, "* & && < :: [") || (is(next, "(") && is(next + 1, "*")));
}

/* Has the function, up to token i, a parameter or a variable of this name? */
static bool declares(const Item *function, int i) {
  for (int k = function->start; k <= i; k++)
    if (k != function->name && is_same(k, i) && (k < function->body || is_declared_at(k))) return true;
  return false;
}

/* A template that nobody uses is never compiled for a GPU. */
static bool is_used(Item *function) {
  if (!function->is_template) return true;
  if (function->used != NOT_ASKED) return function->used == YES; /* every call in it asks */
  function->used = NO;
  for (int k = 0; k < token_count && function->used == NO; k++)
    if ((k < function->start || k >= function->end) && is_same(k, function->name)) function->used = YES;
  return function->used == YES;
}

/* sizeof(f(x)), decltype(f(x)): not called. */
static bool is_unevaluated(int i) {
  const char *words = "sizeof alignof decltype noexcept typeid __typeof__ typeof";
  if (is_one_of(i - 1, words)) return true;
  for (i = tokens[i].parent; i > 0 && is(i, "("); i = tokens[i].parent)
    if (is_one_of(i - 1, words)) return true;
  return false;
}

static bool in_device_lambda(int i, const Item *function) {
  for (i = tokens[i].parent; i > function->body; i = tokens[i].parent)
    for (int k = i - 1; is(i, "{") && k > function->body && !is_one_of(k, "; { }"); k--)
      if (is(k, "__device__")) return true;
  return false;
}

/* Has the program a function, class, member or parameter of this name? */
static bool program_has(int i) {
  for (int k = 0; k < item_count; k++) {
    const Item *item = &items[k];
    if (item->name >= 0 && is_same(item->name, i)) return true;
    if (item->parameters >= 0) continue;
    for (int t = item->start; t < item->end; t++)
      if (is_same(t, i)) return true;
  }
  return false;
}

/* i is at the name of a call in a kernel or device function: a library's that only the host has? rand(), std::max(..),
 * std::numeric_limits<float>::max(). What only the argument's types decide is left to check_calls(). */
static void check_library_call(int i, const Item *function) {
  char *name = name_of(i), *caller = name_of(function->name);
  bool is_constexpr = true;
  const char *instead;
  if (is(i - 1, "::") && is(i - 2, ">") && angle_start(i - 2) > 0 && is(angle_start(i - 2) - 1, "numeric_limits")) {
    int limits = angle_start(i - 2) - 1;
    if (option_relaxed_constexpr || (is(limits - 3, "cuda") && is(limits - 2, "::")) || is(limits - 3, "::")) return;
    Text full = {0};
    appendf(&full, "std::%s", spell(limits, i + 1));
    refuse_standard(
        tokens[i].file, tokens[i].line, full.data, caller,
        "use a constant of float.h, limits.h or math_constants.h (FLT_MAX, INT_MAX, CUDART_INF_F), or compile "
        "with --expt-relaxed-constexpr");
    return;
  }
  bool in_std = is(i - 1, "::") && is(i - 2, "std") && !is(i - 3, "::");
  if (is(i - 1, "::") && !in_std && is_identifier(i - 2)) return; /* another namespace's or class's */
  if (in_std && (instead = instead_of_standard(name, &is_constexpr))) {
    if (is_constexpr && option_relaxed_constexpr) return;
    Text full = {0};
    appendf(&full, "std::%s", name);
    refuse_standard(tokens[i].file, tokens[i].line, full.data, caller, instead);
  } else if (instead_of(name) && (in_std || !program_has(i)) &&
             !(option_rdc && is_among(name, strlen(name), DEVICE_RUNTIME))) {
    refuse_library(tokens[i].file, tokens[i].line, name, caller);
  }
}

void check_call(int i) {
  int open = is(i + 1, "<") && angle_end(i + 1) > 0 ? angle_end(i + 1) + 1 : i + 1;
  Item *function = function_at(i);
  if (!opens(open) || !is(open, "(") || !function || function->name < 0 || is_one_of(i - 1, ". -> new")) return;
  if (is_identifier(i - 1) && !ends_expression_before(i - 1)) return; /* a declaration: T name(..) */
  if (is_kernel_or_device_only(function) && !is_same(i, function->name) && !declares(function, i) &&
      !is_unevaluated(i) && is_used(function))
    check_library_call(i, function);
  if (is(i - 1, "::")) return;
  int kinds = kinds_of_name(i);
  if (!kinds || declares(function, i) || is_unevaluated(i) || !is_used(function)) return;
  bool is_member = function->class_name || is(function->name - 1, "::");
  if (kinds == KERNEL) {
    refuse(i, "%s() is a kernel, and this call has no <<<grid, block>>>", name_of(i));
  } else if (kinds == HOST_ONLY && is_kernel_or_device_only(function)) {
    refuse_call_at(
        tokens[i].file, tokens[i].line,
        "%s() is a function of the host, and %s() runs on the GPU: write __device__ (or __host__ __device__) "
        "before it",
        name_of(i), name_of(function->name));
  } else if (kinds == DEVICE_ONLY && !function->device && !function->global && !function->is_template && !is_member &&
             !in_device_lambda(i, function)) { /* in templates, and members of such, nvcc does not look */
    refuse(i,
           "%s() is a __device__ function, and host code calls it: write __host__ __device__ before it, or call it "
           "in a kernel",
           name_of(i));
  }
}

void check_kernel(const Item *item) {
  if (item->class_name && !head_has(item, "friend"))
    refuse(item->name,
           "a kernel cannot be a member of a class: make it a function, and give it the object or a pointer");
  bool returns_nothing = false, returns = false; /* with another name of a type, or a template's, who knows */
  for (int i = item->start; i < item->name; i++) {
    if (is(i, "<") && is_identifier(i - 1) && angle_end(i) > 0) i = angle_end(i);
    if (opens(i)) i = tokens[i].match;
    returns_nothing = returns_nothing || is_one_of(i, "void auto");
    returns = returns || is_one_of(i, "int float double bool char short long unsigned signed size_t float4 half");
  }
  if (returns && !returns_nothing)
    refuse(item->name, "a kernel returns nothing: __global__ void %s(..); results go through a pointer",
           name_of(item->name));
  int end = tokens[item->parameters].match;
  for (int i = item->parameters + 1, next; i < end; i = next + 1) {
    next = piece_end(i, end, true);
    for (int k = i; k < next && !is(k, "="); k++) {
      if (is(k, "<") && is_identifier(k - 1) && angle_end(k) > 0) k = angle_end(k);
      if (opens(k)) k = tokens[k].match;
      if (!is_one_of(k, "& &&")) continue;
      refuse(k,
             "a kernel's parameter cannot be a reference (nvcc takes int &, and the kernel then fails: the GPU cannot "
             "reach the host's variable); pass the value, or a pointer to device memory");
      return;
    }
  }
}

static Names host_variables, other_variables;

void note_host_variable(const Item *item) {
  bool other = item->device || item->constant || item->managed || item->class_name || item->is_template ||
               head_has(item,
                        "const constexpr constinit typedef using friend namespace template class struct union "
                        "enum static_assert operator thread_local __shared__ asm __asm__");
  int end = item->end - 1;
  if (!is(end, ";")) return;
  for (int i = item->start, next; i < end; i = next + 1) {
    next = piece_end(i, end, true);
    int name = declared_name(i, next);
    bool has_type = i > item->start || name > item->start;
    if (name < 0 || !is_identifier(name) || !has_type) return;
    add_name(other || is(name - 1, "::") || is(name - 1, "&") ? &other_variables : &host_variables, name_of(name));
  }
}

void check_variable(int i) {
  Item *function = function_at(i);
  if (!function || function->name < 0 || !is_kernel_or_device_only(function)) return;
  if (!host_variables.count || is_one_of(i - 1, ". -> ::") || is_one_of(i + 1, ":: (")) return;
  char *name = name_of(i);
  if (!has_name(&host_variables, name) || has_name(&other_variables, name)) return;
  if (function->class_name || is(function->name - 1, "::")) return; /* it may be a member */
  if (declares(function, i) || is_unevaluated(i) || !is_used(function)) return;
  refuse(i,
         "%s is a variable of the host, and %s() runs on the GPU: pass its value as an argument, or make it const or "
         "__device__",
         name, name_of(function->name));
}
