// Neural network from scratch: Matrix class with shared_ptr to host and device memory, layers with virtual functions,
// binary cross entropy, SGD; learns XOR of the signs of two coordinates.
#include <cmath>
#include <exception>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

class NNException : std::exception {
private:
	const char* exception_message;
public:
	NNException(const char* exception_message) : exception_message(exception_message) { }
	virtual const char* what() const throw() { return exception_message; }
	static void throwIfDeviceErrorsOccurred(const char* exception_message) {
		cudaError_t error = cudaGetLastError();
		if (error != cudaSuccess) {
			std::cerr << error << ": " << exception_message;
			throw NNException(exception_message);
		}
	}
};

struct Shape { size_t x, y; Shape(size_t x = 1, size_t y = 1) : x(x), y(y) {} };

class Matrix {
	bool device_allocated = false, host_allocated = false;
public:
	Shape shape;
	std::shared_ptr<float> data_device;
	std::shared_ptr<float> data_host;
	Matrix(size_t x_dim = 1, size_t y_dim = 1) : shape(x_dim, y_dim) {}
	void allocateMemory() {
		if (!device_allocated) {
			float* device_memory = nullptr;
			cudaMalloc(&device_memory, shape.x * shape.y * sizeof(float));
			NNException::throwIfDeviceErrorsOccurred("Cannot allocate CUDA memory for Tensor3D.");
			data_device = std::shared_ptr<float>(device_memory, [&](float* ptr){ cudaFree(ptr); });
			device_allocated = true;
		}
		if (!host_allocated) {
			data_host = std::shared_ptr<float>(new float[shape.x * shape.y], [&](float* ptr){ delete[] ptr; });
			host_allocated = true;
		}
	}
	void allocateMemoryIfNotAllocated(Shape s) {
		if (!device_allocated && !host_allocated) { shape = s; allocateMemory(); }
	}
	void copyHostToDevice() {
		cudaMemcpy(data_device.get(), data_host.get(), shape.x * shape.y * sizeof(float), cudaMemcpyHostToDevice);
		NNException::throwIfDeviceErrorsOccurred("Cannot copy host data to CUDA device.");
	}
	void copyDeviceToHost() {
		cudaMemcpy(data_host.get(), data_device.get(), shape.x * shape.y * sizeof(float), cudaMemcpyDeviceToHost);
		NNException::throwIfDeviceErrorsOccurred("Cannot copy device data to host.");
	}
	float& operator[](const int index) { return data_host.get()[index]; }
	const float& operator[](const int index) const { return data_host.get()[index]; }
};

__global__ void linearLayerForward(float* W, float* A, float* Z, float* b, int W_x_dim, int W_y_dim, int A_x_dim, int A_y_dim) {
	int row = blockIdx.y * blockDim.y + threadIdx.y;
	int col = blockIdx.x * blockDim.x + threadIdx.x;
	int Z_x_dim = A_x_dim;
	int Z_y_dim = W_y_dim;
	float Z_value = 0;
	if (row < Z_y_dim && col < Z_x_dim) {
		for (int i = 0; i < W_x_dim; i++) {
			Z_value += W[row * W_x_dim + i] * A[i * A_x_dim + col];
		}
		Z[row * Z_x_dim + col] = Z_value + b[row];
	}
}

__global__ void linearLayerBackprop(float* W, float* dZ, float *dA, int W_x_dim, int W_y_dim, int dZ_x_dim, int dZ_y_dim) {
	int col = blockIdx.x * blockDim.x + threadIdx.x;
	int row = blockIdx.y * blockDim.y + threadIdx.y;
	// W is treated as transposed
	if (row < W_x_dim && col < dZ_x_dim) {
		float dA_value = 0.0f;
		for (int i = 0; i < W_y_dim; i++) dA_value += W[i * W_x_dim + row] * dZ[i * dZ_x_dim + col];
		dA[row * dZ_x_dim + col] = dA_value;
	}
}

__global__ void linearLayerUpdateWeights(float* dZ, float* A, float* W, int dZ_x_dim, int dZ_y_dim, int A_x_dim, int A_y_dim, float learning_rate) {
	int col = blockIdx.x * blockDim.x + threadIdx.x;
	int row = blockIdx.y * blockDim.y + threadIdx.y;
	if (row < dZ_y_dim && col < A_y_dim) {
		float dW_value = 0.0f;
		for (int i = 0; i < dZ_x_dim; i++) dW_value += dZ[row * dZ_x_dim + i] * A[col * A_x_dim + i];
		W[row * A_y_dim + col] -= learning_rate * (dW_value / A_x_dim);
	}
}

