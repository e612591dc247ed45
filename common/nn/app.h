/* app.h - the program around a task: command line, training run, results, --predict, --show-features, --summary.
 *
 *     int main(int argc, char **argv) { return app_main(&task, argc, argv); }
 *
 * train_options.h has the options, session.h makes the network, trainer.h trains it, run_folder.h keeps what comes of
 * it, report.h draws it, predict.h and show.h use it.
 */
#ifndef COMMON_NN_APP_H
#define COMMON_NN_APP_H

#include "common/nn/session.h"

int app_main(const Task *task, int argc, char **argv);

/* Ctrl-C and SIGTERM end the program from here on, which has nothing to save yet. app_begin_program() begins with it; a
 * program that reads files before calls it first. */
void app_begin_signals(void);

/* Its two halves, for a program that looks at the options in between. First of all: what the command line says. */
void app_begin_program(const Task *task, TrainOptions *options, int argc, char **argv);

/* What the options ask for. `started`: when the program was. Returns its exit status. */
int app_do(const Task *task, TrainOptions *options, double started);

#endif /* COMMON_NN_APP_H */
