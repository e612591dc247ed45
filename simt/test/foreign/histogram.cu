// Histograms of 256 bins: global atomics, shared atomics, privatised per warp, and a 64-bin variant of bytes.
#include <iostream>
#include <vector>
#include <cstring>
#include <cassert>

using std::cout;
using std::cerr;
using std::endl;
using std::vector;

typedef unsigned int uint;
typedef unsigned char uchar;

#define BINS 256
#define WARPS 6

inline void checkLastError(const char *file, int line)
{
	cudaError_t const err{cudaGetLastError()};
	if (err != cudaSuccess)
	{
		cerr << "CUDA Runtime Error at: " << file << ":" << line << endl << cudaGetErrorString(err) << endl;
		std::exit(EXIT_FAILURE);
	}
}
#define CHECK_LAST_CUDA_ERROR() checkLastError(__FILE__, __LINE__)

__global__ void histo_global(const uchar *buffer, long size, uint *histo)
{
	long i = threadIdx.x + (long)blockIdx.x * blockDim.x;
	long stride = (long)blockDim.x * gridDim.x;
	while (i < size)
	{
		atomicAdd(&histo[buffer[i]], 1);
		i += stride;
	}
}

__global__ void histo_shared(const uchar *buffer, long size, uint *histo)
{
	__shared__ unsigned int temp[BINS];
	temp[threadIdx.x] = 0;
	__syncthreads();

	int i = threadIdx.x + blockIdx.x * blockDim.x;
	int offset = blockDim.x * gridDim.x;
	while (i < size)
	{
		atomicAdd(&temp[buffer[i]], 1);
		i += offset;
	}
	__syncthreads();
	atomicAdd(&(histo[threadIdx.x]), temp[threadIdx.x]);
}

// one sub-histogram for each warp, uchar4 loads
__global__ void histo_private(const uchar4 *buffer, long size4, uint *histo)
{
	__shared__ static uint s_hist[WARPS * BINS];
	uint *mine = s_hist + (threadIdx.x >> 5) * BINS;
	#pragma unroll
	for (uint i = 0; i < BINS / 32; i++) mine[(threadIdx.x & 31) + i * 32] = 0;
	__syncthreads();
	for (uint pos = blockIdx.x * blockDim.x + threadIdx.x; pos < size4; pos += blockDim.x * gridDim.x)
	{
		uchar4 data = buffer[pos];
		atomicAdd(mine + data.x, 1u);
		atomicAdd(mine + data.y, 1u);
		atomicAdd(mine + data.z, 1u);
		atomicAdd(mine + data.w, 1u);
	}
	__syncthreads();
	for (uint bin = threadIdx.x; bin < BINS; bin += blockDim.x)
	{
		uint sum = 0;
		for (uint w = 0; w < WARPS; w++) sum += s_hist[bin + w * BINS];
		atomicAdd(histo + bin, sum);
	}
}

// every thread owns 64 byte-sized bins in shared memory
__global__ void histo64_bytes(const uchar *data, int perThread, uint *histo)
{
	__shared__ uchar s[64 * 64];
	const int tid = threadIdx.x;
	for (int b = 0; b < 64; b++) s[b * 64 + tid] = 0;
	for (int k = 0; k < perThread; k++)
		s[(data[(blockIdx.x * perThread + k) * 64 + tid] >> 2) * 64 + tid]++;
	__syncthreads();
	uint sum = 0;
	for (int t = 0; t < 64; t++) sum += s[tid * 64 + ((t + tid) & 63)];
	atomicAdd(&histo[tid], sum);
}

static bool compare(const char *name, const uint *d_histo, const vector<uint> &want)
{
	vector<uint> got(want.size());
	cudaMemcpy(got.data(), d_histo, want.size() * sizeof(uint), cudaMemcpyDeviceToHost);
	bool same = memcmp(got.data(), want.data(), want.size() * sizeof(uint)) == 0;
	cout << name << ": " << (same ? "match" : "MISMATCH") << endl;
	return same;
}

int main()
{
	const long SIZE = 64 * 200 * 50;
	vector<uchar> buffer(SIZE);
	for (auto &b : buffer) b = (rand() % 3) ? rand() & 255 : 77;   // a hot bin
	vector<uint> want(BINS), want64(64);
	for (uchar b : buffer) want[b]++, want64[b >> 2]++;

	cudaDeviceProp prop;
	cudaGetDeviceProperties(&prop, 0);
	int blocks = prop.multiProcessorCount * 2;

	uchar *dev_buffer;
	uint *dev_histo;
	cudaMalloc((void **)&dev_buffer, SIZE);
	cudaMemcpy(dev_buffer, buffer.data(), SIZE, cudaMemcpyHostToDevice);
	cudaMalloc((void **)&dev_histo, BINS * sizeof(int));
	bool ok = true;

	cudaMemset(dev_histo, 0, BINS * sizeof(int));
	histo_global<<<blocks, 256>>>(dev_buffer, SIZE, dev_histo);
	CHECK_LAST_CUDA_ERROR();
	ok &= compare("global atomics", dev_histo, want);

	cudaMemset(dev_histo, 0, BINS * sizeof(int));
	histo_shared<<<blocks, 256>>>(dev_buffer, SIZE, dev_histo);
	CHECK_LAST_CUDA_ERROR();
	ok &= compare("shared atomics", dev_histo, want);

	cudaMemset(dev_histo, 0, BINS * sizeof(int));
	histo_private<<<blocks, WARPS * 32>>>((uchar4 *)dev_buffer, SIZE / sizeof(uchar4), dev_histo);
	CHECK_LAST_CUDA_ERROR();
	ok &= compare("per-warp histograms", dev_histo, want);

	cudaMemset(dev_histo, 0, BINS * sizeof(int));
	histo64_bytes<<<SIZE / 64 / 200, 64>>>(dev_buffer, 200, dev_histo);
	CHECK_LAST_CUDA_ERROR();
	ok &= compare("byte bins", dev_histo, want64);

	cudaFree(dev_histo);
	cudaFree(dev_buffer);
	cout << (ok ? "PASS" : "FAIL") << endl;
	return ok ? 0 : -1;
}
