/* report.c - collects counts and findings while kernels run, and makes the report of them. */
#include <ctype.h>
#include <unistd.h>

#include "parts.h"

/* ---- settings ---- */

static const char *only_kernel;
static unsigned long long sample = 1;
static int separate_launches;

static void close_inspector(void) {
  const SimtInspectReport *report = simt_inspect_report();
  const char *code = getenv("SIMT_INSPECT_EXIT");
  simt_inspect_write_reports(report);
  if (!code || !(report->finding_count + report->told_count)) return;
  fflush(NULL);
  _exit(atoi(code));
}

/* Called by a constructor of each instrumented object file, before main(). */
void __tsan_init(void);
void __tsan_init(void) {
  static int done;
  if (done) return;
  done = 1;
  const char *setting = getenv("SIMT_INSPECT_SAMPLE");
  if (setting && atoll(setting) > 1) sample = (unsigned long long)atoll(setting);
  setting = getenv("SIMT_INSPECT_LAUNCHES");
  separate_launches = setting && atoi(setting);
  only_kernel = getenv("SIMT_INSPECT_KERNEL");
  simt_symbols_open();
  simt_memory_open();
  atexit(close_inspector);
}

/* ---- counts ---- */

static KernelEntry *entries;
static int entry_count;
static int current = -1; /* the entry of the running launch; -1: not inspected */

static int same_launch(const SimtKernelReport *r, const SimtKernel *k) {
  return r->line == k->line && r->dynamic_shared == k->shared_bytes &&
         memcmp(&r->grid, &k->grid, sizeof r->grid) == 0 && memcmp(&r->block, &k->block, sizeof r->block) == 0 &&
         strcmp(r->name, k->name) == 0 && strcmp(r->file, k->file) == 0;
}

void simt_inspect_launch_begin(const SimtKernel *k) {
  __tsan_init();
  simt_race_launch(k);
  simt_memory_launch(k);
  simt_judge_launch();
  if (simt_device_count() > 1) simt_object_era++; /* another device may use other memory */
  current = -1;
  if (only_kernel && !strstr(k->name, only_kernel)) {
    simt_writes_unseen = 1;
    return;
  }
  for (int i = entry_count - 1; i >= 0 && !separate_launches && current < 0; i--)
    if (same_launch(&entries[i].report, k)) current = i;
  if (current < 0) {
    if (!(entry_count & (entry_count - 1)))
      entries = realloc(entries, (entry_count ? 2 * (size_t)entry_count : 1) * sizeof *entries);
    if (!entries) abort();
    entries[entry_count] = (KernelEntry){.report = {.name = k->name,
                                                    .file = k->file,
                                                    .line = k->line,
                                                    .grid = k->grid,
                                                    .block = k->block,
                                                    .static_shared = simt_static_shared_by_name(k->name),
                                                    .dynamic_shared = k->shared_bytes}};
    current = entry_count++;
  }
  entries[current].report.launches++;
}

void simt_inspect_launch_end(const SimtKernel *k) {
  (void)k;
  current = -1;
}

int simt_wants_block(unsigned long long block) {
  if (current < 0) return 0;
  SimtKernelReport *r = &entries[current].report;
  int wanted = block % sample == 0;
  __atomic_fetch_add(&r->blocks, 1, __ATOMIC_RELAXED);
  if (wanted)
    __atomic_fetch_add(&r->inspected_blocks, 1, __ATOMIC_RELAXED);
  else
    simt_writes_unseen = 1;
  return wanted;
}

/* Whether a block branches is known from the code, or else from what followed it. */
static int branches(unsigned site) {
  const SiteFlow *flow = simt_flow_at(simt_site_pc(site));
  return flow->rank ? flow->branches : flow->next[1] != 0;
}

static void forget_findings(void);

void simt_inspect_forget(void) {
  for (int i = 0; i < entry_count; i++) {
    for (unsigned site = 0; site < entries[i].sites; site++) {
      if (entries[i].site[site]) free(entries[i].site[site]->worst);
      free(entries[i].site[site]);
    }
    free(entries[i].site);
  }
  free(entries);
  entries = NULL;
  entry_count = 0;
  forget_findings();
}

