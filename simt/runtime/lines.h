/* lines.h - file, line and function of an address in the program. */
#ifndef SIMT_LINES_H
#define SIMT_LINES_H

#include <stdint.h>

typedef struct SimtFrame {
  char function[1024]; /* "void add<4>(float*, int)"; "?": unknown */
  const char *file;    /* as the compiler was given it, behind its folder */
  int line;
} SimtFrame;

/* The functions that are at an address (as the linker placed it), the innermost of those inlined there first, each with
 * the line that it has come to. Gives how many, at most `most`; 0: the program has no debugging information for it. */
int simt_frames(uintptr_t address, SimtFrame *frame, int most);

/* The file that holds this code, and where it lies: the program, or the shared library the runtime was linked into. */
const char *simt_program_file(void);
uintptr_t simt_program_base(void);

#endif /* SIMT_LINES_H */
