// VARVE_ASSERT(condition): stops the process where an invariant of the program does not hold.
//
// An assertion states what the code itself guarantees. Whatever a client, a file or the kernel can
// bring about is no invariant: it is answered with a status. Debug, test, sanitizer and fuzz builds
// evaluate the condition; Release builds compile it, so that it cannot rot, and never evaluate it
// (VARVE_ASSERTIONS, cmake/compiler.cmake).
//
// Thread-safety: may be used on any thread.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace varve {

// Writes what failed, and where, to standard error and aborts.
[[noreturn]] inline void AssertionFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: VARVE_ASSERT(%s) does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace varve

#if defined(VARVE_ASSERTIONS)
#define VARVE_ASSERT(condition)                        \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::varve::AssertionFailed(#condition, __FILE__, __LINE__))
#else
#define VARVE_ASSERT(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif
