/* calls.c - reads g++'s dump and the list of functions, and refuses the calls that nvcc would refuse. */
#include "calls.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "library.h"
#include "options.h"
#include "text.h"

/* ---- the program's functions, as the rewriter lists them ---- */

typedef struct Listed {
  Space space;
  bool only_declared;
  int first, last; /* lines of its definition, or declaration */
  const char *file, *of_class, *name;
} Listed;

static Listed *listed;
static int listed_count;
static bool uses_cuda_std;

static void read_functions(const char *path) {
  char *text = read_file(path), *line, *rest = text;
  while ((line = strsep(&rest, "\n"))) {
    char *field[6];
    int count = 0;
    while (count < 6 && (field[count] = strsep(&line, "\t"))) count++;
    if (count < 6) continue;
    if (*field[0] == STANDARD) uses_cuda_std = true;
    listed = need(realloc(listed, (size_t)(listed_count + 1) * sizeof *listed));
    listed[listed_count++] = (Listed){(Space)toupper((unsigned char)*field[0]),
                                      islower((unsigned char)*field[0]),
                                      atoi(field[1]),
                                      atoi(field[2]),
                                      field[3],
                                      field[4],
                                      field[5]};
  }
  for (int i = 0; i < listed_count; i++) { /* declared with __device__ and defined without: for both, says nvcc */
    if (listed[i].space != DEVICE || !listed[i].only_declared) continue;
    for (int k = 0; k < listed_count; k++)
      if (listed[k].space == HOST && strcmp(listed[i].name, listed[k].name) == 0 &&
          strcmp(listed[i].of_class, listed[k].of_class) == 0)
        listed[k].space = BOTH;
  }
}

static bool is_listed_file(const char *file) {
  static const char *last;
  static bool answer;
  if (last && strcmp(last, file) == 0) return answer;
  last = file, answer = false;
  for (int i = 0; i < listed_count && !answer; i++) answer = strcmp(listed[i].file, file) == 0;
  return answer;
}

/* ---- g++'s dump ---- */

typedef struct Dumped {
  char *name, *symbol; /* std::max<int>, _ZSt3maxIiERKT_S2_S2_ */
  char *file;          /* where its first statement is; NULL: it has none */
  int line;
  char *body, *end; /* in the dump */
  const char *last; /* the last part of its name, without template arguments: in V::get<int> it is get */
  int last_length;
  bool is_lambda; /* f(int)::<lambda(int)>::operator() */
  bool told;      /* refused as an operation of Thrust's */
  Space space;
} Dumped;

static Dumped *dumped;
static int dumped_count;
static int *dumped_by_number, number_limit; /* decl_uid -> index + 1 */

/* "[k.cu:13:18] ": gives what comes after it; `p` where there is none. */
static const char *skip_location(const char *p, const char **file, int *file_length, int *line) {
  if (*p != '[') return p;
  const char *close = p;
  while (*close && *close != '\n' && !(close[0] == ']' && (close[1] == ' ' || close[1] == '\n'))) close++;
  if (*close != ']') return p;
  const char *column = close, *row;
  while (column > p && *column != ':') column--;
  for (row = column - 1; row > p && *row != ':'; row--) continue;
  if (row <= p || !isdigit((unsigned char)row[1])) return p;
  *file = p + 1;
  *file_length = (int)(row - p - 1);
  *line = atoi(row + 1);
  return close[1] == ' ' ? close + 2 : close + 1;
}

/* The part of a C++ name after its last `::`. */
static void split_name(Dumped *f) {
  const char *start = f->name, *before = start;
  int depth = 0;
  for (const char *p = f->name; *p; p++) {
    if (depth == 0 && p == start && begins(p, "operator") && !isalnum((unsigned char)p[8]) && p[8] != '_') {
      f->last = p, f->last_length = 8, f->is_lambda = begins(before, "<lambda(");
      return;
    }
    if (*p == '<' || *p == '(' || *p == '{' || *p == '[') depth++;
    if (*p == '>' || *p == ')' || *p == '}' || *p == ']') depth--;
    if (depth == 0 && p[0] == ':' && p[1] == ':') before = start, start = p + 2, p++;
  }
  if (*start == '~') start++;
  f->last = start;
  f->last_length = (int)strcspn(start, "<( ");
}

