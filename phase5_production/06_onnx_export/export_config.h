/* export_config.h - the network of a config.json, as training programs write it into their run folder and as --config
 * of //phase4_training:train reads it: its own text for export_choose_text(), and its data set.
 *
 *     {"network": "mlp", "layers": "784,300,10", "activation": "tanh", "data": "mnist"}      mlp 784,300,10 tanh
 *
 * Other settings are those of training, and are passed over.
 */
#ifndef PHASE5_PRODUCTION_EXPORT_CONFIG_H
#define PHASE5_PRODUCTION_EXPORT_CONFIG_H

#include "common/nn/checkpoint.h"
#include "common/nn/config.h"

typedef struct ExportConfig {
  char network[CHECKPOINT_NETWORK], data[CHECKPOINT_NAME];
} ExportConfig;

/* The value of a key as text, "" where there is none. -1 where it is neither text nor number, or too long. */
static inline int export_config_value(const json_t *object, const char *path, const char *key, char *text, size_t size,
                                      Error *err) {
  const json_t *value = json_object_get(object, key);
  char number[64] = "";
  if (json_is_number(value)) config_number(json_number_value(value), number, sizeof number);
  const char *found = json_is_string(value) ? json_string_value(value) : number;
  text[0] = '\0';
  if (value == NULL) return 0;
  if (found[0] != '\0' && (size_t)snprintf(text, size, "%s", found) < size) return 0;
  return error_set(err, "%s: \"%s\" is not a text or number of up to %zu letters", path, key, size - 1);
}

static inline int export_config_take(const json_t *object, const char *path, ExportConfig *c, Error *err) {
  char name[48], layers[96], activation[24], filters[48], dropout[32];
  if (export_config_value(object, path, "network", name, sizeof name, err) != 0 ||
      export_config_value(object, path, "layers", layers, sizeof layers, err) != 0 ||
      export_config_value(object, path, "activation", activation, sizeof activation, err) != 0 ||
      export_config_value(object, path, "filters", filters, sizeof filters, err) != 0 ||
      export_config_value(object, path, "dropout", dropout, sizeof dropout, err) != 0 ||
      export_config_value(object, path, "data", c->data, sizeof c->data, err) != 0)
    return -1;
  if (name[0] == '\0' && layers[0]) snprintf(name, sizeof name, "mlp"); /* of mlp_mnist, which has only this one */
  if (name[0] == '\0' && filters[0]) snprintf(name, sizeof name, "resnet_mnist");
  if (name[0] == '\0') return error_set(err, "%s names no network; say which it is with --network", path);
  if (strcmp(name, "mlp") == 0 && layers[0])
    snprintf(c->network, sizeof c->network, "mlp %s %s", layers, activation[0] ? activation : "relu");
  else if (strcmp(name, "resnet_mnist") == 0 && filters[0])
    snprintf(c->network, sizeof c->network, "resnet_mnist resnet %s dropout %s", filters, dropout[0] ? dropout : "0");
  else
    snprintf(c->network, sizeof c->network, "%s", name);
  return 0;
}

static inline int export_config_read(const char *path, ExportConfig *c, Error *err) {
  size_t size;
  memset(c, 0, sizeof *c);
  char *text = config_read_text(path, &size, err);
  if (text == NULL) return -1;
  json_t *object = config_parse(path, text, size, err);
  free(text);
  if (object == NULL) return -1;
  const int status = export_config_take(object, path, c, err);
  json_decref(object);
  return status;
}

#endif /* PHASE5_PRODUCTION_EXPORT_CONFIG_H */
