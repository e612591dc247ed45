/* decision_surface.h - the probability of class 1 at each place of a square of the plane, drawn with the points on it.
 *
 * A frame is that square after some epoch. surface_print() prints it in characters, surface_write() draws a row of
 * frames as a picture with gnuplot (plot.h). The background is transparent and the ink grey, for light and dark pages.
 */
#ifndef PHASE2_MLP_DECISION_SURFACE_H
#define PHASE2_MLP_DECISION_SURFACE_H

#include "common/plot.h"
#include "phase2_mlp/point_classifier/points.h"

enum { SURFACE_SIDE = 121, SURFACE_PLACES = SURFACE_SIDE * SURFACE_SIDE, SURFACE_FRAMES = 12 };
enum { SURFACE_COLUMNS = 49, SURFACE_ROWS = 21 }; /* of characters, which are about twice as high as wide */

typedef struct Frame {
  char title[160];
  float *p; /* (SURFACE_SIDE,SURFACE_SIDE), from below: the probability of class 1 */
} Frame;

typedef struct Surface {
  const char *title;
  const Points *points;
  float reach; /* the square goes from -reach to reach */
  Frame frame[SURFACE_FRAMES];
  int frames;
} Surface;

static inline Surface surface_make(const char *title, const Points *points) {
  Surface surface;
  memset(&surface, 0, sizeof surface);
  surface.title = title;
  surface.points = points;
  surface.reach = points_reach(points);
  return surface;
}

static inline void surface_free(Surface *surface) {
  for (int i = 0; i < surface->frames; i++) free(surface->frame[i].p);
  surface->frames = 0;
}

/* Adds a frame; the caller fills it. */
static inline Frame *surface_add(Surface *surface) {
  if (surface->frames == SURFACE_FRAMES) die("a picture has at most %d frames", SURFACE_FRAMES);
  Frame *frame = &surface->frame[surface->frames++];
  frame->p = (float *)xmalloc(SURFACE_PLACES * sizeof(float));
  return frame;
}

/* The places where the network is evaluated: x (SURFACE_PLACES,2); the caller frees it. */
static inline float *surface_places(const Surface *surface) {
  float *x = (float *)xmalloc(SURFACE_PLACES * 2 * sizeof(float)), step = 2 * surface->reach / (SURFACE_SIDE - 1);
  for (int i = 0; i < SURFACE_PLACES; i++) {
    x[2 * i] = -surface->reach + step * (float)(i % SURFACE_SIDE);
    x[2 * i + 1] = -surface->reach + step * (float)(i / SURFACE_SIDE);
  }
  return x;
}

/* The index of the part that contains x, when the square's side is divided into `count` equal parts. */
static inline int surface_part(const Surface *surface, float x, int count) {
  int part = (int)((x + surface->reach) / (2 * surface->reach) * (float)count);
  return part < 0 ? 0 : part >= count ? count - 1 : part;
}

/* x and o: points of class 1 and 0; X and O: those on the wrong side; dots: where the network says 1. */
static inline void surface_print(FILE *out, const Surface *surface, const Frame *frame) {
  char cell[SURFACE_ROWS][SURFACE_COLUMNS + 1];
  for (int row = 0; row < SURFACE_ROWS; row++) {
    for (int col = 0; col < SURFACE_COLUMNS; col++) {
      int i = (2 * col + 1) * SURFACE_SIDE / (2 * SURFACE_COLUMNS),
          j = (2 * row + 1) * SURFACE_SIDE / (2 * SURFACE_ROWS);
      cell[row][col] = frame->p[j * SURFACE_SIDE + i] > 0.5f ? '.' : ' ';
    }
    cell[row][SURFACE_COLUMNS] = '\0';
  }
  for (int k = 0; k < surface->points->count; k++) {
    const float *at = surface->points->x + 2 * k;
    int one = surface->points->t[k] > 0.5f;
    int said = frame->p[surface_part(surface, at[1], SURFACE_SIDE) * SURFACE_SIDE +
                        surface_part(surface, at[0], SURFACE_SIDE)] > 0.5f;
    char *place = &cell[surface_part(surface, at[1], SURFACE_ROWS)][surface_part(surface, at[0], SURFACE_COLUMNS)];
    if (*place == 'X' || *place == 'O') continue; /* a wrong one is not covered by a right one */
    *place = one ? (said ? 'x' : 'X') : (said ? 'O' : 'o');
  }
  fprintf(out, "%s\n", frame->title);
  for (int row = SURFACE_ROWS - 1; row >= 0; row--) fprintf(out, "  |%s|\n", cell[row]);
}

