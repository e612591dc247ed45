/* init.h - `learn init DIR`: a new tree, or an old one brought up to date with the student's lines kept. */
#ifndef LEARN_INIT_H
#define LEARN_INIT_H

#include "learn/tree_cut.h"
#include "learn/tree_lines.h"

static const char init_script[] =
    "#!/bin/sh\n"
    "# The course's command: ./nn next, ./nn check, ./nn hint, ./nn watch ...\n"
    "LEARN_TREE=$(cd \"$(dirname \"$0\")\" && pwd) || exit 1\n"
    "export LEARN_TREE\n"
    "exec \"$LEARN_TREE/.learn/bin/learn\" \"$@\"\n";

/* How clang reads a .cu file with simt's headers, whether CUDA's toolkit is there or not (clangd_cuda.h). */
static const char init_clang[] =
    "clang++ -x cuda --cuda-host-only -nocudainc -nocudalib -Xclang -fcuda-allow-variadic-functions "
    "-Wno-unknown-cuda-version -std=c++17 -I. -isystem simt/include -include .learn/editor.h -c";

/* compile_commands.json, from which an editor's clangd learns how to read the CUDA files, headers too; for it the
 * student's lines are those that are used, passed or not. */
static inline int init_editor(const Source *source, const char *root, Error *err) {
  char place[PATH_MAX];
  Text mine = {0};
  if (realpath(root, place) == NULL) return error_set(err, "%s: %s", root, strerror(errno));
  text_add(&mine,
           "/* Written by learn: CUDA as an editor reads it, with your lines instead of the reference's. */\n"
           "#include \"learn/clangd_cuda.h\"\n#define LEARN_CHECK\n");
  for (int i = 0; i < source->exercises.count; i++)
    text_printf(&mine, "#define LEARN_MINE_%s 1\n", source->exercises.item[i].name);
  int status = text_write_quick(keep_printf("%s/.learn/editor.h", root), mine.bytes, mine.length, err);
  text_free(&mine);
  json_t *entries = json_array();
  for (int i = 0; i < source->files && status == 0; i++) {
    const char *file = source->file[i];
    if (cut_leaves_out(file) || starts_with(file, "simt/")) continue;
    if (!ends_with(file, ".cu") && !ends_with(file, ".cuh")) continue;
    json_array_append_new(entries, json_pack("{s:s, s:s, s:s}", "directory", place, "file", file, "command",
                                             keep_printf("%s %s", init_clang, file)));
  }
  if (status != 0) {
    json_decref(entries);
    return status;
  }
  return json_write(keep_printf("%s/compile_commands.json", root), entries, err);
}

static inline int init_commands(const char *root, Error *err) {
  const char *script = keep_printf("%s/nn", root);
  if (copy_file("/proc/self/exe", keep_printf("%s/.learn/bin/learn", root), err) != 0) return -1;
  if (chmod(keep_printf("%s/.learn/bin/learn", root), 0755) != 0)
    return error_set(err, "%s: %s", root, strerror(errno));
  if (text_write_quick(script, init_script, strlen(init_script), err) != 0) return -1;
  return chmod(script, 0755) == 0 ? 0 : error_set(err, "%s: %s", script, strerror(errno));
}

/* -1 when the folder is no place for a tree. */
static inline int init_look(const Source *source, const char *root, bool update, Error *err) {
  char place[PATH_MAX], course[PATH_MAX];
  struct stat info;
  const char *parent = root;
  while (realpath(parent, place) == NULL) { /* the first folder above that is there */
    char *shorter = keep(parent), *slash = strrchr(shorter, '/');
    if (slash == NULL) {
      parent = ".";
      continue;
    }
    *slash = '\0';
    parent = shorter[0] == '\0' ? "/" : shorter;
  }
  if (realpath(source->root, course) != NULL &&
      (strcmp(place, course) == 0 || starts_with(place, keep_printf("%s/", course))))
    return error_set(err,
                     "%s is inside the course's repository, and would become a part of it; choose a folder "
                     "outside",
                     root);
  bool tree = access(keep_printf("%s/.learn/tree.json", root), F_OK) == 0;
  if (tree && !update)
    return error_set(err,
                     "%s is a student's tree already; `init --update %s` brings it up to date with this version of "
                     "the course, and keeps your lines and your progress",
                     root, root);
  if (!tree && update)
    return error_set(err, "%s is not a student's tree, so there is nothing to update; leave out --update", root);
  if (tree || stat(root, &info) != 0) return 0;
  if (!S_ISDIR(info.st_mode)) return error_set(err, "%s is a file; choose another name for the folder", root);
  DIR *dir = opendir(root);
  int entries = 0;
  bool begun = access(keep_printf("%s/.learn", root), F_OK) == 0; /* an init that was interrupted */
  while (dir != NULL && readdir(dir) != NULL) entries++;
  if (dir != NULL) closedir(dir);
  if (entries > 2 && !begun)
    return error_set(err, "%s is not empty; choose a new folder, so that nothing of yours is overwritten", root);
  return 0;
}

