// A small ray tracer in the manner of "one weekend" books: vec3 class, abstract hitable, spheres created on the device with
// new, virtual hit(), materials, a camera; antialiasing from a small generator per pixel. Deleted on the device as well.
#include <iostream>
#include <cfloat>
#include <cmath>
#include <cstdlib>

// limited version of checkCudaErrors
#define checkCudaErrors(val) check_cuda( (val), #val, __FILE__, __LINE__ )
void check_cuda(cudaError_t result, char const *const func, const char *const file, int const line) {
    if (result) {
        std::cerr << "CUDA error = " << static_cast<unsigned int>(result) << " at " << file << ":" << line << " '" << func << "' \n";
        // Make sure we call CUDA Device Reset before exiting
        cudaDeviceReset();
        exit(99);
    }
}

class vec3  {
public:
    __host__ __device__ vec3() {}
    __host__ __device__ vec3(float e0, float e1, float e2) { e[0] = e0; e[1] = e1; e[2] = e2; }
    __host__ __device__ inline float x() const { return e[0]; }
    __host__ __device__ inline float y() const { return e[1]; }
    __host__ __device__ inline float z() const { return e[2]; }
    __host__ __device__ inline vec3 operator-() const { return vec3(-e[0], -e[1], -e[2]); }
    __host__ __device__ inline float operator[](int i) const { return e[i]; }
    __host__ __device__ inline float& operator[](int i) { return e[i]; };
    __host__ __device__ inline vec3& operator+=(const vec3 &v) { e[0] += v.e[0]; e[1] += v.e[1]; e[2] += v.e[2]; return *this; }
    __host__ __device__ inline vec3& operator/=(const float t) { float k = 1.0f / t; e[0] *= k; e[1] *= k; e[2] *= k; return *this; }
    __host__ __device__ inline float length() const { return sqrt(e[0]*e[0] + e[1]*e[1] + e[2]*e[2]); }
    float e[3];
};
__host__ __device__ inline vec3 operator+(const vec3 &a, const vec3 &b) { return vec3(a.e[0]+b.e[0], a.e[1]+b.e[1], a.e[2]+b.e[2]); }
__host__ __device__ inline vec3 operator-(const vec3 &a, const vec3 &b) { return vec3(a.e[0]-b.e[0], a.e[1]-b.e[1], a.e[2]-b.e[2]); }
__host__ __device__ inline vec3 operator*(const vec3 &a, const vec3 &b) { return vec3(a.e[0]*b.e[0], a.e[1]*b.e[1], a.e[2]*b.e[2]); }
__host__ __device__ inline vec3 operator*(float t, const vec3 &v) { return vec3(t*v.e[0], t*v.e[1], t*v.e[2]); }
__host__ __device__ inline float dot(const vec3 &a, const vec3 &b) { return a.e[0]*b.e[0] + a.e[1]*b.e[1] + a.e[2]*b.e[2]; }
__host__ __device__ inline vec3 unit_vector(vec3 v) { return 1.0f / v.length() * v; }

class ray {
public:
    __device__ __host__ ray() {}
    __device__ __host__ ray(const vec3& a, const vec3& b) { A = a; B = b; }
    __device__ __host__ vec3 origin() const { return A; }
    __device__ __host__ vec3 direction() const { return B; }
    __device__ __host__ vec3 point_at_parameter(float t) const { return A + t*B; }
    vec3 A, B;
};

class material;
struct hit_record { float t; vec3 p, normal; const material *mat; };

class material {
public:
    __host__ __device__ virtual bool scatter(const ray& in, const hit_record& rec, vec3& attenuation, ray& out) const = 0;
    __host__ __device__ virtual ~material() {}
};
class mirror : public material {
public:
    __host__ __device__ mirror(vec3 a) : albedo(a) {}
    __host__ __device__ bool scatter(const ray& in, const hit_record& rec, vec3& attenuation, ray& out) const override {
        vec3 v = unit_vector(in.direction());
        out = ray(rec.p, v - 2.0f * dot(v, rec.normal) * rec.normal);
        attenuation = albedo;
        return dot(out.direction(), rec.normal) > 0.0f;
    }
    vec3 albedo;
};
class matte : public material {
public:
    __host__ __device__ matte(vec3 a) : albedo(a) {}
    __host__ __device__ virtual bool scatter(const ray&, const hit_record& rec, vec3& attenuation, ray&) const {
        attenuation = (0.5f + 0.5f * rec.normal.y()) * albedo;
        return false;
    }
    vec3 albedo;
};

class hitable  {
public:
    __host__ __device__ virtual bool hit(const ray& r, float t_min, float t_max, hit_record& rec) const = 0;
    __host__ __device__ virtual ~hitable() {}
};
class sphere: public hitable {
public:
    __host__ __device__ sphere(vec3 cen, float r, material *m) : center(cen), radius(r), mat(m) {}
    __host__ __device__ ~sphere() { delete mat; }
    __host__ __device__ virtual bool hit(const ray& r, float tmin, float tmax, hit_record& rec) const {
        vec3 oc = r.origin() - center;
        float a = dot(r.direction(), r.direction()), b = dot(oc, r.direction()), c = dot(oc, oc) - radius*radius;
        float discriminant = b*b - a*c;
        if (discriminant > 0) {
            for (int s = -1; s <= 1; s += 2) {
                float temp = (-b + s * sqrt(discriminant))/a;
                if (temp < tmax && temp > tmin) {
                    rec.t = temp;
                    rec.p = r.point_at_parameter(rec.t);
                    rec.normal = 1.0f / radius * (rec.p - center);
                    rec.mat = mat;
                    return true;
                }
            }
        }
        return false;
    }
    vec3 center; float radius; material *mat;
};
class hitable_list: public hitable  {
public:
    __host__ __device__ hitable_list(hitable **l, int n) { list = l; list_size = n; }
    __host__ __device__ virtual bool hit(const ray& r, float t_min, float t_max, hit_record& rec) const {
        hit_record temp_rec;
        bool hit_anything = false;
        float closest_so_far = t_max;
        for (int i = 0; i < list_size; i++)
            if (list[i]->hit(r, t_min, closest_so_far, temp_rec)) {
                hit_anything = true;
                closest_so_far = temp_rec.t;
                rec = temp_rec;
            }
        return hit_anything;
    }
    hitable **list;
    int list_size;
};

