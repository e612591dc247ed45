/* kernel.c - what can be asked of a kernel by its address or name: its __shared__ variables, attributes, occupancy; and
 * launches by address.
 *
 * A kernel's __shared__ variables are thread-local statics of its function, so the program's own symbol table has their
 * sizes: `_ZZ` mangled-function `E` variable, of type TLS. A launch knows its kernel only by the text before `<<<`, so
 * the tables are asked by base name; kernels of the same name share the largest answer. A kernel of a header has a copy
 * in each file that includes it, and the names of all copies are the same: they count as one.
 */
#include "host.h"
#include "lines.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *need(void *memory) {
  if (memory) return memory;
  fputs("=== simt: out of memory for the tables of kernels\n", stderr);
  abort();
}

/* ---- the program's symbols ---- */

typedef struct Symbol {
  const char *name; /* of a function: mangled; of shared memory: from the enclosing function's name on, without _ZZ */
  uintptr_t address;
  size_t bytes;
} Symbol;

typedef struct SymbolList {
  Symbol *symbols;
  size_t count;
} SymbolList;

static SymbolList functions, shared; /* functions: by address */
static SymbolList variables;         /* as shared, but each by itself; the address is that from simt_above_shared */

static void list_add(SymbolList *list, Symbol symbol) {
  if ((list->count & (list->count - 1)) == 0)
    list->symbols = need(realloc(list->symbols, (2 * list->count + 1) * sizeof symbol));
  list->symbols[list->count++] = symbol;
}

static void add_shared(Symbol symbol) {
  for (size_t i = 0; i < shared.count; i++)
    if (strcmp(shared.symbols[i].name, symbol.name) == 0) {
      if (symbol.bytes > shared.symbols[i].bytes) shared.symbols[i].bytes = symbol.bytes;
      return;
    }
  list_add(&shared, symbol);
}

static int by_address(const void *a, const void *b) {
  uintptr_t x = ((const Symbol *)a)->address, y = ((const Symbol *)b)->address;
  return (x > y) - (x < y);
}

static uintptr_t above; /* of simt_above_shared in the block of thread-local variables */

static void read_table(const char *file, const ElfW(Shdr) * table, const char *names) {
  const uintptr_t base = simt_program_base();
  const ElfW(Sym) *symbols = (const void *)(file + table->sh_offset);
  for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
    const ElfW(Sym) *s = &symbols[i];
    const char *name = names + s->st_name;
    int type = ELF64_ST_TYPE(s->st_info);
    if (s->st_shndx == SHN_UNDEF) continue;
    if (type == STT_FUNC) list_add(&functions, (Symbol){name, base + s->st_value, s->st_size});
    if (type == STT_TLS && strncmp(name, "_ZZ", 3) == 0) {
      add_shared((Symbol){name + 3, 0, s->st_size});
      list_add(&variables, (Symbol){name + 3, s->st_value, s->st_size});
    }
    if (type == STT_TLS && strcmp(name, "simt_above_shared") == 0) above = s->st_value;
  }
}