__global__ void linearLayerUpdateBias(float* dZ, float* b, int dZ_x_dim, int dZ_y_dim, float learning_rate) {
	int index = blockIdx.x * blockDim.x + threadIdx.x;
	if (index < dZ_x_dim * dZ_y_dim) {
		int dZ_x = index % dZ_x_dim;
		int dZ_y = index / dZ_x_dim;
		atomicAdd(&b[dZ_y], - learning_rate * (dZ[dZ_y * dZ_x_dim + dZ_x] / dZ_x_dim));
	}
}

__device__ float sigmoid(float x) { return 1.0f / (1 + exp(-x)); }
__global__ void sigmoidForward(float* Z, float* A, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) A[i] = sigmoid(Z[i]);
}
__global__ void sigmoidBackprop(float* Z, float* dA, float* dZ, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) dZ[i] = dA[i] * sigmoid(Z[i]) * (1 - sigmoid(Z[i]));
}
__global__ void reluForward(float* Z, float* A, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) A[i] = fmaxf(Z[i], 0);
}
__global__ void reluBackprop(float* Z, float* dA, float* dZ, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) dZ[i] = Z[i] > 0 ? dA[i] : 0;
}
// keeps the logarithm finite when the sigmoid saturates
__device__ float clipped(float p) { return fminf(fmaxf(p, 1e-6f), 1.0f - 1e-6f); }

__global__ void binaryCrossEntropyCost(float* predictions, float* target, int size, float* cost) {
	int index = blockIdx.x * blockDim.x + threadIdx.x;
	if (index < size) {
		float p = clipped(predictions[index]);
		float partial_cost = target[index] * logf(p) + (1.0f - target[index]) * logf(1.0f - p);
		atomicAdd(cost, - partial_cost / size);
	}
}
__global__ void dBinaryCrossEntropyCost(float* predictions, float* target, float* dY, int size) {
	int index = blockIdx.x * blockDim.x + threadIdx.x;
	if (index < size) {
		float p = clipped(predictions[index]);
		dY[index] = -1.0 * ( target[index]/p - (1 - target[index])/(1 - p) );
	}
}

class NNLayer {
public:
	virtual ~NNLayer() = 0;
	virtual Matrix& forward(Matrix& A) = 0;
	virtual Matrix& backprop(Matrix& dZ, float learning_rate) = 0;
};
inline NNLayer::~NNLayer() {}

class LinearLayer : public NNLayer {
	Matrix W, b, Z, A, dA;
public:
	LinearLayer(Shape W_shape, std::default_random_engine &gen) : W(W_shape.x, W_shape.y), b(W_shape.y, 1) {
		b.allocateMemory(); W.allocateMemory();
		std::normal_distribution<float> normal(0.0, 1.0);
		for (size_t i = 0; i < W_shape.x * W_shape.y; i++) W[i] = normal(gen) * sqrtf(2.f / W_shape.x);
		for (size_t i = 0; i < W_shape.y; i++) b[i] = 0;
		W.copyHostToDevice(); b.copyHostToDevice();
	}
	Matrix& forward(Matrix& A) override {
		this->A = A;
		Z.allocateMemoryIfNotAllocated(Shape(A.shape.x, W.shape.y));
		dim3 block_size(8, 8);
		dim3 num_of_blocks((Z.shape.x + block_size.x - 1) / block_size.x, (Z.shape.y + block_size.y - 1) / block_size.y);
		linearLayerForward<<<num_of_blocks, block_size>>>(W.data_device.get(), A.data_device.get(), Z.data_device.get(), b.data_device.get(),
		                                                  W.shape.x, W.shape.y, A.shape.x, A.shape.y);
		return Z;
	}
	Matrix& backprop(Matrix& dZ, float lr) override {
		dA.allocateMemoryIfNotAllocated(A.shape);
		dim3 block_size(8, 8);
		dim3 g1((A.shape.x + 7) / 8, (A.shape.y + 7) / 8), g2((W.shape.x + 7) / 8, (W.shape.y + 7) / 8);
		linearLayerBackprop<<<g1, block_size>>>(W.data_device.get(), dZ.data_device.get(), dA.data_device.get(), W.shape.x, W.shape.y, dZ.shape.x, dZ.shape.y);
		linearLayerUpdateBias<<<(dZ.shape.y * dZ.shape.x + 255) / 256, 256>>>(dZ.data_device.get(), b.data_device.get(), dZ.shape.x, dZ.shape.y, lr);
		linearLayerUpdateWeights<<<g2, block_size>>>(dZ.data_device.get(), A.data_device.get(), W.data_device.get(), dZ.shape.x, dZ.shape.y, A.shape.x, A.shape.y, lr);
		NNException::throwIfDeviceErrorsOccurred("Cannot perform linear layer backprop.");
		return dA;
	}
};

