/* view.h - what a student sees. Colours and links only on a terminal, and never with NO_COLOR. */
#ifndef LEARN_VIEW_H
#define LEARN_VIEW_H

#include "learn/verdict.h"

#include <sys/ioctl.h>

typedef enum Style { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, CYAN } Style;

static inline bool view_is_terminal(void) {
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
  return isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0') &&
         (term == NULL || strcmp(term, "dumb") != 0);
}

static inline const char *styled(Style style, const char *text) {
  static const char *const codes[] = {"0", "1", "2", "31", "32", "33", "36"};
  return view_is_terminal() && style != PLAIN ? keep_printf("\033[%sm%s\033[0m", codes[style], text) : text;
}

static inline int view_width(void) {
  struct winsize size;
  int columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
  return columns < 40 ? 40 : columns > 110 ? 110 : columns;
}

/* Prints with an indent; long lines are broken between words, those that begin with a space (code, tables) are not. */
static inline void say_indented(int indent, const char *text) {
  int room = view_width() - indent - 1;
  for (const char *line = text; *line != '\0';) {
    size_t length = strcspn(line, "\n");
    const char *next = line + length + (line[length] == '\n');
    bool whole = line[0] == ' ';
    if (length == 0) putchar('\n');
    while (length > 0) {
      size_t take = length;
      if (!whole && (int)length > room) {
        take = (size_t)room;
        while (take > 0 && line[take] != ' ') take--;
        if (take == 0) take = strcspn(line, " \n");
      }
      printf("%*s%.*s\n", indent, "", (int)take, line);
      line += take;
      length -= take;
      while (length > 0 && *line == ' ' && !whole) {
        line++;
        length--;
      }
    }
    line = next;
  }
}

/* How the student calls us. */
static inline const char *command_name(void) {
  return getenv("BUILD_WORKSPACE_DIRECTORY") != NULL ? "bazel run //learn --" : "./nn";
}

/* FILE:LINE, relative where that can be clicked, and on a terminal a link. */
static inline const char *view_place(const Tree *tree, const char *file, int line) {
  char here[PATH_MAX];
  const char *absolute = tree_path(tree, file), *typed = getenv("BUILD_WORKING_DIRECTORY");
  if (typed != NULL || getcwd(here, sizeof here) != NULL) {
    const char *folder = typed != NULL ? typed : here;
    const char *shown = strcmp(folder, tree->root) == 0 ? file : absolute;
    const char *text = line > 0 ? keep_printf("%s:%d", shown, line) : shown;
    return view_is_terminal() ? keep_printf("\033]8;;file://%s\033\\%s\033]8;;\033\\", absolute, styled(CYAN, text))
                              : text;
  }
  return absolute;
}

static inline void say_progress(const Tree *tree) {
  int passed = tree_passed(tree), count = tree->exercises.count, width = 40;
  printf("\n  [");
  for (int i = 0; i < width; i++) putchar(i < passed * width / count ? '#' : '-');
  printf("] %d of %d\n", passed, count);
}

/* What to do. */
static inline void say_exercise(const Tree *tree, int index) {
  const Exercise *exercise = &tree->exercises.item[index];
  const char *text;
  Region region;
  Error err;
  printf("\n  %s\n\n", styled(BOLD, keep_printf("Exercise %d: %s", index + 1, exercise->title)));
  say_indented(4, keep_printf("%s: %s", exercise->name, exercise->task));
  if (exercise->broken != NULL)
    say_indented(4, "This exercise ships with a fault: find and fix it. The inspector's findings help.");
  if (tree_region(tree, exercise, &text, &region, &err) == 0)
    printf("    %s\n", view_place(tree, exercise->file, region.body_line));
  else
    say_indented(4, styled(RED, err.message));
  for (int i = 0; i < exercise->limits; i++) {
    const Limit *limit = &exercise->limit[i];
    say_indented(4, keep_printf("Asked for: %s%s%s <= %g. %s", limit->count, limit->per[0] == '\0' ? "" : " / ",
                                limit->per, limit->at_most, limit->why));
  }
}

static inline void say_ratio(const char *name, const Verdict *verdict, const char *count, const char *per) {
  double yours = measured(&verdict->yours, count) / measured(&verdict->yours, per);
  double reference = measured(&verdict->reference, count) / measured(&verdict->reference, per);
  if (!isfinite(yours) && !isfinite(reference)) return; /* neither has a request of this kind */
  printf("    %-36s %12s %12s\n", name, isfinite(yours) ? keep_printf("%.2f", yours) : "none",
         isfinite(reference) ? keep_printf("%.2f", reference) : "none");
}

