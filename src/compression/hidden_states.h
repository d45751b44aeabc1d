// The hidden states of the calibration sequences between two decoder layers, in a file: memory holds one sequence, and a run that was
// stopped goes on from it. f32 [tokens, hidden_size] of each sequence, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/file.h"

namespace pith {

// Errors of both: kAborted (I/O), kPermissionDenied (cannot create).
class HiddenStatesWriter {
 public:
  static absl::StatusOr<HiddenStatesWriter> Create(const std::string& path);
  // The next sequence.
  absl::Status Append(absl::Span<const float> hidden);
  absl::Status Commit() { return file_.Commit(); }

 private:
  explicit HiddenStatesWriter(AtomicFileWriter file) : file_(std::move(file)) {}
  AtomicFileWriter file_;
};

// Thread-safe to read.
class HiddenStatesReader {
 public:
  // `lengths`: tokens per sequence. Errors: kNotFound; kDataLoss for a file of another size.
  static absl::StatusOr<HiddenStatesReader> Open(const std::string& path, absl::Span<const int64_t> lengths, int64_t hidden_size);

  int64_t num_sequences() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  // Resizes `out` to [tokens, hidden_size].
  absl::Status Read(int64_t sequence, std::vector<float>& out) const;

 private:
  HiddenStatesReader(RandomAccessFile file, std::vector<uint64_t> offsets) : file_(std::move(file)), offsets_(std::move(offsets)) {}
  RandomAccessFile file_;
  std::vector<uint64_t> offsets_;  // in bytes, of each sequence and of the end
};

}  // namespace pith
