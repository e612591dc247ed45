/* list.h - the exercises on a terminal, to move in: jump to one, show some, begin one anew.
 *
 *     const ListChoice choice = list_choose(&tree, tree.current);
 *     if (choice.key == LIST_JUMP) tree.current = choice.index;
 */
#ifndef LEARN_LIST_H
#define LEARN_LIST_H

#include "learn/view.h"

#include <poll.h>
#include <termios.h>

enum { LIST_QUIT, LIST_JUMP, LIST_RESET };

typedef struct ListChoice {
  int key, index;
} ListChoice;

typedef enum ListShown { LIST_ALL, LIST_OPEN, LIST_DONE, LIST_SHOWN } ListShown;
static const char *const list_shown[] = {"all", "open", "done"};

typedef struct List {
  const Tree *tree;
  ListShown shown;
  char word[40]; /* what names and titles must contain */
  int row[EXERCISES_MAX], rows, at, first;
} List;

static inline bool list_can_ask(void) { return view_is_terminal() && isatty(STDIN_FILENO); }

static inline void say_list_row(const Tree *tree, int index, const char *before) {
  const Exercise *exercise = &tree->exercises.item[index];
  const char *mark = tree->progress[index].passed ? styled(GREEN, "done")
                     : index == tree->current     ? styled(YELLOW, "now ")
                                                  : "    ";
  printf("%s%s  %2d  %-25s %s\n", before, mark, index + 1, exercise->name, exercise->title);
}

/* Which exercises are shown; the chosen one stays chosen where it is still there. */
static inline void list_select(List *list) {
  const Exercises *exercises = &list->tree->exercises;
  const int chosen = list->rows > 0 ? list->row[list->at] : list->tree->current;
  list->rows = list->at = 0;
  for (int i = 0; i < exercises->count; i++) {
    const bool passed = list->tree->progress[i].passed;
    if ((list->shown == LIST_OPEN && passed) || (list->shown == LIST_DONE && !passed)) continue;
    if (strcasestr(exercises->item[i].name, list->word) == NULL &&
        strcasestr(exercises->item[i].title, list->word) == NULL)
      continue;
    if (i <= chosen) list->at = list->rows;
    list->row[list->rows++] = i;
  }
}

static inline void list_draw(List *list, const char *ask) {
  struct winsize size;
  const int height = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 8 ? size.ws_row : 24;
  const int room = height - 6;
  if (list->at < list->first) list->first = list->at;
  if (list->at >= list->first + room) list->first = list->at - room + 1;
  if (list->first > 0 && list->first + room > list->rows) list->first = list->rows > room ? list->rows - room : 0;
  printf("\033[2J\033[H\n");
  for (int i = list->first; i < list->rows && i < list->first + room; i++)
    say_list_row(list->tree, list->row[i], i == list->at ? styled(CYAN, "> ") : "  ");
  if (list->rows == 0) printf("    none of the exercises\n");
  printf("\n  %d of %d passed; shown: %s%s%s\n  %s", tree_passed(list->tree), list->tree->exercises.count,
         list_shown[list->shown], list->word[0] != '\0' ? ", with " : "", list->word,
         ask != NULL
             ? ask
             : styled(DIM, "up, down: move   Enter: go there   f: all, open, done   /: search   r: reset   q: back"));
  fflush(stdout);
}

enum { LIST_CTRL_C = 3, LIST_END = 4, LIST_ESCAPE = 27, LIST_UP = 256, LIST_DOWN, LIST_PAGE_UP, LIST_PAGE_DOWN };

/* A key, or one of the above; LIST_END when there is nobody left. */
static inline int list_key(void) {
  char key, more[3] = "";
  if (read(STDIN_FILENO, &key, 1) != 1) return LIST_END;
  if (key != '\033') return (unsigned char)key;
  for (int i = 0; i < 3; i++) { /* ESC [ A, or ESC [ 5 ~ */
    struct pollfd ready = {STDIN_FILENO, POLLIN, 0};
    if (poll(&ready, 1, 50) <= 0 || read(STDIN_FILENO, &more[i], 1) != 1) break;
    if (isalpha((unsigned char)more[i]) || more[i] == '~') break;
  }
  if (more[0] != '[' && more[0] != 'O') return LIST_ESCAPE;
  return more[1] == 'A' ? LIST_UP : more[1] == 'B' ? LIST_DOWN : more[1] == '5' ? LIST_PAGE_UP : LIST_PAGE_DOWN;
}

/* The word to search for, as it is typed: Enter keeps it, Escape drops it. */
static inline void list_search(List *list) {
  list->word[0] = '\0';
  for (;;) {
    const size_t length = strlen(list->word);
    list_select(list);
    list_draw(list, keep_printf("search: %s_", list->word));
    const int key = list_key();
    if (key == '\n' || key == '\r') return;
    if ((key == 127 || key == 8) && length > 0) list->word[length - 1] = '\0';
    if (key == LIST_ESCAPE || key == LIST_CTRL_C || key == LIST_END) break;
    if (key >= ' ' && key < 127 && length + 1 < sizeof list->word) {
      list->word[length] = (char)key;
      list->word[length + 1] = '\0';
    }
  }
  list->word[0] = '\0';
  list_select(list);
}

static inline ListChoice list_keys(List *list) {
  list_select(list);
  for (;;) {
    list_draw(list, NULL);
    const int key = list_key(), page = 10;
    if (key == LIST_UP || key == 'k') list->at--;
    if (key == LIST_DOWN || key == 'j') list->at++;
    if (key == LIST_PAGE_UP) list->at -= page;
    if (key == LIST_PAGE_DOWN) list->at += page;
    if (list->at >= list->rows) list->at = list->rows - 1;
    if (list->at < 0) list->at = 0;
    if (key == 'q' || key == 'l' || key == LIST_ESCAPE || key == LIST_CTRL_C || key == LIST_END)
      return (ListChoice){LIST_QUIT, 0};
    if (key == '/') list_search(list);
    if (key == 'f') {
      list->shown = (ListShown)((list->shown + 1) % LIST_SHOWN);
      list_select(list);
    }
    if (list->rows == 0) continue;
    const int index = list->row[list->at];
    if (key == '\n' || key == '\r') return (ListChoice){LIST_JUMP, index};
    if (key != 'r') continue;
    list_draw(list, keep_printf("reset %s to what you started from? A copy of your lines is kept. y/n",
                                list->tree->exercises.item[index].name));
    if (list_key() == 'y') return (ListChoice){LIST_RESET, index};
  }
}

/* Takes the terminal until something is chosen, and leaves it as it was. */
static inline ListChoice list_choose(const Tree *tree) {
  static List list;
  struct termios before, raw;
  memset(&list, 0, sizeof list);
  list.tree = tree;
  const bool set = tcgetattr(STDIN_FILENO, &before) == 0;
  raw = before;
  raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG); /* Ctrl-C is a key: nothing stays behind on the screen */
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (set) tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  printf("\033[?1049h"); /* the other screen */
  const ListChoice choice = list_keys(&list);
  printf("\033[?1049l");
  fflush(stdout);
  if (set) tcsetattr(STDIN_FILENO, TCSANOW, &before);
  return choice;
}

#endif /* LEARN_LIST_H */
