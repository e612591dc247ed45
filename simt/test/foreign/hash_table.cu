// A lock-free hash table with linear probing: insert by atomicCAS, lookup, delete, iterate; 64-bit key/value slots variant.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <vector>

struct KeyValue {
    uint32_t key;
    uint32_t value;
};

const uint32_t kHashTableCapacity = 1 << 16;
const uint32_t kEmpty = 0xffffffff;

#define CHECKED(x) do { cudaError_t r_ = (x); if (r_) { printf("%s -> %s\n", #x, cudaGetErrorString(r_)); exit(1); } } while (false)

// 32 bit Murmur3 hash
__host__ __device__ uint32_t hash(uint32_t k)
{
    k ^= k >> 16;
    k *= 0x85ebca6b;
    k ^= k >> 13;
    k *= 0xc2b2ae35;
    k ^= k >> 16;
    return k & (kHashTableCapacity - 1);
}

KeyValue* create_hashtable()
{
    KeyValue* hashtable;
    CHECKED(cudaMalloc(&hashtable, sizeof(KeyValue) * kHashTableCapacity));
    static_assert(kEmpty == 0xffffffff, "memset expected kEmpty=0xffffffff");
    CHECKED(cudaMemset(hashtable, 0xff, sizeof(KeyValue) * kHashTableCapacity));
    return hashtable;
}

__global__ void gpu_hashtable_insert(KeyValue* hashtable, const KeyValue* kvs, unsigned int numkvs)
{
    unsigned int threadid = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadid < numkvs)
    {
        uint32_t key = kvs[threadid].key;
        uint32_t value = kvs[threadid].value;
        uint32_t slot = hash(key);
        while (true)
        {
            uint32_t prev = atomicCAS(&hashtable[slot].key, kEmpty, key);
            if (prev == kEmpty || prev == key)
            {
                atomicMax(&hashtable[slot].value, value);   // the largest wins, in every order (kEmpty is cleared first)
                return;
            }
            slot = (slot + 1) & (kHashTableCapacity - 1);
        }
    }
}

__global__ void clear_values(KeyValue* t)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kHashTableCapacity) t[i].value = 0;
}

__global__ void gpu_hashtable_lookup(const KeyValue* hashtable, KeyValue* kvs, unsigned int numkvs)
{
    unsigned int threadid = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadid < numkvs)
    {
        uint32_t key = kvs[threadid].key;
        for (uint32_t slot = hash(key); ; slot = (slot + 1) & (kHashTableCapacity - 1))
        {
            if (hashtable[slot].key == key) { kvs[threadid].value = hashtable[slot].value; return; }
            if (hashtable[slot].key == kEmpty) { kvs[threadid].value = kEmpty; return; }
        }
    }
}

__global__ void gpu_iterate_hashtable(const KeyValue* pHashTable, KeyValue* kvs, uint32_t* kvs_size)
{
    unsigned int threadid = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadid < kHashTableCapacity)
    {
        if (pHashTable[threadid].key != kEmpty)
        {
            uint32_t size = atomicAdd(kvs_size, 1);
            kvs[size] = pHashTable[threadid];
        }
    }
}

// counting with a whole slot in one 64-bit word: key high, count low
__global__ void count64(unsigned long long* table, const KeyValue* kvs, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    {
        const unsigned long long key = (unsigned long long)kvs[i].key << 32;
        for (uint32_t s = hash(kvs[i].key);; s = (s + 1) & (kHashTableCapacity - 1))
        {
            unsigned long long seen = atomicOr(&table[s], 0ULL);
            while (seen == ~0ULL || (seen >> 32) == (key >> 32))
            {
                unsigned long long wanted = seen == ~0ULL ? key | 1 : seen + 1;
                unsigned long long old = atomicCAS(&table[s], seen, wanted);
                if (old == seen) goto counted;
                seen = old;
            }
        }
    counted:;
    }
}

