#include <iostream>
#include <vector>
#include <cmath>
#include <cstring>
#include <string>
#include <functional>
using namespace std;

// Image processing 101: grayscale, box blur (integral direction passes), gaussian blur, sobel with a shared tile, bilateral
// filter, threshold; a synthetic RGBA image. Problem set 2 style: uchar4, separate channels, many reference loops.

#define checkCudaErrors(val) check( (val), #val, __FILE__, __LINE__)
template<typename T>
void check(T err, const char* const func, const char* const file, const int line) {
  if (err != cudaSuccess) {
    std::cerr << "CUDA error at: " << file << ":" << line << std::endl;
    std::cerr << cudaGetErrorString(err) << " " << func << std::endl;
    exit(1);
  }
}

__global__
void rgba_to_greyscale(const uchar4* const rgbaImage, unsigned char* const greyImage, int numRows, int numCols)
{
  const long pointIndex = threadIdx.x + blockDim.x*blockIdx.x;
  if(pointIndex<numRows*numCols) {
    uchar4 const imagePoint = rgbaImage[pointIndex];
    greyImage[pointIndex] = .299f*imagePoint.x + .587f*imagePoint.y  + .114f*imagePoint.z;
  }
}

__global__
void gaussian_blur(const unsigned char* const inputChannel, unsigned char* const outputChannel, int numRows, int numCols,
                   const float* const filter, const int filterWidth)
{
  const int2 p = make_int2(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y);
  extern __shared__ float f[];
  for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < filterWidth * filterWidth; i += blockDim.x * blockDim.y) f[i] = filter[i];
  __syncthreads();
  if (p.x >= numCols || p.y >= numRows) return;
  float color = 0.0f;
  for (int py = 0; py < filterWidth; py++)
    for (int px = 0; px < filterWidth; px++) {
      int c_x = min(max(p.x + px - filterWidth / 2, 0), numCols - 1);
      int c_y = min(max(p.y + py - filterWidth / 2, 0), numRows - 1);
      color += f[py * filterWidth + px] * static_cast<float>(inputChannel[c_y * numCols + c_x]);
    }
  outputChannel[p.y * numCols + p.x] = color;
}

__global__
void separateChannels(const uchar4* const in, int n, unsigned char* const r, unsigned char* const g, unsigned char* const b)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  r[i] = in[i].x; g[i] = in[i].y; b[i] = in[i].z;
}
__global__
void recombineChannels(const unsigned char* const r, const unsigned char* const g, const unsigned char* const b, uchar4* const out, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = make_uchar4(r[i], g[i], b[i], 255); // Alpha should be 255 for no transparency
}

// box filter, one row per thread, sliding sum
__global__ void d_boxfilter_x(const float *id, float *od, int w, int h, int r)
{
  unsigned y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y >= h) return;
  float scale = 1.0f / (float)((r << 1) + 1), t = id[y * w] * r;
  for (int x = 0; x < r + 1; x++) t += id[y * w + x];
  od[y * w] = t * scale;
  for (int x = 1; x < w; x++) {
    t += id[y * w + min(x + r, w - 1)];
    t -= id[y * w + max(x - r - 1, 0)];
    od[y * w + x] = t * scale;
  }
}

#define TX 32
#define TY 8
__global__ void sobel(const unsigned char *in, short *out, int w, int h)
{
  __shared__ unsigned char tile[TY + 2][TX + 2];
  int x0 = blockIdx.x * TX - 1, y0 = blockIdx.y * TY - 1;
  for (int i = threadIdx.y * TX + threadIdx.x; i < (TX + 2) * (TY + 2); i += TX * TY) {
    int xx = max(0, min(w - 1, x0 + i % (TX + 2))), yy = max(0, min(h - 1, y0 + i / (TX + 2)));
    tile[i / (TX + 2)][i % (TX + 2)] = in[yy * w + xx];
  }
  __syncthreads();
  int x = x0 + 1 + threadIdx.x, y = y0 + 1 + threadIdx.y;
  if (x >= w || y >= h) return;
  unsigned char (*t)[TX + 2] = (unsigned char (*)[TX + 2])&tile[threadIdx.y][threadIdx.x];
  short Horz = t[0][2] + 2 * t[1][2] + t[2][2] - t[0][0] - 2 * t[1][0] - t[2][0];
  short Vert = t[0][0] + 2 * t[0][1] + t[0][2] - t[2][0] - 2 * t[2][1] - t[2][2];
  out[y * w + x] = (short)(abs(Horz) + abs(Vert));
}

