/* kiss.cpp - fft.h by kissfft's template. */
#include "fft.h"

#if defined __has_include && !__has_include(<kissfft/kissfft.hh>)
#error "the emulated cuFFT needs kissfft: apt install libkissfft-dev (or run ./setup.sh)"
#endif
#include <kissfft/kissfft.hh>
#include <new>

struct SimtFft {
  kissfft<double> lines;
  SimtFft(size_t length, bool inverse) : lines(length, inverse) {}
};

SimtFft *simt_fft_open(long long length, int inverse) {
  try {
    return new SimtFft((size_t)length, inverse != 0);
  } catch (const std::bad_alloc &) {
    return NULL;
  }
}

void simt_fft_line(SimtFft *fft, const double *from, double *to) {
  fft->lines.transform((const std::complex<double> *)from, (std::complex<double> *)to);
}

void simt_fft_close(SimtFft *fft) { delete fft; }
