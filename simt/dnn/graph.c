/* graph.c - the graph API: engines, finalization, and what a descriptor tells. */
#include "graph.h"

/* ---- engines ---- */

const Program *program_of(const Descriptor *d) {
  switch (d->type) {
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return d->program;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return program_of(pointer(d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0));
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return program_of(pointer(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0));
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return program_of(pointer(d, CUDNN_ATTR_ENGINECFG_ENGINE, 0));
    default:
      return program_of(pointer(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0));
  }
}

int engine_of(const Descriptor *d) {
  if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    return engine_of(pointer(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0));
  if (d->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) return engine_of(pointer(d, CUDNN_ATTR_ENGINECFG_ENGINE, 0));
  return (int)integer(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0, 0);
}

static cudnnStatus_t finalize_engine(const Descriptor *d) {
  const int64_t index = integer(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0, 0);
  const Program *p = program_of(d);
  size_t bytes;
  const char *why;
  if (index < 0 || index >= engine_count(p))
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, FINALIZE,
                          "the graph has the engines 0 to %d, and not %lld", engine_count(p) - 1, (long long)index);
  const cudnnStatus_t status = engine_bytes(p, (int)index, &bytes, &why);
  return status == CUDNN_STATUS_SUCCESS ? status : refuse_plainly(status, FINALIZE, "engine %d: %s", (int)index, why);
}

/* The engines that a heuristic proposes, best first. */
static int proposals(const Descriptor *heuristic, int *engine) {
  const Program *p = program_of(heuristic);
  const int fallback = integer(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, 0, 0) == CUDNN_HEUR_MODE_FALLBACK;
  int count = 0;
  for (int i = 0; i < engine_count(p) && !(fallback && count); i++) {
    const int candidate = !p->has_convolution || p->steps || fallback ? i : proposed_algorithm(p->convolution.pass, i);
    size_t bytes;
    const char *why;
    if (engine_bytes(p, candidate, &bytes, &why) == CUDNN_STATUS_SUCCESS) engine[count++] = candidate;
  }
  return count;
}

/* A configuration of an engine, into the descriptor `config`. */
static int propose(const Descriptor *heuristic, int64_t engine, Descriptor *config) {
  Descriptor *graph = pointer(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0);
  Descriptor *e = descriptor_new(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (!e) return -1;
  descriptor_clear(config);
  int failed = descriptor_put(e, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph) ||
               descriptor_put(e, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &engine);
  e->finalized = 1;
  failed = failed || descriptor_put(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &e);
  config->finalized = !failed;
  descriptor_release(e);
  return failed ? -1 : 0;
}

/* ---- finalize ---- */

static cudnnStatus_t check_finalized(const Descriptor *d) {
  for (const Slot *s = d->slots; s; s = s->next)
    for (int i = 0; s->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < s->count; i++) {
      const Descriptor *child = pointer(d, s->name, i);
      if (!child->finalized)
        return refuse_plainly(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, FINALIZE,
                              "the %s that attribute %d is given was not finalized", descriptor_name(child->type),
                              (int)s->name);
    }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Descriptor *d = descriptor;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  if (!d) return refuse_plainly(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, __func__, "the descriptor is NULL");
  if (d->finalized) return CUDNN_STATUS_SUCCESS;
  for (int i = 0; i < dnn_attribute_count; i++)
    if (dnn_attributes[i].of == d->type && dnn_attributes[i].use & NEEDED && !slot_of(d, dnn_attributes[i].name))
      return bad_here("the %s lacks attribute %d (see cudnnBackendAttributeName_t)", descriptor_name(d->type),
                      (int)dnn_attributes[i].name);
  TRY(check_finalized(d));
  switch (d->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      status = finalize_tensor(d);
      break;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      status = finalize_convolution(d);
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      status = finalize_graph(d);
      break;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      status = finalize_engine(d);
      break;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      if (attribute_count(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) !=
          attribute_count(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS))
        return bad_here("the variant pack has %d ids, but %d pointers",
                        (int)attribute_count(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
                        (int)attribute_count(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS));
      break;
    default:
      if (is_operation(d->type)) status = finalize_operation(d);
  }
  d->finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

/* ---- reading ---- */

/* Values that follow from others: how many; at most `room` are written to `values`. -1: not such an attribute. */
static int64_t derived(const Descriptor *d, cudnnBackendAttributeName_t name, int64_t room, void *values) {
  int64_t number = 0;
  size_t bytes = 0;
  const char *why;
  cudnnBackendNumericalNote_t notes[2];
  const Program *p = program_of(d);
  switch ((int)name) {
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
      number = engine_count(p);
      break;
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      engine_bytes(p, engine_of(d), &bytes, &why);
      number = (int64_t)bytes;
      break;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      if (!p->has_convolution) return 0;
      number = algorithm_notes(p->convolution.pass, engine_of(d), notes);
      if (values) memcpy(values, notes, (size_t)(number < room ? number : room) * sizeof *notes);
      return number;
    default:
      return 0;
  }
  if (room > 0 && values) memcpy(values, &number, sizeof number);
  return 1;
}

static cudnnStatus_t results(const Descriptor *d, int64_t room, int64_t *count, void *values) {
  int engine[CUDNN_CONVOLUTION_FWD_ALGO_COUNT] = {0};
  *count = proposals(d, engine);
  for (int64_t i = 0; i < *count && i < room && values; i++) {
    Descriptor *config = ((Descriptor **)values)[i];
    if (!config || config->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
      return refuse_plainly(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "cudnnBackendGetAttribute",
                            "element %d of the results is no CUDNN_BACKEND_ENGINECFG_DESCRIPTOR", (int)i);
    if (propose(d, engine[i], config) != 0) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *values) {
  const Descriptor *d = descriptor;
  int64_t unused;
  if (!count) count = &unused;
  if (!d) return refuse_plainly(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, __func__, "the descriptor is NULL");
  *count = 0;
  if (!d->finalized)
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, __func__, "the %s is not finalized",
                          descriptor_name(d->type));
  const Attribute *a = attribute_of(d, name);
  if (!a) return bad_here("a %s has no attribute %d here", descriptor_name(d->type), (int)name);
  const Slot *s = slot_of(d, name);
  if (s ? s->type != type : a->type != type)
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, __func__, "attribute %d is of the type %d, and not %d",
                          (int)name, (int)(s ? s->type : a->type), (int)type);
  if (room < 0 || (room > 0 && !values)) return bad_here("there is no room for %lld elements", (long long)room);
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return results(d, room, count, values);
  if (!s) {
    *count = a->use & GIVEN ? derived(d, name, room, values) : 0;
    return CUDNN_STATUS_SUCCESS;
  }
  *count = s->count;
  const int64_t some = s->count < room ? s->count : room;
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    if (some > 0) memcpy(values, s->data, (size_t)some * attribute_type_bytes(type));
    return CUDNN_STATUS_SUCCESS;
  }
  for (int64_t i = 0; i < some; i++) {
    Descriptor *to = ((Descriptor **)values)[i];
    const Descriptor *from = ((Descriptor **)s->data)[i];
    if (!to || to->type != from->type)
      return refuse_plainly(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, __func__, "element %d must be a %s", (int)i,
                            descriptor_name(from->type));
    if (descriptor_copy(to, from) != 0) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  }
  return CUDNN_STATUS_SUCCESS;
}
