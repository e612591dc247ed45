/* image_test.c - PNG and JPEG in and out, sheets pixel by pixel, and a sentence for whatever is no image. */
#include "common/image.h"

#include "common/test.h"

static char path[PATH_MAX];

static int setup(void **state) {
  (void)state;
  unlink(test_path(path, sizeof path, "image.png"));
  return 0;
}

static void check_refused(const char *expected) {
  Image image;
  Error err = {0};
  if (image_read_gray(path, &image, &err) == 0) fail_msg("accepted, but expected \"%s\"", expected);
  if (strstr(err.message, path) == NULL || strstr(err.message, expected) == NULL)
    fail_msg("expected \"%s\" and the path in: %s", expected, err.message);
  assert_null(image.pixels);
}

/* Different in every channel and direction. */
static Image picture(int width, int height, int channels) {
  Image image = image_new(width, height, channels);
  for (int i = 0; i < width * height * channels; i++) {
    int x = i / channels % width, y = i / channels / width;
    image.pixels[i] = (unsigned char)(255 * x / width / 2 + 100 * y / height + 10 * (i % channels));
  }
  return image;
}

/* 8 x 8 grey pixels of 16 x + 8 y, as libjpeg writes them. */
static const unsigned char jpeg[] = {
    0xff, 0xd8, 0xff, 0xe0, 0x00, 0x10, 0x4a, 0x46, 0x49, 0x46, 0x00, 0x01, 0x01, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00,
    0x00, 0xff, 0xdb, 0x00, 0x43, 0x00, 0x14, 0x0e, 0x0f, 0x12, 0x0f, 0x0d, 0x14, 0x12, 0x10, 0x12, 0x17, 0x15, 0x14,
    0x18, 0x1e, 0x32, 0x21, 0x1e, 0x1c, 0x1c, 0x1e, 0x3d, 0x2c, 0x2e, 0x24, 0x32, 0x49, 0x40, 0x4c, 0x4b, 0x47, 0x40,
    0x46, 0x45, 0x50, 0x5a, 0x73, 0x62, 0x50, 0x55, 0x6d, 0x56, 0x45, 0x46, 0x64, 0x88, 0x65, 0x6d, 0x77, 0x7b, 0x81,
    0x82, 0x81, 0x4e, 0x60, 0x8d, 0x97, 0x8c, 0x7d, 0x96, 0x73, 0x7e, 0x81, 0x7c, 0xff, 0xc0, 0x00, 0x0b, 0x08, 0x00,
    0x08, 0x00, 0x08, 0x01, 0x01, 0x11, 0x00, 0xff, 0xc4, 0x00, 0x14, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, 0xff, 0xc4, 0x00, 0x18, 0x10, 0x00, 0x02, 0x03, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x05, 0x21, 0x32, 0xff, 0xda,
    0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x3f, 0x00, 0x36, 0x29, 0x5c, 0xd1, 0xff, 0xd9};

static void test_png_round_trip(void **state) {
  (void)state;
  const int sizes[][2] = {{1, 1}, {3, 31}, {33, 7}, {127, 128}};
  for (int s = 0; s < 4; s++)
    for (int channels = 1; channels <= 3; channels += 2) {
      Image image = picture(sizes[s][0], sizes[s][1], channels), read;
      Error err;
      assert_int_equal(image_write_png(path, &image, &err), 0);
      if (image_read(path, channels, &read, &err) != 0) fail_msg("%s", err.message);
      assert_int_equal(read.width, image.width);
      assert_int_equal(read.height, image.height);
      assert_int_equal(read.channels, channels);
      assert_memory_equal(read.pixels, image.pixels, image.width * image.height * channels);
      image_free(&read);
      image_free(&image);
    }
}

