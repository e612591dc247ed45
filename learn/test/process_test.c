/* The sandbox: what a program inside can reach of the machine. Its programs are Python: that can say what happened. */
#include "learn/process.h"
#include "common/test.h"

#include <arpa/inet.h>
#include <sys/socket.h>

/* Skips the test where the machine forbids namespaces, as many containers do: setup.sh cannot help it. */
static void needs_sandbox(void) {
  if (!sandbox_installed()) fail_msg("%s", sandbox_missing());
  if (sandbox_missing() == NULL) return;
  print_message("skipped: %s\n", sandbox_missing());
  skip();
}

static Process run_python(const char *code, bool alone) {
  const char *argv[] = {"/usr/bin/python3", "-c", code, NULL};
  ProcessSpec spec = process_spec(argv);
  Process process;
  Error err;
  spec.sandbox = true;
  spec.alone = alone;
  spec.seconds = 5;
  spec.file_size = 1 << 20;
  spec.memory = 1L << 30;
  needs_sandbox();
  if (process_run(&process, &spec, &err) != 0) fail_msg("%s", err.message);
  return process;
}

static void assert_printed(const char *code, const char *expected) {
  Process process = run_python(code, true);
  if (strstr(process.output, expected) == NULL)
    fail_msg("%s: expected %s, got %s (status %d)", code, expected, process.output, process.status);
}

static void reaches_no_network(void **state) {
  (void)state;
  char code[300];
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
  assert_int_equal(listen(listener, 1), 0);
  getsockname(listener, (struct sockaddr *)&address, &size);
  snprintf(code, sizeof code, "import socket\nsocket.create_connection(('127.0.0.1', %d), 1)", ntohs(address.sin_port));
  assert_printed(code, "refused"); /* its loopback device is another one */
  assert_int_equal(accept(listener, NULL, NULL), -1);
  close(listener);
}

static void starts_no_processes(void **state) {
  (void)state;
  assert_printed("import os\nos.fork()", "PermissionError");
  assert_printed("import subprocess\nsubprocess.run(['true'])", "PermissionError");
  assert_printed("import threading\nt = threading.Thread(target=print, args=('thread runs',))\nt.start()\nt.join()",
                 "thread runs");
}

static void sees_no_other_processes(void **state) {
  (void)state;
  assert_printed("import os\nos.kill(1, 0)\nprint(len([p for p in os.listdir('/proc') if p.isdigit()]) < 4)", "True");
  char code[100];
  snprintf(code, sizeof code, "import os\nos.kill(%d, 9)", (int)getpid());
  assert_printed(code, "ProcessLookupError");
}

static void writes_nowhere(void **state) {
  (void)state;
  assert_printed("open('/usr/x', 'w')", "Read-only");
  assert_printed("open('/tmp/x', 'w').write('x')\nprint('only here')", "only here");
  assert_int_equal(access("/tmp/x_of_the_sandbox", F_OK), -1);
  char code[PATH_MAX + 100];
  snprintf(code, sizeof code, "open('%s/x', 'w')", test_tmpdir());
  assert_printed(code, "Error");
  Process process = run_python("f = open('/tmp/x', 'wb')\nwhile True: f.write(b'x' * 65536)", true);
  assert_int_not_equal(process.status, 0);
  assert_false(process.timed_out); /* the limit on files came first */
}

/* What it fills is limited: all else that lives in memory would outgrow the limit on a process's own. */
static void fills_no_memory_behind_its_limit(void **state) {
  (void)state;
  assert_printed("open('/x', 'w')", "Read-only");
  assert_printed("open('/dev/x', 'w')", "Read-only");
  const char *fill =
      "import os\n"
      "try:\n"
      "  for i in range(90): open('%s/%%d' %% i, 'wb').write(bytes(1 << 20))\n"
      "except OSError as e: print(i >= 50, e)";
  assert_printed(keep_printf(fill, "/tmp"), "True [Errno 28] No space left");
  assert_printed(keep_printf(fill, "/dev/shm"), "True [Errno 28] No space left");
  assert_printed("import os\nfds = [os.memfd_create('x') for i in range(300)]", "Too many open files");
  const char *call =
      "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
      "print(libc.%s, os.strerror(ctypes.get_errno()))";
  static const char *const calls[] = {"shmget(0, 1 << 20, 0o1600)", "msgget(0, 0o1600)", "unshare(0x10000000)",
                                      "mount(b'x', b'/tmp', b'tmpfs', 0, 0)"};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    assert_printed(keep_printf(call, calls[i]), "-1 Operation not permitted");
  assert_printed(keep_printf(call, keep_printf("syscall(%d, 0, -3, 1)", SYS_keyctl)), "-1 Operation not permitted");
  assert_printed("print(open('/proc/self/oom_score_adj').read())", "1000");
}

