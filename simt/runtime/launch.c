/* launch.c - from `<<<>>>` to blocks on OS threads.
 *
 * A launch is checked as the driver checks it, then handed to its stream, which runs it now (eager) or when somebody
 * waits for it (lazy). Running means: the calling thread and a pool of others take blocks until none is left, as a GPU
 * deals blocks to its multiprocessors. In a cooperative launch every block has an OS thread of its own, since blocks
 * wait for each other there. Blocks of another launch may do so, too, as far as they are resident on a GPU at the same
 * time: when none ends for a while, OS threads are started for those that have not begun.
 */
#include "runtime.h"

#include <sched.h>
#include <unistd.h>

#include "host.h"

/* ---- settings from the environment ---- */

SimtSettings simt_settings;

static void bad_setting(const char *name, const char *value, const char *wanted) {
  fprintf(stderr, "=== simt: %s=%s: expected %s\n", name, value, wanted);
  exit(2);
}

static double number_setting(const char *name, double otherwise, double least, double most) {
  const char *text = getenv(name);
  if (!text || !*text) return otherwise;
  char *end, wanted[64];
  double value = strtod(text, &end);
  if (*end || !(value >= least && value <= most)) {
    snprintf(wanted, sizeof wanted, "a number from %g to %g", least, most);
    bad_setting(name, text, wanted);
  }
  return value;
}

/* The inspector asks before any constructor has run. */
int simt_device_count(void) {
  if (!simt_settings.devices) simt_settings.devices = (int)number_setting("SIMT_DEVICES", 1, 1, SIMT_DEVICES_MOST);
  return simt_settings.devices;
}

/* Before main(), so that a wrong value is reported at once. */
__attribute__((constructor)) static void read_settings(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  simt_settings.threads = (int)number_setting("SIMT_THREADS", (double)(cores < 1 ? 1 : cores), 1, 1024);
  if (SIMT_INSPECTED) simt_settings.threads = 1; /* the inspector follows one thread at a time */
  simt_settings.watchdog = number_setting("SIMT_WATCHDOG", 10, 0, 1e9);
  simt_settings.multiprocessors = (int)number_setting("SIMT_MULTIPROCESSORS", SIMT_MULTIPROCESSORS, 1, 1024);
  simt_device_count();
  const char *capability = getenv("SIMT_CAPABILITY");
  simt_settings.capability = capability && strcmp(capability, "9.0") == 0 ? 90 : 80;
  if (capability && *capability && simt_settings.capability == 80 && strcmp(capability, "8.0") != 0)
    bad_setting("SIMT_CAPABILITY", capability, "8.0 or 9.0");
  simt_settings.strict = (int)number_setting("SIMT_STRICT", 0, 0, 1);
  const char *order = getenv("SIMT_ORDER");
  if (!order || !*order || strcmp(order, "forward") == 0) {
    simt_settings.order = SIMT_FORWARD;
  } else if (strcmp(order, "reverse") == 0) {
    simt_settings.order = SIMT_REVERSE;
  } else if (strncmp(order, "random", 6) == 0 && (order[6] == ':' || !order[6])) {
    char *end = "";
    simt_settings.order = SIMT_RANDOM;
    simt_settings.seed = order[6] ? (unsigned)strtoul(order + 7, &end, 10) : 0;
    if (*end) bad_setting("SIMT_ORDER", order, "forward, reverse, random or random:SEED");
  } else {
    bad_setting("SIMT_ORDER", order, "forward, reverse, random or random:SEED");
  }
}

int simt_multiprocessors(void) { return simt_settings.multiprocessors; }

int simt_capability(void) { return simt_settings.capability; }

/* ---- blocks to workers ---- */

/* In a random order block b runs as number b * prime + offset, modulo their number. */
unsigned long long simt_in_order(const Job *job, unsigned long long b, unsigned long long count) {
  if (simt_settings.order == SIMT_FORWARD) return b;
  if (simt_settings.order == SIMT_REVERSE) return count - 1 - b;
  static const unsigned long long primes[] = {2654435761u, 4294967291u};
  unsigned long long prime = primes[count % primes[0] == 0];
  unsigned long long offset = simt_mix(simt_settings.seed + job->number) % count;
  return (unsigned long long)(((unsigned __int128)b * prime + offset) % count);
}

static unsigned long long block_in_order(const Job *job, unsigned long long b) {
  return simt_in_order(job, b, job->blocks);
}

