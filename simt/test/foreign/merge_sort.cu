#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

// Merge sort. Bottom-up: each thread merges two runs while runs are short; then merge path: binary search finds where each
// thread's part of the output begins, so that all threads stay busy to the end.

#define min(a, b) (a < b ? a : b)
#define ITEMS 8

static long long now_us(void)
{
	struct timeval tv;
	gettimeofday(&tv, NULL);
	return tv.tv_sec * 1000000LL + tv.tv_usec;
}

// merges source[start, middle) and source[middle, end)
__device__ void gpu_bottomUpMerge(long *source, long *dest, long start, long middle, long end)
{
	long i = start;
	long j = middle;
	for (long k = start; k < end; k++) {
		if (i < middle && (j >= end || source[i] <= source[j])) {
			dest[k] = source[i];
			i++;
		} else {
			dest[k] = source[j];
			j++;
		}
	}
}

__device__ unsigned int getIdx(dim3 *threads, dim3 *blocks)
{
	int x;
	return threadIdx.x +
	       threadIdx.y * (x = threads->x) +
	       threadIdx.z * (x *= threads->y) +
	       blockIdx.x * (x *= threads->z) +
	       blockIdx.y * (x *= blocks->z) +
	       blockIdx.z * (x *= blocks->y);
}

__global__ void gpu_mergesort(long *source, long *dest, long size, long width, long slices, dim3 *threads, dim3 *blocks)
{
	unsigned int idx = getIdx(threads, blocks);
	long start = width * idx * slices, middle, end;
	for (long slice = 0; slice < slices; slice++) {
		if (start >= size) break;
		middle = min(start + (width >> 1), size);
		end = min(start + width, size);
		gpu_bottomUpMerge(source, dest, start, middle, end);
		start += width;
	}
}

// how many of the first `diag` outputs come from a
__device__ long mergePath(const long *a, long na, const long *b, long nb, long diag)
{
	long lo = diag > nb ? diag - nb : 0, hi = diag < na ? diag : na;
	while (lo < hi) {
		long mid = (lo + hi) >> 1;
		if (a[mid] <= b[diag - 1 - mid]) lo = mid + 1; else hi = mid;
	}
	return lo;
}

__global__ void merge_path_kernel(const long *source, long *dest, long size, long width)
{
	long out = ((long)blockIdx.x * blockDim.x + threadIdx.x) * ITEMS;
	if (out >= size) return;
	long start = out / width * width, half = width / 2;
	long na = size - start < half ? size - start : half;
	long nb = size - start - na < half ? size - start - na : half;
	const long *a = source + start, *b = a + na;
	long diag = out - start, i = mergePath(a, na, b, nb, diag), j = diag - i;
	for (int k = 0; k < ITEMS && diag + k < na + nb; k++) {
		bool takeA = j >= nb || (i < na && a[i] <= b[j]);
		dest[out + k] = takeA ? a[i++] : b[j++];
	}
}

int cmp(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	long size = 60007;
	if (argc == 2) size = atol(argv[1]);
	long *data = (long *)malloc(size * sizeof(long)), *gold = (long *)malloc(size * sizeof(long));
	long *out = (long *)malloc(size * sizeof(long));
	for (long i = 0; i < size; i++) data[i] = gold[i] = (long)rand() * (rand() & 1 ? 1 : -1);
	qsort(gold, size, sizeof(long), cmp);

	long *D_data, *D_swp;
	dim3 *D_threads, *D_blocks;
	dim3 threadsPerBlock(32, 1, 1), blocksPerGrid(8, 1, 1);
	if (cudaMalloc((void **)&D_data, size * sizeof(long)) || cudaMalloc((void **)&D_swp, size * sizeof(long)) ||
	    cudaMalloc((void **)&D_threads, sizeof(dim3)) || cudaMalloc((void **)&D_blocks, sizeof(dim3))) {
		printf("cudaMalloc failed\n");
		return 1;
	}
	cudaMemcpy(D_threads, &threadsPerBlock, sizeof(dim3), cudaMemcpyHostToDevice);
	cudaMemcpy(D_blocks, &blocksPerGrid, sizeof(dim3), cudaMemcpyHostToDevice);

	int bad = 0;
	for (int version = 0; version < 2; version++) {
		cudaMemcpy(D_data, data, size * sizeof(long), cudaMemcpyHostToDevice);
		long *A = D_data, *B = D_swp;
		long nThreads = threadsPerBlock.x * threadsPerBlock.y * threadsPerBlock.z * blocksPerGrid.x * blocksPerGrid.y * blocksPerGrid.z;
		long long t = now_us();
		for (long width = 2; width < (size << 1); width <<= 1) {
			long slices = size / ((nThreads) * width) + 1;
			if (version == 0 || width <= ITEMS)
				gpu_mergesort<<<blocksPerGrid, threadsPerBlock>>>(A, B, size, width, slices, D_threads, D_blocks);
			else
				merge_path_kernel<<<(size / ITEMS + 128) / 128, 128>>>(A, B, size, width);
			A = A == D_data ? D_swp : D_data;
			B = B == D_data ? D_swp : D_data;
		}
		cudaError_t e = cudaMemcpy(out, A, size * sizeof(long), cudaMemcpyDeviceToHost);
		printf("%s: %lld us, %s: ", version ? "merge path" : "one thread per pair", now_us() - t, cudaGetErrorName(e));
		int same = e == cudaSuccess && !memcmp(out, gold, size * sizeof(long));
		puts(same ? "sorted" : "NOT sorted");
		bad += !same;
	}
	cudaFree(D_data); cudaFree(D_swp); cudaFree(D_threads); cudaFree(D_blocks);
	free(data); free(gold); free(out);
	return bad;
}
