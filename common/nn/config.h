/* config.h - the options of a program from a JSON file, and back into one.
 *
 *     {"network": "lenet", "lr": 0.02, "batch_size": 32, "nesterov": true}
 *
 * A key is the long name of an option, with - or _ between its words. A value is a string or a number, and for an
 * option without argument true or false. The keys are those of the program's argp tables, so an option that is added
 * there can be given here. What a value may be is said by the option's own parser: the file becomes arguments in front
 * of those that were typed,
 *
 *     Config config;
 *     config_open(&config, &all, argc, argv);         // finds --config among the arguments; ends the program in error
 *     config_arguments(&config, &argc, &argv);
 *     argp_parse(&all, argc, argv, 0, NULL, &input);  // calls config_at() for the option CONFIG_LINE
 *
 * and an option that was typed replaces the one of the file. In front of each argument of the file stands a hidden one
 * with the number of its line. While argp works on the file its messages are kept, and come out with the file's name
 * and the line in front. Relative paths in the file are relative to where the command was typed.
 *
 * config_set() and config_write() make such a file of a run's settings.
 */
#ifndef COMMON_NN_CONFIG_H
#define COMMON_NN_CONFIG_H

#include "common/error.h"

#include <argp.h>
#include <getopt.h>
#include <jansson.h>
#include <sys/stat.h>

#include "common/atomic_file.h"
#include "common/nearest.h"
#include "common/runfiles.h"

enum { CONFIG_ROWS = 160, CONFIG_BYTES = 1 << 20 };
#define CONFIG_LINE "\001" /* name of the hidden option: nobody types it */
#define CONFIG_END "end"   /* its value behind options that are only to be looked at */

/* An option of the program. */
typedef struct ConfigRow {
  const char *name, *arg; /* arg NULL: it takes none */
  int key, flags, same;   /* same: the row of which this is another name; itself, where it is none */
  int typed, line;        /* on the command line; in the file, 0: not there */
  int replaced;           /* it was typed, and is something else than in the file */
  char *value;            /* "" where it has none; NULL: not given */
} ConfigRow;

typedef struct Config {
  char path[PATH_MAX]; /* of --config as typed; "": there is none */
  ConfigRow rows[CONFIG_ROWS];
  int count;
  int argc, line; /* line: of the argument that argp works on, 0: it is none of the file */
  int made;       /* arguments of the file, behind the program's name */
  char **argv;
  FILE *said; /* what argp says meanwhile, in text */
  char *text;
  size_t size;
} Config;

/* ------------------------------------------------------------------------------------------- the program's options */

static inline int config_is_key(const ConfigRow *row) {
  return strcmp(row->name, "config") != 0 && (!(row->flags & OPTION_HIDDEN) || row->flags & OPTION_ALIAS);
}

/* All rows of a parser and of its children. */
static inline void config_collect(Config *config, const struct argp *argp) {
  int same = 0;
  for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc || o->group); o++) {
    if (o->name == NULL || o->flags & OPTION_DOC) continue;
    if (config->count == CONFIG_ROWS) die("a program has more than %d options; raise CONFIG_ROWS", CONFIG_ROWS);
    if (!(o->flags & OPTION_ALIAS)) same = config->count;
    const ConfigRow row = {
        o->name, o->flags & OPTION_ALIAS ? config->rows[same].arg : o->arg, o->key, o->flags, same, 0, 0, 0, NULL};
    config->rows[config->count++] = row;
  }
  for (const struct argp_child *child = argp->children; child && child->argp; child++)
    config_collect(config, child->argp);
}

/* The row of a name, in which _ is as good as -; -1: there is none. */
static inline int config_find(const Config *config, const char *name) {
  for (int i = 0; i < config->count; i++) {
    const char *a = config->rows[i].name, *b = name;
    while (*a && (*a == *b || (*a == '-' && *b == '_'))) a++, b++;
    if (*a == '\0' && *b == '\0') return config->rows[i].same;
  }
  return -1;
}

