/* Files for TensorBoard: checksums and bytes by hand, and a whole file through a reader that shares no code with the
 * writer (tools/event_file.py, Python's standard library alone). tools/peers/tensorboard_read.py is the same with
 * TensorBoard's own reader. */
#include "common/event_file.h"
#include "common/expect.h"
#include "common/runfiles.h"
#include "common/test.h"

/* RFC 3720, B.4; the first is the usual check value of the polynomial. */
static void checksums_are_those_of_the_standard(void **state) {
  (void)state;
  unsigned char zeros[32] = {0}, ones[32], rising[32];
  memset(ones, 0xFF, sizeof ones);
  for (int i = 0; i < 32; i++) rising[i] = (unsigned char)i;
  assert_int_equal(event_file_crc("123456789", 9), 0xE3069283u);
  assert_int_equal(event_file_crc(zeros, 32), 0x8A9136AAu);
  assert_int_equal(event_file_crc(ones, 32), 0x62A8AB43u);
  assert_int_equal(event_file_crc(rising, 32), 0x46DD794Eu);
  assert_int_equal(event_file_crc("", 0), 0);
}

static size_t written(char *path, const char *name, void (*write)(FILE *), unsigned char *bytes, size_t room) {
  FILE *file = fopen(test_path(path, PATH_MAX, name), "wb");
  assert_non_null(file);
  write(file);
  assert_int_equal(fclose(file), 0);
  return test_read_file(path, (char *)bytes, room);
}

static void write_one(FILE *file) {
  const char *const names[] = {"a", "left out", "b"};
  const double values[] = {1.5, NAN, -2};
  event_file_scalars(file, 0.5, 300, names, values, 3);
}

/* The bytes of one record, by hand. */
static void a_record_is_framed_as_documented(void **state) {
  (void)state;
  static const unsigned char event[] = {
      0x09, 0,    0,    0,    0,   0,    0, 0xE0, 0x3F,       /* 1: double 0.5 */
      0x10, 0xAC, 0x02,                                       /* 2: 300 */
      0x2A, 0x14,                                             /* 5: 20 bytes */
      0x0A, 0x08, 0x0A, 0x01, 'a', 0x15, 0, 0,    0xC0, 0x3F, /* 1: { 1: "a", 2: 1.5 } */
      0x0A, 0x08, 0x0A, 0x01, 'b', 0x15, 0, 0,    0,    0xC0};
  char path[PATH_MAX];
  unsigned char bytes[128];
  assert_int_equal(written(path, "one", write_one, bytes, sizeof bytes), 16 + sizeof event);
  uint64_t length;
  uint32_t check;
  memcpy(&length, bytes, 8);
  assert_int_equal(length, sizeof event);
  memcpy(&check, bytes + 8, 4);
  const uint32_t crc = event_file_crc(bytes, 8);
  assert_int_equal(check, (uint32_t)((crc >> 15 | crc << 17) + 0xA282EAD8u));
  assert_memory_equal(bytes + 12, event, sizeof event);
}

static void write_many(FILE *file) {
  const char *const names[] = {"loss/train", "lr"};
  static char text[20001];
  event_file_begin(file, 1700000000.25);
  for (int i = 1; i <= 300; i++) {
    const double values[] = {1.0 / i, i % 3 ? NAN : 0.5 * i};
    event_file_scalars(file, 1700000000.25 + i, 1000000007L * i, names, values, 2);
  }
  memset(text, 'x', sizeof text - 1);
  memcpy(text, "| caf\xC3\xA9 |", 9);
  event_file_text(file, 2, 7, "settings", text);
}

static json_t *line_of(const char **at) {
  const char *end = strchr(*at, '\n');
  assert_non_null(end);
  json_t *row = json_loadb(*at, (size_t)(end - *at), 0, NULL);
  assert_non_null(row);
  *at = end + 1;
  return row;
}

static double number(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }
static const char *text_of(const json_t *row, const char *key) { return json_string_value(json_object_get(row, key)); }

static char reader[PATH_MAX];

static Subprocess read_back(const char *path) {
  const char *argv[] = {"/usr/bin/env", "python3", reader, path, NULL};
  return subprocess_run(argv, 60);
}