uint64_t simt_inspect_counts(const char *kernel, uint64_t count[SIMT_COUNTERS]) {
  uint64_t launches = 0;
  memset(count, 0, SIMT_COUNTERS * sizeof *count);
  for (int i = 0; i < entry_count; i++) {
    const KernelEntry *e = &entries[i];
    if (kernel && !strstr(e->report.name, kernel)) continue;
    launches += e->report.launches;
    for (unsigned site = 0; site < e->sites; site++) {
      const SiteCounts *counts = e->site[site];
      if (!counts) continue;
      for (int c = 0; c < SIMT_COUNTERS; c++) count[c] += counts->count[c];
      if (!counts->left || !branches(site)) continue;
      count[SIMT_BRANCHES] += counts->left;
      count[SIMT_UNIFORM_BRANCHES] += counts->left - counts->left_apart;
    }
  }
  return launches;
}

void simt_count_work(const Inspector *in) {
  SimtWork *work = &entries[current].work;
  uint64_t warps = work->working_warps;
  for (int i = 0; i < in->warps; i++) {
    work->working_warps += in->warp_view[i].working != 0;
    work->working_threads += (unsigned)__builtin_popcount(in->warp_view[i].working);
  }
  work->working_blocks += work->working_warps > warps;
}

SimtWork simt_inspect_work(const char *kernel) {
  SimtWork sum = {0};
  for (int i = 0; i < entry_count; i++) {
    const SimtKernelReport *r = &entries[i].report;
    const SimtWork *work = &entries[i].work;
    if (kernel && !strstr(r->name, kernel)) continue;
    sum.launches += r->launches;
    sum.blocks += r->blocks;
    sum.threads += r->blocks * r->block.x * r->block.y * r->block.z;
    sum.working_blocks += work->working_blocks;
    sum.working_warps += work->working_warps;
    sum.working_threads += work->working_threads;
  }
  return sum;
}

SiteCounts *simt_site_counts(unsigned site) {
  KernelEntry *e = &entries[current];
  if (site >= e->sites) {
    unsigned sites = 2 * site + 64;
    e->site = realloc(e->site, sites * sizeof *e->site);
    if (!e->site) abort();
    memset(e->site + e->sites, 0, (sites - e->sites) * sizeof *e->site);
    e->sites = sites;
  }
  if (!e->site[site] && !(e->site[site] = calloc(1, sizeof *e->site[site]))) abort();
  return e->site[site];
}

/* ---- findings ---- */

typedef struct Found {
  SimtFinding finding;
  unsigned site[2];
} Found;

enum { MAX_FINDINGS = 1000, SLOTS = 4096 };
static Found found[MAX_FINDINGS];
static int found_count, slot[SLOTS]; /* index + 1, by hash of kind and sites */
static uint64_t dropped;
static const char *notes[8];
static int note_count;
enum { MAX_TOLD = 100 };
static char *told[MAX_TOLD]; /* diagnoses that the runtime has printed */
static int told_count;

void simt_inspect_told(const char *text) {
  if (told_count < MAX_TOLD && (told[told_count] = strdup(text))) told_count++;
}

static int *slot_of(SimtFindingKind kind, unsigned site, unsigned other) {
  unsigned i = (unsigned)simt_mix((uint64_t)kind << 32 | (uint64_t)site << 16 | other) % SLOTS;
  for (; slot[i]; i = (i + 1) % SLOTS) {
    const Found *f = &found[slot[i] - 1];
    if (f->finding.kind == kind && f->site[0] == site && f->site[1] == other) break;
  }
  return &slot[i];
}

int simt_found_before(SimtFindingKind kind, unsigned site, unsigned other) {
  int index = *slot_of(kind, site, other);
  if (index) found[index - 1].finding.occurrences++;
  return index != 0;
}

static int reach(const char *scope) {
  int i = 0;
  while (i < 2 && simt_race_scopes[i] != scope) i++;
  return i;
}

int simt_race_known(unsigned site, unsigned other, const char *scope) {
  int index = *slot_of(SIMT_DATA_RACE, site, other);
  if (!index || reach(found[index - 1].finding.scope) < reach(scope)) return 0;
  found[index - 1].finding.occurrences++;
  return 1;
}

