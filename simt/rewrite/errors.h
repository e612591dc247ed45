/* errors.h - messages about what is refused: FILE:LINE: error: simt: the reason, and what to do. */
#ifndef SIMT_REWRITE_ERRORS_H
#define SIMT_REWRITE_ERRORS_H

extern int errors; /* so many have been printed */

/* As printf(). The first message of each line alone is printed, since others may follow from it. */
__attribute__((format(printf, 3, 4))) void refuse_at(const char *file, int line, const char *format, ...);
/* For a call: every different message is printed, once, for a template is seen as often as it is instantiated. */
__attribute__((format(printf, 3, 4))) void refuse_call_at(const char *file, int line, const char *format, ...);

#endif /* SIMT_REWRITE_ERRORS_H */