static void another_reader_finds_the_same(void **state) {
  (void)state;
  static unsigned char bytes[1 << 18];
  char path[PATH_MAX];
  const size_t size = written(path, "many", write_many, bytes, sizeof bytes);
  Subprocess run = read_back(path);
  expect_run(&run, 0, NULL, NULL);
  const char *at = run.out;
  json_t *row = line_of(&at);
  assert_string_equal(text_of(row, "version"), "brain.Event:2");
  assert_true(number(row, "time") == 1700000000.25 && number(row, "step") == 0);
  json_decref(row);
  row = line_of(&at);
  assert_true(number(row, "session") == 1 && number(row, "step") == 0);
  json_decref(row);
  for (int i = 1; i <= 300; i++)
    for (int k = 0; k < (i % 3 ? 1 : 2); k++) {
      row = line_of(&at);
      assert_string_equal(text_of(row, "tag"), k ? "lr" : "loss/train");
      assert_true(number(row, "time") == 1700000000.25 + i);
      assert_int_equal(json_integer_value(json_object_get(row, "step")), 1000000007LL * i);
      assert_true(number(row, "value") == (double)(float)(k ? 0.5 * i : 1.0 / i));
      json_decref(row);
    }
  row = line_of(&at);
  assert_string_equal(text_of(row, "tag"), "settings");
  assert_string_equal(text_of(row, "plugin"), "text");
  assert_true(number(row, "dtype") == 7 && number(row, "size") == 1 && number(row, "step") == 7);
  assert_int_equal(strlen(text_of(row, "text")), 20000);
  assert_int_equal(strncmp(text_of(row, "text"), "| caf\xC3\xA9 |x", 10), 0);
  json_decref(row);
  assert_string_equal(at, "");
  subprocess_free(&run);

  /* Cut short: what is whole is there. Damaged: it is said. */
  FILE *file = fopen(path, "wb");
  assert_int_equal(fwrite(bytes, 1, size - 5, file), size - 5);
  fclose(file);
  run = read_back(path);
  expect_run(&run, 0, "\"tag\": \"lr\", \"value\": 150.0", NULL);
  assert_null(strstr(run.out, "settings"));
  subprocess_free(&run);
  bytes[100] ^= 1;
  file = fopen(path, "wb");
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
  run = read_back(path);
  expect_run(&run, 1, NULL, "checksum");
  subprocess_free(&run);
}

static void touch(const char *folder, const char *name) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  fclose(fopen(path, "w"));
}

static void a_later_file_has_a_later_name(void **state) {
  (void)state;
  char folder[PATH_MAX];
  EventFileName name = {""};
  assert_int_equal(make_directories(test_path(folder, sizeof folder, "names"), NULL), 0);
  assert_int_equal(event_file_next(folder, &name), 0);
  assert_string_equal(event_file_name(folder, 1234.9).text, "events.out.tfevents.0000001234.nn");
  touch(folder, "events.out.tfevents.0000001234.nn");
  touch(folder, "events.out.tfevents.0000009999.host"); /* of another program */
  touch(folder, "events.out.tfevents.0000001300.nn");
  assert_string_equal(event_file_name(folder, 1234.9).text, "events.out.tfevents.0000001301.nn");
  assert_string_equal(event_file_name(folder, 1400).text, "events.out.tfevents.0000001400.nn");
  assert_int_equal(event_file_next(folder, &name), 1);
  assert_string_equal(name.text, "events.out.tfevents.0000001234.nn");
  assert_int_equal(event_file_next(folder, &name), 1);
  assert_string_equal(name.text, "events.out.tfevents.0000001300.nn");
  assert_int_equal(event_file_next(folder, &name), 0);
}

int main(void) {
  Error err;
  if (runfiles_find("tools/event_file.py", reader, sizeof reader, &err) != 0) die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(checksums_are_those_of_the_standard),
      cmocka_unit_test(a_record_is_framed_as_documented),
      cmocka_unit_test(another_reader_finds_the_same),
      cmocka_unit_test(a_later_file_has_a_later_name),
  };
  return TEST_MAIN("event_file", tests);
}
