/* Conway's Game of Life on a torus. Byte per cell with ghost rows; bit per cell with 64 cells in a word. Pinned memory,
 * two buffers, checksum each 10 generations. Assignment 4 of the GPU course. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>

#define SRAND_VALUE 1985
#define BLOCK_SIZE 16
#define CUDA_SAFE(x) if (cudaSuccess != (x)) { fprintf(stderr, "%s:%d: failed\n", __FILE__, __LINE__); exit(99); }

__global__ void ghostRows(int dim, uint8_t *grid)
{
    // We want id ∈ [1,dim]
    int id = blockDim.x * blockIdx.x + threadIdx.x + 1;
    if (id <= dim)
    {
        grid[(dim+2)*(dim+1)+id] = grid[(dim+2)+id]; // Copy first real row to bottom ghost row
        grid[id] = grid[(dim+2)*dim + id];           // Copy last real row to top ghost row
    }
}

__global__ void ghostCols(int dim, uint8_t *grid)
{
    // We want id ∈ [0,dim+1]
    int id = blockDim.x * blockIdx.x + threadIdx.x;
    if (id <= dim+1)
    {
        grid[id*(dim+2)+dim+1] = grid[id*(dim+2)+1]; // Copy first real column to right most ghost column
        grid[id*(dim+2)] = grid[id*(dim+2) + dim];   // Copy last real column to left most ghost column
    }
}

__global__ void GOL(int dim, const uint8_t *grid, uint8_t *newGrid)
{
    // We want id ∈ [1,dim]
    int iy = blockDim.y * blockIdx.y + threadIdx.y + 1;
    int ix = blockDim.x * blockIdx.x + threadIdx.x + 1;
    int id = iy * (dim+2) + ix;

    if (iy <= dim && ix <= dim) {
        int numNeighbors = grid[id+(dim+2)] + grid[id-(dim+2)] + grid[id+1] + grid[id-1]
                     + grid[id+(dim+3)] + grid[id-(dim+3)] + grid[id-(dim+1)] + grid[id+(dim+1)];
        uint8_t cell = grid[id];
        if (cell == 1 && numNeighbors < 2) newGrid[id] = 0;
        else if (cell == 1 && (numNeighbors == 2 || numNeighbors == 3)) newGrid[id] = 1;
        else if (cell == 1 && numNeighbors > 3) newGrid[id] = 0;
        else if (cell == 0 && numNeighbors == 3) newGrid[id] = 1;
        else newGrid[id] = cell;
    }
}

// 64 cells at once: carry-save addition of the eight neighbours
__device__ __forceinline__ void add3(uint64_t a, uint64_t b, uint64_t c, uint64_t &lo, uint64_t &hi)
{
    lo = a ^ b ^ c;
    hi = (a & b) | (c & (a ^ b));
}

__global__ void GOL_bits(int words, int rows, const uint64_t *in, uint64_t *out)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words * rows; i += gridDim.x * blockDim.x)
    {
        int x = i % words, y = i / words;
        int up = (y + rows - 1) % rows, down = (y + 1) % rows, left = (x + words - 1) % words, right = (x + 1) % words;
        uint64_t n[8];
        int k = 0;
        int ys[3] = { up, y, down };
        for (int j = 0; j < 3; j++)
        {
            const uint64_t c = in[ys[j] * words + x];
            n[k++] = (c << 1) | (in[ys[j] * words + left] >> 63);
            n[k++] = (c >> 1) | (in[ys[j] * words + right] << 63);
            if (j != 1) n[k++] = c;
        }
        uint64_t l0, h0, l1, h1, ones, h2, twos, fours, t;
        add3(n[0], n[1], n[2], l0, h0);
        add3(n[3], n[4], n[5], l1, h1);
        add3(n[6], n[7], l0, ones, h2);
        uint64_t o2 = ones & l1;
        ones ^= l1;
        add3(h0, h1, h2, twos, fours);
        t = twos & o2;
        twos ^= o2;
        fours |= t;     // four or more; eight wraps into nothing that can live
        out[i] = twos & ~fours & (ones | in[i]);
    }
}

int main(int argc, char *argv[])
{
    const int dim = 192, maxIter = 30;
    const size_t bytes = (dim + 2) * (dim + 2);
    uint8_t *h_grid, *h_ref = (uint8_t *)malloc(bytes), *h_tmp = (uint8_t *)malloc(bytes), *d_grid, *d_newGrid;
    CUDA_SAFE(cudaMallocHost((void **)&h_grid, bytes));
    CUDA_SAFE(cudaMalloc(&d_grid, bytes));
    CUDA_SAFE(cudaMalloc(&d_newGrid, bytes));
    memset(h_grid, 0, bytes);
    srand(SRAND_VALUE);
    for (int i = 1; i <= dim; i++)
        for (int j = 1; j <= dim; j++) h_grid[i * (dim + 2) + j] = rand() % 2;
    memcpy(h_ref, h_grid, bytes);

    // the bit version
    const int words = dim / 64;
    uint64_t *h_bits, *d_bits[2];
    CUDA_SAFE(cudaHostAlloc((void **)&h_bits, words * dim * 8, cudaHostAllocDefault));
    memset(h_bits, 0, words * dim * 8);
    for (int i = 0; i < dim; i++)
        for (int j = 0; j < dim; j++)
            if (h_grid[(i + 1) * (dim + 2) + j + 1]) h_bits[i * words + j / 64] |= 1ull << (j % 64);
    CUDA_SAFE(cudaMalloc(&d_bits[0], words * dim * 8));
    CUDA_SAFE(cudaMalloc(&d_bits[1], words * dim * 8));
    CUDA_SAFE(cudaMemcpy(d_bits[0], h_bits, words * dim * 8, cudaMemcpyHostToDevice));
    CUDA_SAFE(cudaMemcpy(d_grid, h_grid, bytes, cudaMemcpyHostToDevice));

    dim3 blockSize(BLOCK_SIZE, BLOCK_SIZE, 1);
    int linGrid = (int)((dim + BLOCK_SIZE - 1) / BLOCK_SIZE);
    dim3 gridSize(linGrid, linGrid, 1);
    dim3 cpyBlockSize(BLOCK_SIZE, 1, 1);
    dim3 cpyGridRowsGridSize((dim + cpyBlockSize.x - 1) / cpyBlockSize.x);
    dim3 cpyGridColsGridSize((dim + 2 + cpyBlockSize.x - 1) / cpyBlockSize.x);
    int wrong = 0;
    for (int iter = 0; iter < maxIter; iter++)
    {
        ghostRows<<<cpyGridRowsGridSize, cpyBlockSize>>>(dim, d_grid);
        ghostCols<<<cpyGridColsGridSize, cpyBlockSize>>>(dim, d_grid);
        GOL<<<gridSize, blockSize>>>(dim, d_grid, d_newGrid);
        uint8_t *swap = d_grid; d_grid = d_newGrid; d_newGrid = swap;
        GOL_bits<<<4, 64>>>(words, dim, d_bits[iter & 1], d_bits[~iter & 1]);
        CUDA_SAFE(cudaGetLastError());

        for (int y = 0; y < dim; y++)
            for (int x = 0; x < dim; x++)
            {
                int n = 0;
                for (int dy = -1; dy <= 1; dy++)
                    for (int dx = -1; dx <= 1; dx++)
                        if (dx || dy) n += h_ref[((y + dy + dim) % dim + 1) * (dim + 2) + (x + dx + dim) % dim + 1];
                uint8_t c = h_ref[(y + 1) * (dim + 2) + x + 1];
                h_tmp[(y + 1) * (dim + 2) + x + 1] = n == 3 || (c && n == 2);
            }
        memcpy(h_ref, h_tmp, bytes);
        if (iter % 10 == 9)
        {
            CUDA_SAFE(cudaMemcpy(h_grid, d_grid, bytes, cudaMemcpyDeviceToHost));
            CUDA_SAFE(cudaMemcpy(h_bits, d_bits[~iter & 1], words * dim * 8, cudaMemcpyDeviceToHost));
            int total = 0;
            for (int y = 0; y < dim; y++)
                for (int x = 0; x < dim; x++)
                {
                    uint8_t r = h_ref[(y + 1) * (dim + 2) + x + 1], b = (h_bits[y * words + x / 64] >> (x % 64)) & 1;
                    total += r;
                    wrong += h_grid[(y + 1) * (dim + 2) + x + 1] != r || b != r;
                }
            printf("Generation %d: Total Alive: %d, %d wrong\n", iter + 1, total, wrong);
        }
    }
    cudaFree(d_grid); cudaFree(d_newGrid); cudaFree(d_bits[0]); cudaFree(d_bits[1]);
    cudaFreeHost(h_grid); cudaFreeHost(h_bits);
    free(h_ref); free(h_tmp);
    puts(wrong ? "wrong" : "life goes on as it should");
    return wrong != 0;
}
