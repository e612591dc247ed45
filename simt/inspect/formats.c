/* formats.c - the inspector's results for people and for programs.
 *
 * SIMT_REPORT says which, separated by commas; by default `table`:
 *
 *     table        one line for each kind of access of each kernel, and the findings; on stderr
 *     source       the source with the counts beside the lines; on stderr
 *     json:FILE    everything, for graders and scripts; `json:-` is stdout
 *     html:FILE    one page with the source in heat colours
 *     none         nothing
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect.h"

#define COUNT(k, counter) ((k)->count[SIMT_##counter])

/* ---- figures ---- */

/* 1,234,567 */
static const char *thousands(uint64_t n, char text[32]) {
  char digits[32];
  int length = snprintf(digits, sizeof digits, "%" PRIu64, n), out = 0;
  for (int i = 0; i < length; i++) {
    if (i && (length - i) % 3 == 0) text[out++] = ',';
    text[out++] = digits[i];
  }
  text[out] = '\0';
  return text;
}

static double ratio(uint64_t a, uint64_t b) { return b ? (double)a / (double)b : 0; }

/* Branches that all lanes of their group left together. 1 where there are none. */
static double branch_efficiency(const uint64_t *count) {
  return count[SIMT_BRANCHES] ? ratio(count[SIMT_UNIFORM_BRANCHES], count[SIMT_BRANCHES]) : 1;
}

/* How many of 32 lanes a group has on average. */
static double lanes_per_step(const uint64_t *count) { return ratio(count[SIMT_STEP_LANES], count[SIMT_STEPS]); }

/* What a line costs the memory system: each sector, wavefront and turn once. */
static uint64_t cost(const uint64_t *c) {
  return c[SIMT_GLOBAL_LOAD_SECTORS] + c[SIMT_GLOBAL_STORE_SECTORS] + c[SIMT_GLOBAL_ATOMIC_TURNS] +
         c[SIMT_SHARED_LOAD_WAVEFRONTS] + c[SIMT_SHARED_STORE_WAVEFRONTS] + c[SIMT_SHARED_ATOMIC_TURNS];
}

typedef struct Traffic { /* one kind of access: requests, what they cost, and the least they could cost */
  const char *name, *unit;
  SimtCounter requests, cost, ideal;
  int ideal_is_excess; /* `ideal` counts what is too much instead */
} Traffic;

static const Traffic traffic[] = {
    {"global loads", "sectors", SIMT_GLOBAL_LOAD_REQUESTS, SIMT_GLOBAL_LOAD_SECTORS, SIMT_GLOBAL_LOAD_IDEAL_SECTORS, 0},
    {"global stores", "sectors", SIMT_GLOBAL_STORE_REQUESTS, SIMT_GLOBAL_STORE_SECTORS, SIMT_GLOBAL_STORE_IDEAL_SECTORS,
     0},
    {"shared loads", "wavefronts", SIMT_SHARED_LOAD_REQUESTS, SIMT_SHARED_LOAD_WAVEFRONTS, SIMT_SHARED_LOAD_CONFLICTS,
     1},
    {"shared stores", "wavefronts", SIMT_SHARED_STORE_REQUESTS, SIMT_SHARED_STORE_WAVEFRONTS,
     SIMT_SHARED_STORE_CONFLICTS, 1},
    {"global atomics", "turns", SIMT_GLOBAL_ATOMIC_REQUESTS, SIMT_GLOBAL_ATOMIC_TURNS, SIMT_COUNTERS, 0},
    {"shared atomics", "turns", SIMT_SHARED_ATOMIC_REQUESTS, SIMT_SHARED_ATOMIC_TURNS, SIMT_COUNTERS, 0},
    {"constant loads", "words", SIMT_CONSTANT_LOAD_REQUESTS, SIMT_CONSTANT_LOAD_WORDS, SIMT_COUNTERS, 0},
};
enum { TRAFFICS = sizeof traffic / sizeof traffic[0] };

static uint64_t least(const Traffic *t, const uint64_t *count) {
  if (t->ideal == SIMT_COUNTERS) return count[t->requests];
  return t->ideal_is_excess ? count[t->cost] - count[t->ideal] : count[t->ideal];
}

