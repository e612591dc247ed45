/* onnx_wire.cu - the bytes of an ONNX file, field by field, with the names that ONNX's messages give them.
 *
 *     bazel run //phase5_production:onnx_wire                                a small model of its own
 *     bazel run //phase5_production:onnx_wire -- lenet.onnx --lines=200
 */
#include "common/onnx/build.h"
#include "common/options.h"
#include "common/train_log.h"
#include "phase5_production/06_onnx_export/onnx_wire.cuh"

enum { MOST_LINES = 1000000, SHOWN_BYTES = 8, SHOWN_LETTERS = 24, NAME_COLUMN = 40 };

typedef struct Options {
  CommonOptions common;
  char file[PATH_MAX];
  int lines;
} Options;

typedef struct Walk {
  const uint8_t *begin; /* of the file */
  int left;             /* lines to print */
  int more;             /* there are more fields than lines */
} Walk;

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *o = (Options *)state->input;
  switch (key) {
    case 'n':
      o->lines = (int)option_int(state, arg, "--lines", 1, MOST_LINES);
      return 0;
    case ARGP_KEY_ARG:
      if (o->file[0]) argp_error(state, "one ONNX file is expected; \"%s\" is the second", arg);
      option_path(state, arg, "FILE", o->file);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static void options_read(Options *o, int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"lines", 'n', "N", 0, "How many fields to print, at most (default: 60)", 0}, OPTION_END};
  static const struct argp own = {rows, parse, "[FILE]", "Prints the bytes of an ONNX file, field by field.",
                                  NULL, NULL,  NULL};
  memset(o, 0, sizeof *o);
  o->common = options_default(0);
  o->lines = 60;
  options_parse(&o->common, &own, o, argc, argv);
  Error err;
  char typed[PATH_MAX];
  memcpy(typed, o->file, sizeof typed);
  if (typed[0] && user_path(typed, o->file, sizeof o->file, &err) != 0) die("%s", err.message);
}

/* y = x w^T + b of two numbers each. */
static uint8_t *small_model(size_t *size) {
  static const float w[4] = {1, 2, 3, 4}, b[2] = {0.5f, -0.5f};
  const int64_t square[2] = {2, 2}, two[1] = {2};
  const OnnxDim rows[2] = {{0, "N"}, {2, NULL}};
  OnnxModel m;
  onnx_model_create(&m, "small");
  onnx_add_input(&m, "x", ONNX_FLOAT, 2, rows);
  onnx_add_output(&m, "y", ONNX_FLOAT, 2, rows);
  onnx_add_tensor(&m, "fc1.weight", ONNX_FLOAT, 2, square, w);
  onnx_add_tensor(&m, "fc1.bias", ONNX_FLOAT, 1, two, b);
  Onnx__NodeProto *node = onnx_add_node(&m, "Gemm", "fc1");
  onnx_add_node_input(&m, node, "x");
  onnx_add_node_input(&m, node, "fc1.weight");
  onnx_add_node_input(&m, node, "fc1.bias");
  onnx_add_node_output(&m, node, "y");
  onnx_set_int(&m, node, "transB", 1);
  *size = onnx__model_proto__get_packed_size(m.proto);
  uint8_t *bytes = (uint8_t *)xmalloc(*size);
  onnx__model_proto__pack(m.proto, bytes);
  onnx_model_close(&m);
  return bytes;
}

/* "  17: 12 05        " : where a field begins, and its first bytes. */
static void print_bytes(const Walk *walk, const uint8_t *from, const uint8_t *to) {
  printf("%6zu: ", (size_t)(from - walk->begin));
  for (int i = 0; i < SHOWN_BYTES; i++)
    if (from + i < to)
      printf("%02x ", from[i]);
    else
      printf("   ");
  printf("%s ", to - from > SHOWN_BYTES ? ".." : "  ");
}

static void print_text(const uint8_t *from, size_t size) {
  putchar('"');
  for (size_t i = 0; i < size && i < SHOWN_LETTERS; i++) putchar(from[i] >= ' ' && from[i] < 127 ? from[i] : '.');
  printf(size > SHOWN_LETTERS ? "...\n" : "\"\n");
}

/* The fields of a message, each on a line, and those of messages within it. onnx_scan_message() has seen the bytes. */
static void walk_message(Walk *walk, const ProtobufCMessageDescriptor *message, const uint8_t *at, const uint8_t *end,
                         int depth) {
  while (at < end) {
    if (walk->left == 0) walk->more = 1;
    if (walk->more) return;
    const uint8_t *from = at;
    uint64_t key, value = 0;
    char name[128];
    at += onnx_varint(at, &key);
    const unsigned coding = key & 7;
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(message, (unsigned)(key >> 3));
    if (coding == 0 || coding == 2) at += onnx_varint(at, &value);
    const uint8_t *inside = at;
    at += coding == 2 ? value : coding == 1 ? 8 : coding == 5 ? 4 : 0;
    const int nested = field && field->type == PROTOBUF_C_TYPE_MESSAGE;
    print_bytes(walk, from, nested ? inside : at);
    snprintf(name, sizeof name, "%*s%s.%s", 2 * depth, "", message->short_name, field ? field->name : "(unknown)");
    printf("%-*s ", NAME_COLUMN, name);
    walk->left--;
    float number;
    memcpy(&number, coding == 5 ? inside : (const uint8_t *)"\0\0\0\0", sizeof number);
    if (coding == 0)
      printf("%lld\n", (long long)value);
    else if (coding == 5)
      printf("%g\n", (double)number);
    else if (nested)
      printf("%llu bytes\n", (unsigned long long)value);
    else if (field && field->type == PROTOBUF_C_TYPE_STRING)
      print_text(inside, (size_t)value);
    else
      printf("%zu bytes of data\n", (size_t)(at - inside));
    if (nested) walk_message(walk, (const ProtobufCMessageDescriptor *)field->descriptor, inside, at, depth + 1);
  }
}

int main(int argc, char **argv) {
  static Options o;
  Error err;
  uint8_t *bytes;
  size_t size;
  options_read(&o, argc, argv);
  if (o.file[0] == '\0')
    bytes = small_model(&size);
  else if (onnx_file_read(o.file, &bytes, &size, &err) != 0)
    die("%s", err.message);
  if (size == 0) die("%s is empty; a file of ONNX was expected", o.file);
  const OnnxScan scan = {o.file[0] ? o.file : "the small model", bytes};
  const OnnxBytes all = {bytes, bytes + size};
  if (onnx_scan_message(&scan, &onnx__model_proto__descriptor, all, 0, &err) != 0) die("%s", err.message);
  printf("%zu bytes\n\n  byte                             field\n", size);
  Walk walk = {bytes, o.lines, 0};
  walk_message(&walk, &onnx__model_proto__descriptor, bytes, bytes + size, 0);
  if (walk.more) printf("... --lines=N prints more\n");
  free(bytes);
  stdout_finish();
  return 0;
}
