/* augment_text.h - augmentations as text: what --augment takes and what a checkpoint keeps.
 *
 *     none                                                  the images as they are
 *     crop,flip,cutout:8                                    names with commas between them, with a number or without
 *     affine:rotate=15,scale=0.1,shear=5,shift=2,flip       keys belong to the name before them
 *
 * augment_parse() reads the text, augment_check() says whether it suits images of a shape. Both leave a sentence where
 * not. The order of the names does not matter: that of the changes is fixed (augment.h).
 */
#ifndef COMMON_NN_AUGMENT_TEXT_H
#define COMMON_NN_AUGMENT_TEXT_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "common/error.h"
#include "common/nearest.h"
#include "common/nn/augment.h"

enum { AUGMENT_NAMES = 7, AUGMENT_KEYS = 4 };

typedef enum AugmentUnit { AUGMENT_WHOLE, AUGMENT_Q16, AUGMENT_DEGREES } AugmentUnit;

/* A number of AugmentMost. */
typedef struct AugmentNumber {
  const char *key; /* NULL: it follows the name, after a colon */
  size_t offset;
  AugmentUnit unit;
  double low, high;
} AugmentNumber;

typedef struct AugmentName {
  const char *name, *help;
  int flips, numbers, standard; /* standard: the number where none is typed; 0: one must be typed */
  AugmentNumber number[AUGMENT_KEYS];
} AugmentName;

#define AUGMENT_MEMBER(member) offsetof(AugmentMost, member)

static const AugmentName augment_names[AUGMENT_NAMES] = {
    {"none", "the images as they are", 0, 0, 0, {}},
    {"shift", "moved by up to 2 pixels (shift:N: N)", 0, 1, 2, {{NULL, AUGMENT_MEMBER(shift), AUGMENT_WHOLE, 1, 1000}}},
    {"flip", "half of them flipped, left for right", 1, 0, 0, {}},
    {"crop",
     "moved by up to 4 pixels (crop:N: N), half of them flipped",
     1,
     1,
     4,
     {{NULL, AUGMENT_MEMBER(shift), AUGMENT_WHOLE, 1, 1000}}},
    {"affine",
     "affine:rotate=DEGREES,scale=X,shear=DEGREES,shift=PIXELS, any of them, at most",
     0,
     4,
     0,
     {{"rotate", AUGMENT_MEMBER(rotate), AUGMENT_DEGREES, 0, 180},
      {"scale", AUGMENT_MEMBER(scale), AUGMENT_Q16, 0, 0.5},
      {"shear", AUGMENT_MEMBER(shear), AUGMENT_DEGREES, 0, 45},
      {"shift", AUGMENT_MEMBER(slide), AUGMENT_Q16, 0, 1000}}},
    {"cutout",
     "a square of 8 pixels (cutout:N: N) becomes the mean",
     0,
     1,
     8,
     {{NULL, AUGMENT_MEMBER(cutout), AUGMENT_WHOLE, 1, 4096}}},
    {"colour",
     "colour:brightness=X,contrast=X,saturation=X, factors from 1 - X to 1 + X",
     0,
     3,
     0,
     {{"brightness", AUGMENT_MEMBER(brightness), AUGMENT_Q16, 0, 1},
      {"contrast", AUGMENT_MEMBER(contrast), AUGMENT_Q16, 0, 1},
      {"saturation", AUGMENT_MEMBER(saturation), AUGMENT_Q16, 0, 1}}}};

/* "a, b or c" of a list that ends with NULL. */
typedef struct AugmentList {
  char text[160];
} AugmentList;

static inline AugmentList augment_list(const char *const *word) {
  AugmentList list = {""};
  size_t used = 0;
  for (int i = 0; word[i] && used < sizeof list.text; i++)
    used += (size_t)snprintf(list.text + used, sizeof list.text - used, "%s%s",
                             i == 0        ? ""
                             : word[i + 1] ? ", "
                                           : " or ",
                             word[i]);
  return list;
}

/* What somebody meant who typed another name: "; the nearest known one is "flip"", or nothing where none is near. */
static inline AugmentList augment_meant(const char *typed, const char *const *known, size_t count) {
  AugmentList meant = {""};
  const char *nearest = nearest_name(typed, known, count);
  if (nearest) snprintf(meant.text, sizeof meant.text, "; the nearest known one is \"%s\"", nearest);
  return meant;
}

/* What has been read so far. */
typedef struct AugmentReader {
  Augment *augment;
  const AugmentName *name; /* whose keys may follow */
  unsigned names, keys[AUGMENT_NAMES];
} AugmentReader;

static inline int augment_read_number(AugmentReader *r, const AugmentNumber *number, const char *text, Error *err) {
  const char *name = r->name->name, *dot = number->key ? "=" : "", *key = number->key ? number->key : "";
  char *end;
  const double value = strtod(text, &end);
  const int plain = text[0] != '\0' && strspn(text, "0123456789.") == strlen(text) && *end == '\0';
  if (!plain || value < number->low || value > number->high || (number->unit == AUGMENT_WHOLE && value != floor(value)))
    return error_set(err, "%s:%s%s%s: a %snumber from %g to %g is expected", name, key, dot, text,
                     number->unit == AUGMENT_WHOLE ? "whole " : "", number->low, number->high);
  const double units = number->unit == AUGMENT_WHOLE ? 1 : number->unit == AUGMENT_Q16 ? 65536 : 4294967296.0 / 360;
  const uint32_t bits = (uint32_t)llround(value * units); /* half a turn is 2^31: every member has 32 bits */
  memcpy((char *)&r->augment->most + number->offset, &bits, sizeof bits);
  return 0;
}