/* What to do about it, when there is something to gain. */
static const char *remedy(const Traffic *t, const uint64_t *count) {
  uint64_t ideal = least(t, count);
  if (count[t->cost] <= ideal + ideal / 4) return NULL;
  switch (t->requests) {
    case SIMT_GLOBAL_LOAD_REQUESTS:
    case SIMT_GLOBAL_STORE_REQUESTS:
      return "not coalesced: neighbouring lanes should use neighbouring addresses";
    case SIMT_SHARED_LOAD_REQUESTS:
    case SIMT_SHARED_STORE_REQUESTS:
      return "bank conflicts: pad the row by one element, or change which lane takes which column";
    case SIMT_CONSTANT_LOAD_REQUESTS:
      return "lanes read different constants: shared or global memory serves them faster";
    default:
      return "many lanes hit the same address: reduce within the warp or block first";
  }
}

/* ---- lines of source ---- */

typedef struct Source { /* a file in memory, cut into lines */
  char *text;
  char **line;
  int count;
} Source;

static void close_source(Source *s) {
  free(s->text);
  free(s->line);
  *s = (Source){0};
}

/* -1 when the file cannot be read: it is only looked at to show it. */
static int open_source(const char *path, Source *s) {
  *s = (Source){0};
  FILE *file = fopen(path, "rb");
  if (!file) return -1;
  size_t size = 0, room = 0;
  do {
    room = room ? 2 * room : 65536;
    char *grown = realloc(s->text, room + 1);
    if (!grown) abort();
    s->text = grown;
    size += fread(s->text + size, 1, room - size, file);
  } while (size == room);
  fclose(file);
  s->text[size] = '\0';
  s->line = malloc((size + 2) * sizeof *s->line);
  if (!s->line) abort();
  for (char *at = s->text; at < s->text + size;) {
    char *end = strchr(at, '\n');
    s->line[s->count++] = at;
    if (!end) break;
    *end = '\0';
    at = end + 1;
  }
  return 0;
}

/* ---- pictures: the 32 lanes of a warp side by side ---- */

/* The line itself, where the source is at hand and may be shown. */
static void quote_line(FILE *out, const SimtPlace *place) {
  enum { MOST = 88 };
  Source source;
  const char *hidden = getenv("SIMT_INSPECT_HIDE");
  if (hidden && *hidden && strstr(place->file, hidden)) return;
  if (!place->line || open_source(place->file, &source) != 0) return;
  if (place->line <= source.count) {
    const char *text = source.line[place->line - 1] + strspn(source.line[place->line - 1], " \t");
    size_t length = strcspn(text, "\r");
    const char *rest = length > MOST ? "..." : "";
    if (*rest) length = MOST - strlen(rest);
    while (*rest && (text[length] & 0xC0) == 0x80) length--; /* no half a letter */
    fprintf(out, "        %.*s%s\n", (int)length, text, rest);
  }
  close_source(&source);
}

static void draw_lanes(FILE *out) {
  fprintf(out, "    %-8s", "lane");
  for (int lane = 0; lane < 28; lane += 4) fprintf(out, "%-8d", lane);
  fputs("28\n", out);
}

