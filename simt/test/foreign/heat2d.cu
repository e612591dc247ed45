// 2D heat equation: global memory against a shared-memory tile with halo; swaps pointers; averages the time per step.
#include <iostream>
#include <fstream>
#include <sstream>
#include <cstdlib>
#include <cmath>
#include <utility>
using namespace std;

#define BDX 32
#define BDY 8

void check_(cudaError_t e, char const *what, int line)
{
	if (e == cudaSuccess) return;
	cerr << what << " (line " << line << "): " << cudaGetErrorString(e) << endl;
	exit(2);
}
#define check(e) check_(e, #e, __LINE__)

__global__ void diffuse(const double * __restrict__ u, double * __restrict__ un, const int nx, const int ny, const double c)
{
	const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
	if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1)
	{
		const int i = y * nx + x;
		un[i] = u[i] + c * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] - 4.0 * u[i]);
	}
}

__global__ void diffuse_shared(const double *u, double *un, int nx, int ny, double c)
{
	__shared__ double s[BDY + 2][BDX + 2];
	int x = blockIdx.x * BDX + threadIdx.x, y = blockIdx.y * BDY + threadIdx.y;
	int sx = threadIdx.x + 1, sy = threadIdx.y + 1;
	bool inside = x < nx && y < ny;
	if (inside)
	{
		s[sy][sx] = u[y * nx + x];
		if (threadIdx.x == 0 && x > 0) s[sy][0] = u[y * nx + x - 1];
		if (threadIdx.x == BDX - 1 && x < nx - 1) s[sy][BDX + 1] = u[y * nx + x + 1];
		if (threadIdx.y == 0 && y > 0) s[0][sx] = u[(y - 1) * nx + x];
		if (threadIdx.y == BDY - 1 && y < ny - 1) s[BDY + 1][sx] = u[(y + 1) * nx + x];
	}
	__syncthreads();
	if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1)
		un[y * nx + x] = s[sy][sx] + c * (s[sy][sx - 1] + s[sy][sx + 1] + s[sy - 1][sx] + s[sy + 1][sx] - 4.0 * s[sy][sx]);
}

template <class F> double *simulate(const char *name, F kernel, const double *init, int nx, int ny, int steps, double c)
{
	size_t bytes = sizeof(double) * nx * ny;
	double *u, *un;
	check(cudaMalloc(&u, bytes));
	check(cudaMalloc(&un, bytes));
	check(cudaMemcpy(u, init, bytes, cudaMemcpyHostToDevice));
	check(cudaMemcpy(un, u, bytes, cudaMemcpyDeviceToDevice));
	dim3 block(BDX, BDY), grid((nx + BDX - 1) / BDX, (ny + BDY - 1) / BDY);
	cudaEvent_t t0, t1;
	check(cudaEventCreate(&t0));
	check(cudaEventCreateWithFlags(&t1, cudaEventDefault));
	check(cudaEventRecord(t0));
	for (int s = 0; s < steps; ++s)
	{
		kernel<<<grid, block>>>(u, un, nx, ny, c);
		swap(u, un);
	}
	check(cudaEventRecord(t1));
	check(cudaEventSynchronize(t1));
	check(cudaGetLastError());
	float ms = 0;
	check(cudaEventElapsedTime(&ms, t0, t1));
	cout << name << ": " << ms / steps << " ms per step, " << (double)nx * ny * steps / ms / 1e3 << " Mcell/s" << endl;
	double *out = new double[nx * ny];
	check(cudaMemcpy(out, u, bytes, cudaMemcpyDeviceToHost));
	check(cudaFree(u));
	check(cudaFree(un));
	return out;
}

int main(int argc, char **argv)
{
	int nx = 250, ny = 130, steps = 40;
	if (argc > 1) { istringstream in(argv[1]); in >> steps; }
	const double c = 0.2;
	double *init = new double[nx * ny];
	for (int y = 0; y < ny; ++y)
		for (int x = 0; x < nx; ++x)
			init[y * nx + x] = exp(-0.01 * (pow(x - 60.0, 2) + pow(y - 50.0, 2))) + (x == 0 ? 1.0 : 0.0);
	double *a = new double[nx * ny], *b = new double[nx * ny];
	copy(init, init + nx * ny, a);
	copy(init, init + nx * ny, b);
	for (int s = 0; s < steps; ++s)
	{
		for (int y = 1; y < ny - 1; ++y)
			for (int x = 1; x < nx - 1; ++x)
			{
				int i = y * nx + x;
				b[i] = a[i] + c * (a[i - 1] + a[i + 1] + a[i - nx] + a[i + nx] - 4.0 * a[i]);
			}
		swap(a, b);
	}
	double *g = simulate("global", diffuse, init, nx, ny, steps, c);
	double *s = simulate("shared", diffuse_shared, init, nx, ny, steps, c);
	double eg = 0, es = 0;
	for (int i = 0; i < nx * ny; ++i) eg = max(eg, abs(g[i] - a[i])), es = max(es, abs(s[i] - a[i]));
	cout << "errors: " << eg << ' ' << es << endl;
	delete[] a; delete[] b; delete[] g; delete[] s; delete[] init;
	bool ok = eg < 1e-12 && es < 1e-12;
	cout << (ok ? "CORRECT" : "INCORRECT") << endl;
	return !ok;
}
