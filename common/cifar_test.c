/* cifar_test.c - files in the official layout are read; what is something else gets its sentence. */
#include "common/cifar.h"

#include "common/test.h"

static char directory[PATH_MAX];

static unsigned char pixel(size_t record, size_t i) { return (unsigned char)(record * 37 + i * 11 + i / 256); }
static unsigned char label(size_t record, int classes) { return (unsigned char)((record * 7 + 3) % (size_t)classes); }

static const char *in_directory(const char *name) {
  static char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

/* Records `first` to `first` + `count` - 1, byte by byte as the format has them; memory of malloc(). */
static unsigned char *make_records(const CifarKind *kind, size_t first, size_t count, size_t *size) {
  unsigned char *bytes = (unsigned char *)xmalloc(count * (CIFAR_PIXELS + 2) + 1), *at = bytes;
  for (size_t r = first; r < first + count; r++) {
    if (kind == &cifar100) *at++ = (unsigned char)(r % 20);
    *at++ = label(r, kind->classes);
    for (size_t i = 0; i < 3072; i++) *at++ = pixel(r, i);
  }
  *size = (size_t)(at - bytes);
  return bytes;
}

static void put(const char *name, const CifarKind *kind, size_t first, size_t count) {
  size_t size;
  unsigned char *bytes = make_records(kind, first, count, &size);
  test_write_file(in_directory(name), bytes, size);
  free(bytes);
}

/* Two sets in one folder: 7 + 1 + 3 + 2 + 1000 and 4 records; 5 and 3. */
static int setup(void **state) {
  (void)state;
  snprintf(directory, sizeof directory, "%s", test_tmpdir());
  put("data_batch_1.bin", &cifar10, 0, 7);
  put("data_batch_2.bin", &cifar10, 7, 1);
  put("data_batch_3.bin", &cifar10, 8, 3);
  put("data_batch_4.bin", &cifar10, 11, 2);
  put("data_batch_5.bin", &cifar10, 13, 1000);
  put("test_batch.bin", &cifar10, 2000, 4);
  put("train.bin", &cifar100, 0, 5);
  put("test.bin", &cifar100, 50, 3);
  unlink(in_directory("batches.meta.txt"));
  unlink(in_directory("fine_label_names.txt"));
  return 0;
}

static void check_set(const CifarKind *kind, int train, size_t first, size_t count) {
  CifarSet set;
  Error err;
  if (cifar_load(directory, kind, train, &set, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(set.count, count);
  for (size_t r = 0; r < count; r++) {
    assert_int_equal(set.labels[r], label(first + r, kind->classes));
    for (size_t i = 0; i < 3072; i++)
      if (set.images[r * 3072 + i] != pixel(first + r, i)) fail_msg("record %zu, pixel %zu", r, i);
  }
  cifar_free(&set);
}

static void test_reads_the_official_layout(void **state) {
  (void)state;
  check_set(&cifar10, 1, 0, 1013);
  check_set(&cifar10, 0, 2000, 4);
  check_set(&cifar100, 1, 0, 5);
  check_set(&cifar100, 0, 50, 3);
}

/* Loading must fail, leave nothing behind, and name the file and `expected` in its sentence. */
static void check_refused(const CifarKind *kind, int train, const char *name, const char *expected) {
  CifarSet set;
  Error err = {0};
  memset(&set, 0xaa, sizeof set);
  if (cifar_load(directory, kind, train, &set, &err) == 0) fail_msg("accepted, but expected \"%s\"", expected);
  if (strstr(err.message, in_directory(name)) == NULL || strstr(err.message, expected) == NULL)
    fail_msg("expected \"%s\" and %s in: %s", expected, name, err.message);
  assert_null(set.images);
  assert_null(set.labels);
  assert_int_equal(set.count, 0);
}

static void test_refuses_a_wrong_length(void **state) {
  (void)state;
  const size_t cuts[] = {1, 2, 100, 3072, 3073 + 1, 2 * 3073 - 1, 3074};
  size_t size;
  unsigned char *bytes = make_records(&cifar10, 0, 3, &size);
  assert_int_equal(size, 3 * 3073);
  for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
    char expected[64];
    snprintf(expected, sizeof expected, "has %zu bytes; a whole number of records of 3073", cuts[i]);
    test_write_file(in_directory("data_batch_3.bin"), bytes, cuts[i]);
    check_refused(&cifar10, 1, "data_batch_3.bin", expected);
  }
  free(bytes);
  put("test.bin", &cifar10, 0, 1); /* one byte short of a record of the other set */
  check_refused(&cifar100, 0, "test.bin", "has 3073 bytes; a whole number of records of 3074");
  test_write_file(in_directory("test_batch.bin"), "", 0);
  check_refused(&cifar10, 0, "test_batch.bin", "is empty; records of 3073 bytes are expected");
}

/* The byte at `at` of a file becomes `value`. */
static void damage(const char *name, long at, int value) {
  FILE *file = fopen(in_directory(name), "r+b");
  assert_non_null(file);
  assert_int_equal(fseek(file, at, SEEK_SET), 0);
  fputc(value, file);
  fclose(file);
}

static void test_refuses_wrong_labels(void **state) {
  (void)state;
  damage("data_batch_1.bin", 2 * 3073, 10);
  check_refused(&cifar10, 1, "data_batch_1.bin", "the label of record 2 is 10; 0 to 9 is expected");
  damage("data_batch_1.bin", 2 * 3073, 9);
  damage("data_batch_5.bin", 999 * 3073, 255);
  check_refused(&cifar10, 1, "data_batch_5.bin", "the label of record 999 is 255; 0 to 9 is expected");
  damage("train.bin", 4 * 3074 + 1, 100);
  check_refused(&cifar100, 1, "train.bin", "the fine label of record 4 is 100; 0 to 99 is expected");
  damage("train.bin", 4 * 3074 + 1, 99);
  damage("train.bin", 3074, 20);
  check_refused(&cifar100, 1, "train.bin", "the coarse label of record 1 is 20; 0 to 19 is expected");
}

static void test_refuses_what_is_no_file(void **state) {
  (void)state;
  unlink(in_directory("data_batch_4.bin"));
  check_refused(&cifar10, 1, "data_batch_4.bin", "No such file or directory; name the folder of the binary version");
  assert_int_equal(mkdir(in_directory("data_batch_4.bin"), 0777), 0);
  check_refused(&cifar10, 1, "data_batch_4.bin", "is a directory");
  rmdir(in_directory("data_batch_4.bin"));
  snprintf(directory, sizeof directory, "/no/such/folder");
  check_refused(&cifar100, 0, "test.bin", "cifar-100-binary");
}

static void test_names_of_classes(void **state) {
  (void)state;
  static char names[CIFAR_MAX_CLASSES][CIFAR_NAME];
  const char *const wrong[] = {"", "a\nb\nc\nd\ne\nf\ng\nh\ni\n", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n",
                               "a\nb\n\nc\nd\ne\nf\ng\nh\ni\nj\n",
                               "0123456789012345678901234567890123456789\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"};
  Error err = {0};
  assert_int_equal(cifar_load_names(directory, &cifar10, names, &err), 0);
  const char *const right = "plane\r\ncar\nb\nc\nd\ne\nf\ng\nh\nlorry\n\n";
  test_write_file(in_directory("batches.meta.txt"), right, strlen(right));
  assert_int_equal(cifar_load_names(directory, &cifar10, names, &err), 1);
  assert_string_equal(names[0], "plane");
  assert_string_equal(names[9], "lorry");
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    test_write_file(in_directory("batches.meta.txt"), wrong[i], strlen(wrong[i]));
    assert_int_equal(cifar_load_names(directory, &cifar10, names, &err), -1);
    assert_non_null(strstr(err.message, "batches.meta.txt: 10 lines"));
    assert_string_equal(names[9], "lorry");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_reads_the_official_layout, setup),
      cmocka_unit_test_setup(test_refuses_a_wrong_length, setup),
      cmocka_unit_test_setup(test_refuses_wrong_labels, setup),
      cmocka_unit_test_setup(test_refuses_what_is_no_file, setup),
      cmocka_unit_test_setup(test_names_of_classes, setup),
  };
  return TEST_MAIN("cifar", tests);
}