static inline int remove_folder(const char *folder) {
  DIR *dir = opendir(folder);
  struct dirent *entry;
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    const char *path = keep_printf("%s/%s", folder, entry->d_name);
    if (unlink(path) != 0 && errno != ENOENT) remove_folder(path);
  }
  if (dir != NULL) closedir(dir);
  return rmdir(folder);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* An update. Nothing that a student wrote is lost: lines of exercises and helpers go into the new files, whatever else
 * is replaced goes into a backup, and `told` says which file that concerns. */

typedef struct Update {
  Source *source;
  Tree old, fresh;
  const char *root, *folder, *backup; /* backup: relative to the root */
  const char *hashes;                 /* of the old tree's files as they were made; "": it has no list */
  Text told;
} Update;

__attribute__((format(printf, 2, 3))) static inline void update_tell(Update *update, const char *format, ...) {
  char *line = NULL;
  va_list args;
  va_start(args, format);
  if (vasprintf(&line, format, args) < 0) die("out of memory");
  va_end(args);
  text_printf(&update->told, "%s\n", line);
  free(line);
}

/* The old tree's exercises and progress, as far as they can be read: a tree of another version may lack some of it. */
static inline void update_read_old(Update *update) {
  Tree *old = &update->old;
  memset(old, 0, sizeof *old);
  old->root = update->root;
  json_t *object = json_read(tree_path(old, ".learn/exercises.json"), NULL), *item;
  size_t n;
  json_array_foreach(json_object_get(object, "exercises"), n, item) if (n < EXERCISES_MAX)
      exercise_from_json(&old->exercises.item[old->exercises.count++], item);
  json_decref(object);
  update->fresh.root = update->folder;
  update->fresh.exercises = update->source->exercises;
  object = json_read(tree_path(old, ".learn/progress.json"), NULL);
  if (object != NULL) tree_read_progress(&update->fresh, object);
  json_decref(object);
  Text hashes = {0};
  update->hashes = text_read_file(&hashes, tree_path(old, ".learn/files.txt"), NULL) == 0 ? keep_text(&hashes) : "";
}

/* A file of the old tree, as the student left it, into the backup. */
static inline int update_keep(Update *update, const char *file, Error *err) {
  const char *from = keep_printf("%s/%s", update->root, file);
  const char *to = keep_printf("%s/%s/%s", update->root, update->backup, file);
  return access(from, F_OK) == 0 && access(to, F_OK) != 0 ? copy_file(from, to, err) : 0;
}

/* Puts lines into the place of this name in a new file; false: it has none. */
static inline bool update_put(const Update *update, const char *file, const char *name, const char *lines) {
  Text text = {0}, out = {0};
  const char *path = keep_printf("%s/%s", update->folder, file);
  bool put = text_read_file(&text, path, NULL) == 0 && regions_paste(&out, text.bytes, text.length, name, 0, lines) &&
             text_write_file(path, out.bytes, out.length, NULL) == 0;
  text_free(&text);
  text_free(&out);
  return put;
}