static const char sign_of[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static void draw_row(FILE *out, const char *name, uint32_t lanes, const int sign[32]) {
  fprintf(out, "    %-8s", name);
  for (int lane = 0; lane < 32; lane++)
    fprintf(out, "%c%s", lanes >> lane & 1 ? sign_of[sign[lane]] : '-', lane < 31 ? " " : "\n");
}

/* Each lane's sector, numbered as they come; in a row. */
static void draw_sectors(FILE *out, const SimtExample *e) {
  int own[32] = {0}, ideal[32] = {0}, sectors = 0, active = 0;
  uintptr_t seen[32];
  for (int lane = 0; lane < 32; lane++) {
    if (!(e->lanes >> lane & 1)) continue;
    int s = 0;
    while (s < sectors && seen[s] != e->address[lane] / 32) s++;
    if (s == sectors) seen[sectors++] = e->address[lane] / 32;
    own[lane] = s;
    ideal[lane] = active++ * e->bytes / 32;
  }
  draw_row(out, "sector", e->lanes, own);
  draw_row(out, "ideal", e->lanes, ideal);
}

static void draw_banks(FILE *out, const SimtExample *e) {
  int own[32] = {0}, ideal[32] = {0}, active = 0;
  for (int lane = 0; lane < 32; lane++) {
    if (!(e->lanes >> lane & 1)) continue;
    own[lane] = (int)(e->address[lane] / 4 % 32);
    ideal[lane] = active++ * (e->bytes < 4 ? 4 : e->bytes) / 4 % 32;
  }
  draw_row(out, "bank", e->lanes, own);
  draw_row(out, "ideal", e->lanes, ideal);
}

uint64_t simt_inspect_draw(FILE *out, const SimtKernelReport *kernel, SimtTraffic t) {
  const SimtWorst *w = &kernel->worst[t];
  const int shared = t == SIMT_SHARED_LOADS || t == SIMT_SHARED_STORES;
  const char *unit = shared ? "wavefronts" : "sectors";
  if (w->cost <= w->ideal) return 0;
  fprintf(out, "    %.0f %% of all %s of %s, %.2f times the ideal: %s:%d\n", 100 * ratio(w->cost, w->of_all), unit,
          traffic[t].name, ratio(w->cost, w->ideal), w->place.file, w->place.line);
  quote_line(out, &w->place);
  draw_lanes(out);
  if (shared) {
    draw_banks(out, &w->example);
    fprintf(out, "    0 to v are the 32 banks; a bank serves lanes that want different words one after the other\n");
  } else {
    draw_sectors(out, &w->example);
    fprintf(out, "    lanes with the same sign share a sector of 32 bytes\n");
  }
  return w->cost - w->ideal;
}

static void draw_race(FILE *out, const SimtExample *e) {
  if (!e->racing) return;
  draw_lanes(out);
  fprintf(out, "    %-8s", e->access & SIMT_ACCESS_WRITE ? "writes" : "reads");
  for (int lane = 0; lane < 32; lane++)
    fprintf(out, "%c%s", !(e->lanes >> lane & 1) ? '-' : e->racing >> lane & 1 ? 'x' : '.', lane < 31 ? " " : "\n");
  fprintf(out, "    x: another thread accesses the same word, and nothing orders the two accesses\n");
}

/* ---- table ---- */

static void print_kernel(FILE *out, const SimtKernelReport *k) {
  char a[32], b[32], c[32];
  fprintf(out, "\n%s<<<(%u,%u,%u), (%u,%u,%u)>>>  %s:%d  %s launch%s%s\n", k->name, k->grid.x, k->grid.y, k->grid.z,
          k->block.x, k->block.y, k->block.z, k->file, k->line, thousands(k->launches, a), k->launches == 1 ? "" : "es",
          k->estimated ? ", counts estimated from a sample of the blocks" : "");
  for (int i = 0; i < TRAFFICS; i++) {
    const Traffic *t = &traffic[i];
    uint64_t requests = k->count[t->requests];
    if (!requests) continue;
    fprintf(out, "  %-14s %13s requests %14s %-10s %6.2f per request, ideal %.2f\n", t->name, thousands(requests, a),
            thousands(k->count[t->cost], b), t->unit, ratio(k->count[t->cost], requests),
            ratio(least(t, k->count), requests));
    if (t->ideal_is_excess && k->count[t->ideal])
      fprintf(out, "  %-14s %13s bank conflicts\n", "", thousands(k->count[t->ideal], c));
    const char *advice = remedy(t, k->count);
    if (advice) fprintf(out, "  %-14s ^ %s\n", "", advice);
  }
  if (COUNT(k, LOCAL_LOADS) + COUNT(k, LOCAL_STORES))
    fprintf(out, "  %-14s %13s loads    %14s stores, of single lanes\n", "local memory",
            thousands(COUNT(k, LOCAL_LOADS), a), thousands(COUNT(k, LOCAL_STORES), b));
  if (COUNT(k, BULK_COPIES))
    fprintf(out, "  %-14s %13s copies   %14s bytes\n", "bulk copies", thousands(COUNT(k, BULK_COPIES), a),
            thousands(COUNT(k, BULK_BYTES), b));
  if (COUNT(k, MBARRIER_WAITS))
    fprintf(out, "  %-14s %13s waits, of single threads\n", "mbarriers", thousands(COUNT(k, MBARRIER_WAITS), a));
  if (COUNT(k, WGMMA_PRODUCTS))
    fprintf(out, "  %-14s %13s products %14s FLOPs\n", "wgmma", thousands(COUNT(k, WGMMA_PRODUCTS), a),
            thousands(COUNT(k, WGMMA_FLOPS), b));
  if (COUNT(k, STEPS))
    fprintf(out, "  %-14s %13s branches  %.1f %% uniform; %.1f of 32 lanes active\n", "control flow",
            thousands(COUNT(k, BRANCHES), a), 100 * branch_efficiency(k->count), lanes_per_step(k->count));
  int worst = 0;
  for (int i = 1; i < SIMT_TRAFFICS; i++)
    if (k->worst[i].cost - k->worst[i].ideal > k->worst[worst].cost - k->worst[worst].ideal) worst = i;
  if (remedy(&traffic[worst], k->count)) simt_inspect_draw(out, k, (SimtTraffic)worst);
}

static void print_party(FILE *out, const SimtFinding *f, int i) {
  const SimtParty *p = &f->party[i];
  char text[80];
  fprintf(out, "    %s:%d", p->place.file, p->place.line);
  if (p->place.function && *p->place.function) fprintf(out, " (%s)", p->place.function);
  if (!p->host && p->block != UINT64_MAX)
    fprintf(out, ": thread (%u,%u,%u) of block (%u,%u,%u)", p->thread_index.x, p->thread_index.y, p->thread_index.z,
            p->block_index.x, p->block_index.y, p->block_index.z);
  else if (p->host)
    fprintf(out, ": host code");
  fprintf(out, " %s\n", simt_access_text(p->access, p->bytes, text, sizeof text));
  if (i == 0 || p->place.line != f->party[0].place.line || p->place.file != f->party[0].place.file)
    quote_line(out, &p->place);
}

void simt_inspect_print_finding(FILE *out, const SimtInspectReport *r, const SimtFinding *f) {
  char times[32];
  fprintf(out, "=== simt: %s%s%s%s%s\n", simt_finding_name(f->kind), f->scope ? " " : "", f->scope ? f->scope : "",
          f->memory ? ": " : "", f->memory ? f->memory : "");
  if (f->kernel >= 0) {
    const SimtKernelReport *k = &r->kernels[f->kernel];
    fprintf(out, "    kernel %s, launched at %s:%d with <<<(%u,%u,%u), (%u,%u,%u)>>>\n", k->name, k->file, k->line,
            k->grid.x, k->grid.y, k->grid.z, k->block.x, k->block.y, k->block.z);
  }
  for (int i = 0; i < f->parties; i++) print_party(out, f, i);
  draw_race(out, &f->example);
  if (f->occurrences > 1) fprintf(out, "    %s times in total\n", thousands(f->occurrences, times));
  if (f->advice) fprintf(out, "    try: %s\n", f->advice);
}

static void print_table(FILE *out, const SimtInspectReport *r) {
  char text[32];
  for (int i = 0; i < r->finding_count; i++) simt_inspect_print_finding(out, r, &r->findings[i]);
  if (r->findings_dropped) fprintf(out, "=== simt: and %s more findings\n", thousands(r->findings_dropped, text));
  int findings = r->finding_count + r->told_count;
  fprintf(out, "\nsimt inspector: %d kernel%s, %d finding%s\n", r->kernel_count, r->kernel_count == 1 ? "" : "s",
          findings, findings == 1 ? "" : "s");
  for (int i = 0; i < r->kernel_count; i++) print_kernel(out, &r->kernels[i]);
  for (int i = 0; i < r->note_count; i++) fprintf(out, "note: %s\n", r->notes[i]);
}

/* ---- lines of source with counts ---- */

static const SimtLineReport *find_line(const SimtKernelReport *k, const char *file, int line) {
  for (int i = 0; i < k->line_count; i++)
    if (k->lines[i].place.line == line && strcmp(k->lines[i].place.file, file) == 0) return &k->lines[i];
  return NULL;
}

enum { CONTEXT = 3 }; /* lines shown around those that count */

static int near_a_counted_line(const SimtKernelReport *k, const char *file, int line) {
  for (int i = 0; i < k->line_count; i++) {
    int distance = k->lines[i].place.line - line;
    if (distance >= -CONTEXT && distance <= CONTEXT && strcmp(k->lines[i].place.file, file) == 0) return 1;
  }
  return 0;
}

/* Whether lines[i] is the first of its file. */
static int first_of_file(const SimtKernelReport *k, int i) {
  for (int j = 0; j < i; j++)
    if (strcmp(k->lines[j].place.file, k->lines[i].place.file) == 0) return 0;
  return k->lines[i].place.line > 0;
}

/* "32.00" sectors per request, "" without requests. */
static const char *per_request(const Traffic *t, const uint64_t *count, char text[32]) {
  text[0] = '\0';
  if (count[t->requests]) snprintf(text, 32, "%.2f", ratio(count[t->cost], count[t->requests]));
  return text;
}

static void print_source_file(FILE *out, const SimtKernelReport *k, const char *file) {
  Source source;
  if (open_source(file, &source) != 0) {
    fprintf(out, "  %s: %s: run the program in the folder that its source file is relative to\n", file,
            strerror(errno));
    return;
  }
  fprintf(out, "%s\n  sectors/request    wavefronts/request\n   load   store      load   store   lanes  line\n", file);
  int skipped = 0;
  for (int n = 1; n <= source.count; n++) {
    if (!near_a_counted_line(k, file, n)) {
      skipped = 1;
      continue;
    }
    if (skipped) fprintf(out, "%47s\n", "...");
    skipped = 0;
    const SimtLineReport *l = find_line(k, file, n);
    char cell[4][32] = {"", "", "", ""}, lanes[32] = "";
    if (l) {
      for (int i = 0; i < 4; i++) per_request(&traffic[i], l->count, cell[i]);
      if (l->count[SIMT_STEPS]) snprintf(lanes, sizeof lanes, "%.1f", lanes_per_step(l->count));
    }
    fprintf(out, "%7s %7s   %7s %7s  %6s  %4d  %s\n", cell[0], cell[1], cell[2], cell[3], lanes, n, source.line[n - 1]);
  }
  close_source(&source);
}

static void print_source(FILE *out, const SimtInspectReport *r) {
  for (int i = 0; i < r->kernel_count; i++) {
    const SimtKernelReport *k = &r->kernels[i];
    fprintf(out, "\n%s<<<(%u,%u,%u), (%u,%u,%u)>>>\n", k->name, k->grid.x, k->grid.y, k->grid.z, k->block.x, k->block.y,
            k->block.z);
    for (int j = 0; j < k->line_count; j++)
      if (first_of_file(k, j)) print_source_file(out, k, k->lines[j].place.file);
  }
}

/* ---- JSON ---- */

static void json_string(FILE *out, const char *text) {
  fputc('"', out);
  for (const unsigned char *c = (const unsigned char *)(text ? text : ""); *c; c++) {
    if (*c == '"' || *c == '\\')
      fprintf(out, "\\%c", *c);
    else if (*c < 0x20)
      fprintf(out, "\\u%04x", *c);
    else
      fputc(*c, out);
  }
  fputc('"', out);
}

static void json_text(FILE *out, const char *key, const char *text) {
  fprintf(out, "\"%s\": ", key);
  json_string(out, text);
}

static void json_triple(FILE *out, const char *key, uint3 v) {
  fprintf(out, "\"%s\": [%u, %u, %u]", key, v.x, v.y, v.z);
}

static void json_counters(FILE *out, const uint64_t *count, int zeros) {
  const char *separator = "";
  fputs("\"counters\": {", out);
  for (int i = 0; i < SIMT_COUNTERS; i++) {
    if (!zeros && !count[i]) continue;
    fprintf(out, "%s\"%s\": %" PRIu64, separator, simt_counter_names[i].name, count[i]);
    separator = ", ";
  }
  fputc('}', out);
}

/* Under Nsight Compute's names, for those that a GPU counts too. */
static void json_nsight(FILE *out, const uint64_t *count) {
  const char *separator = "";
  fputs("\"nsight\": {", out);
  for (int i = 0; i < SIMT_COUNTERS; i++) {
    if (!simt_counter_names[i].nsight) continue;
    fprintf(out, "%s\"%s\": %" PRIu64, separator, simt_counter_names[i].nsight, count[i]);
    separator = ", ";
  }
  fputc('}', out);
}

/* A ratio of what did not happen is absent. */
static void json_derived(FILE *out, const uint64_t *count) {
  const char *separator = "";
  fputs("\"derived\": {", out);
  for (int i = 0; i < TRAFFICS; i++) {
    const Traffic *t = &traffic[i];
    if (!count[t->requests]) continue;
    char name[32];
    snprintf(name, sizeof name, "%s", t->name);
    *strchr(name, ' ') = '_';
    name[strlen(name) - 1] = '\0'; /* global_load */
    fprintf(out, "%s\"%s_%s_per_request\": %.6g", separator, name, t->unit, ratio(count[t->cost], count[t->requests]));
    separator = ", ";
  }
  if (count[SIMT_STEPS])
    fprintf(out, "%s\"branch_efficiency\": %.6g, \"lanes_per_step\": %.6g", separator, branch_efficiency(count),
            lanes_per_step(count));
  fputc('}', out);
}

static void json_kernel(FILE *out, const SimtKernelReport *k) {
  fputs("{", out);
  json_text(out, "name", k->name);
  fputs(", ", out);
  json_text(out, "file", k->file);
  fprintf(out, ", \"line\": %d, ", k->line);
  json_triple(out, "grid", k->grid);
  fputs(", ", out);
  json_triple(out, "block", k->block);
  fprintf(out,
          ", \"static_shared\": %zu, \"dynamic_shared\": %zu, \"launches\": %" PRIu64 ", \"blocks\": %" PRIu64
          ", \"inspected_blocks\": %" PRIu64 ", \"estimated\": %s,\n     ",
          k->static_shared, k->dynamic_shared, k->launches, k->blocks, k->inspected_blocks,
          k->estimated ? "true" : "false");
  json_counters(out, k->count, 1);
  fputs(",\n     ", out);
  json_nsight(out, k->count);
  fputs(",\n     ", out);
  json_derived(out, k->count);
  fputs(",\n     \"lines\": [", out);
  for (int i = 0; i < k->line_count; i++) {
    const SimtLineReport *l = &k->lines[i];
    fputs(i ? ",\n       {" : "\n       {", out);
    json_text(out, "file", l->place.file);
    fprintf(out, ", \"line\": %d, ", l->place.line);
    json_text(out, "function", l->place.function);
    fputs(", ", out);
    json_counters(out, l->count, 0);
    fputs("}", out);
  }
  fputs("]}", out);
}

static void json_finding(FILE *out, const SimtFinding *f) {
  char text[80];
  fputs("{", out);
  json_text(out, "kind", simt_finding_name(f->kind));
  fprintf(out, ", \"kernel\": %d, \"occurrences\": %" PRIu64, f->kernel, f->occurrences);
  if (f->scope) fputs(", ", out), json_text(out, "scope", f->scope);
  if (f->memory) fputs(", ", out), json_text(out, "memory", f->memory);
  if (f->advice) fputs(", ", out), json_text(out, "advice", f->advice);
  fputs(", \"parties\": [", out);
  for (int i = 0; i < f->parties; i++) {
    const SimtParty *p = &f->party[i];
    fputs(i ? ", {" : "{", out);
    json_text(out, "file", p->place.file);
    fprintf(out, ", \"line\": %d, ", p->place.line);
    json_text(out, "function", p->place.function);
    fputs(", ", out);
    json_text(out, "access", simt_access_text(p->access, p->bytes, text, sizeof text));
    if (!p->host && p->block != UINT64_MAX) {
      fputs(", ", out);
      json_triple(out, "block", p->block_index);
      fputs(", ", out);
      json_triple(out, "thread", p->thread_index);
    }
    fputs("}", out);
  }
  fputs("]}", out);
}

static void print_json(FILE *out, const SimtInspectReport *r) {
  fputs("{\"inspector\": 1,\n \"kernels\": [", out);
  for (int i = 0; i < r->kernel_count; i++) {
    fputs(i ? ",\n    " : "\n    ", out);
    json_kernel(out, &r->kernels[i]);
  }
  fputs("],\n \"findings\": [", out);
  for (int i = 0; i < r->finding_count; i++) {
    fputs(i ? ",\n    " : "\n    ", out);
    json_finding(out, &r->findings[i]);
  }
  fprintf(out, "],\n \"findings_dropped\": %" PRIu64 ", \"diagnoses\": [", r->findings_dropped);
  for (int i = 0; i < r->told_count; i++) {
    if (i) fputs(", ", out);
    json_string(out, r->told[i]);
  }
  fputs("], \"notes\": [", out);
  for (int i = 0; i < r->note_count; i++) {
    if (i) fputs(", ", out);
    json_string(out, r->notes[i]);
  }
  fputs("]}\n", out);
}

/* ---- HTML ---- */

static void html_text(FILE *out, const char *text) {
  for (; text && *text; text++) {
    if (*text == '<')
      fputs("&lt;", out);
    else if (*text == '>')
      fputs("&gt;", out);
    else if (*text == '&')
      fputs("&amp;", out);
    else if (*text == '"')
      fputs("&quot;", out);
    else
      fputc(*text, out);
  }
}

static const char html_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>simt inspector</title>\n<style>\n"
    ":root { --back: #fff; --text: #1d2126; --dim: #6b7480; --line: #dfe3e8; --bad: #b3261e; --heat: 222, 90, 20; }\n"
    "@media (prefers-color-scheme: dark) { :root { --back: #16191d; --text: #e3e6ea; --dim: #8d96a1; --line: #31373e; "
    "--bad: #ff8a80; --heat: 235, 110, 40; } }\n"
    "body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; "
    "max-width: 76em; padding: 0 1em; }\n"
    "h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 2.5em 0 0; border-top: 1px solid var(--line); "
    "padding-top: 1em; }\n"
    "code, pre, td.n, td.s { font-family: ui-monospace, monospace; font-size: 13px; }\n"
    ".dim { color: var(--dim); } .bad { color: var(--bad); font-weight: 600; }\n"
    "table { border-collapse: collapse; } th { text-align: right; font-weight: 500; color: var(--dim); font-size: "
    "13px; "
    "padding: 0 .8em; } th.l, td.l { text-align: left; }\n"
    "td { padding: 0 .8em; } td.n { text-align: right; white-space: nowrap; } td.s { white-space: pre; width: 100%; }\n"
    ".scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; margin: .8em 0; padding: .4em 0; "
    "}\n"
    ".finding { border-left: 4px solid var(--bad); padding: .2em 1em; margin: 1em 0; }\n"
    "</style></head><body>\n";

static void html_kernel_figures(FILE *out, const SimtKernelReport *k) {
  char a[32], b[32];
  fputs(
      "<div class=\"scroll\"><table><tr><th class=\"l\">access</th><th>requests</th><th></th><th>a request</th>"
      "<th>ideal</th><th class=\"l\">what to try</th></tr>\n",
      out);
  for (int i = 0; i < TRAFFICS; i++) {
    const Traffic *t = &traffic[i];
    if (!k->count[t->requests]) continue;
    const char *advice = remedy(t, k->count);
    fprintf(out,
            "<tr><td class=\"l\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s %s</td><td class=\"n%s\">%.2f</td>"
            "<td class=\"n\">%.2f</td><td class=\"l\">%s</td></tr>\n",
            t->name, thousands(k->count[t->requests], a), thousands(k->count[t->cost], b), t->unit,
            advice ? " bad" : "", ratio(k->count[t->cost], k->count[t->requests]),
            ratio(least(t, k->count), k->count[t->requests]), advice ? advice : "");
  }
  fputs("</table></div>\n", out);
  if (COUNT(k, STEPS))
    fprintf(out, "<p>%s branches, %.1f %% of them uniform; on average %.1f of a warp's 32 lanes active.</p>\n",
            thousands(COUNT(k, BRANCHES), a), 100 * branch_efficiency(k->count), lanes_per_step(k->count));
}

static void html_source_file(FILE *out, const SimtKernelReport *k, const char *file, uint64_t most) {
  Source source;
  fprintf(out, "<h3>");
  html_text(out, file);
  fprintf(out, "</h3>\n");
  if (open_source(file, &source) != 0) {
    fprintf(out, "<p class=\"dim\">%s: run the program in the folder that its source file is relative to.</p>\n",
            strerror(errno));
    return;
  }
  fputs(
      "<div class=\"scroll\"><table><tr><th colspan=\"2\">sectors / request</th><th colspan=\"2\">wavefronts / request"
      "</th><th></th><th></th><th></th></tr>\n<tr><th>load</th><th>store</th><th>load</th><th>store</th><th>lanes</th>"
      "<th>line</th><th></th></tr>\n",
      out);
  for (int n = 1, skipped = 0; n <= source.count; n++) {
    if (!near_a_counted_line(k, file, n)) {
      if (!skipped++) fputs("<tr><td colspan=\"7\" class=\"dim\" style=\"text-align: center\">...</td></tr>\n", out);
      continue;
    }
    skipped = 0;
    const SimtLineReport *l = find_line(k, file, n);
    double heat = l && most ? ratio(cost(l->count), most) : 0;
    fprintf(out, "<tr style=\"background: rgba(var(--heat), %.3f)\">", heat * 0.65);
    for (int i = 0; i < 4; i++) {
      char text[32] = "";
      if (l) per_request(&traffic[i], l->count, text);
      fprintf(out, "<td class=\"n%s\">%s</td>", l && text[0] && remedy(&traffic[i], l->count) ? " bad" : "", text);
    }
    if (l && l->count[SIMT_STEPS])
      fprintf(out, "<td class=\"n\">%.1f</td>", lanes_per_step(l->count));
    else
      fputs("<td></td>", out);
    fprintf(out, "<td class=\"n dim\">%d</td><td class=\"s\">", n);
    html_text(out, source.line[n - 1]);
    fputs("</td></tr>\n", out);
  }
  fputs("</table></div>\n", out);
  close_source(&source);
}

static void html_finding(FILE *out, const SimtInspectReport *r, const SimtFinding *f) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  if (!memory) abort();
  simt_inspect_print_finding(memory, r, f);
  fclose(memory);
  fputs("<div class=\"finding\"><pre>", out);
  html_text(out, strncmp(text, "=== simt: ", 10) == 0 ? text + 10 : text);
  fputs("</pre></div>\n", out);
  free(text);
}

