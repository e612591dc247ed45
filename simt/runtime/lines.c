/* lines.c - file, line and function of an address in the program, from its own debugging information (DWARF 4 and 5 as
 * gcc writes it with -g1). No other program is asked: where a kernel is judged none may be started, and the source is
 * not at hand.
 *
 * .debug_info is a tree for each compiled file: functions, and in them the functions that were inlined there, each
 * with its addresses and the line of its call. .debug_line has the line of every address. Both are read once, into
 * tables. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "lines.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the file ---- */

#ifdef SIMT_SHARED_LIBRARY
static Dl_info own_file(void) {
  Dl_info info = {0};
  dladdr((const void *)simt_program_file, &info);
  return info;
}

const char *simt_program_file(void) { return own_file().dli_fname; /* the loader's, which stays */ }

uintptr_t simt_program_base(void) { return (uintptr_t)own_file().dli_fbase; }

#else

const char *simt_program_file(void) { return "/proc/self/exe"; }

static int first_object(struct dl_phdr_info *info, size_t size, void *base) {
  (void)size;
  *(uintptr_t *)base = info->dlpi_addr; /* the first object is the program */
  return 1;
}

uintptr_t simt_program_base(void) {
  uintptr_t base = 0;
  dl_iterate_phdr(first_object, &base);
  return base;
}
#endif

/* ---- the sections ---- */

typedef struct Reader { /* stays at the end when it comes there */
  const uint8_t *at, *end;
} Reader;

enum { INFO, ABBREV, LINE, STR, LINE_STR, RANGES, RNGLISTS, SECTIONS };
static Reader section[SECTIONS];

static uint64_t fixed(Reader *r, size_t bytes) { /* little-endian, as the machine */
  uint64_t value = 0;
  if ((size_t)(r->end - r->at) < bytes) {
    r->at = r->end;
    return 0;
  }
  memcpy(&value, r->at, bytes < 8 ? bytes : 8);
  r->at += bytes;
  return value;
}

static uint64_t uleb(Reader *r) {
  uint64_t value = 0;
  for (unsigned shift = 0; r->at < r->end; shift += 7) {
    uint8_t byte = *r->at++;
    if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
    if (!(byte & 128)) break;
  }
  return value;
}

static int64_t sleb(Reader *r) {
  uint64_t value = 0;
  unsigned shift = 0;
  uint8_t byte = 0;
  while (r->at < r->end) {
    byte = *r->at++;
    if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
    shift += 7;
    if (!(byte & 128)) break;
  }
  if (shift < 64 && (byte & 64)) value |= ~(uint64_t)0 << shift;
  return (int64_t)value;
}

static const char *string(Reader *r) {
  const uint8_t *end = memchr(r->at, 0, (size_t)(r->end - r->at));
  const char *text = (const char *)r->at;
  r->at = end ? end + 1 : r->end;
  return end ? text : "";
}

static Reader from(int which, uint64_t offset) {
  Reader r = section[which];
  r.at = offset < (uint64_t)(r.end - r.at) ? r.at + offset : r.end;
  return r;
}

static const char *string_at(int which, uint64_t offset) {
  Reader r = from(which, offset);
  return string(&r);
}

static void *grown(void *list, size_t count, size_t size) { /* room for one more */
  if (count & (count - 1)) return list;
  list = realloc(list, (count ? 2 * count : 1) * size);
  if (!list) abort();
  return list;
}

static void find_sections(const uint8_t *file, size_t size) {
  static const char *const names[SECTIONS] = {".debug_info",     ".debug_abbrev", ".debug_line",    ".debug_str",
                                              ".debug_line_str", ".debug_ranges", ".debug_rnglists"};
  const ElfW(Ehdr) *head = (const void *)file;
  if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_shoff > size ||
      (size - head->e_shoff) / sizeof(ElfW(Shdr)) < head->e_shnum || head->e_shstrndx >= head->e_shnum)
    return;
  const ElfW(Shdr) *table = (const void *)(file + head->e_shoff), *text = &table[head->e_shstrndx];
  for (int i = 0; i < head->e_shnum; i++) {
    const ElfW(Shdr) *s = &table[i];
    if (s->sh_offset > size || s->sh_size > size - s->sh_offset || s->sh_flags & SHF_COMPRESSED) continue;
    if (s->sh_name >= text->sh_size) continue;
    const char *name = (const char *)file + text->sh_offset + s->sh_name;
    for (int n = 0; n < SECTIONS; n++)
      if (strcmp(name, names[n]) == 0) section[n] = (Reader){file + s->sh_offset, file + s->sh_offset + s->sh_size};
  }
}

