/* safetensors_test.c - what is written is read back, here and by a reader in Python; hostile files are refused. */
#include "common/safetensors.h"

#include <math.h>

#include "common/test.h"

static char path[PATH_MAX];

static int setup(void **state) {
  (void)state;
  unlink(test_path(path, sizeof path, "t.safetensors"));
  return 0;
}

/* Writes length | header | data_size bytes of data; `length` may lie. */
static void put(uint64_t length, const char *header, size_t header_size, size_t data_size) {
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  fwrite(&length, 8, 1, out);
  fwrite(header, 1, header_size, out);
  for (size_t i = 0; i < data_size; i++) fputc((int)i, out);
  assert_int_equal(fclose(out), 0);
}

/* safetensors_open(path) must fail and name the file and `expected` in its sentence. */
static void check_refused(const char *expected) {
  SafetensorsFile in;
  Error err = {0};
  if (safetensors_open(path, &in, &err) == 0) fail_msg("accepted, but expected \"%s\"", expected);
  if (strstr(err.message, path) == NULL || strstr(err.message, expected) == NULL)
    fail_msg("expected \"%s\" and the path in: %s", expected, err.message);
}

static void check_header(const char *header, size_t data_size, const char *expected) {
  put(strlen(header), header, strlen(header), data_size);
  if (expected != NULL) {
    check_refused(expected);
    return;
  }
  SafetensorsFile in;
  Error err = {0};
  if (safetensors_open(path, &in, &err) != 0) fail_msg("refused: %s", err.message);
  safetensors_close(&in);
}

