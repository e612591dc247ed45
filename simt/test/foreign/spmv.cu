// Sparse matrix times vector: COO with atomics, CSR scalar, CSR vector (a sub-warp per row), ELLPACK; double precision.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <map>
#include <algorithm>

template <typename IndexType, typename ValueType>
struct csr_matrix {
  IndexType num_rows, num_cols, num_nonzeros;
  IndexType *row_ptr, *col_idx;
  ValueType *values;
};

#define CU(x) if (x) { printf("%s failed\n", #x); exit(1); }

template <typename I, typename V>
__global__ void spmv_coo_kernel(I nnz, const I *rows, const I *cols, const V *vals, const V *x, V *y) {
  for (I k = blockIdx.x * blockDim.x + threadIdx.x; k < nnz; k += gridDim.x * blockDim.x) atomicAdd(&y[rows[k]], vals[k] * x[cols[k]]);
}

template <typename I, typename V>
__global__ void spmv_csr_scalar_kernel(const csr_matrix<I, V> A, const V *x, V *y) {
  I row = blockDim.x * blockIdx.x + threadIdx.x;
  if (row < A.num_rows) {
    V dot = 0;
    for (I jj = A.row_ptr[row]; jj < A.row_ptr[row + 1]; jj++) dot += A.values[jj] * x[A.col_idx[jj]];
    y[row] += dot;
  }
}

template <unsigned THREADS_PER_VECTOR, typename I, typename V>
__global__ void spmv_csr_vector_kernel(csr_matrix<I, V> A, const V *__restrict__ x, V *__restrict__ y) {
  __shared__ V vals[256];
  const unsigned thread_lane = threadIdx.x & (THREADS_PER_VECTOR - 1);
  const I row = (blockIdx.x * blockDim.x + threadIdx.x) / THREADS_PER_VECTOR;
  V sum = 0;
  if (row < A.num_rows)
    for (I jj = A.row_ptr[row] + thread_lane; jj < A.row_ptr[row + 1]; jj += THREADS_PER_VECTOR)
      sum += A.values[jj] * __ldg(x + A.col_idx[jj]);
  // segmented reduction in shared memory, warp-synchronous
  volatile V *v = vals;
  v[threadIdx.x] = sum;
  __syncwarp();
#pragma unroll
  for (unsigned d = THREADS_PER_VECTOR / 2; d > 0; d /= 2) {
    V t = thread_lane < d ? v[threadIdx.x] + v[threadIdx.x + d] : V(0);
    __syncwarp();
    if (thread_lane < d) v[threadIdx.x] = t;
    __syncwarp();
  }
  if (thread_lane == 0 && row < A.num_rows) y[row] += v[threadIdx.x];
}

// sub-warp shuffle with its own width
template <int W, typename I, typename V>
__global__ void spmv_csr_shfl_kernel(csr_matrix<I, V> A, const V *x, V *y) {
  const int lane = threadIdx.x % W;
  for (I row = (blockIdx.x * blockDim.x + threadIdx.x) / W; __any_sync(0xffffffff, row < A.num_rows); row += gridDim.x * blockDim.x / W) {
    V sum{};
    if (row < A.num_rows)
      for (I j = A.row_ptr[row] + lane; j < A.row_ptr[row + 1]; j += W) sum = fma(A.values[j], x[A.col_idx[j]], sum);
    for (int d = W / 2; d; d >>= 1) sum += __shfl_down_sync(0xffffffff, sum, d, W);
    if (lane == 0 && row < A.num_rows) y[row] += sum;
  }
}

template <typename I, typename V>
__global__ void spmv_ell_kernel(I rows, I width, I pitch, const I *cols, const V *vals, const V *x, V *y) {
  I r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  V dot = y[r];
  for (I k = 0; k < width; ++k) {
    I c = cols[k * pitch + r];
    if (c >= 0) dot += vals[k * pitch + r] * x[c];
  }
  y[r] = dot;
}

