/* devices.c - several imaginary GPUs, SIMT_DEVICES of them (1): which one a host thread uses, who may use whose memory,
 * and what each has in its __device__ and __constant__ variables.
 *
 * All GPUs share the program's processor and its addresses, so a pointer of one is readable on the other whatever the
 * program does; memory.c knows whose it is, and a launch (in the inspector's build every access) is compared with that.
 * A variable of the program has one address, but a value for each GPU: the values of the one that runs lie there, those
 * of the others are kept aside. An address of cudaGetSymbolAddress() means the variable of the GPU that uses it.
 */
#include "host.h"

static atomic_uchar peers[SIMT_DEVICES_MOST][SIMT_DEVICES_MOST]; /* [device][peer]: device may use the peer's memory */
static __thread int current;

int simt_current_device(void) { return current; }

static int exists(int device) { return device >= 0 && device < simt_device_count(); }

cudaError_t simt_check_device(int device) {
  RETURN_IF_STICKY;
  return simt_error(exists(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

/* ---- which device ---- */

cudaError_t cudaGetDeviceCount(int *count) {
  RETURN_IF_STICKY;
  if (!count) return simt_error(cudaErrorInvalidValue);
  *count = simt_device_count();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  RETURN_IF_STICKY;
  if (!device) return simt_error(cudaErrorInvalidValue);
  *device = current;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  RETURN_IF_STICKY;
  if (!exists(device)) {
    SimtSite site = SIMT_CALLER;
    if (simt_device_count() == 1 && device > 0)
      simt_report_call("device", "cudaSetDevice", site,
                       "device %d was asked for, and there is one emulated GPU, device 0\n"
                       "    try: SIMT_DEVICES=%d in the environment makes more",
                       device, device < SIMT_DEVICES_MOST ? device + 1 : SIMT_DEVICES_MOST);
    return simt_error(cudaErrorInvalidDevice);
  }
  current = device;
  return cudaSuccess;
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
  (void)device_flags, (void)flags;
  return simt_check_device(device);
}

cudaError_t cudaSetValidDevices(int *devices, int count) {
  for (int i = 0; devices && i < count; i++)
    if (!exists(devices[i])) return simt_error(cudaErrorInvalidDevice);
  return simt_check_device(0);
}

cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted) {
  RETURN_IF_STICKY;
  if (!device || !wanted) return simt_error(cudaErrorInvalidValue);
  *device = 0; /* all are alike */
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device) {
  RETURN_IF_STICKY;
  if (!text || size < 1) return simt_error(cudaErrorInvalidValue);
  snprintf(text, (size_t)size, "0000:%02x:00.0", (unsigned)device & 255);
  return simt_check_device(device);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text) {
  char own[32];
  RETURN_IF_STICKY;
  if (!device || !text) return simt_error(cudaErrorInvalidValue);
  for (int i = 0; i < simt_device_count(); i++) {
    snprintf(own, sizeof own, "0000:%02x:00.0", (unsigned)i);
    if (strcmp(text, own) != 0) continue;
    *device = i;
    return cudaSuccess;
  }
  return simt_error(cudaErrorInvalidDevice);
}

/* ---- peers: every pair may be given access, as with NVLink ---- */

int simt_device_may_access(int device, int owner) {
  return device == owner || atomic_load_explicit(&peers[device][owner], memory_order_relaxed);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  RETURN_IF_STICKY;
  if (!can) return simt_error(cudaErrorInvalidValue);
  *can = exists(device) && exists(peer) && device != peer;
  return simt_error(exists(device) && exists(peer) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int device, int peer) {
  RETURN_IF_STICKY;
  if (!value) return simt_error(cudaErrorInvalidValue);
  if (!exists(device) || !exists(peer) || device == peer) return simt_error(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevP2PAttrPerformanceRank:
    case cudaDevP2PAttrCudaArrayAccessSupported:
      *value = 0;
      return cudaSuccess;
    case cudaDevP2PAttrAccessSupported:
    case cudaDevP2PAttrNativeAtomicSupported:
      *value = 1;
      return cudaSuccess;
    default:
      return simt_error(cudaErrorInvalidValue);
  }
}

static cudaError_t set_peer(int peer, int access, cudaError_t already) {
  RETURN_IF_STICKY;
  if (!exists(peer) || peer == current) return simt_error(cudaErrorInvalidDevice);
  unsigned char before = atomic_exchange(&peers[current][peer], (unsigned char)access);
  return simt_error(before == access ? already : cudaSuccess);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  if (flags != 0) return simt_error(cudaErrorInvalidValue);
  return set_peer(peer, 1, cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) { return set_peer(peer, 0, cudaErrorPeerAccessNotEnabled); }

void simt_peers_reset(int device) {
  for (int peer = 0; peer < SIMT_DEVICES_MOST; peer++) atomic_store(&peers[device][peer], 0);
}

/* ---- the variables of the program ---- */

static struct {
  pthread_mutex_t lock;          /* held while something uses the variables */
  int present;                   /* the device whose values lie in the program's variables */
  char *kept[SIMT_DEVICES_MOST]; /* (size), the values of each device that is not present */
  size_t size;                   /* of all of them together */
} images = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Copies the program's variables to `kept`, or back. */
static void images_copy(char *kept, int back) {
  char *start;
  size_t size;
  for (int i = 0, there; (there = simt_symbol_section(i, &start, &size)) >= 0; i++) {
    if (!there) continue;
    if (back)
      memcpy(start, kept, size);
    else
      memcpy(kept, start, size);
    kept += size;
  }
}

/* Before the first change of a variable all devices have the values of the program's file. */
static void images_begin(void) {
  char *start;
  size_t size;
  for (int i = 0, there; (there = simt_symbol_section(i, &start, &size)) >= 0; i++)
    if (there) images.size += size;
  for (int device = 0; device < simt_device_count(); device++) {
    images.kept[device] = malloc(images.size ? images.size : 1);
    if (!images.kept[device]) {
      fputs("=== simt: out of memory for the variables of several GPUs\n", stderr);
      abort();
    }
    images_copy(images.kept[device], 0);
  }
}

void simt_symbols_lock(int device) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (simt_device_count() == 1) return;
  pthread_mutex_lock(&images.lock);
  pthread_once(&once, images_begin);
  if (images.present == device) return;
  images_copy(images.kept[images.present], 0);
  images_copy(images.kept[device], 1);
  images.present = device;
}

void simt_symbols_unlock(void) {
  if (simt_device_count() > 1) pthread_mutex_unlock(&images.lock);
}