/* Whether an option takes whole numbers: its argument is called N. */
static inline int config_is_whole(const ConfigRow *row) { return row->arg && strcmp(row->arg, "N") == 0; }

/* NULL: not given, or there is no such option. */
static inline const char *config_value(const Config *config, const char *name) {
  const int i = config_find(config, name);
  return i < 0 ? NULL : config->rows[i].value;
}

/* Whether the file says it, and nobody typed it. */
static inline int config_is_from_file(const Config *config, const char *name) {
  const int i = config ? config_find(config, name) : -1;
  return i >= 0 && config->rows[i].line && !config->rows[i].typed && config->rows[i].value;
}

/* The value of an option; "" for one without argument, NULL takes it back. Of an unknown name nothing happens. */
static inline void config_set(Config *config, const char *name, const char *value) {
  const int i = config_find(config, name);
  if (i < 0) return;
  char *copy = value ? strdup(value) : NULL;
  free(config->rows[i].value);
  config->rows[i].value = copy;
}

/* Notes which options were typed, as argp will understand them: with abbreviations and one-letter names. */
static inline void config_scan(Config *config, int argc, char **argv) {
  struct option longs[CONFIG_ROWS + 1];
  char shorts[3 * CONFIG_ROWS + 1] = "", **copy = (char **)xmalloc((size_t)(argc + 1) * sizeof *copy);
  int key, index = 0;
  memset(longs, 0, sizeof longs);
  memcpy(copy, argv, (size_t)(argc + 1) * sizeof *copy);
  for (int i = 0; i < config->count; i++) {
    const ConfigRow *row = &config->rows[i];
    longs[i].name = row->name;
    longs[i].has_arg = row->arg == NULL                   ? no_argument
                       : row->flags & OPTION_ARG_OPTIONAL ? optional_argument
                                                          : required_argument;
    if (row->key > ' ' && row->key < 127)
      snprintf(shorts + strlen(shorts), sizeof shorts - strlen(shorts), "%c%s", row->key,
               row->arg == NULL                   ? ""
               : row->flags & OPTION_ARG_OPTIONAL ? "::"
                                                  : ":");
  }
  opterr = 0; /* argp will say what is wrong */
  optind = 0;
  while ((key = getopt_long(argc, copy, shorts, longs, &index)) != -1) {
    int i = key == 0 ? index : 0;
    while (key != 0 && i < config->count && config->rows[i].key != key) i++;
    if (key == '?' || i == config->count) continue;
    ConfigRow *row = &config->rows[config->rows[i].same];
    row->typed = 1;
    config_set(config, row->name, optarg ? optarg : "");
  }
  opterr = optind = 1;
  free(copy);
}

/* -------------------------------------------------------------------------------------------------------- the file */

/* The line of the n-th key of an object whose text is right. */
static inline int config_line_of(const char *text, int n) {
  int line = 1, depth = 0, key = 0; /* key: a string that begins now is one */
  for (const char *c = text; *c; c++) {
    if (*c == '\n') line++;
    if (*c == '{' || *c == '[') depth++;
    if (*c == '}' || *c == ']') depth--;
    if (depth == 1 && (*c == '{' || *c == ',')) key = 1;
    if (*c == '"') {
      if (key && n-- == 0) return line;
      key = 0;
      for (c++; *c && *c != '"'; c++) c += *c == '\\' && c[1];
      if (*c == '\0') break;
    }
  }
  return line;
}

/* What a pipe or a terminal has said. It says it once, and //phase4_training:train looks twice. Weak: all files of a
 * program share it. */
typedef struct ConfigPipe {
  char path[PATH_MAX]; /* "": none has been read */
  char *text;          /* NULL: `why` says what was wrong */
  size_t size;
  Error why;
} ConfigPipe;

__attribute__((weak)) ConfigPipe config_pipe;