static void test_jpeg_is_close(void **state) {
  (void)state;
  Image read;
  Error err;
  test_write_file(path, jpeg, sizeof jpeg);
  if (image_read_gray(path, &read, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(read.width, 8);
  assert_int_equal(read.height, 8);
  for (int i = 0; i < 64; i++) assert_true(abs(read.pixels[i] - (16 * (i % 8) + 8 * (i / 8))) <= 12);
  image_free(&read);
  assert_int_equal(image_read_rgb(path, &read, &err), 0);
  assert_int_equal(read.channels, 3);
  image_free(&read);
}

static void test_transparent_is_paper(void **state) {
  (void)state;
  unsigned char pixels[] = {0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 128, 200, 200, 200, 255};
  Image image = {4, 1, 4, pixels}, read;
  Error err;
  assert_int_equal(image_write_png(path, &image, &err), 0);
  assert_int_equal(image_read_gray(path, &read, &err), 0);
  const unsigned char expected[] = {255, 0, 127, 200};
  assert_memory_equal(read.pixels, expected, 4);
  image_free(&read);
}

/* A PNG that ends after its header. */
static void put_png_of_size(unsigned width, unsigned height) {
  unsigned char bytes[45] = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR";
  for (int i = 0; i < 4; i++) {
    bytes[16 + i] = (unsigned char)(width >> (24 - 8 * i));
    bytes[20 + i] = (unsigned char)(height >> (24 - 8 * i));
  }
  bytes[24] = 8;
  memcpy(bytes + 33, "\0\0\0\x09IDAT", 8); /* newer stb reads up to it; its content is cut short */
  test_write_file(path, bytes, sizeof bytes);
}

static void test_refuses_what_is_no_image(void **state) {
  (void)state;
  check_refused("No such file or directory");
  test_write_file(path, "", 0);
  check_refused("is empty");
  test_write_file(path, "P5 1 1 255\n.", 12);
  check_refused("PNG or JPEG file was expected");
  test_write_file(path, "GIF89a", 6);
  check_refused("PNG or JPEG file was expected");
  put_png_of_size(0, 0);
  check_refused("its size is not from 1 x 1");
  put_png_of_size(3, 0);
  check_refused("its size is not from 1 x 1");
  put_png_of_size(100000, 100000);
  check_refused("to 16384 x 16384 pixels");
  put_png_of_size(16000, 16000);
  check_refused("is 16000 x 16000 pixels; up to 67 million are read");
  put_png_of_size(28, 28);
  check_refused("cut short");
  snprintf(path, sizeof path, "%s", test_tmpdir());
  check_refused("is a directory");
  snprintf(path, sizeof path, "/dev/zero");
  check_refused("is a device or pipe");
}

static void test_refuses_every_truncation(void **state) {
  (void)state;
  unsigned char png[4000];
  Image image = picture(40, 30, 3);
  assert_int_equal(image_write_png(path, &image, NULL), 0);
  image_free(&image);
  size_t size = test_read_file(path, png, sizeof png);
  assert_true(size > 100 && size < sizeof png);
  for (size_t cut = 0; cut < size - 4; cut++) { /* it ends in a checksum that stb does not read */
    test_write_file(path, png, cut);
    check_refused("");
  }
  for (size_t cut = 0; cut < sizeof jpeg; cut++) {
    test_write_file(path, jpeg, cut);
    check_refused(cut > 2 ? "damaged or cut short" : "");
  }
}

/* 400 Huffman codes where 256 fit; Debian's stb writes them all. */
static void test_refuses_hostile_jpeg(void **state) {
  (void)state;
  unsigned char bad[sizeof jpeg];
  size_t table = 0;
  while (jpeg[table] != 0xff || jpeg[table + 1] != 0xc4) table++;
  memcpy(bad, jpeg, sizeof jpeg);
  bad[table + 6] = 200;
  bad[table + 7] = 200;
  test_write_file(path, bad, sizeof bad);
  check_refused("damaged or cut short");
}

/* The frame header of a 65500 x 65500 picture. */
static void test_refuses_enormous_jpeg(void **state) {
  (void)state;
  unsigned char bad[sizeof jpeg];
  size_t frame = 0;
  while (jpeg[frame] != 0xff || jpeg[frame + 1] != 0xc0) frame++;
  memcpy(bad, jpeg, sizeof jpeg);
  memcpy(bad + frame + 5, "\xff\xdc\xff\xdc", 4);
  test_write_file(path, bad, sizeof bad);
  check_refused("is 65500 x 65500 pixels; up to 67 million");
  memcpy(bad + frame + 5, "\0\x08\0\0", 4);
  test_write_file(path, bad, sizeof bad);
  check_refused("damaged or cut short");
}

/* For printers: its colours would have to be guessed. */
static void test_names_cmyk(void **state) {
  (void)state;
  unsigned char pixels[4 * 4 * 4], *bytes = NULL;
  unsigned long size = 0;
  for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (unsigned char)(i * 3);
  tjhandle encoder = tjInitCompress();
  assert_int_equal(tjCompress2(encoder, pixels, 4, 0, 4, TJPF_CMYK, &bytes, &size, TJSAMP_444, 90, 0), 0);
  test_write_file(path, bytes, size);
  tjFree(bytes);
  tjDestroy(encoder);
  check_refused("(CMYK); a grey or RGB image was expected");
}

static void test_limits_memory(void **state) {
  (void)state;
  assert_null(image_realloc(NULL, (size_t)1 << 30));
  assert_null(image_realloc(NULL, SIZE_MAX));
}

static void test_scale(void **state) {
  (void)state;
  unsigned char out[35];
  Image image = picture(5, 4, 1);
  image_scale_gray(&image, 0, 0, 5, 4, out, 5, 4); /* the same size: untouched */
  assert_memory_equal(out, image.pixels, 20);
  image_scale_gray(&image, 2, 1, 3, 2, out, 3, 2); /* a crop */
  for (int i = 0; i < 6; i++) assert_int_equal(out[i], image.pixels[(1 + i / 3) * 5 + 2 + i % 3]);
  image_free(&image);
  unsigned char pixels[] = {0, 90, 240, 10, 20, 30};
  Image two_rows = {3, 2, 1, pixels};
  image_scale_gray(&two_rows, 0, 0, 3, 1, out, 2, 1); /* (0 + 90/2) / 1.5, (90/2 + 240) / 1.5 */
  assert_int_equal(out[0], 30);
  assert_int_equal(out[1], 190);
  image_scale_gray(&two_rows, 0, 0, 3, 2, out, 1, 1);
  assert_int_equal(out[0], 65);
  image_scale_gray(&two_rows, 1, 0, 1, 2, out, 2, 4); /* enlarged */
  const unsigned char enlarged[] = {90, 90, 90, 90, 20, 20, 20, 20};
  assert_memory_equal(out, enlarged, 8);
  /* White stays white at every ratio: the weights add up to one. */
  Image white = image_new(300, 1, 1);
  for (int width = 1; width <= 300; width++)
    for (int to = 1; to <= 35; to++) {
      image_scale_gray(&white, 300 - width, 0, width, 1, out, to, 1);
      for (int i = 0; i < to; i++) assert_int_equal(out[i], 255);
    }
  image_free(&white);
}

static unsigned pixel(const Image *image, int x, int y) {
  const unsigned char *p = image->pixels + (y * image->width + x) * 3;
  return (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];
}

static void test_sheet_layout(void **state) {
  (void)state;
  unsigned char tiles[3 * 2 * 4]; /* three tiles of 2 x 4 */
  for (int i = 0; i < 24; i++) tiles[i] = (unsigned char)(10 * i);
  Image sheet = image_sheet_gray(tiles, 3, 2, 4, 2, 3, 5, NULL);
  assert_int_equal(sheet.width, 5 + 2 * (4 * 3 + 5));
  assert_int_equal(sheet.height, 5 + 2 * (2 * 3 + 5));
  for (int y = 0; y < sheet.height; y++)
    for (int x = 0; x < sheet.width; x++) {
      int column = (x - 5) / 17, row = (y - 5) / 11, i = (x - 5) % 17 / 3, j = (y - 5) % 11 / 3;
      int inside = x >= 5 && y >= 5 && (x - 5) % 17 < 12 && (y - 5) % 11 < 6 && row * 2 + column < 3;
      unsigned gray = inside ? tiles[(row * 2 + column) * 8 + j * 4 + i] : 255;
      assert_int_equal(pixel(&sheet, x, y), gray * 0x010101);
    }
  image_free(&sheet);
}

/* The caption "7>%" of a black tile, seen as dots. */
static void test_captions(void **state) {
  (void)state;
  static const char *const dots[7] = {
      "##### .#... ##...",  //
      "....# ..#.. ##..#",  //
      "...#. ...#. ...#.",  //
      "..#.. ....# ..#..",  //
      ".#... ...#. .#...",  //
      ".#... ..#.. #..##",  //
      ".#... .#... ...##",
  };
  const unsigned char tile[20] = {0};
  const char *captions[] = {"7>%"};
  Image sheet = image_sheet_gray(tile, 1, 1, 20, 1, 1, 0, captions);
  assert_int_equal(sheet.width, 20);
  assert_int_equal(sheet.height, 1 + 8);
  for (int y = 0; y < 7; y++)
    for (int x = 0; x < 17; x++)
      if (pixel(&sheet, x, 2 + y) != (dots[y][x] == '#' ? 0x000000u : 0xffffffu)) fail_msg("dot (%d,%d)", x, y);
  image_free(&sheet);
  const char *long_caption[] = {"0123456789->.%?abc"}; /* clipped, unknown characters blank */
  sheet = image_sheet_gray(tile, 1, 1, 20, 1, 4, 1, long_caption);
  image_free(&sheet);
}

/* "ap": the p hangs two dots below the a; in a colour, and as wide as is said. */
static void test_letters(void **state) {
  (void)state;
  static const char *const dots[9] = {
      "..... .....",  //
      "..... .....",  //
      ".###. ####.",  //
      "....# #...#",  //
      ".#### #...#",  //
      "#...# #...#",  //
      ".#### ####.",  //
      "..... #....",  //
      "..... #....",
  };
  const unsigned char colour[3] = {0x12, 0x34, 0x56};
  Image image = image_new(24, 20, 3);
  image_put_text_in(&image, 1, 1, 2, "ap", colour);
  assert_int_equal(image_text_width("ap", 2), 22);
  assert_int_equal(image_text_width("", 2), 0);
  for (int y = 0; y < 18; y++)
    for (int x = 0; x < 22; x++)
      if (pixel(&image, 1 + x, 1 + y) != (dots[y / 2][x / 2] == '#' ? 0x123456u : 0xffffffu))
        fail_msg("dot (%d,%d)", x, y);
  image_free(&image);
}

/* Round a rectangle of 3 x 2 pixels at (2,2), two pixels thick, clipped at the picture's edge. */
static void test_frame(void **state) {
  (void)state;
  const unsigned char colour[3] = {1, 2, 3};
  Image image = image_new(8, 5, 3);
  image_put_frame(&image, 2, 2, 3, 2, 2, colour);
  for (int y = 0; y < 5; y++)
    for (int x = 0; x < 8; x++) {
      const int inside = x >= 2 && x < 5 && y >= 2 && y < 4;
      assert_int_equal(pixel(&image, x, y), inside || x >= 7 ? 0xffffffu : 0x010203u);
    }
  image_free(&image);
}

static void test_filters(void **state) {
  (void)state;
  const float filters[] = {-2, 1, 0, 2, NAN, -1, INFINITY, -INFINITY};
  const unsigned expected[] = {0x0000ff, 0xff8080, 0xffffff, 0xff0000, 0x808080, 0x8080ff, 0xff0000, 0x0000ff};
  Image sheet = image_sheet_filters(filters, 2, 2, 2, 2, 1, 0);
  assert_int_equal(sheet.width, 4);
  assert_int_equal(sheet.height, 2);
  for (int i = 0; i < 8; i++) assert_int_equal(pixel(&sheet, i / 4 * 2 + i % 2, i % 4 / 2), expected[i]);
  image_free(&sheet);
  const float zeros[4] = {0};
  sheet = image_sheet_filters(zeros, 1, 2, 2, 1, 1, 0);
  assert_int_equal(pixel(&sheet, 1, 1), 0xffffff);
  image_free(&sheet);
}

static void test_write_errors(void **state) {
  (void)state;
  Image image = picture(3, 3, 1);
  Error err;
  assert_int_equal(image_write_png("/nonexistent/x.png", &image, &err), -1);
  assert_non_null(strstr(err.message, "/nonexistent/x.png"));
  image_free(&image);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_png_round_trip, setup),
      cmocka_unit_test_setup(test_jpeg_is_close, setup),
      cmocka_unit_test_setup(test_transparent_is_paper, setup),
      cmocka_unit_test_setup(test_refuses_what_is_no_image, setup),
      cmocka_unit_test_setup(test_refuses_every_truncation, setup),
      cmocka_unit_test_setup(test_refuses_hostile_jpeg, setup),
      cmocka_unit_test_setup(test_refuses_enormous_jpeg, setup),
      cmocka_unit_test_setup(test_names_cmyk, setup),
      cmocka_unit_test_setup(test_limits_memory, setup),
      cmocka_unit_test_setup(test_scale, setup),
      cmocka_unit_test_setup(test_sheet_layout, setup),
      cmocka_unit_test_setup(test_captions, setup),
      cmocka_unit_test_setup(test_letters, setup),
      cmocka_unit_test_setup(test_frame, setup),
      cmocka_unit_test_setup(test_filters, setup),
      cmocka_unit_test_setup(test_write_errors, setup),
  };
  return TEST_MAIN("image", tests);
}
