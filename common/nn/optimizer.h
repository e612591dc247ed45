/* optimizer.h - the optimizers that programs offer: a table; beside it optimizers/ has their formulas and kernels.
 *
 *     const OptimizerChoice *adam = optimizer_named("adam");
 *     OptimizerSettings settings = adam->usual;                       // beta1 0.9, beta2 0.999, ...
 *     model_open(&model, graph, context, adam->choose(&settings), ...);
 *     model.hyper = optimizer_hyper(&settings);
 *
 * choose() takes the settings because what an optimizer keeps depends on them: SGD without momentum has no slot,
 * RMSprop has one, two or three.
 */
#ifndef COMMON_NN_OPTIMIZER_H
#define COMMON_NN_OPTIMIZER_H

#include "common/nn/optimizers/adam.cuh"
#include "common/nn/optimizers/muon.cuh"
#include "common/nn/optimizers/rmsprop.cuh"
#include "common/nn/optimizers/sgd.cuh"

/* As a user types them and a checkpoint keeps them. */
typedef struct OptimizerSettings {
  double lr, momentum, weight_decay, dampening, beta1, beta2, epsilon; /* lr: at its highest */
  int nesterov, centered;
} OptimizerSettings;

/* Which of them an optimizer reads beside lr and weight_decay, or'ed. */
enum {
  OPTIMIZER_MOMENTUM = 1,
  OPTIMIZER_DAMPENING = 2,
  OPTIMIZER_BETA1 = 4,
  OPTIMIZER_BETA2 = 8,
  OPTIMIZER_EPSILON = 16,
  OPTIMIZER_NESTEROV = 32,
  OPTIMIZER_CENTERED = 64,
};
enum { OPTIMIZER_SETTINGS = 7 };

/* Of bit i: the option. */
static inline const char *optimizer_setting(int i) {
  static const char *const names[OPTIMIZER_SETTINGS] = {"momentum", "dampening", "beta1",   "beta2",
                                                        "epsilon",  "nesterov",  "centered"};
  return i >= 0 && i < OPTIMIZER_SETTINGS ? names[i] : NULL;
}

typedef struct OptimizerChoice {
  const char *name, *help;
  unsigned reads;
  OptimizerSettings usual;
  const Optimizer *(*choose)(const OptimizerSettings *settings);
} OptimizerChoice;

static inline const Optimizer *optimizer_choose_sgd(const OptimizerSettings *settings) {
  return settings->momentum == 0 ? &optimizer_sgd_plain
         : settings->nesterov    ? &optimizer_sgd_nesterov
                                 : &optimizer_sgd_momentum;
}

static inline const Optimizer *optimizer_choose_adam(const OptimizerSettings *settings) {
  (void)settings;
  return &optimizer_adam;
}

static inline const Optimizer *optimizer_choose_adamw(const OptimizerSettings *settings) {
  (void)settings;
  return &optimizer_adamw;
}

static inline const Optimizer *optimizer_choose_rmsprop(const OptimizerSettings *settings) {
  return &optimizer_rmsprop[(settings->centered ? RMSPROP_CENTERED : 0) |
                            (settings->momentum > 0 ? RMSPROP_MOMENTUM : 0)];
}

static inline const Optimizer *optimizer_choose_muon(const OptimizerSettings *settings) {
  (void)settings;
  return &optimizer_muon;
}

enum { OPTIMIZERS = 5 };

/* The usual settings are PyTorch's; Muon's learning rate is what served mlp_mnist best. */
static inline const OptimizerChoice *optimizer_at(int i) {
  static const OptimizerChoice table[OPTIMIZERS] = {
      {"sgd",
       "a step along the gradient, or along its momentum",
       OPTIMIZER_MOMENTUM | OPTIMIZER_DAMPENING | OPTIMIZER_NESTEROV,
       {0.01, 0.9, 0, 0, 0, 0, 0, 0, 0},
       optimizer_choose_sgd},
      {"adam",
       "steps of about the learning rate, whatever the size of the gradients",
       OPTIMIZER_BETA1 | OPTIMIZER_BETA2 | OPTIMIZER_EPSILON,
       {1e-3, 0, 0, 0, 0.9, 0.999, 1e-8, 0, 0},
       optimizer_choose_adam},
      {"adamw",
       "Adam whose weight decay does not pass through the gradient",
       OPTIMIZER_BETA1 | OPTIMIZER_BETA2 | OPTIMIZER_EPSILON,
       {1e-3, 0, 0.01, 0, 0.9, 0.999, 1e-8, 0, 0},
       optimizer_choose_adamw},
      {"rmsprop",
       "the gradient over a running root mean square of it",
       OPTIMIZER_MOMENTUM | OPTIMIZER_BETA2 | OPTIMIZER_EPSILON | OPTIMIZER_CENTERED,
       {1e-3, 0, 0, 0, 0, 0.99, 1e-8, 0, 0},
       optimizer_choose_rmsprop},
      {"muon",
       "weight matrices along their orthogonalised momentum, the rest by AdamW",
       OPTIMIZER_MOMENTUM | OPTIMIZER_BETA1 | OPTIMIZER_BETA2 | OPTIMIZER_EPSILON,
       {5e-3, 0.95, 0.1, 0, 0.9, 0.999, 1e-8, 0, 0},
       optimizer_choose_muon},
  };
  return i >= 0 && i < OPTIMIZERS ? &table[i] : NULL;
}

/* NULL when there is none of this name. */
static inline const OptimizerChoice *optimizer_named(const char *name) {
  const OptimizerChoice *choice;
  for (int i = 0; (choice = optimizer_at(i)) != NULL; i++)
    if (strcmp(choice->name, name) == 0) return choice;
  return NULL;
}

static inline Hyper optimizer_hyper(const OptimizerSettings *settings) {
  Hyper hyper;
  memset(&hyper, 0, sizeof hyper);
  hyper.lr = (float)settings->lr;
  hyper.momentum = (float)settings->momentum;
  hyper.weight_decay = (float)settings->weight_decay;
  hyper.dampening = (float)settings->dampening;
  hyper.epsilon = (float)settings->epsilon;
  hyper.beta1 = settings->beta1;
  hyper.beta2 = settings->beta2;
  return hyper;
}

/* -1 where `given` settings (bits) are not of this optimizer, or contradict each other. */
static inline int optimizer_check(const OptimizerChoice *choice, const OptimizerSettings *settings, unsigned given,
                                  Error *err) {
  char reads[128] = "";
  for (int i = 0, used = 0; i < OPTIMIZER_SETTINGS; i++)
    if (choice->reads >> i & 1)
      used += snprintf(reads + used, sizeof reads - (size_t)used, "%s--%s", used ? ", " : "", optimizer_setting(i));
  for (int i = 0; i < OPTIMIZER_SETTINGS; i++)
    if ((given & ~choice->reads) >> i & 1)
      return error_set(err, "--%s: --optimizer=%s does not use it; its own settings are %s", optimizer_setting(i),
                       choice->name, reads);
  if (choice != optimizer_named("sgd")) return 0;
  if (settings->nesterov && !(settings->momentum > 0 && settings->dampening == 0))
    return error_set(err,
                     "--nesterov needs a --momentum above 0 and no --dampening; here they are %g and %g: leave it out, "
                     "or give --momentum=0.9",
                     settings->momentum, settings->dampening);
  if (settings->dampening > 0 && settings->momentum == 0)
    return error_set(err, "--dampening=%g is of the momentum, which is 0; give --momentum=0.9, or leave it out",
                     settings->dampening);
  return 0;
}

#endif /* COMMON_NN_OPTIMIZER_H */