/* One exercise of the old tree. */
static inline int update_exercise(Update *update, const Exercise *had, Error *err) {
  const Exercise *now = exercises_named(&update->fresh.exercises, had->name);
  const char *text, *lines = tree_lines(&update->old, had);
  Region region;
  const bool damaged = access(tree_path(&update->old, had->file), F_OK) == 0 &&
                       tree_region(&update->old, had, &text, &region, NULL) != 0;
  if (damaged) {
    update_tell(
        update, "%s: the place of %s is damaged; %s. The file as you had it: %s/%s", had->file, had->name,
        lines == NULL ? "only the backup has what you wrote there" : "your lines of its last check are in the new file",
        update->backup, had->file);
    if (update_keep(update, had->file, err) != 0) return -1;
  }
  if (lines == NULL && now != NULL) update->fresh.progress[now - update->fresh.exercises.item].passed = false;
  if (lines == NULL || strcmp(had->stub, lines) == 0) return 0; /* untouched: the new stub is better */
  if (now != NULL && update_put(update, now->file, now->name, lines)) return 0;
  update_tell(update, "%s is no longer an exercise; your lines: %s/%s", had->name, update->backup, had->file);
  return update_keep(update, had->file, err);
}

/* One file with exercises of the old tree: its helpers, and what was written where it does not belong. */
static inline int update_file(Update *update, const Exercise *had, Error *err) {
  const Exercise *now = exercises_named(&update->fresh.exercises, had->name);
  const char *helpers = tree_helpers(&update->old, had->file), *line = "";
  Text text = {0};
  if (text_read_file(&text, tree_path(&update->old, had->file), NULL) != 0) return 0;
  const char *refused = text_refused(text.bytes, text.length);
  const int number = refused != NULL ? 0 : tree_outside(&update->old, had->file, text.bytes, &line);
  text_free(&text);
  if (code_only(helpers)[strspn(code_only(helpers), " \n\t\r")] != '\0' &&
      (now == NULL || !update_put(update, now->file, "helpers", helpers))) {
    update_tell(update, "%s: your helpers have no place in the new course: %s/%s", had->file, update->backup,
                had->file);
    if (update_keep(update, had->file, err) != 0) return -1;
  }
  if (refused != NULL) update_tell(update, "%s: %s; here: %s/%s", had->file, refused, update->backup, had->file);
  if (number == 0) return refused != NULL ? update_keep(update, had->file, err) : 0;
  update_tell(update, "%s:%d, \"%.60s\": what you changed outside exercises and helpers is only in %s/%s", had->file,
              number, line, update->backup, had->file);
  return update_keep(update, had->file, err);
}

