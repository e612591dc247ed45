/* copy.c - copies and memsets: whether the pointers fit the direction, whether the bytes fit the allocations, then the
 * work itself, in its stream.
 *
 * What is returned for a wrong direction: cudaErrorInvalidMemcpyDirection only when `kind` is no enumerator. With
 * unified addressing a GPU's driver knows most pointers, so where it needs memory of the device and finds the host's,
 * or the other way round, it says cudaErrorInvalidValue.
 */
#include "host.h"

typedef struct Call {
  const char *name; /* "cudaMemcpy" */
  SimtSite site;
  cudaStream_t stream;
  int async;
  const char *symbol; /* the side that was given as a symbol */
} Call;

/* A box of bytes: `depth` slices of `height` rows of `width` bytes. */
typedef struct Copy {
  char *to;
  const char *from; /* NULL: memset */
  size_t to_pitch, from_pitch, to_slice, from_slice;
  size_t width, height, depth;
  unsigned value; /* memset: of each element */
  int element;    /* bytes: 1, 2 or 4 */
  int device;     /* that was current: whose __device__ variables are meant */
  Call call;
} Copy;

typedef enum Wanted { ANY, HOST, DEVICE } Wanted;

static const char *const kind_names[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost",
                                         "cudaMemcpyDeviceToDevice", "cudaMemcpyDefault"};
static const Wanted wanted_to[] = {HOST, DEVICE, HOST, DEVICE, ANY};
static const Wanted wanted_from[] = {HOST, HOST, DEVICE, DEVICE, ANY};

/* ---- checks ---- */

/* Bytes from the first to the last of the box. */
static size_t span(size_t pitch, size_t slice, const Copy *c) {
  return (c->depth - 1) * slice + (c->height - 1) * pitch + c->width;
}

static const char *guess_size(size_t asked, size_t have) {
  if (asked > (size_t)-1 / 2) return "that is a negative number: look at what the size is computed from";
  if (have && asked == 4 * have) return "exactly 4 times as much: is a sizeof(float) missing where it was allocated?";
  if (have && asked == 8 * have) return "exactly 8 times as much: is a sizeof(double) missing where it was allocated?";
  return "sizes are in bytes: compare the number of elements and the sizeof at both places";
}

static cudaError_t too_long(const Call *call, const char *side, size_t bytes, const char *pointer,
                            const SimtMemory *m) {
  char memory[512];
  size_t offset = (size_t)(pointer - (char *)m->base), left = offset < m->size ? m->size - offset : 0;
  simt_report_call("out of bounds", call->name, call->site,
                   "%zu bytes, but the %s has room for %zu, %zu too few\n"
                   "    the %s is byte %zu of the %s\n"
                   "    try: %s",
                   bytes, side, left, bytes - left, side, offset, simt_memory_text(m, memory, sizeof memory),
                   guess_size(bytes, left));
  return cudaErrorInvalidValue;
}

static cudaError_t not_there(const Call *call, const char *side, const void *pointer, const SimtMemory *m) {
  char memory[512], by[512];
  if (m->call) simt_memory_text(m, memory, sizeof memory);
  if (m->freed)
    simt_report_call("use after free", call->name, call->site, "the %s %p was freed: the %s\n    by %s", side, pointer,
                     memory, simt_site_text("cudaFree", m->freed_site, by, sizeof by));
  else if (m->call)
    simt_report_call("out of bounds", call->name, call->site, "the %s %p lies behind the %s, in no allocation", side,
                     pointer, memory);
  else
    simt_report_call("out of bounds", call->name, call->site, "the %s %p lies in no allocation", side, pointer);
  return cudaErrorInvalidValue;
}

static cudaError_t null_pointer(const Call *call, const char *side) {
  simt_report_call("null pointer", call->name, call->site,
                   "the %s is one\n    try: check the error of the call that should have set it", side);
  return cudaErrorInvalidValue;
}

/* One side of a copy of `bytes` bytes: in bounds, if it is ours. */
static cudaError_t check_bounds(const Call *call, const char *side, const char *pointer, size_t bytes) {
  SimtMemory m;
  int live = simt_memory_find(pointer, &m);
  if (m.kind == SIMT_UNKNOWN_MEMORY) return cudaSuccess; /* the host's: nothing more is known */
  if (!live) return not_there(call, side, pointer, &m);
  if (bytes > m.size - (size_t)(pointer - (char *)m.base)) return too_long(call, side, bytes, pointer, &m);
  return cudaSuccess;
}

