/* environment.h - where a program runs: what a report names, so that its figures can be understood later.
 *
 *     HtmlRows rows = {{{"", ""}}, 0};
 *     environment_rows(&rows);
 */
#ifndef COMMON_ENVIRONMENT_H
#define COMMON_ENVIRONMENT_H

#include "common/error.h" /* first: it asks the C library for all it has */

#include <limits.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/html.h"

/* The first line of a file without its end; "" where it cannot be read. */
static inline void environment_line(const char *path, char *line, size_t size) {
  line[0] = '\0';
  FILE *file = fopen(path, "r");
  if (file == NULL) return;
  if (fgets(line, (int)size, file) == NULL) line[0] = '\0';
  line[strcspn(line, "\r\n")] = '\0';
  fclose(file);
}

/* The commit that `git_folder` (".git", or what a file of this name points to) has checked out. */
static inline void environment_head(const char *git_folder, char *commit, size_t size) {
  char path[PATH_MAX + 300], head[256], line[256];
  commit[0] = '\0';
  snprintf(path, sizeof path, "%s/HEAD", git_folder);
  environment_line(path, head, sizeof head);
  if (strncmp(head, "ref: ", 5) != 0) {
    snprintf(commit, size, "%.64s", head);
    return;
  }
  snprintf(path, sizeof path, "%s/%s", git_folder, head + 5);
  environment_line(path, line, sizeof line);
  if (line[0] != '\0') {
    snprintf(commit, size, "%.64s (%.200s)", line, head + 5);
    return;
  }
  snprintf(path, sizeof path, "%s/packed-refs", git_folder);
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) {
    char *name = strchr(line, ' ');
    line[strcspn(line, "\r\n")] = '\0';
    if (name == NULL || strcmp(name + 1, head + 5) != 0) continue;
    *name = '\0';
    snprintf(commit, size, "%.64s (%.200s)", line, head + 5);
  }
  if (file) fclose(file);
}

/* Of the first folder with a .git from `folder` upwards; "" where there is none. */
static inline void environment_commit(const char *folder, char *commit, size_t size) {
  char at[PATH_MAX], path[PATH_MAX + 8], line[PATH_MAX];
  commit[0] = '\0';
  snprintf(at, sizeof at, "%s", folder);
  for (char *slash; at[0] != '\0'; *slash = '\0') {
    snprintf(path, sizeof path, "%s/.git", at);
    if (access(path, F_OK) == 0) {
      environment_line(path, line, sizeof line); /* a file in a worktree; of a folder nothing is read */
      environment_head(strncmp(line, "gitdir: /", 9) == 0 ? line + 8 : path, commit, size);
      return;
    }
    if ((slash = strrchr(at, '/')) == NULL) return;
  }
}

/* What the user typed, as far as the program can see it; words with a blank in quotation marks. */
static inline void environment_command(char *text, size_t size) {
  char word[4096];
  size_t used = 0;
  FILE *file = fopen("/proc/self/cmdline", "r");
  text[0] = '\0';
  for (int c = 0; file && c != EOF && used < size - 1;) {
    size_t length = 0;
    while ((c = fgetc(file)) != EOF && c != '\0')
      if (length < sizeof word - 1) word[length++] = (char)c;
    word[length] = '\0';
    if (c == EOF && length == 0) break;
    const char *mark = length == 0 || strpbrk(word, " \t\n\"'*?$&;|<>()") ? "'" : "";
    used += (size_t)snprintf(text + used, size - used, "%s%s%s%s", used > 0 ? " " : "", mark, word, mark);
  }
  if (file) fclose(file);
}

/* "AMD EPYC 9654"; "" where Linux does not say. */
static inline void environment_cpu(char *text, size_t size) {
  char line[512];
  FILE *file = fopen("/proc/cpuinfo", "r");
  text[0] = '\0';
  while (file && text[0] == '\0' && fgets(line, sizeof line, file)) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(text, size, "%s", colon + 1 + strspn(colon + 1, " "));
  }
  if (file) fclose(file);
}

static inline void environment_time(char *text, size_t size, time_t when) {
  struct tm local;
  strftime(text, size, "%Y-%m-%d %H:%M:%S %Z", localtime_r(&when, &local));
}

#ifdef __CUDACC__
static inline void environment_cuda(HtmlRows *rows) {
  int runtime = 0, driver = 0;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess || cudaDriverGetVersion(&driver) != cudaSuccess) return;
#ifdef SIMT_REWRITTEN
  html_row(rows, "CUDA", "emulated on the CPU, as version %d.%d", runtime / 1000, runtime % 1000 / 10);
#else
  html_row(rows, "CUDA", "runtime %d.%d, driver for up to %d.%d", runtime / 1000, runtime % 1000 / 10, driver / 1000,
           driver % 1000 / 10);
#endif
}
#endif

static inline void environment_rows(HtmlRows *rows) {
  char text[1024], folder[PATH_MAX] = "";
  const char *typed_in = getenv("BUILD_WORKING_DIRECTORY"); /* of `bazel run` */
  struct utsname system;
  environment_command(text, sizeof text);
  html_row(rows, "command", "%s", text);
  if (typed_in)
    snprintf(folder, sizeof folder, "%s", typed_in);
  else if (getcwd(folder, sizeof folder) == NULL)
    folder[0] = '\0';
  html_row(rows, "typed in", "%s", folder);
  environment_commit(folder, text, sizeof text);
  if (text[0] != '\0') html_row(rows, "git commit there", "%s", text);
  environment_time(text, sizeof text, time(NULL));
  html_row(rows, "started", "%s", text);
  environment_cpu(text, sizeof text);
  html_row(rows, "processor", "%s%s%ld cores, %.1f GiB", text, text[0] ? ", " : "", sysconf(_SC_NPROCESSORS_ONLN),
           (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1073741824.0);
  if (uname(&system) == 0) html_row(rows, "system", "%s %s, %s", system.sysname, system.release, system.machine);
  html_row(rows, "compiler", "g++ %s", __VERSION__);
#ifdef __CUDACC__
  environment_cuda(rows);
#endif
}

#endif /* COMMON_ENVIRONMENT_H */
