/* learn - the course's exercises, one after the other.
 *
 *     bazel run //learn -- init ~/course       in the course's repository: makes a student's tree
 *     cd ~/course && ./nn next                 there: what to do; then check, hint, watch ...
 *
 * For authors, in the repository: lint (what is missing?) and prove (do stubs fail, solutions pass, mutants fail?).
 */
#include "learn/exercise_proof.h"
#include "learn/forbidden_code.h"
#include "learn/init.h"
#include "learn/list.h"
#include "learn/prepare.h"
#include "learn/view.h"
#include "learn/watch.h"

typedef struct Command {
  const char *word[3]; /* the command and its arguments */
  int words;
  const char *source;
  bool update, poll, stop, no_prepare, quick, together;
} Command;

static const char about[] =
    "The course's exercises, one after the other.\v"
    "In a student's tree:\n"
    "  next [NAME]      shows what to do next; with a name, goes to that exercise\n"
    "  prev             goes back to the exercise before\n"
    "  check [NAME]     checks your lines (check all: every exercise)\n"
    "  hint [NAME]      shows one more hint each time\n"
    "  watch [NAME]     checks the exercise that you save, whenever you save; keys n, p, h, l, q\n"
    "  list             shows all exercises; on a terminal Enter goes to one, f and / filter, r resets\n"
    "  status           shows your progress\n"
    "  prepare          compiles the check programs in the background; init starts it, at low\n"
    "                   priority: --stop stops it, without --stop it continues\n"
    "  reset NAME       restores what you started from; a copy of your lines is kept\n"
    "  restore NAME     restores the course's lines around your exercises and helpers; a copy is kept\n"
    "  solution [NAME]  shows the reference's lines: after success, or when asked twice\n\n"
    "NAME is an exercise's name or its number in the list; without it, the current one.\n\n"
    "In the course's repository:\n"
    "  init DIR         makes a student's tree; with --update, brings an old one up to date\n"
    "  lint             lists what is missing in the exercises\n"
    "  prove [NAME]     proves that stubs fail, solutions pass, and mutants get their diagnosis\n\n"
    "docs/exercises_for_authors.md explains how to add an exercise, docs/grading.md how to grade.";