static void run_blocks(Worker *w, Job *job) {
  unsigned long long chunk = job->blocks / (unsigned)(8 * simt_settings.threads);
  chunk = chunk > 64 ? 64 : chunk;
  if (chunk < 1 || job->blocks <= (unsigned)job->resident) chunk = 1; /* each may have to run beside all others */
  for (;;) {
    unsigned long long first = atomic_fetch_add_explicit(&job->dealt, chunk, memory_order_relaxed);
    if (first >= job->blocks) return;
    unsigned long long last = first + chunk < job->blocks ? first + chunk : job->blocks;
    for (unsigned long long b = first; b < last; b++) {
      if (atomic_load_explicit(&job->failed, memory_order_relaxed)) return;
      simt_run_block(w, job, block_in_order(job, b));
    }
  }
}

/* A helper of the pool spins for a short while after a launch, since the next one is usually near; then it sleeps. */
enum { SPINS = 4000 };
static struct {
  pthread_mutex_t run; /* one launch at a time */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  atomic_uint generation; /* counts launches that ask for help */
  atomic_int busy;        /* helpers that have not finished with the present one */
  int sleeping, started;
  Job *job;
} pool = {.run = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pause_a_moment(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  sched_yield();
#endif
}

static void *help(void *unused) {
  (void)unused;
  Worker *w = simt_worker_open();
  unsigned seen = 0;
  for (;;) {
    for (int i = 0; i < SPINS && atomic_load_explicit(&pool.generation, memory_order_acquire) == seen; i++)
      pause_a_moment();
    if (atomic_load(&pool.generation) == seen) {
      pthread_mutex_lock(&pool.lock);
      pool.sleeping++;
      while (atomic_load(&pool.generation) == seen) pthread_cond_wait(&pool.changed, &pool.lock);
      pool.sleeping--;
      pthread_mutex_unlock(&pool.lock);
    }
    seen = atomic_load(&pool.generation);
    run_blocks(w, pool.job);
    atomic_fetch_sub_explicit(&pool.busy, 1, memory_order_release);
  }
  return NULL;
}

static void start_helpers(void) {
  while (pool.started < simt_settings.threads - 1) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, help, NULL) != 0) {
      simt_settings.threads = pool.started + 1;
      break;
    }
    pthread_detach(thread);
    pool.started++;
  }
}

static pthread_key_t worker_key;
static void close_worker(void *worker) { simt_worker_close(worker); }
static void make_worker_key(void) { pthread_key_create(&worker_key, close_worker); }

/* The worker of the host's thread; it is put back when that thread ends. */
static Worker *own_worker(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static __thread Worker *own;
  pthread_once(&once, make_worker_key);
  if (!own) {
    own = simt_worker_open();
    pthread_setspecific(worker_key, own);
  }
  return own;
}

/* Waking a helper takes some microseconds, as long as a small launch. So each launch line's time for a CUDA thread is
 * remembered, and help is asked for when the launch would take one OS thread longer than that. */
enum { WORTH_HELP = 20000 }; /* nanoseconds */
typedef struct Cost {
  const char *file;
  int line;
  double nanoseconds; /* of processor time for each CUDA thread */
} Cost;

static Cost *cost_of(const SimtKernel *k) {
  static Cost costs[256];
  Cost *cost = &costs[simt_mix((uintptr_t)k->file + (unsigned)k->line) % 256];
  if (cost->file != k->file || cost->line != k->line) *cost = (Cost){k->file, k->line, 20}; /* a guess */
  return cost;
}

/* ---- blocks that wait for each other ---- */

static struct {
  pthread_mutex_t lock;
  Job *job;
  pthread_t *threads;
  int count, most;
} crowd = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *join_crowd(void *job) {
  Worker *w = simt_worker_open();
  run_blocks(w, job);
  simt_worker_close(w);
  return NULL;
}

/* Twice as many each time: blocks that are merely slow soon end, and are disturbed by few. */
void simt_no_block_ended(void) {
  pthread_mutex_lock(&crowd.lock);
  Job *job = crowd.job;
  for (int more = 1 + crowd.count; job && more > 0 && crowd.count < crowd.most; more--) {
    if (atomic_load(&job->dealt) >= job->blocks || atomic_load(&job->failed)) break;
    if (!crowd.threads && !(crowd.threads = calloc((size_t)crowd.most, sizeof *crowd.threads))) break;
    atomic_store(&job->crowded, 1);
    if (pthread_create(&crowd.threads[crowd.count], NULL, join_crowd, job) != 0) break;
    crowd.count++;
  }
  pthread_mutex_unlock(&crowd.lock);
}

