/* idx_test.c - what is written is read back, raw and gzipped; whatever else a file holds gets its sentence. */
#include "common/error.h"

static size_t largest_allocation; /* what the reader asked for at most in one piece */

static void *counted_realloc(void *memory, size_t size) {
  if (size > largest_allocation) largest_allocation = size;
  return realloc(memory, size);
}

#define realloc counted_realloc
#include "common/idx.h"
#undef realloc

#include "common/test.h"

static char path[PATH_MAX], path_gz[PATH_MAX];

static int setup(void **state) {
  (void)state;
  test_path(path, sizeof path, "array");
  test_path(path_gz, sizeof path_gz, "array.gz");
  unlink(path);
  unlink(path_gz);
  return 0;
}

static void put_gz(const char *name, const void *bytes, size_t size) {
  gzFile out = gzopen(name, "wb");
  assert_non_null(out);
  assert_int_equal(gzwrite(out, bytes, (unsigned)size), size);
  assert_int_equal(gzclose(out), Z_OK);
}

/* idx_read(name) must fail, leave nothing behind, and name the file and `expected` in its sentence. */
static void check_refused(const char *name, const char *expected) {
  IdxArray array;
  Error err = {0};
  memset(&array, 0xaa, sizeof array);
  assert_int_equal(idx_read(name, &array, &err), -1);
  if (strstr(err.message, name) == NULL || strstr(err.message, expected) == NULL)
    fail_msg("expected \"%s\" and \"%s\" in: %s", name, expected, err.message);
  assert_null(array.data);
  assert_int_equal(array.count, 0);
}

static void test_round_trip(void **state) {
  (void)state;
  const size_t shapes[][4] = {{1}, {127}, {3, 31}, {5, 33, 7}, {2, 3, 5, 7}, {0, 28, 28}, {211, 28, 28}};
  const int ranks[] = {1, 1, 2, 3, 4, 3, 3};
  unsigned char *data = (unsigned char *)xmalloc(211 * 28 * 28);
  for (size_t i = 0; i < 211 * 28 * 28; i++) data[i] = (unsigned char)(i * 31 + i / 256);
  for (size_t s = 0; s < sizeof ranks / sizeof ranks[0]; s++)
    for (int zipped = 0; zipped < 2; zipped++) {
      IdxArray array;
      Error err;
      setup(NULL);
      assert_int_equal(idx_write(path, ranks[s], shapes[s], data, &err), 0);
      if (zipped) { /* and found as path.gz where path is asked for */
        unsigned char *bytes = (unsigned char *)xmalloc(200000);
        put_gz(path_gz, bytes, test_read_file(path, bytes, 200000));
        free(bytes);
        unlink(path);
      }
      if (idx_read(path, &array, &err) != 0) fail_msg("%s", err.message);
      assert_int_equal(array.rank, ranks[s]);
      size_t count = 1;
      for (int i = 0; i < ranks[s]; i++) {
        assert_int_equal(array.shape[i], shapes[s][i]);
        count *= shapes[s][i];
      }
      assert_int_equal(array.count, count);
      assert_memory_equal(array.data, data, count);
      idx_free(&array);
    }
  free(data);
}

static void test_bytes_of_the_format(void **state) {
  (void)state;
  const unsigned char expected[] = {0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 1, 2}, pixels[258] = {7, 8};
  const size_t shape[] = {1, 258};
  unsigned char bytes[300];
  assert_int_equal(idx_write(path, 2, shape, pixels, NULL), 0);
  assert_int_equal(test_read_file(path, bytes, sizeof bytes), 12 + 258);
  assert_memory_equal(bytes, expected, 12);
  assert_memory_equal(bytes + 12, pixels, 258);
}

static void test_refuses_what_is_no_file(void **state) {
  (void)state;
  check_refused(path, "No such file or directory");
  check_refused(test_tmpdir(), "is a directory");
  check_refused("/dev/null", "is a device or pipe");
  test_write_file(path, "", 0);
  check_refused(path, "is empty");
  put_gz(path, "", 0);
  check_refused(path, "is empty");
}

