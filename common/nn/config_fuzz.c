/* config_fuzz.c - no file can make config_load() crash, leak, or name a line that is not there. */
#include "common/fuzz_file.h"

#include "common/nn/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct argp_option rows[] = {{"lr", 'l', "RATE", 0, "", 0},
                                          {"batch-size", 1, "N", 0, "", 0},
                                          {"nesterov", 2, NULL, 0, "", 0},
                                          {"find-lr", 3, "N", OPTION_ARG_OPTIONAL, "", 0},
                                          {"images", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0},
                                          {NULL, 0, NULL, 0, NULL, 0}};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const struct argp all = {rows, NULL, NULL, NULL, NULL, NULL, NULL};
  static Config config;
  Error err = {0};
  int lines = 1;
  memset(&config, 0, sizeof config);
  config_collect(&config, &all);
  for (size_t i = 0; i < size; i++) lines += bytes[i] == '\n';
  if (config_load(&config, fuzz_file(bytes, size), &err) != 0 && err.message[0] == '\0') abort();
  for (int i = 0; i < config.count; i++) {
    if (config.rows[i].line < 0 || config.rows[i].line > lines) abort();
    if (config.rows[i].value && config.rows[i].line == 0) abort();
    free(config.rows[i].value);
  }
  return 0;
}
