#include "eval/tasks/task_records.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace pith {
namespace {

RecordContainer ContainerOf(absl::string_view content) {
  content = absl::StripLeadingAsciiWhitespace(content);
  if (absl::StartsWith(content, "{")) return RecordContainer::kJsonLines;
  return absl::StrContains(content.substr(0, content.find('\n')), '\t') ? RecordContainer::kTabs : RecordContainer::kCommas;
}

}  // namespace

RecordReader::RecordReader(absl::string_view content) : rest_(content), container_(ContainerOf(content)) {}

absl::string_view RecordReader::TakeLine() {
  const size_t end = rest_.find('\n');
  absl::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(end == absl::string_view::npos ? rest_.size() : end + 1);
  ++line_;
  absl::ConsumeSuffix(&line, "\r");
  return line;
}

// From the start of a record to the line break behind its last field.
absl::Status RecordReader::ReadQuotedFields(TaskRecord* record) {
  std::string field;
  bool quoted = false;
  record->line = line_ + 1;
  const auto annotate = [&](const absl::Status& status) { return Annotate(status, absl::StrCat("line ", record->line)); };
  while (!rest_.empty()) {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    line_ += c == '\n' ? 1 : 0;
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (absl::ConsumePrefix(&rest_, "\"")) {
        field += '"';
      } else {
        quoted = false;
      }
    } else if (c == '"' && field.empty()) {
      quoted = true;
    } else if (c == ',') {
      record->fields.push_back(std::move(field));
      field.clear();
    } else if (c == '\n') {
      break;
    } else if (c != '\r' || !absl::StartsWith(rest_, "\n")) {
      field += c;
    }
  }
  if (quoted) return annotate(BadFileError("expected a closing quote, found the end of the file"));
  record->fields.push_back(std::move(field));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TaskRecord>> RecordReader::Next() {
  while (!rest_.empty()) {
    if (absl::StripAsciiWhitespace(rest_.substr(0, rest_.find('\n'))).empty()) {
      TakeLine();
      continue;
    }
    TaskRecord record;
    if (container_ == RecordContainer::kCommas) {
      RETURN_IF_ERROR(ReadQuotedFields(&record));
      return record;
    }
    const absl::string_view line = TakeLine();
    record.line = line_;
    if (container_ == RecordContainer::kTabs) {
      record.fields = absl::StrSplit(line, '\t');
      return record;
    }
    auto object = ParseJson(line);
    const std::string where = absl::StrCat("line ", line_);
    if (!object.ok()) return Annotate(object.status(), where);
    if (!object->is_object()) return Annotate(BadFileError("expected a JSON object, found ", object->type_name()), where);
    record.object = *std::move(object);
    return record;
  }
  return std::nullopt;
}

}  // namespace pith
