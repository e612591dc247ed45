/* process.h - programs that are not trusted: started with limits, watched, ended with all that they started.
 *
 *     ProcessSpec spec = process_spec(argv);
 *     spec.seconds = 60;
 *     Process process;
 *     if (process_start(&process, &spec, &err) != 0) ...
 *     process_wait(&process, NULL, NULL);        // at most 60 seconds
 *     process.output                              // what it printed, stdout and stderr, the first 256 KB
 *
 * With `sandbox` a program runs under bubblewrap: no network, no processes but its own, nothing to write to but an
 * empty /tmp and an empty /dev/shm of 64 MB each, and of the machine's files only the system's own and those that are
 * named.
 */
#ifndef LEARN_PROCESS_H
#define LEARN_PROCESS_H

#include "learn/text.h" /* first: it asks the C library for all it has */

#include "common/timer.h"

#include <dirent.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { PROCESS_ARGUMENTS = 128, PROCESS_OUTPUT = 256 << 10 };

typedef struct ProcessSpec {
  const char *const *argv;
  const char *folder;     /* NULL: the current one */
  const char *const *env; /* "NAME=value" and NULL; more than what is inherited */
  const char *input;      /* standard input; NULL: nothing */
  int channel;            /* becomes file descriptor 3; -1: none */
  bool separate_errors;   /* stderr apart from stdout */
  double seconds;         /* of real time; a little more of processor time */
  long memory;            /* bytes of address space; 0: no limit */
  long file_size;         /* bytes of a file, and of what is printed; 0: no limit */
  /* the sandbox */
  bool sandbox;
  bool gpu;   /* the GPU's devices are there */
  bool alone; /* may start threads, but no processes */
  const char *const
      *readable; /* "FROM", "FROM=TO" and NULL: files and folders to be seen at the same or another place */
  const char *const *writable;
} ProcessSpec;

typedef struct Process {
  pid_t pid;
  int output_fd, error_fd;
  double deadline;
  bool timed_out, interrupted;
  int status;         /* exit status, or 128 + the signal */
  const char *output; /* kept */
  const char *errors; /* stderr, if it is separate */
} Process;

static inline ProcessSpec process_spec(const char *const *argv) {
  ProcessSpec spec;
  memset(&spec, 0, sizeof spec);
  spec.argv = argv;
  spec.channel = -1;
  spec.seconds = 60;
  return spec;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The sandbox */

static inline bool sandbox_installed(void) { return system("command -v bwrap >/dev/null 2>&1") == 0; }

/* NULL, or why there is no sandbox on this machine. */
static inline const char *sandbox_missing(void) {
  static char reason[1024] = "?"; /* not yet known */
  char said[300] = "";
  if (reason[0] != '?') return reason[0] == '\0' ? NULL : reason;
  if (!sandbox_installed()) {
    snprintf(reason, sizeof reason,
             "the sandbox, bubblewrap, is not installed: run ./setup.sh, or `apt install bubblewrap`");
    return reason;
  }
  /* As sandbox_wrap() asks for it: some containers permit namespaces, and no /proc in them. */
  FILE *run = popen("bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp true 2>&1", "r");
  if (run != NULL && fgets(said, sizeof said, run) == NULL) said[0] = '\0';
  said[strcspn(said, "\n")] = '\0';
  if (strstr(said, " See <") != NULL) *strstr(said, " See <") = '\0';
  if (run != NULL && pclose(run) == 0)
    reason[0] = '\0';
  else
    snprintf(reason, sizeof reason,
             "the sandbox, bubblewrap, is installed, but this machine forbids the namespaces that it needs (%s). Allow "
             "them: for a container with --privileged, or with --security-opt seccomp=unconfined --security-opt "
             "apparmor=unconfined --security-opt systempaths=unconfined; on a machine of your own with `sysctl "
             "user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1`",
             said);
  return reason[0] == '\0' ? NULL : reason;
}

/* A filter for the kernel: threads, but no processes; no memory that outlives its mapping, for no limit counts that; no
 * namespaces of its own, in which it could mount more; none of its user's keys. Returns a file descriptor with it. */
static inline int sandbox_filter(Error *err) {
#if defined(__x86_64__)
  enum { ARCHITECTURE = AUDIT_ARCH_X86_64 };
#else
  enum { ARCHITECTURE = AUDIT_ARCH_AARCH64 };
#endif
  static const uint32_t denied[] = {
#ifdef SYS_fork
      SYS_fork,    SYS_vfork,
#endif
      SYS_unshare, SYS_setns,  SYS_mount,   SYS_shmget,      SYS_msgget,
      SYS_semget,  SYS_keyctl, SYS_add_key, SYS_request_key, SYS_io_uring_setup};
  enum { NUMBER = 0, ARCH = 4, ARGUMENT = 16 }; /* offsets in struct seccomp_data */
  const struct sock_filter deny = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  const struct sock_filter begin[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARCH),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), /* x32 */
      deny,
  };
  const struct sock_filter end[] = {
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS), /* the C library then tries clone */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
      deny,
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  int fd = memfd_create("filter", 0); /* inherited by bwrap */
  bool ok = fd >= 0 && write(fd, begin, sizeof begin) == sizeof begin;
  for (size_t i = 0; i < sizeof denied / sizeof *denied && ok; i++) {
    const struct sock_filter pair[] = {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied[i], 0, 1), deny};
    ok = write(fd, pair, sizeof pair) == sizeof pair;
  }
  if (!ok || write(fd, end, sizeof end) != sizeof end || lseek(fd, 0, SEEK_SET) != 0)
    return error_set(err, "cannot make the sandbox's filter: %s", strerror(errno));
  return fd;
}

