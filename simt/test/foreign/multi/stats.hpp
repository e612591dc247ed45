#pragma once
#include "vector_ops.h"
class Stats {
public:
    double norm(const dvec_t &v) const;
    int counted() const;
};