/* "rotate=15" of the name under way. */
static inline int augment_read_key(AugmentReader *r, char *item, Error *err) {
  const char *known[AUGMENT_KEYS + 1] = {NULL};
  char *equals = strchr(item, '=');
  if (r->name == NULL || r->name->numbers == 0 || r->name->number[0].key == NULL)
    return error_set(err, "\"%s\" follows no name that has keys; write for example affine:rotate=15", item);
  if (equals) *equals = '\0';
  for (int i = 0; i < r->name->numbers; i++) {
    known[i] = r->name->number[i].key;
    if (equals == NULL || strcmp(known[i], item) != 0) continue;
    unsigned *given = &r->keys[r->name - augment_names];
    if (*given >> i & 1) return error_set(err, "%s of %s is given twice", item, r->name->name);
    *given |= 1u << i;
    return augment_read_number(r, &r->name->number[i], equals + 1, err);
  }
  if (equals == NULL)
    return error_set(err, "%s takes %s, one of them at least, as in %s:%s=%g", r->name->name, augment_list(known).text,
                     r->name->name, known[0], r->name->number[0].high / 10);
  return error_set(err, "unknown key \"%s\" of %s%s; expected %s", item, r->name->name,
                   augment_meant(item, known, (size_t)r->name->numbers).text, augment_list(known).text);
}

/* "flip", "cutout:8", "affine:rotate=15" */
static inline int augment_read_name(AugmentReader *r, char *item, Error *err) {
  const char *known[AUGMENT_NAMES + 1] = {NULL};
  char *colon = strchr(item, ':');
  int found = -1;
  if (colon) *colon = '\0';
  for (int i = 0; i < AUGMENT_NAMES; i++) {
    known[i] = augment_names[i].name;
    if (strcmp(known[i], item) == 0) found = i;
  }
  if (found < 0)
    return error_set(err, "unknown change \"%s\"%s; expected %s", item, augment_meant(item, known, AUGMENT_NAMES).text,
                     augment_list(known).text);
  const AugmentName *name = r->name = &augment_names[found];
  if (r->names >> found & 1) return error_set(err, "%s is given twice", item);
  r->names |= 1u << found;
  r->augment->most.flip |= name->flips;
  if (name->numbers == 0 && colon) return error_set(err, "%s takes no number; leave \":%s\" out", item, colon + 1);
  if (name->numbers == 0) return 0;
  char standard[16] = "";
  if (name->standard) snprintf(standard, sizeof standard, "%d", name->standard);
  if (name->standard) return augment_read_number(r, &name->number[0], colon ? colon + 1 : standard, err);
  if (colon) return augment_read_key(r, colon + 1, err);
  return augment_read_key(r, standard, err); /* it is not a key: refused */
}

/* -1, and why, where the text says no augmentation. */
static inline int augment_parse(const char *text, Augment *augment, Error *err) {
  AugmentReader r;
  char copy[AUGMENT_TEXT];
  memset(&r, 0, sizeof r);
  memset(augment, 0, sizeof *augment);
  r.augment = augment;
  if (strlen(text) >= sizeof copy)
    return error_set(err, "%.20s... has %zu characters; at most %zu are expected", text, strlen(text), sizeof copy - 1);
  strcpy(copy, text);
  strcpy(augment->name, text);
  for (char *item = copy, *next = copy; next != NULL; item = next) {
    next = strchr(item, ',');
    if (next) *next++ = '\0';
    const int is_key = strchr(item, '=') != NULL && strchr(item, ':') == NULL;
    if ((is_key ? augment_read_key(&r, item, err) : augment_read_name(&r, item, err)) != 0) return -1;
  }
  const unsigned none = 1, shift_and_crop = 1u << 1 | 1u << 3;
  if ((r.names & none) && r.names != none)
    return error_set(err, "none leaves the images as they are; leave it out, or the other names");
  if ((r.names & shift_and_crop) == shift_and_crop)
    return error_set(err, "shift and crop both move the image by whole pixels; name one of the two");
  return 0;
}

/* -1, and why, where images of this shape cannot be changed so. */
static inline int augment_check(const Augment *augment, Shape shape, Error *err) {
  const AugmentMost *most = &augment->most;
  if (!augment_changes(most)) return 0;
  if (shape.rank != 3 || shape.dim[0] > AUGMENT_CHANNELS)
    return error_set(err, "--augment=%s changes images of 1 to %d channels; these have the shape %s", augment->name,
                     AUGMENT_CHANNELS, shape_text(shape).text);
  const int height = shape.dim[1], width = shape.dim[2], least = height < width ? height : width;
  if (most->shift >= least || most->slide >> 16 >= least)
    return error_set(err, "--augment=%s moves by up to %d pixels, and the images are %d x %d; ask for less",
                     augment->name, most->shift > most->slide >> 16 ? most->shift : most->slide >> 16, width, height);
  if (augment_mixes(most) && (height > AUGMENT_SIDE || width > AUGMENT_SIDE))
    return error_set(err, "--augment=%s: affine changes images of up to %d pixels a side; these are %d x %d",
                     augment->name, AUGMENT_SIDE, width, height);
  if (most->saturation && shape.dim[0] != 3)
    return error_set(err, "--augment=%s: saturation needs 3 channels, and these images have %d; leave it out",
                     augment->name, shape.dim[0]);
  return 0;
}

#endif /* COMMON_NN_AUGMENT_TEXT_H */
