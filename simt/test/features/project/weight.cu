// A device function and a variable that kernels of other files use (-rdc=true).
__constant__ int factor = FACTOR;
__device__ long long weighted(int value) { return (long long)factor * value; }
