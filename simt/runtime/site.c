/* site.c - where a call of the API stands in the program, and reports about it. */
#include "host.h"

static __thread SimtSite told; /* by simt_at(), for the next call */

void simt_at(const char *file, int line) { told = (SimtSite){.file = file, .line = line}; }

SimtSite simt_caller(const void *return_address) {
  SimtSite site = told;
  told.file = NULL;
  if (!site.file) site = (SimtSite){.address = (const char *)return_address - 1}; /* in the call, not behind it */
  return site;
}

const char *simt_site_text(const char *call, SimtSite site, char *text, size_t size) {
  char place[384];
  if (site.file)
    snprintf(text, size, "%s at %s:%d", call, site.file, site.line);
  else if (site.address && strncmp(simt_where(site.address, place, sizeof place), "0x", 2) != 0)
    snprintf(text, size, "%s at %s", call, place);
  else
    snprintf(text, size, "%s", call);
  return text;
}

int simt_same_site(SimtSite a, SimtSite b) {
  if (a.file && b.file) return a.line == b.line && strcmp(a.file, b.file) == 0;
  return !a.file && !b.file && a.address == b.address;
}

const char *simt_memory_text(const SimtMemory *memory, char *text, size_t size) {
  char site[448];
  snprintf(text, size, "%zu bytes of %s", memory->size, simt_site_text(memory->call, memory->site, site, sizeof site));
  return text;
}

/* A loop that makes the same mistake a thousand times is told of it once. */
static int is_new(const char *kind, SimtSite site) {
  enum { MOST = 256 };
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static struct {
    const char *kind;
    SimtSite site;
  } places[MOST];
  static int count;
  int known = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < count && !known; i++)
    known = strcmp(places[i].kind, kind) == 0 && simt_same_site(places[i].site, site);
  int new_one = !known && count < MOST;
  if (new_one) {
    places[count].kind = kind;
    places[count++].site = site;
  }
  pthread_mutex_unlock(&lock);
  return new_one;
}

void simt_report_call(const char *kind, const char *call, SimtSite site, const char *format, ...) {
  char at[512], text[2048];
  va_list arguments;
  if (!is_new(kind, site)) return;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  simt_report_host("%s: %s: %s", kind, simt_site_text(call, site, at, sizeof at), text);
}
