// Linked structures in unified memory: classes that overload new, a list walked on the GPU, a binary tree searched by many
// threads, strings passed by value; __managed__ variables; memory advice.
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <new>

class Managed {
public:
  void *operator new(size_t len) {
    void *ptr;
    if (cudaMallocManaged(&ptr, len) != cudaSuccess) throw std::bad_alloc();
    cudaDeviceSynchronize();
    return ptr;
  }
  void *operator new[](size_t len) { return Managed::operator new(len); }
  void operator delete(void *ptr) {
    cudaDeviceSynchronize();
    cudaFree(ptr);
  }
  void operator delete[](void *ptr) { Managed::operator delete(ptr); }
};

// String Class for Managed Memory
class String : public Managed {
  int length;
  char *data;
public:
  String() : length(0), data(0) {}
  String(const char *s) : length(0), data(0) { _realloc(strlen(s)); strcpy(data, s); }
  String(const String &s) : length(0), data(0) { _realloc(s.length); strcpy(data, s.data); }
  ~String() { cudaFree(data); }
  String &operator=(const char *s) { _realloc(strlen(s)); strcpy(data, s); return *this; }
  __host__ __device__ char &operator[](int pos) { return data[pos]; }
  __host__ __device__ const char *c_str() const { return data; }
  __host__ __device__ int size() const { return length; }
private:
  void _realloc(int len) {
    cudaFree(data);
    length = len;
    cudaMallocManaged(&data, length + 1);
  }
};

struct DataElement : public Managed {
  String name;
  int value;
  DataElement *next;
};

__managed__ int total_length = 0;
__device__ __managed__ unsigned long long checksum;

__global__ void Kernel_by_pointer(DataElement *elem) {
  printf("On device by pointer:       name=%s, value=%d\n", elem->name.c_str(), elem->value);
  elem->name[0] = 'p';
  elem->value++;
}

__global__ void walk(const DataElement *head, int key) {
  // every thread looks for its own value
  int mine = key + threadIdx.x, steps = 0;
  for (const DataElement *e = head; e != NULL; e = e->next, steps++)
    if (e->value == mine) {
      atomicAdd(&total_length, e->name.size());
      atomicAdd(&checksum, (unsigned long long)(steps + 1) * mine);
      return;
    }
}

struct Node : public Managed {
  int key;
  Node *left, *right;
  Node(int k) : key(k), left(nullptr), right(nullptr) {}
};

__host__ __device__ Node *find(Node *n, int key) { return n == nullptr || n->key == key ? n : find(key < n->key ? n->left : n->right, key); }
__host__ __device__ int depth(const Node *n) {
  if (!n) return 0;
  int l = depth(n->left), r = depth(n->right);
  return 1 + (l > r ? l : r);
}

__global__ void search(Node *root, const int *keys, char *found, int n, int *d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) found[i] = find(root, keys[i]) != nullptr;
  if (i == 0) *d = depth(root);
}

static void destroy(Node *n) { if (n) { destroy(n->left); destroy(n->right); delete n; } }

int main(void) {
  DataElement *e = new DataElement, *head = e;
  e->value = 10;
  e->name = "hello";
  e->next = NULL;
  Kernel_by_pointer<<<1, 1>>>(e);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  printf("On host (after by-pointer): name=%s, value=%d\n", e->name.c_str(), e->value);
  int bad = strcmp(e->name.c_str(), "pello") || e->value != 11;

  int want_length = 0;
  unsigned long long want_sum = 0;
  char text[16];
  for (int i = 0; i < 40; i++) {
    DataElement *x = new DataElement;
    snprintf(text, sizeof text, "element%d", i * i);
    x->name = text;
    x->value = 100 + i;
    x->next = head;
    head = x;
  }
  int steps = 0;
  for (DataElement *x = head; x; x = x->next, steps++)
    if (x->value >= 100 && x->value < 132) { want_length += x->name.size(); want_sum += (unsigned long long)(steps + 1) * x->value; }
  walk<<<1, 32>>>(head, 100);
  cudaDeviceSynchronize();
  printf("list: %d letters (%d), checksum %llu (%llu)\n", total_length, want_length, checksum, want_sum);
  bad += total_length != want_length || checksum != want_sum;
  while (head) { DataElement *next = head->next; delete head; head = next; }

  Node *root = nullptr;
  const int n = 500;
  int *keys, *d, inserted = 0;
  char *found;
  cudaMallocManaged((void **)&keys, n * sizeof(int));
  cudaMallocManaged((void **)&found, n);
  cudaMallocManaged((void **)&d, sizeof(int), cudaMemAttachGlobal);
  for (int i = 0; i < n; i++) keys[i] = rand() % 2000;
  for (int i = 0; i < n; i += 2) {
    Node **at = &root;
    while (*at && (*at)->key != keys[i]) at = keys[i] < (*at)->key ? &(*at)->left : &(*at)->right;
    if (!*at) { *at = new Node(keys[i]); inserted++; }
  }
  search<<<4, 128>>>(root, keys, found, n, d);
  cudaError_t rc = cudaDeviceSynchronize();
  int hits = 0, wrong = 0;
  for (int i = 0; i < n; i++) { hits += found[i]; wrong += found[i] != (find(root, keys[i]) != nullptr); }
  printf("tree of %d, depth %d: %d found, %d wrong (%s)\n", inserted, *d, hits, wrong, cudaGetErrorString(rc));
  bad += wrong || *d != depth(root) || rc != cudaSuccess;
  destroy(root);
  cudaFree(keys); cudaFree(found); cudaFree(d);
  puts(bad ? "unified memory FAILED" : "unified memory OK");
  return bad != 0;
}
