// Any bytes: ParseEvidence gives evidence that is read back as it is written, or kDataLoss with a printable message.
#include <cstddef>
#include <cstdint>

#include "artifact/evidence.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = pith::ParseEvidence({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) {
    CHECK(parsed.status().code() == absl::StatusCode::kDataLoss);
    for (const char c : parsed.status().message()) CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
    return 0;
  }
  const auto again = pith::ParseEvidence(pith::DumpJson(pith::ToJson(*parsed)));
  CHECK(again.ok() && *again == *parsed);
  return 0;
}
