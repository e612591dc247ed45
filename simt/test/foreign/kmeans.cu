// K-means: assignment with centroids in constant memory, centroid sums by shared atomics, convergence on the device.
#include <algorithm>
#include <cfloat>
#include <chrono>
#include <iostream>
#include <random>
#include <vector>

// A small data structure to do RAII for a dataset of 2-dimensional points.
struct Data {
  explicit Data(int size) : size(size), bytes(size * sizeof(float)) {
    cudaMalloc(&x, bytes);
    cudaMalloc(&y, bytes);
  }
  Data(int size, std::vector<float>& h_x, std::vector<float>& h_y) : Data(size) {
    cudaMemcpy(x, h_x.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(y, h_y.data(), bytes, cudaMemcpyHostToDevice);
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  void clear() {
    cudaMemset(x, 0, bytes);
    cudaMemset(y, 0, bytes);
  }
  ~Data() {
    cudaFree(x);
    cudaFree(y);
  }
  float* x{nullptr};
  float* y{nullptr};
  int size{0};
  int bytes{0};
};

constexpr int MAX_K = 64;
__constant__ float2 c_means[MAX_K];
__device__ int d_moved;

__host__ __device__ float squared_l2_distance(float x_1, float y_1, float x_2, float y_2) {
  return (x_1 - x_2) * (x_1 - x_2) + (y_1 - y_2) * (y_1 - y_2);
}

// In the assignment step, each point (thread) computes its distance to each cluster centroid and adds its x and y values
// to the sum of its closest centroid, as well as incrementing that centroid's count of assigned points.
__global__ void assign_clusters(const float* __restrict__ data_x, const float* __restrict__ data_y, int data_size, int* label,
                                float* __restrict__ new_sums_x, float* __restrict__ new_sums_y, int k, int* __restrict__ counts) {
  extern __shared__ float shared_data[];
  float* sx = shared_data;
  float* sy = sx + k;
  int* sc = reinterpret_cast<int*>(sy + k);
  for (int i = threadIdx.x; i < k; i += blockDim.x) sx[i] = sy[i] = 0.f, sc[i] = 0;
  __syncthreads();

  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  bool moved = false;
  if (index < data_size) {
    // Make global loads once.
    const float x = data_x[index];
    const float y = data_y[index];
    float best_distance = FLT_MAX;
    int best_cluster = 0;
    for (int cluster = 0; cluster < k; ++cluster) {
      const float distance = squared_l2_distance(x, y, c_means[cluster].x, c_means[cluster].y);
      if (distance < best_distance) {
        best_distance = distance;
        best_cluster = cluster;
      }
    }
    moved = label[index] != best_cluster;
    label[index] = best_cluster;
    atomicAdd(&sx[best_cluster], x);
    atomicAdd(&sy[best_cluster], y);
    atomicAdd(&sc[best_cluster], 1);
  }
  const int n = __syncthreads_count(moved);
  if (threadIdx.x == 0 && n) atomicAdd(&d_moved, n);
  for (int i = threadIdx.x; i < k; i += blockDim.x) {
    atomicAdd(&new_sums_x[i], sx[i]);
    atomicAdd(&new_sums_y[i], sy[i]);
    atomicAdd(&counts[i], sc[i]);
  }
}

// Each thread is one cluster, which just recomputes its coordinates as the mean of all points assigned to it.
__global__ void compute_new_means(float2* means, const float* new_sum_x, const float* new_sum_y, const int* counts) {
  const int cluster = threadIdx.x;
  // Threshold count to turn 0/0 into 0/1.
  const int count = max(1, counts[cluster]);
  means[cluster] = make_float2(new_sum_x[cluster] / count, new_sum_y[cluster] / count);
}

int main(int argc, const char* argv[]) {
  const int k = 5, n = 20000, max_iterations = 60;
  std::mt19937 rng(7);
  std::normal_distribution<float> noise(0.f, 0.4f);
  const float2 truth[k] = {{0, 0}, {5, 0}, {0, 5}, {5, 5}, {-4, 3}};
  std::vector<float> h_x(n), h_y(n);
  std::vector<int> origin(n), label(n, -1);
  for (int i = 0; i < n; ++i) {
    origin[i] = i % k;
    h_x[i] = truth[i % k].x + noise(rng);
    h_y[i] = truth[i % k].y + noise(rng);
  }
  float2 h_means[k];
  for (int c = 0; c < k; ++c) h_means[c] = make_float2(h_x[c], h_y[c]);   // the first point of each cloud

  Data d_data(n, h_x, h_y), d_sums(k);
  int *d_counts, *d_label;
  float2* d_means;
  cudaMalloc(&d_counts, k * sizeof(int));
  cudaMalloc(&d_label, n * sizeof(int));
  cudaMalloc(&d_means, k * sizeof(float2));
  cudaMemset(d_label, 0xff, n * sizeof(int));
  cudaMemcpy(d_means, h_means, sizeof h_means, cudaMemcpyHostToDevice);

  const int threads = 512;
  const int blocks = (n + threads - 1) / threads;
  const int shared_memory = k * (2 * sizeof(float) + sizeof(int));
  const auto start = std::chrono::high_resolution_clock::now();
  int moved = n, iteration = 0;
  for (; iteration < max_iterations && moved; ++iteration) {
    cudaMemcpyToSymbol(c_means, d_means, k * sizeof(float2), 0, cudaMemcpyDeviceToDevice);
    cudaMemset(d_counts, 0, k * sizeof(int));
    d_sums.clear();
    moved = 0;
    cudaMemcpyToSymbol(d_moved, &moved, sizeof(int));
    assign_clusters<<<blocks, threads, shared_memory>>>(d_data.x, d_data.y, d_data.size, d_label, d_sums.x, d_sums.y, k, d_counts);
    compute_new_means<<<1, k>>>(d_means, d_sums.x, d_sums.y, d_counts);
    cudaMemcpyFromSymbol(&moved, d_moved, sizeof(int));
  }
  const auto end = std::chrono::high_resolution_clock::now();
  const auto duration = std::chrono::duration_cast<std::chrono::duration<float>>(end - start);
  std::cerr << "Took: " << duration.count() << "s" << " for " << iteration << " iterations" << std::endl;

  cudaMemcpy(h_means, d_means, sizeof h_means, cudaMemcpyDeviceToHost);
  cudaMemcpy(label.data(), d_label, n * sizeof(int), cudaMemcpyDeviceToHost);
  int bad = cudaGetLastError() != cudaSuccess;
  for (int c = 0; c < k; ++c) {
    std::cout << h_means[c].x << " " << h_means[c].y << std::endl;
    bad += squared_l2_distance(h_means[c].x, h_means[c].y, truth[c].x, truth[c].y) > 0.01f;
  }
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += label[i] != origin[i];
  std::cout << wrong << " points in another's cluster" << std::endl;
  bad += wrong > n / 1000 || iteration == max_iterations;
  cudaFree(d_counts);
  cudaFree(d_label);
  cudaFree(d_means);
  std::cout << (bad ? "kmeans FAILED" : "kmeans PASSED") << std::endl;
  return bad;
}
