/* rewrite.c - turns CUDA C++ into C++ that g++ compiles for the CPU.
 *
 *     g++ -E -x c++ -include cuda_runtime.h k.cu | rewrite > k.cpp
 *
 * It reads text that the preprocessor has been through. So a launch in a macro or in an included header is like any
 * other, and code that is switched off is never judged; the preprocessor's line markers (# 12 "k.cuh") say where each
 * token came from. What is not C++ is little:
 *
 *     kernel<<<grid, block>>>(x, n)       ::simt::kern("kernel", "k.cu", 12, [=](auto... a) { kernel(a...); })
 *                                             .cfg(grid, block).run(x, n)          (in one line; include/simt/launch.h)
 *     __shared__ float tile[32];          static thread_local float tile[32];      a block runs on one OS thread
 *     extern __shared__ float s[];        float (&s)[] = *(float (*)[])simt_dynamic_shared();
 *     __device__ int count;               static int count __attribute__((section("simt_bss"...)));   device memory
 *     #pragma unroll 4                    #pragma GCC unroll 4
 *     __global__, __device__, ...         nothing
 *
 * A token is never moved: it is left out, replaced, or gets text before or after it, and the space between tokens is
 * written as it was read. Hence every line keeps its number, in the compiler's messages and in the debugger.
 *
 * What cannot work is refused: FILE:LINE: error: simt: the reason, and what to do. All of it in one run; exit status 1.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rewrite_calls.h"
#include "rewrite_text.h"

static const char USAGE[] =
    "usage: rewrite [option..] [HOST.ii [DEVICE.ii]]\n"
    "Reads HOST.ii (or stdin), preprocessed CUDA; writes C++ to stdout.\n"
    "DEVICE.ii is the same source, preprocessed with -D__CUDA_ARCH__=..: kernels and device functions are taken from "
    "it.\n"
    "  --rdc           device functions and variables may be used from other files, as with nvcc -rdc=true\n"
    "  --clang         the C++ is for clang\n"
    "  --inspect       launches are left out of the inspector's instrumentation\n"
    "  --no-unroll     loops stay loops, whatever #pragma unroll says\n"
    "  --kernels=FILE  writes a line for each kernel: line, tab, file, tab, name\n"
    "  --functions=FILE  writes a line for each function: who may run it, first and last line, file, name\n"
    "  --calls=DUMP    only checks the calls in g++'s DUMP against the functions in --functions; exit status 1 when "
    "one\n"
    "                  is refused (rewrite_calls.h)\n"
    "  --relaxed-constexpr=17  kernels may call the host's functions that are constexpr in C++17\n"
    "  --ours=DIR      the folder of simt's headers\n"
    "  --stubs=DIR     a folder of empty files that stand for headers that were not found\n"
    "  --why=HEADER    only says why HEADER cannot be had; exit status 1 when nothing is known of it\n";

static bool option_clang, option_no_unroll;
static const char *option_stubs, *option_launcher = "";

/* ---- tokens ---- */

typedef enum Kind { IDENTIFIER, NUMBER, STRING, SYMBOL, END } Kind;

typedef struct Token {
  Kind kind;
  const char *text; /* in the input */
  size_t length;
  const char *file; /* as the line marker spells it: escaped */
  int line;
  int match;          /* a bracket's other half; -1: none */
  int parent;         /* the bracket that is open around this token; -1: none */
  bool is_scope;      /* the { of a namespace or class */
  int function;       /* the { of functions[function]; -1: not one */
  int unroll;         /* of a `for` with #pragma unroll: how many copies at most; 0: has none */
  bool sized;         /* a `for` that limit_unrolling() has seen */
  bool left_out;      /* the edit: not written; */
  Text before, after; /* text instead or around it */
} Token;

static Token *tokens;
static int token_count;

static bool is(int i, const char *text) {
  if (i < 0 || i >= token_count) return false;
  return strlen(text) == tokens[i].length && memcmp(tokens[i].text, text, tokens[i].length) == 0;
}

/* Are tokens i and k the same word? */
static bool is_same(int i, int k) {
  if (i < 0 || i >= token_count) return false;
  return tokens[i].length == tokens[k].length && memcmp(tokens[i].text, tokens[k].text, tokens[k].length) == 0;
}

/* Is token i one of these words, which stand between single spaces? */
static bool is_one_of(int i, const char *words) {
  if (i < 0 || i >= token_count || tokens[i].kind == STRING) return false;
  return is_among(tokens[i].text, tokens[i].length, words);
}

static bool is_kind(int i, Kind kind) { return i >= 0 && i < token_count && tokens[i].kind == kind; }
static bool is_identifier(int i) { return is_kind(i, IDENTIFIER); }
static bool opens(int i) { return (is(i, "(") || is(i, "[") || is(i, "{")) && tokens[i].match >= 0; }
static bool adjacent(int i) { return tokens[i].text + tokens[i].length == tokens[i + 1].text; }

static char *name_of(int i) { return need(strndup(tokens[i].text, tokens[i].length)); }

#define refuse(i, ...) refuse_at(tokens[i].file, tokens[i].line, __VA_ARGS__)

/* ---- headers that cannot be had ---- */

/* When a header is refused: */
#define ALWAYS ""    /* wherever the system has it */
#define MISSING NULL /* only if it is not installed */
                     /* "a/file.h": also if the program brings the library, which that file tells */
typedef struct Header {
  const char *name; /* with '/' at the end: a folder; else the beginning of a file's name */
  const char *when, *reason;
} Header;