static bool has_last_name(const Dumped *f, const char *name) {
  return strlen(name) == (size_t)f->last_length && memcmp(name, f->last, (size_t)f->last_length) == 0;
}

/* The function of the program that holds this line; of several the one of that name, else the innermost. */
static const Listed *listed_at(const Dumped *f, bool any_name) {
  const Listed *found = NULL;
  if (!f->file) return NULL;
  for (int i = 0; i < listed_count; i++) {
    const Listed *l = &listed[i];
    if (f->line < l->first || f->line > l->last || strcmp(l->file, f->file) != 0) continue;
    bool named = has_last_name(f, l->name), found_named = found && has_last_name(f, found->name);
    if (!named && (found_named || !any_name)) continue;
    if (!found || (named && !found_named) || l->last - l->first < found->last - found->first) found = l;
  }
  return found;
}

static void read_dump(char *text) {
  char *p = text, *next;
  for (Dumped *f = NULL; *p; p = next) {
    next = p + strcspn(p, "\n");
    if (*next) *next++ = 0;
    if (begins(p, ";; Function ")) {
      char *marks = strstr(p, ", funcdef_no="), *number = strstr(p, "decl_uid="), *open = marks;
      if (f) f->end = p;
      f = NULL;
      if (!marks || !number) continue;
      while (open > p && !(open[0] == ' ' && open[1] == '(')) open--;
      if (open == p) continue;
      dumped = need(realloc(dumped, (size_t)(dumped_count + 1) * sizeof *dumped));
      f = &dumped[dumped_count++];
      *open = *marks = 0;
      *f = (Dumped){.name = p + 12, .symbol = open + 2, .body = next, .end = next};
      split_name(f);
      int uid = atoi(number + 9);
      if (uid >= number_limit) {
        int limit = 2 * uid + 1;
        dumped_by_number = need(realloc(dumped_by_number, (size_t)limit * sizeof *dumped_by_number));
        memset(dumped_by_number + number_limit, 0, (size_t)(limit - number_limit) * sizeof *dumped_by_number);
        number_limit = limit;
      }
      dumped_by_number[uid] = dumped_count;
    } else if (f) {
      const char *file, *start = p + strspn(p, " ");
      int length, line;
      f->end = next;
      if (!f->file && skip_location(start, &file, &length, &line) > start) {
        f->file = need(strndup(file, (size_t)length));
        f->line = line;
      }
    }
  }
}

/* A constructor is called by the name of the complete object's (C1), and dumped under that of a base's (C2). */
static Dumped *dumped_constructor(const char *symbol, size_t length) {
  char *other = need(strndup(symbol, length));
  for (size_t i = 0; i + 2 < length; i++) {
    if ((other[i] != 'C' && other[i] != 'D') || other[i + 1] != '1' || other[i + 2] != 'E') continue;
    other[i + 1] = '2';
    for (int k = 0; k < dumped_count; k++)
      if (strcmp(dumped[k].symbol, other) == 0) return free(other), &dumped[k];
    other[i + 1] = '1';
  }
  free(other);
  return NULL;
}

/* Does the name of a header of ours, from simt/include on, begin so? */
static bool is_header(const char *file, const char *beginning) {
  if (!begins(file, option_ours)) return false;
  file += strlen(option_ours);
  return begins(file + strspn(file, "/"), beginning);
}
static bool is_thrust(const char *file) { return is_header(file, "thrust/"); }
/* Thrust's vectors construct elements, no more: whose constructor that is does not matter. */
static bool is_algorithm(const char *file) { return is_thrust(file) && !is_header(file, "thrust/simt_vector.h"); }

/* Is it one of the lambdas that Thrust's algorithms launch? */
static bool runs_for_thrust(const Dumped *f) {
  return f->is_lambda && begins(f->symbol, "_ZZN6thrust") && strstr(f->symbol, "12DevicePolicy") &&
         is_algorithm(f->file);
}

/* Headers of ours whose functions are the host's. */
static bool is_host_header(const char *file) {
  const char *name = file + strlen(option_ours);
  name += strspn(name, "/");
  return begins(name, "cuda_runtime") || strcmp(name, "cuda.h") == 0 || begins(name, "cublas") ||
         begins(name, "cudnn") || begins(name, "cufft") || strcmp(name, "curand.h") == 0 ||
         begins(name, "cuda_profiler") || begins(name, "nvToolsExt") || begins(name, "nvtx3/") ||
         begins(name, "cub/device/") || begins(name, "cub/util_allocator") || begins(name, "thrust/simt_vector.h") ||
         begins(name, "thrust/device_vector.h") || begins(name, "thrust/host_vector.h");
}