typedef struct Arguments {
  const char *item[PROCESS_ARGUMENTS + 1];
  int count;
} Arguments;

static inline void arguments_add(Arguments *arguments, const char *item) {
  if (arguments->count == PROCESS_ARGUMENTS) die("more than %d arguments", PROCESS_ARGUMENTS);
  arguments->item[arguments->count++] = item;
}
static inline void arguments_add3(Arguments *arguments, const char *a, const char *b, const char *c) {
  arguments_add(arguments, a);
  arguments_add(arguments, b);
  arguments_add(arguments, c);
}

static inline void sandbox_bind(Arguments *arguments, const char *option, const char *binding) {
  const char *equals = strchr(binding, '=');
  const char *from = equals == NULL ? binding : keep_bytes(binding, (size_t)(equals - binding));
  arguments_add3(arguments, option, from, equals == NULL ? from : equals + 1);
}

/* The folder of nvcc, of those in PATH; NULL: there is none. */
static inline const char *sandbox_nvcc_folder(void) {
  const char *path = getenv("PATH");
  for (const char *at = path; at != NULL && *at != '\0'; at += strcspn(at, ":"), at += *at == ':') {
    const char *folder = keep_bytes(at, strcspn(at, ":"));
    if (folder[0] == '/' && access(keep_printf("%s/nvcc", folder), X_OK) == 0) return folder;
  }
  return NULL;
}