static SimtMemoryKind kind_of(const void *pointer) {
  SimtMemory memory;
  simt_memory_find(pointer, &memory);
  return memory.kind;
}

/* Under nvcc the name of a __device__ array is, in host code, a shadow of it that lies in the host's memory. */
static int is_bare_symbol(const void *pointer) {
  SimtMemoryKind kind = simt_symbol_kind(pointer);
  return (kind == SIMT_SYMBOL_MEMORY || kind == SIMT_CONSTANT_MEMORY) && !simt_symbol_has_address(pointer);
}

static cudaError_t bare_symbol(const Call *call, const char *side) {
  simt_report_call("symbol", call->name, call->site,
                   "the %s is the name of a __device__ or __constant__ variable, which is not its address\n"
                   "    try: cudaMemcpyToSymbol() or cudaMemcpyFromSymbol(), or ask cudaGetSymbolAddress()",
                   side);
  return cudaErrorInvalidValue;
}

static const char *owner(SimtMemoryKind kind) {
  return kind == SIMT_UNKNOWN_MEMORY ? "the host's" : simt_host_may_use(kind) ? "both sides'" : "the device's";
}

static cudaError_t check_direction(const Copy *c, int kind) {
  SimtMemoryKind to = kind_of(c->to), from = kind_of(c->from);
  int fails = (wanted_to[kind] == DEVICE && !simt_device_may_use(to)) ||
              (wanted_from[kind] == DEVICE && !simt_device_may_use(from));
  int odd =
      (wanted_to[kind] == HOST && !simt_host_may_use(to)) || (wanted_from[kind] == HOST && !simt_host_may_use(from));
  if (!fails && !odd) return cudaSuccess;
  simt_report_call("wrong direction", c->call.name, c->call.site,
                   "the kind is %s, but the destination is %s and the source is %s\n"
                   "    try: (to, from, bytes, kind) is the order; are the pointers swapped, or is it another kind?",
                   kind_names[kind], owner(to), owner(from));
  /* Where only a host's pointer was expected, the driver sees that it is the device's, and copies all the same. */
  return fails || simt_settings.strict ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t check_copy(const Copy *c, int kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (!c->to) return null_pointer(&c->call, "destination");
  if (!c->from) return null_pointer(&c->call, "source");
  if (c->to != c->call.symbol && is_bare_symbol(c->to)) return bare_symbol(&c->call, "destination");
  if (c->from != c->call.symbol && is_bare_symbol(c->from)) return bare_symbol(&c->call, "source");
  cudaError_t error = check_direction(c, kind);
  if (error == cudaSuccess) error = check_bounds(&c->call, "destination", c->to, span(c->to_pitch, c->to_slice, c));
  if (error == cudaSuccess) error = check_bounds(&c->call, "source", c->from, span(c->from_pitch, c->from_slice, c));
  return error;
}

static cudaError_t check_set(const Copy *c) {
  if (!c->to) return null_pointer(&c->call, "destination");
  if (is_bare_symbol(c->to)) return bare_symbol(&c->call, "destination");
  if (simt_device_may_use(kind_of(c->to)))
    return check_bounds(&c->call, "destination", c->to, span(c->to_pitch, c->to_slice, c));
  simt_report_call("host pointer", c->call.name, c->call.site,
                   "%p is memory of the host\n    try: memset() for that, or pass what cudaMalloc() gave",
                   (void *)c->to);
  return cudaErrorInvalidValue;
}

/* ---- the work ---- */

static void fill(char *to, size_t bytes, unsigned value, int element) {
  if (element == 1) {
    memset(to, (int)value, bytes);
    return;
  }
  for (size_t i = 0; i + (size_t)element <= bytes; i += (size_t)element) {
    uint16_t half = (uint16_t)value;
    memcpy(to + i, element == 2 ? (void *)&half : (void *)&value, (size_t)element);
  }
}

static void row(const Copy *c, char *to, const char *from, size_t bytes) {
  if (c->from)
    memmove(to, from, bytes);
  else
    fill(to, bytes, c->value, c->element);
  TELL_INSPECTOR(host_wrote(to, bytes));
}

static void do_copy(void *context) {
  const Copy *c = context;
  const int variables = simt_is_symbol(c->to) || simt_is_symbol(c->from);
  if (variables) simt_symbols_lock(c->device);
  int dense_rows = c->to_pitch == c->width && (!c->from || c->from_pitch == c->width);
  for (size_t z = 0; z < c->depth; z++) {
    char *to = c->to + z * c->to_slice;
    const char *from = c->from ? c->from + z * c->from_slice : NULL;
    if (dense_rows) {
      row(c, to, from, c->width * c->height);
      continue;
    }
    for (size_t y = 0; y < c->height; y++)
      row(c, to + y * c->to_pitch, from ? from + y * c->from_pitch : NULL, c->width);
  }
  if (variables) simt_symbols_unlock();
}

/* The bytes follow the Copy: they were taken along when it was queued. */
static void do_staged_copy(void *context) {
  Copy copy = *(const Copy *)context;
  copy.from = (const char *)context + sizeof copy;
  do_copy(&copy);
}

int simt_is_copy(const Work *work) { return work->run == do_copy || work->run == do_staged_copy; }

int simt_copy_touches(const Work *work, const void *address, int reads) {
  const Copy *c = work->context;
  const char *p = address;
  if (p >= c->to && p < c->to + span(c->to_pitch, c->to_slice, c)) return 1;
  return reads && c->from && work->run == do_copy && p >= c->from &&
         p < c->from + span(c->from_pitch, c->from_slice, c);
}

static cudaError_t submit(const Call *call, void (*work)(void *), const void *context, size_t size) {
  return simt_stream_submit(call->stream, work, context, size, call->name, call->site.file, call->site.line);
}

static cudaError_t submit_staged(const Copy *c) {
  char *context = malloc(sizeof *c + c->width);
  if (!context) return cudaErrorMemoryAllocation;
  memcpy(context, c, sizeof *c);
  memcpy(context + sizeof *c, c->from, c->width);
  cudaError_t error = submit(&c->call, do_staged_copy, context, sizeof *c + c->width);
  free(context);
  return error;
}

/* When the host may go on, by the API's rules: a copy from ordinary (pageable) memory has read it, one to such memory
 * has written it, even an Async one; only between pinned and device memory does Async mean what it says. Copies within
 * the device, and memsets, are never waited for. */
static cudaError_t perform(const Copy *asked) {
  enum { STAGED = 64 * 1024 };
  Copy placed = *asked;
  const Copy *c = &placed;
  placed.device = simt_current_device();
  cudaError_t error;
  if (simt_stream_captures(c->call.stream)) return submit(&c->call, do_copy, c, sizeof *c);
  SimtMemoryKind to = kind_of(c->to), from = c->from ? kind_of(c->from) : SIMT_DEVICE_MEMORY;
  int touches_host = simt_host_may_use(to) || simt_host_may_use(from);
  int waits = c->call.async ? to == SIMT_UNKNOWN_MEMORY || from == SIMT_UNKNOWN_MEMORY : touches_host && c->from;
  int staged = waits && c->call.async && to != SIMT_UNKNOWN_MEMORY && c->width <= STAGED && c->height * c->depth == 1;
  if (!simt_streams_are_lazy()) {
    error = submit(&c->call, do_copy, c, sizeof *c);
    if (waits && !staged) simt_steps_host_waits(c->call.stream);
    return error;
  }
  if (staged) return submit_staged(c);
  error = submit(&c->call, do_copy, c, sizeof *c);
  if (error == cudaSuccess && waits) error = simt_stream_finish(c->call.stream);
  return error;
}

/* ---- copies ---- */

static cudaError_t copy_box(const Copy *c, int kind) {
  RETURN_IF_STICKY;
  if (!c->width || !c->height || !c->depth) return simt_error(cudaSuccess);
  cudaError_t error = check_copy(c, kind);
  return simt_error(error != cudaSuccess ? error : perform(c));
}

static cudaError_t copy_line(void *to, const void *from, size_t bytes, int kind, Call call) {
  Copy c = {.to = to, .from = from, .width = bytes, .height = 1, .depth = 1, .call = call};
  c.to_pitch = c.from_pitch = bytes;
  return copy_box(&c, kind);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  return copy_line(to, from, bytes, kind, (Call){"cudaMemcpy", SIMT_CALLER, 0, 0, NULL});
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_line(to, from, bytes, kind, (Call){"cudaMemcpyAsync", SIMT_CALLER, stream, 1, NULL});
}

/* Device memory of another device than the caller says. */
static int is_on(const void *pointer, int device, const char *side, const Call *call) {
  char text[512];
  SimtMemory m;
  simt_memory_find(pointer, &m);
  if (m.kind != SIMT_DEVICE_MEMORY || m.device == device) return 1;
  simt_report_call("wrong device", call->name, call->site,
                   "the %s is said to lie on device %d, but device %d has it: the %s\n"
                   "    try: (to, its device, from, its device, bytes) is the order",
                   side, device, m.device, simt_memory_text(&m, text, sizeof text));
  return 0;
}

static cudaError_t copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes, Call call) {
  RETURN_IF_STICKY;
  if (simt_check_device(to_device) != cudaSuccess || simt_check_device(from_device) != cudaSuccess)
    return simt_error(cudaErrorInvalidDevice);
  if (!is_on(to, to_device, "destination", &call) || !is_on(from, from_device, "source", &call))
    return simt_error(cudaErrorInvalidValue);
  return copy_line(to, from, bytes, cudaMemcpyDeviceToDevice, call);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
  return copy_peer(to, to_device, from, from_device, bytes, (Call){"cudaMemcpyPeer", SIMT_CALLER, 0, 0, NULL});
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  return copy_peer(to, to_device, from, from_device, bytes,
                   (Call){"cudaMemcpyPeerAsync", SIMT_CALLER, stream, 1, NULL});
}