int main()
{
    std::mt19937 rnd(1);
    const unsigned n = 50000;
    std::vector<KeyValue> kvs(n), queries(n), out(kHashTableCapacity);
    std::unordered_map<uint32_t, uint32_t> want, counts;
    for (auto& kv : kvs)
    {
        kv.key = rnd() % 40000 * 7919u;
        kv.value = rnd() % 1000000;
        auto& w = want[kv.key];
        w = std::max(w, kv.value);
        counts[kv.key]++;
    }
    for (unsigned i = 0; i < n; i++) queries[i].key = i % 3 ? kvs[rnd() % n].key : rnd() | 1u;

    KeyValue *table = create_hashtable(), *d_kvs, *d_out;
    uint32_t *d_size, size = 0;
    CHECKED(cudaMalloc(&d_kvs, n * sizeof(KeyValue)));
    CHECKED(cudaMalloc(&d_out, kHashTableCapacity * sizeof(KeyValue)));
    CHECKED(cudaMalloc(&d_size, sizeof size));
    CHECKED(cudaMemset(d_size, 0, sizeof size));
    CHECKED(cudaMemcpy(d_kvs, kvs.data(), n * sizeof(KeyValue), cudaMemcpyHostToDevice));

    int mingridsize, threadblocksize;
    CHECKED(cudaOccupancyMaxPotentialBlockSize(&mingridsize, &threadblocksize, gpu_hashtable_insert, 0, 0));
    int gridsize = ((uint32_t)n + threadblocksize - 1) / threadblocksize;
    printf("occupancy suggests %d threads per block, at least %d blocks\n", threadblocksize, mingridsize);
    clear_values<<<kHashTableCapacity / 256, 256>>>(table);
    gpu_hashtable_insert<<<gridsize, threadblocksize>>>(table, d_kvs, (uint32_t)n);
    CHECKED(cudaGetLastError());
    gpu_iterate_hashtable<<<kHashTableCapacity / 256, 256>>>(table, d_out, d_size);
    CHECKED(cudaMemcpy(&size, d_size, sizeof size, cudaMemcpyDeviceToHost));
    CHECKED(cudaMemcpy(out.data(), d_out, size * sizeof(KeyValue), cudaMemcpyDeviceToHost));
    int bad = size != want.size();
    for (uint32_t i = 0; i < size; i++) bad += !want.count(out[i].key) || want[out[i].key] != out[i].value;
    printf("%u keys in the table, %zu expected, %d wrong\n", size, want.size(), bad);

    CHECKED(cudaMemcpy(d_kvs, queries.data(), n * sizeof(KeyValue), cudaMemcpyHostToDevice));
    gpu_hashtable_lookup<<<(n + 127) / 128, 128>>>(table, d_kvs, n);
    CHECKED(cudaMemcpy(queries.data(), d_kvs, n * sizeof(KeyValue), cudaMemcpyDeviceToHost));
    int missing = 0, wrong = 0;
    for (auto& q : queries)
    {
        auto it = want.find(q.key);
        missing += it == want.end();
        wrong += q.value != (it == want.end() ? kEmpty : it->second);
    }
    printf("lookups: %d absent keys, %d wrong answers\n", missing, wrong);

    CHECKED(cudaMemcpy(d_kvs, kvs.data(), n * sizeof(KeyValue), cudaMemcpyHostToDevice));
    CHECKED(cudaMemset(table, 0xff, sizeof(KeyValue) * kHashTableCapacity));
    count64<<<64, 128>>>((unsigned long long*)table, d_kvs, n);
    std::vector<unsigned long long> t64(kHashTableCapacity);
    CHECKED(cudaMemcpy(t64.data(), table, kHashTableCapacity * 8, cudaMemcpyDeviceToHost));
    int wrong64 = 0;
    size_t keys64 = 0;
    for (auto w : t64) if (w != ~0ULL) { keys64++; wrong64 += counts[w >> 32] != (uint32_t)w; }
    printf("64-bit slots: %zu keys, %d wrong counts\n", keys64, wrong64);
    cudaFree(table); cudaFree(d_kvs); cudaFree(d_out); cudaFree(d_size);
    bool ok = !bad && !wrong && !wrong64 && keys64 == want.size() && missing > 0;
    printf("%s\n", ok ? "Hash table test passed" : "Hash table test FAILED");
    return ok ? 0 : 1;
}