/* The command line of bwrap, with the program's at its end. */
static inline void sandbox_wrap(Arguments *arguments, const ProcessSpec *spec, int filter) {
  static const char *const system_folders[] = {
      "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache"};
  static const char *const flags[] = {"bwrap",         "--unshare-all", "--die-with-parent",
                                      "--new-session", "--cap-drop",    "ALL",
                                      "--proc",        "/proc",         "--dev",
                                      "/dev",          "--size",        "67108864",
                                      "--tmpfs",       "/tmp",          "--size",
                                      "67108864",      "--tmpfs",       "/dev/shm",
                                      "--clearenv",    "--setenv",      "HOME",
                                      "/tmp"};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) arguments_add(arguments, flags[i]);
  for (size_t i = 0; i < sizeof system_folders / sizeof *system_folders; i++) {
    char target[PATH_MAX];
    ssize_t length = readlink(system_folders[i], target, sizeof target - 1);
    if (length > 0)
      arguments_add3(arguments, "--symlink", keep_bytes(target, (size_t)length), system_folders[i]);
    else if (access(system_folders[i], F_OK) == 0)
      arguments_add3(arguments, "--ro-bind", system_folders[i], system_folders[i]);
  }
  const char *nvcc = sandbox_nvcc_folder();
  arguments_add3(arguments, "--setenv", "PATH", nvcc == NULL ? "/usr/bin:/bin" : keep_printf("/usr/bin:/bin:%s", nvcc));
  if (nvcc != NULL && !starts_with(nvcc, "/usr/")) { /* the toolkit is the folder above */
    const char *toolkit = keep_bytes(nvcc, (size_t)(strrchr(nvcc, '/') - nvcc));
    /* Not what is beside somebody's own script of that name. */
    if (access(keep_printf("%s/nvvm", toolkit), F_OK) == 0) sandbox_bind(arguments, "--ro-bind", toolkit);
  }
  DIR *devices = spec->gpu ? opendir("/dev") : NULL;
  for (struct dirent *entry; devices != NULL && (entry = readdir(devices)) != NULL;)
    if (starts_with(entry->d_name, "nvidia"))
      sandbox_bind(arguments, "--dev-bind", keep_printf("/dev/%s", entry->d_name));
  if (devices != NULL) closedir(devices);
  if (spec->gpu) sandbox_bind(arguments, "--ro-bind", "/sys");
  for (int i = 0; spec->readable != NULL && spec->readable[i] != NULL; i++)
    sandbox_bind(arguments, "--ro-bind", spec->readable[i]);
  for (int i = 0; spec->writable != NULL && spec->writable[i] != NULL; i++)
    sandbox_bind(arguments, "--bind", spec->writable[i]);
  for (int i = 0; i < 2; i++) { /* file systems in memory, without a limit */
    arguments_add(arguments, "--remount-ro");
    arguments_add(arguments, i == 0 ? "/" : "/dev");
  }
  for (int i = 0; spec->env != NULL && spec->env[i] != NULL; i++) {
    const char *equals = strchr(spec->env[i], '=');
    arguments_add3(arguments, "--setenv", keep_bytes(spec->env[i], (size_t)(equals - spec->env[i])), equals + 1);
  }
  if (filter >= 0) {
    arguments_add(arguments, "--seccomp");
    arguments_add(arguments, keep_printf("%d", filter));
  }
  arguments_add(arguments, "--chdir");
  arguments_add(arguments, spec->folder != NULL ? spec->folder : "/tmp");
  for (int i = 0; spec->argv[i] != NULL; i++) arguments_add(arguments, spec->argv[i]);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Processes */

static inline void process_limit(int resource, long limit) {
  struct rlimit value = {(rlim_t)limit, (rlim_t)limit};
  if (limit > 0) setrlimit((__rlimit_resource_t)resource, &value);
}

static inline void process_become(const ProcessSpec *spec, const char *const *argv, int input, int output, int errors,
                                  int filter) {
  setsid(); /* a group of its own, to be ended as one */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int signal_number = 1; signal_number < 32; signal_number++) signal(signal_number, SIG_DFL);
  dup2(input, 0);
  dup2(output, 1);
  dup2(errors, 2);
  int channel = spec->channel >= 0 ? fcntl(spec->channel, F_DUPFD, 100) : -1, above = 100;
  int kept_filter = filter >= 0 ? fcntl(filter, F_DUPFD, 100) : -1;
  if (channel >= 0) dup2(channel, 3);
  if (kept_filter >= 0) {
    dup2(kept_filter,
         filter == 3 ? 4 : filter); /* its number stands in bwrap's arguments; never 3, see process_start */
    above = filter;
  }
  for (int fd = spec->channel >= 0 ? 4 : 3; fd < 256; fd++)
    if (fd != above || kept_filter < 0) close(fd);
  if (spec->folder != NULL && !spec->sandbox && chdir(spec->folder) != 0) {
    fprintf(stderr, "%s: %s\n", spec->folder, strerror(errno));
    _exit(127);
  }
  for (int i = 0; !spec->sandbox && spec->env != NULL && spec->env[i] != NULL; i++) putenv((char *)spec->env[i]);
  process_limit(RLIMIT_CPU, (long)spec->seconds + 2);
  process_limit(RLIMIT_AS, spec->memory);
  process_limit(RLIMIT_FSIZE, spec->file_size);
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (spec->sandbox) {
    process_limit(RLIMIT_NOFILE, spec->gpu ? 1024 : 256);                /* pipes and nameless files hold memory, too */
    int victim = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); /* where memory ends, it ends first */
    if (victim >= 0 && write(victim, "1000", 4) != 4) errno = 0;         /* nothing depends on it */
  }
  execvp(argv[0], (char *const *)argv);
  fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
  _exit(127);
}

