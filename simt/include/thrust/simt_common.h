/* thrust/simt_common.h - what NVIDIA's headers for vectors, policies and sorts bring along, and programs rely on.
 * -*- c++ -*- */
#ifndef SIMT_THRUST_COMMON
#define SIMT_THRUST_COMMON

#include "thrust/advance.h"
#include "thrust/copy.h"
#include "thrust/distance.h"
#include "thrust/equal.h"
#include "thrust/fill.h"
#include "thrust/find.h"
#include "thrust/for_each.h"
#include "thrust/functional.h"
#include "thrust/generate.h"
#include "thrust/iterator/counting_iterator.h"
#include "thrust/iterator/discard_iterator.h"
#include "thrust/iterator/permutation_iterator.h"
#include "thrust/iterator/reverse_iterator.h"
#include "thrust/iterator/transform_iterator.h"
#include "thrust/iterator/zip_iterator.h"
#include "thrust/reduce.h"
#include "thrust/replace.h"
#include "thrust/scan.h"
#include "thrust/scatter.h"
#include "thrust/transform.h"

#endif /* SIMT_THRUST_COMMON */
