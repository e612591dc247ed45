/* symbols.c - places in the program: numbers for the hooks' return addresses, file and line for reports;
 * names and extents of shared and device variables from the program's own symbol table (ELF). */
#include "parts.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lines.h"

/* ---- sites ---- */

enum { MAX_SITES = 65535 };
uintptr_t simt_text_low, simt_load_base;
static uintptr_t text_high, image_low, image_high, read_only_low[8], read_only_high[8];
static int read_only_count;
static uint16_t *site_of_pc; /* by distance from simt_text_low; mapped, untouched pages cost nothing */
static uintptr_t *pc_of_site;
static SiteFlow *flow_of_site;
static unsigned site_count = 1;

unsigned simt_site_of(uintptr_t pc) {
  if (pc - simt_text_low >= text_high - simt_text_low) return 0;
  uint16_t *slot = &site_of_pc[pc - simt_text_low];
  if (*slot) return *slot;
  if (site_count > MAX_SITES) return 0;
  if (!(site_count & (site_count - 1))) {
    pc_of_site = realloc(pc_of_site, 2 * site_count * sizeof *pc_of_site);
    flow_of_site = realloc(flow_of_site, 2 * site_count * sizeof *flow_of_site);
    if (!pc_of_site || !flow_of_site) abort();
  }
  pc_of_site[site_count] = pc;
  flow_of_site[site_count] = (SiteFlow){.rank = 0};
  *slot = (uint16_t)site_count;
  return site_count++;
}

uintptr_t simt_site_pc(unsigned site) { return site && site < site_count ? pc_of_site[site] : 0; }

unsigned simt_site_count(void) { return site_count; }

SiteFlow *simt_site_flow(unsigned site) {
  static SiteFlow unknown;
  return site ? &flow_of_site[site] : &unknown;
}

/* ---- the program in memory ---- */

typedef struct Tls {
  uintptr_t low;
  size_t size;
} Tls;

static int see_program(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size;
  (void)unused;
  simt_load_base = info->dlpi_addr;
  image_low = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uintptr_t low = info->dlpi_addr + p->p_vaddr, high = low + p->p_memsz;
    if (p->p_type != PT_LOAD) continue;
    if (low < image_low) image_low = low;
    if (high > image_high) image_high = high;
    if (p->p_flags & PF_X) simt_text_low = low, text_high = high;
    if (!(p->p_flags & PF_W) && read_only_count < 8) {
      read_only_low[read_only_count] = low;
      read_only_high[read_only_count++] = high;
    }
  }
  return 1; /* the first object is the program */
}

static int see_tls(struct dl_phdr_info *info, size_t size, void *context) {
  Tls *tls = context;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS) {
      tls->low = (uintptr_t)info->dlpi_tls_data;
      tls->size = info->dlpi_phdr[i].p_memsz;
    }
  return 1;
}

uintptr_t simt_tls_low(size_t *size) {
  Tls tls = {0, 0};
  dl_iterate_phdr(see_tls, &tls);
  *size = tls.size;
  return tls.low;
}

int simt_is_read_only(uintptr_t address) {
  for (int i = 0; i < read_only_count; i++)
    if (address >= read_only_low[i] && address < read_only_high[i]) return 1;
  return 0;
}

int simt_is_image(uintptr_t address) { return address >= image_low && address < image_high; }

/* ---- variables ---- */

typedef struct Variables { /* by address */
  Variable *list;
  size_t count;
} Variables;
static Variables shared, image, functions;

static int by_address(const void *a, const void *b) {
  const Variable *x = a, *y = b;
  return x->low < y->low ? -1 : x->low > y->low;
}

static void add_variable(Variables *v, uintptr_t low, size_t size, const char *name) {
  if (!(v->count & (v->count - 1))) v->list = realloc(v->list, (v->count ? 2 * v->count : 1) * sizeof *v->list);
  if (!v->list) abort();
  v->list[v->count++] = (Variable){low, size, name};
}