void simt_ask_launch(int *failed, int *crowded) {
  pthread_mutex_lock(&crowd.lock);
  *failed = crowd.job && atomic_load(&crowd.job->failed);
  *crowded = crowd.job && crowd.count > 0;
  pthread_mutex_unlock(&crowd.lock);
}

static void open_crowd(Job *job, int workers) {
  pthread_mutex_lock(&crowd.lock);
  crowd.job = job;
  crowd.count = 0;
  crowd.most = job->resident - workers;
  pthread_mutex_unlock(&crowd.lock);
}

static void close_crowd(void) {
  pthread_mutex_lock(&crowd.lock);
  crowd.most = 0; /* nobody joins any more */
  pthread_mutex_unlock(&crowd.lock);
  for (int i = 0; i < crowd.count; i++) pthread_join(crowd.threads[i], NULL);
  pthread_mutex_lock(&crowd.lock);
  crowd.job = NULL;
  pthread_mutex_unlock(&crowd.lock);
  free(crowd.threads);
  crowd.threads = NULL;
}

static void run_on_pool(Job *job) {
  const SimtKernel *k = job->kernel;
  Cost *cost = cost_of(k);
  double threads = (double)job->blocks * k->block.x * k->block.y * k->block.z;
  int helped = simt_settings.threads > 1 && job->blocks > 1 && threads * cost->nanoseconds > WORTH_HELP;
  unsigned long long start = simt_clock();
  if (helped) {
    start_helpers();
    pool.job = job;
    atomic_store(&pool.busy, pool.started);
    atomic_fetch_add_explicit(&pool.generation, 1, memory_order_release);
    pthread_mutex_lock(&pool.lock);
    if (pool.sleeping) pthread_cond_broadcast(&pool.changed);
    pthread_mutex_unlock(&pool.lock);
  }
  if (job->blocks > 1) open_crowd(job, helped ? pool.started + 1 : 1);
  run_blocks(own_worker(), job);
  for (int i = 0; helped && atomic_load_explicit(&pool.busy, memory_order_acquire) > 0; i++)
    i < SPINS ? pause_a_moment() : (void)sched_yield();
  if (job->blocks > 1) close_crowd();
  cost->nanoseconds = (double)(simt_clock() - start) * (helped ? pool.started + 1 : 1) / threads;
}

/* ---- cooperative launches ---- */

typedef struct Seat {
  Job *job;
  unsigned long long block;
  pthread_t thread;
} Seat;

static void *run_seat(void *context) {
  Seat *seat = context;
  Job *job = seat->job;
  Worker *w = simt_worker_open();
  simt_run_block(w, job, seat->block);
  pthread_mutex_lock(&job->grid_lock);
  job->grid_blocks_left--; /* those that wait for it at a grid barrier look again */
  pthread_cond_broadcast(&job->grid_changed);
  pthread_mutex_unlock(&job->grid_lock);
  simt_worker_close(w);
  return NULL;
}

static void run_cooperative(Job *job) {
  Seat *seats = calloc(job->blocks, sizeof *seats);
  unsigned long long started = 0;
  if (!seats) abort();
  for (; started < job->blocks; started++) {
    seats[started] = (Seat){.job = job, .block = block_in_order(job, started)};
    if (pthread_create(&seats[started].thread, NULL, run_seat, &seats[started]) != 0) {
      atomic_store(&job->failed, cudaErrorCooperativeLaunchTooLarge);
      break;
    }
  }
  if (atomic_load(&job->failed)) {
    pthread_mutex_lock(&job->grid_lock);
    pthread_cond_broadcast(&job->grid_changed);
    pthread_mutex_unlock(&job->grid_lock);
  }
  for (unsigned long long i = 0; i < started; i++) pthread_join(seats[i].thread, NULL);
  free(seats);
}

/* ---- a launch ---- */

static int running_device;
int simt_running_device(void) { return running_device; }

static void execute(const SimtKernel *kernel) {
  static unsigned launches;
  if (simt_error_pending() != cudaSuccess) return;
  Job job = {.kernel = kernel,
             .blocks = (unsigned long long)kernel->grid.x * kernel->grid.y * kernel->grid.z,
             .grid_lock = PTHREAD_MUTEX_INITIALIZER,
             .grid_changed = PTHREAD_COND_INITIALIZER};
  job.grid_blocks_left = job.blocks;
  job.resident = simt_resident_blocks((int)(kernel->block.x * kernel->block.y * kernel->block.z),
                                      simt_static_shared_by_name(kernel->name) + kernel->shared_bytes);
  pthread_mutex_lock(&pool.run);
  simt_symbols_lock(kernel->device);
  running_device = kernel->device;
  job.number = launches++;
  TELL_INSPECTOR(launch_begin(kernel));
  simt_shared_launch(kernel);
  if (kernel->cluster.x)
    simt_run_clusters(&job);
  else if (kernel->cooperative)
    run_cooperative(&job);
  else
    run_on_pool(&job);
  TELL_INSPECTOR(launch_end(kernel));
  simt_symbols_unlock();
  pthread_mutex_unlock(&pool.run);
  int failed = atomic_load(&job.failed);
  if (failed) simt_error_sticky((cudaError_t)failed);
}

