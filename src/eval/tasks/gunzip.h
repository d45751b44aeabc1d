// Files compressed with gzip, whole in memory.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith {

bool IsGzip(absl::string_view bytes);  // by the first two bytes

// The content of a gzip file of one or more members (RFC 1952), checksums checked.
// Errors: kDataLoss (damaged, cut short, trailing bytes that are no member, or more than max_bytes of content); kResourceExhausted.
absl::StatusOr<std::string> Gunzip(absl::string_view bytes, size_t max_bytes);

}  // namespace pith