static cudaError_t copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                           int kind, Call call) {
  RETURN_IF_STICKY;
  if (width > to_pitch || width > from_pitch) return simt_error(cudaErrorInvalidPitchValue);
  Copy c = {.to = to, .from = from, .width = width, .height = height, .depth = 1, .call = call};
  c.to_pitch = to_pitch;
  c.from_pitch = from_pitch;
  return copy_box(&c, kind);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) {
  return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, (Call){"cudaMemcpy2D", SIMT_CALLER, 0, 0, NULL});
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_2d(to, to_pitch, from, from_pitch, width, height, kind,
                 (Call){"cudaMemcpy2DAsync", SIMT_CALLER, stream, 1, NULL});
}

static cudaError_t copy_3d(const struct cudaMemcpy3DParms *p, Call call) {
  RETURN_IF_STICKY;
  if (!p) return simt_error(cudaErrorInvalidValue);
  if (p->srcArray || p->dstArray) return simt_error(cudaErrorNotSupported);
  struct cudaExtent e = p->extent;
  Copy c = {.width = e.width, .height = e.height, .depth = e.depth, .call = call};
  c.to_pitch = p->dstPtr.pitch;
  c.from_pitch = p->srcPtr.pitch;
  c.to_slice = p->dstPtr.pitch * p->dstPtr.ysize;
  c.from_slice = p->srcPtr.pitch * p->srcPtr.ysize;
  if (!e.width || !e.height || !e.depth) return simt_error(cudaSuccess);
  if (!p->srcPtr.ptr || !p->dstPtr.ptr) return simt_error(cudaErrorInvalidValue);
  if (e.width > c.to_pitch || e.width > c.from_pitch) return simt_error(cudaErrorInvalidPitchValue);
  c.to = (char *)p->dstPtr.ptr + p->dstPos.z * c.to_slice + p->dstPos.y * c.to_pitch + p->dstPos.x;
  c.from = (char *)p->srcPtr.ptr + p->srcPos.z * c.from_slice + p->srcPos.y * c.from_pitch + p->srcPos.x;
  return copy_box(&c, p->kind);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *copy) {
  return copy_3d(copy, (Call){"cudaMemcpy3D", SIMT_CALLER, 0, 0, NULL});
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *copy, cudaStream_t stream) {
  return copy_3d(copy, (Call){"cudaMemcpy3DAsync", SIMT_CALLER, stream, 1, NULL});
}

