/* runfiles.h - where files are, however the program was started.
 *
 *     char path[4096];
 *     if (runfiles_find("common/check.h", path, sizeof path, &err) != 0) die("%s", err.message);
 *
 * Bazel lays the data that a target names beside its binary, in "runfiles", and says where in a different way for
 * `bazel run`, `bazel test` and a binary started by hand. runfiles_find() knows them all, and takes a file or a
 * directory by its path in the workspace.
 *
 * What the *user* typed is another matter: `bazel run` starts the program in the runfiles, not where the command was
 * typed, so a relative path from the command line goes through user_path() first.
 */
#ifndef COMMON_RUNFILES_H
#define COMMON_RUNFILES_H

#include "common/error.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef __cplusplus
extern char *program_invocation_name; /* argv[0]; glibc's header shows it to C only under _GNU_SOURCE */
#endif

typedef struct RunfilesSearch {
  const char *path; /* what is sought */
  char *out;        /* where the answer goes */
  size_t size;
  char tried[512]; /* the places looked at so far, for the error */
} RunfilesSearch;

/* Notes the place for the error message. Always 0, "not found there". */
static inline int runfiles_missed(RunfilesSearch *search, const char *place, const char *origin) {
  size_t used = strlen(search->tried);
  snprintf(search->tried + used, sizeof search->tried - used, "%s%.200s (%s)", used ? ", " : "", place, origin);
  return 0;
}

/* 1 when the path lies under `root`, in the workspace's folder (WORKSPACE mode, then bzlmod) or directly. */
static inline int runfiles_try(RunfilesSearch *search, const char *root) {
  static const char *const workspaces[] = {"nn/", "_main/", ""};
  for (int i = 0; i < 3; i++) {
    int length = snprintf(search->out, search->size, "%s/%s%s", root, workspaces[i], search->path);
    if ((size_t)length < search->size && access(search->out, F_OK) == 0) return 1;
  }
  return 0;
}

static inline int runfiles_try_variable(RunfilesSearch *search, const char *name) {
  const char *root = getenv(name);
  if (root == NULL || root[0] == '\0') return 0;
  return runfiles_try(search, root) || runfiles_missed(search, root, name);
}

/* A manifest replaces the tree where links are unwanted: lines "nn/path /where/it/really/is". */
static inline int runfiles_try_manifest(RunfilesSearch *search, const char *manifest) {
  FILE *file = manifest == NULL ? NULL : fopen(manifest, "r");
  if (file == NULL) return 0;
  char *line = NULL;
  size_t capacity = 0, length = strlen(search->path);
  int found = 0;
  while (!found && getline(&line, &capacity, file) > 0) {
    line[strcspn(line, "\n")] = '\0';
    char *target = strchr(line, ' ');
    if (target == NULL) continue;
    *target++ = '\0';
    const char *key = line;
    if (strncmp(key, "nn/", 3) == 0) key += 3;
    if (strncmp(key, "_main/", 6) == 0) key += 6;
    if (strncmp(key, search->path, length) != 0) continue;
    /* Only files have lines: a directory is found through any file in it, less the rest of that file's name. */
    const char *rest = key + length;
    size_t root = strlen(target) - strlen(rest);
    if ((*rest != '\0' && *rest != '/') || strlen(target) <= strlen(rest) || strcmp(target + root, rest) != 0) continue;
    target[root] = '\0';
    found = (size_t)snprintf(search->out, search->size, "%s", target) < search->size && access(target, F_OK) == 0;
  }
  free(line);
  fclose(file);
  return found ? 1 : runfiles_missed(search, manifest, "RUNFILES_MANIFEST_FILE");
}

static inline int runfiles_try_program(RunfilesSearch *search, const char *program) {
  char root[PATH_MAX];
  if ((size_t)snprintf(root, sizeof root, "%s.runfiles", program) >= sizeof root) return 0;
  return runfiles_try(search, root) || runfiles_missed(search, root, "beside the program");
}

