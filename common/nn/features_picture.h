/* features_picture.h - what features.h found, as pictures.
 *
 *     features.png    for one picture a row for each layer, from the input to the answer
 *     excited.png     for each filter its weights, and the pictures that excite it most, its receptive field framed
 *
 * Values are blue below 0, white at 0 and red above, as in filters.png; each layer has its own scale.
 */
#ifndef COMMON_NN_FEATURES_PICTURE_H
#define COMMON_NN_FEATURES_PICTURE_H

#include "common/nn/features.h"
#include "common/nn/report.h"

/* Pixels. LINE: from one line of text to the next. TILES: the width of what stands beside the labels. */
enum { FEATURES_MARGIN = 20, FEATURES_GAP = 6, FEATURES_TEXT = 2, FEATURES_LINE = 20, FEATURES_TILES = 960 };
/* Lines of tiles of one layer, bars of answers, and what a label has room for. */
enum { FEATURES_LINES = 4, FEATURES_BARS = 12, FEATURES_LABEL = 80 };

static const unsigned char features_ink[3] = {30, 30, 30}, features_pale[3] = {110, 110, 110},
                           features_line[3] = {200, 200, 200}, features_mark[3] = {230, 100, 0};

/* ------------------------------------------------------------------------------------------------- a layer's tiles */

/* `shown` tiles in rows of `columns`: maps, each value `scale` pixels wide; or the values of a vector, side by side. */
typedef struct FeatureTiles {
  int map, scale, width, height, gap, columns, shown, lines;
} FeatureTiles;

static inline int features_between(int value, int least, int most) {
  return value < least ? least : value > most ? most : value;
}

static inline FeatureTiles features_tiles(Shape shape) {
  FeatureTiles t;
  const int map = shape.rank == 3, count = map ? shape.dim[0] : (int)shape_count(shape);
  const int h = map ? shape.dim[1] : 1, w = map ? shape.dim[2] : 1, side = h > w ? h : w;
  t.map = map;
  t.gap = map ? FEATURES_GAP : 0;
  if (map) {
    t.scale = features_between(FEATURES_TILES / count - t.gap, 40, 84) / side;
    if (t.scale < 1) t.scale = 1;
    t.width = w * t.scale;
    t.height = h * t.scale;
  } else {
    t.scale = 1;
    t.width = features_between(FEATURES_TILES / count, 8, 24);
    t.height = 24;
  }
  t.columns = (FEATURES_TILES + t.gap) / (t.width + t.gap);
  if (t.columns < 1) t.columns = 1;
  t.lines = (count + t.columns - 1) / t.columns;
  if (t.lines > FEATURES_LINES) t.lines = FEATURES_LINES;
  t.shown = count < t.columns * t.lines ? count : t.columns * t.lines;
  return t;
}

static inline int features_tiles_height(const FeatureTiles *t) { return t->lines * (t->height + FEATURES_GAP); }
static inline int features_tiles_width(const FeatureTiles *t) { return t->columns * (t->width + t->gap) - t->gap; }

static inline void features_put_tiles(Image *image, int x, int y, const FeatureTiles *t, Shape shape,
                                      const float *values) {
  const float largest = image_largest(values, shape_count(shape));
  for (int i = 0; i < t->shown; i++) {
    const int left = x + i % t->columns * (t->width + t->gap), top = y + i / t->columns * (t->height + FEATURES_GAP);
    if (t->map) {
      const size_t area = (size_t)shape.dim[1] * shape.dim[2];
      image_put_map(image, left, top, t->scale, values + i * area, shape.dim[1], shape.dim[2], largest);
      image_put_frame(image, left, top, t->width, t->height, 1, features_line);
    } else {
      unsigned char rgb[3];
      image_diverging_color(values[i] == 0.0f ? 0.0f : values[i] / largest, rgb);
      image_put_rectangle(image, left, top, t->width, t->height, rgb);
    }
  }
  for (int line = 0; !t->map && line < t->lines; line++) {
    const int left = t->shown - line * t->columns, cells = left < t->columns ? left : t->columns;
    image_put_frame(image, x, y + line * (t->height + FEATURES_GAP), cells * t->width, t->height, 1, features_line);
  }
}

