/* network_bench.h - how long a training step of a network takes, or its inference, and which operation takes it.
 *
 * It times the network of a Task:
 *
 *     int main(int argc, char **argv) { return network_bench_main(&task, argc, argv); }
 *
 * A step is what a classifier does: gather a batch from the data set on the device, forward, loss, backward, update;
 * with --resident the batch lies there already, and with --graph the kernels of such a step are one CUDA graph, which
 * is recorded once and launched again and again. With --inference it is the forward pass of a model opened to infer, on
 * a batch that lies there. The table below it times each operation alone, many times in a row, so its sum differs a
 * little from the step: caches are warmer, and on a GPU an operation shorter than a launch (about 2 us) is bounded by
 * the launch.
 *
 * With --trainer it is one step of the training loop (trainer.h) with all that belongs to it, beside the same step
 * alone.
 */
#ifndef COMMON_NN_NETWORK_BENCH_H
#define COMMON_NN_NETWORK_BENCH_H

#include "common/nn/session.h"

/* The program's exit status. */
int network_bench_main(const Task *task, int argc, char **argv);

#endif /* COMMON_NN_NETWORK_BENCH_H */