/* Is a folder of the path, below the root, a link? Then the file lies elsewhere. */
static inline bool is_behind_link(const char *root, const char *file) {
  struct stat info;
  for (const char *slash = strchr(file, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
    if (lstat(keep_printf("%s/%.*s", root, (int)(slash - file), file), &info) == 0 && S_ISLNK(info.st_mode))
      return true;
  return false;
}

/* Removes files of the old course from .learn/`folder`: those that the new course, in `files`, does not have. */
static inline void update_remove_old(const Update *update, const Source *files, const char *folder) {
  Source old;
  memset(&old, 0, sizeof old);
  old.root = update->root;
  old.file = (const char **)xcalloc(SOURCE_FILES_MAX, sizeof *old.file);
  source_walk(&old, keep_printf(".learn/%s", folder));
  for (int i = 0; i < old.files; i++) {
    bool there = false;
    for (int j = 0; j < files->files && !there; j++) there = strcmp(files->file[j], old.file[i]) == 0;
    if (!there && !is_behind_link(update->root, old.file[i])) unlink(keep_printf("%s/%s", update->root, old.file[i]));
  }
  free(old.file);
}

/* Moves what differs into the tree, and what the student had changed there into the backup. */
static inline int update_install(Update *update, Error *err) {
  Source files;
  memset(&files, 0, sizeof files);
  files.root = update->folder;
  files.file = (const char **)xcalloc(SOURCE_FILES_MAX, sizeof *files.file);
  source_walk(&files, "");
  source_walk(&files, ".learn");
  update_remove_old(update, &files, "check");
  update_remove_old(update, &files, "pristine");
  update_remove_old(update, &files, "reference");
  int status = 0;
  for (int i = 0; i < files.files && status == 0; i++) {
    const char *file = files.file[i];
    const char *from = keep_printf("%s/%s", update->folder, file), *to = keep_printf("%s/%s", update->root, file);
    Text new_text = {0}, old_text = {0};
    const bool had = text_read_file(&old_text, to, NULL) == 0;
    const bool same = had && text_read_file(&new_text, from, NULL) == 0 && new_text.length == old_text.length &&
                      memcmp(new_text.bytes, old_text.bytes, old_text.length) == 0;
    text_free(&new_text);
    text_free(&old_text);
    if (same) continue;
    const bool ours = starts_with(file, ".learn/");
    const bool lines = access(keep_printf("%s/.learn/pristine/%s", update->folder, file), F_OK) == 0;
    if (had && !ours) status = update_keep(update, file, err);
    if (had && !ours && !lines && update->hashes[0] != '\0' && !file_is_original(update->root, update->hashes, file))
      update_tell(update, "%s: replaced by the course's file; yours, with your changes: %s/%s", file, update->backup,
                  file);
    if (status == 0) status = make_parent(to, err);
    if (status == 0 && rename(from, to) != 0) status = error_set(err, "cannot write %s: %s", to, strerror(errno));
  }
  free(files.file);
  return status;
}

/* Files of the course that the new one does not have go into the backup: BUILD files of folders that are gone would be
 * built. */
static inline int update_take_away(Update *update, Error *err) {
  for (const char *line = update->hashes; *line != '\0';) {
    const size_t length = strcspn(line, "\n");
    const char *file = length > 17 ? keep_bytes(line + 17, length - 17) : "";
    const char *path = keep_printf("%s/%s", update->root, file);
    bool there = file[0] == '\0' || access(path, F_OK) != 0;
    for (int i = 0; i < update->source->files && !there; i++)
      there = !cut_leaves_out(update->source->file[i]) && strcmp(update->source->file[i], file) == 0;
    if (!there && (update_keep(update, file, err) != 0 || unlink(path) != 0))
      return error_set(err, "cannot remove %s: %s", path, strerror(errno));
    line += length + (line[length] == '\n');
  }
  return 0;
}

/* `told`: what a student should know, line by line. */
static inline int init_update(Source *source, const char *root, const char **told, Error *err) {
  static Update update;
  memset(&update, 0, sizeof update);
  update.source = source;
  update.root = keep(root);
  update.folder = keep_printf("%s/.learn/new", root);
  update.backup = keep_printf(".learn/backup/update-%s", time_text("%Y%m%d-%H%M%S"));
  update_read_old(&update);
  remove_folder(update.folder);
  if (make_directories(update.folder, err) != 0 || cut_tree(source, update.folder, err) != 0) return -1;
  const Exercises *had = &update.old.exercises;
  for (int i = 0; i < had->count; i++) {
    int first = 0;
    while (strcmp(had->item[first].file, had->item[i].file) != 0) first++;
    if (first == i && update_file(&update, &had->item[i], err) != 0) return -1;
    if (update_exercise(&update, &had->item[i], err) != 0) return -1;
  }
  remove_folder(keep_printf("%s/.learn/backup", update.folder));
  if (tree_save(&update.fresh, err) != 0 || update_install(&update, err) != 0 || update_take_away(&update, err) != 0)
    return -1;
  remove_folder(update.folder);
  if (access(keep_printf("%s/%s", root, update.backup), F_OK) == 0)
    update_tell(&update, "All files that were replaced, as they were: %s", update.backup);
  *told = keep_text(&update.told);
  return 0;
}

/* Makes or updates the tree. `told` is what an update has to say, line by line. */
static inline int init_tree(Source *source, const char *root, bool update, const char **told, Error *err) {
  static Tree tree;
  *told = "";
  if (init_look(source, root, update, err) != 0) return -1;
  if (make_directories(root, err) != 0) return error_advise(err, "choose another folder");
  if (update) {
    if (init_update(source, root, told, err) != 0) return -1;
  } else {
    if (make_directories(keep_printf("%s/.learn", root), err) != 0 || cut_tree(source, root, err) != 0) return -1;
    tree.root = root;
    tree.exercises = source->exercises;
    if (tree_save(&tree, err) != 0) return -1;
  }
  if (init_commands(root, err) != 0 || init_editor(source, root, err) != 0) return -1;
  return cut_finish(source, root, err);
}

#endif /* LEARN_INIT_H */