/* ---------------------------------------------------------------------------------------------------- features.png */

/* The pixels of a picture as a data set has them. */
static inline void features_put_sample(Image *image, int x, int y, int scale, const uint8_t *sample, Shape shape) {
  const int colours = shape.dim[0] == 3 ? 3 : 1, width = shape.dim[2], area = shape.dim[1] * width;
  uint8_t *tile = (uint8_t *)xmalloc((size_t)colours * area);
  report_tile(tile, sample, shape);
  for (int i = 0; i < area; i++) {
    const unsigned char rgb[3] = {tile[colours * i], tile[colours * i + colours / 2], tile[colours * i + colours - 1]};
    image_put_block(image, x + i % width * scale, y + i / width * scale, scale, rgb);
  }
  image_put_frame(image, x, y, width * scale, shape.dim[1] * scale, 1, features_line);
  free(tile);
}

/* The lines of a layer's label: its name; operation and shape; the range of its values; how many are not shown. */
typedef struct FeatureLabel {
  char line[4][2 * FEATURES_LABEL];
  int lines;
} FeatureLabel;

static inline FeatureLabel features_label(const Node *node, const float *values, const FeatureTiles *t) {
  FeatureLabel label;
  const size_t count = shape_count(node->shape), tiles = t->map ? (size_t)node->shape.dim[0] : count;
  const FeatureRange range = features_range(values, count);
  snprintf(label.line[0], sizeof label.line[0], "%s", node->name);
  snprintf(label.line[1], sizeof label.line[1], "%s %s", node->op ? node->op->name : "input",
           shape_text(node->shape).text);
  snprintf(label.line[2], sizeof label.line[2], "%.3g to %.3g", (double)range.smallest, (double)range.largest);
  label.lines = 3;
  if (tiles > (size_t)t->shown)
    snprintf(label.line[label.lines++], sizeof label.line[0], "%zu more not shown", tiles - (size_t)t->shown);
  return label;
}

static inline void features_put_label(Image *image, int x, int y, const FeatureLabel *label) {
  for (int i = 0; i < label->lines; i++)
    image_put_text_in(image, x, y + i * FEATURES_LINE, FEATURES_TEXT, label->line[i],
                      i == 0 ? features_ink : features_pale);
}

static inline int features_row_height(const FeatureTiles *t, int label_lines) {
  const int tiles = features_tiles_height(t), text = label_lines * FEATURES_LINE;
  return (tiles > text ? tiles : text) + 2 * FEATURES_GAP;
}

/* Blue over white to red, and what it means. */
static inline void features_put_legend(Image *image, int x, int y) {
  enum { WIDTH = 120, HEIGHT = 14 };
  for (int i = 0; i < WIDTH; i++) {
    unsigned char rgb[3];
    image_diverging_color(2.0f * (float)i / (WIDTH - 1) - 1, rgb);
    image_put_rectangle(image, x + i, y, 1, HEIGHT, rgb);
  }
  image_put_frame(image, x, y, WIDTH, HEIGHT, 1, features_line);
  image_put_text_in(image, x + WIDTH + 12, y, FEATURES_TEXT,
                    "blue: negative, white: 0, red: positive; a scale for each layer", features_pale);
}