static const Header HEADERS[] = {
    {"thrust/", "thrust/version.h", "this part of Thrust is not supported; write the loop as a kernel, or use"},
    {"cudnn", ALWAYS, "cuDNN is not supported: it exists only for a GPU; write the layer as a kernel, or with cuBLAS"},
    {"cufft", ALWAYS, "cuFFT is not supported; write the transform as a kernel, or use FFTW on the host"},
    {"cusparse", ALWAYS, "cuSPARSE is not supported; write the sparse product as a kernel"},
    {"cusolver", ALWAYS, "cuSOLVER is not supported; use LAPACK on the host"},
    {"nccl.h", ALWAYS, "NCCL is not supported: the emulator has one GPU; copy with cudaMemcpy()"},
    {"nvshmem", ALWAYS, "NVSHMEM is not supported: the emulator has one GPU"},
    {"cutlass/", "cutlass/cutlass.h",
     "CUTLASS is not supported: it is inline PTX inside; use cuBLAS (cublas_v2.h) or nvcuda::wmma (mma.h)"},
    {"cute/", "cute/config.hpp",
     "CuTe is not supported: it is inline PTX inside; use cuBLAS (cublas_v2.h) or nvcuda::wmma (mma.h)"},
    {"nvjpeg", ALWAYS, "nvJPEG is not supported; read images on the host, with libjpeg or stb_image"},
    {"npp", ALWAYS, "NPP is not supported; write the filter as a kernel"},
    {"optix", ALWAYS, "OptiX is not supported: it needs ray-tracing hardware"},
    {"nvrtc", ALWAYS, "NVRTC is not supported: kernels are compiled before the program runs"},
    {"cupti", ALWAYS, "CUPTI is not supported; simtcc --inspect counts what a profiler would"},
    {"nvml", ALWAYS, "NVML is not supported: there is no GPU to manage"},
    {"NvInfer", ALWAYS, "TensorRT is not supported: it exists only for a GPU"},
    {"cuda_gl_interop", ALWAYS, "OpenGL interoperation is not supported; copy the image to the host and write a file"},
    {"cuda_egl_interop", ALWAYS, "EGL interoperation is not supported; copy the image to the host and write a file"},
    {"cuda_vdpau_interop", ALWAYS, "VDPAU interoperation is not supported"},
    {"cuda_d3d", ALWAYS, "Direct3D interoperation is not supported"},
    {"texture_", ALWAYS, "textures are not supported; read the array by its index"},
    {"cuda_texture_types.h", ALWAYS, "textures are not supported; read the array by its index"},
    {"surface_", ALWAYS, "surfaces are not supported; write the array by its index"},
    {"cuda_surface_types.h", ALWAYS, "surfaces are not supported; write the array by its index"},
    {"cuda/ptx", ALWAYS, "cuda::ptx is not supported: it is GPU machine code; use the CUDA function for it"},
    {"GL/", MISSING, "OpenGL is not installed, and a window cannot share memory with the emulated GPU"},
    {"GLFW/", MISSING, "GLFW is not installed, and a window cannot share memory with the emulated GPU"},
    {"mpi.h", MISSING,
     "MPI is not installed (Debian: apt install libopenmpi-dev; then -I and -l as `mpicxx -show` says)"},
    {"helper_", MISSING,
     "this header belongs to NVIDIA's samples and not to CUDA: take their Common folder and add -I Common"},
    {"cuda_fp6", ALWAYS, "numbers of 6 bits belong to compute capability 10.0 and are not supported; cuda_fp8.h is"},
    {"cuda_fp4", ALWAYS, "numbers of 4 bits belong to compute capability 10.0 and are not supported; cuda_fp8.h is"},
    {"cublas", MISSING, "this part of cuBLAS is not supported; cublas_v2.h and cublasLt.h are"},
    {"curand", MISSING, "this part of cuRAND is not supported; curand.h and curand_kernel.h are"},
    {"cub/", MISSING, "this part of CUB is not supported; #include <cub/cub.cuh> gives the parts that are"},
    {"cuda/", MISSING, "this part of libcu++ is not supported; see the folder simt/include/cuda for those that are"},
    {"cooperative_groups/", MISSING, "this part of cooperative groups is not supported; cooperative_groups.h is"},
    {"nv/", MISSING, "this part of libcu++ is not supported; test __CUDA_ARCH__ instead"},
};

/* Why `path` (as included, or with folders before it) is refused. NULL: it is not. */
static const Header *refused_header(const char *path) {
  const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  for (size_t i = 0; i < sizeof HEADERS / sizeof *HEADERS; i++) {
    const char *name = HEADERS[i].name;
    if (!strchr(name, '/')) {
      if (strncmp(file, name, strlen(name)) == 0) return &HEADERS[i];
    } else {
      const char *found = strstr(path, name);
      if (found && (found == path || found[-1] == '/')) return &HEADERS[i];
    }
  }
  return NULL;
}

static int is_offered(const struct dirent *entry) {
  const char *end = strrchr(entry->d_name, '.');
  return end && strcmp(end, ".h") == 0 && !begins(entry->d_name, "simt_");
}

/* The header's reason; for a part of Thrust, with the names of those that are beside it in our folder. */
static const char *reason_for(const Header *header, const char *path) {
  if (strcmp(header->name, "thrust/") != 0) return header->reason;
  const char *part = strstr(path, header->name), *end = strrchr(part, '/');
  Text text = {0}, folder = {0};
  struct dirent **entries;
  appendf(&folder, "%s/%.*s", option_ours ? option_ours : "", (int)(end - part), part);
  int count = scandir(folder.data, &entries, is_offered, alphasort);
  if (count <= 0) count = 0, appendf(&text, "%s CUB (cub/cub.cuh) or Thrust's common headers", header->reason);
  for (int i = 0; i < count; i++) {
    if (i == 0) appendf(&text, "%s what there is of %.*s/:", header->reason, (int)(end - part), part);
    appendf(&text, " %s", entries[i]->d_name);
  }
  return text.data;
}

/* ---- reading ---- */

typedef struct Place { /* as the last line marker says */
  const char *file;
  int line;
  bool system;           /* inside a system header; ours are among them: nothing to rewrite */
  const char *user_file; /* the last file that is not a system header */
  int depth;             /* of includes */
  int refused_depth;     /* of the refused header that we are in; 0: none */
} Place;

/* The file `path` is included; by its name a program's own file is not judged. */
static void check_header(const Place *at, const char *path, bool system) {
  bool is_stub = begins(path, option_stubs);
  if (begins(path, option_ours)) return;
  if (is_stub) path += strlen(option_stubs) + 1;
  const Header *header = refused_header(path);
  if (!header) return;
  const char *shown = strstr(path, header->name);
  if (!is_stub && header->when && *header->when) {
    Text proof = {0};
    appendf(&proof, "%.*s%s", (int)(shown - path), path, header->when);
    FILE *file = fopen(proof.data, "r");
    if (!file) return;
    fclose(file);
  } else if (!is_stub && (!header->when || !system)) {
    return;
  }
  refuse_at(at->file, at->line, "#include <%s>: %s", is_stub ? path : shown, reason_for(header, shown));
}

/* After the closing quote; at the end of the line where there is none. */
static const char *skip_quoted(const char *p) {
  char quote = *p++;
  while (*p && *p != quote && *p != '\n') p += *p == '\\' && p[1] ? 2 : 1;
  return *p == quote ? p + 1 : p;
}

/* p is at the number in: # 12 "file" flags. Flag 1: a file is entered, 2: left, 3: it is a system header. The text that
 * a system header's macro leaves in a student's line has flag 3 as well, but that line's file. */
static void read_line_marker(const char *p, Place *place) {
  char *end;
  int line = (int)strtol(p, &end, 10);
  if (end == p || end[0] != ' ' || end[1] != '"') return;
  const char *name = end + 2, *quote = skip_quoted(end + 1) - 1;
  bool enters = false, leaves = false, system = false;
  for (p = quote + 1; *p && *p != '\n'; p++) {
    if (*p == '1') enters = true;
    if (*p == '2') leaves = true;
    if (*p == '3') system = true;
  }
  size_t length = (size_t)(quote - name);
  if (!place->file || strlen(place->file) != length || memcmp(place->file, name, length) != 0) {
    char *file = need(strndup(name, length));
    if (enters && !place->refused_depth) {
      int before = errors;
      check_header(place, file, system);
      if (errors > before) place->refused_depth = place->depth + 1;
    }
    place->file = file;
  }
  place->depth += enters - leaves;
  if (place->depth < place->refused_depth) place->refused_depth = 0;
  place->line = line - 1; /* the end of the marker's line counts */
  place->system = (system && (enters || leaves || !place->user_file || strcmp(place->file, place->user_file) != 0)) ||
                  place->refused_depth;
  if (!place->system) place->user_file = place->file;
}

static bool starts_identifier(unsigned char c) { return isalpha(c) || c == '_' || c == '$' || c >= 0x80; }

/* R"delimiter( ... )delimiter"; p is at the quote. */
static const char *skip_raw_string(const char *p) {
  char closing[32] = ")";
  size_t length = strcspn(p + 1, "(");
  if (length > 16) return skip_quoted(p);
  memcpy(closing + 1, p + 1, length);
  closing[length + 1] = '"';
  const char *end = strstr(p + 1 + length, closing);
  return end ? end + length + 2 : p + strlen(p);
}

static const char *skip_number(const char *p) {
  while (isalnum((unsigned char)*p) || *p == '_' || *p == '.' || (*p == '\'' && isalnum((unsigned char)p[1])))
    p += strchr("eEpP", *p) && (p[1] == '+' || p[1] == '-') ? 2 : 1;
  return p;
}

