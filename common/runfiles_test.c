#include "common/runfiles.h"
#include "common/test.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const char *const variables[] = {"NN_DATA_ROOT", "RUNFILES_DIR", "TEST_SRCDIR", "RUNFILES_MANIFEST_FILE"};

static char start[PATH_MAX]; /* the folder the test was started in */

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

/* Makes tmpdir/relative with its folders, and writes its full path to `path`. */
static void plant(const char *relative, char *path) {
  Error err;
  test_path(path, PATH_MAX, relative);
  char *slash = strrchr(path, '/');
  *slash = '\0';
  assert_int_equal(make_directories(path, &err), 0);
  *slash = '/';
  write_file(path, "data\n");
}

static int forget(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) unsetenv(variables[i]);
  unsetenv("BUILD_WORKING_DIRECTORY");
  return chdir(start);
}

static void real_data_of_this_test(void **state) {
  (void)state;
  char path[PATH_MAX];
  Error err;
  assert_int_equal(runfiles_find("common/runfiles.h", path, sizeof path, &err), 0);
  assert_int_equal(access(path, R_OK), 0);
}

static void each_variable_and_each_workspace_name(void **state) {
  (void)state;
  char planted[PATH_MAX], found[PATH_MAX], root[PATH_MAX];
  const char *workspaces[] = {"nn/", "_main/", ""};
  for (int variable = 0; variable < 3; variable++)
    for (int workspace = 0; workspace < 3; workspace++) {
      char relative[200], name[64];
      snprintf(name, sizeof name, "root%d%d", variable, workspace);
      snprintf(relative, sizeof relative, "%s/%slesson/set/images", name, workspaces[workspace]);
      plant(relative, planted);
      setenv(variables[variable], test_path(root, sizeof root, name), 1);
      assert_int_equal(runfiles_find("lesson/set/images", found, sizeof found, NULL), 0);
      assert_string_equal(found, planted);
      assert_int_equal(runfiles_find("lesson/set", found, sizeof found, NULL), 0); /* a directory */
      *strrchr(planted, '/') = '\0';
      assert_string_equal(found, planted);
      unsetenv(variables[variable]);
    }
}

static void the_first_variable_wins_and_a_miss_falls_through(void **state) {
  (void)state;
  char first[PATH_MAX], second[PATH_MAX], found[PATH_MAX], root[PATH_MAX];
  plant("first/nn/set/both", first);
  plant("second/nn/set/both", second);
  setenv("NN_DATA_ROOT", test_path(root, sizeof root, "first"), 1);
  setenv("RUNFILES_DIR", test_path(root, sizeof root, "second"), 1);
  assert_int_equal(runfiles_find("set/both", found, sizeof found, NULL), 0);
  assert_string_equal(found, first);
  plant("second/nn/set/only_second", second);
  assert_int_equal(runfiles_find("set/only_second", found, sizeof found, NULL), 0);
  assert_string_equal(found, second);
}

static void manifest_with_files_and_directories(void **state) {
  (void)state;
  char planted[PATH_MAX], found[PATH_MAX], manifest[PATH_MAX], text[3 * PATH_MAX];
  plant("elsewhere/se", planted); /* half a name is no name */
  plant("elsewhere/set/deep/labels", planted);
  /* The first line's name only begins like the one that is sought. */
  snprintf(text, sizeof text,
           "nn/data/set2/deep/labels /nowhere/set2/deep/labels\nnn/empty \nnn/data/set/deep/labels %s\n", planted);
  write_file(test_path(manifest, sizeof manifest, "MANIFEST"), text);
  setenv("RUNFILES_MANIFEST_FILE", manifest, 1);
  assert_int_equal(runfiles_find("data/set/deep/labels", found, sizeof found, NULL), 0);
  assert_string_equal(found, planted);
  assert_int_equal(runfiles_find("data/set", found, sizeof found, NULL), 0);
  assert_string_equal(found, test_path(manifest, sizeof manifest, "elsewhere/set"));
  assert_int_equal(runfiles_find("data/se", found, sizeof found, NULL), -1);
}

static void beside_the_program_from_any_folder(void **state) {
  (void)state;
  char planted[PATH_MAX], found[PATH_MAX], program[PATH_MAX], exe[PATH_MAX], path[2 * PATH_MAX];
  char *saved = program_invocation_name;
  plant("bin/tool.runfiles/nn/set/beside", planted);
  assert_int_equal(chdir("/"), 0);
  program_invocation_name = (char *)test_path(program, sizeof program, "bin/tool");
  assert_int_equal(runfiles_find("set/beside", found, sizeof found, NULL), 0);
  assert_string_equal(found, planted);

  /* Found in PATH, argv[0] says nothing: /proc/self/exe does. */
  program_invocation_name = (char *)"tool";
  ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
  assert_true(length > 0);
  exe[length] = '\0';
  snprintf(path, sizeof path, "%s.runfiles/set", exe);
  if (make_directories(path, NULL) == 0) { /* Bazel's sandbox may forbid it */
    strcat(path, "/by_exe");
    write_file(path, "");
    assert_int_equal(runfiles_find("set/by_exe", found, sizeof found, NULL), 0);
    assert_string_equal(found, path);
    unlink(path);
  }
  program_invocation_name = saved;
}