/* The probabilities in the classes' order, or the largest of very many. Draws only where `image` is; the height. */
static inline int features_put_answer(Image *image, int x, int y, int bars_x, const float *probabilities, int classes,
                                      const char *const *names) {
  const int shown = classes < FEATURES_BARS ? classes : FEATURES_BARS, answer = report_answer(probabilities, classes);
  int name_width = 0;
  for (int c = 0; c < classes; c++) {
    char name[64];
    confusion_name(name, sizeof name - 1, c, names);
    const int text = image_text_width(name, FEATURES_TEXT);
    if (text > name_width) name_width = text;
  }
  float *left = (float *)xmalloc((size_t)classes * sizeof *left);
  memcpy(left, probabilities, (size_t)classes * sizeof *left);
  for (int i = 0; image && i < shown; i++) {
    const int c = shown < classes ? report_answer(left, classes) : i, top = y + i * FEATURES_LINE;
    left[c] = -1;
    char name[64], text[32];
    confusion_name(name, sizeof name - 1, c, names);
    snprintf(text, sizeof text, "%.1f %%", 100.0 * probabilities[c]);
    unsigned char rgb[3];
    image_diverging_color(c == answer ? 1.0f : 0.4f, rgb);
    const int length = (int)lrintf(600 * probabilities[c]), bar = bars_x + name_width + 12;
    image_put_text_in(image, bars_x, top, FEATURES_TEXT, name, features_ink);
    image_put_rectangle(image, bar, top, length > 0 ? length : 1, FEATURES_LINE - 5, rgb);
    image_put_text_in(image, bar + length + 10, top, FEATURES_TEXT, text, features_pale);
  }
  if (image) image_put_text_in(image, x, y, FEATURES_TEXT, "the answer", features_ink);
  if (image) image_put_text_in(image, x, y + FEATURES_LINE, FEATURES_TEXT, "probabilities", features_pale);
  free(left);
  return shown * FEATURES_LINE + 2 * FEATURES_GAP;
}

/* What the network made of a picture. */
typedef struct FeatureStory {
  const char *title;
  const FeatureMaps *maps;
  const uint8_t *sample; /* the picture, of shape `shape` */
  Shape shape;
  const float *probabilities;
  int classes;
  const char *const *names; /* of the classes; NULL: their numbers */
} FeatureStory;

/* How many nodes a picture has room for; and its size, without margins. */
static inline int features_measure(const FeatureStory *story, int *label_width, int *width, int *height) {
  const Graph *g = story->maps->graph;
  const FeatureTiles first = features_tiles(story->shape);
  *height = 3 * FEATURES_LINE + features_row_height(&first, 2) +
            features_put_answer(NULL, 0, 0, 0, story->probabilities, story->classes, NULL);
  *label_width = image_text_width("probabilities", FEATURES_TEXT);
  *width = FEATURES_TILES;
  int nodes = 0;
  for (; nodes < g->count; nodes++) {
    const FeatureTiles t = features_tiles(g->nodes[nodes].shape);
    const FeatureLabel label = features_label(&g->nodes[nodes], story->maps->values[nodes], &t);
    const int row = features_row_height(&t, label.lines);
    if (*height + row > REPORT_MAX_SIDE) break;
    *height += row;
    for (int i = 0; i < label.lines; i++) {
      const int text = image_text_width(label.line[i], FEATURES_TEXT);
      if (text > *label_width) *label_width = text;
    }
    if (features_tiles_width(&t) > *width) *width = features_tiles_width(&t);
  }
  return nodes;
}

/* A row for each node: as many as a picture has room for, whose number is put into *drawn. */
static inline Image features_draw(const FeatureStory *story, int *drawn) {
  const Graph *g = story->maps->graph;
  int label_width, width, height, y = FEATURES_MARGIN;
  *drawn = features_measure(story, &label_width, &width, &height);
  const int x = FEATURES_MARGIN, tiles_x = x + label_width + 3 * FEATURES_GAP;
  Image image = image_new(tiles_x + width + FEATURES_MARGIN, height + 2 * FEATURES_MARGIN, 3);
  image_put_text_in(&image, x, y, FEATURES_TEXT, story->title, features_ink);
  features_put_legend(&image, x, y + FEATURES_LINE + FEATURES_GAP);
  y += 3 * FEATURES_LINE;
  const FeatureTiles first = features_tiles(story->shape);
  image_put_text_in(&image, x, y, FEATURES_TEXT, "the picture", features_ink);
  image_put_text_in(&image, x, y + FEATURES_LINE, FEATURES_TEXT, shape_text(story->shape).text, features_pale);
  features_put_sample(&image, tiles_x, y, first.scale, story->sample, story->shape);
  y += features_row_height(&first, 2);
  for (int i = 0; i < *drawn; i++) {
    const FeatureTiles t = features_tiles(g->nodes[i].shape);
    const FeatureLabel label = features_label(&g->nodes[i], story->maps->values[i], &t);
    features_put_label(&image, x, y, &label);
    features_put_tiles(&image, tiles_x, y, &t, g->nodes[i].shape, story->maps->values[i]);
    y += features_row_height(&t, label.lines);
  }
  features_put_answer(&image, x, y, tiles_x, story->probabilities, story->classes, story->names);
  return image;
}

