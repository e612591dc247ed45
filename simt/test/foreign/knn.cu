/* k nearest neighbours by brute force: distance matrix with pitched memory and tiles, then an insertion sort per column.
   File layout and naming after the university's "kNN CUDA" package style: reference points in columns. */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda.h>
#include <time.h>

#define BLOCK_DIM 16

__global__ void compute_distances(float *ref, int ref_width, int ref_pitch, float *query, int query_width, int query_pitch,
                                  int height, float *dist)
{
    // Declaration of the shared memory arrays As and Bs used to store the sub-matrix of A and B
    __shared__ float shared_A[BLOCK_DIM][BLOCK_DIM];
    __shared__ float shared_B[BLOCK_DIM][BLOCK_DIM];
    // Sub-matrix of A (begin, step, end) and Sub-matrix of B (begin, step)
    __shared__ int begin_A;
    __shared__ int begin_B;
    __shared__ int step_A;
    __shared__ int step_B;
    __shared__ int end_A;

    int tx = threadIdx.x;
    int ty = threadIdx.y;
    float ssd = 0;

    // Loop parameters: every thread would write the same, one does
    if (tx == 0 && ty == 0) {
        begin_A = BLOCK_DIM * blockIdx.y;
        begin_B = BLOCK_DIM * blockIdx.x;
        step_A = BLOCK_DIM * ref_pitch;
        step_B = BLOCK_DIM * query_pitch;
        end_A = begin_A + (height - 1) * ref_pitch;
    }
    __syncthreads();

    // Conditions
    int cond0 = (begin_A + tx < ref_width); // used to write in shared memory
    int cond1 = (begin_B + tx < query_width); // used to write in shared memory and to computations and to write in output array
    int cond2 = (begin_A + ty < ref_width); // used to computations and to write in output matrix

    for (int a = begin_A, b = begin_B; a <= end_A; a += step_A, b += step_B) {
        // Load the matrices from device memory to shared memory; each thread loads one element of each matrix
        if (a / ref_pitch + ty < height) {
            shared_A[ty][tx] = (cond0) ? ref[a + ref_pitch * ty + tx] : 0;
            shared_B[ty][tx] = (cond1) ? query[b + query_pitch * ty + tx] : 0;
        } else {
            shared_A[ty][tx] = 0;
            shared_B[ty][tx] = 0;
        }
        __syncthreads();
        // Compute the difference between the two matrixes; each thread computes one element of the block sub-matrix
        if (cond2 && cond1) {
            for (int k = 0; k < BLOCK_DIM; ++k) {
                float tmp = shared_A[k][ty] - shared_B[k][tx];
                ssd += tmp * tmp;
            }
        }
        __syncthreads();
    }
    if (cond2 && cond1) dist[(begin_A + ty) * query_pitch + begin_B + tx] = ssd;
}

__global__ void modified_insertion_sort(float *dist, int dist_pitch, int *index, int index_pitch, int width, int height, int k)
{
    // Column position
    unsigned int xIndex = blockIdx.x * blockDim.x + threadIdx.x;
    if (xIndex < width) {
        float *p_dist = dist + xIndex;
        int *p_index = index + xIndex;
        p_index[0] = 0;
        for (int i = 1; i < height; ++i) {
            float curr_dist = p_dist[i * dist_pitch];
            int curr_index = i;
            // Skip the current value if its index is >= k and if it's higher the k-th already sorted smallest value
            if (i >= k && curr_dist >= p_dist[(k - 1) * dist_pitch]) continue;
            int j = min(i, k - 1);
            while (j > 0 && p_dist[(j - 1) * dist_pitch] > curr_dist) {
                p_dist[j * dist_pitch] = p_dist[(j - 1) * dist_pitch];
                p_index[j * index_pitch] = p_index[(j - 1) * index_pitch];
                --j;
            }
            p_dist[j * dist_pitch] = curr_dist;
            p_index[j * index_pitch] = curr_index;
        }
    }
}

__global__ void compute_sqrt(float *dist, int width, int pitch, int k)
{
    unsigned int xIndex = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int yIndex = blockIdx.y * blockDim.y + threadIdx.y;
    if (xIndex < width && yIndex < k) dist[yIndex * pitch + xIndex] = sqrt(dist[yIndex * pitch + xIndex]);
}

