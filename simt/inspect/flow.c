/* flow.c - the order in which the basic blocks of a function must be executed so that lanes that parted meet
 * again as early as on a GPU, whose compiler lets them wait where their paths join (the immediate post-dominator).
 *
 * The compiler's layout is nearly such an order, but not always: it moves blocks that it thinks unlikely. So a function
 * is disassembled (objdump) when its first block runs, with its neighbours: all of the program would take longer than
 * a small kernel runs. Its blocks are ranked: a block comes after all blocks that lead to it, and all of a loop comes
 * before what follows the loop. Lanes that come to the head of a loop again have a rank of their own, behind the whole
 * loop body: they wait there for those that are still on their way through it.
 *
 * Without objdump the addresses themselves are the order.
 */
#include "parts.h"

#include <unistd.h>

/* ---- instructions that matter: jumps, returns, and calls of __sanitizer_cov_trace_pc ---- */

typedef enum Kind { JUMP, BRANCH, STOP, BLOCK } Kind; /* BRANCH: conditional; STOP: control does not go on behind it */

typedef struct Control {
  uintptr_t address, target;
  Kind kind;
} Control;
typedef struct Window { /* a part of the program that has been disassembled */
  uintptr_t low, high;
  Control *controls; /* ascending */
  size_t control_count;
} Window;
static Window *windows;
static int window_count;

static Control *controls; /* of the window that is looked at */
static size_t control_count;

static int is_noreturn(const char *name) {
  static const char *const names[] = {"abort",
                                      "__assert_fail",
                                      "__cxa_throw",
                                      "__cxa_rethrow",
                                      "_Unwind_Resume",
                                      "simt_give_up",
                                      "simt_kernel_fault",
                                      "__cxa_throw_bad_array_new_length",
                                      "__stack_chk_fail",
                                      "exit",
                                      "simt_abort_block"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t length = strlen(names[i]);
    if (strncmp(name, names[i], length) == 0 && (name[length] == '>' || name[length] == '@')) return 1;
  }
  return 0;
}

/* `text`: "jne    401250 <main+0x20>"; the address before the '<', and the name in it. */
static int classify(const char *text, Control *c) {
#if defined(__x86_64__)
  if (!strchr("jcrbnuh", *text)) return 0;
  if (*text == 'c' && strncmp(text, "call", 4) != 0) return 0;
#endif
  const char *name = strchr(text, '<');
  c->target = 0;
  if (name) {
    const char *digits = name - 1;
    while (digits > text && digits[-1] != ' ' && digits[-1] != ',' && digits[-1] != '\t') digits--;
    c->target = strtoul(digits, NULL, 16);
    name++;
  }
#if defined(__x86_64__)
  if (strncmp(text, "bnd ", 4) == 0 || strncmp(text, "notrack ", 8) == 0) text = strchr(text, ' ') + 1;
  int call = strncmp(text, "call", 4) == 0, jump = strncmp(text, "jmp", 3) == 0;
  int branch = text[0] == 'j' && !jump;
  int stop = strncmp(text, "ret", 3) == 0 || strncmp(text, "ud2", 3) == 0 || strncmp(text, "hlt", 3) == 0 ||
             strncmp(text, "repz ret", 8) == 0;
#else /* aarch64 */
  int call = strncmp(text, "bl\t", 3) == 0, jump = strncmp(text, "b\t", 2) == 0 || strncmp(text, "br\t", 3) == 0;
  int branch = strncmp(text, "b.", 2) == 0 || strncmp(text, "cb", 2) == 0 || strncmp(text, "tb", 2) == 0;
  int stop = strncmp(text, "ret", 3) == 0 || strncmp(text, "brk", 3) == 0 || strncmp(text, "udf", 3) == 0;
#endif
  if (call && name && strncmp(name, "__sanitizer_cov_trace_pc>", 25) == 0)
    c->kind = BLOCK;
  else if (call && name && is_noreturn(name))
    c->kind = STOP;
  else if (jump)
    c->kind = JUMP;
  else if (branch && c->target)
    c->kind = BRANCH;
  else if (stop)
    c->kind = STOP;
  else
    return 0;
  return 1;
}

static Window read_program(uintptr_t low, uintptr_t high) {
  Window w = {low, high, NULL, 0};
  char command[160], line[1024];
  snprintf(command, sizeof command,
           "objdump -d --no-show-raw-insn --start-address=%#lx --stop-address=%#lx /proc/%d/exe 2> /dev/null",
           (unsigned long)(low - simt_load_base), (unsigned long)(high - simt_load_base), (int)getpid());
  FILE *text = popen(command, "r");
  while (text && fgets_unlocked(line, sizeof line, text)) {
    const char *end = line + (line[0] == ' ' ? strspn(line, " ") : 0);
    uintptr_t address = 0;
    for (; (*end >= '0' && *end <= '9') || (*end >= 'a' && *end <= 'f'); end++)
      address = address << 4 | (uintptr_t)(*end <= '9' ? *end - '0' : *end - 'a' + 10);
    if (!address || *end != ':') continue;
    Control c = {.address = address + simt_load_base};
    if (!classify(end + 1 + strspn(end + 1, " \t"), &c)) continue;
    if (c.target) c.target += simt_load_base;
    if (!(w.control_count & (w.control_count - 1)))
      w.controls = realloc(w.controls, (w.control_count ? 2 * w.control_count : 1) * sizeof *w.controls);
    if (!w.controls) abort();
    w.controls[w.control_count++] = c;
  }
  if (text) pclose(text);
  return w;
}