/* ----------------------------------------------------------------------------------------------------- excited.png */

/* One card for each filter: its number, its weights, and pictures with a caption. */
enum { FEATURES_SIDE = 64, FEATURES_CAPTION = 58, FEATURES_NUMBER = 44, FEATURES_CARDS = 2, FEATURES_MAX_CHANNELS = 9 };

/* Filters of a layer that are shown: few where there are many layers. */
static inline int features_cards(const FeatureSearch *search, int l) {
  const int most = search->layers <= 4 ? 32 : 8;
  return search->layer[l].filters < most ? search->layer[l].filters : most;
}

static inline int features_sample_scale(Shape shape) {
  const int side = shape.dim[1] > shape.dim[2] ? shape.dim[1] : shape.dim[2], scale = FEATURES_SIDE / side;
  return scale < 1 ? 1 : scale;
}

typedef struct FeatureCard {
  int scale, step; /* of a picture; from one to the next */
  int width, height;
} FeatureCard;

static inline FeatureCard features_card(const FeatureSearch *search, Shape shape) {
  FeatureCard card;
  card.scale = features_sample_scale(shape);
  const int picture = shape.dim[2] * card.scale;
  card.step = (picture > FEATURES_CAPTION ? picture : FEATURES_CAPTION) + FEATURES_GAP;
  card.width = FEATURES_NUMBER + FEATURES_SIDE + 2 * FEATURES_GAP + search->most * card.step + FEATURES_MARGIN;
  card.height = shape.dim[1] * card.scale + FEATURES_LINE + FEATURES_GAP;
  if (card.height < FEATURES_SIDE + FEATURES_GAP) card.height = FEATURES_SIDE + FEATURES_GAP;
  return card;
}

/* Rows and columns of cards that a layer takes, in pixels, its headline included. */
static inline int features_section_height(const FeatureSearch *search, int l, const FeatureCard *card) {
  const int rows = (features_cards(search, l) + FEATURES_CARDS - 1) / FEATURES_CARDS;
  return 2 * FEATURES_LINE + rows * card->height;
}

/* A filter's weights (C,R,S) as up to nine tiles, in FEATURES_SIDE x FEATURES_SIDE pixels; nothing where it has more
 * channels. `largest`: of the layer. */
static inline void features_put_filter(Image *image, int x, int y, const float *w, const Param *param, float largest) {
  const int channels = (int)param->dim[1], height = (int)param->dim[2], width = (int)param->dim[3];
  const int side = channels <= 1 ? 1 : channels <= 4 ? 2 : 3, most = height > width ? height : width;
  const int step = FEATURES_SIDE / side, scale = (step - 3) / most;
  if (channels > FEATURES_MAX_CHANNELS || scale < 1) return;
  for (int c = 0; c < channels; c++) {
    const int left = x + c % side * step, top = y + c / side * step;
    image_put_map(image, left, top, scale, w + (size_t)c * height * width, height, width, largest);
    image_put_frame(image, left, top, width * scale, height * scale, 1, features_line);
  }
}

/* Three digits. */
static inline void features_caption(char *text, size_t size, double value) {
  const double magnitude = fabs(value);
  snprintf(text, size, magnitude < 10 ? "%.2f" : magnitude < 100 ? "%.1f" : "%.3g", value);
}

static inline void features_put_peak(Image *image, int x, int y, const FeatureCard *card, const Graph *g, int node,
                                     FeaturePeak peak, const DataSet *set) {
  const int columns = g->nodes[node].shape.dim[2];
  const size_t bytes = shape_count(set->shape);
  const FeatureBox box = features_box(g, node, peak.place / columns, peak.place % columns, 1);
  char text[32];
  features_put_sample(image, x, y, card->scale, set->samples + (size_t)peak.image * bytes, set->shape);
  image_put_frame(image, x + box.first[1] * card->scale, y + box.first[0] * card->scale,
                  (box.last[1] - box.first[1] + 1) * card->scale, (box.last[0] - box.first[0] + 1) * card->scale, 2,
                  features_mark);
  features_caption(text, sizeof text, (double)peak.value);
  image_put_text_in(image, x, y + set->shape.dim[1] * card->scale + 4, FEATURES_TEXT, text, features_pale);
}