static inline int process_start(Process *process, const ProcessSpec *spec, Error *err) {
  Arguments arguments = {{NULL}, 0};
  const char *const *argv = spec->argv;
  int filter = -1;
  memset(process, 0, sizeof *process);
  process->output = process->errors = "";
  if (spec->sandbox) {
    if (sandbox_missing() != NULL) return error_set(err, "%s", sandbox_missing());
    if (spec->alone) {
      int made = sandbox_filter(err);
      if (made < 0) return -1;
      filter = fcntl(made, F_DUPFD, 10); /* away from the channel's place */
      close(made);
    }
    sandbox_wrap(&arguments, spec, filter);
    argv = arguments.item;
  }
  int input = memfd_create("input", MFD_CLOEXEC);
  process->output_fd = memfd_create("output", MFD_CLOEXEC);
  process->error_fd = spec->separate_errors ? memfd_create("errors", MFD_CLOEXEC) : -1;
  if (input < 0 || process->output_fd < 0) return error_set(err, "cannot start %s: %s", argv[0], strerror(errno));
  if (spec->input != NULL && write(input, spec->input, strlen(spec->input)) < 0)
    return error_set(err, "cannot start %s: %s", argv[0], strerror(errno));
  lseek(input, 0, SEEK_SET);
  fflush(NULL);
  process->pid = fork();
  if (process->pid == 0)
    process_become(spec, argv, input, process->output_fd,
                   spec->separate_errors ? process->error_fd : process->output_fd, filter);
  close(input);
  if (filter >= 0) close(filter);
  if (process->pid < 0) return error_set(err, "cannot start %s: %s", argv[0], strerror(errno));
  process->deadline = seconds_now() + spec->seconds;
  return 0;
}

static inline const char *process_text(int fd) {
  char *text = (char *)xmalloc(PROCESS_OUTPUT);
  ssize_t got = pread(fd, text, PROCESS_OUTPUT - 1, 0);
  const char *kept = keep_bytes(text, got > 0 ? (size_t)got : 0);
  free(text);
  close(fd);
  return kept;
}

/* Ends the process and all that it started. */
static inline void process_kill(const Process *process) {
  if (process->pid <= 0) return;
  kill(-process->pid, SIGKILL);
  kill(process->pid, SIGKILL);
}

/* Waits for its end, at most until its deadline. `interrupted`, if given, is asked now and then and ends it, too. */
static inline void process_wait(Process *process, bool (*interrupted)(void *), void *context) {
  int status = 0;
  for (long nap = 200000;; nap = nap < 5000000 ? nap * 5 / 4 : nap) {
    if (waitpid(process->pid, &status, WNOHANG) != 0) break;
    if (seconds_now() > process->deadline) process->timed_out = true;
    if (interrupted != NULL && interrupted(context)) process->interrupted = true;
    if (process->timed_out || process->interrupted) {
      process_kill(process);
      waitpid(process->pid, &status, 0);
      break;
    }
    struct timespec pause = {0, nap};
    nanosleep(&pause, NULL);
  }
  kill(-process->pid, SIGKILL); /* whatever it left behind */
  process->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  process->output = process_text(process->output_fd);
  if (process->error_fd >= 0) process->errors = process_text(process->error_fd);
  process->pid = 0;
}

/* Not the program but bwrap ended, before it. */
static inline bool sandbox_failed(const Process *process) {
  return process->status == 1 && starts_with(process->output, "bwrap: ");
}

static inline int process_run(Process *process, const ProcessSpec *spec, Error *err) {
  if (process_start(process, spec, err) != 0) return -1;
  process_wait(process, NULL, NULL);
  return 0;
}

#endif /* LEARN_PROCESS_H */
