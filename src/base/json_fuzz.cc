// Any bytes: ParseJson gives a document that survives a round trip, or kDataLoss with a printable message; and it never accepts what the
// library's own parser refuses.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = pith::ParseJson(text, {.max_depth = 16, .max_bytes = 1 << 16});
  if (!parsed.ok()) {
    CHECK(parsed.status().code() == absl::StatusCode::kDataLoss);
    for (const char c : parsed.status().message()) CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
    return 0;
  }
  CHECK(pith::Json::accept(text.begin(), text.end()));
  const auto again = pith::ParseJson(pith::DumpJson(*parsed));
  CHECK(again.ok() && *again == *parsed);
  return 0;
}