/* Operators of more than one character, as far as that matters. '<' and '>' stay alone: they may be brackets. */
static size_t symbol_length(const char *p) {
  static const char *const longer[] = {"<=>", "...", "::", "->", "==", "!=", "<=", ">=", "+=", "-=",
                                       "*=",  "/=",  "%=", "&=", "|=", "^=", "&&", "||", NULL};
  for (int i = 0; longer[i]; i++)
    if (strncmp(p, longer[i], strlen(longer[i])) == 0) return strlen(longer[i]);
  return 1;
}

static void add_token(Kind kind, const char *text, const char *end, const Place *place) {
  static int capacity;
  if (token_count == 0) capacity = 0; /* a second text has its own array */
  if (token_count == capacity) {
    capacity = capacity ? 2 * capacity : 1 << 14;
    tokens = need(realloc(tokens, (size_t)capacity * sizeof *tokens));
  }
  tokens[token_count++] = (Token){.kind = kind,
                                  .text = text,
                                  .length = (size_t)(end - text),
                                  .file = place->file,
                                  .line = place->line,
                                  .match = -1,
                                  .parent = -1,
                                  .function = -1};
}

static void tokenise(const char *p) {
  Place place = {.file = "<stdin>", .line = 1};
  bool at_line_start = true;
  tokens = NULL;
  token_count = 0;
  while (*p) {
    if (*p == '\n') {
      place.line++;
      at_line_start = true;
      p++;
    } else if (isspace((unsigned char)*p)) {
      p++;
    } else if (at_line_start && *p == '#') {
      const char *word = p + 1 + strspn(p + 1, " \t");
      if (isdigit((unsigned char)*word)) read_line_marker(word, &place);
      p += strcspn(p, "\n");
    } else if (place.system || (p[0] == '/' && p[1] == '/')) {
      p += strcspn(p, "\n");
    } else if (p[0] == '/' && p[1] == '*') {
      const char *end = strstr(p + 2, "*/");
      for (end = end ? end + 2 : p + strlen(p); p < end; p++) place.line += *p == '\n';
    } else {
      Kind kind = SYMBOL;
      const char *end = p;
      if (starts_identifier((unsigned char)*p)) {
        kind = IDENTIFIER;
        while (starts_identifier((unsigned char)*end) || isdigit((unsigned char)*end)) end++;
        if ((*end == '"' || *end == '\'') && end - p <= 3 && strspn(p, "LuU8R") == (size_t)(end - p)) {
          kind = STRING;
          end = end[-1] == 'R' && *end == '"' ? skip_raw_string(end) : skip_quoted(end);
        }
      } else if (isdigit((unsigned char)*p) || (*p == '.' && isdigit((unsigned char)p[1]))) {
        kind = NUMBER;
        end = skip_number(p);
      } else if (*p == '"' || *p == '\'') {
        kind = STRING;
        end = skip_quoted(p);
      } else {
        end = p + symbol_length(p);
      }
      add_token(kind, p, end, &place);
      for (at_line_start = false; p < end; p++) place.line += *p == '\n';
    }
  }
  add_token(END, p, p, &place);
}

static void match_brackets(void) {
  int *open = need(malloc((size_t)token_count * sizeof *open)), depth = 0;
  for (int i = 0; i < token_count; i++) {
    tokens[i].parent = depth ? open[depth - 1] : -1;
    if (tokens[i].kind != SYMBOL || tokens[i].length != 1) continue;
    char c = *tokens[i].text;
    if (c == '(' || c == '[' || c == '{') open[depth++] = i;
    if (c != ')' && c != ']' && c != '}') continue;
    char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
    int level = depth; /* a bracket too many is the compiler's to report: the others are matched in spite of it */
    while (level > 0 && *tokens[open[level - 1]].text != wanted) level--;
    if (!level) continue;
    depth = level - 1;
    tokens[open[depth]].match = i;
    tokens[i].match = open[depth];
    tokens[i].parent = tokens[open[depth]].parent;
  }
  free(open);
}

/* ---- brackets that are not always brackets: < > ---- */

/* i is at a '<'; gives its '>', or -1. A '<' inside is a bracket after a name, an operator elsewhere. */
static int angle_end(int i) {
  int depth = 0;
  if (is(i + 1, "<") && adjacent(i)) return -1;
  for (; i < token_count; i++) {
    if (is(i, "<") && is(i + 1, "<") && adjacent(i))
      i++; /* a shift */
    else if (is(i, "<") && (depth == 0 || is_identifier(i - 1)))
      depth++;
    else if (is(i, ">") && --depth == 0)
      return i;
    else if (is(i, "(") || is(i, "[") || is(i, "{"))
      i = tokens[i].match >= 0 ? tokens[i].match : token_count;
    else if (is_one_of(i, "; ) ] }"))
      return -1;
  }
  return -1;
}

/* i is at a '>'; gives its '<', or -1. */
static int angle_start(int i) {
  int depth = 0;
  for (; i >= 0; i--) {
    if (is(i, "<") && is(i - 1, "<") && adjacent(i - 1))
      i--;
    else if (is(i, ">"))
      depth++;
    else if (is(i, "<") && --depth == 0)
      return i;
    else if (is_one_of(i, ") ] }"))
      i = tokens[i].match; /* -1 ends the search */
    else if (is_one_of(i, "; ( [ {"))
      return -1;
  }
  return -1;
}

/* The end of the comma-separated piece that starts at i: its ',' or `end`. In a declaration a < after a name is a
 * bracket; among arguments it is one if what follows its > cannot be an operand: f<int, 3>(x), but a < b, c > d. */
static int piece_end(int i, int end, bool is_declaration) {
  for (; i < end; i++) {
    if (is(i, ",")) return i;
    if (opens(i)) {
      i = tokens[i].match;
    } else if (is(i, "<") && is_identifier(i - 1)) {
      int close = angle_end(i);
      if (close >= 0 && close < end && (is_declaration || is_one_of(close + 1, "( :: { ,") || close + 1 == end))
        i = close;
    }
  }
  return end;
}

/* alignas(16), __attribute__((aligned(16))), [[maybe_unused]]: the end of it; i where there is none. */
static int attribute_end(int i) {
  if (is_one_of(i, "alignas _Alignas __align__ __attribute__ __attribute") && opens(i + 1))
    return tokens[i + 1].match + 1;
  if (is(i, "[") && is(i + 1, "[") && opens(i)) return tokens[i].match + 1;
  return i;
}

/* ---- functions and declarations: what stands directly in a namespace or class ---- */

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

static Item *items;
static int item_count;

static Item *function_at(int i) { /* whose body token i is in; NULL: none */
  for (i = tokens[i].parent; i >= 0; i = tokens[i].parent)
    if (tokens[i].function >= 0) return &items[tokens[i].function];
  return NULL;
}

static bool in_function(int i) { /* a lambda's body counts */
  for (i = tokens[i].parent; i >= 0; i = tokens[i].parent)
    if (is(i, "{")) return !tokens[i].is_scope;
  return false;
}

static bool is_kernel_or_device_only(const Item *item) { return item->global || (item->device && !item->host); }

/* The parameter list of a function? f(..), f<int>(..); not (*f)(..), decltype(..), T x(1). */
static bool is_parameter_list(int i) {
  if (is_one_of(i - 1,
                "decltype __typeof__ typeof noexcept throw __launch_bounds__ __maxnreg__ __cluster_dims__ "
                "__block_size__ explicit requires asm __asm__ static_assert sizeof alignof"))
    return false;
  if (!is_identifier(i - 1) && !is(i - 1, ">")) return false;
  return !is(i + 1, "*") && !is(i + 1, "&") && !is_kind(i + 1, NUMBER) && !is_kind(i + 1, STRING) &&
         !is_one_of(i + 1, "- true false nullptr");
}