/* ---- the tree ---- */

enum { /* of DWARF's names those that are needed */
       TAG_INLINED = 0x1d,
       TAG_FUNCTION = 0x2e,
       AT_NAME = 0x03,
       AT_STATEMENTS = 0x10,
       AT_LOW = 0x11,
       AT_HIGH = 0x12,
       AT_FOLDER = 0x1b,
       AT_ORIGIN = 0x31,
       AT_SPECIFICATION = 0x47,
       AT_RANGES = 0x55,
       AT_CALL_FILE = 0x58,
       AT_CALL_LINE = 0x59,
       AT_LINKAGE_NAME = 0x6e,
       FORM_ADDRESS = 0x01
};

typedef struct Unit {  /* a compiled file */
  uint64_t start, end; /* in .debug_info, with its header */
  unsigned version;
  uint64_t base; /* of its ranges */
  const char *folder;
  const uint8_t **abbrev; /* by code; NULL: none */
  size_t abbrevs;
  const char **file; /* by DWARF's number */
  size_t files;
} Unit;
static Unit *units;
static size_t unit_count;

typedef struct Node { /* one of the tree, with what it says of itself */
  uint64_t tag;       /* 0: the end of a list of children */
  int has_children;
  const char *name, *linkage_name, *folder;
  uint64_t low, high, statements, ranges, origin; /* origin: offset in .debug_info of a node with the name; 0: none */
  int has_low, high_is_size, has_ranges, has_statements;
  int call_file, call_line;
} Node;

static void read_abbrevs(Unit *u, uint64_t offset) {
  Reader r = from(ABBREV, offset);
  for (;;) {
    uint64_t code = uleb(&r);
    if (!code || code > 1 << 20) return;
    if (code >= u->abbrevs) {
      size_t more = 2 * code + 64;
      u->abbrev = realloc(u->abbrev, more * sizeof *u->abbrev);
      if (!u->abbrev) abort();
      memset(u->abbrev + u->abbrevs, 0, (more - u->abbrevs) * sizeof *u->abbrev);
      u->abbrevs = more;
    }
    u->abbrev[code] = r.at;
    uleb(&r);
    fixed(&r, 1);
    for (uint64_t name = 1, form = 1; (name || form) && r.at < r.end;) {
      name = uleb(&r);
      form = uleb(&r);
      if (form == 0x21) sleb(&r); /* the value itself */
    }
  }
}

typedef struct Value {
  uint64_t number;
  const char *text;
} Value;

/* 0: a form that is not known. */
static int read_form(Reader *r, uint64_t form, const Unit *u, Value *v) {
  static const uint8_t sizes[] = {[0x01] = 8, [0x05] = 2, [0x06] = 4, [0x07] = 8, [0x0b] = 1,  [0x0c] = 1, [0x11] = 1,
                                  [0x12] = 2, [0x13] = 4, [0x14] = 8, [0x17] = 4, [0x1e] = 16, [0x20] = 8, [0x10] = 4};
  v->text = NULL;
  v->number = 0;
  switch (form) {
    case 0x03: /* blocks */
    case 0x04:
    case 0x0a:
      v->number = fixed(r, form == 0x03 ? 2 : form == 0x04 ? 4 : 1);
      r->at = (uint64_t)(r->end - r->at) < v->number ? r->end : r->at + v->number;
      return 1;
    case 0x09:
    case 0x18:
      v->number = uleb(r);
      r->at = (uint64_t)(r->end - r->at) < v->number ? r->end : r->at + v->number;
      return 1;
    case 0x08:
      v->text = string(r);
      return 1;
    case 0x0d:
      v->number = (uint64_t)sleb(r);
      return 1;
    case 0x0e:
    case 0x1f:
      v->text = string_at(form == 0x0e ? STR : LINE_STR, fixed(r, 4));
      return 1;
    case 0x0f:
      v->number = uleb(r);
      return 1;
    case 0x15: /* references within the unit */
      v->number = u->start + uleb(r);
      return 1;
    case 0x19:
      v->number = 1;
      return 1;
    default:
      if (form >= sizeof sizes || !sizes[form]) return 0;
      v->number = fixed(r, sizes[form]);
      if (form >= 0x11 && form <= 0x14) v->number += u->start;
      return 1;
  }
}