/* Is the function of a system header whose first statement is in this line constexpr? For --expt-relaxed-constexpr,
 * with which nvcc takes such functions of the C++ library; g++'s dump does not say. What ends before it has a }. */
static bool is_constexpr_at(const char *file, int line) {
  char *text = read_file(file), *rest = text, *row;
  bool found = false;
  for (int n = 1; n <= line && (row = strsep(&rest, "\n")); n++) {
    const char *word = row + strspn(row, " \t");
    if (*word == '}' || (*word == '{' && strchr(word, '}')) || strstr(row, "template")) found = false;
    const char *macro = strstr(row, "_CONSTEXPR"), *since = macro ? strstr(row, "_GLIBCXX") : NULL;
    if (strstr(row, "constexpr") || (macro && (!since || atoi(since + 8) <= option_relaxed_constexpr))) found = true;
  }
  free(text);
  return found;
}

typedef struct CallPlace {
  const char *file;
  int line;
} CallPlace;

/* std::max<int> -> std::max */
static char *without_arguments(const Dumped *f) {
  return need(strndup(f->name, (size_t)(f->last + f->last_length - f->name)));
}

/* How messages name a function. */
static char *shown_name(const Dumped *f) {
  if (f->is_lambda) return need(strdup("this lambda"));
  return f->last_length == 8 && begins(f->last, "operator") ? need(strdup(f->name)) : without_arguments(f);
}

/* std::exp<int> and nextafter<double, int> are templates of the C++ library alone. */
static bool is_math_template(const Dumped *f) {
  return f->last[f->last_length] == '<' && !is_among(f->last, (size_t)f->last_length, "pow abs move forward");
}

/* nvcc warns where a __host__ __device__ function calls one of the host: the host may do so. */
static void refuse_host(const Dumped *caller, CallPlace at, const char *name, bool is_constexpr) {
  char *who = shown_name(caller);
  if (caller->space == BOTH) {
    fprintf(
        stderr,
        "%s:%d: warning: simt: %s() is a function of the host, and %s() is __host__ __device__: it must not be called "
        "when that runs on the GPU\n",
        at.file, at.line, name, who);
    return;
  }
  refuse_call_at(
      at.file, at.line,
      "%s() is a function of the host, and %s() runs on the GPU: write __device__ (or __host__ __device__) before "
      "it%s",
      name, who, is_constexpr ? ", or compile with --expt-relaxed-constexpr" : "");
}

/* A function of the program is called, or its address is taken. Gives false if it is not the program's. */
static bool judge_listed(const Dumped *caller, CallPlace at, Dumped *callee) {
  static const Listed lambda = {.space = HOST}; /* at file scope */
  const Listed *l = listed_at(callee, callee->is_lambda);
  if (!l && callee->is_lambda && is_listed_file(callee->file)) l = &lambda;
  if (!l) { /* the compiler's own constructor and the like: it calls what its members have */
    if (callee->space == UNKNOWN && callee->file && is_listed_file(callee->file)) callee->space = caller->space;
    return callee->file && is_listed_file(callee->file);
  }
  if (l->space == HOST || (l->space == CONSTEXPR && !option_relaxed_constexpr)) {
    refuse_host(caller, at, shown_name(callee), l->space == CONSTEXPR);
  }
  return true;
}

/* What Thrust calls on the GPU: more of itself, or the program's operation. */
static void judge_operation(Dumped *callee) {
  static const Listed lambda = {.space = HOST}; /* at file scope */
  if (!callee->file || callee->space != UNKNOWN || callee->told) return;
  if (is_algorithm(callee->file) || is_header(callee->file, "cub/util_")) callee->space = THRUST;
  if (!is_listed_file(callee->file)) return;
  const Listed *l = listed_at(callee, callee->is_lambda);
  if (!l && callee->is_lambda) l = &lambda;
  if (callee->is_lambda && option_relaxed_constexpr) return; /* as nvcc takes it for constexpr */
  if (!l || !(l->space == HOST || (l->space == CONSTEXPR && !option_relaxed_constexpr))) return;
  callee->told = true;
  refuse_at(callee->file, callee->line,
            "%s() is a function of the host, and a Thrust algorithm runs it on the GPU: write %s", shown_name(callee),
            callee->is_lambda ? "[=] __device__ (..) and compile with nvcc --extended-lambda"
                              : "__host__ __device__ before it");
}

