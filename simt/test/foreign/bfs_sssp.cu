// Graphs in CSR: level-synchronous BFS, BFS with an atomic queue (frontier), single-source shortest paths (Bellman-Ford).
#include <climits>
#include <cstring>
#include <iostream>
#include <queue>
#include <string>
#include <vector>

struct Graph {
	std::vector<int> adjacencyList; // all edges
	std::vector<int> edgesOffset;   // offset to adjacencyList for every vertex
	std::vector<int> edgesSize;     // number of edges for every vertex
	std::vector<int> weight;
	int numVertices = 0;
	int numEdges = 0;
};

#define checkError(error, msg) do { if ((error) != cudaSuccess) { std::cerr << msg << ": " << cudaGetErrorString(error) << "\n"; std::exit(1); } } while (0)

__global__
void simpleBfs(int N, int level, const int *d_adjacencyList, const int *d_edgesOffset, const int *d_edgesSize, int *d_distance, int *changed) {
	int thid = blockIdx.x * blockDim.x + threadIdx.x;
	if (thid < N && atomicAdd(&d_distance[thid], 0) == level) { // others may lower it meanwhile
		int u = thid;
		for (int i = d_edgesOffset[u]; i < d_edgesOffset[u] + d_edgesSize[u]; i++) {
			int v = d_adjacencyList[i];
			if (atomicMin(&d_distance[v], level + 1) > level + 1) {
				atomicExch(changed, 1);
			}
		}
	}
}

__global__
void queueBfs(int level, const int *d_adjacencyList, const int *d_edgesOffset, const int *d_edgesSize, int *d_distance, int *d_parent,
              int queueSize, int *nextQueueSize, const int *d_currentQueue, int *d_nextQueue) {
	int thid = blockIdx.x * blockDim.x + threadIdx.x;
	if (thid < queueSize) {
		int u = d_currentQueue[thid];
		for (int i = d_edgesOffset[u]; i < d_edgesOffset[u] + d_edgesSize[u]; i++) {
			int v = d_adjacencyList[i];
			if (atomicCAS(&d_distance[v], INT_MAX, level + 1) == INT_MAX) {
				d_parent[v] = i;
				int position = atomicAdd(nextQueueSize, 1);
				d_nextQueue[position] = v;
			}
		}
	}
}

__global__ void relax(int N, const int *adj, const int *off, const int *size, const int *w, int *dist, int *mask_in, int *mask_out, int *again)
{
	int u = threadIdx.x + blockIdx.x * blockDim.x;
	if (u >= N || !mask_in[u]) return;
	mask_in[u] = 0;
	const int du = atomicAdd(&dist[u], 0);
	for (int e = off[u]; e < off[u] + size[u]; ++e) {
		int alt = du + w[e];
		if (atomicMin(dist + adj[e], alt) > alt) {
			atomicExch(mask_out + adj[e], 1);
			atomicExch(again, 1);
		}
	}
}

