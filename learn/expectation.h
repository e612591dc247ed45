/* expectation.h - which diagnosis an author expects: names of common/diagnosis.h, with words where these matter.
 *
 *     never_written                            one name
 *     data_race | uninitialised_read           one of these
 *     limit "global_store_sectors"             this name, and the message holds these words
 */
#ifndef LEARN_EXPECTATION_H
#define LEARN_EXPECTATION_H

#include "learn/verdict.h"

/* One of the alternatives. */
typedef struct Expectation {
  const char *name, *words; /* words: "" when any message will do */
  Diagnosis diagnosis;      /* DIAGNOSIS_NONE: there is no such name */
} Expectation;

/* The first alternative of `text`; returns what follows its '|', or NULL when it is the last. `problem` becomes a
 * sentence when the text cannot be read. */
static inline const char *expectation_next(const char *text, Expectation *one, const char **problem) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
  const char *name = text + strspn(text, " "), *rest = name + strspn(name, letters);
  one->name = keep_bytes(name, (size_t)(rest - name));
  one->words = "";
  one->diagnosis = diagnosis_named(name, (size_t)(rest - name));
  rest += strspn(rest, " ");
  if (rest[0] == '"' && strchr(rest + 1, '"') != NULL) {
    const char *end = strchr(rest + 1, '"');
    one->words = keep_bytes(rest + 1, (size_t)(end - rest - 1));
    rest = end + 1 + strspn(end + 1, " ");
  }
  if (rest == name || (rest[0] != '\0' && rest[0] != '|'))
    *problem = keep_printf("\"%s\" cannot be read; expected NAME or NAME \"words\", alternatives between |", text);
  return rest[0] == '|' && *problem == NULL ? rest + 1 : NULL;
}

/* All names with what they say, one on each line. */
static inline void expectation_print_names(void) {
  for (int d = DIAGNOSIS_NONE + 1; d < DIAGNOSIS_KINDS; d++)
    printf("  %-20s %s\n", diagnosis_name((Diagnosis)d), diagnosis_entry((Diagnosis)d).says);
}

/* NULL, or why no verdict can meet the expectation. */
static inline const char *expectation_problem(const char *text) {
  const char *problem = NULL;
  while (text != NULL && problem == NULL) {
    Expectation one;
    text = expectation_next(text, &one, &problem);
    if (problem == NULL && one.diagnosis == DIAGNOSIS_NONE) problem = keep_printf("unknown diagnosis \"%s\"", one.name);
  }
  return problem;
}

static inline bool expectation_names_one(const char *text, Diagnosis diagnosis) {
  const char *problem = NULL;
  while (text != NULL && problem == NULL) {
    Expectation one;
    text = expectation_next(text, &one, &problem);
    if (one.diagnosis == diagnosis) return true;
  }
  return false;
}

/* Is it one of the diagnoses that are expected? */
static inline bool expectation_met(const char *text, const Verdict *verdict) {
  const char *problem = expectation_problem(text);
  while (text != NULL && problem == NULL) {
    Expectation one;
    text = expectation_next(text, &one, &problem);
    if (one.diagnosis != DIAGNOSIS_NONE && verdict_has(verdict, one.diagnosis) &&
        strstr(verdict->message, one.words) != NULL)
      return true;
  }
  return false;
}

#endif /* LEARN_EXPECTATION_H */