static error_t parse(int key, char *arg, struct argp_state *state) {
  Command *command = (Command *)state->input;
  switch (key) {
    case 'u':
      command->update = true;
      return 0;
    case 'p':
      command->poll = true;
      return 0;
    case 'x':
      command->stop = true;
      return 0;
    case 'n':
      command->no_prepare = true;
      return 0;
    case 's':
      command->source = arg;
      return 0;
    case 'q':
      command->quick = true;
      return 0;
    case 't':
      command->together = true;
      return 0;
    case ARGP_KEY_ARG:
      if (command->words == 3) argp_error(state, "\"%s\" is one argument too many", arg);
      command->word[command->words++] = arg;
      return 0;
    case ARGP_KEY_NO_ARGS:
      command->word[command->words++] = "next";
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* The exercise that is meant: the one that was named, by name or number, or the current one. */
static int chosen(Tree *tree, const char *name) {
  const char *names[EXERCISES_MAX];
  const int count = tree->exercises.count;
  if (name == NULL) return tree->current;
  for (int i = 0; i < count; i++) names[i] = tree->exercises.item[i].name;
  for (int i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0) return i;
  const int number = atoi(name);
  if (name[strspn(name, "0123456789")] == '\0' && number >= 1 && number <= count) return number - 1;
  die("unknown exercise \"%s\"%s `%s list` lists all %d", name,
      words_near(name, names, count)[0] != '\0' ? words_near(name, names, count) : ";", command_name(), count);
}

static void save(const Tree *tree) {
  Error err;
  if (tree_save(tree, &err) != 0) die("your progress was not saved: %s", err.message);
}

/* Released by close(), or at the end of the program. */
static int lock_tree(Tree *tree, bool keep_current) {
  Error err;
  int lock = tree_lock(tree, keep_current, &err);
  if (lock < 0) die("%s", err.message);
  return lock;
}

/* ---------------------------------------------------------------------------------------------------------------- */

static void say_what_to_do(const Tree *tree) {
  say_progress(tree);
  say_exercise(tree, tree->current);
  printf("\n    Write your lines there, save, then: %s check   (or check at each save: %s watch)\n\n", command_name(),
         command_name());
}

static void go_to(Tree *tree, int index) {
  if (tree->current == index) return;
  tree->current = index;
  save(tree);
}

static int command_next(Tree *tree, const char *name) {
  int count = tree->exercises.count, index = tree->current;
  if (name != NULL) {
    go_to(tree, chosen(tree, name));
  } else if (tree->progress[index].passed) {
    int step = 1;
    while (step <= count && tree->progress[(index + step) % count].passed) step++;
    if (step > count) {
      say_progress(tree);
      printf("\n  %s\n\n",
             styled(GREEN, "All exercises have passed. Every program of the course runs on your kernels now."));
      return 0;
    }
    go_to(tree, (index + step) % count);
  }
  say_what_to_do(tree);
  return 0;
}

static int command_prev(Tree *tree) {
  if (tree->current == 0) printf("\n  This is the first exercise.\n");
  if (tree->current > 0) go_to(tree, tree->current - 1);
  say_what_to_do(tree);
  return 0;
}

static int reset_exercise(Tree *tree, int index);

/* All exercises; where there is a terminal, to choose from, until one is left for another. */
static int command_list(Tree *tree) {
  const bool ask = list_can_ask();
  if (!ask) {
    printf("\n");
    for (int i = 0; i < tree->exercises.count; i++) say_list_row(tree, i, "  ");
    say_progress(tree);
    printf("\n");
  }
  while (ask) {
    const ListChoice choice = list_choose(tree);
    if (choice.key == LIST_RESET) reset_exercise(tree, choice.index);
    if (choice.key == LIST_RESET) continue;
    if (choice.key == LIST_JUMP) go_to(tree, choice.index);
    say_what_to_do(tree);
    break;
  }
  return 0;
}

static int command_status(const Tree *tree) {
  int checks = 0, hints = 0;
  for (int i = 0; i < tree->exercises.count; i++) {
    checks += tree->progress[i].checks;
    hints += tree->progress[i].hints;
  }
  say_progress(tree);
  printf("  %d checks, %d hints; now at %s\n", checks, hints, tree->exercises.item[tree->current].name);
  printf("  kept in %s\n\n", view_place(tree, ".learn/progress.json", 0));
  say_indented(2, prepare_text(tree));
  return 0;
}

/* 0: passed; 1: not. `interrupted` may end a check early. */
static int check(Tree *tree, int index, bool (*interrupted)(void *), void *context) {
  const Exercise *exercise = &tree->exercises.item[index];
  Record *progress = &tree->progress[index];
  Written written;
  Verdict verdict;
  Error err;
  if (tree_written(tree, exercise, &written, &err) != 0) {
    fflush(stdout);
    fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, err.message);
    return 1;
  }
  if (tree_note(tree, exercise, &written, &err) != 0) die("%s", err.message);
  VerdictJob job = verdict_job_written(tree, exercise, &written);
  job.overlay = tree_path(tree, ".learn/build/overlay");
  job.gpu = gpu_is_there();
  job.hurry = true;
  job.interrupted = interrupted;
  job.context = context;
  double begin = seconds_now();
  if (access(keep_printf("%s/%s.judge", job.build, strrchr(exercise->check, '/') + 1), F_OK) != 0) {
    printf("  (the first check of this lesson builds its judge; later ones take about a second)\n");
    fflush(stdout);
  }
  /* Brackets that do not match are the compiler's to complain about: a student has forgotten one. */
  const char *refused = code_brackets(written.lines) == NULL
                            ? forbidden_written(written.lines, written.line, written.helpers, written.helpers_line)
                            : NULL;
  memset(&verdict, 0, sizeof verdict);
  if (refused != NULL) {
    verdict.kind = VERDICT_REFUSED;
    verdict.message = refused;
  } else if (verdict_of(&job, &verdict, &err) != 0) {
    if (err.code == ERROR_INTERRUPTED) return 1;
    die("%s", err.message);
  }
  bool was = progress->passed;
  tree->current = index;
  progress->checks++;
  progress->passed = verdict.kind == VERDICT_RIGHT;
  if (progress->passed && !was) progress->passed_at = time_text("%Y-%m-%d %H:%M:%S");
  save(tree);
  say_verdict(tree, index, &verdict, seconds_now() - begin);
  say_outside(&job, &written);
  if (was && !progress->passed)
    say_indented(4, "It had passed before; until it passes again, all programs use the reference.");
  say_progress(tree);
  printf("\n");
  fflush(stdout);
  return progress->passed ? 0 : 1;
}

static int command_check(Tree *tree, const char *name) {
  if (name == NULL || strcmp(name, "all") != 0) return check(tree, chosen(tree, name), NULL, NULL);
  int status = 0, current = tree->current;
  for (int i = 0; i < tree->exercises.count; i++) status |= check(tree, i, NULL, NULL);
  tree->current = current;
  save(tree);
  return status;
}

static int command_hint(Tree *tree, int index) {
  const Exercise *exercise = &tree->exercises.item[index];
  Record *progress = &tree->progress[index];
  if (progress->hints < exercise->hints) progress->hints++;
  save(tree);
  printf("\n  %s\n\n",
         styled(BOLD, keep_printf("Hints for %s, %d of %d", exercise->name, progress->hints, exercise->hints)));
  for (int i = 0; i < progress->hints; i++) say_indented(4, keep_printf("%d. %s", i + 1, exercise->hint[i]));
  printf("\n");
  if (progress->hints == exercise->hints)
    say_indented(4, keep_printf("That was the last one; `%s solution` shows the reference's lines.", command_name()));
  return 0;
}

static int reset_exercise(Tree *tree, int index) {
  Error err;
  const char *backup;
  const Exercise *exercise = &tree->exercises.item[index];
  const char *name = exercise->name;
  const char *text, *lines = exercise->stub;
  Region region;
  /* A file that is damaged or gone is repaired, with the lines of the last check, as tree_region() promises. */
  bool repair = tree_region(tree, exercise, &text, &region, NULL) != 0 && tree_lines(tree, exercise) != NULL;
  if (repair) lines = tree_lines(tree, exercise);
  if (tree_put_lines(tree, exercise, lines, &backup, &err) != 0) die("nothing was changed: %s", err.message);
  if (repair) {
    printf("\n  %s is repaired, with your lines for %s as they were at its last check.\n", exercise->file, name);
    if (backup[0] != '\0') printf("  The file as you had it: %s\n", view_place(tree, backup, 0));
    printf("  `%s reset %s` once more restores what you started from.\n\n", command_name(), name);
    return 0;
  }
  tree->progress[index].passed = false;
  save(tree);
  printf("\n  %s is as it was at the start.\n", name);
  if (backup[0] != '\0') printf("  The file as you had it: %s\n", view_place(tree, backup, 0));
  printf("\n");
  return 0;
}

static int command_reset(Tree *tree, const char *name) {
  if (name == NULL) die("reset: which exercise? `%s reset NAME`", command_name());
  return reset_exercise(tree, chosen(tree, name));
}

/* The course's lines are as they were, the student's stay: of all exercises of the file, and the helpers. */
static int command_restore(Tree *tree, const char *name) {
  Error err;
  const char *backup;
  if (name == NULL) die("restore: which exercise's file? `%s restore NAME`", command_name());
  const Exercise *exercise = &tree->exercises.item[chosen(tree, name)];
  if (tree_back_up(tree, exercise->file, exercise->name, &backup, &err) != 0 ||
      tree_restore(tree, exercise->file, NULL, NULL, &err) != 0)
    die("nothing was changed: %s", err.message);
  printf("\n  %s is the course's again, with your exercises and helpers in it.\n", exercise->file);
  if (backup[0] != '\0') printf("  The file as you had it: %s\n", view_place(tree, backup, 0));
  printf("\n");
  return 0;
}

static int command_solution(Tree *tree, int index) {
  const Exercise *exercise = &tree->exercises.item[index];
  Record *progress = &tree->progress[index];
  Text text = {0};
  Error err;
  if (!progress->passed && !progress->solution_asked) {
    progress->solution_asked = true;
    save(tree);
    printf("\n");
    say_indented(2,
                 keep_printf("%s has not passed yet: %d of %d hints are taken. If you want to see the solution all the "
                             "same, ask once more.",
                             exercise->name, progress->hints, exercise->hints));
    printf("\n");
    return 1;
  }
  if (text_read_file(&text, tree_path(tree, keep_printf(".learn/reference/%s.cuh", exercise->name)), &err) != 0)
    die("%s", err.message);
  printf("\n  %s\n\n%s\n", styled(BOLD, keep_printf("The reference's %s", exercise->name)), text.bytes);
  text_free(&text);
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */

static bool watch_interrupted(void *context) {
  Watch *watch = (Watch *)context;
  struct pollfd key = {watch->keys ? STDIN_FILENO : -1, POLLIN, 0};
  return poll(&key, 1, 0) > 0; /* stays there to be read */
}

static Watch *watch_open_now;
static void watch_end(int number) {
  watch_close(watch_open_now); /* the terminal as it was */
  signal(number, SIG_DFL);
  raise(number);
}

static void watch_check(Tree *tree, Watch *watch, int index) {
  check(tree, index, watch_interrupted, watch);
  printf("  %s   n: next   p: previous   h: hint   l: list   q: quit\n", styled(DIM, "waiting for you to save"));
  fflush(stdout);
}

static int command_watch(Tree *tree, const char *name, bool poll_files) {
  static Watch watch;
  if (name != NULL) tree->current = chosen(tree, name);
  watch_open(&watch, tree, poll_files);
  watch_open_now = &watch;
  signal(SIGINT, watch_end);
  signal(SIGTERM, watch_end);
  signal(SIGHUP, watch_end);
  say_exercise(tree, tree->current);
  printf("\n  Watching %s%s.\n", tree->root, watch.inotify < 0 ? ", by looking twice a second" : "");
  int lock = lock_tree(tree, true);
  watch_check(tree, &watch, tree->current);
  close(lock);
  for (;;) {
    int key = watch_wait(&watch, 3600);
    if (key == 'q' || key == 4) break;
    lock = lock_tree(tree, true);
    if (key == 0) {
      if (view_is_terminal()) printf("\033[2J\033[H");
      watch_check(tree, &watch, watch.saved);
    }
    if (key == 'n') command_next(tree, NULL);
    if (key == 'p') command_prev(tree);
    if (key == 'h') command_hint(tree, tree->current);
    if (key == 'l') command_list(tree);
    close(lock);
    fflush(stdout);
  }
  watch_close(&watch);
  printf("\n");
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* In the course's repository */

static Source *open_source(const Command *command) {
  static Source source;
  char root[PATH_MAX], path[PATH_MAX];
  const char *workspace = getenv("BUILD_WORKSPACE_DIRECTORY");
  Error err;
  if (command->source != NULL) {
    if (user_path(command->source, root, sizeof root, &err) != 0) die("%s", err.message);
  } else if (workspace != NULL && workspace[0] != '\0') {
    snprintf(root, sizeof root, "%s", workspace);
  } else {
    if (runfiles_find("simt/simtcc", path, sizeof path, &err) != 0)
      die("where is the course's repository? Use `bazel run //learn` there, or --source=DIR");
    snprintf(root, sizeof root, "%.*s", (int)(strlen(path) - strlen("/simt/simtcc")), path);
  }
  if (access(keep_printf("%s/.learn/tree.json", root), F_OK) == 0)
    die("%s is a student's tree; init, lint and prove work in the course's repository", root);
  if (source_open(&source, root, &err) != 0) die("%s", err.message);
  return &source;
}

static int command_init(const Command *command) {
  char root[PATH_MAX];
  const char *told;
  Error err;
  if (command->words < 2) die("init: where? `init DIR` makes a student's tree in DIR");
  if (user_path(command->word[1], root, sizeof root, &err) != 0) die("%s", err.message);
  while (strlen(root) > 1 && ends_with(root, "/")) root[strlen(root) - 1] = '\0';
  Source *source = open_source(command);
  if (source->exercises.count == 0) die("%s has no exercises yet", source->root);
  if (init_tree(source, root, command->update, &told, &err) != 0) die("%s", err.message);
  if (command->update) {
    printf("\n  %s is up to date; your progress, your exercises and your helpers are kept.\n", root);
    say_indented(4, told);
  } else {
    printf("\n  %d exercises are waiting in %s:\n\n    cd '%s'\n    ./nn next\n", source->exercises.count, root, root);
  }
  printf("\n");
  if (!command->no_prepare) {
    static Tree tree;
    if (tree_read(&tree, root, &err) != 0) die("%s", err.message);
    prepare_runtime();
    say_indented(
        2,
        "The programs that the checks need are being compiled in the background, at the lowest priority, for some "
        "minutes. `./nn status` shows the progress, `./nn prepare --stop` stops it, `./nn prepare` continues it.");
    printf("\n");
    prepare_in_background(&tree);
  }
  return 0;
}

/* Ends the program unless this is a command, with no more words than it takes: a second exercise is not left out
 * silently. */
static void check_words(const Command *command) {
  static const char *const known[] = {"next",  "prev",    "list",     "status",  "check", "hint", "watch",
                                      "reset", "restore", "solution", "prepare", "init",  "lint", "prove"};
  static const char *const alone[] = {"prev", "list", "status", "prepare", "lint"};
  const int count = sizeof known / sizeof *known;
  int words = 0;
  for (int i = 0; i < count; i++)
    if (strcmp(command->word[0], known[i]) == 0) words = 2;
  for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
    if (strcmp(command->word[0], alone[i]) == 0) words = 1;
  if (words == 0) {
    const char *near = words_near(command->word[0], known, count);
    fprintf(stderr, "%s: error: unknown command \"%s\"%s `%s --help` lists all\n", program_invocation_short_name,
            command->word[0], near[0] != '\0' ? near : ";", command_name());
    exit(2);
  }
  if (command->words <= words) return;
  fprintf(stderr, "%s: error: %s takes %s; \"%s\" is too much\n", program_invocation_short_name, command->word[0],
          words == 1 ? "no name" : "one name", command->word[words]);
  exit(2);
}

static int run(const Command *command) {
  static Tree tree;
  Error err;
  const char *name = command->word[1], *what = command->word[0];
  check_words(command);
  if (strcmp(what, "init") == 0) return command_init(command);
  if (strcmp(what, "lint") == 0) return command_lint(open_source(command));
  if (strcmp(what, "prove") == 0) return command_prove(open_source(command), name, command->quick, command->together);

  if (tree_find(&tree, &err) != 0) die("%s", err.message);
  bool writes = strcmp(what, "next") != 0 && strcmp(what, "prev") != 0 && strcmp(what, "list") != 0 &&
                strcmp(what, "status") != 0;
  if (writes && access(tree_path(&tree, ".learn"), W_OK) != 0)
    die("%s cannot be written to: %s; copy it to a folder of your own and go on there", tree.root, strerror(errno));
  if (strcmp(what, "watch") != 0 && strcmp(what, "prepare") != 0) lock_tree(&tree, false);
  if (tree_write_mine(&tree, &err) != 0) die("%s", err.message); /* as after a kill between progress.json and this */
  if (strcmp(what, "next") == 0) return command_next(&tree, name);
  if (strcmp(what, "prev") == 0) return command_prev(&tree);
  if (strcmp(what, "list") == 0) return command_list(&tree);
  if (strcmp(what, "status") == 0) return command_status(&tree);
  if (strcmp(what, "check") == 0) return command_check(&tree, name);
  if (strcmp(what, "hint") == 0) return command_hint(&tree, chosen(&tree, name));
  if (strcmp(what, "watch") == 0) return command_watch(&tree, name, command->poll);
  if (strcmp(what, "reset") == 0) return command_reset(&tree, name);
  if (strcmp(what, "restore") == 0) return command_restore(&tree, name);
  if (strcmp(what, "prepare") == 0) return command->stop ? prepare_stop(&tree) : prepare_all(&tree);
  return command_solution(&tree, chosen(&tree, name));
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"update", 'u', NULL, 0, "init: bring a tree that is there up to date; the student's lines are kept", 0},
      {"poll", 'p', NULL, 0, "watch: look at the files twice a second instead of asking the system for changes", 0},
      {"stop", 'x', NULL, 0, "prepare: end what runs in the background", 0},
      {"no-prepare", 'n', NULL, 0, "init: compile nothing in the background", 0},
      {"source", 's', "DIR", 0, "init, lint, prove: the course's repository (default: where bazel run was typed)", 0},
      {"together", 't', NULL, 0, "prove: several exercises compiled together, which is faster", 0},
      {"quick", 'q', NULL, 0, "prove: the same, with the first mutant only and the threads in one order", 0},
      OPTION_END};
  static const struct argp own = {rows, parse, "COMMAND [NAME]", about, NULL, NULL, NULL};
  Command command;
  CommonOptions common = options_default(0);
  memset(&command, 0, sizeof command);
  options_parse(&common, &own, &command, argc, argv);
  setvbuf(stdout, NULL, _IOLBF, 0);

  const int status = run(&command);
  if (fflush(stdout) != 0 || ferror(stdout)) die("this cannot be written to stdout: %s", strerror(errno));
  return status;
}