/* gnuplot's script: a panel for each frame, blue where class 0 is likely and orange where class 1 is. */
static inline void surface_print_script(FILE *script, const void *what, int png) {
  const Surface *surface = (const Surface *)what;
  int columns = surface->frames < 3 ? surface->frames : 3, rows = (surface->frames + columns - 1) / columns;
  const char *ink = "'#7a7a7a'"; /* contrast 4.3 to white, 4.4 to the dark page of GitHub */
  fprintf(script, "set encoding utf8\nset terminal %s size %d,%d noenhanced %s linewidth %g\n",
          png ? "pngcairo" : "svg", (png ? 480 : 320) * columns, (png ? 520 : 350) * rows + (png ? 60 : 40),
          png ? "transparent font 'Sans,16'" : "font 'sans-serif,14'", png ? 2.0 : 1.5);
  fprintf(script, "set multiplot layout %d,%d title ", rows, columns);
  plot_print_string(script, surface->title);
  fprintf(script,
          " textcolor rgb %s\nset palette defined (0 '#56a0d3', 0.5 '#ffffff', 1 '#eda268')\nset cbrange [0:1]\n"
          "unset colorbox\nset border linecolor %s\nset tics nomirror out scale 0.5 textcolor rgb %s\nset size square\n"
          "set xrange [-%g:%g]\nset yrange [-%g:%g]\nset xtics 1\nset ytics 1\n",
          ink, ink, ink, surface->reach, surface->reach, surface->reach, surface->reach);
  for (int kind = 0; kind < 2; kind++) {
    fprintf(script, "$class%d << END\n", kind);
    for (int i = 0; i < surface->points->count; i++)
      if ((surface->points->t[i] > 0.5f) == kind)
        fprintf(script, "%g %g\n", surface->points->x[2 * i], surface->points->x[2 * i + 1]);
    fputs("NaN NaN\nEND\n", script); /* never without a line */
  }
  float step = 2 * surface->reach / (SURFACE_SIDE - 1);
  for (int f = 0; f < surface->frames; f++) {
    fputs("$p << END\n", script);
    for (int i = 0; i < SURFACE_PLACES; i++)
      fprintf(script, "%.3f%c", surface->frame[f].p[i], i % SURFACE_SIDE == SURFACE_SIDE - 1 ? '\n' : ' ');
    fputs("END\nset title ", script);
    plot_print_string(script, surface->frame[f].title);
    fprintf(script,
            " textcolor rgb %s\nplot $p matrix using (%.9g+%.9g*$1):(%.9g+%.9g*$2):3 with image notitle, "
            "$class0 with points pointtype 7 pointsize 0.7 linecolor '#ffffff' notitle, "
            "$class0 with points pointtype 7 pointsize 0.5 linecolor '#00507d' notitle, "
            "$class1 with points pointtype 5 pointsize 0.7 linecolor '#ffffff' notitle, "
            "$class1 with points pointtype 5 pointsize 0.5 linecolor '#a04000' notitle\n",
            ink, -surface->reach, step, -surface->reach, step);
  }
  fputs("unset multiplot\n", script);
}

/* The name ends in .png or .svg. */
static inline int surface_write(const Surface *surface, const char *path, Error *err) {
  return plot_render(surface_print_script, surface, path, err);
}

#endif /* PHASE2_MLP_DECISION_SURFACE_H */