static void judge(const Dumped *caller, CallPlace at, const char *symbol, size_t length, int uid) {
  if (*symbol == '*') symbol++, length--; /* so a dump marks a name that __asm__ gives */
  Dumped *callee = uid < number_limit && dumped_by_number[uid] ? &dumped[dumped_by_number[uid] - 1] : NULL;
  char *name = need(strndup(symbol, length)), *who = shown_name(caller);
  if (!callee) callee = dumped_constructor(symbol, length);
  if (caller->space == THRUST) {
    if (callee) judge_operation(callee);
    return;
  }
  bool warns = caller->space == BOTH; /* of libraries nvcc then says little: so do we */
  if (callee) {
    if (callee->space == DEVICE || callee->space == BOTH) return;
    if (callee->file && begins(callee->file, option_ours)) {
      if (!warns && !begins(callee->name, "simt::") && is_host_header(callee->file) &&
          !(option_rdc && is_among(name, length, DEVICE_RUNTIME))) {
        if (is_thrust(callee->file) && is_among(callee->last, (size_t)callee->last_length, VECTOR_ACCESS)) return;
        if (is_thrust(callee->file))
          refuse_call_at(at.file, at.line,
                         "Thrust's vectors are made on the host, and %s() runs on the GPU: give it the plain pointer "
                         "thrust::raw_pointer_cast(vector.data())",
                         who);
        else
          refuse_library(at.file, at.line, without_arguments(callee), who);
      }
      return;
    }
    if (!callee->file || judge_listed(caller, at, callee) || warns) return;
    if (!begins(callee->name, "std::") && !strstr(callee->name, "::")) {
      if (begins(callee->name, "operator new") || begins(callee->name, "operator delete")) return;
      if (!is_among(callee->name, strlen(callee->name), KERNEL_FUNCTIONS))
        refuse_library(at.file, at.line, without_arguments(callee), who);
      return;
    }
    char *full = without_arguments(callee);
    if (uses_cuda_std) return;
    if (begins(callee->name, "std::initializer_list<")) return;
    if (begins(full, "std::") && is_among(full + 5, strlen(full + 5), KERNEL_STANDARD) && !is_math_template(callee))
      return;
    if (option_relaxed_constexpr && is_constexpr_at(callee->file, callee->line)) return;
    refuse_standard(at.file, at.line, callee->last_length == 8 ? callee->name : full, who,
                    begins(full, "std::") ? instead_of_standard(full + 5, NULL) : NULL);
    return;
  }
  if (begins(name, "_Z")) {
    static const char *const standard[] = {"_ZNSt", "_ZNKSt", "_ZSt", "_ZNSs", "_ZNKSs", "_ZNSo", "_ZNSi", "_ZNSa"};
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++) {
      if (warns || uses_cuda_std || !begins(name, standard[i])) continue;
      refuse_standard(at.file, at.line, name, who, NULL);
      return;
    }
    const Listed *host = NULL;
    for (int i = 0; i < listed_count; i++) { /* declared here, defined elsewhere: _Z6host_fi */
      char part[160];
      snprintf(part, sizeof part, "%zu%s", strlen(listed[i].name), listed[i].name);
      const char *found = strstr(name, part);
      if (!found || isdigit((unsigned char)found[-1])) continue;
      if (listed[i].space != HOST && listed[i].space != CONSTEXPR) return;
      host = &listed[i];
    }
    if (host) refuse_host(caller, at, host->name, false);
    return;
  }
  if (begins(name, "__cxa_throw") || begins(name, "__cxa_rethrow") || begins(name, "__cxa_begin_catch")) {
    if (!warns)
      refuse_call_at(at.file, at.line, "%s() runs on the GPU, which has no exceptions: report the error through memory",
                     who);
    return;
  }
  if (begins(name, "__cxa_guard_acquire")) {
    if (!warns)
      refuse_call_at(at.file, at.line, "a static variable in %s(), which runs on the GPU, must begin with a constant",
                     who);
    return;
  }
  Space space = UNKNOWN;
  for (int i = 0; i < listed_count; i++)
    if (strcmp(listed[i].name, name) == 0 && space != DEVICE && space != BOTH) space = listed[i].space;
  if (space == HOST) refuse_host(caller, at, name, false);
  if (space != UNKNOWN || warns || begins(name, "__") || begins(name, "simt_") || begins(name, "operator ")) return;
  if (is_among(name, length, KERNEL_FUNCTIONS) || (option_rdc && is_among(name, length, DEVICE_RUNTIME))) return;
  refuse_library(at.file, at.line, name, who);
}

