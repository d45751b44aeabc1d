#include "eval/tasks/task_file.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/tasks/gunzip.h"
#include "eval/tasks/language.h"
#include "eval/tasks/task_formats.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr size_t kMaxContentBytes = size_t{1} << 30;
constexpr size_t kLanguageBytes = 64 << 10;  // of a file, by which its language is told

absl::string_view WithoutByteOrderMark(absl::string_view content) {
  absl::ConsumePrefix(&content, "\xEF\xBB\xBF");
  return content;
}

// The first bytes, not in the middle of a character.
absl::string_view Beginning(absl::string_view content, size_t bytes) {
  if (content.size() <= bytes) return content;
  while (bytes > 0 && (static_cast<unsigned char>(content[bytes]) & 0xC0) == 0x80) --bytes;
  return content.substr(0, bytes);
}

absl::Status CheckUtf8(absl::string_view content) {
  if (IsValidUtf8(content)) return absl::OkStatus();
  int64_t line = 1;
  for (size_t i = 0; i < content.size();) {
    const Utf8Step step = NextUtf8(content.substr(i));
    if (step.state != Utf8Step::kValid) break;
    line += content[i] == '\n' ? 1 : 0;
    i += step.length;
  }
  return BadFileError("line ", line, ": expected UTF-8, found other bytes");
}

const TaskFormat* RecognizeRecord(const TaskRecord& record, RecordContainer container) {
  for (const TaskFormat& format : TaskFormats()) {
    if (format.container == container && format.recognizes(record)) return &format;
  }
  return nullptr;
}

std::string FoundShape(const TaskRecord& record) {
  if (!record.fields.empty()) return absl::StrCat(record.fields.size(), " fields");
  std::vector<std::string> keys;
  for (const auto& [key, value] : record.object.items()) keys.push_back(Printable(key, 40));
  return absl::StrCat("{", absl::StrJoin(keys, ", "), "}");
}

absl::StatusOr<const TaskFormat*> FormatOf(absl::string_view content, const std::string& wanted) {
  const auto named = std::find_if(TaskFormats().begin(), TaskFormats().end(), [&](const TaskFormat& row) { return row.name == wanted; });
  RecordReader reader(content);
  ASSIGN_OR_RETURN(const auto first, reader.Next());
  if (!first.has_value()) return BadFileError("expected questions, found an empty file");
  if (named != TaskFormats().end()) {
    if (named->container == reader.container()) return &*named;
    return BadFileError("line ", first->line, ": expected ", named->shape, " (format ", named->name, "), found ", FoundShape(*first));
  }
  if (const TaskFormat* format = RecognizeRecord(*first, reader.container()); format != nullptr) return format;
  std::vector<std::string> shapes;
  for (const TaskFormat& row : TaskFormats()) shapes.push_back(absl::StrCat(row.name, " ", row.shape));
  return BadFileError("line ", first->line, ": expected questions in a known format (", absl::StrJoin(shapes, "; "), "), found ",
                      FoundShape(*first));
}

absl::Status CheckOptions(const TaskReadOptions& options) {
  if (options.limit < 0) return FieldError("limit", "expected at least 0, found ", options.limit);
  if (options.shots < 0) return FieldError("shots", "expected at least 0, found ", options.shots);
  const std::vector<std::string> names = TaskFormatNames();
  if (options.format.empty() || std::find(names.begin(), names.end(), options.format) != names.end()) return absl::OkStatus();
  return FieldError("format", "expected one of ", absl::StrJoin(names, ", "), ", found \"", Printable(options.format), "\"");
}

// "line 3: ..." becomes "path:3: ...".
absl::Status WithPath(const absl::Status& status, const std::string& source) {
  absl::string_view message = status.message();
  if (!absl::ConsumePrefix(&message, "line ")) return Annotate(status, source);
  return absl::Status(status.code(), absl::StrCat(source, ":", message));
}

// Questions of a file, and the solved examples that come before each.
class TaskFileBuilder {
 public:
  TaskFileBuilder(const TaskFormat& format, std::string language, const TaskReadOptions& options)
      : format_(format), language_(std::move(language)), options_(options) {}