/* The whole text of an open file with a 0 behind it; NULL with a sentence. */
static inline char *config_read_file(FILE *file, const char *path, const char *example, size_t *size, Error *err) {
  char *text = (char *)xcalloc(CONFIG_BYTES + 2, 1);
  *size = fread(text, 1, CONFIG_BYTES + 1, file);
  int status = 0;
  if (ferror(file)) status = error_set(err, "--config=%s: it cannot be read: %s", path, strerror(errno));
  if (status == 0 && *size > CONFIG_BYTES)
    status = error_set(err, "--config=%s: it has more than %d bytes; %s", path, (int)CONFIG_BYTES, example);
  if (status == 0 && strspn(text, " \t\r\n") == *size)
    status = error_set(err, "--config=%s: it is empty; %s", path, example);
  if (status == 0) return text;
  free(text);
  return NULL;
}

/* A copy of what the pipe has said; NULL with its sentence. */
static inline char *config_pipe_text(size_t *size, Error *err) {
  *size = config_pipe.size;
  if (config_pipe.text == NULL) {
    if (err) *err = config_pipe.why;
    return NULL;
  }
  char *copy = (char *)xcalloc(*size + 1, 1);
  memcpy(copy, config_pipe.text, *size);
  return copy;
}

/* The same of a path. A pipe without a writer is waited for, as by other programs; Ctrl-C ends that. */
static inline char *config_read_text(const char *path, size_t *size, Error *err) {
  struct stat info;
  const char *example = "a JSON file of options is expected, such as {\"lr\": 0.01, \"epochs\": 3}";
  if (config_pipe.path[0] && strcmp(config_pipe.path, path) == 0) return config_pipe_text(size, err);
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    error_set(err, "--config=%s: it cannot be opened: %s; %s", path, strerror(errno), example);
    return NULL;
  }
  const int known = fstat(fileno(file), &info) == 0;
  char *text = NULL;
  if (known && S_ISDIR(info.st_mode))
    error_set(err, "--config=%s: it is a folder; %s", path, example);
  else if (known && !S_ISREG(info.st_mode) && strlen(path) < sizeof config_pipe.path) {
    free(config_pipe.text);
    config_pipe.text = config_read_file(file, path, example, &config_pipe.size, &config_pipe.why);
    snprintf(config_pipe.path, sizeof config_pipe.path, "%s", path);
    text = config_pipe_text(size, err);
  } else {
    text = config_read_file(file, path, example, size, err);
  }
  fclose(file);
  return text;
}

/* The object in the text; NULL with a sentence. */
static inline json_t *config_parse(const char *path, const char *text, size_t size, Error *err) {
  json_error_t where;
  json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
  if (object == NULL) {
    error_set(err, "--config=%s: line %d, column %d is not JSON: %s; an object is expected, such as {\"lr\": 0.01}",
              path, where.line, where.column, where.text);
    if (strncmp(where.text, "duplicate", 9) == 0)
      error_set(err, "--config=%s: line %d, column %d: %s; give each option once", path, where.line, where.column,
                where.text);
    return NULL;
  }
  if (json_is_object(object)) return object;
  error_set(err, "--config=%s: it holds %s; an object is expected, such as {\"lr\": 0.01}", path,
            json_is_array(object) ? "an array" : "a single value");
  json_decref(object);
  return NULL;
}

/* The shortest text that gives the same number. */
static inline const char *config_number(double value, char *text, size_t size) {
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, size, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  return text;
}

/* The text of a value as an option has it; NULL: false, or a value that the option cannot have. */
static inline const char *config_text(const ConfigRow *row, const json_t *value, char *number, size_t size) {
  const int optional = row->arg == NULL || row->flags & OPTION_ARG_OPTIONAL;
  if (json_is_true(value)) return optional ? "" : NULL;
  if (row->arg == NULL) return NULL;
  if (json_is_string(value)) return json_string_value(value);
  if (json_is_real(value)) return config_number(json_real_value(value), number, size);
  if (!json_is_integer(value)) return NULL;
  snprintf(number, size, "%lld", (long long)json_integer_value(value));
  return number;
}