static void read_symbols(const char *file, size_t size) {
  const ElfW(Ehdr) *head = (const void *)file;
  if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return;
  if (head->e_shoff > size || (size - head->e_shoff) / sizeof(ElfW(Shdr)) < head->e_shnum) return;
  const ElfW(Shdr) *section = (const void *)(file + head->e_shoff);
  for (int i = 0; i < head->e_shnum; i++) {
    const ElfW(Shdr) *table = &section[i];
    if (table->sh_type != SHT_SYMTAB || table->sh_link >= head->e_shnum) continue;
    const ElfW(Shdr) *strings = &section[table->sh_link];
    if (table->sh_offset + table->sh_size > size || strings->sh_offset + strings->sh_size > size) continue;
    const ElfW(Sym) *symbol = (const void *)(file + table->sh_offset);
    for (size_t s = 0; s < table->sh_size / sizeof *symbol; s++) {
      const char *name = symbol[s].st_name < strings->sh_size ? file + strings->sh_offset + symbol[s].st_name : "";
      int type = ELF64_ST_TYPE(symbol[s].st_info);
      if (!symbol[s].st_size || symbol[s].st_shndx == SHN_UNDEF) continue;
      if (type == STT_TLS && strcmp(name, "simt_above_shared") != 0) /* which nobody may touch */
        add_variable(&shared, symbol[s].st_value, symbol[s].st_size, name);
      if (type == STT_OBJECT) add_variable(&image, simt_load_base + symbol[s].st_value, symbol[s].st_size, name);
      if (type == STT_FUNC) add_variable(&functions, simt_load_base + symbol[s].st_value, symbol[s].st_size, name);
    }
  }
  if (shared.count) qsort(shared.list, shared.count, sizeof *shared.list, by_address);
  if (image.count) qsort(image.list, image.count, sizeof *image.list, by_address);
  if (functions.count) qsort(functions.list, functions.count, sizeof *functions.list, by_address);
}

void simt_symbols_open(void) {
  if (site_of_pc) return;
  dl_iterate_phdr(see_program, NULL);
  site_of_pc = mmap(NULL, (text_high - simt_text_low) * sizeof *site_of_pc, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (site_of_pc == MAP_FAILED) abort();
  int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (fd < 0) return;
  if (fstat(fd, &status) == 0) { /* the mapping stays: it holds the names */
    void *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file != MAP_FAILED) read_symbols(file, (size_t)status.st_size);
  }
  close(fd);
}

static const Variable *find_in(const Variables *v, uintptr_t address, int before) {
  size_t low = 0, high = v->count; /* the first that begins after `address` */
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (v->list[middle].low <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low) return NULL;
  const Variable *found = &v->list[low - 1];
  return before || address - found->low < found->size ? found : NULL;
}

const Variable *simt_find_shared(uintptr_t offset, int before) { return find_in(&shared, offset, before); }
const Variable *simt_find_variable(uintptr_t address, int before) { return find_in(&image, address, before); }

int simt_function_at(uintptr_t pc, uintptr_t *first, uintptr_t *end) {
  const Variable *at = find_in(&functions, pc, 1);
  if (!at) return 0;
  const Variable *next = at + 1;
  *first = at->low;
  *end =
      next < functions.list + functions.count ? next->low : at->low + at->size; /* of one address: the last is found */
  return 1;
}

extern char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status) __attribute__((weak));

/* The last part of a qualified name: "kernel<4>(float*)::tile" is "tile". */
const char *simt_variable_text(const Variable *variable, char *text, size_t size) {
  char *plain = __cxa_demangle ? __cxa_demangle(variable->name, NULL, NULL, NULL) : NULL;
  const char *name = plain ? plain : variable->name, *last = name;
  int depth = 0;
  for (const char *c = name; *c; c++) {
    depth += (*c == '(' || *c == '<') - (*c == ')' || *c == '>');
    if (c[0] == ':' && c[1] == ':' && depth == 0) last = c + 2;
  }
  snprintf(text, size, "%s", last);
  text[strcspn(text, ".")] = '\0'; /* gcc's s_tile.3 in C */
  free(plain);
  return text;
}

