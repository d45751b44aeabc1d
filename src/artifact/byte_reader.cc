#include "artifact/byte_reader.h"

namespace pith {

absl::StatusOr<absl::string_view> ByteReader::ReadBytes(uint64_t size, absl::string_view what) {
  if (remaining() < size) return TooShort(what, size);
  const absl::string_view bytes = bytes_.substr(position_, size);
  position_ += size;
  return bytes;
}

absl::Status ByteReader::TooShort(absl::string_view what, uint64_t size) const {
  return BadFileError(what, ": expected ", size, " bytes at offset ", position_, ", found ", remaining(), " before the end of the file");
}

}  // namespace pith