template <typename T> static T *dev(const std::vector<T> &v) {
	T *p = nullptr;
	checkError(cudaMalloc(&p, v.size() * sizeof(T)), "allocate");
	checkError(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
	return p;
}

int main(int argc, char **argv) {
	Graph G;
	const int n = 6000, m = 24000;
	std::vector<std::vector<std::pair<int, int>>> lists(n);
	srand(12345);
	for (int i = 0; i < m; i++) { int u = rand() % n, v = rand() % n; lists[u].push_back({v, 1 + rand() % 20}); }
	for (auto &l : lists) {
		G.edgesOffset.push_back(G.adjacencyList.size());
		G.edgesSize.push_back(l.size());
		for (auto &[v, w] : l) { G.adjacencyList.push_back(v); G.weight.push_back(w); }
	}
	G.numVertices = n; G.numEdges = m;

	const int start = 1;
	std::vector<int> ref(n, INT_MAX), sp(n, INT_MAX), got(n), parent(n);
	std::queue<int> q;
	ref[start] = 0;
	for (q.push(start); !q.empty(); q.pop())
		for (auto &e : lists[q.front()])
			if (ref[e.first] == INT_MAX) { ref[e.first] = ref[q.front()] + 1; q.push(e.first); }
	std::priority_queue<std::pair<int, int>> pq;
	for (sp[start] = 0, pq.push({0, start}); !pq.empty();) {
		auto [d, u] = pq.top(); pq.pop();
		if (-d > sp[u]) continue;
		for (auto &e : lists[u]) if (sp[u] + e.second < sp[e.first]) { sp[e.first] = sp[u] + e.second; pq.push({-sp[e.first], e.first}); }
	}

	int *adj = dev(G.adjacencyList), *off = dev(G.edgesOffset), *size = dev(G.edgesSize), *weight = dev(G.weight);
	std::vector<int> init(n, INT_MAX);
	init[start] = 0;
	int *dist = dev(init), *d_parent = dev(std::vector<int>(n, INT_MAX)), *queues[2] = {dev(std::vector<int>(n)), dev(std::vector<int>(n))};
	int *changed, level = 0;
	checkError(cudaMallocManaged(&changed, sizeof(int)), "cannot allocate `changed'");
	int bad = 0;

	*changed = 1;
	while (*changed) {
		*changed = 0;
		simpleBfs <<<n / 1024 + 1, 1024 >>>(n, level, adj, off, size, dist, changed);
		checkError(cudaDeviceSynchronize(), "simpleBfs");
		level++;
	}
	cudaMemcpy(got.data(), dist, n * sizeof(int), cudaMemcpyDeviceToHost);
	std::cout << "simple BFS: " << level << " levels, " << (got == ref ? "OK" : "WRONG") << std::endl;
	bad += got != ref;

	cudaMemcpy(dist, init.data(), n * sizeof(int), cudaMemcpyHostToDevice);
	cudaMemcpy(queues[0], &start, sizeof(int), cudaMemcpyHostToDevice);
	int queueSize = 1;
	for (level = 0; queueSize; level++) {
		*changed = 0;
		queueBfs<<<queueSize / 256 + 1, 256>>>(level, adj, off, size, dist, d_parent, queueSize, changed, queues[level & 1], queues[~level & 1]);
		checkError(cudaDeviceSynchronize(), "queueBfs");
		queueSize = *changed;
	}
	cudaMemcpy(got.data(), dist, n * sizeof(int), cudaMemcpyDeviceToHost);
	cudaMemcpy(parent.data(), d_parent, n * sizeof(int), cudaMemcpyDeviceToHost);
	for (int v = 0; v < n; v++) if (v != start && ref[v] != INT_MAX && (parent[v] < 0 || parent[v] >= m || G.adjacencyList[parent[v]] != v)) bad++;
	std::cout << "queue BFS: " << level << " levels, " << (got == ref ? "OK" : "WRONG") << std::endl;
	bad += got != ref;

	int *mask[2];
	for (int i = 0; i < 2; i++) { cudaMalloc(&mask[i], n * sizeof(int)); cudaMemset(mask[i], 0, n * sizeof(int)); }
	cudaMemset(mask[0] + start, 1, 1);
	cudaMemcpy(dist, init.data(), n * sizeof(int), cudaMemcpyHostToDevice);
	int rounds = 0;
	do {
		*changed = 0;
		relax<<<(n + 127) / 128, 128>>>(n, adj, off, size, weight, dist, mask[rounds & 1], mask[~rounds & 1], changed);
		checkError(cudaDeviceSynchronize(), "relax");
		rounds++;
	} while (*changed);
	cudaMemcpy(got.data(), dist, n * sizeof(int), cudaMemcpyDeviceToHost);
	std::cout << "shortest paths: " << rounds << " rounds, " << (got == sp ? "OK" : "WRONG") << std::endl;
	bad += got != sp;

	for (int *p : {adj, off, size, weight, dist, d_parent, queues[0], queues[1], changed}) cudaFree(p);
	cudaFree(mask[0]); cudaFree(mask[1]);
	std::cout << (bad ? "graphs FAILED" : "graphs PASSED") << std::endl;
	return bad != 0;
}