template <typename T> T *to_device(const std::vector<T> &h) {
  T *d;
  CU(cudaMalloc(&d, std::max<size_t>(1, h.size()) * sizeof(T)));
  CU(cudaMemcpy(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice));
  return d;
}

int main() {
  const int rows = 3001, cols = 2500;
  std::vector<int> ptr{0}, idx, coo;
  std::vector<double> val, x(cols), y0(rows), ref, y(rows);
  for (auto &v : x) v = drand48() - 0.5;
  for (auto &v : y0) v = drand48();
  int width = 0;
  for (int r = 0; r < rows; r++) {
    int k = r % 97 == 0 ? 0 : r % 50 == 0 ? 120 : rand() % 12;
    std::map<int, double> row;
    while ((int)row.size() < k) row[rand() % cols] = drand48() - 0.5;
    for (auto &e : row) idx.push_back(e.first), val.push_back(e.second), coo.push_back(r);
    ptr.push_back(idx.size());
    width = std::max(width, k);
  }
  ref = y0;
  for (int r = 0; r < rows; r++)
    for (int j = ptr[r]; j < ptr[r + 1]; j++) ref[r] += val[j] * x[idx[j]];
  const int pitch = (rows + 31) / 32 * 32;
  std::vector<int> ecol(pitch * width, -1);
  std::vector<double> eval(pitch * width, 0.0);
  for (int r = 0; r < rows; r++)
    for (int j = ptr[r]; j < ptr[r + 1]; j++) ecol[(j - ptr[r]) * pitch + r] = idx[j], eval[(j - ptr[r]) * pitch + r] = val[j];

  csr_matrix<int, double> A = {rows, cols, (int)idx.size(), to_device(ptr), to_device(idx), to_device(val)};
  double *dx = to_device(x), *dy = to_device(y0), *d_eval = to_device(eval);
  int *d_coo = to_device(coo), *d_ecol = to_device(ecol);
  printf("%d x %d, %d nonzeros, longest row %d\n", rows, cols, A.num_nonzeros, width);
  int bad = 0;
  for (int k = 0; k < 6; k++) {
    CU(cudaMemcpy(dy, y0.data(), rows * sizeof(double), cudaMemcpyHostToDevice));
    switch (k) {
      case 0: spmv_coo_kernel<int, double><<<20, 256>>>(A.num_nonzeros, d_coo, A.col_idx, A.values, dx, dy); break;
      case 1: spmv_csr_scalar_kernel<int, double><<<(rows + 255) / 256, 256>>>(A, dx, dy); break;
      case 2: spmv_csr_vector_kernel<32, int, double><<<(rows + 7) / 8, 256>>>(A, dx, dy); break;
      case 3: spmv_csr_vector_kernel<4><<<(rows + 63) / 64, 256>>>(A, dx, dy); break;
      case 4: spmv_csr_shfl_kernel<8><<<30, 128>>>(A, dx, dy); break;
      case 5: spmv_ell_kernel<<<(rows + 127) / 128, 128>>>(rows, width, pitch, d_ecol, d_eval, dx, dy); break;
    }
    CU(cudaGetLastError());
    CU(cudaMemcpy(y.data(), dy, rows * sizeof(double), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int r = 0; r < rows; r++) worst = std::max(worst, std::abs(y[r] - ref[r]));
    const char *names[] = {"coo atomics", "csr scalar", "csr vector 32", "csr vector 4", "csr shuffle 8", "ell"};
    printf("  %-14s max error %.2e%s\n", names[k], worst, worst < 1e-10 ? "" : "  <---");
    bad += worst >= 1e-10;
  }
  for (void *p : {(void *)A.row_ptr, (void *)A.col_idx, (void *)A.values, (void *)dx, (void *)dy, (void *)d_coo, (void *)d_ecol, (void *)d_eval}) cudaFree(p);
  puts(bad ? "SpMV broken" : "SpMV verified");
  return bad;
}
