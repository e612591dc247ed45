#include <cmath>
#include <cuda_runtime.h>
#include <iostream>
#include <vector>
#include "stats.hpp"

extern "C" int c_part(const float *x, const float *y, int n);
extern "C" int library_calls(void);

int main()
{
    const int n = 4321;
    std::vector<float> x(n), y(n), r(n);
    for (int i = 0; i < n; i++) { x[i] = (i % 17) * 0.25f; y[i] = 1.0f - (i % 5); }
    int bad = c_part(x.data(), y.data(), n);

    dvec_t dx, dy;
    if (dvec_create(&dx, x.data(), n) || dvec_create(&dy, y.data(), n)) return 2;
    double dot = 0, want = 0, norm2 = 0;
    bad += dvec_dot(&dx, &dy, &dot);
    bad += dvec_axpy(&dy, 2.0f, &dx);
    bad += dvec_get(&dy, r.data());
    for (int i = 0; i < n; i++) {
        want += (double)x[i] * y[i];
        norm2 += (double)x[i] * x[i];
        bad += std::fabs(r[i] - (y[i] + SCALE * 2.0f * x[i])) > 1e-5f;
    }
    Stats s;
    const double norm = s.norm(dx);
    dim3 g(3), b = {2, 3};   // host code of an ordinary C++ file may use the vector types
    float4 q = make_float4(1, 2, 3, 4);
    std::cout << "dot " << dot << " (" << want << "), norm " << norm << " (" << std::sqrt(norm2) << "), " << g.x * g.y * b.x * b.y * b.z + q.w << std::endl;
    bad += dot != want || std::fabs(norm - std::sqrt(norm2)) > 1e-9 * norm;
    bad += s.counted() != 30 || library_calls() != 2;
    dvec_destroy(&dx);
    dvec_destroy(&dy);
    int count = 0;
    cudaGetDeviceCount(&count);
    std::cout << count << " device(s), " << (bad ? "FAILED" : "linked and right") << std::endl;
    return bad != 0;
}
