// The table of formats that task_file.h reads. One row each.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "eval/tasks/task_item.h"
#include "eval/tasks/task_records.h"

namespace pith {

// A record as a question. `item.id` may be empty: it is numbered then.
struct TaskQuestion {
  TaskItem item;
  // Of formats with shots: what a solved example writes after item.prompt, and as the answer to item.messages.
  std::string solution, solution_message;
};

struct TaskFormat {
  absl::string_view name;   // of the format and of the task
  absl::string_view slice;  // empty: the rows say it
  RecordContainer container;
  absl::string_view shape;  // of a record, for messages and documents
  bool has_shots;           // published few-shot figures are made with rows of the same kind
  bool (*recognizes)(const TaskRecord& record);
  // `language` is that of the whole file. Errors: kDataLoss naming what is missing.
  absl::StatusOr<TaskQuestion> (*read)(const TaskRecord& record, const std::string& language);
};

// Rows that recognise more special records come first.
absl::Span<const TaskFormat> TaskFormats();

// Rows of the table, by file.
bool IsGsm8k(const TaskRecord& record);
absl::StatusOr<TaskQuestion> ReadGsm8k(const TaskRecord& record, const std::string& language);
bool IsMgsm(const TaskRecord& record);
absl::StatusOr<TaskQuestion> ReadMgsm(const TaskRecord& record, const std::string& language);
bool IsHumanEval(const TaskRecord& record);
absl::StatusOr<TaskQuestion> ReadHumanEval(const TaskRecord& record, const std::string& language);
bool IsLambada(const TaskRecord& record);
absl::StatusOr<TaskQuestion> ReadLambada(const TaskRecord& record, const std::string& language);

bool IsMmlu(const TaskRecord& record);
absl::StatusOr<TaskQuestion> ReadMmlu(const TaskRecord& record, const std::string& language);
bool IsMmluCsv(const TaskRecord& record);
absl::StatusOr<TaskQuestion> ReadMmluCsv(const TaskRecord& record, const std::string& language);
bool IsArc(const TaskRecord& record);
absl::StatusOr<TaskQuestion> ReadArc(const TaskRecord& record, const std::string& language);
bool IsHellaSwag(const TaskRecord& record);
absl::StatusOr<TaskQuestion> ReadHellaSwag(const TaskRecord& record, const std::string& language);

bool IsUserRow(const TaskRecord& record);
absl::StatusOr<TaskQuestion> ReadUserRow(const TaskRecord& record, const std::string& language);

}  // namespace pith
