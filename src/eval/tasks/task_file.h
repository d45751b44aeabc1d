// Files of questions, read as they are published: GSM8K, MGSM, HumanEval, MMLU, ARC, HellaSwag, LAMBADA, and a user's own rows.
//
// A format is recognised by the first record, never by the file's name; gzip is undone. Further formats: a row in task_formats.cc.
// Formats, prompts and what counts as correct: docs/tasks.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "eval/tasks/task_item.h"

namespace pith {

struct TaskReadOptions {
  std::string format;  // name of a format; empty: recognised
  int64_t limit = 0;   // items, the first ones; 0: all
  int64_t shots = 0;   // the first rows that become solved examples before every question and are not asked; GSM8K and MGSM only
};

struct TaskFile {
  std::string source;  // path as given
  std::string format;
  std::vector<TaskItem> items;  // at least one; ids are unique
};

// Errors: kNotFound (no such file); kDataLoss, "path:line: ..." where one line is to blame: not UTF-8, bad JSON, a row that lacks
// something, an unknown key of a user's row (with the nearest known one), no format that fits, no items; kInvalidArgument (options).
absl::StatusOr<TaskFile> ReadTaskFile(const std::string& path, const TaskReadOptions& options = {});
// The same of content in memory. `source` stands for the path in messages.
absl::StatusOr<TaskFile> ParseTaskFile(const std::string& source, absl::string_view content, const TaskReadOptions& options = {});

// The format of a file's content, which may be cut short after its first record; empty when it is none (running text, for example).
std::string RecognizeTaskFormat(absl::string_view content);
std::vector<std::string> TaskFormatNames();

}  // namespace pith
