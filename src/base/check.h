// CHECK(condition): aborts with file, line and the condition when it is false, in every build.
// DCHECK(condition): the same in debug builds only; for inner loops.
//
// Both are for programmer errors. Input (files, flags, requests) is answered with absl::Status and must never reach one.
#pragma once

namespace pith {

// Prints "file:line: CHECK failed: condition" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace pith

#define CHECK(condition) (static_cast<bool>(condition) ? (void)0 : ::pith::CheckFailed(__FILE__, __LINE__, #condition))
#define CHECK_EQ(a, b) CHECK((a) == (b))
#define CHECK_NE(a, b) CHECK((a) != (b))
#define CHECK_LT(a, b) CHECK((a) < (b))
#define CHECK_LE(a, b) CHECK((a) <= (b))
#define CHECK_GE(a, b) CHECK((a) >= (b))
#define CHECK_GT(a, b) CHECK((a) > (b))

#ifdef PITH_DCHECK
#define DCHECK(condition) CHECK(condition)
#else
#define DCHECK(condition) (void)sizeof(static_cast<bool>(condition))
#endif
