/* nearest.h - which known word was meant: for messages about a name that a user mistyped.
 *
 *     static const char *const known[] = {"rotate", "scale", "shear", NULL};
 *     nearest_word("rotation", known);      // "rotate"
 *
 * The distance of two words is the number of letters that have to be inserted, removed or replaced to make one of the
 * other (Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals", 1966).
 */
#ifndef COMMON_NEAREST_H
#define COMMON_NEAREST_H

#include <stddef.h>

enum { NEAREST_MOST = 63 }; /* letters that count, of either word */

static inline int nearest_length(const char *word) {
  int n = 0;
  while (n < NEAREST_MOST && word[n] != '\0') n++;
  return n;
}

static inline int nearest_distance(const char *a, const char *b) {
  int row[NEAREST_MOST + 1]; /* row[j]: the distance of the first i letters of a and the first j letters of b */
  const int m = nearest_length(a), n = nearest_length(b);
  for (int j = 0; j <= n; j++) row[j] = j;
  for (int i = 1; i <= m; i++) {
    int diagonal = row[0]; /* of i - 1 and j - 1 */
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      const int replaced = diagonal + (a[i - 1] != b[j - 1]);
      const int shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
      diagonal = row[j];
      row[j] = replaced < shorter ? replaced : shorter;
    }
  }
  return row[n];
}

/* Of a list that ends with NULL; of words that are equally near the first. NULL for an empty list. */
static inline const char *nearest_word(const char *typed, const char *const *known) {
  const char *best = known[0];
  for (int i = 1; best != NULL && known[i] != NULL; i++)
    if (nearest_distance(typed, known[i]) < nearest_distance(typed, best)) best = known[i];
  return best;
}

#endif /* COMMON_NEAREST_H */
