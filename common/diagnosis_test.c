/* Names of diagnoses, and lists of them. */
#include "common/diagnosis.h"

#include "common/test.h"

static void every_name_is_its_own(void **state) {
  (void)state;
  for (int d = DIAGNOSIS_NONE + 1; d < DIAGNOSIS_KINDS; d++) {
    const char *name = diagnosis_name((Diagnosis)d);
    assert_int_equal(diagnosis_named(name, strlen(name)), d); /* so no two are the same */
    assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
    assert_true(strlen(diagnosis_entry((Diagnosis)d).says) > 10);
  }
  assert_string_equal(diagnosis_name(DIAGNOSIS_NONE), "none");
  assert_string_equal(diagnosis_name(DIAGNOSIS_KINDS), "none");
  assert_string_equal(diagnosis_name((Diagnosis)-1), "none");
}

static void only_whole_names_are_known(void **state) {
  (void)state;
  assert_int_equal(diagnosis_named("data_race", 9), DIAGNOSIS_DATA_RACE);
  assert_int_equal(diagnosis_named("data_race | nan", 9), DIAGNOSIS_DATA_RACE);
  assert_int_equal(diagnosis_named("data_race", 8), DIAGNOSIS_NONE);
  assert_int_equal(diagnosis_named("data_races", 10), DIAGNOSIS_NONE);
  assert_int_equal(diagnosis_named("Data_race", 9), DIAGNOSIS_NONE);
  assert_int_equal(diagnosis_named("none", 4), DIAGNOSIS_NONE);
  assert_int_equal(diagnosis_named("", 0), DIAGNOSIS_NONE);
}

static void lists_keep_their_order(void **state) {
  (void)state;
  char text[DIAGNOSES_TEXT];
  Diagnoses list = {0}, more = {0}, read;
  assert_string_equal(diagnoses_text(&list, text, sizeof text), "");
  assert_int_equal(diagnoses_first(&list), DIAGNOSIS_NONE);
  diagnoses_add(&list, DIAGNOSIS_NEVER_WRITTEN);
  diagnoses_add(&list, DIAGNOSIS_NONE);
  diagnoses_add(&list, DIAGNOSIS_LAST_TILE);
  diagnoses_add(&list, DIAGNOSIS_NEVER_WRITTEN);
  diagnoses_add(&more, DIAGNOSIS_LAST_TILE);
  diagnoses_add(&more, DIAGNOSIS_DATA_RACE);
  diagnoses_join(&list, &more);
  assert_int_equal(list.count, 3);
  assert_int_equal(diagnoses_first(&list), DIAGNOSIS_NEVER_WRITTEN);
  assert_true(diagnoses_has(&list, DIAGNOSIS_DATA_RACE));
  assert_false(diagnoses_has(&list, DIAGNOSIS_NAN));
  assert_string_equal(diagnoses_text(&list, text, sizeof text), "never_written last_tile data_race");
  assert_string_equal(diagnoses_text(&list, text, 10), "never_wri");
  diagnoses_read(&read, " never_written  of_the_future last_tile data_race\nnan");
  assert_int_equal(read.count, 3);
  assert_memory_equal(read.item, list.item, 3 * sizeof *list.item);
}

/* All names fit into the text of a list, and what does not fit into the list is left out. */
static void a_full_list(void **state) {
  (void)state;
  char text[DIAGNOSES_TEXT];
  size_t longest = 0;
  Diagnoses list = {0};
  for (int d = DIAGNOSIS_NONE + 1; d < DIAGNOSIS_KINDS; d++) {
    diagnoses_add(&list, (Diagnosis)d);
    if (strlen(diagnosis_name((Diagnosis)d)) > longest) longest = strlen(diagnosis_name((Diagnosis)d));
  }
  assert_int_equal(list.count, DIAGNOSES_MOST);
  assert_true(DIAGNOSES_MOST * (longest + 1) <= sizeof text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_name_is_its_own),
      cmocka_unit_test(only_whole_names_are_known),
      cmocka_unit_test(lists_keep_their_order),
      cmocka_unit_test(a_full_list),
  };
  return TEST_MAIN("diagnosis", tests);
}