/* The name that was meant; NULL: none is near. */
static inline const char *config_nearest(const Config *config, const char *key) {
  const char *names[CONFIG_ROWS];
  char typed[NEAREST_MAX_NAME + 1];
  size_t count = 0;
  for (int i = 0; i < config->count; i++)
    if (config_is_key(&config->rows[i])) names[count++] = config->rows[i].name;
  snprintf(typed, sizeof typed, "%s", key);
  for (char *c = typed; *c; c++)
    if (*c == '_') *c = '-';
  return nearest_name(typed, names, count);
}

/* One key of the file becomes the value of a row that was not typed. */
static inline int config_take(Config *config, const char *key, const json_t *value, int line, Error *err) {
  char number[64];
  const int i = config_find(config, key);
  ConfigRow *row = &config->rows[i < 0 ? 0 : i];
  if (i < 0 || !config_is_key(row)) {
    const char *nearest = config_nearest(config, key);
    error_set(err, "%s, line %d: \"%.60s\" is %s", config->path, line, key,
              i < 0 ? "not an option of this program" : "not a key of a file");
    return nearest ? error_advise(err, "do you mean \"%s\"?", nearest) : error_advise(err, "--help lists them");
  }
  if (row->line)
    return error_set(err, "%s, line %d: \"%s\" is in line %d, too; give it once", config->path, line, key, row->line);
  const char *text = config_text(row, value, number, sizeof number);
  if (text == NULL && !(json_is_false(value) && (row->arg == NULL || row->flags & OPTION_ARG_OPTIONAL))) {
    char *seen = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    error_set(err, "%s, line %d: \"%s\" is %.60s; %s is expected", config->path, line, key, seen ? seen : "?",
              row->arg == NULL                   ? "true or false"
              : row->flags & OPTION_ARG_OPTIONAL ? "true, false, a number or a string"
                                                 : "a number or a string");
    free(seen);
    return -1;
  }
  row->line = line;
  row->replaced = row->typed && row->value && text && strcmp(row->value, text) != 0;
  if (!row->typed && text) config_set(config, row->name, text);
  return 0;
}

/* What a file says, for all options that were not typed. */
static inline int config_load(Config *config, const char *path, Error *err) {
  char resolved[PATH_MAX];
  size_t size;
  if (user_path(path, resolved, sizeof resolved, err) != 0) return -1;
  char *text = config_read_text(resolved, &size, err);
  json_t *object = text ? config_parse(resolved, text, size, err) : NULL;
  int status = object ? 0 : -1, n = 0;
  const char *key;
  json_t *value;
  snprintf(config->path, sizeof config->path, "%s", path);
  if (object) json_object_foreach(object, key, value) {
      if (status == 0) status = config_take(config, key, value, config_line_of(text, n), err);
      n++;
    }
  json_decref(object);
  free(text);
  return status;
}

/* ----------------------------------------------------------------------------------------------- beside argp_parse */

/* --name=value, or --name. */
static inline void config_add_argument(Config *config, const char *name, const char *separator, const char *value) {
  const size_t size = strlen(name) + strlen(separator) + strlen(value) + 3;
  char *argument = (char *)xmalloc(size);
  snprintf(argument, size, "--%s%s%s", name, separator, value);
  config->argv[config->argc++] = argument;
}

/* Reads what was typed, and the file of --config. Ends the program with status 2 where that is not right. */
static inline void config_open(Config *config, const struct argp *all, int argc, char **argv) {
  Error err;
  memset(config, 0, sizeof *config);
  config_collect(config, all);
  config_scan(config, argc, argv);
  const char *path = config_value(config, "config");
  if (path == NULL || config_load(config, path, &err) == 0) return;
  fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, err.message);
  exit(2);
}

