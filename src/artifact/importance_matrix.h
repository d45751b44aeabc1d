// Importance matrices of llama.cpp ("imatrix"): per weight matrix and column, the sum of squares of the inputs it met. Quantizers weigh the
// errors of a column with the mean square of its inputs. Read and written in the old .dat form and as GGUF.
// Source: llama.cpp tools/imatrix; docs/formats/imatrix.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith {

struct ImportanceMatrix {
  struct Entry {
    std::vector<float> sum_squares;  // [in], finite and >= 0
    float count = 0;                 // what they are divided by; 0: the matrix met no input
  };
  std::map<std::string, Entry> entries;  // by GGUF tensor name: "blk.0.attn_q.weight"
  std::vector<std::string> datasets;
  int64_t chunk_count = 0, chunk_size = 0;

  // Mean square of the inputs of a matrix with `in` columns; empty where there is no entry, ones where the entry met no input.
  // Errors: kDataLoss for another number of columns.
  absl::StatusOr<std::vector<float>> Importance(const std::string& tensor_name, int64_t in) const;
};

// Errors: kNotFound, kAborted, kDataLoss (path, field, expectation, finding), kUnimplemented (several experts in one matrix).
absl::StatusOr<ImportanceMatrix> ReadImportanceMatrix(const std::string& path);
// The same over bytes; messages do not name a file.
absl::StatusOr<ImportanceMatrix> ParseImportanceMatrix(absl::string_view bytes);

// Whether a path names an importance matrix rather than a model: a file that is not GGUF, or GGUF of general.type "imatrix". Errors: those
// of reading a GGUF file.
absl::StatusOr<bool> IsImportanceMatrix(const std::string& path);

// As GGUF. Errors: those of GgufWriter.
absl::Status WriteImportanceMatrix(const ImportanceMatrix& matrix, const std::string& path);
// In the old form, which has no place for chunk_size, and none for matrices that met no input: those are left out. Refuses a path that
// exists. Errors: kPermissionDenied, kAborted; kDataLoss when no matrix met any input.
absl::Status WriteLegacyImportanceMatrix(const ImportanceMatrix& matrix, const std::string& path);

}  // namespace pith
