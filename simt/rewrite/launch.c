/* launch.c - launches become C++:
 *
 *     kernel<<<grid, block>>>(x, n)
 *     ::simt::kern("kernel", "k.cu", 12, [=](auto... a) { kernel(a...); }).cfg(grid, block).run(x, n)
 *
 * in one line (include/simt/launch.h). */
#include "launch.h"

#include "edit.h"
#include "functions.h"
#include "options.h"
#include "parse.h"

bool is_launch(int i) {
  return is(i, "<") && is(i + 1, "<") && is(i + 2, "<") && !is(i - 1, "operator") && !is(i - 1, "<");
}

/* The first token of the expression that ends at `last`: k, ns::k<int>, kernels[i], (*k), object.k, choose(n), ... */
static int callee_start(int last) {
  int i = last;
  for (;;) {
    if (is(i, ">")) i = angle_start(i) - 1;
    if (i < 0) return -1;
    if (is(i, "]")) {
      i = tokens[i].match - 1;
      continue;
    }
    if (is(i, ")")) {
      int open = tokens[i].match, before = open - 1;
      if (open < 0) return -1;
      const char *heads = "if while for switch constexpr";
      bool after_condition = is(before, ")") && is_one_of(tokens[before].match - 1, heads);
      bool is_call = (is_identifier(before) && !ends_expression_before(before) && !is_one_of(before, heads)) ||
                     is(before, ">") || is(before, "]") || (is(before, ")") && !after_condition);
      if (!is_call) return open;
      i = before;
      continue;
    }
    if (!is_identifier(i) || ends_expression_before(i)) return -1;
    if (is(i - 1, "template")) i--;
    if (is(i - 1, ".") || is(i - 1, "->")) {
      i -= 2;
      continue;
    }
    if (!is(i - 1, "::")) return i;
    if ((!is_identifier(i - 2) || ends_expression_before(i - 2)) && !is(i - 2, ">")) return i - 1;
    i -= 2;
  }
}

/* The first '>' of the '>>>' that closes the launch: the last one in the statement that has a '(' after it. */
static int configuration_end(int open) {
  int found = -1;
  for (int i = open + 3; i < token_count; i++) {
    if (is_one_of(i, "; ) ] }") || is_launch(i)) break;
    if (is(i, ">") && is(i - 1, ">") && is(i - 2, ">") && is(i + 1, "(") && i - 2 >= open + 3) found = i - 2;
    if (opens(i)) i = tokens[i].match;
  }
  return found;
}

/* Arguments whose text must stay in the call itself: 0 is a number or a null pointer, as is NULL, and {1, 2} whatever
 * the parameter is. */
static bool stays_in_call(int first, int end) {
  if (end - first == 1) return is_one_of(first, "0 __null");
  return is(first, "{") && tokens[first].match == end - 1;
}

void rewrite_launch(int open) {
  Item *function = function_at(open);
  if (function && is_kernel_or_device_only(function)) {
    refuse(open,
           "a kernel launches a kernel (dynamic parallelism), which is not supported; launch it from the host, "
           "or let the threads loop over the work");
    return;
  }
  int first = callee_start(open - 1), close = configuration_end(open);
  if (first < 0) {
    refuse(open, "there is no kernel's name before <<<");
    return;
  }
  if (close < 0) {
    refuse(open, "after this <<< comes no >>>(...); a launch is kernel<<<grid, block>>>(arguments)");
    return;
  }
  int count = 0;
  for (int i = open + 3; i < close; i = piece_end(i, close, false) + 1) count++;
  if (count < 2 || count > 4) {
    refuse(open,
           "a launch is kernel<<<grid, block, shared bytes, stream>>>(arguments), where the last two may be left "
           "out; this one has %d",
           count);
    return;
  }
  int arguments = close + 3, end = tokens[arguments].match;
  if (end < 0) {
    refuse(open, "the launch's argument list is not closed: a ) is missing");
    return;
  }

  /* [=](auto... a) { k(a...); }, or with one parameter each where the text of one stays in the call. */
  Text parameters = {0}, call = {0};
  bool any_stays = false, has_pack = false;
  for (int i = arguments + 1, number = 0; i < end; number++) {
    int next = piece_end(i, end, false);
    const char *comma = number ? ", " : "";
    has_pack = has_pack || is(next - 1, "...");
    if (stays_in_call(i, next)) {
      any_stays = true;
      appendf(&parameters, "%sauto", comma);
      appendf(&call, "%s%s", comma, spell(i, next));
    } else {
      appendf(&parameters, "%sauto simt_%d", comma, number);
      appendf(&call, "%ssimt_%d", comma, number);
    }
    i = next + 1;
  }
  if (any_stays && !has_pack) {
    for (int i = arguments + 1, next; i < end; i = next + 1) {
      next = piece_end(i, end, false);
      if (!stays_in_call(i, next)) continue;
      leave_out_between(i, next);
      appendf(&tokens[i].before, "::simt::literal_zero{}");
    }
  } else {
    parameters.length = call.length = 0;
    appendf(&parameters, "auto... simt_a");
    appendf(&call, "simt_a...");
  }

  /* By value: a lazy stream runs the kernel when the variables here may be gone. */
  appendf(&tokens[first].before, " ::simt::kern(%s, \"%s\", %d, [%s](%s) %s{ ", quote(spell(first, open)),
          tokens[first].file, tokens[first].line, in_function(first) ? "=" : "", parameters.data, option_launcher);
  int name = is(open - 1, ">") ? angle_start(open - 1) - 1 : open - 1;
  appendf(&tokens[open].before, "(%s); })", call.data);
  if (is_identifier(name) && has_name(&cluster_kernels, name_of(name)))
    appendf(&tokens[open].before, ".in(%ssimt_cluster_of_%s)", spell(first, name), name_of(name));
  appendf(&tokens[open].before, ".cfg(");
  appendf(&tokens[close].before, ").run");
  leave_out_between(open, open + 3);
  leave_out_between(close, close + 3);
}