/* Writes the path of a data file or directory, named by its path in the workspace, to `out`. */
static inline int runfiles_find(const char *path, char *out, size_t size, Error *err) {
  RunfilesSearch search = {path, out, size, ""};
  char place[PATH_MAX];
  if (path[0] == '/') {
    if ((size_t)snprintf(out, size, "%s", path) < size && access(out, F_OK) == 0) return 0;
    return error_set(err, "%s: %s", path, strerror(errno));
  }
  if (runfiles_try_variable(&search, "NN_DATA_ROOT") || runfiles_try_variable(&search, "RUNFILES_DIR") ||
      runfiles_try_variable(&search, "TEST_SRCDIR") || runfiles_try_manifest(&search, getenv("RUNFILES_MANIFEST_FILE")))
    return 0;
  if (strchr(program_invocation_name, '/') != NULL && runfiles_try_program(&search, program_invocation_name)) return 0;
  ssize_t length = readlink("/proc/self/exe", place, sizeof place - 1);
  if (length > 0) {
    place[length] = '\0';
    if (strcmp(place, program_invocation_name) != 0 && runfiles_try_program(&search, place)) return 0;
  }
  if (getcwd(place, sizeof place) != NULL) {
    runfiles_missed(&search, place, "and the folders above it");
    for (char *end = place + strlen(place); end != NULL; end = strrchr(place, '/')) {
      *end = '\0';
      if (runfiles_try(&search, place)) return 0;
    }
  }
  return error_set(err,
                   "the data \"%s\" was not found: start the program with `bazel run //...`, which lays out its data, "
                   "or name the folder with --data-dir or NN_DATA_ROOT (looked in %s)",
                   path, search.tried);
}

/* A path that the user typed: relative means relative to the folder where the command was typed. */
static inline int user_path(const char *typed, char *out, size_t size, Error *err) {
  const char *folder = getenv("BUILD_WORKING_DIRECTORY");
  if (typed[0] == '\0') return error_set(err, "an empty path was given where a file or a folder was expected");
  int alone = typed[0] == '/' || folder == NULL || folder[0] == '\0';
  int length = alone ? snprintf(out, size, "%s", typed) : snprintf(out, size, "%s/%s", folder, typed);
  if ((size_t)length >= size)
    return error_set(err, "%.60s...: the path is too long, at most %zu bytes", typed, size - 1);
  return 0;
}

/* mkdir -p, and a look whether the folder can be written to, so that a run fails at its start and not at its end. */
static inline int make_directories(const char *path, Error *err) {
  char part[PATH_MAX];
  struct stat info;
  if (path[0] == '\0' || (size_t)snprintf(part, sizeof part, "%s", path) >= sizeof part)
    return error_set(err, "%.60s: the name of the folder is empty or too long", path);
  for (char *slash = part; slash != NULL;) {
    slash = strchr(slash + 1, '/');
    if (slash != NULL) *slash = '\0';
    if (mkdir(part, 0777) != 0 && errno != EEXIST) {
      error_set(err, "%s: the folder cannot be made: %s", part, strerror(errno));
      return error_advise(err, "choose another with --output-dir");
    }
    if (stat(part, &info) != 0) {
      error_set(err, "%s: %s", part, strerror(errno));
      return error_advise(err, "choose another folder with --output-dir");
    }
    if (!S_ISDIR(info.st_mode)) {
      error_set(err, "%s is a file, a folder is needed there", part);
      return error_advise(err, "move it away, or choose another --output-dir");
    }
    if (slash != NULL) *slash = '/';
  }
  if (access(part, W_OK | X_OK) != 0) {
    error_set(err, "%s: the folder cannot be written to: %s", part, strerror(errno));
    return error_advise(err, "choose another with --output-dir");
  }
  return 0;
}

#endif /* COMMON_RUNFILES_H */