static inline void features_put_card(Image *image, int x, int y, const FeatureCard *card, const Model *m,
                                     const FeatureSearch *search, int l, int filter, const float *w,
                                     const DataSet *set) {
  const FeatureLayer *layer = &search->layer[l];
  const Param *param = &m->graph->nodes[layer->node].param[0];
  char number[16];
  snprintf(number, sizeof number, "%d", filter);
  image_put_text_in(image, x, y, FEATURES_TEXT, number, features_ink);
  if ((int)param->dim[0] == layer->filters) /* one filter for each map; a transposed convolution has another order */
    features_put_filter(image, x + FEATURES_NUMBER, y, w + (size_t)filter * (param->count / param->dim[0]), param,
                        image_largest(w, param->count));
  x += FEATURES_NUMBER + FEATURES_SIDE + 2 * FEATURES_GAP;
  for (int k = 0; k < search->most; k++)
    if (layer->peak[filter * search->most + k].image >= 0)
      features_put_peak(image, x + k * card->step, y, card, m->graph, layer->node,
                        layer->peak[filter * search->most + k], set);
}

static inline void features_put_section(Image *image, int y, const FeatureCard *card, const Model *m,
                                        const FeatureSearch *search, int l, const DataSet *set) {
  const FeatureLayer *layer = &search->layer[l];
  const Node *node = &m->graph->nodes[layer->node];
  char text[384];
  int field[2];
  features_field(m->graph, layer->node, field);
  snprintf(text, sizeof text, "%s  %s %s: each value sees %d x %d pixels%s", node->name, node->op->name,
           shape_text(node->shape).text, field[0], field[1],
           features_cards(search, l) < layer->filters ? "; the first filters" : "");
  image_put_text_in(image, FEATURES_MARGIN, y, FEATURES_TEXT, text, features_ink);
  y += FEATURES_LINE + FEATURES_GAP;
  const Param *param = &node->param[0];
  float *w = (float *)xmalloc(param->count * sizeof *w);
  device_download(m->context.device, w, model_param(m, param), param->count * sizeof *w);
  const int cards = features_cards(search, l), rows = (cards + FEATURES_CARDS - 1) / FEATURES_CARDS;
  for (int f = 0; f < cards; f++) /* down the first column, then down the second */
    features_put_card(image, FEATURES_MARGIN + f / rows * card->width, y + f % rows * card->height, card, m, search, l,
                      f, w, set);
  free(w);
}

/* A section for each layer with filters, as many as a picture has room for: their number is put into *drawn. There must
 * be one layer at least. `set`: the pictures of the search. */
static inline Image features_draw_excited(const char *title, const Model *m, const FeatureSearch *search,
                                          const DataSet *set, int *drawn) {
  const FeatureCard card = features_card(search, set->shape);
  int height = 2 * FEATURES_LINE;
  for (*drawn = 0; *drawn < search->layers; ++*drawn) {
    const int section = features_section_height(search, *drawn, &card);
    if (*drawn > 0 && height + section > REPORT_MAX_SIDE) break;
    height += section;
  }
  int width = FEATURES_CARDS * card.width, title_width = image_text_width(title, FEATURES_TEXT);
  if (width < title_width) width = title_width;
  Image image = image_new(width + 2 * FEATURES_MARGIN, height + 2 * FEATURES_MARGIN, 3);
  image_put_text_in(&image, FEATURES_MARGIN, FEATURES_MARGIN, FEATURES_TEXT, title, features_ink);
  int y = FEATURES_MARGIN + 2 * FEATURES_LINE;
  for (int l = 0; l < *drawn; l++) {
    features_put_section(&image, y, &card, m, search, l, set);
    y += features_section_height(search, l, &card);
  }
  return image;
}

#endif /* COMMON_NN_FEATURES_PICTURE_H */