void simt_index_used(unsigned site, unsigned access, int bytes) {
  int index = *slot_of(SIMT_OUT_OF_BOUNDS, site, 0);
  if (!index) return;
  found[index - 1].finding.party[0].access = access;
  found[index - 1].finding.party[0].bytes = bytes;
}

static SimtParty party_of(const RaceParty *p) {
  SimtParty party = {.place = p->place, .access = p->access, .bytes = p->bytes, .block = p->block, .host = p->rank < 0};
  if (p->rank < 0 || p->block == UINT64_MAX || current < 0) return party;
  const SimtKernelReport *r = &entries[current].report;
  unsigned rank = (unsigned)p->rank;
  unsigned long long plane = (unsigned long long)r->grid.x * r->grid.y;
  party.thread_index = (uint3){rank % r->block.x, rank / r->block.x % r->block.y, rank / (r->block.x * r->block.y)};
  party.block_index =
      (uint3){(unsigned)(p->block % r->grid.x), (unsigned)(p->block % plane / r->grid.x), (unsigned)(p->block / plane)};
  return party;
}

void simt_find(SimtFindingKind kind, int parties, const RaceParty party[2], const char *scope, char *memory,
               const char *advice) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* host threads find, too */
  pthread_mutex_lock(&lock);
  unsigned other = parties > 1 ? party[1].site : 0;
  int *at = slot_of(kind, party[0].site, other);
  SimtFinding *known = *at ? &found[*at - 1].finding : NULL;
  if (known && kind == SIMT_DATA_RACE && reach(known->scope) < reach(scope)) { /* its remedy mends the narrower, too */
    known->party[0] = party_of(&party[0]);
    known->party[1] = party_of(&party[1]);
    known->scope = scope;
    known->kernel = current;
    free(known->memory);
    free(known->advice);
    known->memory = memory;
    known->advice = strdup(advice);
    known->occurrences++;
  } else if (known) {
    known->occurrences++;
    free(memory);
  } else if (found_count == MAX_FINDINGS) {
    dropped++;
    free(memory);
  } else {
    Found *f = &found[found_count];
    f->site[0] = party[0].site;
    f->site[1] = other;
    f->finding = (SimtFinding){.kind = kind,
                               .kernel = current,
                               .parties = parties,
                               .party = {party_of(&party[0]), party_of(&party[parties - 1])},
                               .scope = scope,
                               .memory = memory,
                               .advice = strdup(advice),
                               .occurrences = 1};
    *at = ++found_count;
  }
  pthread_mutex_unlock(&lock);
}

void simt_find_example(SimtFindingKind kind, unsigned site, unsigned other, const SimtRequest *request,
                       uint32_t racing) {
  int index = *slot_of(kind, site, other);
  if (index) found[index - 1].finding.example = simt_example_of(request, racing);
}

static void forget_findings(void) {
  for (int i = 0; i < found_count; i++) {
    free(found[i].finding.memory);
    free(found[i].finding.advice);
  }
  memset(found, 0, sizeof found);
  memset(slot, 0, sizeof slot);
  found_count = 0;
  dropped = 0;
  note_count = 0;
  while (told_count > 0) free(told[--told_count]);
}

int simt_inspect_saw_outside(void) {
  for (int i = 0; i < found_count; i++)
    if (found[i].finding.kind == SIMT_OUT_OF_BOUNDS) return 1;
  return 0;
}

int simt_inspect_findings(void) { return found_count; }

void simt_note(const char *text) {
  for (int i = 0; i < note_count; i++)
    if (notes[i] == text) return;
  if (note_count < 8) notes[note_count++] = text;
}

const char *simt_finding_name(SimtFindingKind kind) {
#define ROW(kind, name) name,
  static const char *const names[SIMT_FINDING_KINDS] = {SIMT_FINDING_LIST(ROW)};
#undef ROW
  return names[kind];
}

