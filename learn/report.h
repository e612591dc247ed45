/* report.h - grades as files: CSV, JSON, JUnit XML, and what Gradescope and Classroom 50 read; and how a class did. */
#ifndef LEARN_REPORT_H
#define LEARN_REPORT_H

#include "learn/verdict.h"

enum { SUBMISSIONS_MAX = 4096 };
typedef enum Status { CORRECT, REJECTED, NOT_IMPLEMENTED, MISSING, NOT_GRADED, STATUSES } Status;
static const char *const status_names[STATUSES] = {"correct", "rejected", "not implemented", "missing", "not graded"};
static const double GRADE_TOO_GOOD = 1.5; /* a ratio above it is no more points, and worth a look */

typedef struct Grade {
  const Exercise *exercise;
  Verdict verdict;
  bool handed_in; /* false: the exercise is not in the submission */
  bool decided;
  int unit;       /* of the grader's work, of whose verdict this is a copy; -1: none */
  double seconds; /* that grading took; 0 for lines that had been graded for another submission */
  double ratio; /* the reference's cost over the student's, by time on a GPU, else by counts; 0 when it is not right */
  double score; /* of exercise->points */
} Grade;

typedef struct Submission {
  const char *name, *path;
  const char *problem; /* NULL, or why nothing could be graded */
  Grade *grade;        /* one for each exercise */
  int grades;
  int count[STATUSES]; /* how many of each */
  double score, points;
  double seconds; /* of work, so far */
} Submission;

typedef struct Report {
  Submission *item;
  int count;
  unsigned long long seed;
  const char *device; /* "GPU" or "inspector" */
} Report;

/* ---------------------------------------------------------------------------------------------------------------- */
/* The rubric */

/* How much more than the reference: the worse of global and of shared memory. */
static inline double grade_cost(const Measured *yours, const Measured *reference) {
  static const char *const pairs[][2] = {{"global_load_sectors", "global_store_sectors"},
                                         {"shared_load_wavefronts", "shared_store_wavefronts"}};
  double worst = 0;
  for (int i = 0; i < 2; i++) {
    double mine = measured(yours, pairs[i][0]) + measured(yours, pairs[i][1]);
    double theirs = measured(reference, pairs[i][0]) + measured(reference, pairs[i][1]);
    if (theirs > 0) worst = fmax(worst, mine / theirs);
  }
  return worst;
}

/* 70 % for a right result within the exercise's limits, 30 % in proportion to how near it comes to the reference. */
static inline void grade_set(Grade *grade) {
  const Verdict *verdict = &grade->verdict;
  grade->ratio = grade->score = 0;
  if (verdict->kind != VERDICT_RIGHT) return;
  if (verdict->yours.seconds > 0 && verdict->reference.seconds > 0)
    grade->ratio = verdict->reference.seconds / verdict->yours.seconds;
  else if (grade_cost(&verdict->yours, &verdict->reference) > 0)
    grade->ratio = 1 / grade_cost(&verdict->yours, &verdict->reference);
  grade->score = grade->exercise->points * (0.7 + 0.3 * fmin(1, grade->ratio));
}

static inline Status grade_status(const Grade *grade) {
  if (grade->verdict.kind == VERDICT_NONE) return NOT_GRADED;
  if (!grade->handed_in) return MISSING;
  if (grade->verdict.kind == VERDICT_RIGHT) return CORRECT;
  return grade->verdict.kind == VERDICT_TODO ? NOT_IMPLEMENTED : REJECTED;
}

/* The diagnosis, or what was achieved. */
static inline const char *grade_text(const Grade *grade) {
  if (grade->verdict.kind != VERDICT_RIGHT) return grade->verdict.message;
  return keep_printf("correct on %d shapes; %.2f of the reference's performance%s", grade->verdict.shapes, grade->ratio,
                     grade->ratio > GRADE_TOO_GOOD ? ": look at these lines" : "");
}

/* Its name in common/diagnosis.h; "" when it is right, or was not graded. */
static inline const char *grade_diagnosis(const Grade *grade) {
  const Diagnosis diagnosis = grade->handed_in ? verdict_diagnosis(&grade->verdict) : DIAGNOSIS_NONE;
  return diagnosis == DIAGNOSIS_NONE ? "" : diagnosis_name(diagnosis);
}