__constant__ float cGaussian[64];
__global__ void d_bilateral_filter(const unsigned char *in, float *od, int w, int h, float e_d, int r)
{
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float sum = 0.0f, t = 0.0f, center = in[y * w + x];
  for (int i = -r; i <= r; i++)
    for (int j = -r; j <= r; j++) {
      float curPix = in[min(max(y + i, 0), h - 1) * w + min(max(x + j, 0), w - 1)];
      float mod = (curPix - center) * (curPix - center);
      float factor = cGaussian[i + r] * cGaussian[j + r] * __expf(-mod / (2 * e_d * e_d));
      t += factor * curPix;
      sum += factor;
    }
  od[y * w + x] = t / sum;
}

template <typename T> T* alloc(size_t n) { T* p; checkCudaErrors(cudaMalloc((void **)&p, n * sizeof(T))); return p; }
template <typename T> vector<T> fetch(const T* d, size_t n) { vector<T> v(n); checkCudaErrors(cudaMemcpy(v.data(), d, n * sizeof(T), cudaMemcpyDeviceToHost)); return v; }
template <typename A, typename F> bool compare(string name, const A& got, F want, double eps, int w) {
  double worst = 0;
  for (size_t i = 0; i < got.size(); i++) worst = max(worst, fabs((double)got[i] - (double)want((int)(i % w), (int)(i / w))));
  cout << name << ": largest difference " << worst << (worst <= eps ? "" : "  FAILED") << endl;
  return worst <= eps;
}

