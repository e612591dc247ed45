/* optimizer_paths.h - a map of a surface with the paths of optimizers over it, as SVG, still or animated.
 *
 *     PathPicture picture = {"Rosenbrock", rosenbrock, {-2, 2}, {-1, 3}, levels, count, paths, 5};
 *     path_picture_write(&picture, animated, "paths.svg", &err);
 *
 * Contour lines come from marching squares. In the animated picture a dot for each optimizer moves along its path, all
 * of them step by step together, by SVG's own animation (SMIL): browsers play it, and nothing else is needed.
 */
#ifndef PHASE4_TRAINING_OPTIMIZER_PATHS_H
#define PHASE4_TRAINING_OPTIMIZER_PATHS_H

#include <math.h>

#include "common/atomic_file.h"

enum { PATH_STEPS = 1000, PATH_COLOURS = 6, PATH_CELLS = 220, PATH_FRAMES = 240 };
enum { PATH_LEFT = 20, PATH_TOP = 44, PATH_WIDTH = 660, PATH_HEIGHT = 420, PATH_LEGEND = 64 };
#define PATH_SECONDS 8

typedef struct Path {
  const char *name;
  int points; /* the start and one per step */
  double x[PATH_STEPS + 1], y[PATH_STEPS + 1];
} Path;

typedef struct PathPicture {
  const char *title;
  double (*height)(double x, double y);
  double x[2], y[2], best[2]; /* what is shown; where the minimum is */
  const double *levels;
  int level_count;
  const Path *paths;
  int path_count;
} PathPicture;

static inline double path_x(const PathPicture *p, double x) {
  return PATH_LEFT + PATH_WIDTH * (x - p->x[0]) / (p->x[1] - p->x[0]);
}
static inline double path_y(const PathPicture *p, double y) {
  return PATH_TOP + PATH_HEIGHT * (p->y[1] - y) / (p->y[1] - p->y[0]);
}

/* Where the line of this level crosses the side between two corners of a cell. */
static inline void path_crossing(FILE *out, const PathPicture *p, const double a[3], const double b[3], double level) {
  const double share = (level - a[2]) / (b[2] - a[2]);
  fprintf(out, "%.1f %.1f", path_x(p, a[0] + share * (b[0] - a[0])), path_y(p, a[1] + share * (b[1] - a[1])));
}

/* A cell's corners, in a circle: the line enters and leaves it where two neighbours lie on different sides. Of four
 * crossings, at a saddle, the first is joined to the second, and the third to the fourth. */
static inline void path_contour_cell(FILE *out, const PathPicture *p, const double corner[4][3], double level) {
  int crossings = 0;
  for (int i = 0; i < 4; i++) {
    const double *a = corner[i], *b = corner[(i + 1) % 4];
    if ((a[2] < level) == (b[2] < level)) continue;
    fputs(crossings % 2 == 0 ? "M" : "L", out);
    path_crossing(out, p, a, b, level);
    crossings++;
  }
}

static inline void path_contour(FILE *out, const PathPicture *p, double level) {
  const double width = (p->x[1] - p->x[0]) / PATH_CELLS, height = (p->y[1] - p->y[0]) / PATH_CELLS;
  fputs("<path class=\"level\" d=\"", out);
  for (int i = 0; i < PATH_CELLS; i++)
    for (int j = 0; j < PATH_CELLS; j++) {
      double corner[4][3];
      for (int c = 0; c < 4; c++) {
        corner[c][0] = p->x[0] + (i + (c == 1 || c == 2)) * width;
        corner[c][1] = p->y[0] + (j + (c >= 2)) * height;
        corner[c][2] = p->height(corner[c][0], corner[c][1]);
      }
      path_contour_cell(out, p, (const double(*)[3])corner, level);
    }
  fputs("\"/>\n", out);
}