static void test_refuses_foreign_content(void **state) {
  (void)state;
  test_write_file(path, "<!DOCTYPE html><html>404</html>", 31);
  check_refused(path, "is not an IDX file");
  test_write_file(path, "\0\0\x0d\x01\0\0\0\1\0\0\0\0", 12);
  check_refused(path, "type 0x0d");
  test_write_file(path, "\0\0\x08\x00", 4);
  check_refused(path, "declares 0 dimensions");
  test_write_file(path, "\0\0\x08\x05\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1x", 25);
  check_refused(path, "declares 5 dimensions");
  test_write_file(path, "\0\0\x08\x02\0\0\0\1\0\0\0\3abcd", 16);
  check_refused(path, "more than the 3 bytes");
}

static void test_refuses_every_truncation(void **state) {
  (void)state;
  const unsigned char whole[] = "\0\0\x08\x02\0\0\0\2\0\0\0\3abcdef";
  unsigned char zipped[200];
  put_gz(path_gz, whole, 18);
  size_t zipped_size = test_read_file(path_gz, zipped, sizeof zipped);
  for (size_t size = 0; size < 18; size++) {
    test_write_file(path, whole, size);
    check_refused(path, size == 0 ? "is empty" : size < 4 ? "not an IDX" : size < 12 ? "header" : "declares 6 bytes");
  }
  unlink(path);
  for (size_t size = 1; size < zipped_size; size++) {
    test_write_file(path_gz, zipped, size);
    check_refused(path_gz, size < 10 ? "fetch it again" : "cut short"); /* zlib 1.3.2 copies half a gzip header */
  }
}

/* Long enough that zlib meets the checksum only after all data has been handed out. */
static void test_verifies_the_checksum(void **state) {
  (void)state;
  enum { COUNT = 200000 };
  const size_t shape[] = {COUNT};
  unsigned char *data = (unsigned char *)xmalloc(3 * COUNT), *raw = data + COUNT, *zipped = raw;
  for (size_t i = 0; i < COUNT; i++) data[i] = (unsigned char)(i * i >> 3);
  assert_int_equal(idx_write(path, 1, shape, data, NULL), 0);
  put_gz(path_gz, raw, test_read_file(path, raw, 2 * COUNT));
  unlink(path);
  size_t size = test_read_file(path_gz, zipped, 2 * COUNT);
  for (size_t at = 10; at < size; at += at < size - 8 ? (size - 17) / 97 : 1) { /* 10 bytes of header, 8 of checksum */
    zipped[at] ^= 4;
    test_write_file(path_gz, zipped, size);
    check_refused(path_gz, "fetch it again");
    zipped[at] ^= 4;
    if (at > size - 8) test_write_file(path_gz, zipped, at);
    if (at > size - 8) check_refused(path_gz, "is cut short");
  }
  free(data);
}

static void test_allocates_only_what_arrives(void **state) {
  (void)state;
  largest_allocation = 0;
  test_write_file(path, "\0\0\x08\x03\x7f\xff\xff\xff\0\0\0\1\0\0\0\1", 16); /* one byte below 2 GiB */
  check_refused(path, "declares 2147483647 bytes of data and holds 0");
  assert_true(largest_allocation <= 1 << 20);
  test_write_file(path, "\0\0\x08\x01\x80\0\0\1", 8);
  check_refused(path, "declares more than 2048 MiB");
  test_write_file(path, "\0\0\x08\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 20);
  check_refused(path, "declares more than 2048 MiB");
  test_write_file(path, "\0\0\x08\x04\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0", 20); /* 2^64 wraps round to 0 */
  check_refused(path, "declares more than 2048 MiB");
  assert_true(largest_allocation <= 1 << 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_round_trip, setup),
      cmocka_unit_test_setup(test_bytes_of_the_format, setup),
      cmocka_unit_test_setup(test_refuses_what_is_no_file, setup),
      cmocka_unit_test_setup(test_refuses_foreign_content, setup),
      cmocka_unit_test_setup(test_refuses_every_truncation, setup),
      cmocka_unit_test_setup(test_verifies_the_checksum, setup),
      cmocka_unit_test_setup(test_allocates_only_what_arrives, setup),
  };
  return TEST_MAIN("idx", tests);
}