__host__ __device__ vec3 color(const ray& r, hitable *world) {
    ray cur = r;
    vec3 cur_att(1.0f, 1.0f, 1.0f);
    for (int i = 0; i < 12; i++) {
        hit_record rec;
        if (!world->hit(cur, 0.001f, FLT_MAX, rec)) {
            float t = 0.5f*(unit_vector(cur.direction()).y() + 1.0f);
            return cur_att * ((1.0f-t)*vec3(1.0, 1.0, 1.0) + t*vec3(0.5, 0.7, 1.0));
        }
        ray next;
        vec3 att;
        bool go_on = rec.mat->scatter(cur, rec, att, next);
        cur_att = cur_att * att;
        if (!go_on) return cur_att;
        cur = next;
    }
    return vec3(0.0, 0.0, 0.0);
}

__host__ __device__ vec3 pixel(int i, int j, int max_x, int max_y, int ns, hitable *world) {
    unsigned rng = j * 9781u + i * 6271u + 1u;
    vec3 col(0, 0, 0);
    for (int s = 0; s < ns; s++) {
        rng = rng * 1664525u + 1013904223u;
        float u = float(i + (rng >> 8) / 16777216.0f) / max_x;
        rng = rng * 1664525u + 1013904223u;
        float v = float(j + (rng >> 8) / 16777216.0f) / max_y;
        col += color(ray(vec3(0, 0.3f, 1), vec3(-2, -1, -1) + u*vec3(4, 0, 0) + v*vec3(0, 2, 0)), world);
    }
    col /= float(ns);
    return col;
}

__host__ __device__ void build(hitable **d_list, hitable **d_world) {
    d_list[0] = new sphere(vec3(0, 0, -1), 0.5, new matte(vec3(0.8f, 0.3f, 0.3f)));
    d_list[1] = new sphere(vec3(0, -100.5, -1), 100, new matte(vec3(0.8f, 0.8f, 0.0f)));
    d_list[2] = new sphere(vec3(1, 0, -1), 0.5, new mirror(vec3(0.8f, 0.6f, 0.2f)));
    d_list[3] = new sphere(vec3(-1, 0, -1), 0.5, new mirror(vec3(0.8f, 0.8f, 0.8f)));
    *d_world = new hitable_list(d_list, 4);
}

__global__ void create_world(hitable **d_list, hitable **d_world) {
    if (threadIdx.x == 0 && blockIdx.x == 0) build(d_list, d_world);
}

__global__ void render(vec3 *fb, int max_x, int max_y, int ns, hitable **world) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int j = threadIdx.y + blockIdx.y * blockDim.y;
    if ((i >= max_x) || (j >= max_y)) return;
    fb[j*max_x + i] = pixel(i, j, max_x, max_y, ns, *world);
}

__global__ void free_world(hitable **d_list, hitable **d_world) {
    for (int i = 0; i < 4; i++) delete *(d_list + i);
    delete *d_world;
}

int main() {
    int nx = 200, ny = 100, ns = 4, tx = 8, ty = 8;
    std::cerr << "Rendering a " << nx << "x" << ny << " image in " << tx << "x" << ty << " blocks.\n";
    vec3 *fb;
    checkCudaErrors(cudaMallocManaged((void **)&fb, nx*ny*sizeof(vec3)));
    checkCudaErrors(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    hitable **d_list, **d_world;
    checkCudaErrors(cudaMalloc((void **)&d_list, 4*sizeof(hitable *)));
    checkCudaErrors(cudaMalloc((void **)&d_world, sizeof(hitable *)));
    create_world<<<1,1>>>(d_list, d_world);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaDeviceSynchronize());
    dim3 blocks(nx/tx+1,ny/ty+1);
    dim3 threads(tx,ty);
    render<<<blocks, threads>>>(fb, nx, ny, ns, d_world);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaDeviceSynchronize());

    hitable *list[4], *world;
    build(list, &world);
    int different = 0;
    double sum = 0;
    for (int j = 0; j < ny; j++)
        for (int i = 0; i < nx; i++) {
            vec3 c = pixel(i, j, nx, ny, ns, world), d = fb[j*nx + i];
            sum += d.x() + d.y() + d.z();
            different += !((c - d).length() < 1e-2f);
        }
    for (int i = 0; i < 4; i++) delete list[i];
    delete world;
    std::cout << "mean " << sum / (3 * nx * ny) << ", " << different << " pixels differ from the host's picture" << std::endl;

    checkCudaErrors(cudaDeviceSynchronize());
    free_world<<<1,1>>>(d_list, d_world);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaFree(d_list));
    checkCudaErrors(cudaFree(d_world));
    checkCudaErrors(cudaFree(fb));
    bool ok = different < nx * ny / 50 && sum > 0;
    std::cout << (ok ? "ok" : "not ok") << std::endl;
    cudaDeviceReset();
    return ok ? 0 : 1;
}
