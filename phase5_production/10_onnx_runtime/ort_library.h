/* ort_library.h - finds ONNX Runtime's library while the program runs. See ort.h.
 *
 * A program that is linked with a library does not start where it is missing, and one that is linked with ONNX Runtime
 * 1.29 does not start with 1.30: its symbols carry the version. So dlopen() looks for it, in this order:
 *
 *   1. ORT_HOME, if it is set: this folder or its lib/, and nowhere else
 *   2. what the build found (third_party/onnxruntime), beside the program
 *   3. where third_party/onnxruntime/fetch.sh puts it: ~/.cache/nn_onnxruntime
 *   4. the folders of the system
 *
 * The library finds its providers (CUDA's, for one) in its own folder.
 *
 * As published, ONNX Runtime sends its maker what it is used for, and on the way it looks at the program's command line
 * with a recursion that overflows the stack where many files are named (1.29.0). Neither happens here: ort_open() sets
 * ORT_DISABLE_TELEMETRY, unless the user has set it.
 */
#ifndef PHASE5_PRODUCTION_ORT_LIBRARY_H
#define PHASE5_PRODUCTION_ORT_LIBRARY_H

#include "common/error.h"

#include <dlfcn.h>
#include <limits.h>

#include "common/runfiles.h"
#include "phase5_production/10_onnx_runtime/ort_abi.h"

#define ORT_LIBRARY "libonnxruntime.so.1"
#define ORT_CUDA_LIBRARY "libonnxruntime_providers_cuda.so"
#define ORT_FETCH "third_party/onnxruntime/fetch.sh"

typedef struct Ort {
  void *library; /* of dlopen() */
  OrtFunctions f;
  OrtEnv *env;
  OrtAllocator *allocator;
  OrtMemoryInfo *host;
  char path[PATH_MAX], version[32];
} Ort;

/* What helps a reader of ONNX Runtime's message: without the places in its source that it begins with. */
static inline const char *ort_says(const char *message) {
  static const char *const marks[] = {"[ONNXRuntimeError] : ", "Exception during initialization: "};
  const char *at = strstr(message, marks[0]);
  if (at) { /* "[ONNXRuntimeError] : 1 : FAIL : Failed to load library" */
    at += strlen(marks[0]);
    for (int i = 0; i < 2 && strstr(at, " : "); i++) at = strstr(at, " : ") + 3;
    message = at;
  }
  at = strstr(message, marks[1]);
  return at ? at + strlen(marks[1]) : message;
}

/* 0, or -1 and "WHAT: the first line of what ONNX Runtime says". Releases the status. */
__attribute__((format(printf, 4, 5))) static inline int ort_check(const Ort *ort, OrtStatus *status, Error *err,
                                                                  const char *format, ...) {
  if (status == NULL) return 0;
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  const char *says = ort_says(ort->f.GetErrorMessage(status));
  error_set(err, "%s: %.*s", what, (int)strcspn(says, "\n"), says);
  ort->f.ReleaseStatus(status);
  return -1;
}

/* 1 where folder/name is a file; then it is in `path`. */
static inline int ort_try(char path[PATH_MAX], const char *folder, const char *name) {
  return (size_t)snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && access(path, R_OK) == 0;
}

/* The folder that fetch.sh fills; "" where there is no home. */
static inline void ort_cache_folder(char folder[PATH_MAX]) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  folder[0] = '\0';
  if (cache && cache[0] == '/')
    snprintf(folder, PATH_MAX, "%s/nn_onnxruntime", cache);
  else if (home && home[0] == '/')
    snprintf(folder, PATH_MAX, "%s/.cache/nn_onnxruntime", home);
}

