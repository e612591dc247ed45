/* ort_profile.h - which provider computes which operator, as ONNX Runtime's own profile has it.
 *
 *     OrtPlacement placement;
 *     if (ort_placement(&ort, "resnet18.onnx", &options, &x, &placement, &err) != 0) die("%s", err.message);
 *     printf("%d operators on the GPU, %d on the CPU\n", placement.cuda, placement.cpu);
 *
 * A session with the CUDA provider may compute everything on the CPU: an operator of which the provider has no kernel
 * falls back, and nothing is said. The profile of one run names the provider of each operator that ran.
 */
#ifndef PHASE5_PRODUCTION_ORT_PROFILE_H
#define PHASE5_PRODUCTION_ORT_PROFILE_H

#include "phase5_production/10_onnx_runtime/ort_run.h"

#include <jansson.h>

typedef struct OrtPlacement {
  int cpu, cuda, other;
  char on_cpu[256]; /* "Gather, Shape": the operators of the CPU provider, each once; what does not fit is left out */
} OrtPlacement;

static inline void ort_placement_note(OrtPlacement *p, const char *op) {
  const size_t used = strlen(p->on_cpu), length = strlen(op);
  for (const char *at = p->on_cpu; (at = strstr(at, op)) != NULL; at += length)
    if ((at == p->on_cpu || at[-1] == ' ') && (at[length] == '\0' || at[length] == ',')) return;
  if (used + length + 3 > sizeof p->on_cpu) return;
  snprintf(p->on_cpu + used, sizeof p->on_cpu - used, "%s%s", used ? ", " : "", op);
}

/* Counts the operators of a profile: an array of events, of which those with a provider are runs of an operator. */
static inline int ort_profile_read(const char *path, OrtPlacement *p, Error *err) {
  json_error_t why;
  json_t *events = json_load_file(path, 0, &why), *event;
  size_t i;
  memset(p, 0, sizeof *p);
  if (!json_is_array(events)) {
    json_decref(events);
    return error_set(err, "%s is not a profile of ONNX Runtime: %s", path, why.text);
  }
  json_array_foreach(events, i, event) {
    const json_t *args = json_object_get(event, "args");
    const char *provider = json_string_value(json_object_get(args, "provider"));
    const char *op = json_string_value(json_object_get(args, "op_name"));
    if (provider == NULL || provider[0] == '\0') continue;
    if (strcmp(provider, "CUDAExecutionProvider") == 0) {
      p->cuda++;
    } else if (strcmp(provider, "CPUExecutionProvider") == 0) {
      p->cpu++;
      if (op) ort_placement_note(p, op);
    } else {
      p->other++;
    }
  }
  json_decref(events);
  return 0;
}

/* Ends the profile of a session that was opened with options.profile, and reads it; the file is removed. */
static inline int ort_profile_end(OrtNet *net, OrtPlacement *p, Error *err) {
  const Ort *ort = net->ort;
  char *path = NULL;
  if (ort_check(ort, ort->f.SessionEndProfiling(net->session, ort->allocator, &path), err, "the profile") != 0)
    return -1;
  const int status = ort_profile_read(path, p, err);
  unlink(path);
  ort->f.ReleaseStatus(ort->f.AllocatorFree(ort->allocator, path));
  return status;
}

/* Runs the model once in a session of its own. */
static inline int ort_placement(Ort *ort, const char *path, const OrtNetOptions *options, const OrtArray *in,
                                OrtPlacement *p, Error *err) {
  char prefix[PATH_MAX];
  const char *folder = getenv("TMPDIR");
  OrtNet net;
  OrtArray out[ORT_PORTS];
  OrtNetOptions profiled = *options;
  snprintf(prefix, sizeof prefix, "%.4000s/nn_ort_%ld", folder && folder[0] ? folder : "/tmp", (long)getpid());
  profiled.profile = prefix;
  profiled.cuda_graph = 0;
  profiled.stream = NULL;
  memset(out, 0, sizeof out);
  if (ort_session(&net, ort, path, &profiled, err) != 0) return -1;
  int status = ort_run(&net, in, out, err);
  for (int i = 0; i < net.outputs; i++) ort_array_free(&out[i]);
  OrtPlacement none;
  if (status == 0)
    status = ort_profile_end(&net, p, err);
  else
    ort_profile_end(&net, &none, NULL); /* so that no file stays */
  ort_session_close(&net);
  return status;
}

#endif /* PHASE5_PRODUCTION_ORT_PROFILE_H */
