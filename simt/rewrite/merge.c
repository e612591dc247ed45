/* merge.c - __CUDA_ARCH__.
 *
 * nvcc compiles a file twice, for the host without __CUDA_ARCH__ and for the GPU with it, and the program gets the
 * functions of both. Here there is one compilation, of the host's text, in which
 *
 *     kernels and __device__ functions are those of the device's text, also where only that one has them;
 *     a __host__ __device__ function whose bodies differ has both, and asks at run time where it is. */
#include "merge.h"

#include <stdio.h>
#include <string.h>

#include "parse.h"

typedef struct Parsed {
  Token *tokens;
  int token_count;
  Item *items;
  int item_count;
  const char *text;
} Parsed;

static Parsed parsed(const char *text) {
  parse(text);
  return (Parsed){tokens, token_count, items, item_count, text};
}

static bool same_text(const Parsed *a, int i, const Parsed *b, int j) {
  return a->tokens[i].length == b->tokens[j].length &&
         memcmp(a->tokens[i].text, b->tokens[j].text, a->tokens[i].length) == 0;
}

static bool same_tokens(const Parsed *a, int i, int a_end, const Parsed *b, int j, int b_end) {
  for (; i < a_end && j < b_end; i++, j++)
    if (!same_text(a, i, b, j)) return false;
  return i == a_end && j == b_end;
}

/* The same place in the source? */
static bool same_item(const Parsed *a, int k, const Parsed *b, int l) {
  const Item *x = &a->items[k], *y = &b->items[l];
  const Token *s = &a->tokens[x->start], *t = &b->tokens[y->start];
  if (s->line != t->line || strcmp(s->file, t->file) != 0 || (x->name < 0) != (y->name < 0)) return false;
  return x->name < 0 ? same_text(a, x->start, b, y->start) : same_text(a, x->name, b, y->name);
}

static bool has_assembly(const Parsed *p, const Item *item) {
  for (int i = item->body; i < item->end; i++)
    if (p->tokens[i].kind == IDENTIFIER && (begins(p->tokens[i].text, "asm") || begins(p->tokens[i].text, "__asm")) &&
        (p->tokens[i].length == 3 || p->tokens[i].length == 5 || p->tokens[i].length == 7))
      return true;
  return false;
}

static void append_marker(Text *out, const Token *token) { appendf(out, "\n# %d \"%s\"\n", token->line, token->file); }

/* The tokens [first, end) of p with the space between them; its own line markers come with it. */
static void append_tokens(Text *out, const Parsed *p, int first, int end) {
  append_marker(out, &p->tokens[first]);
  const Token *last = &p->tokens[end - 1];
  append(out, p->tokens[first].text, (size_t)(last->text + last->length - p->tokens[first].text));
}

/* The bracket around the item; items are neighbours if it is the same one. */
static bool same_scope(const Parsed *a, int k, const Parsed *b, int l) {
  int i = a->tokens[a->items[k].start].parent, j = b->tokens[b->items[l].start].parent;
  if (i < 0 || j < 0) return i < 0 && j < 0;
  return a->tokens[i].line == b->tokens[j].line && strcmp(a->tokens[i].file, b->tokens[j].file) == 0;
}

/* Two definitions of a function that stand in both texts. */
static void merge_bodies(Text *out, const char **copied, const Parsed *host, const Item *h, const Parsed *device,
                         const Item *d) {
  int h_end = h->end - 1, d_end = d->end - 1;
  if (h->body < 0 || d->body < 0 || !(h->global || h->device)) return;
  if (same_tokens(host, h->body, h->end, device, d->body, d->end)) return;
  if (has_assembly(device, d) && !has_assembly(host, h)) return; /* the way without PTX */
  const Token *open = &host->tokens[h->body], *close = &host->tokens[h_end];
  if (open->text < *copied) return;
  append(out, *copied, (size_t)(open->text + 1 - *copied));
  *copied = open->text + 1;
  if (is_kernel_or_device_only(h)) {
    if (d_end > d->body + 1) append_tokens(out, device, d->body + 1, d_end);
    append_marker(out, close);
    *copied = close->text;
    return;
  }
  if (head_has(h, "constexpr consteval")) {
    fprintf(stderr,
            "%s:%d: warning: simt: this constexpr function depends on __CUDA_ARCH__; kernels get the host's form\n",
            open->file, open->line);
    return;
  }
  appendf(out, " if (::simt_in_kernel()) {");
  if (d_end > d->body + 1) append_tokens(out, device, d->body + 1, d_end);
  appendf(out, "\n} else {");
  append_marker(out, open);
  append(out, *copied, (size_t)(close->text - *copied));
  appendf(out, "}");
  *copied = close->text;
}

static bool is_device_function(const Item *item) { return item->parameters >= 0 && is_kernel_or_device_only(item); }

/* Is there, among the items [from, to) of p, a function like h[k]? */
static bool has_function(const Parsed *p, int from, int to, const Parsed *h, int k) {
  for (int i = from; i < to; i++)
    if (is_device_function(&p->items[i]) && p->items[i].name >= 0 && h->items[k].name >= 0 &&
        same_text(p, p->items[i].name, h, h->items[k].name))
      return true;
  return false;
}

const char *merge(const char *host_text, const char *device_text) {
  Parsed device = parsed(device_text), host = parsed(host_text);
  Text out = {0};
  const char *copied = host_text; /* up to here the host's text is in `out` */
  for (int h = 0, d = 0; h < host.item_count || d < device.item_count;) {
    /* How many items to skip until both are at the same place again: as few as possible. */
    int skip_h = 0, skip_d = 0;
    for (int sum = 0, found = 0; !found; sum++) {
      if (sum > (host.item_count - h) + (device.item_count - d)) break;
      for (skip_h = 0; skip_h <= sum; skip_h++) {
        skip_d = sum - skip_h;
        bool h_ends = h + skip_h == host.item_count, d_ends = d + skip_d == device.item_count;
        if (h + skip_h > host.item_count || d + skip_d > device.item_count || h_ends != d_ends) continue;
        found = h_ends || same_item(&host, h + skip_h, &device, d + skip_d);
        if (found) break;
      }
    }
    for (int k = h; k < h + skip_h; k++) { /* only the host has them */
      const Item *item = &host.items[k];
      bool replaced = !item->global || has_function(&device, d, d + skip_d, &host, k);
      if (!is_device_function(item) || !replaced || host.tokens[item->start].text < copied) continue;
      append(&out, copied, (size_t)(host.tokens[item->start].text - copied));
      append_marker(&out, &host.tokens[item->end]);
      copied = host.tokens[item->end].text;
    }
    for (int l = d; l < d + skip_d; l++) { /* only the device has them */
      if (!is_device_function(&device.items[l])) continue;
      int last = h + skip_h - 1, next = last + 1, at;
      if (last >= 0 && same_scope(&host, last, &device, l))
        at = host.items[last].end;
      else if (next < host.item_count && same_scope(&host, next, &device, l))
        at = host.items[next].start;
      else if (next == host.item_count)
        at = host.token_count - 1;
      else
        continue;
      const char *place = host.tokens[at].text;
      if (place > copied) append(&out, copied, (size_t)(place - copied)), copied = place;
      append_tokens(&out, &device, device.items[l].start, device.items[l].end);
      append_marker(&out, &host.tokens[at]);
    }
    h += skip_h;
    d += skip_d;
    if (h == host.item_count) break;
    merge_bodies(&out, &copied, &host, &host.items[h], &device, &device.items[d]);
    h++;
    d++;
  }
  append(&out, copied, strlen(copied));
  return out.data;
}