static void add_item(Item item, int end) {
  if (item.name >= 0 && tokens[item.name].kind != IDENTIFIER) item.name = -1;
  item.end = end;
  items = need(realloc(items, (size_t)(item_count + 1) * sizeof *items));
  items[item_count++] = item;
}

static void parse_scope(int i, int end, const char *class_name);

/* One declaration or definition; gives the token after it. */
static int parse_item(int i, int end, const char *class_name) {
  Item item = {.start = i, .name = -1, .parameters = -1, .body = -1, .class_name = class_name};
  bool is_namespace = false, is_enum = false, after_operator = false, assigned = false, has_initialisers = false;
  int class_key = -1, number = -1; /* a class is items[number], before its members */
  for (; i < end; i++) {
    int skipped = attribute_end(i);
    if (skipped > i) {
      i = skipped - 1;
    } else if (is(i, ";")) {
      if (number < 0)
        add_item(item, i + 1);
      else
        items[number].end = i + 1;
      return i + 1;
    } else if (is(i, "template") && is(i + 1, "<") && angle_end(i + 1) > 0) {
      int close = angle_end(i + 1);
      if (close == i + 2) item.is_specialisation = true;
      if (close > i + 2) item.is_template = true;
      i = close;
    } else if (is(i, "operator") && !assigned) {
      item.name = i;
      after_operator = true;
      if (is(i + 1, "(")) i += 2; /* operator()(..) */
      while (i + 1 < end && !is_one_of(i + 1, "( ; {")) i++;
    } else if (is(i, "(")) {
      if (item.parameters < 0 && !assigned && (after_operator || is_parameter_list(i))) {
        item.parameters = i;
        if (!after_operator) item.name = is(i - 1, ">") ? angle_start(i - 1) - 1 : i - 1;
      }
      if (tokens[i].match > 0) i = tokens[i].match;
    } else if (is(i, "[")) {
      if (tokens[i].match > 0) i = tokens[i].match;
    } else if (is(i, "<") && is_identifier(i - 1) && !assigned && angle_end(i) > 0) {
      i = angle_end(i);
    } else if (is(i, "=")) {
      assigned = true;
    } else if (is(i, ":") && item.parameters >= 0) {
      has_initialisers = true; /* of a constructor */
    } else if (is(i, "{") && tokens[i].match >= 0) {
      int close = tokens[i].match;
      bool is_linkage = is(item.start, "extern") && is_kind(item.start + 1, STRING) && i == item.start + 2;
      if (is_namespace || is_linkage) {
        tokens[i].is_scope = true;
        add_item(item, i + 1);
        parse_scope(i + 1, close, NULL);
        return close + 1;
      }
      bool is_member = has_initialisers && (is_identifier(i - 1) || is(i - 1, ">")); /* S() : x{1} {} */
      if (class_key >= 0 && !is_enum && item.parameters < 0 && !assigned) {
        int name = class_key + 1;
        while (attribute_end(name) > name) name = attribute_end(name);
        tokens[i].is_scope = true;
        number = item_count;
        add_item(item, close + 1);
        parse_scope(i + 1, close, is_identifier(name) ? name_of(name) : "");
      } else if (item.parameters >= 0 && !assigned && !is_member) {
        item.body = i;
        tokens[i].function = item_count;
        add_item(item, close + 1);
        return close + 1;
      }
      i = close;
    } else if (is_identifier(i) && !assigned) {
      if (is(i, "namespace")) is_namespace = true;
      if (is(i, "enum")) is_enum = true;
      if (is_one_of(i, "class struct union") && class_key < 0 && item.parameters < 0) class_key = i;
      if (is(i, "__global__")) item.global = true;
      if (is(i, "__device__")) item.device = true;
      if (is(i, "__host__")) item.host = true;
      if (is(i, "__constant__")) item.constant = true;
      if (is(i, "__managed__")) item.managed = true;
    }
  }
  if (number < 0) add_item(item, end);
  return end;
}

static void parse_scope(int i, int end, const char *class_name) {
  while (i < end) {
    if (is(i, ";"))
      i++;
    else if (is_one_of(i, "public private protected") && is(i + 1, ":"))
      i += 2;
    else
      i = parse_item(i, end, class_name);
  }
}

static void parse(const char *text) {
  items = NULL;
  item_count = 0;
  tokenise(text);
  match_brackets();
  parse_scope(0, token_count - 1, NULL);
}

static bool head_has(const Item *item, const char *words) {
  int end = item->parameters >= 0 ? item->parameters : item->end;
  for (int i = item->start; i < end && !is(i, "=") && !is(i, "{"); i++)
    if (is_one_of(i, words)) return true;
  return false;
}

/* ---- edits ---- */

static void leave_out(int i) { tokens[i].left_out = true; }

static void leave_out_between(int first, int end) {
  for (; first < end; first++) leave_out(first);
}

static void replace(int i, const char *text) {
  leave_out(i);
  tokens[i].before.length = 0;
  appendf(&tokens[i].before, "%s", text);
}

/* The tokens [first, end) in one line: a space where there was any, but k<int> for k < int >. */
static char *spell(int first, int end) {
  Text text = {0};
  int depth = 0; /* of parentheses: a < there is an operator */
  append(&text, "", 0);
  for (int i = first; i < end; i++) {
    bool words = i > first && tokens[i - 1].kind != SYMBOL && tokens[i].kind != SYMBOL;
    bool tight = is(i, "::") || is(i - 1, "::") || (depth == 0 && (is_one_of(i, "< > , ) ]") || is(i - 1, "<")));
    if (i > first && (words || (!tight && !adjacent(i - 1)))) append(&text, " ", 1);
    append(&text, tokens[i].text, tokens[i].length);
    depth += is(i, "(") - is(i, ")");
  }
  return text.data;
}

static char *quote(const char *string) {
  Text text = {0};
  append(&text, "\"", 1);
  for (; *string; string++) {
    if (*string == '"' || *string == '\\') append(&text, "\\", 1);
    append(&text, string, 1);
  }
  append(&text, "\"", 1);
  return text.data;
}

/* ---- launches ---- */

static bool is_launch(int i) {
  return is(i, "<") && is(i + 1, "<") && is(i + 2, "<") && !is(i - 1, "operator") && !is(i - 1, "<");
}

static bool ends_expression_before(int i) { return is_one_of(i, "return else do case goto throw co_return co_yield"); }

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

static void rewrite_launch(int open) {
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
  appendf(&tokens[open].before, "(%s); }).cfg(", call.data);
  appendf(&tokens[close].before, ").run");
  leave_out_between(open, open + 3);
  leave_out_between(close, close + 3);
}

