/* Interface of the library, usable from C and C++. */
#ifndef VECTOR_OPS_H
#define VECTOR_OPS_H
#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int n;
    float *data; /* on the device */
} dvec_t;

int dvec_create(dvec_t *v, const float *host, int n);
int dvec_axpy(dvec_t *y, float a, const dvec_t *x);
int dvec_dot(const dvec_t *x, const dvec_t *y, double *out);
int dvec_get(const dvec_t *v, float *host);
void dvec_destroy(dvec_t *v);

#ifdef __cplusplus
}
#endif
#endif