bool knn_cuda_global(const float *ref, int ref_nb, const float *query, int query_nb, int dim, int k, float *knn_dist, int *knn_index)
{
    const unsigned int size_of_float = sizeof(float);
    const unsigned int size_of_int = sizeof(int);
    cudaError_t err0, err1, err2, err3;
    int nb_devices;
    err0 = cudaGetDeviceCount(&nb_devices);
    if (err0 != cudaSuccess || nb_devices == 0) {
        printf("ERROR: No CUDA device found\n");
        return false;
    }
    float *ref_dev = NULL, *query_dev = NULL, *dist_dev = NULL;
    int *index_dev = NULL;
    size_t ref_pitch_in_bytes, query_pitch_in_bytes, dist_pitch_in_bytes, index_pitch_in_bytes;
    err0 = cudaMallocPitch((void **)&ref_dev, &ref_pitch_in_bytes, ref_nb * size_of_float, dim);
    err1 = cudaMallocPitch((void **)&query_dev, &query_pitch_in_bytes, query_nb * size_of_float, dim);
    err2 = cudaMallocPitch((void **)&dist_dev, &dist_pitch_in_bytes, query_nb * size_of_float, ref_nb);
    err3 = cudaMallocPitch((void **)&index_dev, &index_pitch_in_bytes, query_nb * size_of_int, k);
    if (err0 != cudaSuccess || err1 != cudaSuccess || err2 != cudaSuccess || err3 != cudaSuccess) {
        printf("ERROR: Memory allocation error\n");
        cudaFree(ref_dev); cudaFree(query_dev); cudaFree(dist_dev); cudaFree(index_dev);
        return false;
    }
    size_t ref_pitch = ref_pitch_in_bytes / size_of_float;
    size_t query_pitch = query_pitch_in_bytes / size_of_float;
    size_t dist_pitch = dist_pitch_in_bytes / size_of_float;
    size_t index_pitch = index_pitch_in_bytes / size_of_int;
    bool fine = query_pitch == dist_pitch && query_pitch == index_pitch;
    if (!fine) printf("ERROR: Invalid pitch value\n");

    if (fine) {
        err0 = cudaMemcpy2D(ref_dev, ref_pitch_in_bytes, ref, ref_nb * size_of_float, ref_nb * size_of_float, dim, cudaMemcpyHostToDevice);
        err1 = cudaMemcpy2D(query_dev, query_pitch_in_bytes, query, query_nb * size_of_float, query_nb * size_of_float, dim, cudaMemcpyHostToDevice);
        dim3 block0(BLOCK_DIM, BLOCK_DIM, 1);
        dim3 grid0(query_nb / BLOCK_DIM, ref_nb / BLOCK_DIM, 1);
        if (query_nb % BLOCK_DIM != 0) grid0.x += 1;
        if (ref_nb % BLOCK_DIM != 0) grid0.y += 1;
        compute_distances<<<grid0, block0>>>(ref_dev, ref_nb, ref_pitch, query_dev, query_nb, query_pitch, dim, dist_dev);
        dim3 block1(256, 1, 1);
        dim3 grid1((query_nb + 255) / 256, 1, 1);
        modified_insertion_sort<<<grid1, block1>>>(dist_dev, dist_pitch, index_dev, index_pitch, query_nb, ref_nb, k);
        dim3 block2(16, 16, 1);
        dim3 grid2((query_nb + 15) / 16, (k + 15) / 16, 1);
        compute_sqrt<<<grid2, block2>>>(dist_dev, query_nb, query_pitch, k);
        if (cudaGetLastError() != cudaSuccess) { printf("ERROR: Unable to execute kernel\n"); fine = false; }
        err2 = cudaMemcpy2D(knn_dist, query_nb * size_of_float, dist_dev, dist_pitch_in_bytes, query_nb * size_of_float, k, cudaMemcpyDeviceToHost);
        err3 = cudaMemcpy2D(knn_index, query_nb * size_of_int, index_dev, index_pitch_in_bytes, query_nb * size_of_int, k, cudaMemcpyDeviceToHost);
        if (err0 || err1 || err2 || err3) { printf("ERROR: Unable to copy\n"); fine = false; }
    }
    cudaFree(ref_dev); cudaFree(query_dev); cudaFree(dist_dev); cudaFree(index_dev);
    return fine;
}

int main(void)
{
    const int ref_nb = 700, query_nb = 130, dim = 37, k = 7;
    float *ref = (float *)malloc(ref_nb * dim * sizeof(float)), *query = (float *)malloc(query_nb * dim * sizeof(float));
    float *knn_dist = (float *)malloc(query_nb * k * sizeof(float)), *d = (float *)malloc(ref_nb * sizeof(float));
    int *knn_index = (int *)malloc(query_nb * k * sizeof(int));
    srand(1);
    for (int i = 0; i < ref_nb * dim; ++i) ref[i] = 10. * (rand() / (double)RAND_MAX);
    for (int i = 0; i < query_nb * dim; ++i) query[i] = 10. * (rand() / (double)RAND_MAX);
    if (!knn_cuda_global(ref, ref_nb, query, query_nb, dim, k, knn_dist, knn_index)) return EXIT_FAILURE;

    int nb_correct_precisions = 0, nb_correct_indexes = 0;
    for (int q = 0; q < query_nb; q++) {
        for (int r = 0; r < ref_nb; r++) {
            d[r] = 0;
            for (int c = 0; c < dim; c++) d[r] += powf(ref[c * ref_nb + r] - query[c * query_nb + q], 2);
        }
        for (int n = 0; n < k; n++) {
            int best = 0;
            for (int r = 1; r < ref_nb; r++) if (d[r] < d[best]) best = r;
            nb_correct_precisions += fabs(sqrtf(d[best]) - knn_dist[n * query_nb + q]) <= 0.001f;
            nb_correct_indexes += best == knn_index[n * query_nb + q];
            d[best] = INFINITY;
        }
    }
    float precision_accuracy = nb_correct_precisions / ((float)query_nb * k), index_accuracy = nb_correct_indexes / ((float)query_nb * k);
    printf("distances %.4f, indices %.4f: %s\n", precision_accuracy, index_accuracy,
           precision_accuracy >= 0.999f && index_accuracy >= 0.999f ? "PASSED" : "FAILED");
    free(ref); free(query); free(knn_dist); free(knn_index); free(d);
    return precision_accuracy >= 0.999f && index_accuracy >= 0.999f ? EXIT_SUCCESS : EXIT_FAILURE;
}