void rewrite_kernel_argument(int name) {
  static const struct {
    const char *name;
    int argument;
  } functions[] = {
      {"cudaLaunchKernel", 0},
      {"cudaLaunchCooperativeKernel", 0},
      {"cudaLaunchKernelExC", 1},
      {"cudaFuncSetAttribute", 0},
      {"cudaFuncSetCacheConfig", 0},
      {"cudaFuncGetAttributes", 1},
      {"cudaFuncSetSharedMemConfig", 0},
      {"cudaFuncGetName", 1},
      {"cudaOccupancyMaxActiveBlocksPerMultiprocessor", 1},
      {"cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 1},
      {"cudaOccupancyMaxPotentialBlockSize", 2},
      {"cudaOccupancyMaxPotentialBlockSizeVariableSMem", 2},
      {"cudaOccupancyMaxPotentialBlockSizeWithFlags", 2},
      {"cudaOccupancyAvailableDynamicSMemPerBlock", 1},
  };
  int argument = -1;
  for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
    if (is(name, functions[f].name)) argument = functions[f].argument;
  if (argument < 0 || !opens(name + 1)) return;
  int end = tokens[name + 1].match, i = name + 2;
  for (; argument > 0 && i < end; argument--) i = piece_end(i, end, false) + 1;
  int k = i + 1; /* (const void *) or reinterpret_cast<const void *> */
  if (is_one_of(i, "reinterpret_cast static_cast") && is(i + 1, "<")) k = i + 2;
  while (is_one_of(k, "const void *")) k++;
  if (is(k - 1, "*") && is(k, is(i, "(") ? ")" : ">")) leave_out_between(i, k + 1);
}

Names kernel_names;

void rewrite_kernel_address(int i) {
  if (tokens[i].left_out || !kernel_names.count || !has_name(&kernel_names, name_of(i))) return;
  int first = i, end = i + 1;
  while (is(first - 1, "::")) first -= is_identifier(first - 2) ? 2 : 1;
  if (is(end, "<") && angle_end(end) > 0) end = angle_end(end) + 1;
  if (is(first - 1, "&")) first--;
  int k = first - 2; /* (void *)k, reinterpret_cast<void *>(k) */
  bool is_cast = is(first - 1, ")");
  if (is(first - 1, "(") && is(k, ">")) k--, is_cast = is(end, ")");
  if (!is_cast || !is(k, "*") || tokens[k].left_out) return;
  if (!is_one_of(--k, "const void")) return;
  while (is_one_of(k, "const void")) k--;
  if (!(is(k, "(") || (is(k, "<") && is(k - 1, "reinterpret_cast")))) return;
  appendf(&tokens[first].before, "::simt::kernel_address(");
  appendf(&tokens[end - 1].after, ")");
  if (is(k, "<") && !is_one_of(k + 1, "const") && !is(k + 2, "const")) { /* its result is const void * */
    leave_out_between(k - 1, tokens[end].match);
    appendf(&tokens[k - 1].before, "(void *)");
  }
}
