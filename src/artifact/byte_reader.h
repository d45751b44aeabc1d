// A bounds-checked cursor over little-endian bytes, for binary headers. Every error says what was being read and where.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/status.h"

namespace pith {

// Borrows the bytes. Not thread-safe.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  // A scalar. `what` names it: "tensor count". Errors: kDataLoss when fewer bytes are left.
  template <typename T> absl::StatusOr<T> Read(absl::string_view what) {
    if (remaining() < sizeof(T)) return TooShort(what, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  // The next `size` bytes, borrowed. Errors: kDataLoss when fewer are left.
  absl::StatusOr<absl::string_view> ReadBytes(uint64_t size, absl::string_view what);

 private:
  absl::Status TooShort(absl::string_view what, uint64_t size) const;

  absl::string_view bytes_;
  uint64_t position_ = 0;
};

}  // namespace pith