/* 0: it cannot be read, and neither can what follows. */
static int read_node(Reader *r, const Unit *u, Node *n) {
  *n = (Node){0};
  uint64_t code = uleb(r);
  if (!code) return 1;
  if (code >= u->abbrevs || !u->abbrev[code]) return 0;
  Reader a = {u->abbrev[code], section[ABBREV].end};
  n->tag = uleb(&a);
  n->has_children = (int)fixed(&a, 1);
  for (;;) {
    uint64_t name = uleb(&a), form = uleb(&a);
    Value v = {0};
    if (!name && !form) return 1;
    if (form == 0x21)
      v.number = (uint64_t)sleb(&a);
    else if (!read_form(r, form, u, &v))
      return 0;
    switch (name) {
      case AT_NAME:
        n->name = v.text;
        break;
      case AT_LINKAGE_NAME:
        n->linkage_name = v.text;
        break;
      case AT_FOLDER:
        n->folder = v.text;
        break;
      case AT_LOW:
        n->low = v.number, n->has_low = 1;
        break;
      case AT_HIGH:
        n->high = v.number, n->high_is_size = form != FORM_ADDRESS;
        break;
      case AT_RANGES:
        n->ranges = v.number, n->has_ranges = 1;
        break;
      case AT_STATEMENTS:
        n->statements = v.number, n->has_statements = 1;
        break;
      case AT_ORIGIN:
      case AT_SPECIFICATION:
        n->origin = v.number;
        break;
      case AT_CALL_FILE:
        n->call_file = (int)v.number;
        break;
      case AT_CALL_LINE:
        n->call_line = (int)v.number;
        break;
      default:
        break;
    }
  }
}

typedef struct Scope {      /* a piece of a function's code, or of one that was inlined */
  uint64_t low, high, node; /* node: its offset in .debug_info */
  uint32_t unit;
  int depth, call_file, call_line;
} Scope;
static Scope *scopes;
static size_t scope_count;

static void add_scope(const Unit *u, const Node *n, uint64_t at, int depth, uint64_t low, uint64_t high) {
  if (low >= high) return;
  scopes = grown(scopes, scope_count, sizeof *scopes);
  scopes[scope_count++] = (Scope){low, high, at, (uint32_t)(u - units), depth, n->call_file, n->call_line};
}

static void add_ranges(const Unit *u, const Node *n, uint64_t at, int depth) {
  uint64_t base = u->base;
  Reader r = from(u->version < 5 ? RANGES : RNGLISTS, n->ranges);
  while (r.at < r.end && u->version < 5) {
    uint64_t low = fixed(&r, 8), high = fixed(&r, 8);
    if (!low && !high) return;
    if (low == UINT64_MAX)
      base = high;
    else
      add_scope(u, n, at, depth, base + low, base + high);
  }
  while (r.at < r.end) {
    uint64_t kind = fixed(&r, 1), low;
    switch (kind) {
      case 4: /* both from the base */
        low = base + uleb(&r);
        add_scope(u, n, at, depth, low, base + uleb(&r));
        break;
      case 5:
        base = fixed(&r, 8);
        break;
      case 6: /* first and end */
        low = fixed(&r, 8);
        add_scope(u, n, at, depth, low, fixed(&r, 8));
        break;
      case 7: /* first and size */
        low = fixed(&r, 8);
        add_scope(u, n, at, depth, low, low + uleb(&r));
        break;
      default:
        return;
    }
  }
}

/* ---- lines ---- */

typedef struct Row { /* addresses [low, high) are of this line */
  uint64_t low, high;
  const char *file;
  int line;
} Row;
static Row *rows;
static size_t row_count;

static const char *joined(const char *folder, const char *name) {
  char *path;
  while (name[0] == '.' && name[1] == '/') name += 2;
  if (*name == '/' || !*folder) return name;
  if (asprintf(&path, "%s/%s", folder, name) < 0) abort();
  return path;
}

static void add_file(Unit *u, const char *path) {
  u->file = grown(u->file, u->files, sizeof *u->file);
  u->file[u->files++] = path;
}

/* DWARF 4: folders from 1 on, 0 is the unit's; files from 1 on. */
static void read_files_4(Reader *r, Unit *u) {
  const char **folder = NULL;
  size_t folders = 0;
  folder = grown(folder, folders, sizeof *folder);
  folder[folders++] = u->folder;
  while (r->at < r->end && *r->at) {
    folder = grown(folder, folders, sizeof *folder);
    folder[folders++] = joined(u->folder, string(r));
  }
  fixed(r, 1);
  add_file(u, "?");
  while (r->at < r->end && *r->at) {
    const char *name = string(r);
    uint64_t where = uleb(r);
    uleb(r);
    uleb(r);
    add_file(u, joined(where < folders ? folder[where] : "", name));
  }
  fixed(r, 1);
  free(folder);
}

