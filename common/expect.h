/* expect.h - what a test expects of a program that has run (subprocess.h): its exit status, what it says, its JSON.
 *
 *     Subprocess run = subprocess_run(argv, 60);
 *     expect_run(&run, 0, "test accuracy", NULL);       // NULL: whatever it says there
 *     json_t *result = expect_json(&run);
 */
#ifndef COMMON_EXPECT_H
#define COMMON_EXPECT_H

#include <jansson.h>

#include <glob.h>

#include "common/runfiles.h"
#include "common/subprocess.h"
#include "common/test.h"

static inline void expect_run(const Subprocess *run, int status, const char *out, const char *err) {
  if (run->status != status || (out && !strstr(run->out, out)) || (err && !strstr(run->err, err)))
    fail_msg(
        "exit status %d (expected %d), expected \"%s\" on stdout and \"%s\" on stderr\n--- stdout\n%s\n--- stderr\n%s",
        run->status, status, out ? out : "", err ? err : "", run->out, run->err);
}

/* The JSON object on the last line of stdout. */
static inline json_t *expect_json(const Subprocess *run) {
  size_t end = strlen(run->out);
  while (end > 0 && run->out[end - 1] == '\n') end--;
  size_t begin = end;
  while (begin > 0 && run->out[begin - 1] != '\n') begin--;
  json_t *object = json_loadb(run->out + begin, end - begin, 0, NULL);
  if (!json_is_object(object)) fail_msg("the last line is not a JSON object:\n%s", run->out);
  return object;
}

/* Writes the path of a lesson's program to `out`: phase1_building_blocks/NN_TOPIC/softmax is that of "softmax". */
static inline void expect_program(const char *phase, const char *name, char *out, size_t size) {
  char folder[PATH_MAX], pattern[PATH_MAX + 128];
  Error err;
  glob_t found;
  if (runfiles_find(phase, folder, sizeof folder, &err) != 0) fail_msg("%s", err.message);
  snprintf(pattern, sizeof pattern, "%s/[0-9][0-9]_*/%s", folder, name);
  if (glob(pattern, 0, NULL, &found) != 0 || found.gl_pathc != 1) fail_msg("%s: expected one file", pattern);
  snprintf(out, size, "%s", found.gl_pathv[0]);
  globfree(&found);
}

#endif /* COMMON_EXPECT_H */