/* Reads the control flow of a window of code around this function into `controls`. 0 where objdump is missing. */
static int look_at(uintptr_t first, uintptr_t end) {
  enum { BEFORE = 16 << 10, BEHIND = 48 << 10 }; /* what a kernel calls is near it */
  static int missing;
  int i = 0;
  while (i < window_count && !(windows[i].low <= first && end <= windows[i].high)) i++;
  if (i == window_count && !missing) {
    uintptr_t low = first, none;
    if (first - BEFORE < simt_text_low || !simt_function_at(first - BEFORE, &low, &none)) low = first;
    windows = realloc(windows, (size_t)++window_count * sizeof *windows);
    if (!windows) abort();
    windows[i] = read_program(low, end > first + BEHIND ? end : first + BEHIND);
    missing = !windows[i].control_count;
    if (missing)
      simt_note("objdump is not installed: where lanes of a warp meet again was guessed from the order of the code");
  }
  if (missing) return 0;
  controls = windows[i].controls;
  control_count = windows[i].control_count;
  return 1;
}

/* ---- the graph of a function ---- */

typedef struct Node {     /* a machine basic block; at most one call of the coverage hook, at its beginning */
  uintptr_t start, block; /* block: the hook's return address as the inspector sees it; 0: none */
  uintptr_t branch;       /* its conditional jump */
  int next[2], next_count;
  int rank, again;                          /* again: of a loop's head, when it is reached from within the loop */
  int cut;                                  /* its incoming edges are of loops that are dealt with */
  int part, index, low, on_stack, position; /* Tarjan's algorithm */
} Node;