/* DWARF 5: two tables whose columns are described before. 0: not understood. */
static int read_files_5(Reader *r, Unit *u) {
  const char **folder = NULL;
  size_t folders = 0;
  for (int table = 0; table < 2; table++) {
    uint64_t kind[8], form[8], columns = fixed(r, 1);
    if (columns > 8) return 0;
    for (uint64_t c = 0; c < columns; c++) kind[c] = uleb(r), form[c] = uleb(r);
    for (uint64_t left = uleb(r); left > 0 && r->at < r->end; left--) {
      const char *name = "";
      uint64_t where = 0;
      for (uint64_t c = 0; c < columns; c++) {
        Value v;
        if (!read_form(r, form[c], u, &v)) return 0;
        if (kind[c] == 1 && v.text) name = v.text;
        if (kind[c] == 2) where = v.number;
      }
      if (table == 0) {
        folder = grown(folder, folders, sizeof *folder);
        folder[folders++] = joined(u->folder, name);
      } else {
        add_file(u, joined(where < folders ? folder[where] : "", name));
      }
    }
  }
  free(folder);
  return 1;
}

static void add_row(const Unit *u, uint64_t low, uint64_t high, uint64_t file, int64_t line) {
  if (low >= high || line <= 0) return;
  rows = grown(rows, row_count, sizeof *rows);
  rows[row_count++] = (Row){low, high, file < u->files ? u->file[file] : "?", (int)line};
}

static void read_lines(Unit *u, uint64_t offset) {
  Reader r = from(LINE, offset);
  uint64_t length = fixed(&r, 4);
  if (length < (uint64_t)(r.end - r.at)) r.end = r.at + length;
  uint64_t version = fixed(&r, 2);
  if (version < 3 || version > 5) return;
  if (version == 5) fixed(&r, 2);
  length = fixed(&r, 4);
  Reader program = {length < (uint64_t)(r.end - r.at) ? r.at + length : r.end, r.end};
  uint64_t step = fixed(&r, 1);
  if (version > 3) fixed(&r, 1);
  fixed(&r, 1);
  int line_base = (int8_t)fixed(&r, 1);
  uint64_t line_range = fixed(&r, 1), opcodes = fixed(&r, 1);
  const uint8_t *operands = r.at - 1; /* by opcode */
  if (!line_range || !opcodes) return;
  fixed(&r, opcodes - 1);
  if (version < 5)
    read_files_4(&r, u);
  else if (!read_files_5(&r, u))
    return;

  uint64_t address = 0, file = 1, began = 0, began_file = 1;
  int64_t line = 1, began_line = 0; /* of the row that is open; 0: none is */
  for (r = program; r.at < r.end;) {
    uint64_t opcode = fixed(&r, 1);
    int row = 0, end = 0;
    if (opcode >= opcodes) {
      address += step * ((opcode - opcodes) / line_range);
      line += line_base + (int64_t)((opcode - opcodes) % line_range);
      row = 1;
    } else if (opcode == 0) {
      uint64_t size = uleb(&r);
      const uint8_t *next = size < (uint64_t)(r.end - r.at) ? r.at + size : r.end;
      uint64_t extended = fixed(&r, 1);
      if (extended == 1) row = end = 1;
      if (extended == 2) address = fixed(&r, 8);
      r.at = next;
    } else if (opcode == 1) {
      row = 1;
    } else if (opcode == 2) {
      address += step * uleb(&r);
    } else if (opcode == 3) {
      line += sleb(&r);
    } else if (opcode == 4) {
      file = uleb(&r);
    } else if (opcode == 8) {
      address += step * ((255 - opcodes) / line_range);
    } else if (opcode == 9) {
      address += fixed(&r, 2);
    } else {
      for (int i = 0; i < operands[opcode]; i++) uleb(&r);
    }
    if (!row) continue;
    add_row(u, began, address, began_file, began_line);
    began = address;
    began_file = file;
    began_line = end ? 0 : line;
    if (end) address = 0, file = 1, line = 1;
  }
}

/* ---- all of it, once ---- */

