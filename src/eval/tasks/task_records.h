// Records of a file of questions: JSON objects one a line, or fields separated by tabs or commas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"

namespace pith {

enum class RecordContainer { kJsonLines, kTabs, kCommas };

struct TaskRecord {
  int64_t line = 0;                 // where it begins, from 1
  Json object;                      // kJsonLines
  std::vector<std::string> fields;  // kTabs, kCommas
};

// Walks over `content`, which must outlive it. The container is told from the first line that is not blank: an object, a tab, or neither.
class RecordReader {
 public:
  explicit RecordReader(absl::string_view content);

  RecordContainer container() const { return container_; }
  // The next record; nullopt at the end. Blank lines are passed over. Fields in quotes may hold commas, line breaks and doubled quotes
  // (RFC 4180); tabs separate without quoting. Errors: kDataLoss, with "line N: " in front.
  absl::StatusOr<std::optional<TaskRecord>> Next();

 private:
  absl::string_view TakeLine();
  absl::Status ReadQuotedFields(TaskRecord* record);

  absl::string_view rest_;
  int64_t line_ = 0;  // lines taken
  RecordContainer container_;
};

}  // namespace pith
