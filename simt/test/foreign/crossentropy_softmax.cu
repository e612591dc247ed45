// Fused classifier: softmax + cross entropy forward and the gradient of the logits in one kernel, padded vocabulary.
#include "llm_common.h"
#include <cassert>

struct SoftmaxParams {
    float Scale;
    float Offset;
};

using reduction_func_t = float (*) (float);

__device__ float warpReduceSum(float val) {
    for (int offset = 16; offset > 0; offset /= 2) val += __shfl_xor_sync(0xFFFFFFFF, val, offset);
    return val;
}
__device__ float warpReduceMax(float val) {
    for (int offset = 16; offset > 0; offset /= 2) val = fmaxf(val, __shfl_xor_sync(0xFFFFFFFF, val, offset));
    return val;
}

// requires all 32 threads of each warp to be active; the reduction is a template argument
template<reduction_func_t warp_reduction>
__device__ float blockReduce(float val, bool final_sync=false, float out_of_bounds=0.0f) {
    // two reductions of up to 1024 threads:
    // 1) inside warp (shuffle), 2) cross-warp (shared memory), 3) inside warp (shuffle)
    __shared__ float shared_val[WARP_SIZE];
    const int lane_id = threadIdx.x % WARP_SIZE;
    const int warp_id = threadIdx.x / WARP_SIZE;
    const int num_warps = blockDim.x / WARP_SIZE;

    float warp_val = warp_reduction(val);
    if (lane_id == 0) { shared_val[warp_id] = warp_val; }
    __syncthreads();
    warp_val = (lane_id < num_warps) ? shared_val[lane_id] : out_of_bounds;
    float block_val = warp_reduction(warp_val);

    if (final_sync) {
        __syncthreads(); // only needed in loops when effectively reusing shared memory etc.
    }
    return block_val;
}

__device__ SoftmaxParams prepare_softmax_blockwide(int64_t idx, const float* inp, int V, int P) {
    const float* x = inp + idx * P;
    float thread_maxval = -INFINITY;
    float thread_sumval = 0.0f;
    // backwards, so that the second pass finds the front in the cache
    for (int i = (V - 1) - (V - 1) % blockDim.x + threadIdx.x; i >= 0; i -= blockDim.x) {
        if (i >= V) continue;
        float v = x[i];
        float old_maxval = thread_maxval;
        thread_maxval = fmaxf(thread_maxval, v);
        thread_sumval *= expf((old_maxval - thread_maxval));
        thread_sumval += expf(v - thread_maxval);
    }
    float block_maxval = blockReduce<warpReduceMax>(thread_maxval, false, -INFINITY);
    thread_sumval *= expf(thread_maxval - block_maxval);
    float block_sumval = blockReduce<warpReduceSum>(thread_sumval);
    return SoftmaxParams{1.f / block_sumval, block_maxval};
}

template <bool WriteDLogits = true>
__global__ void __launch_bounds__(512) fused_classifier_kernel(float* dlogits, float* losses, const float* logits, float dloss,
                                        const int* targets, int B, int T, int V, int P) {
    // note: idx is small enough that it easily fits into 32 bit; by making it a long here, we ensure that any offsets
    // calculated with it (e.g., idx * P) are done is 64 bit
    int64_t idx = gridDim.x - (blockIdx.x+1); // reverse order for cache hits on matmul data
    int ix = targets[idx];
    SoftmaxParams sp = prepare_softmax_blockwide(idx, logits, V, P);
    if(threadIdx.x == 0) {
        float prob = expf(logits[idx * P + ix] - sp.Offset) * sp.Scale;
        losses[idx] -= logf(prob);
    }
    if (!WriteDLogits) return;
    const float* logits_vec = logits + idx * P;
    for (int i = threadIdx.x; i < V; i += blockDim.x) {
        float prob = expf(__ldcs(&logits_vec[i]) - sp.Offset) * sp.Scale;
        float indicator = (i == ix) ? 1.0f : 0.0f;
        __stcs(dlogits + idx * P + i, (prob - indicator) * dloss);
    }
}

int main(int argc, char **argv) {
    srand(argc > 1 ? atoi(argv[1]) : 0);
    const int B = 4, T = 32, V = 1003, P = (V + 127) & ~127;
    assert(P % 128 == 0);
    float* logits = make_random_float(B * T * P);
    for (int i = 0; i < B * T * P; i++) logits[i] *= 6;
    int* targets = make_random_int(B * T, V);
    float* losses = (float*)calloc(B * T, sizeof(float));
    float* dlogits = (float*)calloc(B * T * P, sizeof(float));
    const float dloss = 1.0f / (B * T);
    double mean = 0;
    for (int n = 0; n < B * T; n++) {
        const float* x = logits + n * P;
        float m = x[0];
        double sum = 0;
        for (int i = 1; i < V; i++) m = fmaxf(m, x[i]);
        for (int i = 0; i < V; i++) sum += exp(x[i] - m);
        losses[n] = -(x[targets[n]] - m - log(sum));
        mean += losses[n] / (B * T);
        for (int i = 0; i < V; i++) dlogits[n * P + i] = (exp(x[i] - m) / sum - (i == targets[n])) * dloss;
    }
    float *d_logits, *d_losses, *d_dlogits;
    int *d_targets;
    cudaCheck(cudaMalloc(&d_logits, B * T * P * sizeof(float)));
    cudaCheck(cudaMalloc(&d_dlogits, B * T * P * sizeof(float)));
    cudaCheck(cudaMalloc(&d_losses, B * T * sizeof(float)));
    cudaCheck(cudaMalloc(&d_targets, B * T * sizeof(int)));
    cudaCheck(cudaMemcpy(d_logits, logits, B * T * P * sizeof(float), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(d_targets, targets, B * T * sizeof(int), cudaMemcpyHostToDevice));
    for (int block_size = 64; block_size <= 512; block_size *= 2) {
        cudaCheck(cudaMemset(d_losses, 0, B * T * sizeof(float)));
        cudaCheck(cudaMemset(d_dlogits, 0, B * T * P * sizeof(float)));
        fused_classifier_kernel<><<<B * T, block_size>>>(d_dlogits, d_losses, d_logits, dloss, d_targets, B, T, V, P);
        cudaCheck(cudaGetLastError());
        validate_result(d_losses, losses, "losses", B * T, 1e-4f);
        validate_result(d_dlogits, dlogits, "dlogits", B * T * P, 1e-5f);
        printf("block_size %4d: match\n", block_size);
    }
    cudaCheck(cudaMemset(d_losses, 0, B * T * sizeof(float)));
    fused_classifier_kernel<false><<<B * T, 128>>>((float*)NULL, d_losses, d_logits, dloss, d_targets, B, T, V, P);
    validate_result(d_losses, losses, "losses", B * T, 1e-4f);
    printf("mean loss %f\nAll results match.\n", mean);
    free(logits); free(targets); free(losses); free(dlogits);
    cudaFree(d_logits); cudaFree(d_losses); cudaFree(d_dlogits); cudaFree(d_targets);
    return 0;
}