const char *simt_access_text(unsigned access, int bytes, char *text, size_t size) {
  if (access & SIMT_ACCESS_INDEX) {
    snprintf(text, size, "uses that index");
    return text;
  }
  snprintf(text, size, "%s%s", access & SIMT_ACCESS_ATOMIC ? "atomically " : "",
           access & SIMT_ACCESS_WRITE ? "writes" : "reads");
  size_t used = strlen(text);
  if (bytes && used < size)
    snprintf(text + used, size - used, " %d byte%s%s", bytes, bytes == 1 ? "" : "s",
             access & SIMT_ACCESS_VOLATILE ? " (volatile)" : "");
  return text;
}

/* ---- the report ---- */

static SimtPlace *places; /* by site */
static unsigned place_count;

static void resolve(void) {
  unsigned count = simt_site_count(), first = place_count ? place_count : 1;
  places = realloc(places, count * sizeof *places);
  if (!places) abort();
  places[0] = (SimtPlace){"?", "?", 0};
  for (unsigned i = first; i < count; i++) places[i] = simt_place_of(simt_site_pc(i));
  place_count = count;
}

static int same_place(const SimtPlace *a, const SimtPlace *b) { return a->line == b->line && a->file == b->file; }

static int by_place(const void *a, const void *b) {
  const SimtPlace *x = &((const SimtLineReport *)a)->place, *y = &((const SimtLineReport *)b)->place;
  int order = x->file == y->file ? 0 : strcmp(x->file, y->file);
  return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* The line of a branch is that of its jump. */
static unsigned branch_site(unsigned site) {
  const SiteFlow *flow = simt_flow_at(simt_site_pc(site));
  return flow->branch ? simt_site_of(flow->branch + 1) : site;
}

static void add_counts(SimtKernelReport *r, const SimtPlace *place, const uint64_t *count, double scale, int *lines) {
  SimtLineReport *l = &r->lines[(*lines)++];
  l->place = *place;
  for (int c = 0; c < SIMT_COUNTERS; c++) {
    l->count[c] = r->estimated ? (uint64_t)((double)count[c] * scale + 0.5) : count[c];
    r->count[c] += l->count[c];
  }
}

/* The line that wastes most, and of its instructions the request that does. */
static void find_worst(const KernelEntry *e, SimtKernelReport *r, SimtTraffic t) {
  static const SimtCounter counter[SIMT_TRAFFICS] = {SIMT_GLOBAL_LOAD_SECTORS, SIMT_GLOBAL_STORE_SECTORS,
                                                     SIMT_SHARED_LOAD_WAVEFRONTS, SIMT_SHARED_STORE_WAVEFRONTS};
  SimtWorst *worst = &r->worst[t];
  for (int i = 0; i < r->line_count; i++) {
    const uint64_t *count = &r->lines[i].count[counter[t]]; /* the next one: the ideal, or what is beyond it */
    uint64_t ideal = t < SIMT_SHARED_LOADS ? count[1] : count[0] - count[1];
    if (!r->lines[i].place.line || count[0] - ideal <= worst->cost - worst->ideal) continue;
    *worst = (SimtWorst){.place = r->lines[i].place, .cost = count[0], .ideal = ideal};
  }
  worst->of_all = r->count[counter[t]];
  int waste = 0;
  for (unsigned site = 0; site < e->sites && worst->cost; site++) {
    const SiteCounts *c = e->site[site];
    if (!c || !c->worst || c->waste <= waste || !c->count[counter[t]] || !same_place(&places[site], &worst->place))
      continue;
    waste = c->waste;
    worst->example = *c->worst;
  }
}

static void report_kernel(const KernelEntry *e, SimtKernelReport *r) {
  *r = e->report;
  r->estimated = r->inspected_blocks < r->blocks;
  double scale = r->inspected_blocks ? (double)r->blocks / (double)r->inspected_blocks : 0;
  r->lines = calloc(2 * (size_t)e->sites + 1, sizeof *r->lines);
  if (!r->lines) abort();
  int count = 0;
  for (unsigned site = 0; site < e->sites; site++) {
    const SiteCounts *counts = e->site[site];
    if (!counts) continue;
    add_counts(r, &places[site], counts->count, scale, &count);
    if (!counts->left || !branches(site)) continue;
    uint64_t branch[SIMT_COUNTERS] = {
        [SIMT_BRANCHES] = counts->left, [SIMT_UNIFORM_BRANCHES] = counts->left - counts->left_apart};
    add_counts(r, &places[branch_site(site)], branch, scale, &count);
  }
  qsort(r->lines, (size_t)count, sizeof *r->lines, by_place);
  for (int i = 0; i < count; i++) { /* sites of one line */
    SimtLineReport *last = r->line_count ? &r->lines[r->line_count - 1] : NULL;
    if (!last || !same_place(&last->place, &r->lines[i].place)) {
      r->lines[r->line_count++] = r->lines[i];
      continue;
    }
    for (int c = 0; c < SIMT_COUNTERS; c++) last->count[c] += r->lines[i].count[c];
  }
  for (int t = 0; t < SIMT_TRAFFICS; t++) find_worst(e, r, (SimtTraffic)t);
}

/* The same lines by other instructions: one finding. Of races the one that reaches furthest stands for all, and one of
 * two writes, whose remedy mends reads of the same line as well. */
static int same_finding(const SimtFinding *a, const SimtFinding *b) {
  if (a->kind != b->kind || a->parties != b->parties || a->kernel != b->kernel) return 0;
  const SimtParty *p = a->party, *q = b->party;
  if (same_place(&p[0].place, &q[0].place) && same_place(&p[1].place, &q[1].place)) return 1;
  return same_place(&p[0].place, &q[1].place) && same_place(&p[1].place, &q[0].place);
}

static int stands_for(const SimtFinding *a, const SimtFinding *b) {
  if (a->kind != SIMT_DATA_RACE) return b->party[0].access == SIMT_ACCESS_INDEX; /* a tells what is done with it */
  int wider = reach(a->scope) - reach(b->scope);
  int writes =
      (int)(a->party[0].access & a->party[1].access & ~(b->party[0].access & b->party[1].access)) & SIMT_ACCESS_WRITE;
  return wider > 0 || (wider == 0 && writes);
}

/* A read that races with atomic operations only, and is the guess that a compare-and-swap then checks. */
static int is_a_guess(const Found *f) {
  for (int i = 0; i < 2; i++)
    if (!(f->finding.party[i].access & SIMT_ACCESS_WRITE) &&
        (f->finding.party[1 - i].access & (SIMT_ACCESS_ATOMIC | SIMT_ACCESS_VOLATILE)) &&
        simt_site_flow(f->site[i])->is_guess)
      return f->finding.kind == SIMT_DATA_RACE;
  return 0;
}

static void report_findings(SimtInspectReport *report) {
  report->findings = calloc((size_t)found_count + 1, sizeof *report->findings);
  if (!report->findings) abort();
  for (int i = 0; i < found_count; i++) {
    if (is_a_guess(&found[i])) continue;
    SimtFinding f = found[i].finding;
    for (int p = 0; p < f.parties; p++)
      if (!f.party[p].place.line) f.party[p].place = places[found[i].site[p]];
    int known = 0;
    while (known < report->finding_count && !same_finding(&report->findings[known], &f)) known++;
    if (known == report->finding_count) {
      report->findings[report->finding_count++] = f;
      continue;
    }
    uint64_t occurrences = report->findings[known].occurrences + f.occurrences;
    if (stands_for(&f, &report->findings[known])) report->findings[known] = f;
    report->findings[known].occurrences = occurrences;
  }
  report->findings_dropped = dropped;
}

const SimtInspectReport *simt_inspect_report(void) {
  static SimtInspectReport report;
  for (int i = 0; i < report.kernel_count; i++) free(report.kernels[i].lines);
  free(report.kernels);
  free(report.findings);
  report = (SimtInspectReport){.kernel_count = entry_count,
                               .note_count = note_count,
                               .told = (const char *const *)told,
                               .told_count = told_count};
  memcpy(report.notes, notes, sizeof notes);
  for (int i = 0; i < entry_count; i++)
    for (unsigned site = 1; site < entries[i].sites; site++)
      if (entries[i].site[site] && entries[i].site[site]->left) branch_site(site); /* a place to look up, too */
  resolve();
  report.kernels = calloc((size_t)entry_count + 1, sizeof *report.kernels);
  if (!report.kernels) abort();
  for (int i = 0; i < entry_count; i++) report_kernel(&entries[i], &report.kernels[i]);
  report_findings(&report);
  return &report;
}
