// A convolutional layer as im2col + GEMM and directly, stride and padding; then bias, ReLU and 2x2 max pooling with argmax.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

// CUDA: grid stride looping
#define CUDA_KERNEL_LOOP(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
#define CUDA_NUM_THREADS 512
#define GET_BLOCKS(N) (((N) + CUDA_NUM_THREADS - 1) / CUDA_NUM_THREADS)
// CUDA: various checks for different function calls.
#define CUDA_CHECK(condition) \
  /* Code block avoids redefinition of cudaError_t error */ \
  do { \
    cudaError_t error = condition; \
    if (error != cudaSuccess) { fprintf(stderr, "Check failed: %s\n", cudaGetErrorString(error)); abort(); } \
  } while (0)
#define CUBLAS_CHECK(condition) \
  do { \
    cublasStatus_t status = condition; \
    if (status != CUBLAS_STATUS_SUCCESS) { fprintf(stderr, "cublas %d\n", (int)status); abort(); } \
  } while (0)
#define CUDA_POST_KERNEL_CHECK CUDA_CHECK(cudaPeekAtLastError())

template <typename Dtype>
__global__ void im2col_gpu_kernel(const int n, const Dtype* data_im, const int height, const int width, const int kernel_h,
    const int kernel_w, const int pad_h, const int pad_w, const int stride_h, const int stride_w, const int height_col,
    const int width_col, Dtype* data_col) {
  CUDA_KERNEL_LOOP(index, n) {
    const int h_index = index / width_col;
    const int h_col = h_index % height_col;
    const int w_col = index % width_col;
    const int c_im = h_index / height_col;
    const int c_col = c_im * kernel_h * kernel_w;
    const int h_offset = h_col * stride_h - pad_h;
    const int w_offset = w_col * stride_w - pad_w;
    Dtype* data_col_ptr = data_col;
    data_col_ptr += (c_col * height_col + h_col) * width_col + w_col;
    const Dtype* data_im_ptr = data_im;
    data_im_ptr += (c_im * height + h_offset) * width + w_offset;
    for (int i = 0; i < kernel_h; ++i) {
      for (int j = 0; j < kernel_w; ++j) {
        int h_im = h_offset + i;
        int w_im = w_offset + j;
        *data_col_ptr = (h_im >= 0 && w_im >= 0 && h_im < height && w_im < width) ? data_im_ptr[i * width + j] : 0;
        data_col_ptr += height_col * width_col;
      }
    }
  }
}

template <typename Dtype>
void im2col_gpu(const Dtype* data_im, const int channels, const int height, const int width, const int k, const int pad,
    const int stride, Dtype* data_col) {
  int height_col = (height + 2 * pad - k) / stride + 1;
  int width_col = (width + 2 * pad - k) / stride + 1;
  int num_kernels = channels * height_col * width_col;
  // NOLINT_NEXT_LINE(whitespace/operators)
  im2col_gpu_kernel<Dtype><<<GET_BLOCKS(num_kernels), CUDA_NUM_THREADS>>>(
      num_kernels, data_im, height, width, k, k, pad, pad, stride, stride, height_col, width_col, data_col);
  CUDA_POST_KERNEL_CHECK;
}
// Explicit instantiation
template void im2col_gpu<float>(const float* data_im, const int channels, const int height, const int width, const int k,
    const int pad, const int stride, float* data_col);

__global__ void conv_direct(const int n, const float* im, const float* weight, float* out, int C, int H, int W, int k, int pad,
                            int stride, int Ho, int Wo) {
  CUDA_KERNEL_LOOP(index, n) {
    const int x = index % Wo, y = (index / Wo) % Ho, o = index / Wo / Ho;
    float sum = 0;
    for (int c = 0; c < C; ++c)
      for (int i = 0; i < k; ++i)
        for (int j = 0; j < k; ++j) {
          const int yy = y * stride - pad + i, xx = x * stride - pad + j;
          if (yy >= 0 && yy < H && xx >= 0 && xx < W) sum += im[(c * H + yy) * W + xx] * weight[((o * C + c) * k + i) * k + j];
        }
    out[index] = sum;
  }
}

__global__ void bias_relu(const int n, float* data, const float* bias, int spatial) {
  CUDA_KERNEL_LOOP(index, n) { data[index] = fmaxf(data[index] + bias[index / spatial], 0.f); }
}

__global__ void MaxPoolForward(const int nthreads, const float* const bottom_data, const int height, const int width,
    const int pooled_height, const int pooled_width, float* const top_data, int* mask) {
  CUDA_KERNEL_LOOP(index, nthreads) {
    const int pw = index % pooled_width;
    const int ph = (index / pooled_width) % pooled_height;
    const int c = index / pooled_width / pooled_height;
    float maxval = -FLT_MAX;
    int maxidx = -1;
    const float* const bottom_slice = bottom_data + c * height * width;
    for (int h = ph * 2; h < min(ph * 2 + 2, height); ++h) {
      for (int w = pw * 2; w < min(pw * 2 + 2, width); ++w) {
        if (bottom_slice[h * width + w] > maxval) {
          maxidx = h * width + w;
          maxval = bottom_slice[maxidx];
        }
      }
    }
    top_data[index] = maxval;
    mask[index] = maxidx;
  }
}

