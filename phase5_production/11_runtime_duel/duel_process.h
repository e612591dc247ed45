/* duel_process.h - a contender: a process that answers questions, one line of JSON for each.
 *
 *     const char *argv[] = {"/usr/bin/python3", "duel_torch.py", ..., NULL};
 *     DuelProcess p;
 *     if (duel_process_start(&p, argv, &err) != 0) ...
 *     json_t *answer = duel_process_ask(&p, "times 100", 60, &err);   // NULL: a sentence, with what it said on stderr
 *     duel_process_end(&p);
 *
 * A process of its own for each contender: one start to measure, memory that is nobody else's, no library that meets
 * another version of itself, and a crash is a row of the table. The contenders wait for a question while others are
 * measured.
 *
 * What a contender must answer (line -> answer):
 *   (its start)   {"first":1}             the first answer, to one sample, is there; or {"missing":"why"}
 *   batch B       {"ready":B}             B samples from now on: prepared, run once, its outputs in the file --y
 *   times N       {"times":[...]}         N runs, each waited for: seconds
 *   stream N      {"seconds":S}           N runs, waited for at the end
 *   facts         {"host_bytes":, "loaded_bytes":, "name":}      peak of the memory; files that the process has mapped
 *   quit          (ends)
 */
#ifndef PHASE5_PRODUCTION_DUEL_PROCESS_H
#define PHASE5_PRODUCTION_DUEL_PROCESS_H

#include "common/error.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/interrupt.h"
#include "common/timer.h"

enum { DUEL_LINE = 1 << 20 };

typedef struct DuelProcess {
  pid_t pid; /* 0: none */
  FILE *to;
  int from;
  FILE *said;    /* its stderr, a file without a name */
  char *line;    /* (DUEL_LINE) what has come */
  size_t length; /* of it */
} DuelProcess;

/* The last line of a contender's stderr. */
static inline void duel_process_last_words(const DuelProcess *p, char *text, size_t size) {
  char buffer[2048];
  const long end = p->said && fseek(p->said, 0, SEEK_END) == 0 ? ftell(p->said) : 0;
  text[0] = '\0';
  if (end <= 0) return;
  fseek(p->said, end > 2047 ? end - 2047 : 0, SEEK_SET);
  buffer[fread(buffer, 1, sizeof buffer - 1, p->said)] = '\0';
  for (char *line = strtok(buffer, "\n"); line; line = strtok(NULL, "\n"))
    if (line[strspn(line, " ")] != '\0') snprintf(text, size, "%s", line);
}

/* Kills it if it does not end by itself. */
static inline void duel_process_end(DuelProcess *p) {
  if (p->pid > 0) {
    if (p->to) {
      fputs("quit\n", p->to);
      fclose(p->to);
    }
    int status, ended = 0;
    for (int i = 0; i < 300 && !ended; i++) {
      ended = waitpid(p->pid, &status, WNOHANG) != 0;
      if (!ended) usleep(10000);
    }
    if (!ended) {
      kill(p->pid, SIGKILL);
      waitpid(p->pid, &status, 0);
    }
    close(p->from);
  }
  if (p->said) fclose(p->said);
  free(p->line);
  memset(p, 0, sizeof *p);
}

static inline int duel_process_start(DuelProcess *p, const char *const *argv, Error *err) {
  int in[2], out[2];
  memset(p, 0, sizeof *p);
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return error_set(err, "no pipe: %s", strerror(errno));
  p->said = tmpfile();
  if (p->said == NULL) return error_set(err, "no temporary file: %s", strerror(errno));
  fflush(NULL);
  p->pid = fork();
  if (p->pid < 0) return error_set(err, "%s cannot be started: %s", argv[0], strerror(errno));
  if (p->pid == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(fileno(p->said), 2);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    fprintf(stderr, "%s cannot be started: %s\n", argv[0], strerror(errno));
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  p->to = fdopen(in[1], "w");
  p->from = out[0];
  p->line = (char *)xmalloc(DUEL_LINE);
  return 0;
}

/* The next line; NULL: the time is up, or the process has ended, or what it says is no JSON. */
static inline json_t *duel_process_answer(DuelProcess *p, double seconds, Error *err) {
  const double until = seconds_now() + seconds;
  char words[300];
  for (;;) {
    char *end = (char *)memchr(p->line, '\n', p->length);
    if (end) {
      json_error_t why;
      json_t *answer = json_loadb(p->line, (size_t)(end - p->line), 0, &why);
      if (answer == NULL)
        error_set(err, "it answered \"%.*s\"", (int)(end - p->line < 80 ? end - p->line : 80), p->line);
      p->length -= (size_t)(end + 1 - p->line);
      memmove(p->line, end + 1, p->length);
      return answer;
    }
    struct pollfd ready = {p->from, POLLIN, 0};
    const double left = until - seconds_now();
    const int status = left > 0 ? poll(&ready, 1, (int)(left * 1000) + 1) : 0;
    if (interrupt_requested()) {
      error_set_code(err, ERROR_INTERRUPTED, "stopped");
      return NULL;
    }
    if (status < 0 && errno == EINTR) continue;
    if (status <= 0) {
      error_set(err, "no answer within %.0f s", seconds);
      return NULL;
    }
    const ssize_t got = p->length < DUEL_LINE ? read(p->from, p->line + p->length, DUEL_LINE - p->length) : 0;
    if (got <= 0) {
      duel_process_last_words(p, words, sizeof words);
      error_set(err, "%s", words[0] ? words : "it ended without a word");
      return NULL;
    }
    p->length += (size_t)got;
  }
}

static inline json_t *duel_process_ask(DuelProcess *p, const char *question, double seconds, Error *err) {
  fprintf(p->to, "%s\n", question);
  fflush(p->to);
  return duel_process_answer(p, seconds, err);
}

#endif /* PHASE5_PRODUCTION_DUEL_PROCESS_H */