static void test_round_trip(void **state) {
  (void)state;
  const size_t weight_shape[] = {6, 1, 5, 5}, order_shape[] = {33}, steps_shape[] = {3}, empty_shape[] = {0, 7};
  float weight[150], scalar = -1.5f, weight_read[150], scalar_read;
  uint8_t order[33], order_read[33];
  int64_t steps[3] = {-1, INT64_MAX, INT64_MIN}, steps_read[3];
  uint64_t state_word = UINT64_MAX - 2, state_read;
  test_random_fill(weight, 150, 1);
  weight[7] = NAN;
  weight[8] = -INFINITY;
  for (int i = 0; i < 33; i++) order[i] = (uint8_t)(i * 37);
  Error err;
  SafetensorsWriter out = {0};
  safetensors_add(&out, "steps", "I64", 1, steps_shape, steps);
  safetensors_add(&out, "random", "U64", 0, NULL, &state_word);
  safetensors_add(&out, "conv1.weight", "F32", 4, weight_shape, weight);
  safetensors_add(&out, "empty", "F32", 2, empty_shape, NULL);
  safetensors_add(&out, "\"scalar\" \\ \xc3\xa4", "F32", 0, NULL, &scalar);
  safetensors_add(&out, "order", "U8", 1, order_shape, order);
  safetensors_add_metadata(&out, "epoch", "2");
  safetensors_add_metadata(&out, "epoch", "3");
  safetensors_add_metadata(&out, "note", "line\nbreak");
  for (int twice = 0; twice < 2; twice++) assert_int_equal(safetensors_write(&out, path, &err), 0);
  safetensors_writer_free(&out);

  SafetensorsFile in;
  if (safetensors_open(path, &in, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(in.count, 6);
  assert_int_equal(in.data_start % 8, 0);
  assert_int_equal(safetensors_read_f32(&in, "conv1.weight", 4, weight_shape, weight_read, &err), 0);
  assert_memory_equal(weight_read, weight, sizeof weight);
  assert_int_equal(safetensors_read_f32(&in, "\"scalar\" \\ \xc3\xa4", 0, NULL, &scalar_read, &err), 0);
  assert_true(scalar_read == scalar);
  assert_int_equal(safetensors_read(&in, "order", "U8", 1, order_shape, order_read, &err), 0);
  assert_memory_equal(order_read, order, sizeof order);
  assert_int_equal(safetensors_read(&in, "steps", "I64", 1, steps_shape, steps_read, &err), 0);
  assert_memory_equal(steps_read, steps, sizeof steps);
  assert_int_equal(safetensors_read(&in, "random", "U64", 0, NULL, &state_read, &err), 0);
  assert_true(state_read == state_word);
  assert_int_equal(safetensors_read_f32(&in, "empty", 2, empty_shape, NULL, &err), 0);
  assert_string_equal(safetensors_metadata(&in, "epoch"), "3");
  assert_string_equal(safetensors_metadata(&in, "note"), "line\nbreak");
  assert_null(safetensors_metadata(&in, "absent"));
  assert_null(safetensors_find(&in, "__metadata__"));
  assert_int_equal(safetensors_find(&in, "order")->shape[0], 33);
  safetensors_close(&in);
}

/* The bytes as Hugging Face's library writes them. */
static const char golden[] =
    "\x58\0\0\0\0\0\0\0"
    "{\"__metadata__\":{\"format\":\"pt\"},\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}   "
    "\0\0\x80\x3f\0\0\0\xc0";
enum { GOLDEN_SIZE = sizeof golden - 1 };

static void test_golden_bytes(void **state) {
  (void)state;
  const float x[] = {1, -2};
  const size_t shape[] = {2};
  char bytes[200];
  SafetensorsWriter out = {0};
  safetensors_add(&out, "x", "F32", 1, shape, x);
  safetensors_add_metadata(&out, "format", "pt");
  assert_int_equal(safetensors_write(&out, path, NULL), 0);
  safetensors_writer_free(&out);
  FILE *in = fopen(path, "rb");
  assert_int_equal(fread(bytes, 1, sizeof bytes, in), GOLDEN_SIZE);
  fclose(in);
  assert_memory_equal(bytes, golden, GOLDEN_SIZE);
}

/* Of files with two tensors, whose bytes are 1234 and 56789 in the order of their names. */
static void test_checksum(void **state) {
  (void)state;
  const size_t four[] = {4}, five[] = {5};
  const char *const orders[] = {"ab", "ba", "no sum"};
  for (int i = 0; i < 4; i++) {
    SafetensorsWriter out = {0};
    SafetensorsFile in;
    Error err;
    if (i != 1) safetensors_add(&out, "a", "U8", 1, four, "1234");
    safetensors_add(&out, "b", "U8", 1, five, i == 3 ? "56788" : "56789");
    if (i == 1) safetensors_add(&out, "a", "U8", 1, four, "1234");
    if (i < 2) safetensors_add_checksum(&out);
    if (i == 3) safetensors_add_metadata(&out, SAFETENSORS_CHECKSUM, "cbf43926");
    assert_int_equal(safetensors_write(&out, path, &err), 0);
    safetensors_writer_free(&out);
    if (safetensors_open(path, &in, &err) != 0) fail_msg("%s", err.message);
    if (i < 2) assert_string_equal(safetensors_metadata(&in, SAFETENSORS_CHECKSUM), "cbf43926"); /* the standard's */
    if (i < 3 && safetensors_check(&in, &err) != 0) fail_msg("%s: %s", orders[i], err.message);
    if (i == 3) {
      assert_int_equal(safetensors_check(&in, &err), -1);
      if (!strstr(err.message, path) || !strstr(err.message, "and had cbf43926 when they were written"))
        fail_msg("%s", err.message);
    }
    safetensors_close(&in);
  }
}

/* Larger than what is read at once. */
static void test_checksum_of_a_large_tensor(void **state) {
  (void)state;
  enum { SIZE = 3 * SAFETENSORS_PIECE + 5 };
  const size_t shape[] = {SIZE};
  uint8_t *bytes = (uint8_t *)xmalloc(SIZE);
  for (size_t i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(i * i >> 5);
  SafetensorsWriter out = {0};
  SafetensorsFile in;
  Error err;
  safetensors_add(&out, "x", "U8", 1, shape, bytes);
  safetensors_add_checksum(&out);
  for (int changed = 0; changed < 2; changed++) {
    bytes[SIZE - 1] ^= (uint8_t)changed;
    if (safetensors_write(&out, path, &err) != 0 || safetensors_open(path, &in, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(safetensors_check(&in, &err), -changed);
    safetensors_close(&in);
  }
  safetensors_writer_free(&out);
  free(bytes);
}

static void test_nothing_but_metadata(void **state) {
  (void)state;
  SafetensorsWriter out = {0};
  SafetensorsFile in;
  Error err;
  assert_int_equal(safetensors_write(&out, path, &err), 0);
  assert_int_equal(safetensors_open(path, &in, &err), 0);
  assert_int_equal(in.count, 0);
  assert_null(safetensors_metadata(&in, "x"));
  safetensors_close(&in);
}

static void test_read_names_what_differs(void **state) {
  (void)state;
  const float x[6] = {0};
  const size_t shape[] = {2, 3}, turned[] = {3, 2};
  float y[6];
  SafetensorsWriter out = {0};
  SafetensorsFile in;
  Error err;
  safetensors_add(&out, "fc.weight", "F32", 2, shape, x);
  assert_int_equal(safetensors_write(&out, path, &err), 0);
  safetensors_writer_free(&out);
  assert_int_equal(safetensors_open(path, &in, &err), 0);
  assert_int_equal(safetensors_read_f32(&in, "fc.weight", 2, turned, y, &err), -1);
  assert_non_null(strstr(err.message, "tensor 'fc.weight' is F32 (2, 3), expected F32 (3, 2)"));
  assert_non_null(strstr(err.message, path));
  assert_int_equal(safetensors_read_f32(&in, "fc.weight", 1, turned, y, &err), -1);
  assert_non_null(strstr(err.message, "expected F32 (3)"));
  assert_int_equal(safetensors_read(&in, "fc.weight", "F16", 2, shape, y, &err), -1);
  assert_non_null(strstr(err.message, "expected F16 (2, 3)"));
  assert_int_equal(safetensors_read_f32(&in, "fc.bias", 1, turned, y, &err), -1);
  assert_non_null(strstr(err.message, "no tensor 'fc.bias' of F32 (3) among its 1"));
  assert_int_equal(truncate(path, (off_t)in.data_start + 20), 0); /* behind the reader's back */
  assert_int_equal(safetensors_read_f32(&in, "fc.weight", 2, shape, y, &err), -1);
  assert_non_null(strstr(err.message, "became shorter"));
  safetensors_close(&in);
}

static void test_writer_refuses(void **state) {
  (void)state;
  const size_t shape[] = {2}, huge[] = {SIZE_MAX / 2, 3};
  const float x[2] = {0};
  const char *expected[] = {"no dtype 'F31'", "the name is taken", "the name is taken",
                            "not UTF-8",      "shape that cannot", "not UTF-8"};
  for (int wrong = 0; wrong < 6; wrong++) {
    SafetensorsWriter out = {0};
    Error err;
    safetensors_add(&out, "x", "F32", 1, shape, x);
    if (wrong == 0) safetensors_add(&out, "y", "F31", 1, shape, x);
    if (wrong == 1) safetensors_add(&out, "x", "F32", 1, shape, x);
    if (wrong == 2) safetensors_add(&out, "__metadata__", "F32", 1, shape, x);
    if (wrong == 3) safetensors_add(&out, "\xff", "F32", 1, shape, x);
    if (wrong == 4) safetensors_add(&out, "y", "F32", 2, huge, x);
    if (wrong == 5) safetensors_add_metadata(&out, "k", "\xff");
    safetensors_add(&out, "z", "F33", 1, shape, x); /* the first complaint is the one that counts */
    assert_int_equal(safetensors_write(&out, path, &err), -1);
    if (strstr(err.message, expected[wrong]) == NULL) fail_msg("expected \"%s\" in: %s", expected[wrong], err.message);
    assert_int_equal(access(path, F_OK), -1);
    safetensors_writer_free(&out);
  }
}

static void test_refuses_what_is_no_file(void **state) {
  (void)state;
  check_refused("No such file or directory");
  test_path(path, sizeof path, ".");
  check_refused("is a directory");
  snprintf(path, sizeof path, "/dev/zero");
  check_refused("is a device or pipe");
}

static void test_refuses_every_truncation_and_extension(void **state) {
  (void)state;
  for (size_t size = 0; size < GOLDEN_SIZE; size++) {
    FILE *out = fopen(path, "wb");
    fwrite(golden, 1, size, out);
    fclose(out);
    check_refused(size < 8 ? "is no safetensors file" : "is cut short");
  }
  FILE *out = fopen(path, "wb");
  fwrite(golden, 1, GOLDEN_SIZE, out);
  fputc(0, out);
  fclose(out);
  check_refused("holds 1 bytes after the last tensor");
}

static void test_header_length(void **state) {
  (void)state;
  put(0, "", 0, 0);
  check_refused("must begin with '{'");
  put(UINT64_MAX, "{}", 2, 0);
  check_refused("over the limit");
  put(UINT64_MAX - 7, "{}", 2, 0); /* 8 + length wraps round to 0 */
  check_refused("over the limit");
  put(100000001, "{}", 2, 0);
  check_refused("over the limit");
  put(100000000, "{}", 2, 0);
  check_refused("is cut short");
  put(3, "{}", 2, 0);
  check_refused("is cut short");
  put(1, "{}", 2, 0);
  check_refused("not valid");
}

#define X(dtype, shape, offsets) "\"x\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define Y(dtype, shape, offsets) "\"y\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define F "\"F32\""

static void test_header_text(void **state) {
  (void)state;
  check_header("{}", 0, NULL);
  check_header("{}     ", 0, NULL);
  check_header("{\"__metadata__\":{}}", 0, NULL);
  check_header(" {}", 0, "must begin with '{'");
  check_header("[]", 0, "must begin with '{'");
  check_header("{", 0, "not valid");
  check_header("{}x", 0, "not valid");
  check_header("{} {}", 0, "not valid");
  check_header("{\"\xff\":1}", 0, "not valid");
  check_header("{\"a\\u0000\":1}", 0, "not valid");
  check_header("{" X(F, "[1]", "[0,4]") "," X(F, "[1]", "[0,4]") "}", 4, "duplicate");
  check_header("{" X(F, "[1]", "[0,4],\"dtype\":\"F32\"") "}", 4, "duplicate");
  check_header("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "duplicate");
  check_header("{\"__metadata__\":{\"a\":1}}", 0, "'a' is none");
  check_header("{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", 0, "'a' is none");
  check_header("{\"__metadata__\":[]}", 0, "__metadata__ must be");
  check_header("{\"__metadata__\":null}", 0, "__metadata__ must be");
}

static void test_entries(void **state) {
  (void)state;
  const char *needs = "needs dtype, shape and data_offsets", *offsets = "needs data_offsets [begin, end]";
  check_header("{" X(F, "[1]", "[0,4]") "}", 4, NULL);
  check_header("{" X(F, "[]", "[0,4]") "}", 4, NULL);
  check_header("{" X(F, "[0]", "[0,0]") "}", 0, NULL);
  check_header("{" X(F, "[0,9223372036854775807,2]", "[0,0]") "}", 0, NULL);
  check_header("{" X("\"F4\"", "[2,3]", "[0,3]") "}", 3, NULL);
  check_header("{" X("\"F4\"", "[3]", "[0,2]") "}", 2, "no size in whole bytes");
  check_header("{\"x\":1}", 0, needs);
  check_header("{\"x\":{}}", 0, needs);
  check_header("{\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, needs);
  check_header("{" X("null", "[1]", "[0,4]") "}", 4, needs);
  check_header("{" X(F, "1", "[0,4]") "}", 4, needs);
  check_header("{" X(F, "[1]", "{}") "}", 4, needs);
  check_header("{" X(F, "[1]", "[0,4],\"more\":0") "}", 4, needs);
  check_header("{" X("\"F31\"", "[1]", "[0,4]") "}", 4, "unknown dtype 'F31'");
  check_header("{" X("\"f32\"", "[1]", "[0,4]") "}", 4, "unknown dtype 'f32'");
  check_header("{" X(F, "[-1]", "[0,4]") "}", 4, "whole number >= 0");
  check_header("{" X(F, "[1.0]", "[0,4]") "}", 4, "whole number >= 0");
  check_header("{" X(F, "[\"1\"]", "[0,4]") "}", 4, "whole number >= 0");
  check_header("{" X(F, "[[1]]", "[0,4]") "}", 4, "whole number >= 0");
  check_header("{" X(F, "[9223372036854775808]", "[0,4]") "}", 4, "not valid");
  check_header("{" X(F, "[4294967296,4294967296]", "[0,0]") "}", 0, "no size in whole bytes below 2^64");
  check_header("{" X(F, "[4611686018427387904]", "[0,0]") "}", 0, "no size in whole bytes below 2^64");
  check_header("{" X(F, "[1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, NULL);
  check_header("{" X(F, "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "has 9 dimensions");
  check_header("{" X(F, "[1]", "[0]") "}", 4, offsets);
  check_header("{" X(F, "[1]", "[0,4,8]") "}", 4, offsets);
  check_header("{" X(F, "[1]", "[-4,0]") "}", 4, offsets);
  check_header("{" X(F, "[1]", "[4,0]") "}", 4, offsets);
  check_header("{" X(F, "[1]", "[0,1e1]") "}", 4, offsets);
  check_header("{" X(F, "[1]", "[0,8]") "}", 8, "of F32 (1) needs 4 bytes, its data_offsets give it 8");
  check_header("{" X(F, "[2]", "[0,4]") "}", 4, "of F32 (2) needs 8 bytes, its data_offsets give it 4");
}

static void test_layout(void **state) {
  (void)state;
  check_header("{" X(F, "[1]", "[0,4]") "," Y(F, "[2]", "[4,12]") "}", 12, NULL);
  check_header("{" X(F, "[1]", "[8,12]") "," Y(F, "[2]", "[0,8]") "}", 12, NULL); /* any order in the JSON */
  check_header("{" X(F, "[1]", "[0,4]") "," Y(F, "[0]", "[0,0]") "}", 4, NULL);
  check_header("{" X(F, "[1]", "[0,4]") "," Y(F, "[1]", "[0,4]") "}", 4, "another tensor lies");
  check_header("{" X(F, "[2]", "[0,8]") "," Y(F, "[2]", "[4,12]") "}", 12, "another tensor lies");
  check_header("{" X(F, "[2]", "[0,8]") "," Y(F, "[0]", "[4,4]") "}", 8, "another tensor lies");
  check_header("{" X(F, "[1]", "[4,8]") "}", 8, "a hole lies before it");
  check_header("{" X(F, "[1]", "[0,4]") "," Y(F, "[1]", "[8,12]") "}", 12, "a hole lies before it");
  check_header("{" X(F, "[1]", "[0,4]") "," Y(F, "[0]", "[9,9]") "}", 4, "a hole lies before it");
  check_header("{" X(F, "[1]", "[0,4]") "}", 5, "1 bytes after the last tensor");
  check_header("{}", 1, "1 bytes after the last tensor");
  check_header("{" X(F, "[2]", "[0,8]") "}", 7, "is cut short");
  check_header("{" X(F, "[2305843009213693951]", "[0,9223372036854775804]") "}", 8, "no size in whole bytes");
  check_header("{" X(F, "[72057594037927935]", "[0,288230376151711740]") "}", 8, "is cut short");
}

static void test_deep_nesting(void **state) {
  (void)state;
  enum { DEPTH = 1000000 };
  char *text = (char *)xmalloc(DEPTH + 8);
  memcpy(text, "{\"x\":", 5);
  memset(text + 5, '[', DEPTH);
  put(DEPTH + 5, text, DEPTH + 5, 0);
  check_refused("depth");
  free(text);
}

/* Reads our file with nothing but Python's standard library, checks it, and writes it anew in its own style. */
static const char python_reader[] =
    "import json, struct, sys\n"
    "b = open(sys.argv[1], 'rb').read()\n"
    "n = struct.unpack('<Q', b[:8])[0]\n"
    "h = json.loads(b[8:8+n].decode('utf-8')); d = b[8+n:]\n"
    "assert (8 + n) % 8 == 0 and h['__metadata__'] == {'epoch': '3'}\n"
    "x = h['x']; assert x['dtype'] == 'F32' and x['shape'] == [3, 1], x\n"
    "x = struct.unpack('<3f', d[x['data_offsets'][0]:x['data_offsets'][1]]); assert x == (1.0, -2.5, 0.125), x\n"
    "y = h['y']; assert y['dtype'] == 'U8' and y['shape'] == [5], y\n"
    "y = d[y['data_offsets'][0]:y['data_offsets'][1]]; assert y == bytes([9, 8, 7, 6, 255]), y\n"
    "h = json.dumps({'y': {'shape': [5], 'data_offsets': [12, 17], 'dtype': 'U8'},\n"
    "  'x': {'shape': [3, 1], 'data_offsets': [0, 12], 'dtype': 'F32'}}).encode()\n"
    "open(sys.argv[1], 'wb').write(struct.pack('<Q', len(h)) + h + struct.pack('<3f', *x) + y)\n";

static void test_python_reads_it(void **state) {
  (void)state;
  if (system("python3 -c 'import json' 2>/dev/null") != 0) skip();
  const float x[] = {1.0f, -2.5f, 0.125f};
  const uint8_t y[] = {9, 8, 7, 6, 255};
  const size_t x_shape[] = {3, 1}, y_shape[] = {5};
  SafetensorsWriter out = {0};
  Error err;
  safetensors_add(&out, "x", "F32", 2, x_shape, x);
  safetensors_add(&out, "y", "U8", 1, y_shape, y);
  safetensors_add_metadata(&out, "epoch", "3");
  assert_int_equal(safetensors_write(&out, path, &err), 0);
  safetensors_writer_free(&out);
  char command[PATH_MAX + 100];
  snprintf(command, sizeof command, "python3 - '%s'", path);
  FILE *python = popen(command, "w");
  assert_non_null(python);
  fputs(python_reader, python);
  assert_int_equal(pclose(python), 0);
  float x_read[3];
  uint8_t y_read[5];
  SafetensorsFile in;
  if (safetensors_open(path, &in, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(safetensors_read_f32(&in, "x", 2, x_shape, x_read, &err), 0);
  assert_int_equal(safetensors_read(&in, "y", "U8", 1, y_shape, y_read, &err), 0);
  assert_memory_equal(x_read, x, sizeof x);
  assert_memory_equal(y_read, y, sizeof y);
  assert_null(safetensors_metadata(&in, "epoch"));
  safetensors_close(&in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_round_trip, setup),
      cmocka_unit_test_setup(test_golden_bytes, setup),
      cmocka_unit_test_setup(test_checksum, setup),
      cmocka_unit_test_setup(test_checksum_of_a_large_tensor, setup),
      cmocka_unit_test_setup(test_nothing_but_metadata, setup),
      cmocka_unit_test_setup(test_read_names_what_differs, setup),
      cmocka_unit_test_setup(test_writer_refuses, setup),
      cmocka_unit_test_setup(test_refuses_what_is_no_file, setup),
      cmocka_unit_test_setup(test_refuses_every_truncation_and_extension, setup),
      cmocka_unit_test_setup(test_header_length, setup),
      cmocka_unit_test_setup(test_header_text, setup),
      cmocka_unit_test_setup(test_entries, setup),
      cmocka_unit_test_setup(test_layout, setup),
      cmocka_unit_test_setup(test_deep_nesting, setup),
      cmocka_unit_test_setup(test_python_reads_it, setup),
  };
  return TEST_MAIN("safetensors", tests);
}
