/* A series of numbers on the device. For C and C++. */
#ifndef SERIES_H
#define SERIES_H
#ifdef __cplusplus
extern "C" {
#endif

typedef struct Series {
  int length;
  int *values; /* on the device */
} Series;

int series_make(Series *s, int length, int first, int step); /* like the others: 0, or what went wrong */
int series_read(const Series *s, int *host);
int series_drop(Series *s);
int series_sum(const Series *s, long long *sum);
int series_largest(const Series *s, int *largest);
int launches_of_sums(void);

#ifdef __cplusplus
}
#endif
#endif
