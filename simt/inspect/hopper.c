/* hopper.c - what is asynchronous from compute capability 9.0 on: bulk copies to shared memory, and wgmma, which reads
 * it. Both use the async proxy: what a thread wrote in the ordinary way is visible there after fence_async_proxy() of
 * that thread.
 */
#include "bits.h"

#include "hopper.h"

static Region *region_of(Inspector *in, uintptr_t address) {
  if (address >= in->dynamic.low && address < in->dynamic.high) return &in->dynamic;
  return address >= in->fixed.low && address < in->fixed.high ? &in->fixed : NULL;
}

static void hold(Region *r, uintptr_t address, size_t bytes, int held) {
  size_t room = (r->high - r->low) / 8 + 2;
  if (!r->held) {
    r->held = calloc(room, 1);
    r->awaited = calloc(room, 1);
    if (!r->held || !r->awaited) abort();
  }
  r->bulk = 1;
  set_bits(r->held, address - r->low, bytes, held);
  set_bits(r->awaited, address - r->low, bytes, held);
}

void simt_inspect_bulk_began(Worker *owner, void *shared, size_t bytes) {
  Inspector *in = owner->inspector;
  uintptr_t address = (uintptr_t)shared;
  Region *r = in ? region_of(in, address) : NULL;
  if (r) hold(r, address, bytes, 1);
}

/* The bytes have values, which no thread wrote. */
void simt_inspect_bulk_arrived(Worker *owner, void *shared, size_t bytes) {
  Inspector *in = owner->inspector;
  uintptr_t address = (uintptr_t)shared;
  Region *r = in ? region_of(in, address) : NULL;
  if (!r) return;
  hold(r, address, bytes, 0);
  set_written(r, address, bytes, 1);
  memset(&r->cells[(address - r->low) / 4], 0, bytes / 4 * sizeof(Cell));
}

void simt_inspect_bulk_reads(const void *pc, const void *global, size_t bytes) {
  Inspector *in = simt_inspector;
  Object o;
  uintptr_t address = (uintptr_t)global;
  if (!in || simt_writes_unseen || !simt_find_object(in, address, &o) || !o.region || !o.region->written) return;
  unsigned site = simt_site_of((uintptr_t)pc);
  if (any_written(o.region, address, bytes) || simt_found_before(SIMT_UNINITIALISED_READ, site, 0)) return;
  RaceParty party[2] = {
      {.site = site, .rank = in->rank, .access = SIMT_ACCESS_READ, .bytes = (int)bytes, .block = in->block_number}};
  simt_find(
      SIMT_UNINITIALISED_READ, 1, party, NULL, simt_memory_words(in, address),
      "nobody has written it since it was allocated: does the tensor map describe the array, its rows and pitch?");
}

/* Who wrote there is known of the own block only: no look for races. */
int simt_find_remote(Inspector *in, uintptr_t address, Object *o) {
  const Cluster *c = in->worker->cluster;
  for (int rank = 0; rank < c->size; rank++) {
    Inspector *other = c->worker[rank] ? c->worker[rank]->inspector : NULL;
    const Region *there = other && other != in ? region_of(other, address) : NULL;
    if (!there) continue;
    const Variable *v = there == &other->fixed ? simt_find_shared(address - there->low, 0) : NULL;
    if (there == &other->fixed && !v) return 0;
    Region *r = &in->remote[rank][there == &other->fixed];
    *r = (Region){.low = there->low, .high = there->high, .written = there->written, .shared = 1};
    *o = (Object){v ? there->low + v->low : there->low, v ? v->size : there->high - there->low, SPACE_SHARED, r,
                  simt_object_era};
    return 1;
  }
  return 0;
}

/* A thread of the block wrote there last, and its next fence_async_proxy() is still to come. */
static const Cell *unfenced(const Inspector *in, const Region *r, uintptr_t address, size_t bytes) {
  for (uintptr_t word = (address - r->low) / 4; word * 4 < address - r->low + bytes; word++) {
    Trace last = r->cells[word].write;
    if (trace_time(last) >= in->block_time && in->lanes[trace_rank(last)].async_fence <= trace_time(last))
      return &r->cells[word];
  }
  return NULL;
}

void simt_inspect_async_reads(const void *pc, const void *shared, size_t bytes) {
  Inspector *in = simt_inspector;
  uintptr_t address = (uintptr_t)shared;
  Region *r = in ? region_of(in, address) : NULL;
  if (!r) return;
  unsigned site = simt_site_of((uintptr_t)pc);
  RaceParty party[2] = {
      {.site = site, .rank = in->rank, .access = SIMT_ACCESS_READ, .bytes = (int)bytes, .block = in->block_number}};
  if (!any_written(r, address, bytes) && !simt_found_before(SIMT_UNINITIALISED_READ, site, 0))
    simt_find(
        SIMT_UNINITIALISED_READ, 1, party, NULL, simt_memory_words(in, address),
        "no copy has brought it and no thread of this block has written it: wait for the mbarrier of its copy; is "
        "the tile as large as the product, and does the descriptor tell where its parts lie?");
  const Cell *cell = unfenced(in, r, address, bytes);
  if (!cell || simt_found_before(SIMT_DATA_RACE, site, trace_site(cell->write))) return;
  party[1] = (RaceParty){.site = trace_site(cell->write),
                         .rank = trace_rank(cell->write),
                         .access = SIMT_ACCESS_WRITE,
                         .bytes = __builtin_popcount(trace_bytes(cell->write)),
                         .block = in->block_number};
  simt_find(
      SIMT_DATA_RACE, 2, party, "between the generic and the async proxy", simt_memory_words(in, address),
      "fence_async_proxy() by each thread that writes, then the barrier, then wgmma: it reads shared memory another "
      "way than threads write it");
}

void simt_inspect_counted(const void *pc, int counter, uint64_t more) {
  if (simt_inspector) simt_counts(simt_site_of((uintptr_t)pc))[counter] += more;
}
