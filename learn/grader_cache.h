/* grader_cache.h - what a grader compiles of its own, kept between runs: a pristine tree of the course with its judges
 * and references.
 *
 *     FOLDER/KEY/course        the tree; judges and references in .learn/build, as in a student's
 *     FOLDER/lock              held by who adds to it
 *
 * The key is a hash of the course's files, of this program and of the compilers' versions: what they were made from. A
 * tree of another key that nobody has used for a month is removed.
 */
#ifndef LEARN_GRADER_CACHE_H
#define LEARN_GRADER_CACHE_H

#include "learn/init.h"
#include "learn/verdict.h"

enum { GRADER_CACHE_DAYS = 30 };

/* $XDG_CACHE_HOME/nn_grade, or ~/.cache/nn_grade */
static inline const char *grader_cache_folder(void) { return keep_printf("%s/nn_grade", cache_folder()); }

static inline uint64_t grader_cache_hash_file(uint64_t hash, const char *path) {
  Text text = {0};
  if (text_read_file(&text, path, NULL) == 0) hash = hash_of(hash, text.bytes, text.length);
  text_free(&text);
  return hash;
}

static inline const char *grader_cache_key(const Source *source) {
  uint64_t hash = grader_cache_hash_file(HASH_BEGIN, "/proc/self/exe");
  for (int i = 0; i < source->files; i++) {
    if (starts_with(source->file[i], "learn/test/") || ends_with(source->file[i], ".md")) continue;
    hash = hash_of(hash, source->file[i], strlen(source->file[i]) + 1);
    hash = grader_cache_hash_file(hash, keep_printf("%s/%s", source->root, source->file[i]));
  }
  FILE *versions = popen("{ ${CXX:-g++} --version; nvcc --version; } 2>&1", "r");
  char line[256];
  while (versions != NULL && fgets(line, sizeof line, versions) != NULL) hash = hash_of(hash, line, strlen(line));
  if (versions != NULL) pclose(versions);
  return keep_printf("%016llx", (unsigned long long)hash);
}

/* Removes what nobody has used for long. */
static inline void grader_cache_clean(const char *folder, const char *key) {
  DIR *dir = opendir(folder);
  struct stat info;
  for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
    const char *name = entry->d_name, *path = keep_printf("%s/%s", folder, name);
    if (strlen(name) != strlen(key) || strcmp(name, key) == 0 || stat(path, &info) != 0) continue;
    if (S_ISDIR(info.st_mode) && time(NULL) - info.st_mtime > GRADER_CACHE_DAYS * 24 * 3600) remove_folder(path);
  }
  if (dir != NULL) closedir(dir);
}

/* The tree of this course, made if it is not there. Gives a file descriptor; while it is open, no other grader adds to
 * the folder. -1: an error. */
static inline int grader_cache_open(Source *source, const char *folder, Tree *tree, Error *err) {
  const char *backup, *key = grader_cache_key(source), *place = keep_printf("%s/%s", folder, key);
  const char *root = keep_printf("%s/course", place);
  if (make_directories(place, err) != 0) return error_advise(err, "choose another with --cache-dir");
  int lock = open(keep_printf("%s/lock", folder), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0) return error_set(err, "%s/lock: %s; choose another folder with --cache-dir", folder, strerror(errno));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    fprintf(stderr, "waiting for another grader, which makes its judges\n");
    while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  utimensat(AT_FDCWD, place, NULL, 0); /* used today */
  grader_cache_clean(folder, key);
  int status = 0;
  if (access(keep_printf("%s/.learn/tree.json", root), F_OK) != 0) { /* written last of all */
    remove_folder(root);
    status = init_tree(source, root, false, &backup, err);
  }
  if (status == 0) status = tree_read(tree, root, err);
  if (status == 0) return lock;
  close(lock);
  return -1;
}

/* What a check of this exercise is run beside, if it is not there yet. */
static inline int grader_cache_make(const Tree *tree, const Exercise *exercise, bool gpu, bool (*interrupted)(void *),
                                    Error *err) {
  VerdictJob job = verdict_job(tree, exercise, "");
  Verdict verdict;
  Build build;
  const char *judge;
  job.interrupted = interrupted;
  if (build_common(&job, &judge, err) != 0 || verdict_reference(&job, judge, &verdict, err) != 0) return -1;
  if (!gpu) return 0;
  build_make(&build, &job, BUILD_REFERENCE, true);
  return build_ours(&build, 1, &job, err);
}

/* Compiles a program that does nothing, as a student's is compiled: that makes what simtcc keeps (its runtime and, for
 * a day after the last use, a precompiled header), and what a student's compiler, in the sandbox, may only read. A file
 * beside it says when that was done. */
static inline int grader_cache_warm(const Tree *tree, Error *err) {
  static const char text[] = "int main(void) { return 0; }\n";
  const char *key = strrchr(keep_bytes(tree->root, strlen(tree->root) - strlen("/course")), '/') + 1;
  const char *noted = keep_printf("%s/simtcc/graded_%s", cache_folder(), key);
  struct stat info;
  Exercise nothing;
  Build build;
  if (stat(noted, &info) == 0 && time(NULL) - info.st_mtime < 12 * 3600) return 0;
  memset(&nothing, 0, sizeof nothing);
  nothing.name = nothing.launcher = "nothing";
  nothing.check = ".learn/build/nothing.cu";
  VerdictJob job = verdict_job(tree, &nothing, "");
  build_make(&build, &job, BUILD_REFERENCE, false);
  build.command.item[--build.command.count] = build.rest = NULL;                                 /* it is whole */
  if (text_write_quick(tree_path(tree, nothing.check), text, strlen(text), err) != 0) return -1; /* newer, always */
  if (build_ours(&build, 1, &job, err) != 0) return -1;
  return text_write_quick(noted, "", 0, err);
}

#endif /* LEARN_GRADER_CACHE_H */
