/* pth.h - PyTorch's .pth and .pt files, for programs in C: a Python script without PyTorch turns them into safetensors
 * (pth_to_safetensors.py, which runs nothing of what such a file says).
 *
 *     char path[PATH_MAX];
 *     if (pth_is(given)) {
 *       if (pth_convert(given, path, sizeof path, &err) != 0) die("%s", err.message);
 *       ... state_dict_load(&net, path, given, &loaded, &err) ...
 *       unlink(path);
 *     }
 */
#ifndef PHASE5_PRODUCTION_PTH_H
#define PHASE5_PRODUCTION_PTH_H

#include "common/runfiles.h"
#include "common/subprocess.h"

enum { PTH_SECONDS = 300 };

/* Whether the file begins as a zip archive, a pickle of protocol 2 or later, or a tar archive does. A safetensors file
 * begins with the length of its JSON, whose text, '{', stands at byte 8. */
static inline int pth_is(const char *path) {
  unsigned char head[512] = {0};
  FILE *file = fopen(path, "rb");
  if (file == NULL) return 0;
  const size_t size = fread(head, 1, sizeof head, file);
  fclose(file);
  if (size > 8 && head[8] == '{') return 0;
  return (size >= 4 && memcmp(head, "PK\3\4", 4) == 0) || (size >= 2 && head[0] == 0x80 && head[1] <= 5) ||
         (size == sizeof head && memcmp(head + 257, "ustar", 5) == 0);
}

/* What the script said, in one sentence. */
static inline int pth_explain(const Subprocess *run, const char *path, Error *err) {
  char *end = run->err + strlen(run->err);
  while (end > run->err && end[-1] == '\n') *--end = '\0';
  if (run->status == 127)
    return error_set(
        err,
        "%s is a file of PyTorch, and python3, which converts it, is not installed; install it, or convert "
        "the file elsewhere: python3 pth_to_safetensors.py FILE.pth FILE.safetensors",
        path);
  if (run->status == 124)
    return error_set(err, "%s: its conversion to safetensors took longer than %d seconds", path, PTH_SECONDS);
  if (run->status == 1) return error_set(err, "%s", run->err);
  return error_set(err, "%s: pth_to_safetensors.py ended with status %d: %s", path, run->status, run->err);
}

/* Writes the tensors of a .pth file to a new safetensors file in TMPDIR, whose name comes back in `out`; the caller
 * removes it. */
static inline int pth_convert(const char *path, char *out, size_t size, Error *err) {
  char script[PATH_MAX];
  const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
  if (runfiles_find("phase5_production/03_resnet18/pth_to_safetensors.py", script, sizeof script, err) != 0) return -1;
  if ((size_t)snprintf(out, size, "%s/pth_XXXXXX", folder) >= size)
    return error_set(err, "TMPDIR=%.60s...: the path is too long", folder);
  const int fd = mkstemp(out);
  if (fd < 0)
    return error_set(err, "cannot make a file in %s, where %s is converted: %s", folder, path, strerror(errno));
  close(fd);
  const char *argv[] = {"/usr/bin/env", "python3", script, path, out, NULL};
  Subprocess run = subprocess_run(argv, PTH_SECONDS);
  const int status = run.status == 0 ? 0 : pth_explain(&run, path, err);
  if (status != 0) unlink(out);
  subprocess_free(&run);
  return status;
}

#endif /* PHASE5_PRODUCTION_PTH_H */
