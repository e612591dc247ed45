// An ordinary C++ file beside the .cu files: it may call the runtime and use its types.
#include <cuda_runtime.h>

#include <iostream>

#include "series.h"

extern "C" int wrong_in_c(int length);

int main() {
  const int length = 1000;
  int wrong = wrong_in_c(length), largest = 0;
  long long sum = 0;
  Series s;
  wrong += series_make(&s, length, 7, -2) + series_sum(&s, &sum) + series_largest(&s, &largest) + series_drop(&s);
  const long long expected = FACTOR * (length * 7ll - 2ll * length * (length - 1) / 2);
  dim3 block(4, 2), grid = {3};
  float4 four = make_float4(1, 2, 3, 4);
  if (sum != expected || largest != FACTOR * 7 || launches_of_sums() != 10) wrong++;
  if (block.x * block.y * block.z * grid.x * grid.y != 24 || four.w != 4) wrong++;
  std::cout << "sum " << sum << ", expected " << expected << "; largest " << largest << "; " << wrong << " wrong" << std::endl;
  return wrong;
}
