/* ort.h - ONNX Runtime from C, found while the program runs.
 *
 *     Ort ort;
 *     OrtNet net;
 *     OrtNetOptions options = ort_net_options();        // CPU, all cores, all optimisations
 *     if (ort_open(&ort, &err) != 0) die("%s", err.message);
 *     if (ort_session(&net, &ort, "resnet18.onnx", &options, &err) != 0) die("%s", err.message);
 *     const OrtArray x = ort_floats(pictures, 4, 8, 3, 224, 224);
 *     OrtArray y = ort_floats(logits, 2, 8, 1000);      // or without data: ort_run() allocates it
 *     if (ort_run(&net, &x, &y, &err) != 0) die("%s", err.message);
 *     ort_session_close(&net);
 *     ort_close(&ort);
 *
 * Every function that can fail returns -1 and leaves a sentence; err.code is ERROR_NOT_INSTALLED where ONNX Runtime,
 * or its CUDA provider, is not there. An Ort may be used by many threads; an OrtNet by many in ort_run(), by one with
 * bound arrays.
 *
 *   ort_abi.h       the functions of the library, by their positions in its table
 *   ort_library.h   where the library is looked for
 *   ort_session.h   options, providers, names and shapes of inputs and outputs, metadata
 *   ort_run.h       a run with arrays of the host; with bound arrays, of the host or of the GPU
 *   ort_profile.h   which provider has computed what
 */
#ifndef PHASE5_PRODUCTION_ORT_H
#define PHASE5_PRODUCTION_ORT_H

#include "phase5_production/10_onnx_runtime/ort_profile.h"

#endif /* PHASE5_PRODUCTION_ORT_H */