/* ---- symbols ---- */

/* Addresses that cudaGetSymbolAddress() handed out: those may be used in copies and launches. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { const char *from, *to; } * handed_out;
static size_t handed_out_count;

static void hand_out(const char *address, size_t bytes) {
  if (simt_symbol_has_address(address)) return;
  pthread_mutex_lock(&lock);
  void *more = realloc(handed_out, (handed_out_count + 1) * sizeof *handed_out);
  if (more) {
    handed_out = more;
    handed_out[handed_out_count].from = address;
    handed_out[handed_out_count++].to = address + (bytes ? bytes : 1);
  }
  pthread_mutex_unlock(&lock);
}

int simt_symbol_has_address(const void *address) {
  int found = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < handed_out_count && !found; i++)
    found = (const char *)address >= handed_out[i].from && (const char *)address < handed_out[i].to;
  pthread_mutex_unlock(&lock);
  return found;
}

static cudaError_t check_symbol(const SimtSymbol *symbol, size_t bytes, size_t offset, const Call *call) {
  if (!symbol->address) return cudaErrorInvalidSymbol;
  if (!symbol->is_const && !simt_is_symbol(symbol->address)) {
    simt_report_call("symbol", call->name, call->site,
                     "%p is no __device__ or __constant__ variable\n"
                     "    try: pass the variable's name, not its name in quotes, and no pointer to host memory",
                     symbol->address);
    return cudaErrorInvalidSymbol;
  }
  if (symbol->bytes && (offset > symbol->bytes || bytes > symbol->bytes - offset)) {
    simt_report_call("out of bounds", call->name, call->site,
                     "%zu bytes from byte %zu on, but the symbol has only %zu bytes\n    try: %s", bytes, offset,
                     symbol->bytes, guess_size(bytes, symbol->bytes));
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

cudaError_t simt_symbol_address(void **pointer, size_t *bytes, const SimtSymbol *symbol) {
  Call call = {"cudaGetSymbolAddress", SIMT_CALLER, 0, 0, NULL};
  RETURN_IF_STICKY;
  cudaError_t error = pointer ? check_symbol(symbol, 0, 0, &call) : cudaErrorInvalidValue;
  if (error != cudaSuccess) return simt_error(error);
  *pointer = (void *)symbol->address;
  hand_out(symbol->address, symbol->bytes);
  if (bytes) *bytes = symbol->bytes;
  return cudaSuccess;
}

static cudaError_t to_symbol(const SimtSymbol *symbol, const void *from, size_t bytes, size_t offset, int kind,
                             Call call) {
  RETURN_IF_STICKY;
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return simt_error(cudaErrorInvalidMemcpyDirection);
  cudaError_t error = symbol->is_const ? cudaErrorInvalidSymbol : check_symbol(symbol, bytes, offset, &call);
  if (error != cudaSuccess) return simt_error(error);
  call.symbol = (const char *)symbol->address + offset;
  return copy_line((char *)call.symbol, from, bytes, kind, call);
}

static cudaError_t from_symbol(void *to, const SimtSymbol *symbol, size_t bytes, size_t offset, int kind, Call call) {
  RETURN_IF_STICKY;
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return simt_error(cudaErrorInvalidMemcpyDirection);
  cudaError_t error = check_symbol(symbol, bytes, offset, &call);
  if (error != cudaSuccess) return simt_error(error);
  if (symbol->is_const) kind = kind == cudaMemcpyDeviceToHost ? cudaMemcpyHostToHost : cudaMemcpyDefault;
  call.symbol = (const char *)symbol->address + offset;
  return copy_line(to, call.symbol, bytes, kind, call);
}

cudaError_t simt_copy_to_symbol(const SimtSymbol *symbol, const void *from, size_t bytes, size_t offset,
                                enum cudaMemcpyKind kind, cudaStream_t stream, int async) {
  const char *name = async ? "cudaMemcpyToSymbolAsync" : "cudaMemcpyToSymbol";
  return to_symbol(symbol, from, bytes, offset, kind, (Call){name, SIMT_CALLER, stream, async, NULL});
}

cudaError_t simt_copy_from_symbol(void *to, const SimtSymbol *symbol, size_t bytes, size_t offset,
                                  enum cudaMemcpyKind kind, cudaStream_t stream, int async) {
  const char *name = async ? "cudaMemcpyFromSymbolAsync" : "cudaMemcpyFromSymbol";
  return from_symbol(to, symbol, bytes, offset, kind, (Call){name, SIMT_CALLER, stream, async, NULL});
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind) {
  return to_symbol(&(SimtSymbol){.address = symbol}, from, bytes, offset, kind,
                   (Call){"cudaMemcpyToSymbol", SIMT_CALLER, 0, 0, NULL});
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream) {
  return to_symbol(&(SimtSymbol){.address = symbol}, from, bytes, offset, kind,
                   (Call){"cudaMemcpyToSymbolAsync", SIMT_CALLER, stream, 1, NULL});
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
  return from_symbol(to, &(SimtSymbol){.address = symbol}, bytes, offset, kind,
                     (Call){"cudaMemcpyFromSymbol", SIMT_CALLER, 0, 0, NULL});
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  return from_symbol(to, &(SimtSymbol){.address = symbol}, bytes, offset, kind,
                     (Call){"cudaMemcpyFromSymbolAsync", SIMT_CALLER, stream, 1, NULL});
}

cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol) {
  return simt_symbol_address(pointer, NULL, &(SimtSymbol){.address = symbol});
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol) {
  void *address;
  return size ? simt_symbol_address(&address, size, &(SimtSymbol){.address = symbol})
              : simt_error(cudaErrorInvalidValue);
}

/* ---- memsets ---- */