/* What a stream is given: the kernel with its arguments behind it. */
static void execute_queued(void *context) {
  SimtKernel kernel = *(const SimtKernel *)context;
  kernel.arguments = (const char *)context + (sizeof kernel + 63) / 64 * 64;
  execute(&kernel);
}

/* An H200 with CUDA 13 answers each of these with cudaErrorInvalidValue; CUDA 12 said cudaErrorInvalidConfiguration for
 * shapes. simt/test/hardware/host_api.cu prints what a GPU says. */
static cudaError_t impossible(const SimtKernel *k, const char *advice, const char *format, ...) {
  char why[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  simt_report_host(
      "launch: %s\n    kernel %s, launched at %s:%d with <<<(%u,%u,%u), (%u,%u,%u)>>>: it does not run\n    try: %s",
      why, k->name, k->file, k->line, k->grid.x, k->grid.y, k->grid.z, k->block.x, k->block.y, k->block.z, advice);
  return cudaErrorInvalidValue;
}

static cudaError_t check_shape(const SimtKernel *k) {
  uint3 g = k->grid, b = k->block;
  unsigned long long threads = (unsigned long long)b.x * b.y * b.z;
  if (!threads) return impossible(k, "give each dimension of the block at least 1", "a block of no threads");
  if (!g.x || !g.y || !g.z)
    return impossible(k, "round up, (n + block - 1) / block; do not launch for n = 0", "a grid of no blocks");
  if (b.x > 1024 || b.y > 1024 || b.z > 64 || threads > SIMT_MAX_BLOCK_THREADS)
    return impossible(k, "smaller blocks, and more of them", "a block of %llu threads; at most %d, at most 64 in z",
                      threads, SIMT_MAX_BLOCK_THREADS);
  if (g.x > 2147483647u || g.y > 65535 || g.z > 65535)
    return impossible(k, "the large dimension in x, or several elements for each thread",
                      "a grid of %u x %u x %u blocks; at most 65535 in y and z", g.x, g.y, g.z);
  size_t fixed = simt_static_shared_by_name(k->name), most = simt_max_dynamic_shared_by_name(k->name);
  if (k->shared_bytes > most || fixed + k->shared_bytes > simt_shared_limit())
    return impossible(
        k,
        "smaller tiles; or cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) "
        "before the launch, for up to 163 KB (227 KB with SIMT_CAPABILITY=9.0)",
        "%zu bytes of dynamic shared memory; this kernel may have %zu", k->shared_bytes, most);
  if (k->cluster.x) {
    uint3 c = k->cluster;
    if (simt_capability() < 90) {
      impossible(k, "SIMT_CAPABILITY=9.0 in the environment",
                 "clusters need compute capability 9.0; the emulated GPU has 8.0");
      return cudaErrorNotSupported;
    }
    if (!c.y || !c.z) return impossible(k, "at least 1 in each dimension", "a cluster of no blocks");
    if (c.x * c.y * c.z > 8) {
      impossible(k, "clusters of at most 8 blocks", "a cluster of %u blocks; at most 8", c.x * c.y * c.z);
      return cudaErrorInvalidClusterSize;
    }
    if (g.x % c.x || g.y % c.y || g.z % c.z)
      return impossible(k, "round the grid up to a multiple of the cluster, in each dimension",
                        "a grid that is no multiple of its clusters of (%u,%u,%u) blocks", c.x, c.y, c.z);
  }
  if (k->cooperative) {
    int resident = simt_resident_blocks((int)threads, fixed + k->shared_bytes);
    unsigned long long blocks = (unsigned long long)g.x * g.y * g.z;
    if (blocks > (unsigned long long)resident) {
      impossible(k, "ask cudaOccupancyMaxActiveBlocksPerMultiprocessor(), let each block do more",
                 "a cooperative launch of %llu blocks, of which only %d can run at once", blocks, resident);
      return cudaErrorCooperativeLaunchTooLarge;
    }
  }
  return cudaSuccess;
}

static cudaError_t check_stream(const SimtKernel *k) {
  int device = simt_device_count() > 1 ? simt_stream_device(k->stream) : k->device;
  if (device < 0 || device == k->device) return cudaSuccess; /* what is no stream is refused when it is submitted */
  simt_report_host(
      "wrong device: kernel %s is launched into a stream of device %d while device %d is current\n"
      "    launched at %s:%d\n"
      "    try: cudaSetDevice(%d) before the launch, or a stream that was created while device %d was current",
      k->name, device, k->device, k->file, k->line, device, k->device);
  return cudaErrorInvalidResourceHandle;
}

static cudaError_t check_pointers(const SimtKernel *k) {
  for (int i = 0; i < k->argument_count; i++) {
    SimtMemory memory;
    if (!k->pointers[i]) continue;
    simt_memory_find(k->pointers[i], &memory); /* freed or past the end: its use, if any, is the inspector's to name */
    if (memory.kind == SIMT_SYMBOL_MEMORY && !simt_symbol_has_address(k->pointers[i])) {
      simt_report_host(
          "symbol: argument %d of kernel %s is the name of a __device__ variable, which is not its address on the "
          "device\n"
          "    launched at %s:%d\n"
          "    try: use the variable in the kernel by its name, or ask cudaGetSymbolAddress()",
          i + 1, k->name, k->file, k->line);
      return cudaErrorIllegalAddress;
    }
    if (memory.kind == SIMT_DEVICE_MEMORY && !simt_device_may_access(k->device, memory.device)) {
      char text[512];
      simt_report_host(
          "wrong device: argument %d of kernel %s lies on device %d, and the kernel runs on device %d\n"
          "    launched at %s:%d; the argument is in the %s\n"
          "    try: cudaSetDevice() before the allocation, cudaMemcpyPeer(), or cudaDeviceEnablePeerAccess(%d, 0) "
          "while device %d is current",
          i + 1, k->name, memory.device, k->device, k->file, k->line, simt_memory_text(&memory, text, sizeof text),
          memory.device, k->device);
      return cudaErrorIllegalAddress;
    }
    if (memory.kind != SIMT_UNKNOWN_MEMORY) continue;
    simt_report_host(
        "host pointer: argument %d of kernel %s is %p, which is not device memory\n"
        "    launched at %s:%d\n"
        "    try: allocate it with cudaMalloc() and cudaMemcpy() the data there, or use cudaMallocManaged(); "
        "a GPU would stop with \"an illegal memory access was encountered\"",
        i + 1, k->name, k->pointers[i], k->file, k->line);
    return cudaErrorIllegalAddress;
  }
  return cudaSuccess;
}

static __thread uint3 next_cluster; /* of this host thread's next launch */
void simt_launch_in_clusters(uint3 blocks) { next_cluster = blocks; }

cudaError_t simt_launch(const SimtKernel *asked) {
  SimtKernel placed = *asked, *kernel = &placed;
  if (next_cluster.x) placed.cluster = next_cluster;
  if (placed.cluster.x == 1 && placed.cluster.y == 1 && placed.cluster.z == 1) placed.cluster.x = 0;
  next_cluster = (uint3){0, 0, 0};
  placed.device = simt_current_device();
  if (simt_in_kernel()) /* by way of a __host__ __device__ function: the rest is refused by the rewriter */
    simt_kernel_fault(cudaErrorNotSupported, kernel->file, kernel->line,
                      "a kernel launches %s (dynamic parallelism), which is not supported: launch it from the host",
                      kernel->name);
  cudaError_t error = simt_error_pending();
  if (error == cudaSuccess) error = check_stream(kernel);
  if (error == cudaSuccess) error = check_shape(kernel);
  if (error != cudaSuccess) return simt_error(error);
  error = check_pointers(kernel);
  if (error != cudaSuccess) {
    simt_error_sticky(error); /* a GPU, too, finds it only when the kernel runs */
    return cudaSuccess;
  }
  if (!simt_stream_defers(kernel->stream)) {
    execute(kernel);
    return cudaSuccess;
  }
  size_t head = (sizeof *kernel + 63) / 64 * 64, size = head + kernel->arguments_size;
  char *context = aligned_alloc(64, (size + 63) / 64 * 64);
  if (!context) return simt_error(cudaErrorMemoryAllocation);
  memcpy(context, kernel, sizeof *kernel);
  if (SIMT_INSPECTED) ((SimtKernel *)context)->submitted = simt_hooks.submitted();
  memcpy(context + head, kernel->arguments, kernel->arguments_size);
  error = simt_stream_submit(kernel->stream, execute_queued, context, size, kernel->name, kernel->file, kernel->line);
  free(context);
  return error;
}