/* A toolkit outside the system's folders is found where the user's PATH has it. */
static void finds_the_toolkit(void **state) {
  (void)state;
  char folder[PATH_MAX], nvcc[PATH_MAX + 8], path[2 * PATH_MAX];
  snprintf(folder, sizeof folder, "%s/toolkit/bin", test_tmpdir());
  snprintf(nvcc, sizeof nvcc, "%s/nvcc", folder);
  Error err;
  assert_int_equal(make_directories(folder, &err), 0);
  snprintf(path, sizeof path, "%s/toolkit/nvvm", test_tmpdir());
  assert_int_equal(make_directories(path, &err), 0);
  FILE *file = fopen(nvcc, "w");
  fputs("#!/bin/sh\necho the toolkit is here\n", file);
  fclose(file);
  chmod(nvcc, 0755);
  const char *before = keep(getenv("PATH"));
  snprintf(path, sizeof path, "%s:%s", folder, before);
  setenv("PATH", path, 1);
  assert_printed("import os\nos.execvp('nvcc', ['nvcc'])", "the toolkit is here");
  setenv("PATH", before, 1);
}

static void takes_no_more_than_its_share(void **state) {
  (void)state;
  assert_printed("x = bytearray(2 << 30)", "MemoryError");
  double begin = seconds_now();
  Process process = run_python("while True: pass", true);
  assert_true(process.timed_out);
  assert_true(seconds_now() - begin < 20);
  process = run_python("while True: print('all right' * 100)", true);
  assert_int_not_equal(process.status, 0);
  assert_true(strlen(process.output) < PROCESS_OUTPUT);
}

/* Processes whose command line contains the text. */
static int processes_with(const char *text) {
  DIR *dir = opendir("/proc");
  int count = 0;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    char path[300], line[4096] = "";
    snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
    int fd = open(path, O_RDONLY);
    if (fd < 0) continue;
    ssize_t length = read(fd, line, sizeof line - 1);
    close(fd);
    count += length > 0 && memmem(line, (size_t)length, text, strlen(text)) != NULL;
  }
  closedir(dir);
  return count;
}

static void leaves_nobody_behind(void **state) {
  (void)state;
  const char *code =
      "import os, time\nif os.fork() == 0:\n  os.setsid()\n  time.sleep(98765)\nprint('gone')\ntime.sleep(1)";
  const char *argv[] = {"/usr/bin/python3", "-c", code, NULL};
  ProcessSpec spec = process_spec(argv);
  Process process;
  Error err;
  spec.sandbox = true;
  needs_sandbox();
  assert_int_equal(process_start(&process, &spec, &err), 0);
  struct timespec nap = {0, 500000000};
  nanosleep(&nap, NULL);
  assert_true(processes_with("time.sleep(98765)") >= 2); /* it and its child are there */
  process_wait(&process, NULL, NULL);
  assert_int_equal(process.status, 0);
  nanosleep(&nap, NULL);
  assert_int_equal(processes_with("time.sleep(98765)"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reaches_no_network),
                                     cmocka_unit_test(starts_no_processes),
                                     cmocka_unit_test(sees_no_other_processes),
                                     cmocka_unit_test(writes_nowhere),
                                     cmocka_unit_test(fills_no_memory_behind_its_limit),
                                     cmocka_unit_test(finds_the_toolkit),
                                     cmocka_unit_test(takes_no_more_than_its_share),
                                     cmocka_unit_test(leaves_nobody_behind)};
  return TEST_MAIN("process", tests);
}