class Activation : public NNLayer {
	void (*fwd)(float*, float*, int);
	void (*bwd)(float*, float*, float*, int);
	Matrix A, Z, dZ;
public:
	Activation(void (*f)(float*, float*, int), void (*b)(float*, float*, float*, int)) : fwd(f), bwd(b) {}
	Matrix& forward(Matrix& Z) {
		this->Z = Z;
		A.allocateMemoryIfNotAllocated(Z.shape);
		int n = Z.shape.x * Z.shape.y;
		fwd<<<dim3((n + 255) / 256), dim3(256)>>>(Z.data_device.get(), A.data_device.get(), n);
		return A;
	}
	Matrix& backprop(Matrix& dA, float) {
		dZ.allocateMemoryIfNotAllocated(Z.shape);
		int n = Z.shape.x * Z.shape.y;
		bwd<<<(n + 255) / 256, 256>>>(Z.data_device.get(), dA.data_device.get(), dZ.data_device.get(), n);
		return dZ;
	}
};

int main() {
	std::default_random_engine gen(3);
	std::uniform_real_distribution<float> u(-0.5f, 0.5f);
	const int batch = 200, batches = 10;
	std::vector<Matrix> data, target;
	for (int k = 0; k < batches; k++) {
		data.emplace_back(batch, 2);
		target.emplace_back(batch, 1);
		data[k].allocateMemory(); target[k].allocateMemory();
		for (int i = 0; i < batch; i++) {
			float x = u(gen), y = u(gen);
			data[k][i] = x;
			data[k][batch + i] = y;
			target[k][i] = (x > 0) != (y > 0);
		}
		data[k].copyHostToDevice(); target[k].copyHostToDevice();
	}
	std::vector<std::unique_ptr<NNLayer>> layers;
	layers.push_back(std::make_unique<LinearLayer>(Shape(2, 30), gen));
	layers.push_back(std::make_unique<Activation>(reluForward, reluBackprop));
	layers.push_back(std::make_unique<LinearLayer>(Shape(30, 1), gen));
	layers.push_back(std::make_unique<Activation>(sigmoidForward, sigmoidBackprop));
	float* cost;
	cudaMallocManaged(&cost, sizeof(float));
	Matrix dY(batch, 1);
	dY.allocateMemory();
	float first = 0, last = 0;
	for (int epoch = 0; epoch < 101; epoch++) {
		float sum = 0.0;
		for (int k = 0; k < batches - 1; k++) {
			Matrix Y = data[k];
			for (auto& l : layers) Y = l->forward(Y);
			*cost = 0;
			binaryCrossEntropyCost<<<1, 256>>>(Y.data_device.get(), target[k].data_device.get(), batch, cost);
			dBinaryCrossEntropyCost<<<1, 256>>>(Y.data_device.get(), target[k].data_device.get(), dY.data_device.get(), batch);
			Matrix error = dY;
			for (auto it = layers.rbegin(); it != layers.rend(); it++) error = (*it)->backprop(error, 0.5f);
			cudaDeviceSynchronize();
			sum += *cost;
		}
		if (epoch == 0) first = sum / (batches - 1);
		last = sum / (batches - 1);
		if (epoch % 25 == 0) std::cout << "Epoch: " << epoch << ", Cost: " << last << std::endl;
	}
	Matrix Y = data[batches - 1];
	for (auto& l : layers) Y = l->forward(Y);
	Y.copyDeviceToHost();
	int correct = 0;
	for (int i = 0; i < batch; i++) correct += (Y[i] > 0.5f) == (target[batches - 1][i] > 0.5f);
	std::cout << "Accuracy: " << (float)correct / batch << std::endl;
	cudaFree(cost);
	bool ok = correct > batch * 0.93 && last < first / 2;
	std::cout << (ok ? "learned" : "did not learn") << std::endl;
	return !ok;
}