/* One line of it for a table: what of a compiler's messages is the first error. FILE:LINE is without its folders. */
static inline const char *grade_headline(const Grade *grade) {
  const char *line = grade_text(grade), *error = strstr(line, " error: ");
  if (grade->verdict.kind == VERDICT_COMPILE && error != NULL) {
    while (error > line && error[-1] != '\n') error--;
    line = error;
  }
  line = keep_bytes(line, strcspn(line, "\n"));
  const char *place = line + strcspn(line, ": ");
  if (place[0] != ':' || !isdigit((unsigned char)place[1])) return line;
  while (place > line && place[-1] != '/') place--;
  return place;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Text that any program may have printed */

/* Only what XML, JSON and a terminal may be given: no control characters, and UTF-8 or else "?". */
static inline char *report_clean(const char *text) {
  Text out = {0};
  text_add(&out, "");
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
    int length = *c < 0x80 ? 1 : (*c & 0xE0) == 0xC0 && *c >= 0xC2 ? 2 : (*c & 0xF0) == 0xE0 ? 3 : 0;
    if (length == 0 && (*c & 0xF8) == 0xF0 && *c <= 0xF4) length = 4;
    bool good = length > 0 && (length > 1 || *c >= ' ' || *c == '\n' || *c == '\t');
    for (int i = 1; i < length && good; i++) good = (c[i] & 0xC0) == 0x80;
    if (good && length == 3 &&
        ((*c == 0xE0 && c[1] < 0xA0) || (*c == 0xED && c[1] >= 0xA0) || (*c == 0xEF && c[1] == 0xBF && c[2] >= 0xBE)))
      good = false;                                      /* overlong, a surrogate, or no character */
    if (good && *c == 0xC2 && c[1] < 0xA0) good = false; /* C1: terminals obey these, too */
    if (good && length == 4 && ((*c == 0xF0 && c[1] < 0x90) || (*c == 0xF4 && c[1] > 0x8F))) good = false;
    if (good)
      text_append(&out, (const char *)c, (size_t)length);
    else
      text_add(&out, "?");
    c += good ? length : 1;
  }
  return keep_text(&out);
}

/* On one line: a folder's name with others in it would look like somebody's grade. */
static inline char *report_line(const char *text) {
  char *line = report_clean(text);
  for (char *c = line; *c != '\0'; c++) *c = *c == '\n' || *c == '\t' ? '?' : *c;
  return line;
}

static inline char *report_xml(const char *text) {
  Text out = {0};
  text_add(&out, "");
  for (const char *c = report_clean(text); *c != '\0'; c++) {
    if (*c == '<')
      text_add(&out, "&lt;");
    else if (*c == '>')
      text_add(&out, "&gt;");
    else if (*c == '&')
      text_add(&out, "&amp;");
    else if (*c == '"')
      text_add(&out, "&quot;");
    else
      text_append(&out, c, 1);
  }
  return keep_text(&out);
}

