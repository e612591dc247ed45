// Slips of the pen in a launch. nvcc says "expected an expression".
__global__ void k(int *p) {}

int main() {
  int *p = 0;
  // clang-format off
  k<<<1, 2>>(p);            // REFUSED: after this <<< comes no >>>(...)
  k<<<1, 2>>>;              // REFUSED: a launch is kernel<<<grid, block>>>(arguments)
  k<<<1>>>(p);              // REFUSED: this one has 1
  k<<<1, 2, 3, 4, 5>>>(p);  // REFUSED: this one has 5
  <<<1, 2>>>(p);            // REFUSED: there is no kernel's name before <<<
  // clang-format on
  return 0;
}
