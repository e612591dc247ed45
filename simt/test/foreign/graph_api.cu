// CUDA graphs both ways: nodes added by hand (memcpy, memset, kernel, host) and by capture over two streams joined with events.
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "helper_check.h"

#define THREADS_PER_BLOCK 256
#define GRAPH_LAUNCH_ITERATIONS 3

typedef struct callBackData { const char *fn_name; double *data; int calls; } callBackData_t;

__global__ void reduce(const float *inputVec, double *outputVec, size_t inputSize)
{
    __shared__ double tmp[THREADS_PER_BLOCK];
    size_t globaltid = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    double temp_sum = 0.0;
    for (size_t i = globaltid; i < inputSize; i += gridDim.x * blockDim.x) temp_sum += (double)inputVec[i];
    tmp[threadIdx.x] = temp_sum;
    __syncthreads();
    for (int s = THREADS_PER_BLOCK / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) tmp[threadIdx.x] += tmp[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) outputVec[blockIdx.x] = tmp[0];
}

__global__ void reduceFinal(const double *inputVec, double *result, size_t inputSize)
{
    double s = 0;
    for (size_t i = threadIdx.x; i < inputSize; i += 32) s += inputVec[i];
    for (int o = 16; o; o >>= 1) s += __shfl_down_sync(0xffffffff, s, o);
    if (threadIdx.x == 0) *result = s;
}

__global__ void scale(float *v, size_t n, float by) { size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; if (i < n) v[i] *= by; }

void CUDART_CB myHostNodeCallback(void *data)
{
    callBackData_t *tmp = (callBackData_t *)(data);
    printf("[%s] Host callback final reduced sum = %lf\n", tmp->fn_name, *tmp->data);
    tmp->calls++;
}