/* Puts the arguments of the file in front of those that were typed. */
static inline void config_arguments(Config *config, int *argc, char ***argv) {
  char line[16];
  if (config->path[0] == '\0') return;
  config->argv = (char **)xcalloc((size_t)(2 * config->count + 3 + *argc), sizeof *config->argv);
  config->argv[config->argc++] = (*argv)[0];
  for (int i = 0; i < config->count; i++) {
    const ConfigRow *row = &config->rows[i];
    if (row->typed || !row->line || !row->value) continue;
    snprintf(line, sizeof line, "%d", row->line);
    const int required = row->arg && !(row->flags & OPTION_ARG_OPTIONAL);
    config_add_argument(config, CONFIG_LINE, "=", line);
    config_add_argument(config, row->name, required || row->value[0] ? "=" : "", row->value);
  }
  config_add_argument(config, CONFIG_LINE, "=", "0");
  config->made = config->argc - 1;
  for (int i = 1; i < *argc; i++) config->argv[config->argc++] = (*argv)[i];
  *argc = config->argc;
  *argv = config->argv;
}

/* Weak: all files of a program share it. The file on which argp works; NULL: none. */
__attribute__((weak)) Config *config_at_work;

/* argp ends the program after its message; this one is about a file. */
static inline void config_report(void) {
  const Config *config = config_at_work;
  const size_t name = strlen(program_invocation_short_name) + 2;
  if (config == NULL || fflush(config->said) != 0 || config->size <= name) return;
  fprintf(stderr, "%s: %s, line %d: %s", program_invocation_short_name, config->path, config->line,
          config->text + name);
}

/* A program keeps it until it ends: options point into its arguments. */
static inline void config_close(Config *config) {
  for (int i = 0; i < config->count; i++) free(config->rows[i].value);
  for (int i = 1; i <= config->made; i++) free(config->argv[i]);
  free(config->argv);
  memset(config, 0, sizeof *config);
}

/* For the key of the hidden option: what comes next is of this line of the file; 0: it was typed. CONFIG_END: the
 * options before it are right, each by itself, and that was the question. */
static inline void config_at(Config *config, const char *line, struct argp_state *state) {
  if (strcmp(line, CONFIG_END) == 0) exit(0);
  config->line = atoi(line);
  if (config->line > 0 && config->said == NULL &&
      (config->said = open_memstream(&config->text, &config->size)) != NULL) {
    static int registered;
    if (!registered) atexit(config_report);
    registered = 1;
    config_at_work = config;
    state->err_stream = config->said;
  }
  if (config->line == 0 && config->said) {
    config_at_work = NULL;
    state->err_stream = stderr;
    fclose(config->said);
    free(config->text);
    config->said = NULL;
  }
}

/* ------------------------------------------------------------------------------------------------------ writing one */

/* A number as it is, anything else as a string. */
static inline void config_print_value(FILE *file, const char *text) {
  json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
  const int number = json_is_number(value) && strpbrk(text, " \t\r\n") == NULL;
  json_decref(value);
  value = number ? NULL : json_string(text);
  char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
  fputs(number ? text : quoted ? quoted : "\"\"", file);
  free(quoted);
  json_decref(value);
}

/* Everything that was given or set, but for the options of these names (NULL after the last). */
static inline int config_write(const Config *config, const char *path, const char *const *without, Error *err) {
  AtomicFile file;
  const char *separator = "{\n";
  if (atomic_file_open(&file, path, err) != 0) return -1;
  for (int i = 0; i < config->count; i++) {
    const ConfigRow *row = &config->rows[i];
    int left_out = row->value == NULL || !config_is_key(row);
    for (int w = 0; without[w]; w++) left_out |= strcmp(without[w], row->name) == 0;
    if (left_out) continue;
    fprintf(file.stream, "%s  \"%s\": ", separator, row->name);
    if (row->value[0] == '\0')
      fputs("true", file.stream);
    else
      config_print_value(file.stream, row->value);
    separator = ",\n";
  }
  fputs(separator[0] == '{' ? "{}\n" : "\n}\n", file.stream);
  return atomic_file_commit(&file, err);
}

#endif /* COMMON_NN_CONFIG_H */