static void print_html(FILE *out, const SimtInspectReport *r) {
  int findings = r->finding_count + r->told_count;
  fputs(html_head, out);
  fprintf(out, "<h1>simt inspector: %d kernel%s, %d finding%s</h1>\n", r->kernel_count, r->kernel_count == 1 ? "" : "s",
          findings, findings == 1 ? "" : "s");
  fputs(
      "<p class=\"dim\">A request is one memory instruction of one warp; a sector is 32 bytes of device memory; a "
      "wavefront serves each of the 32 banks of shared memory once. The warmer the colour of a line, the larger its "
      "share of the "
      "kernel's sectors, wavefronts and atomic turns. Red: more than 25 % above the ideal.</p>\n",
      out);
  for (int i = 0; i < r->told_count; i++) {
    fputs("<div class=\"finding\"><pre>", out);
    html_text(out, r->told[i]);
    fputs("</pre></div>\n", out);
  }
  for (int i = 0; i < r->finding_count; i++) html_finding(out, r, &r->findings[i]);
  for (int i = 0; i < r->kernel_count; i++) {
    const SimtKernelReport *k = &r->kernels[i];
    uint64_t most = 0;
    for (int j = 0; j < k->line_count; j++)
      if (cost(k->lines[j].count) > most) most = cost(k->lines[j].count);
    fputs("<h2><code>", out);
    html_text(out, k->name);
    fprintf(out, "&lt;&lt;&lt;(%u,%u,%u), (%u,%u,%u)&gt;&gt;&gt;</code></h2>\n<p class=\"dim\">launched at ", k->grid.x,
            k->grid.y, k->grid.z, k->block.x, k->block.y, k->block.z);
    html_text(out, k->file);
    fprintf(out, ":%d, %" PRIu64 " launch%s%s</p>\n", k->line, k->launches, k->launches == 1 ? "" : "es",
            k->estimated ? "; counts estimated from a sample of the blocks" : "");
    html_kernel_figures(out, k);
    for (int j = 0; j < k->line_count; j++)
      if (first_of_file(k, j)) html_source_file(out, k, k->lines[j].place.file, most);
  }
  for (int i = 0; i < r->note_count; i++) {
    fputs("<p class=\"dim\">", out);
    html_text(out, r->notes[i]);
    fputs("</p>\n", out);
  }
  fputs("</body></html>\n", out);
}