int main(int argc, char **argv)
{
    size_t size = 1 << 16, maxBlocks = 64;
    std::vector<float> inputVec(size);
    double want = 0, result_h = 0.0;
    for (size_t i = 0; i < size; i++) want += inputVec[i] = (rand() & 0xFF) / 256.0f;
    float *inputVec_d;
    double *outputVec_d, *result_d;
    checkCudaErrors(cudaMalloc(&inputVec_d, sizeof(float) * size));
    checkCudaErrors(cudaMalloc(&outputVec_d, sizeof(double) * maxBlocks));
    checkCudaErrors(cudaMalloc(&result_d, sizeof(double)));
    int bad = 0;

    // by hand
    {
        cudaGraph_t graph;
        std::vector<cudaGraphNode_t> deps;
        cudaGraphNode_t memcpyNode, kernelNode, memsetNode;
        checkCudaErrors(cudaGraphCreate(&graph, 0));
        cudaMemcpy3DParms memcpyParams = {0};
        memcpyParams.srcArray = NULL;
        memcpyParams.srcPos = make_cudaPos(0, 0, 0);
        memcpyParams.srcPtr = make_cudaPitchedPtr(inputVec.data(), sizeof(float) * size, size, 1);
        memcpyParams.dstArray = NULL;
        memcpyParams.dstPos = make_cudaPos(0, 0, 0);
        memcpyParams.dstPtr = make_cudaPitchedPtr(inputVec_d, sizeof(float) * size, size, 1);
        memcpyParams.extent = make_cudaExtent(sizeof(float) * size, 1, 1);
        memcpyParams.kind = cudaMemcpyHostToDevice;
        checkCudaErrors(cudaGraphAddMemcpyNode(&memcpyNode, graph, NULL, 0, &memcpyParams));
        deps.push_back(memcpyNode);
        cudaMemsetParams memsetParams = {0};
        memsetParams.dst = (void *)outputVec_d;
        memsetParams.value = 0;
        memsetParams.pitch = 0;
        memsetParams.elementSize = sizeof(float);
        memsetParams.width = maxBlocks * 2;
        memsetParams.height = 1;
        checkCudaErrors(cudaGraphAddMemsetNode(&memsetNode, graph, NULL, 0, &memsetParams));
        deps.push_back(memsetNode);

        cudaKernelNodeParams kernelNodeParams = {0};
        void *kernelArgs[3] = {(void *)&inputVec_d, (void *)&outputVec_d, &size};
        kernelNodeParams.func = (void *)reduce;
        kernelNodeParams.gridDim = dim3(maxBlocks, 1, 1);
        kernelNodeParams.blockDim = dim3(THREADS_PER_BLOCK, 1, 1);
        kernelNodeParams.sharedMemBytes = 0;
        kernelNodeParams.kernelParams = (void **)kernelArgs;
        kernelNodeParams.extra = NULL;
        checkCudaErrors(cudaGraphAddKernelNode(&kernelNode, graph, deps.data(), deps.size(), &kernelNodeParams));
        deps.clear();
        deps.push_back(kernelNode);
        void *finalArgs[3] = {(void *)&outputVec_d, (void *)&result_d, &maxBlocks};
        kernelNodeParams.func = (void *)reduceFinal;
        kernelNodeParams.gridDim = dim3(1, 1, 1);
        kernelNodeParams.blockDim = dim3(32, 1, 1);
        kernelNodeParams.kernelParams = finalArgs;
        checkCudaErrors(cudaGraphAddKernelNode(&kernelNode, graph, deps.data(), deps.size(), &kernelNodeParams));
        checkCudaErrors(cudaGraphAddMemcpyNode1D(&memcpyNode, graph, &kernelNode, 1, &result_h, result_d, sizeof(double), cudaMemcpyDeviceToHost));
        cudaGraphNode_t hostNode;
        cudaHostNodeParams hostParams = {0};
        hostParams.fn = myHostNodeCallback;
        callBackData_t hostFnData = {"cudaGraphsManual", &result_h, 0};
        hostParams.userData = &hostFnData;
        checkCudaErrors(cudaGraphAddHostNode(&hostNode, graph, &memcpyNode, 1, &hostParams));
        size_t numNodes = 0;
        checkCudaErrors(cudaGraphGetNodes(graph, NULL, &numNodes));
        printf("Num of nodes in the graph created manually = %zu\n", numNodes);
        cudaGraphExec_t graphExec;
        checkCudaErrors(cudaGraphInstantiate(&graphExec, graph, NULL, NULL, 0));
        cudaGraph_t clonedGraph;
        cudaGraphExec_t clonedGraphExec;
        checkCudaErrors(cudaGraphClone(&clonedGraph, graph));
        checkCudaErrors(cudaGraphInstantiate(&clonedGraphExec, clonedGraph, NULL, NULL, 0));
        cudaStream_t streamForGraph;
        checkCudaErrors(cudaStreamCreate(&streamForGraph));
        for (int i = 0; i < GRAPH_LAUNCH_ITERATIONS; i++) checkCudaErrors(cudaGraphLaunch(graphExec, streamForGraph));
        checkCudaErrors(cudaStreamSynchronize(streamForGraph));
        bad += result_h != want || hostFnData.calls != GRAPH_LAUNCH_ITERATIONS || numNodes != 6;
        result_h = 0;
        checkCudaErrors(cudaGraphLaunch(clonedGraphExec, streamForGraph));
        checkCudaErrors(cudaStreamSynchronize(streamForGraph));
        bad += result_h != want;
        checkCudaErrors(cudaGraphExecDestroy(graphExec));
        checkCudaErrors(cudaGraphExecDestroy(clonedGraphExec));
        checkCudaErrors(cudaGraphDestroy(graph));
        checkCudaErrors(cudaGraphDestroy(clonedGraph));
        checkCudaErrors(cudaStreamDestroy(streamForGraph));
    }

    // by capture, fork and join
    {
        cudaStream_t stream1, stream2;
        cudaEvent_t forkEvent, memsetEvent;
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        checkCudaErrors(cudaStreamCreate(&stream1));
        checkCudaErrors(cudaStreamCreate(&stream2));
        checkCudaErrors(cudaEventCreate(&forkEvent));
        checkCudaErrors(cudaEventCreate(&memsetEvent));
        checkCudaErrors(cudaStreamBeginCapture(stream1, cudaStreamCaptureModeGlobal));
        checkCudaErrors(cudaEventRecord(forkEvent, stream1));
        checkCudaErrors(cudaStreamWaitEvent(stream2, forkEvent, 0));
        checkCudaErrors(cudaMemcpyAsync(inputVec_d, inputVec.data(), sizeof(float) * size, cudaMemcpyDefault, stream1));
        checkCudaErrors(cudaMemsetAsync(outputVec_d, 0, sizeof(double) * maxBlocks, stream2));
        checkCudaErrors(cudaEventRecord(memsetEvent, stream2));
        scale<<<(size + 255) / 256, 256, 0, stream1>>>(inputVec_d, size, 2.f);
        checkCudaErrors(cudaStreamWaitEvent(stream1, memsetEvent, 0));
        reduce<<<maxBlocks, THREADS_PER_BLOCK, 0, stream1>>>(inputVec_d, outputVec_d, size);
        reduceFinal<<<1, 32, 0, stream1>>>(outputVec_d, result_d, maxBlocks);
        checkCudaErrors(cudaMemcpyAsync(&result_h, result_d, sizeof(double), cudaMemcpyDefault, stream1));
        cudaStreamCaptureStatus status;
        checkCudaErrors(cudaStreamIsCapturing(stream1, &status));
        bad += status != cudaStreamCaptureStatusActive;
        checkCudaErrors(cudaStreamEndCapture(stream1, &graph));
        size_t numNodes = 0;
        checkCudaErrors(cudaGraphGetNodes(graph, NULL, &numNodes));
        printf("Num of nodes in the graph created using stream capture API = %zu\n", numNodes);
        result_h = -1;   // capturing has run nothing
        checkCudaErrors(cudaDeviceSynchronize());
        bad += result_h != -1;
        checkCudaErrors(cudaGraphInstantiate(&exec, graph, 0));
        checkCudaErrors(cudaGraphLaunch(exec, stream1));
        checkCudaErrors(cudaStreamSynchronize(stream1));
        printf("[cudaGraphsUsingStreamCapture] sum = %lf\n", result_h);
        bad += result_h != 2 * want || numNodes != 6;
        checkCudaErrors(cudaGraphExecDestroy(exec));
        checkCudaErrors(cudaGraphDestroy(graph));
        checkCudaErrors(cudaEventDestroy(forkEvent));
        checkCudaErrors(cudaEventDestroy(memsetEvent));
        checkCudaErrors(cudaStreamDestroy(stream1));
        checkCudaErrors(cudaStreamDestroy(stream2));
    }
    checkCudaErrors(cudaFree(inputVec_d));
    checkCudaErrors(cudaFree(outputVec_d));
    checkCudaErrors(cudaFree(result_d));
    puts(bad ? "graphs FAILED" : "graphs PASSED");
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
