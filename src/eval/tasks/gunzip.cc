#include "eval/tasks/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/status.h"

namespace pith {
namespace {

constexpr size_t kChunkBytes = 64 << 10;
constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, and its sign for a gzip header

struct Inflater {
  z_stream stream{};
  bool open = false;

  Inflater() { open = inflateInit2(&stream, kGzipWindow) == Z_OK; }
  ~Inflater() {
    if (open) inflateEnd(&stream);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

absl::Status Damaged(const z_stream& stream, int result) {
  if (result == Z_MEM_ERROR) return OutOfMemoryError("gzip: no memory");
  return BadFileError("gzip: expected a whole compressed stream, found ",
                      result == Z_BUF_ERROR || stream.msg == nullptr ? "its end missing" : stream.msg);
}

}  // namespace

bool IsGzip(absl::string_view bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

absl::StatusOr<std::string> Gunzip(absl::string_view bytes, size_t max_bytes) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  if (!inflater.open) return OutOfMemoryError("gzip: no memory");
  if (bytes.size() > std::numeric_limits<uInt>::max())
    return BadFileError("gzip: expected less than 4 GiB, found ", bytes.size(), " bytes");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string content;
  char chunk[kChunkBytes];
  while (true) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk);
    stream.avail_out = sizeof(chunk);
    const int result = inflate(&stream, Z_NO_FLUSH);
    const size_t produced = sizeof(chunk) - stream.avail_out;
    if (result != Z_OK && result != Z_STREAM_END) return Damaged(stream, result);
    if (produced > max_bytes - content.size()) return BadFileError("gzip: expected at most ", max_bytes, " bytes of content, found more");
    content.append(chunk, produced);
    if (result != Z_STREAM_END) continue;
    if (stream.avail_in == 0) return content;
    if (inflateReset(&stream) != Z_OK) return Damaged(stream, Z_DATA_ERROR);  // another member follows
  }
}

}  // namespace pith