static cudaError_t set_box(const Copy *c) {
  RETURN_IF_STICKY;
  if (!c->width || !c->height || !c->depth) return simt_error(cudaSuccess);
  if (c->to_pitch < c->width) return simt_error(cudaErrorInvalidValue);
  cudaError_t error = check_set(c);
  return simt_error(error != cudaSuccess ? error : perform(c));
}

static cudaError_t set_rows(void *pointer, size_t pitch, int value, size_t width, size_t height, Call call) {
  Copy c = {.to = pointer, .to_pitch = pitch, .width = width, .height = height, .depth = 1, .call = call};
  c.value = (unsigned)value;
  c.element = 1;
  return set_box(&c);
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes) {
  return set_rows(pointer, bytes, value, bytes, 1, (Call){"cudaMemset", SIMT_CALLER, 0, 0, NULL});
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream) {
  return set_rows(pointer, bytes, value, bytes, 1, (Call){"cudaMemsetAsync", SIMT_CALLER, stream, 1, NULL});
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height) {
  return set_rows(pointer, pitch, value, width, height, (Call){"cudaMemset2D", SIMT_CALLER, 0, 0, NULL});
}

cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return set_rows(pointer, pitch, value, width, height, (Call){"cudaMemset2DAsync", SIMT_CALLER, stream, 1, NULL});
}

