// A stand-in for the support library of a programming course: logging, timing, checking of solutions.
#ifndef WB_LIKE_H
#define WB_LIKE_H
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <cuda.h>
#include <cuda_runtime_api.h>

enum wbLogLevel { TRACE, INFO, WARN, ERROR, FATAL };
static inline void wbLog_part() { std::cerr << std::endl; }
template <typename A, typename... Rest>
static inline void wbLog_part(const A &a, const Rest &... rest) {
  std::cerr << a;
  wbLog_part(rest...);
}
#define wbLog(level, ...) do { std::cerr << #level << " " << __FILE__ << ":" << __LINE__ << " "; wbLog_part(__VA_ARGS__); } while (0)

static std::map<std::string, std::chrono::steady_clock::time_point> wb_timers;
#define wbTime_start(kind, msg) (wb_timers[#kind msg] = std::chrono::steady_clock::now())
#define wbTime_stop(kind, msg)                                                                                       \
  printf("[%s] %.3f ms %s\n", #kind,                                                                                 \
         std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - wb_timers[#kind msg]).count(), \
         msg)

static inline void wbRandom(float *p, int n, float lo, float hi) {
  for (int i = 0; i < n; i++) p[i] = lo + (hi - lo) * (rand() / (float)RAND_MAX);
}

static inline int wbSolution(const float *expected, const float *actual, int n) {
  for (int i = 0; i < n; i++)
    if (!(std::fabs(expected[i] - actual[i]) <= 1e-4f * std::fmax(1.f, std::fabs(expected[i])))) {
      printf("The solution did not match the expected results at %d. Expecting %f but got %f.\n", i, expected[i], actual[i]);
      return 1;
    }
  printf("Solution is correct.\n");
  return 0;
}
#endif