static void folders_above_the_current_one(void **state) {
  (void)state;
  char planted[PATH_MAX], found[PATH_MAX], folder[PATH_MAX];
  plant("up/set/above", planted);
  assert_int_equal(make_directories(test_path(folder, sizeof folder, "up/a/b"), NULL), 0);
  assert_int_equal(chdir(folder), 0);
  assert_int_equal(runfiles_find("set/above", found, sizeof found, NULL), 0);
  char *real_planted = realpath(planted, NULL), *real_found = realpath(found, NULL);
  assert_string_equal(real_found, real_planted);
  free(real_planted);
  free(real_found);
  assert_int_equal(runfiles_find(planted, found, sizeof found, NULL), 0); /* an absolute path is taken as it is */
  assert_string_equal(found, planted);
}

static void the_error_says_what_was_tried_and_what_to_do(void **state) {
  (void)state;
  char found[PATH_MAX], small[8];
  Error err;
  setenv("RUNFILES_DIR", "/no/such/root", 1);
  assert_int_equal(runfiles_find("no/such/data", found, sizeof found, &err), -1);
  assert_non_null(strstr(err.message, "\"no/such/data\""));
  assert_non_null(strstr(err.message, "/no/such/root (RUNFILES_DIR)"));
  assert_non_null(strstr(err.message, start));
  assert_non_null(strstr(err.message, "bazel run //"));
  assert_non_null(strstr(err.message, "--data-dir"));
  assert_int_equal(runfiles_find("/no/such/file", found, sizeof found, &err), -1);
  assert_non_null(strstr(err.message, "/no/such/file: No such file"));
  assert_int_equal(runfiles_find("common/runfiles.h", small, sizeof small, &err), -1); /* never a truncated path */
}

static void the_user_s_paths(void **state) {
  (void)state;
  char path[PATH_MAX], tiny[10];
  Error err;
  assert_int_equal(user_path("digits/7.png", path, sizeof path, &err), 0);
  assert_string_equal(path, "digits/7.png");
  setenv("BUILD_WORKING_DIRECTORY", "/home/ada", 1);
  assert_int_equal(user_path("digits/7.png", path, sizeof path, &err), 0);
  assert_string_equal(path, "/home/ada/digits/7.png");
  assert_int_equal(user_path("/digits/7.png", path, sizeof path, &err), 0);
  assert_string_equal(path, "/digits/7.png");
  assert_int_equal(user_path("", path, sizeof path, &err), -1);
  assert_int_equal(user_path("7.png", tiny, sizeof tiny, &err), -1);
  assert_non_null(strstr(err.message, "too long"));
}

static void folders_are_made_or_refused_with_a_sentence(void **state) {
  (void)state;
  char path[PATH_MAX], file[PATH_MAX];
  Error err;
  struct stat info;
  assert_int_equal(make_directories(test_path(path, sizeof path, "x/y//z/"), &err), 0);
  assert_int_equal(stat(path, &info), 0);
  assert_true(S_ISDIR(info.st_mode));
  assert_int_equal(make_directories(path, &err), 0); /* again */

  write_file(test_path(file, sizeof file, "x/file"), "");
  assert_int_equal(make_directories(test_path(path, sizeof path, "x/file/deeper"), &err), -1);
  assert_non_null(strstr(err.message, file));
  assert_non_null(strstr(err.message, "is a file"));
  assert_int_equal(make_directories(file, &err), -1);
  assert_int_equal(make_directories("", &err), -1);
  assert_int_equal(make_directories("/proc/none/here", &err), -1);
  assert_non_null(strstr(err.message, "/proc/none: the folder cannot be made"));
}

/* root may write everywhere, so a child gives up the capabilities that root has. */
static void a_folder_without_the_right_to_write(void **state) {
  (void)state;
  char path[PATH_MAX];
  assert_int_equal(make_directories(test_path(path, sizeof path, "closed"), NULL), 0);
  assert_int_equal(chdir(path), 0);
  assert_int_equal(chmod(".", 0555), 0);
  pid_t child = fork();
  if (child == 0) {
    Error here, below;
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    if (syscall(SYS_capset, &header, none) != 0) _exit(2);
    int refused = make_directories(".", &here) == -1 && strstr(here.message, "cannot be written to") != NULL;
    refused = refused && make_directories("new", &below) == -1 && strstr(below.message, "Permission denied") != NULL;
    _exit(refused ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  chmod(".", 0755);
  assert_int_equal(status, 0);
}

int main(void) {
  if (getcwd(start, sizeof start) == NULL) die("no current folder");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(real_data_of_this_test), /* first: with Bazel's own environment */
      cmocka_unit_test_setup(real_data_of_this_test, forget),
      cmocka_unit_test_setup(each_variable_and_each_workspace_name, forget),
      cmocka_unit_test_setup(the_first_variable_wins_and_a_miss_falls_through, forget),
      cmocka_unit_test_setup(manifest_with_files_and_directories, forget),
      cmocka_unit_test_setup(beside_the_program_from_any_folder, forget),
      cmocka_unit_test_setup(folders_above_the_current_one, forget),
      cmocka_unit_test_setup(the_error_says_what_was_tried_and_what_to_do, forget),
      cmocka_unit_test_setup(the_user_s_paths, forget),
      cmocka_unit_test_setup(folders_are_made_or_refused_with_a_sentence, forget),
      cmocka_unit_test_setup(a_folder_without_the_right_to_write, forget),
  };
  return TEST_MAIN("runfiles", tests);
}
