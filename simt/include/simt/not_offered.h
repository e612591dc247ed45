/* not_offered.h - names of NVIDIA's that the emulation does not offer: using one is an error of the compiler, with
 * the reason. */
#ifndef SIMT_NOT_OFFERED_H
#define SIMT_NOT_OFFERED_H

#if defined(__GNUC__) && !defined(__clang__) || __clang_major__ >= 14
#define SIMT_NOT_OFFERED(reason) __attribute__((error(reason)))
#else
#define SIMT_NOT_OFFERED(reason) /* the linker will say so */
#endif

#ifdef __cplusplus
#define SIMT_NOT_OFFERED_FUNCTION(type, name, reason) extern "C" type name(...) SIMT_NOT_OFFERED(#name ": " reason)
#else
#define SIMT_NOT_OFFERED_FUNCTION(type, name, reason) type name() SIMT_NOT_OFFERED(#name ": " reason)
#endif

#if defined(__clang__) || __GNUC__ >= 12
#define SIMT_NOT_OFFERED_TYPE(name, reason) typedef int name __attribute__((unavailable(reason)))
#else
#define SIMT_NOT_OFFERED_TYPE(name, reason)
#endif

#endif /* SIMT_NOT_OFFERED_H */