static size_t control_from(uintptr_t address) { /* the first at or after */
  size_t low = 0, high = control_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (controls[middle].address < address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int by_number(const void *a, const void *b) {
  uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
  return x < y ? -1 : x > y;
}

static int node_at(const Node *node, int count, uintptr_t address) { /* the one that contains it */
  int low = 0, high = count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (node[middle].start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}

static void *need(void *memory) {
  if (!memory) abort();
  return memory;
}

static Node *build_graph(uintptr_t first, uintptr_t end, int *node_count) {
  size_t from = control_from(first), to = control_from(end), count = 0;
  uintptr_t *start = need(malloc((2 * (to - from) + 1) * sizeof *start));
  start[count++] = first;
  for (size_t i = from; i < to; i++) {
    const Control *c = &controls[i];
    if (c->kind == BLOCK) {
      start[count++] = c->address;
      continue;
    }
    if (c->address + 1 < end) start[count++] = c->address + 1; /* the next instruction begins there or later */
    if ((c->kind == JUMP || c->kind == BRANCH) && c->target >= first && c->target < end) start[count++] = c->target;
  }
  qsort(start, count, sizeof *start, by_number);
  Node *node = need(calloc(count, sizeof *node));
  int nodes = 0;
  for (size_t i = 0; i < count; i++)
    if (!nodes || node[nodes - 1].start != start[i]) node[nodes++].start = start[i];
  free(start);
  /* Each node falls through to the next one, unless a jump says otherwise. */
  for (int n = 0; n + 1 < nodes; n++) {
    node[n].next[0] = n + 1;
    node[n].next_count = 1;
  }
  for (size_t i = from; i < to; i++) {
    const Control *c = &controls[i];
    Node *n = &node[node_at(node, nodes, c->address)];
    int inside = c->target >= first && c->target < end;
    if (c->kind == BLOCK) {
      n->block = c->address;
    } else if (c->kind == BRANCH) {
      n->branch = c->address;
      if (inside) n->next[n->next_count++] = node_at(node, nodes, c->target);
    } else {
      n->next_count = 0;
      if (c->kind == JUMP && inside) n->next[n->next_count++] = node_at(node, nodes, c->target);
    }
  }
  *node_count = nodes;
  return node;
}

/* ---- ranks ---- */

typedef struct Order {
  Node *node;
  int rank; /* the next to give */
} Order;

/* Gives the nodes of `part`, which are reached from `entry`, their ranks: its strongly connected components in
 * topological order, of a component that is a loop first its head and then, without the edges back to it, the rest in
 * the same way. */
static void arrange(Order *o, int *member, int members, int entry, int part) {
  Node *node = o->node;
  int *path = need(malloc((size_t)members * sizeof *path)), depth = 0;
  int *stack = need(malloc((size_t)members * sizeof *stack)), height = 0;
  int *done = need(malloc((size_t)members * sizeof *done)), done_count = 0; /* components, last one first */
  int *size = need(malloc((size_t)members * sizeof *size)), components = 0;
  int index = 1;
  for (int i = 0; i < members; i++) node[member[i]].index = 0;
  node[entry].index = node[entry].low = index++;
  node[entry].position = node[entry].next_count;
  node[entry].on_stack = 1;
  path[depth++] = stack[height++] = entry;
  while (depth) {
    Node *n = &node[path[depth - 1]];
    if (n->position > 0) { /* the higher address first: it gets the later rank */
      int a = n->next[0], b = n->next_count > 1 ? n->next[1] : a;
      int next = n->next_count == 1 ? a : (n->position == 2) == (a > b) ? a : b;
      n->position--;
      Node *m = &node[next];
      if (m->part != part || m->cut) continue;
      if (!m->index) {
        m->index = m->low = index++;
        m->position = m->next_count;
        m->on_stack = 1;
        path[depth++] = stack[height++] = next;
      } else if (m->on_stack && m->index < n->low) {
        n->low = m->index;
      }
      continue;
    }
    int top = path[--depth];
    if (depth && node[top].low < node[path[depth - 1]].low) node[path[depth - 1]].low = node[top].low;
    if (node[top].low != node[top].index) continue;
    int first = done_count;
    do {
      done[done_count] = stack[--height];
      node[done[done_count]].on_stack = 0;
    } while (done[done_count++] != top);
    size[components++] = done_count - first;
  }
  while (components--) {
    int count = size[components], *of = done + (done_count -= count), head = of[count - 1]; /* reached first */
    int loops = count > 1;
    for (int i = 0; i < node[head].next_count; i++) loops |= node[head].next[i] == head;
    if (!loops || node[head].cut) {
      node[head].rank = node[head].again = o->rank++;
      if (count == 1) continue;
    }
    static int parts;
    int inner = ++parts;
    for (int i = 0; i < count; i++) node[of[i]].part = inner;
    node[head].cut = 1;
    arrange(o, of, count, head, inner);
    node[head].again = o->rank++;
  }
  free(path);
  free(stack);
  free(done);
  free(size);
}

/* How many blocks of the inspector can follow, 2 for more. Between two of them there may be nodes without the hook,
 * of a switch, say: `part` marks those that have been seen. */
static int followers(Node *node, int nodes, int from, int *stack) {
  int height = 0, found = -1;
  for (int i = 0; i < nodes; i++) node[i].part = 0;
  stack[height++] = from;
  while (height) {
    const Node *n = &node[stack[--height]];
    for (int i = 0; i < n->next_count; i++) {
      int next = n->next[i];
      if (node[next].block && found >= 0 && next != found) return 2;
      if (node[next].block) found = next;
      if (node[next].block || node[next].part) continue;
      node[next].part = 1;
      stack[height++] = next;
    }
  }
  return found >= 0;
}

static uintptr_t branch_of(const Node *node, int from) {
  for (int steps = 0; steps < 64; steps++) {
    if (node[from].branch) return node[from].branch;
    if (node[from].next_count != 1 || node[node[from].next[0]].block) return 0;
    from = node[from].next[0];
  }
  return 0;
}

static void analyse(uintptr_t first, uintptr_t end) {
  int nodes;
  Node *node = build_graph(first, end, &nodes);
  int *all = need(malloc((size_t)nodes * sizeof *all));
  for (int i = 0; i < nodes; i++) all[i] = i;
  Order order = {node, 1};
  arrange(&order, all, nodes, 0, 0);
  for (int i = 0; i < nodes; i++) {
    if (!node[i].block || !node[i].rank) continue; /* not reached: code for exceptions */
    unsigned site = simt_site_of(simt_after_call(node[i].block));
    if (!site) continue;
    SiteFlow *flow = simt_site_flow(site);
    flow->rank = node[i].rank < 65535 ? (uint16_t)node[i].rank : 65535;
    flow->again = node[i].again < 65535 ? (uint16_t)node[i].again : 65535;
    int ways = followers(node, nodes, i, all);
    flow->branches = ways == 2;
    flow->single = ways == 1;
    flow->branch = flow->branches ? branch_of(node, i) : 0;
  }
  free(all);
  free(node);
}

const SiteFlow *simt_flow_at(uintptr_t block) {
  uintptr_t first, end;
  SiteFlow *flow = simt_site_flow(simt_site_of(block));
  if (flow->rank || flow->looked) return flow;
  flow->looked = 1;
  if (simt_function_at(block, &first, &end) && look_at(first, end)) analyse(first, end);
  return simt_site_flow(simt_site_of(block)); /* the table may have moved */
}