  bool full() const { return options_.limit > 0 && static_cast<int64_t>(items_.size()) >= options_.limit; }

  absl::Status Add(const TaskRecord& record) {
    ASSIGN_OR_RETURN(TaskQuestion question, format_.read(record, language_));
    TaskItem& item = question.item;
    item.task = std::string(format_.name);
    if (!format_.slice.empty()) item.slice = std::string(format_.slice);
    if (item.id.empty()) item.id = absl::StrCat(format_.name, "/", rows_);
    ++rows_;
    if (!ids_.insert(item.id).second) return BadFileError("expected an id of its own, found \"", Printable(item.id), "\" again");
    if (rows_ <= options_.shots) {
      absl::StrAppend(&examples_, item.prompt, " ", question.solution, "\n\n");
      turns_.push_back(item.messages.back());
      turns_.push_back({"assistant", std::move(question.solution_message)});
      return absl::OkStatus();
    }
    item.prompt.insert(0, examples_);
    item.messages.insert(item.messages.begin(), turns_.begin(), turns_.end());
    items_.push_back(std::move(item));
    return absl::OkStatus();
  }

  std::vector<TaskItem> TakeItems() { return std::move(items_); }
  int64_t rows() const { return rows_; }

 private:
  const TaskFormat& format_;
  const std::string language_;
  const TaskReadOptions& options_;
  int64_t rows_ = 0;
  absl::flat_hash_set<std::string> ids_;
  std::string examples_;
  std::vector<ChatMessage> turns_;
  std::vector<TaskItem> items_;
};

absl::StatusOr<TaskFile> ParseText(absl::string_view content, const TaskReadOptions& options) {
  RETURN_IF_ERROR(CheckUtf8(content));
  ASSIGN_OR_RETURN(const TaskFormat* format, FormatOf(content, options.format));
  if (options.shots > 0 && !format->has_shots) {
    return FieldError("shots", "expected 0 for files of the format ", format->name, ", found ", options.shots);
  }
  TaskFileBuilder builder(*format, DetectLanguage(Beginning(content, kLanguageBytes)), options);
  RecordReader reader(content);
  while (!builder.full()) {
    ASSIGN_OR_RETURN(const auto record, reader.Next());
    if (!record.has_value()) break;
    RETURN_IF_ERROR(Annotate(builder.Add(*record), absl::StrCat("line ", record->line)));
  }
  TaskFile file{.format = std::string(format->name), .items = builder.TakeItems()};
  if (file.items.empty()) {
    return BadFileError("expected more rows than the ", options.shots, " solved examples, found ", builder.rows());
  }
  return file;
}

}  // namespace

std::vector<std::string> TaskFormatNames() {
  std::vector<std::string> names;
  for (const TaskFormat& format : TaskFormats()) names.emplace_back(format.name);
  return names;
}

std::string RecognizeTaskFormat(absl::string_view content) {
  content = WithoutByteOrderMark(content);
  RecordReader reader(content);
  const auto first = reader.Next();
  if (!first.ok() || !first->has_value()) return "";
  const TaskFormat* format = RecognizeRecord(**first, reader.container());
  return format == nullptr ? "" : std::string(format->name);
}

absl::StatusOr<TaskFile> ParseTaskFile(const std::string& source, absl::string_view content, const TaskReadOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  std::string inflated;
  if (IsGzip(content)) {
    auto bytes = Gunzip(content, kMaxContentBytes);
    if (!bytes.ok()) return Annotate(bytes.status(), source);
    inflated = *std::move(bytes);
    content = inflated;
  }
  auto file = ParseText(WithoutByteOrderMark(content), options);
  if (!file.ok()) return ErrorField(file.status()).empty() ? WithPath(file.status(), source) : file.status();
  file->source = source;
  return file;
}

absl::StatusOr<TaskFile> ReadTaskFile(const std::string& path, const TaskReadOptions& options) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ParseTaskFile(path, file.text(), options);
}

}  // namespace pith