/* ---- file and line ---- */

/* Our headers, and the compiler's: a call into them is blamed on the caller. */
static int is_foreign(const char *file) {
  return strstr(file, "/simt/include/") || strncmp(file, "simt/include/", 13) == 0 || strncmp(file, "/usr/", 5) == 0 ||
         file[0] == '?';
}

/* "Pair::Pair(Pair const&)", "Pair::operator=(Pair&&)": a structure is copied, and the compiler's line for that is the
 * structure's own. The caller is blamed for it, too. */
static int is_copy(const char *text) {
  const char *open = strrchr(text, '('), *end = open ? open : text;
  const char *name = end;
  while (name > text && name[-1] != ':') name--;
  size_t length = (size_t)(end - name), of_class = name > text + 2 ? (size_t)(name - 2 - text) : 0;
  if (!of_class || strncmp(open + 1, text, of_class) != 0) return 0;
  const char *after = open + 1 + of_class;
  if (strcmp(after, " const&)") != 0 && strcmp(after, "&&)") != 0) return 0;
  if (length == 9 && strncmp(name, "operator=", 9) == 0) return 1;
  const char *last = name - 2; /* the end of the class's name, without its template's arguments */
  int depth = 0;
  if (last[-1] == '>') do {
      last--;
      depth += (*last == '>') - (*last == '<');
    } while (depth && last > text);
  return (size_t)(last - text) >= length && strncmp(last - length, name, length) == 0;
}

/* "void ns::kernel<4>(float*, int)" -> "ns::kernel<4>" */
static char *function_name(char *text) {
  size_t length = strlen(text);
  int depth = 0;
  if (length && text[length - 1] == ')') {
    size_t i = length;
    do {
      i--;
      depth += (text[i] == ')') - (text[i] == '(');
    } while (i && depth);
    if (i) text[i] = '\0';
  }
  char *start = text;
  depth = 0;
  for (char *c = text; *c; c++) {
    depth += (*c == '(' || *c == '<') - (*c == ')' || *c == '>');
    if (*c == ' ' && depth == 0 && strncmp(text, "operator", 8) != 0) start = c + 1;
  }
  return start;
}

/* Lines and functions are few: each text is kept once. */
static const char *keep(const char *text) {
  static const char **kept;
  static size_t count;
  for (size_t i = count; i > 0; i--)
    if (strcmp(kept[i - 1], text) == 0) return kept[i - 1];
  if (!(count & (count - 1))) kept = realloc(kept, (count ? 2 * count : 1) * sizeof *kept);
  char *copy = strdup(text);
  if (!kept || !copy) abort();
  return kept[count++] = copy;
}

static const char *relative(const char *file) {
  static char here[4096];
  if (!here[0] && !getcwd(here, sizeof here - 1)) here[0] = '\0';
  if (strncmp(file, "/proc/self/cwd/", 15) == 0) return file + 15; /* Bazel compiles there, wherever that is */
  size_t length = strlen(here);
  return length > 1 && strncmp(file, here, length) == 0 && file[length] == '/' ? file + length + 1 : file;
}

/* Of functions that were inlined into each other the innermost that is the program's own. */
SimtPlace simt_place_of(uintptr_t pc) {
  enum { MOST = 16 };
  static SimtFrame frame[MOST];
  int frames = simt_frames(pc - 1 - simt_load_base, frame, MOST); /* a return address: one less is within the call */
  for (int i = 0; i < frames; i++)
    if (frame[i].line && !is_foreign(frame[i].file) && !is_copy(frame[i].function))
      return (SimtPlace){keep(relative(frame[i].file)), keep(function_name(frame[i].function)), frame[i].line};
  return (SimtPlace){"?", "?", 0};
}