/* ---- which ---- */

typedef void Print(FILE *out, const SimtInspectReport *report);

/* Written beside the file and renamed, so that a reader never sees half of it. */
static void write_file(const char *path, Print *print, const SimtInspectReport *r) {
  if (strcmp(path, "-") == 0) {
    fflush(stdout);
    print(stdout, r);
    fflush(stdout);
    return;
  }
  size_t size = strlen(path) + 32;
  char *temporary = malloc(size);
  if (!temporary) abort();
  snprintf(temporary, size, "%s.%d", path, (int)getpid());
  FILE *out = fopen(temporary, "w");
  int failed = !out;
  if (out) {
    print(out, r);
    failed = ferror(out);
    failed |= fclose(out) != 0;
    failed = failed || rename(temporary, path) != 0;
  }
  if (failed) {
    fprintf(stderr, "=== simt: SIMT_REPORT: %s cannot be written: %s\n", path, strerror(errno));
    unlink(temporary);
  }
  free(temporary);
}

void simt_inspect_write_reports(const SimtInspectReport *r) {
  const char *wanted = getenv("SIMT_REPORT");
  char *list = strdup(wanted && *wanted ? wanted : "table"), *rest = NULL;
  if (!list) abort();
  fflush(stdout);
  for (char *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
    if (strcmp(item, "table") == 0)
      print_table(stderr, r);
    else if (strcmp(item, "source") == 0)
      print_source(stderr, r);
    else if (strncmp(item, "json:", 5) == 0 && item[5])
      write_file(item + 5, print_json, r);
    else if (strncmp(item, "html:", 5) == 0 && item[5])
      write_file(item + 5, print_html, r);
    else if (strcmp(item, "none") != 0)
      fprintf(stderr, "=== simt: SIMT_REPORT=%s: expected table, source, json:FILE, html:FILE or none\n", item);
  }
  free(list);
}
