/* absent.h - names of NVIDIA's that the emulation does not offer: using one is an error of the compiler, with the reason. */
#ifndef SIMT_ABSENT_H
#define SIMT_ABSENT_H

#if defined(__GNUC__) && !defined(__clang__) || __clang_major__ >= 14
#define SIMT_ABSENT(reason) __attribute__((error(reason)))
#else
#define SIMT_ABSENT(reason) /* the linker will say so */
#endif

#ifdef __cplusplus
#define SIMT_ABSENT_FUNCTION(type, name, reason) extern "C" type name(...) SIMT_ABSENT(#name ": " reason)
#else
#define SIMT_ABSENT_FUNCTION(type, name, reason) type name() SIMT_ABSENT(#name ": " reason)
#endif

#endif /* SIMT_ABSENT_H */