static cudaError_t set_3d(struct cudaPitchedPtr p, int value, struct cudaExtent e, Call call) {
  Copy c = {.to = p.ptr, .to_pitch = p.pitch, .width = e.width, .height = e.height, .depth = e.depth, .call = call};
  c.to_slice = p.pitch * p.ysize;
  c.value = (unsigned)value;
  c.element = 1;
  return set_box(&c);
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr pointer, int value, struct cudaExtent extent) {
  return set_3d(pointer, value, extent, (Call){"cudaMemset3D", SIMT_CALLER, 0, 0, NULL});
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pointer, int value, struct cudaExtent extent, cudaStream_t stream) {
  return set_3d(pointer, value, extent, (Call){"cudaMemset3DAsync", SIMT_CALLER, stream, 1, NULL});
}

cudaError_t simt_memset_elements(const struct cudaMemsetParams *p, cudaStream_t stream) {
  if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) return simt_error(cudaErrorInvalidValue);
  Copy c = {.to = p->dst, .width = p->width * p->elementSize, .height = p->height, .depth = 1};
  c.to_pitch = p->height > 1 ? p->pitch : c.width;
  c.value = p->value;
  c.element = (int)p->elementSize;
  c.call = (Call){"cudaMemset", {0}, stream, 1, NULL};
  return set_box(&c);
}