static void read_unit(Unit *u) {
  Reader r = from(INFO, u->start);
  r.end = section[INFO].at + u->end;
  fixed(&r, 4);
  u->version = (unsigned)fixed(&r, 2);
  if (u->version != 4 && u->version != 5) return;
  uint64_t kind = u->version == 5 ? fixed(&r, 1) : 1, abbrevs = 0;
  if (u->version == 5) fixed(&r, 1); /* size of an address */
  abbrevs = fixed(&r, 4);
  if (u->version == 4) fixed(&r, 1);
  if (kind != 1) return;
  read_abbrevs(u, abbrevs);
  Node n;
  u->folder = "";
  if (!read_node(&r, u, &n)) return;
  if (n.folder) u->folder = n.folder;
  u->base = n.low;
  if (n.has_statements) read_lines(u, n.statements);
  for (int depth = 1; depth > 0 && r.at < r.end;) {
    uint64_t at = (uint64_t)(r.at - section[INFO].at);
    if (!read_node(&r, u, &n)) return;
    if (!n.tag) {
      depth--;
      continue;
    }
    if (n.tag == TAG_FUNCTION || n.tag == TAG_INLINED) {
      if (n.has_ranges)
        add_ranges(u, &n, at, depth);
      else if (n.has_low)
        add_scope(u, &n, at, depth, n.low, n.high_is_size ? n.low + n.high : n.high);
    }
    depth += n.has_children != 0;
  }
}

static int by_address(const void *a, const void *b) {
  const Row *x = a, *y = b;
  return x->low < y->low ? -1 : x->low > y->low;
}

static void read_program(void) {
  struct stat status;
  int fd = open(simt_program_file(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void *file = fstat(fd, &status) == 0 ? mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (file == MAP_FAILED) return;
  find_sections(file, (size_t)status.st_size);
  uint64_t size = (uint64_t)(section[INFO].end - section[INFO].at);
  for (uint64_t start = 0; start + 4 < size;) {
    Reader r = from(INFO, start);
    uint64_t length = fixed(&r, 4);
    if (length >= 0xfffffff0 || length > size - start - 4) break; /* the 64-bit format */
    units = grown(units, unit_count, sizeof *units);
    units[unit_count++] = (Unit){.start = start, .end = start + 4 + length};
    start += 4 + length;
  }
  for (size_t i = 0; i < unit_count; i++) read_unit(&units[i]);
  if (row_count) qsort(rows, row_count, sizeof *rows, by_address);
}

/* ---- answers ---- */

/* Not there in a program without C++'s library, where the names without parameters have to do. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status) __attribute__((weak));

static const char *name_of(const Unit *u, uint64_t node) {
  for (int hops = 0; hops < 8 && node; hops++) {
    Reader r = from(INFO, node);
    Node n;
    if (node < u->start || node >= u->end || !read_node(&r, u, &n)) break;
    if (n.linkage_name && __cxa_demangle) return n.linkage_name;
    if (n.name) return n.name;
    node = n.origin;
  }
  return "?";
}

static void set_function(SimtFrame *f, const char *name) {
  char *plain = __cxa_demangle && strncmp(name, "_Z", 2) == 0 ? __cxa_demangle(name, NULL, NULL, NULL) : NULL;
  snprintf(f->function, sizeof f->function, "%s", plain ? plain : name);
  free(plain);
  char *clone = strstr(f->function, " [clone "); /* the compiler's own copy of a function */
  if (clone) *clone = '\0';
}

int simt_frames(uintptr_t address, SimtFrame *frame, int most) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_program);
  size_t low = 0, high = row_count; /* the first row that begins after it */
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (rows[middle].low <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low || address >= rows[low - 1].high || most < 1) return 0;
  const Scope *in[64];
  int count = 0;
  for (size_t i = 0; i < scope_count && count < 64; i++) /* what is inlined comes behind what it is inlined in */
    if (address >= scopes[i].low && address < scopes[i].high) in[count++] = &scopes[i];
  int frames = 1;
  frame[0].file = rows[low - 1].file;
  frame[0].line = rows[low - 1].line;
  set_function(&frame[0], count ? name_of(&units[in[count - 1]->unit], in[count - 1]->node) : "?");
  for (int i = count - 1; i > 0 && frames < most; i--, frames++) {
    const Unit *u = &units[in[i]->unit];
    frame[frames].file = (size_t)in[i]->call_file < u->files ? u->file[in[i]->call_file] : "?";
    frame[frames].line = in[i]->call_line;
    set_function(&frame[frames], name_of(u, in[i - 1]->node));
  }
  return frames;
}