int main()
{
  const int w = 211, h = 157, n = w * h, FW = 9, R = 4;
  vector<uchar4> img(n);
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++)
      img[y * w + x] = make_uchar4(x * 255 / w, (x / 16 + y / 16) % 2 * 200 + rand() % 20, (unsigned char)(127 + 120 * sin(x * 0.1) * cos(y * 0.07)), 255);
  uchar4 *d_img = alloc<uchar4>(n), *d_back = alloc<uchar4>(n);
  unsigned char *d_grey = alloc<unsigned char>(n), *d_r = alloc<unsigned char>(n), *d_g = alloc<unsigned char>(n), *d_b = alloc<unsigned char>(n), *d_blur = alloc<unsigned char>(n);
  checkCudaErrors(cudaMemcpy(d_img, img.data(), n * sizeof(uchar4), cudaMemcpyHostToDevice));
  bool ok = true;

  rgba_to_greyscale<<<(n + 1023) / 1024, 1024>>>(d_img, d_grey, h, w);
  cudaDeviceSynchronize(); checkCudaErrors(cudaGetLastError());
  vector<unsigned char> grey = fetch(d_grey, n);
  ok &= compare("greyscale", grey, [&](int x, int y) { uchar4 p = img[y * w + x]; return (int)(.299f * p.x + .587f * p.y + .114f * p.z); }, 1, w);

  vector<float> filter(FW * FW);
  float fsum = 0;
  for (int i = 0; i < FW * FW; i++) fsum += filter[i] = expf(-((i % FW - 4) * (i % FW - 4) + (i / FW - 4) * (i / FW - 4)) / 8.f);
  for (float& f : filter) f /= fsum;
  float* d_filter = alloc<float>(FW * FW);
  checkCudaErrors(cudaMemcpy(d_filter, &filter[0], sizeof(float) * FW * FW, cudaMemcpyHostToDevice));
  const dim3 blockSize(32, 8), gridSize((w + 31) / 32, (h + 7) / 8);
  separateChannels<<<(n + 255) / 256, 256>>>(d_img, n, d_r, d_g, d_b);
  for (auto c : {d_r, d_g, d_b}) {
    gaussian_blur<<<gridSize, blockSize, FW * FW * sizeof(float)>>>(c, d_blur, h, w, d_filter, FW);
    checkCudaErrors(cudaMemcpy(c, d_blur, n, cudaMemcpyDeviceToDevice));
  }
  recombineChannels<<<(n + 255) / 256, 256>>>(d_r, d_g, d_b, d_back, n);
  checkCudaErrors(cudaGetLastError());
  vector<uchar4> blurred = fetch(d_back, n);
  vector<int> green(n);
  for (int i = 0; i < n; i++) { green[i] = blurred[i].y; ok &= blurred[i].w == 255; }
  ok &= compare("gaussian blur", green, [&](int x, int y) {
    float s = 0;
    for (int i = 0; i < FW * FW; i++) s += filter[i] * img[min(max(y + i / FW - 4, 0), h - 1) * w + min(max(x + i % FW - 4, 0), w - 1)].y;
    return (int)s; }, 1, w);

  short* d_edges = alloc<short>(n);
  sobel<<<dim3((w + TX - 1) / TX, (h + TY - 1) / TY), dim3(TX, TY)>>>(d_grey, d_edges, w, h);
  checkCudaErrors(cudaGetLastError());
  auto at = [&](int x, int y) { return (int)grey[min(max(y, 0), h - 1) * w + min(max(x, 0), w - 1)]; };
  ok &= compare("sobel", fetch(d_edges, n), [&](int x, int y) {
    return abs(at(x + 1, y - 1) + 2 * at(x + 1, y) + at(x + 1, y + 1) - at(x - 1, y - 1) - 2 * at(x - 1, y) - at(x - 1, y + 1)) +
           abs(at(x - 1, y - 1) + 2 * at(x, y - 1) + at(x + 1, y - 1) - at(x - 1, y + 1) - 2 * at(x, y + 1) - at(x + 1, y + 1)); }, 0, w);

  float *d_f = alloc<float>(n), *d_box = alloc<float>(n), g[64];
  vector<float> fl(grey.begin(), grey.end());
  checkCudaErrors(cudaMemcpy(d_f, fl.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  d_boxfilter_x<<<(h + 63) / 64, 64>>>(d_f, d_box, w, h, R);
  ok &= compare("box", fetch(d_box, n), [&](int x, int y) { double s = 0; for (int i = -R; i <= R; i++) s += at(x + i, y); return s / (2 * R + 1); }, 1e-2, w);

  for (int i = 0; i < 2 * R + 1; i++) g[i] = expf(-(float)((i - R) * (i - R)) / (2 * 3.f * 3.f));
  checkCudaErrors(cudaMemcpyToSymbol(cGaussian, g, sizeof(float) * (2 * R + 1)));
  d_bilateral_filter<<<gridSize, blockSize>>>(d_grey, d_box, w, h, 25.f, R);
  checkCudaErrors(cudaGetLastError());
  ok &= compare("bilateral", fetch(d_box, n), [&](int x, int y) {
    double s = 0, t = 0;
    for (int i = -R; i <= R; i++) for (int j = -R; j <= R; j++) {
      double c = at(x + j, y + i), f = g[i + R] * g[j + R] * exp(-(c - at(x, y)) * (c - at(x, y)) / (2 * 25. * 25.));
      s += f; t += f * c;
    }
    return t / s; }, 1e-2, w);
  for (void* p : initializer_list<void*>{d_img, d_back, d_grey, d_r, d_g, d_b, d_blur, d_filter, d_edges, d_f, d_box}) checkCudaErrors(cudaFree(p));
  cout << (ok ? "Filters PASS" : "Filters FAIL") << endl;
  return !ok;
}