/* The values of one coordinate, separated by semicolons: of an animation. */
static inline void path_animate(FILE *out, const char *attribute, const PathPicture *p, const Path *path, int x) {
  fprintf(out, "<animate attributeName=\"%s\" dur=\"%ds\" repeatCount=\"indefinite\" values=\"", attribute,
          PATH_SECONDS);
  for (int i = 0; i < path->points; i += 1 + path->points / PATH_FRAMES)
    fprintf(out, "%s%.1f", i ? ";" : "", x ? path_x(p, path->x[i]) : path_y(p, path->y[i]));
  fputs("\"/>", out);
}

static inline void path_draw(FILE *out, const PathPicture *p, int number, int animated) {
  static const char *const colours[PATH_COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
  const Path *path = &p->paths[number];
  const char *colour = colours[number % PATH_COLOURS];
  const double left = PATH_LEFT + 4 + 132 * number, bottom = PATH_TOP + PATH_HEIGHT + 34, last = path->points - 1;
  fprintf(out,
          "<polyline clip-path=\"url(#map)\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-opacity=\"%s\" "
          "points=\"",
          colour, animated ? "0.35" : "0.9");
  for (int i = 0; i < path->points; i++)
    fprintf(out, "%s%.1f,%.1f", i ? " " : "", path_x(p, path->x[i]), path_y(p, path->y[i]));
  fprintf(out, "\"/>\n<circle clip-path=\"url(#map)\" r=\"%d\" fill=\"%s\" stroke=\"#ffffff\" cx=\"%.1f\" cy=\"%.1f\">",
          animated ? 7 : 5, colour, path_x(p, path->x[(int)last]), path_y(p, path->y[(int)last]));
  if (animated) {
    path_animate(out, "cx", p, path, 1);
    path_animate(out, "cy", p, path, 0);
  }
  fprintf(out, "</circle>\n<rect x=\"%.0f\" y=\"%.0f\" width=\"22\" height=\"5\" fill=\"%s\"/>", left, bottom - 7,
          colour);
  fprintf(out, "<text x=\"%.0f\" y=\"%.0f\">%s</text>\n", left + 28, bottom, path->name);
}

static inline void path_picture_print(FILE *out, const PathPicture *p, int animated) {
  fprintf(out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
          "height=\"%d\">\n<style>text{font:14px "
          "sans-serif;fill:#1f2328}.level{fill:none;stroke:#9198a1;stroke-width:0.8}</style>\n",
          PATH_WIDTH + 2 * PATH_LEFT, PATH_HEIGHT + PATH_TOP + PATH_LEGEND, PATH_WIDTH + 2 * PATH_LEFT,
          PATH_HEIGHT + PATH_TOP + PATH_LEGEND);
  fprintf(out, "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n<text x=\"%d\" y=\"28\">%s</text>\n",
          PATH_LEFT, p->title);
  fprintf(out, "<clipPath id=\"map\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n", PATH_LEFT,
          PATH_TOP, PATH_WIDTH, PATH_HEIGHT);
  for (int i = 0; i < p->level_count; i++) path_contour(out, p, p->levels[i]);
  fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#404040\"/>\n", PATH_LEFT,
          PATH_TOP, PATH_WIDTH, PATH_HEIGHT);
  const double x = path_x(p, p->best[0]), y = path_y(p, p->best[1]);
  fprintf(out, "<path d=\"M%.1f %.1fh16M%.1f %.1fv16\" stroke=\"#1f2328\" stroke-width=\"2\"/>\n", x - 8, y, x, y - 8);
  for (int i = 0; i < p->path_count; i++) path_draw(out, p, i, animated);
  fputs("</svg>\n", out);
}

static inline int path_picture_write(const PathPicture *p, int animated, const char *path, Error *err) {
  AtomicFile file;
  if (atomic_file_open(&file, path, err) != 0) return -1;
  path_picture_print(file.stream, p, animated);
  return atomic_file_commit(&file, err);
}

#endif /* PHASE4_TRAINING_OPTIMIZER_PATHS_H */
