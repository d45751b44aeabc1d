#include "compression/hidden_states.h"

#include "base/status.h"

namespace pith {

absl::StatusOr<HiddenStatesWriter> HiddenStatesWriter::Create(const std::string& path) {
  ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  return HiddenStatesWriter(std::move(file));
}

absl::Status HiddenStatesWriter::Append(absl::Span<const float> hidden) {
  return file_.Append(absl::Span<const uint8_t>(reinterpret_cast<const uint8_t*>(hidden.data()), hidden.size() * sizeof(float)));
}

absl::StatusOr<HiddenStatesReader> HiddenStatesReader::Open(const std::string& path, absl::Span<const int64_t> lengths,
                                                            int64_t hidden_size) {
  ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(path));
  std::vector<uint64_t> offsets = {0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + static_cast<uint64_t>(length * hidden_size) * sizeof(float));
  if (file.size() != offsets.back()) return BadFileError(path, ": expected ", offsets.back(), " bytes, found ", file.size());
  return HiddenStatesReader(std::move(file), std::move(offsets));
}

absl::Status HiddenStatesReader::Read(int64_t sequence, std::vector<float>& out) const {
  const uint64_t begin = offsets_[static_cast<size_t>(sequence)], bytes = offsets_[static_cast<size_t>(sequence) + 1] - begin;
  out.resize(bytes / sizeof(float));
  return file_.ReadAt(begin, absl::MakeSpan(reinterpret_cast<uint8_t*>(out.data()), bytes));
}

}  // namespace pith