/* The file stays mapped: the names are in it. */
static void read_program(void) {
  struct stat status;
  int fd = open(simt_program_file(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const char *file =
      fstat(fd, &status) == 0 ? mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (file == MAP_FAILED || memcmp(file, ELFMAG, SELFMAG) != 0) return;
  const ElfW(Ehdr) *header = (const void *)file;
  const ElfW(Shdr) *sections = (const void *)(file + header->e_shoff);
  for (int i = 0; i < header->e_shnum; i++)
    if (sections[i].sh_type == SHT_SYMTAB)
      read_table(file, &sections[i], file + sections[sections[i].sh_link].sh_offset);
  for (size_t i = 0; i < variables.count; i++) variables.symbols[i].address -= above;
  qsort(functions.symbols, functions.count, sizeof *functions.symbols, by_address);
}

static void begin_symbols(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_program);
}

int simt_static_variable(ptrdiff_t from_above, ptrdiff_t *low, size_t *bytes) {
  begin_symbols();
  for (size_t i = 0; i < variables.count; i++) {
    const Symbol *s = &variables.symbols[i];
    if ((size_t)from_above - s->address >= s->bytes) continue;
    *low = (ptrdiff_t)s->address;
    *bytes = s->bytes;
    return 1;
  }
  return 0;
}

/* The mangled name of the function at an address, or NULL. */
static const char *function_symbol(const void *function) {
  Symbol key = {.address = (uintptr_t)function};
  begin_symbols();
  const Symbol *s = functions.count ? bsearch(&key, functions.symbols, functions.count, sizeof key, by_address) : NULL;
  return s ? s->name : NULL;
}

size_t simt_static_shared(const void *function) {
  const char *name = function_symbol(function);
  char encoding[4096];
  size_t bytes = 0;
  if (!name) return 0;
  if (strncmp(name, "_Z", 2) == 0) /* extern "C" names are not mangled, but those of their variables are */
    snprintf(encoding, sizeof encoding, "%sE", name + 2);
  else
    snprintf(encoding, sizeof encoding, "%zu%sE", strlen(name), name);
  for (size_t i = 0; i < shared.count; i++)
    if (strncmp(shared.symbols[i].name, encoding, strlen(encoding)) == 0) bytes += shared.symbols[i].bytes;
  return bytes;
}

/* The base name in a mangled function name (without _Z): `N2ns6kernelIfEE..` -> kernel, 6. */
static const char *mangled_base(const char *p, size_t *length) {
  const char *base = NULL;
  int nested = *p == 'N';
  *length = 0;
  if (nested) p++;
  for (;;) {
    if (*p == 'L') p++; /* internal linkage */
    if (*p < '0' || *p > '9') return base;
    char *end;
    size_t n = strtoul(p, &end, 10);
    if (n > strlen(end)) return base;
    base = end;
    *length = n;
    p = end + n;
    if (!nested) return base;
  }
}

/* The base name in the text of a launch: `ns::kernel<float>` -> kernel. */
static const char *launch_base(const char *text, size_t *length) {
  const char *end = text + strcspn(text, "<");
  while (end > text && end[-1] == ' ') end--;
  const char *start = end;
  while (start > text && start[-1] != ':' && start[-1] != ' ') start--;
  *length = (size_t)(end - start);
  return start;
}

/* Where the enclosing function's part of a local variable's name ends: the last `E` before a number. Only told apart
 * from others, so it need not be exact. */
static size_t encoding_length(const char *name) {
  size_t length = 0;
  for (size_t i = 0; name[i]; i++)
    if (name[i] == 'E' && name[i + 1] >= '0' && name[i + 1] <= '9') length = i;
  return length;
}

static size_t largest_shared(const char *base, size_t length) {
  size_t largest = 0;
  begin_symbols();
  for (size_t i = 0; i < shared.count; i++) {
    size_t n, bytes = 0, encoding = encoding_length(shared.symbols[i].name);
    const char *name = mangled_base(shared.symbols[i].name, &n);
    if (n != length || memcmp(name, base, n) != 0) continue;
    for (size_t j = 0; j < shared.count; j++)
      if (encoding_length(shared.symbols[j].name) == encoding &&
          strncmp(shared.symbols[i].name, shared.symbols[j].name, encoding) == 0)
        bytes += shared.symbols[j].bytes;
    if (bytes > largest) largest = bytes;
  }
  return largest;
}

/* ---- attributes ---- */

typedef struct Attributes {
  const void *function;
  char base[256];     /* "" when the program has no symbols: then it may be any kernel */
  int dynamic_shared; /* -1: not set */
  int carveout;
} Attributes;

/* What launches ask for, by the text's address. */
typedef struct Answer {
  const char *launch;
  char *text; /* what it was */
  size_t fixed, dynamic;
} Answer;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Attributes *attributes;
static size_t attribute_count;
enum { ANSWERS = 256 };
static Answer answers[ANSWERS];

static void forget_answers(void) {
  for (int i = 0; i < ANSWERS; i++) {
    free(answers[i].text);
    answers[i] = (Answer){0};
  }
}

static size_t default_dynamic(size_t fixed) {
  return fixed < SIMT_STATIC_SHARED_LIMIT ? SIMT_STATIC_SHARED_LIMIT - fixed : 0;
}

static int names_a_function(const char *base, size_t length) {
  begin_symbols();
  for (size_t i = 0; i < functions.count; i++) {
    const char *symbol = functions.symbols[i].name, *name = symbol;
    size_t n = strlen(symbol);
    if (strncmp(symbol, "_Z", 2) == 0) name = mangled_base(symbol + 2, &n);
    if (name && n == length && memcmp(name, base, n) == 0) return 1;
  }
  return 0;
}

/* `auto f = kernel<64>; f<<<...>>>()`: the text names no kernel, so it may have what any kernel asked for. */
static size_t allowed_dynamic(const char *base, size_t length, size_t fixed) {
  size_t most = default_dynamic(fixed);
  int pointer = base[length] != '<' && !names_a_function(base, length);
  for (size_t i = 0; i < attribute_count; i++) {
    const Attributes *a = &attributes[i];
    int same = pointer || !*a->base || (strlen(a->base) == length && memcmp(a->base, base, length) == 0);
    if (same && a->dynamic_shared >= 0 && (size_t)a->dynamic_shared > most) most = (size_t)a->dynamic_shared;
  }
  return most;
}

static Answer answer_for(const char *launch) {
  pthread_mutex_lock(&lock);
  Answer *a = &answers[((uintptr_t)launch >> 3 ^ (uintptr_t)launch >> 11) % ANSWERS];
  if (a->launch != launch || strcmp(a->text, launch) != 0) {
    size_t length;
    const char *base = launch_base(launch, &length);
    free(a->text);
    a->launch = launch;
    a->text = need(strdup(launch));
    a->fixed = largest_shared(base, length);
    a->dynamic = allowed_dynamic(base, length, a->fixed);
  }
  Answer copy = *a;
  pthread_mutex_unlock(&lock);
  return copy;
}

size_t simt_static_shared_by_name(const char *launch) { return answer_for(launch).fixed; }
size_t simt_max_dynamic_shared_by_name(const char *launch) { return answer_for(launch).dynamic; }

static Attributes *attributes_of(const void *function) {
  for (size_t i = 0; i < attribute_count; i++)
    if (attributes[i].function == function) return &attributes[i];
  attributes = need(realloc(attributes, (attribute_count + 1) * sizeof *attributes));
  Attributes *a = &attributes[attribute_count++];
  *a = (Attributes){.function = function, .dynamic_shared = -1, .carveout = cudaSharedmemCarveoutDefault};
  const char *name = function_symbol(function);
  size_t length = 0;
  const char *base = name && strncmp(name, "_Z", 2) == 0 ? mangled_base(name + 2, &length) : name;
  if (base == name && name) length = strlen(name);
  if (length && length < sizeof a->base) memcpy(a->base, base, length);
  return a;
}

void simt_kernels_reset(void) {
  pthread_mutex_lock(&lock);
  attribute_count = 0;
  forget_answers();
  pthread_mutex_unlock(&lock);
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value) {
  cudaError_t error = cudaSuccess;
  RETURN_IF_STICKY;
  if (!function) return simt_error(cudaErrorInvalidDeviceFunction);
  pthread_mutex_lock(&lock);
  Attributes *a = attributes_of(function);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || (size_t)value + simt_static_shared(function) > simt_shared_limit())
      error = cudaErrorInvalidValue;
    else
      a->dynamic_shared = value;
  } else if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
    if (value < cudaSharedmemCarveoutDefault || value > cudaSharedmemCarveoutMaxShared)
      error = cudaErrorInvalidValue;
    else
      a->carveout = value;
  } else if (attribute < cudaFuncAttributeMaxDynamicSharedMemorySize || attribute >= cudaFuncAttributeMax) {
    error = cudaErrorInvalidValue;
  }
  forget_answers();
  pthread_mutex_unlock(&lock);
  return simt_error(error);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *found, const void *function) {
  RETURN_IF_STICKY;
  if (!found) return simt_error(cudaErrorInvalidValue);
  if (!function) return simt_error(cudaErrorInvalidDeviceFunction);
  memset(found, 0, sizeof *found);
  pthread_mutex_lock(&lock);
  const Attributes *a = attributes_of(function);
  found->sharedSizeBytes = simt_static_shared(function);
  found->maxDynamicSharedSizeBytes =
      a->dynamic_shared >= 0 ? a->dynamic_shared : (int)default_dynamic(found->sharedSizeBytes);
  found->preferredShmemCarveout = a->carveout;
  pthread_mutex_unlock(&lock);
  found->maxThreadsPerBlock = SIMT_MAX_BLOCK_THREADS;
  found->numRegs = 32; /* so few that registers never limit the occupancy */
  found->ptxVersion = found->binaryVersion = simt_capability();
  return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config) {
  RETURN_IF_STICKY;
  if (!function) return simt_error(cudaErrorInvalidDeviceFunction);
  return simt_error((unsigned)config <= cudaFuncCachePreferEqual ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaFuncSetSharedMemConfig(const void *function, enum cudaSharedMemConfig config) {
  RETURN_IF_STICKY;
  if (!function) return simt_error(cudaErrorInvalidDeviceFunction);
  return simt_error((unsigned)config <= cudaSharedMemBankSizeEightByte ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaFuncGetName(const char **name, const void *function) {
  RETURN_IF_STICKY;
  if (!name || !function) return simt_error(cudaErrorInvalidValue);
  *name = function_symbol(function);
  return simt_error(*name ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

/* ---- occupancy ---- */

static size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

/* Blocks of one multiprocessor: limited by its threads, its shared memory, and a fixed number. */
static int blocks_resident(int threads, size_t shared_bytes) {
  if (threads < 1 || threads > SIMT_MAX_BLOCK_THREADS || shared_bytes > simt_shared_limit()) return 0;
  size_t by_threads = SIMT_THREADS_PER_MULTIPROCESSOR / round_up((size_t)threads, SIMT_WARP_SIZE);
  size_t by_shared = simt_shared_per_multiprocessor() / round_up(shared_bytes + SIMT_SHARED_RESERVED, 128);
  size_t blocks = by_threads < by_shared ? by_threads : by_shared;
  return (int)(blocks < SIMT_BLOCKS_PER_MULTIPROCESSOR ? blocks : SIMT_BLOCKS_PER_MULTIPROCESSOR);
}

int simt_resident_blocks(int threads, size_t shared_bytes) {
  return simt_multiprocessors() * blocks_resident(threads, shared_bytes);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size,
                                                          size_t dynamic_shared) {
  RETURN_IF_STICKY;
  if (!blocks || block_size < 1) return simt_error(cudaErrorInvalidValue);
  if (!function) return simt_error(cudaErrorInvalidDeviceFunction);
  *blocks = blocks_resident(block_size, simt_static_shared(function) + dynamic_shared);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_size,
                                                                   size_t dynamic_shared, unsigned int flags) {
  if (flags > cudaOccupancyDisableCachingOverride) return simt_error(cudaErrorInvalidValue);
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_shared);
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const cudaLaunchConfig_t *config) {
  RETURN_IF_STICKY;
  if (!clusters || !config || (config->numAttrs && !config->attrs)) return simt_error(cudaErrorInvalidValue);
  if (!function) return simt_error(cudaErrorInvalidDeviceFunction);
  if (simt_capability() < 90) return simt_error(cudaErrorNotSupported);
  unsigned size = 1;
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const cudaLaunchAttribute *a = &config->attrs[i];
    if (a->id != cudaLaunchAttributeClusterDimension) continue;
    size = a->val.clusterDim.x * a->val.clusterDim.y * a->val.clusterDim.z;
  }
  if (size < 1 || size > 8) return simt_error(cudaErrorInvalidClusterSize);
  int threads = (int)(config->blockDim.x * config->blockDim.y * config->blockDim.z);
  *clusters = simt_resident_blocks(threads, simt_static_shared(function) + config->dynamicSmemBytes) / (int)size;
  return cudaSuccess;
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int block_size) {
  RETURN_IF_STICKY;
  if (!bytes || !function || blocks < 1 || blocks_resident(block_size, 0) < blocks)
    return simt_error(cudaErrorInvalidValue);
  size_t each = simt_shared_per_multiprocessor() / (size_t)blocks / 128 * 128 - SIMT_SHARED_RESERVED;
  size_t fixed = simt_static_shared(function);
  if (each > simt_shared_limit()) each = simt_shared_limit();
  *bytes = each > fixed ? each - fixed : 0;
  return cudaSuccess;
}

/* Of sizes with equally many resident threads the largest. */
cudaError_t simt_best_block_size(int *grid, int *block, const void *function,
                                 size_t (*dynamic)(void *context, int block), void *context, int limit) {
  int most = 0;
  RETURN_IF_STICKY;
  if (!grid || !block || !function) return simt_error(cudaErrorInvalidValue);
  size_t fixed = simt_static_shared(function);
  if (limit < 1 || limit > SIMT_MAX_BLOCK_THREADS) limit = SIMT_MAX_BLOCK_THREADS;
  *grid = *block = 0;
  for (int aligned = (int)round_up((size_t)limit, SIMT_WARP_SIZE); aligned > 0; aligned -= SIMT_WARP_SIZE) {
    int threads = aligned < limit ? aligned : limit;
    int blocks = blocks_resident(threads, fixed + dynamic(context, threads));
    if (blocks * threads <= most) continue;
    most = blocks * threads;
    *block = threads;
    *grid = blocks * simt_multiprocessors();
  }
  return cudaSuccess;
}

/* ---- __cluster_dims__ ---- */

static struct {
  const void *kernel;
  uint3 blocks;
} in_clusters[64];
static int in_clusters_count;

void simt_register_cluster(const void *kernel, unsigned x, unsigned y, unsigned z) {
  enum { MOST = sizeof in_clusters / sizeof *in_clusters };
  pthread_mutex_lock(&lock);
  if (in_clusters_count < MOST) {
    in_clusters[in_clusters_count].kernel = kernel;
    in_clusters[in_clusters_count++].blocks = (uint3){x, y, z};
  }
  pthread_mutex_unlock(&lock);
}

static uint3 cluster_of(const void *kernel) {
  for (int i = 0; i < in_clusters_count; i++)
    if (in_clusters[i].kernel == kernel) return in_clusters[i].blocks;
  return (uint3){0, 1, 1};
}

/* ---- launches by address ---- */

typedef struct Known {
  const void *function;
  SimtLauncher *launcher;
  char *name;
} Known;

/* A hash table, open addressing; at most half full. */
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static Known *known;
static size_t known_size, known_count;

static Known *known_slot(const void *function) {
  size_t i = simt_mix((uint64_t)(uintptr_t)function) & (known_size - 1);
  while (known[i].function && known[i].function != function) i = (i + 1) & (known_size - 1);
  return &known[i];
}

static void known_grow(void) {
  Known *old = known;
  size_t old_size = known_size;
  known_size = known_size ? 2 * known_size : 64;
  known = need(calloc(known_size, sizeof *known));
  for (size_t i = 0; i < old_size; i++)
    if (old[i].function) *known_slot(old[i].function) = old[i];
  free(old);
}

void simt_register_kernel(const void *function, SimtLauncher *launcher) {
  pthread_mutex_lock(&known_lock);
  if (2 * known_count >= known_size) known_grow();
  Known *k = known_slot(function);
  if (!k->function) known_count++;
  k->function = function;
  k->launcher = launcher;
  pthread_mutex_unlock(&known_lock);
}

extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *size, int *status) __attribute__((weak));

/* `void ns::kernel<float>(float*, int)` -> `ns::kernel<float>` */
static char *short_name(char *name) {
  char *start = name;
  int depth = 0;
  for (char *p = name; *p; p++) {
    if (strncmp(p, "(anonymous namespace)", 21) == 0) {
      p += 20;
      continue;
    }
    if (*p == '<') depth++;
    if (*p == '>') depth--;
    if (*p == ' ' && !depth) start = p + 1;
    if (*p == '(' && !depth) {
      *p = '\0';
      break;
    }
  }
  return memmove(name, start, strlen(start) + 1);
}

static char *name_of(const void *function) {
  const char *symbol = function_symbol(function);
  char *name = symbol && __cxa_demangle ? __cxa_demangle(symbol, NULL, NULL, NULL) : NULL;
  if (name) return short_name(name);
  return need(strdup(symbol ? symbol : "kernel"));
}

static Known known_find(const void *function) {
  Known found = {0};
  pthread_mutex_lock(&known_lock);
  if (known_size && known_slot(function)->function) {
    Known *k = known_slot(function);
    if (!k->name) k->name = name_of(function);
    found = *k;
  }
  pthread_mutex_unlock(&known_lock);
  return found;
}

const char *simt_kernel_name(const void *function) {
  Known found = known_find(function);
  return found.name ? found.name : "kernel";
}

static const uint3 NO_CLUSTER = {0, 1, 1};

static cudaError_t launch(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                          cudaStream_t stream, int cooperative, uint3 cluster, const char *call, SimtSite site) {
  RETURN_IF_STICKY;
  Known k = function ? known_find(function) : (Known){0};
  if (!k.launcher) {
    simt_report_call("launch", call, site,
                     "no kernel is known at %p\n"
                     "    try: pass the kernel itself, `kernel` or `kernel<float>`, without a cast to void *",
                     function);
    return simt_error(cudaErrorInvalidDeviceFunction);
  }
  if (!cluster.x) cluster = cluster_of(function);
  if (cluster.x) simt_launch_in_clusters(cluster);
  return k.launcher(function, k.name, grid, block, arguments, shared_bytes, stream, cooperative,
                    site.file ? site.file : call, site.line);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  return launch(function, grid, block, arguments, shared_bytes, stream, 0, NO_CLUSTER, "cudaLaunchKernel", SIMT_CALLER);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                        size_t shared_bytes, cudaStream_t stream) {
  return launch(function, grid, block, arguments, shared_bytes, stream, 1, NO_CLUSTER, "cudaLaunchCooperativeKernel",
                SIMT_CALLER);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
  SimtSite site = SIMT_CALLER;
  int cooperative = 0;
  uint3 cluster = NO_CLUSTER;
  RETURN_IF_STICKY;
  if (!config || (config->numAttrs && !config->attrs)) return simt_error(cudaErrorInvalidValue);
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const cudaLaunchAttribute *a = &config->attrs[i];
    if (a->id == cudaLaunchAttributeCooperative) cooperative = a->val.cooperative;
    if (a->id != cudaLaunchAttributeClusterDimension) continue;
    cluster = (uint3){a->val.clusterDim.x, a->val.clusterDim.y, a->val.clusterDim.z};
    if (!cluster.x || !cluster.y || !cluster.z) return simt_error(cudaErrorInvalidValue);
    if (simt_capability() >= 90 || cluster.x * cluster.y * cluster.z == 1) continue;
    simt_report_call(
        "not supported", "cudaLaunchKernelEx", site,
        "clusters need compute capability 9.0; the emulated GPU has 8.0\n    try: SIMT_CAPABILITY=9.0 in the "
        "environment");
    return simt_error(cudaErrorNotSupported);
  }
  return launch(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream,
                cooperative, cluster, "cudaLaunchKernelEx", site);
}