static inline void say_count(const char *name, const Verdict *verdict, const char *one, const char *other) {
  double yours = measured(&verdict->yours, one) + measured(&verdict->yours, other);
  double reference = measured(&verdict->reference, one) + measured(&verdict->reference, other);
  if (yours > 0 || reference > 0) printf("    %-36s %12.0f %12.0f\n", name, yours, reference);
}

/* The student's version beside the reference. */
static inline void say_measured(const Verdict *verdict) {
  printf("\n    %-36s %12s %12s\n", "", "yours", "reference");
  say_ratio("global loads: sectors per request", verdict, "global_load_sectors", "global_load_requests");
  say_ratio("global stores: sectors per request", verdict, "global_store_sectors", "global_store_requests");
  say_count("sectors of global memory", verdict, "global_load_sectors", "global_store_sectors");
  say_count("wavefronts of shared memory", verdict, "shared_load_wavefronts", "shared_store_wavefronts");
  say_count("bank conflicts", verdict, "shared_load_conflicts", "shared_store_conflicts");
  if (verdict->yours.seconds > 0 && verdict->reference.seconds > 0)
    printf("    %-36s %12.1f %12.1f\n", "time on the GPU, microseconds", 1e6 * verdict->yours.seconds,
           1e6 * verdict->reference.seconds);
}

static inline void say_verdict(const Tree *tree, int index, const Verdict *verdict, double seconds) {
  const Exercise *exercise = &tree->exercises.item[index];
  const char *text;
  Region region;
  const char *place = tree_region(tree, exercise, &text, &region, NULL) == 0
                          ? view_place(tree, exercise->file, region.body_line)
                          : exercise->file;
  if (verdict->kind == VERDICT_RIGHT) {
    printf("\n  %s  %s\n\n", styled(GREEN, "passed"), styled(BOLD, exercise->name));
    say_indented(4, keep_printf("Right on %d shapes, with the threads in both orders: error %.3g, tolerance %.3g. No "
                                "races, no accesses out of bounds.",
                                verdict->shapes, verdict->error, verdict->tolerance));
    say_measured(verdict);
    if (exercise->next[0] != '\0') {
      printf("\n");
      say_indented(4, keep_printf("To look at: %s", exercise->next));
    }
    say_indented(4, keep_printf("Everything uses your version now. Next: %s next", command_name()));
  } else {
    printf("\n  %s  %s  %s\n\n", styled(verdict->kind == VERDICT_TODO ? YELLOW : RED, verdict_names[verdict->kind]),
           styled(BOLD, exercise->name), place);
    say_indented(4, verdict->message);
    if (verdict->kind == VERDICT_LIMIT) say_measured(verdict);
    if (tree->progress[index].hints < exercise->hints) {
      printf("\n");
      say_indented(4, keep_printf("A hint: %s hint", command_name()));
    }
  }
  printf("\n    %s\n", styled(DIM, keep_printf("checked in %.1f s", seconds)));
}

/* What the student changed where it has no effect. */
static inline void say_outside(const VerdictJob *job, const Written *written) {
  const Tree *tree = job->tree;
  const Exercise *exercise = job->exercise;
  const char *line;
  const int number = tree_outside(tree, exercise->file, written->text, &line);
  if (number > 0) {
    printf("\n  %s  %s\n\n", styled(YELLOW, "no effect"), view_place(tree, exercise->file, number));
    say_indented(
        4, keep_printf("\"%.80s\" differs from the course's file, outside your exercises and helpers. A check "
                       "and the grader use the course's line. Your own functions and constants go between "
                       "\"%s\" and \"%s\" in this file. `%s restore %s` restores the course's lines, and keeps yours.",
                       line, helpers_open, helpers_close, command_name(), exercise->name));
  }
  const char *edited = build_edited(job);
  if (edited == NULL) return;
  printf("\n  %s  %s\n\n", styled(YELLOW, "edited"), view_place(tree, edited, 0));
  say_indented(
      4,
      "This file of the course was changed. Your check uses the changed file, the grader does not. `bazel run //learn "
      "-- init --update DIR` in the course's repository restores the course's file, and keeps a copy of "
      "yours.");
}

#endif /* LEARN_VIEW_H */