/* cudaLaunchKernel((void *)kernel, ..) and its kin: without the cast the header's templates see the kernel's type. */
static void rewrite_kernel_argument(int name) {
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

static Names kernel_names;

/* (void *)kernel, anywhere: the address goes through a template that notes the kernel's parameters, so that it can be
 * launched by the address. i is at the kernel's name. */
static void rewrite_kernel_address(int i) {
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

/* ---- variables: __shared__, __device__, __constant__ ---- */

static int declaration_start(int i) {
  for (; i > 0; i--) {
    if (is_one_of(i - 1, "; { }") || (is(i - 1, ":") && !is(i, ":"))) return i;
    if (is(i - 1, ")") && tokens[i - 1].match > 0 && attribute_end(tokens[i - 1].match - 1) != i) return i;
    if (is(i - 1, ")") && tokens[i - 1].match > 0) i = tokens[i - 1].match + 1;
  }
  return i;
}

static int declaration_end(int i) {
  for (; i < token_count - 1 && !is(i, ";"); i++)
    if (opens(i)) i = tokens[i].match;
  return i;
}

/* The name that the declarator [first, end) declares: *a[4], (*a)[4], a = 3, a{3}. With the type before it, or not. */
static int declared_name(int first, int end) {
  int name = -1;
  for (int i = first; i < end; i++) {
    bool is_class = is_one_of(name, "struct union class enum") || is_one_of(name - 1, "struct union class enum");
    if (is_one_of(i, "= [") || (is(i, "{") && name >= 0 && !is_class)) break;
    if (is(i, "(") && name >= 0 && !is(i + 1, "*") && !is(i + 1, "&")) break;
    int skipped = attribute_end(i);
    if (skipped > i) {
      i = skipped - 1;
    } else if (is(i, "<") && is_identifier(i - 1) && angle_end(i) > 0) {
      i = angle_end(i);
    } else if (is(i, "{")) { /* the name comes after the class */
      i = tokens[i].match;
      name = -1;
    } else if (is_identifier(i) && !is_one_of(i, "const volatile __restrict__")) {
      name = i;
    }
  }
  return name;
}

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

/* void f(..) {  ->  void f(..) { float (&s)[] = ..; { : in braces of its own, so that the body may declare an s too. */
static void declare_dynamic_shared_in_functions(void) {
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

/* A block runs on one OS thread, and one block at a time: what is local to the thread is shared by the block. */
static void rewrite_shared(int at) {
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

/* Without -rdc a device variable belongs to its file alone: two files may have one of the same name. */
static void rewrite_device_variable(const Item *item) {
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

/* A variable that is a template: g++ gives it no section, so each use registers it with the runtime. */
static void rewrite_template_variable(const Item *item) {
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

/* Without -rdc a device function belongs to its file alone: a header with one may be included by two files. */
static void rewrite_device_function(const Item *item, const Names *friends) {
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

static void check_kernel(const Item *item);
static void note_host_variable(const Item *item);

/* For the inspector, which names memory by the parameter through which a kernel has it: "kernel,x,,out" in a section of
 * its own. */
static void note_parameters(const Item *item) {
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

static void rewrite_items(FILE *kernels) {
  Names friends = {0};
  for (int k = 0; k < item_count; k++)
    if (items[k].name >= 0 && items[k].device && head_has(&items[k], "friend"))
      add_name(&friends, name_of(items[k].name));
  for (int k = 0; k < item_count; k++) {
    const Item *item = &items[k];
    if (item->global && item->name >= 0) add_name(&kernel_names, name_of(item->name));
    if (item->global && item->name >= 0 && item->parameters >= 0) check_kernel(item);
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

static void list_functions(FILE *out) {
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

/* ---- what cannot work ---- */

/* The text of the string literals from token i on, with single spaces for what separates its words. */
static char *text_of_strings(int i) {
  Text text = {0};
  append(&text, "", 0);
  for (; is_kind(i, STRING); i++) {
    const char *p = memchr(tokens[i].text, '"', tokens[i].length), *end = tokens[i].text + tokens[i].length - 1;
    if (!p) continue;
    if (p > tokens[i].text && p[-1] == 'R') p += strcspn(p, "(");
    for (p++; p < end; p++) {
      bool escape = p[0] == '\\' && strchr("nt", p[1]);
      p += escape;
      if (!escape && !isspace((unsigned char)*p))
        append(&text, p, 1);
      else if (text.length && text.data[text.length - 1] != ' ')
        append(&text, " ", 1);
    }
  }
  while (text.length && text.data[text.length - 1] == ' ') text.data[--text.length] = 0;
  return text.data;
}

static void check_assembly(int i) {
  const Item *function = function_at(i);
  int open = i + 1;
  while (is_one_of(open, "volatile __volatile__ __volatile goto inline __inline__")) open++;
  if (!is(open, "(") || !is_kind(open + 1, STRING) || !function) return;
  char *start = text_of_strings(open + 1);
  if (!*start) return; /* asm volatile("" ::: "memory"): the compiler keeps its order of accesses */
  bool is_ptx = is_kernel_or_device_only(function);
  for (const char *p = start; *p && !is_ptx; p++) /* add.s32: no processor's assembly but the GPU's has such dots */
    is_ptx = isalpha((unsigned char)p[0]) && p[1] == '.' && isalpha((unsigned char)p[2]);
  if (!is_ptx) return;

  static const char *const instead[][2] = {
      {"cp.async.bulk", "plain loads and stores, or cuda::memcpy_async() (cuda/barrier)"},
      {"cp.async", "__pipeline_memcpy_async() (cuda_pipeline.h), or cuda::memcpy_async()"},
      {"wgmma", "nvcuda::wmma (mma.h)"},
      {"mma", "nvcuda::wmma (mma.h)"},
      {"ldmatrix", "nvcuda::wmma::load_matrix_sync() (mma.h)"},
      {"cvta", "__cvta_generic_to_shared(); with the instruction that used the address, the CUDA function for it"},
      {"mbarrier", "cuda::barrier (cuda/barrier)"},
      {"laneid", "threadIdx.x % warpSize"},
      {"lanemask", "an expression of threadIdx.x % warpSize"},
      {"warpid", "threadIdx.x / warpSize"},
      {"smid", "blockIdx: which multiprocessor a block runs on is nothing to rely on"},
      {"globaltimer", "clock64()"},
      {"clock", "clock64()"},
      {"nanosleep", "__nanosleep()"},
      {"barrier", "__syncthreads(), cooperative groups or cuda::barrier"},
      {"bar.", "__syncthreads(), cooperative groups or cuda::barrier"},
      {"shfl", "__shfl_sync() and its kin"},
      {"vote", "__ballot_sync(), __any_sync() or __all_sync()"},
      {"match", "__match_any_sync()"},
      {"redux", "__reduce_add_sync() and its kin"},
      {"membar", "__threadfence()"},
      {"fence", "__threadfence()"},
      {"atom.", "atomicAdd() and its kin"},
      {"red.", "atomicAdd() and its kin"},
      {"prefetch", "nothing: it changes no result"},
      {"discard", "nothing: it changes no result"},
      {"ld.", "*pointer, or __ldg(), __ldcs(), __ldcg()"},
      {"st.", "*pointer = value, or __stcs(), __stcg()"},
      {"ex2", "exp2f()"},
      {"lg2", "log2f()"},
      {"tanh", "tanhf()"},
      {"rcp", "1 / x, or __frcp_rn()"},
      {"rsqrt", "rsqrtf()"},
      {"sqrt", "sqrtf()"},
      {"sin", "sinf()"},
      {"cos", "cosf()"},
      {"fma", "fmaf()"},
      {"cvt", "a conversion like __float2int_rn() or __float2half()"},
      {"dp4a", "__dp4a()"},
      {"lop3", "&, | and ^"},
      {"prmt", "__byte_perm()"},
      {"bfe", ">> and &"},
      {"bfi", "<<, & and |"},
      {"popc", "__popc()"},
      {"clz", "__clz()"},
      {"brev", "__brev()"},
      {"trap", "__trap()"},
      {"exit", "return"},
  };
  const char *advice = "C++, or the CUDA function that does the same";
  for (size_t k = 0; k < sizeof instead / sizeof *instead; k++) {
    if (!strstr(start, instead[k][0])) continue;
    advice = instead[k][1];
    break;
  }
  refuse(i, "inline PTX \"%.40s%s\" is a GPU's machine code and cannot run on a CPU; instead write %s", start,
         strlen(start) > 40 ? ".." : "", advice);
}

/* Names that stand for something that is not supported. */
static void check_name(int i) {
  static const struct {
    const char *names, *reason;
  } unsupported[] = {
      {"tex1D tex1Dfetch tex1DLod tex1DGrad tex1DLayered tex2D tex2DLod tex2DGrad tex2DLayered tex2Dgather tex3D "
       "tex3DLod "
       "tex3DGrad texCubemap texCubemapLayered cudaTextureObject_t cudaCreateTextureObject cudaDestroyTextureObject "
       "cudaTextureDesc cudaBindTexture cudaBindTexture2D cudaBindTextureToArray cudaUnbindTexture textureReference",
       "textures are not supported; read the array by its index (a[y * width + x]), and interpolate by hand"},
      {"surf1Dread surf1Dwrite surf2Dread surf2Dwrite surf3Dread surf3Dwrite cudaSurfaceObject_t "
       "cudaCreateSurfaceObject "
       "cudaDestroySurfaceObject cudaBindSurfaceToArray surfaceReference",
       "surfaces are not supported; write the array by its index (a[y * width + x])"},
      {"__cluster_dims__ cluster_group this_cluster cudaLaunchAttributeClusterDimension",
       "thread block clusters are not supported (the emulated GPU has compute capability 8.0); let the blocks of the "
       "grid "
       "work together through global memory"},
      {"cudaLaunchCooperativeKernelMultiDevice multi_grid_group this_multi_grid",
       "a cooperative launch on several GPUs is not supported: the emulator has one; use "
       "cudaLaunchCooperativeKernel()"},
      {"CUtensorMap cuTensorMapEncodeTiled", "tensor memory access (TMA) is not supported; use plain loads and stores"},
  };
  if (is_one_of(i - 1, ". ->")) return; /* a member of the program's own */
  for (size_t k = 0; k < sizeof unsupported / sizeof *unsupported; k++) {
    if (!is_one_of(i, unsupported[k].names)) continue;
    for (int f = 0; f < item_count; f++) /* the program has a function of that name */
      if (items[f].parameters >= 0 && items[f].name >= 0 && is_same(items[f].name, i)) return;
    refuse(i, "%s: %s", name_of(i), unsupported[k].reason);
    return;
  }
  if (is(i, "texture") && is(i + 1, "<") && !in_function(i))
    refuse(i, "texture<..>: %s", unsupported[0].reason);
  else if (is(i, "surface") && is(i + 1, "<") && !in_function(i))
    refuse(i, "surface<..>: %s", unsupported[1].reason);
  else if (is(i, "cudaDeviceSynchronize") && function_at(i) && is_kernel_or_device_only(function_at(i)))
    refuse(i, "cudaDeviceSynchronize() in a kernel belongs to dynamic parallelism, which is not supported");
}

/* ---- what nvcc refuses and g++ would not ---- */

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

/* i is at a name. A call of a function that is not for here? */
static void check_call(int i) {
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

static void check_kernel(const Item *item) {
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

/* The program's variables that only the host has. Constants may be read in kernels as well. */
static Names host_variables, other_variables;

static void note_host_variable(const Item *item) {
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

/* i is at a name. */
static void check_variable(int i) {
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

/* ---- the pass over all tokens ---- */

/* `static float sum;` in a device function, or a template of one, is device memory. g++ takes no section for what a
 * template or an inline function has, so it is registered with the runtime. */
static void register_static_local(int i) {
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

/* The token after the statement that begins at i. */
static int statement_end(int i) {
  while (i < token_count && is_one_of(i, "for while switch if else constexpr do")) {
    bool is_if = is(i, "if");
    if (is(i, "if") && is(i + 1, "constexpr")) i++;
    i = opens(i + 1) && is(i + 1, "(") ? tokens[i + 1].match + 1 : i + 1;
    if (!is_if) continue;
    i = statement_end(i);
    if (!is(i, "else")) return i;
  }
  if (opens(i)) {
    int end = tokens[i].match + 1;
    if (is(i, "{")) return end;
  }
  while (i < token_count && !is_one_of(i, "; }")) i = opens(i) ? tokens[i].match + 1 : i + 1;
  return is(i, ";") ? i + 1 : i;
}

/* ---- lanes in step ----
 *
 *     volatile float *s = ..;  s[t] += s[t + 32];  s[t] += s[t + 16];
 *
 * was right while a warp's lanes ran in step. Since compute capability 7.0 it needs __syncwarp(), and here, where one
 * thread runs after the other, the sums are wrong: a warning for each such function. */

static bool same_spelling(int i, int j, int count) {
  for (int k = 0; k < count; k++)
    if (tokens[i + k].length != tokens[j + k].length ||
        memcmp(tokens[i + k].text, tokens[j + k].text, tokens[i + k].length) != 0)
      return false;
  return true;
}

static bool meets_others(int first, int end) {
  for (int i = first; i < end; i++)
    if (is_identifier(i) && (begins(tokens[i].text, "__sync") || begins(tokens[i].text, "__shfl") ||
                             is_one_of(i, "sync wait arrive_and_wait else return __ballot_sync __reduce_add_sync")))
      return true;
  return false;
}

/* i is at s[t] = .. s[t + 8] ..: the offset's first token. -1: it is none such. */
static int neighbour_read(int i, const Names *names) {
  if (!is_identifier(i) || !is(i + 1, "[") || !opens(i + 1) || is_one_of(i - 1, ". ->") || !has_name(names, name_of(i)))
    return -1;
  int first = i + 2, close = tokens[i + 1].match, count = close - first, end = declaration_end(close);
  if (!is_one_of(close + 1, "= += -= *= |= &= ^=")) return -1;
  for (int k = close + 1; k < end; k++) {
    if (!is_same(k, i) || !is(k + 1, "[") || !opens(k + 1)) continue;
    int offset = k + 2 + count;
    if (offset < tokens[k + 1].match && is_one_of(offset, "+ - ^") && same_spelling(first, k + 2, count)) return offset;
  }
  return -1;
}

/* Is the statement repeated by a `for` whose variable is in the offset alone, and nobody waits for the others? */
static bool is_step_of_loop(const Item *function, int i, int offset) {
  for (int k = function->body; k < i; k++) {
    if (!is(k, "for") || !opens(k + 1) || statement_end(k) <= i || meets_others(k, statement_end(k))) continue;
    int variable = k + 2;
    while (variable < tokens[k + 1].match && !is(variable + 1, "=")) variable++;
    if (!is_identifier(variable)) continue;
    char *name = name_of(variable);
    bool in_index = false, in_offset = false;
    for (int t = i + 2; t < tokens[i + 1].match; t++) in_index = in_index || is(t, name);
    for (int t = offset; !is(t, "]"); t++) in_offset = in_offset || is(t, name);
    if (in_offset && !in_index) return true;
  }
  return false;
}

static void check_lanes_in_step(const Item *function) {
  Names names = {0};
  for (int i = function->start; i < function->end; i++) {
    int name = -1;
    if (!is(i, "volatile")) continue;
    for (int k = i + 1; k < function->end && !is_one_of(k, "; , ) = [ { ("); k++)
      if (is_identifier(k)) name = k;
    if (name >= 0) add_name(&names, name_of(name));
  }
  if (!names.count) return;
  int before = -1;
  for (int i = function->body; i < function->end; i++) {
    int offset = neighbour_read(i, &names);
    if (offset < 0) continue;
    bool again = before >= 0 && is_same(before, i) && tokens[before + 1].match - before == tokens[i + 1].match - i &&
                 same_spelling(before, i, tokens[i + 1].match - i) && !meets_others(before, i);
    if (again || is_step_of_loop(function, i, offset)) {
      char *name = name_of(i), *who = function->name >= 0 ? name_of(function->name) : "a lambda";
      fprintf(
          stderr,
          "%s:%d: warning: simt: %s() relies on the lanes of a warp running in step: %s is volatile, and there is no "
          "__syncwarp() between the steps. Here threads run one after the other, and the result is wrong; on a GPU "
          "since compute capability 7.0 it may be. Put __syncwarp() between reading and writing, or use "
          "__shfl_down_sync()\n",
          tokens[i].file, tokens[i].line, who, name);
      return;
    }
    before = i;
  }
}

static void rewrite(FILE *kernels) {
  for (int k = 0; k < item_count; k++)
    if (items[k].body >= 0 && is_kernel_or_device_only(&items[k])) check_lanes_in_step(&items[k]);
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

/* ---- __CUDA_ARCH__ ----
 *
 * nvcc compiles a file twice, for the host without __CUDA_ARCH__ and for the GPU with it, and the program gets the
 * functions of both. Here there is one compilation, of the host's text, in which
 *
 *     kernels and __device__ functions are those of the device's text, also where only that one has them;
 *     a __host__ __device__ function whose bodies differ has both, and asks at run time where it is. */

typedef struct Parsed {
  Token *tokens;
  int token_count;
  Item *items;
  int item_count;
  const char *text;
} Parsed;

static Parsed parsed(const char *text) {
  parse(text);
  return (Parsed){tokens, token_count, items, item_count, text};
}

static bool same_text(const Parsed *a, int i, const Parsed *b, int j) {
  return a->tokens[i].length == b->tokens[j].length &&
         memcmp(a->tokens[i].text, b->tokens[j].text, a->tokens[i].length) == 0;
}

static bool same_tokens(const Parsed *a, int i, int a_end, const Parsed *b, int j, int b_end) {
  for (; i < a_end && j < b_end; i++, j++)
    if (!same_text(a, i, b, j)) return false;
  return i == a_end && j == b_end;
}

/* The same place in the source? */
static bool same_item(const Parsed *a, int k, const Parsed *b, int l) {
  const Item *x = &a->items[k], *y = &b->items[l];
  const Token *s = &a->tokens[x->start], *t = &b->tokens[y->start];
  if (s->line != t->line || strcmp(s->file, t->file) != 0 || (x->name < 0) != (y->name < 0)) return false;
  return x->name < 0 ? same_text(a, x->start, b, y->start) : same_text(a, x->name, b, y->name);
}

static bool has_assembly(const Parsed *p, const Item *item) {
  for (int i = item->body; i < item->end; i++)
    if (p->tokens[i].kind == IDENTIFIER && (begins(p->tokens[i].text, "asm") || begins(p->tokens[i].text, "__asm")) &&
        (p->tokens[i].length == 3 || p->tokens[i].length == 5 || p->tokens[i].length == 7))
      return true;
  return false;
}

static void append_marker(Text *out, const Token *token) { appendf(out, "\n# %d \"%s\"\n", token->line, token->file); }

/* The tokens [first, end) of p with the space between them; its own line markers come with it. */
static void append_tokens(Text *out, const Parsed *p, int first, int end) {
  append_marker(out, &p->tokens[first]);
  const Token *last = &p->tokens[end - 1];
  append(out, p->tokens[first].text, (size_t)(last->text + last->length - p->tokens[first].text));
}

/* The bracket around the item; items are neighbours if it is the same one. */
static bool same_scope(const Parsed *a, int k, const Parsed *b, int l) {
  int i = a->tokens[a->items[k].start].parent, j = b->tokens[b->items[l].start].parent;
  if (i < 0 || j < 0) return i < 0 && j < 0;
  return a->tokens[i].line == b->tokens[j].line && strcmp(a->tokens[i].file, b->tokens[j].file) == 0;
}

/* Two definitions of a function that stand in both texts. */
static void merge_bodies(Text *out, const char **copied, const Parsed *host, const Item *h, const Parsed *device,
                         const Item *d) {
  int h_end = h->end - 1, d_end = d->end - 1;
  if (h->body < 0 || d->body < 0 || !(h->global || h->device)) return;
  if (same_tokens(host, h->body, h->end, device, d->body, d->end)) return;
  if (has_assembly(device, d) && !has_assembly(host, h)) return; /* the way without PTX */
  const Token *open = &host->tokens[h->body], *close = &host->tokens[h_end];
  if (open->text < *copied) return;
  append(out, *copied, (size_t)(open->text + 1 - *copied));
  *copied = open->text + 1;
  if (is_kernel_or_device_only(h)) {
    if (d_end > d->body + 1) append_tokens(out, device, d->body + 1, d_end);
    append_marker(out, close);
    *copied = close->text;
    return;
  }
  if (head_has(h, "constexpr consteval")) {
    fprintf(stderr,
            "%s:%d: warning: simt: this constexpr function depends on __CUDA_ARCH__; kernels get the host's form\n",
            open->file, open->line);
    return;
  }
  appendf(out, " if (::simt_in_kernel()) {");
  if (d_end > d->body + 1) append_tokens(out, device, d->body + 1, d_end);
  appendf(out, "\n} else {");
  append_marker(out, open);
  append(out, *copied, (size_t)(close->text - *copied));
  appendf(out, "}");
  *copied = close->text;
}

static bool is_device_function(const Item *item) { return item->parameters >= 0 && is_kernel_or_device_only(item); }

/* Is there, among the items [from, to) of p, a function like h[k]? */
static bool has_function(const Parsed *p, int from, int to, const Parsed *h, int k) {
  for (int i = from; i < to; i++)
    if (is_device_function(&p->items[i]) && p->items[i].name >= 0 && h->items[k].name >= 0 &&
        same_text(p, p->items[i].name, h, h->items[k].name))
      return true;
  return false;
}

static const char *merge(const char *host_text, const char *device_text) {
  Parsed device = parsed(device_text), host = parsed(host_text);
  Text out = {0};
  const char *copied = host_text; /* up to here the host's text is in `out` */
  for (int h = 0, d = 0; h < host.item_count || d < device.item_count;) {
    /* How many items to skip until both are at the same place again: as few as possible. */
    int skip_h = 0, skip_d = 0;
    for (int sum = 0, found = 0; !found; sum++) {
      if (sum > (host.item_count - h) + (device.item_count - d)) break;
      for (skip_h = 0; skip_h <= sum; skip_h++) {
        skip_d = sum - skip_h;
        bool h_ends = h + skip_h == host.item_count, d_ends = d + skip_d == device.item_count;
        if (h + skip_h > host.item_count || d + skip_d > device.item_count || h_ends != d_ends) continue;
        found = h_ends || same_item(&host, h + skip_h, &device, d + skip_d);
        if (found) break;
      }
    }
    for (int k = h; k < h + skip_h; k++) { /* only the host has them */
      const Item *item = &host.items[k];
      bool replaced = !item->global || has_function(&device, d, d + skip_d, &host, k);
      if (!is_device_function(item) || !replaced || host.tokens[item->start].text < copied) continue;
      append(&out, copied, (size_t)(host.tokens[item->start].text - copied));
      append_marker(&out, &host.tokens[item->end]);
      copied = host.tokens[item->end].text;
    }
    for (int l = d; l < d + skip_d; l++) { /* only the device has them */
      if (!is_device_function(&device.items[l])) continue;
      int last = h + skip_h - 1, next = last + 1, at;
      if (last >= 0 && same_scope(&host, last, &device, l))
        at = host.items[last].end;
      else if (next < host.item_count && same_scope(&host, next, &device, l))
        at = host.items[next].start;
      else if (next == host.item_count)
        at = host.token_count - 1;
      else
        continue;
      const char *place = host.tokens[at].text;
      if (place > copied) append(&out, copied, (size_t)(place - copied)), copied = place;
      append_tokens(&out, &device, device.items[l].start, device.items[l].end);
      append_marker(&out, &host.tokens[at]);
    }
    h += skip_h;
    d += skip_d;
    if (h == host.item_count) break;
    merge_bodies(&out, &copied, &host, &host.items[h], &device, &device.items[d]);
    h++;
    d++;
  }
  append(&out, copied, strlen(copied));
  return out.data;
}

/* ---- writing ---- */

/* g++ complains of the pragma, and no option silences it, where the condition has branches. */
static bool can_be_unrolled(int i) {
  if (!is(i, "for") || !opens(i + 1)) return false;
  for (int k = i + 1; k < tokens[i + 1].match; k++)
    if (is_one_of(k, "&& || ?")) return false;
  return true;
}

/* A line "#pragma unroll [N]", or "nounroll": N; 1 for the latter, 0 for another line. */
static int unroll_pragma(const char *p) {
  p += strspn(p, " \t");
  if (!begins(p, "#pragma")) return 0;
  p += 7 + strspn(p + 7, " \t");
  if (begins(p, "nounroll")) return 1;
  if (!begins(p, "unroll")) return 0;
  p += 6 + strspn(p + 6, " \t(");
  long count = isdigit((unsigned char)*p) ? strtol(p, NULL, 10) : 32;
  return count > 64 ? 64 : count < 1 ? 1 : (int)count;
}

/* The value of a number, or of a constant of the program: const int N = 8. -1: not known. */
static long constant_value(int i) {
  if (is_kind(i, NUMBER)) return strtol(tokens[i].text, NULL, 0);
  for (int k = 0; is_identifier(i) && k + 2 < token_count; k++)
    if (is_same(k, i) && is(k + 1, "=") && is_kind(k + 2, NUMBER) && is_one_of(k + 3, "; , }") &&
        !is_one_of(k - 1, "( . ->"))
      return strtol(tokens[k + 2].text, NULL, 0);
  return -1;
}

/* How often `for (int i = A; i < B; i += C)` runs; what is not known, as a template's argument, counts as 8. */
static long trip_count(int i) {
  int open = i + 1, close = tokens[open].match, first = -1, bound = -1;
  long step = 1;
  for (int k = open; k < close; k++) {
    if (is(k, "=") && first < 0) first = k + 1;
    if (is_one_of(k, "< <=") && bound < 0) bound = k + 1;
    if (is(k, "+=")) step = constant_value(k + 1);
    if (is_one_of(k, "*= /= > >=")) return 8;
  }
  if (first < 0 || bound < 0 || !is(first + 1, ";") || !is(bound + 1, ";")) return 8;
  long from = constant_value(first), to = constant_value(bound);
  if (to < 0) from = 0, to = 8;
  to += is(bound - 1, "<=");
  if (from < 0 || to < from || step < 1) return 8;
  return (to - from + step - 1) / step;
}

/* Loops in loops, each with #pragma unroll, multiply: g++ takes a second for some 50000 tokens, and minutes for many.
 * The outer ones stay loops then. Gives the size in tokens of the unrolled loop at i. */
static double limit_unrolling(int i) {
  static const double limit = 150000;
  static int notes;
  int end = statement_end(i);
  double size = 0;
  tokens[i].sized = true;
  for (int k = i + 1; k < end; k++) {
    if (is(k, "for") && opens(k + 1)) {
      size += limit_unrolling(k);
      k = statement_end(k) - 1;
    } else {
      size++;
    }
  }
  if (tokens[i].unroll < 2) return size;
  long count = trip_count(i);
  if (count > tokens[i].unroll) count = tokens[i].unroll;
  if (size * (double)count <= limit) return size * (double)count;
  tokens[i].unroll = 0;
  if (notes++ == 0)
    fprintf(
        stderr,
        "%s:%d: note: simt: #pragma unroll is ignored for this loop: with the loops in it, it would become %.0f times "
        "as long as written and compile very slowly; --no-unroll leaves all loops as they are\n",
        tokens[i].file, tokens[i].line, size * (double)count / (end - i));
  return size;
}

static void find_unrolled_loops(void) {
  for (int i = 1; i < token_count; i++) {
    if (!is(i, "for") || option_no_unroll || !can_be_unrolled(i)) continue;
    const char *p = tokens[i - 1].text + tokens[i - 1].length;
    for (; p && p < tokens[i].text; p = memchr(p, '\n', (size_t)(tokens[i].text - p)), p = p ? p + 1 : p) {
      int count = unroll_pragma(p);
      if (count) tokens[i].unroll = count;
    }
  }
  for (int i = 0; i < token_count; i++)
    if (is(i, "for") && opens(i + 1) && !tokens[i].sized) limit_unrolling(i);
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

static void write_text(FILE *out, const char *input) {
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

static const char *option_value(const char *argument, const char *option) {
  return begins(argument, option) ? argument + strlen(option) : NULL;
}

int main(int argc, char **argv) {
  const char *files[2] = {NULL, NULL}, *value, *functions = NULL, *calls = NULL;
  FILE *kernels = NULL;
  int count = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--rdc") == 0) {
      option_rdc = true;
    } else if (strcmp(argv[i], "--inspect") == 0) { /* the inspector looks at the kernel only, not at who calls it */
      option_launcher = "__attribute__((noinline, no_sanitize_thread, no_sanitize_coverage)) ";
    } else if (strcmp(argv[i], "--no-unroll") == 0) {
      option_no_unroll = true;
    } else if (strcmp(argv[i], "--clang") == 0) {
      option_clang = true;
    } else if ((value = option_value(argv[i], "--ours="))) {
      option_ours = value;
    } else if ((value = option_value(argv[i], "--relaxed-constexpr="))) {
      option_relaxed_constexpr = *value == '2' ? (value[1] > '0' && value[1] <= '9' ? atoi(value) : 20) : 17;
    } else if ((value = option_value(argv[i], "--functions="))) {
      functions = value;
    } else if ((value = option_value(argv[i], "--calls="))) {
      calls = value;
    } else if ((value = option_value(argv[i], "--stubs="))) {
      option_stubs = value;
    } else if ((value = option_value(argv[i], "--kernels="))) {
      kernels = fopen(value, "w");
      if (!kernels) {
        fprintf(stderr, "simt rewrite: cannot write %s\n", value);
        return 2;
      }
    } else if ((value = option_value(argv[i], "--why="))) {
      const Header *header = refused_header(value);
      if (header) puts(reason_for(header, value));
      return header ? 0 : 1;
    } else if (argv[i][0] == '-' || count == 2) {
      fputs(USAGE, stderr);
      return 2;
    } else {
      files[count++] = argv[i];
    }
  }
  if (calls && functions && option_ours) {
    check_calls(functions, calls);
    return errors > 0;
  }
  const char *text = read_file(files[0]);
  if (files[1]) text = merge(text, read_file(files[1]));
  parse(text);
  FILE *list = functions ? fopen(functions, "w") : NULL;
  if (functions && !list) {
    fprintf(stderr, "simt rewrite: cannot write %s\n", functions);
    return 2;
  }
  if (list) {
    list_functions(list);
    fclose(list);
  }
  rewrite(kernels);
  find_unrolled_loops();
  if (kernels) fclose(kernels);
  if (errors) return 1;
  write_text(stdout, text);
  return fflush(stdout) == 0 ? 0 : 2;
}
