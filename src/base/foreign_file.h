// Recognizes what people hand over in place of a model file, so that the error says what happened and what to do.
// Thread-safe, no state.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace pith {

// What the first bytes of a file show: "a Git LFS pointer (run `git lfs pull`)", "an HTML page ...", "a Python pickle ...",
// "a GGUF file", "a safetensors file", ... Empty when nothing is recognized. Looks at the first 512 bytes at most.
std::string DescribeContent(absl::string_view content);

// Whether the name ends like a pickled checkpoint (.bin, .pt, .pth, .ckpt, .pkl). Such files are never opened: unpickling runs code.
bool HasPickleName(absl::string_view path);

// The sentence to add to an error: ", found a Git LFS pointer ..." or "" when nothing is recognized.
std::string FoundContent(absl::string_view content);

}  // namespace pith