/* "fD.123 (": a call's function; gives the end of its name, and its number. NULL: this is no call. */
static const char *called(const char *p, int *uid) {
  const char *end = p;
  if (begins(p, "operator"))
    while (*end && !(end[0] == 'D' && end[1] == '.' && isdigit((unsigned char)end[2]))) end++;
  else
    while (*end && !strchr(" ([\"", *end)) end++;
  if (!begins(p, "operator")) { /* back to the last D. */
    if (strncmp(end, " (", 2) != 0) return NULL;
    while (end > p && !(end[0] == 'D' && end[1] == '.' && isdigit((unsigned char)end[2]))) end--;
  }
  if (end == p || !*end) return NULL;
  char *rest;
  *uid = (int)strtol(end + 2, &rest, 10);
  return strncmp(rest, " (", 2) == 0 ? end : NULL;
}

/* Is `number` that of a parameter or variable of f, through which it calls? They stand before the first statement. */
static bool is_variable(const Dumped *f, int uid) {
  char mark[32];
  size_t length = (size_t)snprintf(mark, sizeof mark, "D.%d", uid);
  for (const char *p = f->body; p < f->end; p += strlen(p) + 1) {
    const char *start = p + strspn(p, " "), *file;
    int count, line;
    if (skip_location(start, &file, &count, &line) > start) return false;
    for (const char *found = start; (found = strstr(found, mark)); found++)
      if (!isdigit((unsigned char)found[length]) && found[length] != ' ') return true;
  }
  return false;
}

static void check_body(const Dumped *f) {
  CallPlace at = {f->file, f->line};
  char *file = NULL;
  for (const char *p = f->body; p < f->end; p += strlen(p) + 1) {
    const char *start = p + strspn(p, " "), *next, *name;
    int length, line, uid, own_line = 0;
    while ((next = skip_location(start, &name, &length, &line)) > start) {
      if (!own_line) {
        if (!file || strlen(file) != (size_t)length || memcmp(file, name, (size_t)length) != 0)
          file = need(strndup(name, (size_t)length));
        at = (CallPlace){file, own_line = line};
      }
      start = next;
    }
    const char *end = called(start, &uid), *right = NULL;
    if (!end && (right = strstr(start, " = "))) {
      start = right + 3;
      while ((next = skip_location(start, &name, &length, &line)) > start) start = next;
      end = called(start, &uid);
    }
    if (end) {
      if (!is_variable(f, uid)) judge(f, at, start, (size_t)(end - start), uid);
    } else if (right && f->space != THRUST) { /* pointer = function; */
      const char *mark = strstr(start, "D.");
      uid = mark ? atoi(mark + 2) : 0;
      if (mark && mark[strcspn(mark, ";")] && uid < number_limit && dumped_by_number[uid] && !strpbrk(start, " (\""))
        judge_listed(f, at, &dumped[dumped_by_number[uid] - 1]);
    }
  }
}

void check_calls(const char *functions, const char *dump) {
  read_functions(functions);
  read_dump(read_file(dump));
  for (int i = 0; i < dumped_count; i++) {
    Dumped *f = &dumped[i];
    if (!f->file) continue;
    if (runs_for_thrust(f)) f->space = THRUST;
    if (!is_listed_file(f->file)) continue;
    const Listed *l = listed_at(f, false);
    if (!l && f->is_lambda) l = listed_at(f, true); /* a lambda runs where its function does */
    if (l && (l->space == DEVICE || l->space == BOTH)) f->space = l->space;
  }
  bool *checked = need(calloc((size_t)dumped_count + 1, sizeof *checked));
  for (bool again = true; again;) { /* constructors that the compiler made are found on the way */
    again = false;
    for (int i = 0; i < dumped_count; i++) {
      Space space = dumped[i].space;
      if (checked[i] || (space != DEVICE && space != BOTH && space != THRUST)) continue;
      checked[i] = again = true;
      check_body(&dumped[i]);
    }
  }
}