static float* upload(const float* h, size_t n) {
  float* d;
  CUDA_CHECK(cudaMalloc(&d, n * sizeof(float)));
  if (h) CUDA_CHECK(cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice));
  return d;
}
static float* rnd(size_t n) {
  float* p = (float*)malloc(n * sizeof(float));
  for (size_t i = 0; i < n; i++) p[i] = (float)(rand() % 1000) / 500.f - 1.f;
  return p;
}

int main() {
  const int C = 3, H = 33, W = 45, O = 8, k = 5, pad = 2, stride = 2;
  const int Ho = (H + 2 * pad - k) / stride + 1, Wo = (W + 2 * pad - k) / stride + 1, K = C * k * k, S = Ho * Wo;
  const int Hp = (Ho + 1) / 2, Wp = (Wo + 1) / 2;
  float *im = rnd(C * H * W), *wt = rnd(O * K), *bias = rnd(O);
  float *ref = (float*)malloc(O * S * sizeof(float));
  for (int o = 0; o < O; o++)
    for (int y = 0; y < Ho; y++)
      for (int x = 0; x < Wo; x++) {
        double sum = 0;
        for (int c = 0; c < C; c++)
          for (int i = 0; i < k; i++)
            for (int j = 0; j < k; j++) {
              int yy = y * stride - pad + i, xx = x * stride - pad + j;
              if (yy >= 0 && yy < H && xx >= 0 && xx < W) sum += (double)im[(c * H + yy) * W + xx] * wt[((o * C + c) * k + i) * k + j];
            }
        ref[(o * Ho + y) * Wo + x] = fmax(sum + bias[o], 0.0);
      }
  float *d_im = upload(im, C * H * W), *d_wt = upload(wt, O * K), *d_bias = upload(bias, O);
  float *d_col = upload(NULL, K * S), *d_out = upload(NULL, O * S), *d_pool = upload(NULL, O * Hp * Wp);
  int* d_mask;
  CUDA_CHECK(cudaMalloc(&d_mask, O * Hp * Wp * sizeof(int)));
  cublasHandle_t cublas;
  cudaStream_t stream;
  CUBLAS_CHECK(cublasCreate(&cublas));
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUBLAS_CHECK(cublasSetStream(cublas, stream));

  float *out = (float*)malloc(O * S * sizeof(float));
  int bad = 0;
  for (int v = 0; v < 2; v++) {
    if (v == 0) {
      im2col_gpu(d_im, C, H, W, k, pad, stride, d_col);
      const float one = 1.f, zero = 0.f;
      CUBLAS_CHECK(cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, S, O, K, &one, d_col, S, d_wt, K, &zero, d_out, S));
      CUDA_CHECK(cudaStreamSynchronize(stream));
    } else {
      conv_direct<<<GET_BLOCKS(O * S), CUDA_NUM_THREADS>>>(O * S, d_im, d_wt, d_out, C, H, W, k, pad, stride, Ho, Wo);
    }
    bias_relu<<<3, CUDA_NUM_THREADS>>>(O * S, d_out, d_bias, S);
    CUDA_POST_KERNEL_CHECK;
    CUDA_CHECK(cudaMemcpy(out, d_out, O * S * sizeof(float), cudaMemcpyDeviceToHost));
    float worst = 0;
    for (int i = 0; i < O * S; i++) worst = fmaxf(worst, fabsf(out[i] - ref[i]));
    printf("%s: worst difference %g\n", v ? "direct" : "im2col + gemm", worst);
    bad += !(worst < 1e-4f);
  }

  MaxPoolForward<<<GET_BLOCKS(O * Hp * Wp), CUDA_NUM_THREADS>>>(O * Hp * Wp, d_out, Ho, Wo, Hp, Wp, d_pool, d_mask);
  CUDA_POST_KERNEL_CHECK;
  float* pool = (float*)malloc(O * Hp * Wp * sizeof(float));
  int* mask = (int*)malloc(O * Hp * Wp * sizeof(int));
  CUDA_CHECK(cudaMemcpy(pool, d_pool, O * Hp * Wp * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(mask, d_mask, O * Hp * Wp * sizeof(int), cudaMemcpyDeviceToHost));
  for (int o = 0; o < O; o++)
    for (int p = 0; p < Hp * Wp; p++) {
      float m = -FLT_MAX;
      for (int i = 0; i < 4; i++) {
        int y = p / Wp * 2 + i / 2, x = p % Wp * 2 + i % 2;
        if (y < Ho && x < Wo) m = fmaxf(m, out[(o * Ho + y) * Wo + x]);
      }
      bad += pool[o * Hp * Wp + p] != m || out[o * S + mask[o * Hp * Wp + p]] != m;
    }
  printf("pooling: %s\n", bad ? "wrong" : "right");
  CUBLAS_CHECK(cublasDestroy(cublas));
  CUDA_CHECK(cudaStreamDestroy(stream));
  cudaFree(d_im); cudaFree(d_wt); cudaFree(d_bias); cudaFree(d_col); cudaFree(d_out); cudaFree(d_pool); cudaFree(d_mask);
  free(im); free(wt); free(bias); free(ref); free(out); free(pool); free(mask);
  puts(bad ? "FAILED" : "PASSED");
  return bad ? 1 : 0;
}