/* The library's path; "libonnxruntime.so.1" where only the system's loader may know. -1: ORT_HOME has none. */
static inline int ort_find(char path[PATH_MAX], Error *err) {
  const char *home = getenv("ORT_HOME");
  char folder[PATH_MAX];
  Error none;
  if (home && home[0]) {
    if (ort_try(path, home, ORT_LIBRARY) || ort_try(path, home, "lib/" ORT_LIBRARY)) return 0;
    return error_set_code(err, ERROR_NOT_INSTALLED,
                          "ORT_HOME=%.400s: neither this folder nor its lib/ has " ORT_LIBRARY
                          "; correct it, or unset "
                          "it and run " ORT_FETCH,
                          home);
  }
  if (runfiles_find("third_party/onnxruntime/library/" ORT_LIBRARY, path, PATH_MAX, &none) == 0) return 0;
  ort_cache_folder(folder);
  if (folder[0] && ort_try(path, folder, "lib/" ORT_LIBRARY)) return 0;
  snprintf(path, PATH_MAX, "%s", ORT_LIBRARY);
  return 0;
}

static inline int ort_load(Ort *ort, Error *err) {
  char found[PATH_MAX], folder[PATH_MAX];
  if (ort_find(found, err) != 0) return -1;
  const int is_path = strchr(found, '/') != NULL;
  if (!is_path || realpath(found, ort->path) == NULL) snprintf(ort->path, sizeof ort->path, "%s", found);
  ort->library = dlopen(ort->path, RTLD_NOW | RTLD_LOCAL);
  if (ort->library) return 0;
  if (is_path) return error_set(err, "ONNX Runtime cannot be loaded: %s", dlerror());
  ort_cache_folder(folder);
  return error_set_code(err, ERROR_NOT_INSTALLED,
                        "ONNX Runtime is not there: " ORT_LIBRARY
                        " was looked for beside the program, in %.300s%s and in the folders of the system; " ORT_FETCH
                        " fetches it (112 MB, by npm), or set ORT_HOME to the folder of one",
                        folder[0] ? folder : "the home folder (HOME is not set)", folder[0] ? "/lib" : "");
}

/* Which file the system's loader has found: its providers lie beside it. */
static inline void ort_loaded_path(char path[PATH_MAX]) {
  char line[PATH_MAX + 128];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) {
    const char *at = strchr(line, '/');
    if (at == NULL || strstr(at, "/libonnxruntime.so") == NULL) continue;
    snprintf(path, PATH_MAX, "%.*s", (int)strcspn(at, "\n"), at);
    break;
  }
  if (maps) fclose(maps);
}

/* Opens the library. ERROR_NOT_INSTALLED: there is none; then the sentence says where it was looked for. Changes the
 * environment: call it before there are other threads. */
static inline int ort_open(Ort *ort, Error *err) {
  memset(ort, 0, sizeof *ort);
  setenv("ORT_DISABLE_TELEMETRY", "1", 0);
  if (ort_load(ort, err) != 0) return -1;
  const OrtApiBase *(*base)(void);
  *(void **)&base = dlsym(ort->library, "OrtGetApiBase");
  if (base == NULL) return error_set(err, "%.400s is no ONNX Runtime: it has no OrtGetApiBase()", ort->path);
  snprintf(ort->version, sizeof ort->version, "%s", base()->GetVersionString());
  const OrtApi *api = base()->GetApi(ORT_ABI_VERSION);
  if (api == NULL)
    return error_set(err,
                     "%.400s is ONNX Runtime %s, which lacks version %d of its interface; 1.%d or later is expected",
                     ort->path, ort->version, ORT_ABI_VERSION, ORT_ABI_VERSION);
  ort->f = ort_functions(api);
  if (ort->path[0] != '/') ort_loaded_path(ort->path);
  if (ort_check(ort, ort->f.CreateEnv(ORT_LOGGING_LEVEL_ERROR, "nn", &ort->env), err, "ONNX Runtime") != 0) return -1;
  if (ort_check(ort, ort->f.GetAllocatorWithDefaultOptions(&ort->allocator), err, "ONNX Runtime") != 0) return -1;
  return ort_check(ort, ort->f.CreateMemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault, &ort->host), err,
                   "ONNX Runtime");
}

/* After all sessions. The library stays loaded: its threads may outlive the call. */
static inline void ort_close(Ort *ort) {
  if (ort->host) ort->f.ReleaseMemoryInfo(ort->host);
  if (ort->env) ort->f.ReleaseEnv(ort->env);
  memset(ort, 0, sizeof *ort);
}

#endif /* PHASE5_PRODUCTION_ORT_LIBRARY_H */
