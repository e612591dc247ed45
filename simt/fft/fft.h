/* fft.h - what cufft.c needs of kissfft: transforms of one line of complex numbers of any length, in double.
 *
 * Debian packages kissfft's C library for float alone, and its real and multi-dimensional functions take even lengths
 * only. Its C++ template takes any length and type, so cufft.c does the rest itself. */
#ifndef SIMT_FFT_H
#define SIMT_FFT_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SimtFft SimtFft; /* of one length and direction; for one thread at a time */

SimtFft *simt_fft_open(long long length, int inverse); /* NULL: no memory */
/* `from` and `to` are different: (real, imaginary) pairs. Not scaled. */
void simt_fft_line(SimtFft *fft, const double *from, double *to);
void simt_fft_close(SimtFft *fft);

#ifdef __cplusplus
}
#endif

#endif /* SIMT_FFT_H */
