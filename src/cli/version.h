// Version of the binary.
#pragma once

#include <string>

namespace pith {

constexpr char kVersion[] = "0.1.0";

// "pith 0.1.0 (g++ 12.2.0, avx512_vnni)"
std::string VersionText();

// Abbreviated commit this binary was built from; "unknown" outside a repository.
std::string BuildCommit();

// What no other build of this program has: the build id that the linker made from the binary's content, as hex digits; empty where the
// linker made none.
std::string BuildId();

}  // namespace pith