/* In quotes, and never a formula: a spreadsheet would compute what begins with = + - @. */
static inline char *report_csv_field(const char *text) {
  Text out = {0};
  const char *clean = report_clean(text);
  text_add(&out, strchr("=+-@\t\n", clean[0]) != NULL && clean[0] != '\0' ? "\"'" : "\"");
  for (const char *c = clean; *c != '\0'; c++) text_append(&out, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
  text_add(&out, "\"");
  return keep_text(&out);
}

static inline int report_save(Text *text, const char *path, Error *err) {
  int status = text_write_file(path, text->bytes, text->length, err);
  text_free(text);
  return status;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Formats */

/* One row for each student, one column for each exercise, empty where it is not graded: for a table of marks. */
static inline int report_csv(const Report *report, const char *path, Error *err) {
  Text out = {0};
  text_add(&out, "submission,score,points");
  for (int k = 0; k < STATUSES; k++) text_printf(&out, ",%s", status_names[k]);
  for (int i = 0; report->count > 0 && i < report->item[0].grades; i++)
    text_printf(&out, ",%s", report->item[0].grade[i].exercise->name);
  text_add(&out, "\n");
  for (int s = 0; s < report->count; s++) {
    const Submission *submission = &report->item[s];
    text_printf(&out, "%s,%.2f,%.0f", report_csv_field(submission->name), submission->score, submission->points);
    for (int k = 0; k < STATUSES; k++) text_printf(&out, ",%d", submission->count[k]);
    for (int i = 0; i < submission->grades; i++)
      if (grade_status(&submission->grade[i]) == NOT_GRADED)
        text_add(&out, ",");
      else
        text_printf(&out, ",%.2f", submission->grade[i].score);
    text_add(&out, "\n");
  }
  return report_save(&out, path, err);
}

/* One row for each exercise of each student, with the diagnosis. */
static inline int report_csv_exercises(const Report *report, const char *path, Error *err) {
  Text out = {0};
  text_add(&out, "submission,exercise,status,score,points,ratio,verdict,diagnosis,diagnosis_name\n");
  for (int s = 0; s < report->count; s++) {
    const Submission *submission = &report->item[s];
    for (int i = 0; i < submission->grades; i++) {
      const Grade *grade = &submission->grade[i];
      text_printf(&out, "%s,%s,%s,%.2f,%d,", report_csv_field(submission->name), grade->exercise->name,
                  status_names[grade_status(grade)], grade->score, grade->exercise->points);
      if (grade->ratio > 0) text_printf(&out, "%.3f", grade->ratio);
      text_printf(&out, ",%s,%s,%s\n", verdict_names[grade->verdict.kind], report_csv_field(grade_text(grade)),
                  grade_diagnosis(grade));
    }
    text_printf(&out, "%s,TOTAL,%s,%.2f,%.0f,,,%s,\n", report_csv_field(submission->name),
                submission->problem == NULL ? "graded" : "not graded", submission->score, submission->points,
                report_csv_field(submission->problem == NULL ? "" : submission->problem));
  }
  return report_save(&out, path, err);
}

static inline json_t *report_measured(const Measured *m) {
  json_t *object = json_object();
  for (int i = 0; i < COUNTS; i++) json_object_set_new(object, count_names[i], json_real(m->count[i]));
  if (m->seconds > 0) json_object_set_new(object, "seconds", json_real(m->seconds));
  return object;
}

static inline int report_json(const Report *report, const char *path, Error *err) {
  json_t *submissions = json_array();
  for (int s = 0; s < report->count; s++) {
    const Submission *submission = &report->item[s];
    json_t *grades = json_array();
    for (int i = 0; i < submission->grades; i++) {
      const Grade *grade = &submission->grade[i];
      json_t *item =
          json_pack("{s:s, s:s, s:s, s:f, s:i, s:s, s:s, s:f}", "exercise", grade->exercise->name, "status",
                    status_names[grade_status(grade)], "verdict", verdict_names[grade->verdict.kind], "score",
                    grade->score, "points", grade->exercise->points, "diagnosis", report_clean(grade_text(grade)),
                    "diagnosis_name", grade_diagnosis(grade), "graded_in_seconds", grade->seconds);
      if (grade->verdict.kind == VERDICT_RIGHT) {
        json_object_set_new(item, "ratio", json_real(grade->ratio));
        json_object_set_new(item, "measured", report_measured(&grade->verdict.yours));
        json_object_set_new(item, "reference", report_measured(&grade->verdict.reference));
      }
      json_array_append_new(grades, item);
    }
    json_t *item = json_pack("{s:s, s:f, s:f, s:o}", "submission", report_clean(submission->name), "score",
                             submission->score, "points", submission->points, "exercises", grades);
    if (submission->problem != NULL)
      json_object_set_new(item, "problem", json_string(report_clean(submission->problem)));
    json_array_append_new(submissions, item);
  }
  return json_write(path,
                    json_pack("{s:s, s:s, s:o}", "seed", keep_printf("%llu", report->seed), "measured_by",
                              report->device, "submissions", submissions),
                    err);
}

static inline int report_junit(const Report *report, const char *path, Error *err) {
  Text out = {0};
  text_add(&out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
  for (int s = 0; s < report->count; s++) {
    const Submission *submission = &report->item[s];
    int failures = 0, errors = 0;
    double seconds = 0;
    for (int i = 0; i < submission->grades; i++) {
      VerdictKind kind = submission->grade[i].verdict.kind;
      errors += kind == VERDICT_NONE;
      failures += kind != VERDICT_RIGHT && kind != VERDICT_NONE;
      seconds += submission->grade[i].seconds;
    }
    const char *name = report_xml(submission->name);
    text_printf(&out, "  <testsuite name=\"%s\" tests=\"%d\" failures=\"%d\" errors=\"%d\" time=\"%.3f\">\n", name,
                submission->grades, failures, errors, seconds);
    for (int i = 0; i < submission->grades; i++) {
      const Grade *grade = &submission->grade[i];
      text_printf(&out, "    <testcase classname=\"%s\" name=\"%s\" time=\"%.3f\">", name, grade->exercise->name,
                  grade->seconds);
      if (grade->verdict.kind == VERDICT_NONE)
        text_printf(&out, "\n      <error message=\"not graded\">%s</error>\n    ", report_xml(grade_text(grade)));
      else if (grade->verdict.kind != VERDICT_RIGHT)
        text_printf(&out, "\n      <failure type=\"%s\" message=\"%s\">%s</failure>\n    ",
                    verdict_names[grade->verdict.kind], status_names[grade_status(grade)],
                    report_xml(grade_text(grade)));
      else
        text_printf(&out, "\n      <system-out>%s</system-out>\n    ", report_xml(grade_text(grade)));
      text_add(&out, "</testcase>\n");
    }
    text_add(&out, "  </testsuite>\n");
  }
  text_add(&out, "</testsuites>\n");
  return report_save(&out, path, err);
}

/* https://gradescope-autograders.readthedocs.io/en/latest/specs/ : results.json of one submission. */
static inline int report_gradescope(const Submission *submission, const char *path, Error *err) {
  json_t *tests = json_array();
  double seconds = 0;
  for (int i = 0; i < submission->grades; i++) {
    const Grade *grade = &submission->grade[i];
    seconds += grade->seconds;
    json_array_append_new(tests, json_pack("{s:s, s:f, s:i, s:s, s:s, s:s}", "name", grade->exercise->name, "score",
                                           grade->score, "max_score", grade->exercise->points, "status",
                                           grade->verdict.kind == VERDICT_RIGHT ? "passed" : "failed", "output",
                                           report_clean(grade_text(grade)), "visibility", "visible"));
  }
  return json_write(path,
                    json_pack("{s:f, s:f, s:s, s:s, s:o}", "score", submission->score, "execution_time", seconds,
                              "output", submission->problem == NULL ? "" : report_clean(submission->problem),
                              "stdout_visibility", "hidden", "tests", tests),
                    err);
}

static inline void report_environment(json_t *object, const char *key, const char *variable, const char *otherwise) {
  const char *value = getenv(variable);
  json_object_set_new(object, key, json_string(value != NULL && value[0] != '\0' ? value : otherwise));
}

/* Classroom 50's result.json, schema classroom50/result/v1. Who and what was handed in comes from the variables that
 * its runner sets; scores are whole numbers there. */
static inline int report_classroom50(const Submission *submission, const char *path, Error *err) {
  json_t *tests = json_array(), *object = json_pack("{s:s}", "schema", "classroom50/result/v1");
  char when[32];
  time_t now = time(NULL);
  struct tm utc;
  long long score = 0, points = 0;
  for (int i = 0; i < submission->grades; i++) {
    const Grade *grade = &submission->grade[i];
    long long whole = (long long)(grade->score + 0.5);
    score += whole;
    points += grade->exercise->points;
    json_array_append_new(tests,
                          json_pack("{s:s, s:b, s:I, s:i, s:s}", "test-name", grade->exercise->name, "passed",
                                    grade->verdict.kind == VERDICT_RIGHT, "score", (json_int_t)whole, "max-score",
                                    grade->exercise->points, "output", report_clean(grade_text(grade))));
  }
  strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  report_environment(object, "classroom", "CLASSROOM", "unknown");
  report_environment(object, "assignment", "ASSIGNMENT", "unknown");
  report_environment(object, "assignment_type", "MODE", "individual");
  report_environment(object, "owner", "OWNER", report_clean(submission->name));
  report_environment(object, "submission", "SUBMISSION_TAG", "submit/unknown");
  const char *commit = getenv("COMMIT_URL");
  commit = commit != NULL && commit[0] != '\0' ? commit : "unknown";
  report_environment(object, "commit", "COMMIT_URL", "unknown");
  report_environment(object, "release", "RELEASE_URL", "unknown");
  report_environment(object, "review", "REVIEW_URL", commit);
  json_object_set_new(object, "datetime", json_string(when));
  json_object_set_new(object, "score", json_integer(score));
  json_object_set_new(object, "max-score", json_integer(points));
  json_object_set_new(object, "tests", tests);
  return json_write(path, object, err);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* A class */

static inline int report_compare(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What two submissions that made the same mistake have in common: the diagnosis. Errors of the compiler, and of damaged
 * files, share one diagnosis; these are told apart by their headline, with every number as #. */
static inline const char *report_kind(const Grade *grade) {
  const Diagnosis diagnosis = verdict_diagnosis(&grade->verdict);
  if (diagnosis != DIAGNOSIS_REFUSED && diagnosis != DIAGNOSIS_DOES_NOT_COMPILE) return diagnosis_name(diagnosis);
  Text out = {0};
  text_add(&out, "");
  for (const char *c = grade_headline(grade); *c != '\0';) {
    size_t digits = strspn(c, "0123456789");
    text_append(&out, digits > 0 ? "#" : c, 1);
    c += digits > 0 ? digits : 1;
  }
  return keep_text(&out);
}

/* What most of those who were rejected were told, and how many they are: 0 when nobody was. */
static inline int report_most_frequent(const Report *report, int exercise, const char **headline) {
  const char **kind = (const char **)xcalloc((size_t)report->count, sizeof *kind);
  int kinds = 0, most = 0, first = 0;
  for (int s = 0; s < report->count; s++) {
    const Grade *grade = &report->item[s].grade[exercise];
    if (grade_status(grade) == REJECTED) kind[kinds++] = report_kind(grade);
  }
  qsort(kind, (size_t)kinds, sizeof *kind, report_compare);
  for (int i = 0, same = 0; i < kinds; i++) {
    same = i > 0 && strcmp(kind[i], kind[i - 1]) == 0 ? same + 1 : 1;
    if (same > most) most = same, first = i;
  }
  for (int s = 0; s < report->count && most > 0; s++) { /* in the words of the first of them */
    const Grade *grade = &report->item[s].grade[exercise];
    if (grade_status(grade) != REJECTED || strcmp(report_kind(grade), kind[first]) != 0) continue;
    *headline = grade_headline(grade);
    break;
  }
  free(kind);
  return most;
}

/* How a class did in each exercise, and in what most of those who tried it failed. */
static inline void report_class(const Report *report) {
  const int shown = 5;
  const int grades = report->item[0].grades;
  double score = 0;
  int(*count)[STATUSES] = (int(*)[STATUSES])xcalloc((size_t)grades, sizeof *count);
  for (int s = 0; s < report->count; s++) {
    score += report->item[s].score;
    for (int i = 0; i < grades; i++) count[i][grade_status(&report->item[s].grade[i])]++;
  }
  printf("\n%d submissions, on average %.1f of %.0f\n\n", report->count, score / report->count, report->item[0].points);
  printf("  %-25s %7s %8s %15s %7s %10s  most frequent diagnosis\n", "", "correct", "rejected", "not implemented",
         "missing", "not graded");
  for (int i = 0; i < grades; i++) {
    const char *headline = "";
    int most = report_most_frequent(report, i, &headline);
    printf("  %-25s %7d %8d %15d %7d %10d", report->item[0].grade[i].exercise->name, count[i][CORRECT],
           count[i][REJECTED], count[i][NOT_IMPLEMENTED], count[i][MISSING], count[i][NOT_GRADED]);
    if (most > 0) printf("  %dx %.90s", most, report_line(headline));
    printf("\n");
  }
  for (int rank = 0; rank < shown; rank++) { /* by the share of those who tried */
    int worst = -1;
    double share = 0;
    for (int i = 0; i < grades; i++) {
      double rejected = count[i][REJECTED];
      if (rejected == 0 || rejected / (rejected + count[i][CORRECT]) <= share) continue;
      worst = i;
      share = rejected / (rejected + count[i][CORRECT]);
    }
    if (worst < 0) break;
    if (rank == 0) printf("\nwhere most of those who tried failed:\n");
    printf("  %-25s %d of %d\n", report->item[0].grade[worst].exercise->name, count[worst][REJECTED],
           count[worst][REJECTED] + count[worst][CORRECT]);
    count[worst][REJECTED] = 0;
  }
  free(count);
}

#endif /* LEARN_REPORT_H */
