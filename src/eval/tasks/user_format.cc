// Rows that users write: {"prompt", "answer", "match"} and a few keys more. Unknown keys are refused, so that a slip is no other question.
#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/nearest_name.h"
#include "base/status.h"
#include "eval/tasks/number_match.h"
#include "eval/tasks/task_formats.h"
#include "eval/tasks/text_match.h"

namespace pith {
namespace {

constexpr absl::string_view kKeys[] = {"prompt",   "answer", "match",      "messages", "choices",     "id",         "slice",
                                       "language", "stop",   "max_tokens", "test",     "ignore_case", "entry_point"};
constexpr absl::string_view kRoles[] = {"system", "user", "assistant"};
constexpr int64_t kMaxAnswerTokens = 65536;
constexpr char kUserSlice[] = "user";

std::string DidYouMean(absl::string_view word, absl::Span<const absl::string_view> names) {
  const absl::string_view nearest = NearestName(word, names);
  const bool far = 2 * static_cast<size_t>(EditDistance(word.substr(0, 64), nearest)) > std::max(word.size(), nearest.size());
  return far ? absl::StrCat("expected one of ", absl::StrJoin(names, ", ")) : absl::StrCat("did you mean \"", nearest, "\"?");
}

absl::Status CheckKeys(const Json& row) {
  for (const auto& [key, value] : row.items()) {
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) {
      return BadFileError("unknown key \"", Printable(key), "\": ", DidYouMean(key, kKeys));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> AsText(const Json& value, absl::string_view key) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return DumpJson(value);
  return BadFileError("\"", key, "\": expected a text or a number, found ", Printable(DumpJson(value)));
}

// A text, a number, or a list of these.
absl::StatusOr<std::vector<std::string>> ReadList(const Json& row, absl::string_view key) {
  const Json* value = FindMember(row, key);
  std::vector<std::string> texts;
  if (value == nullptr) return texts;
  if (!value->is_array()) {
    ASSIGN_OR_RETURN(std::string text, AsText(*value, key));
    return std::vector<std::string>{std::move(text)};
  }
  for (const Json& element : *value) {
    ASSIGN_OR_RETURN(std::string text, AsText(element, key));
    texts.push_back(std::move(text));
  }
  return texts;
}

absl::Status ReadMessages(const Json& row, TaskItem* item) {
  const Json* messages = FindMember(row, "messages");
  ASSIGN_OR_RETURN(item->prompt, GetString(row, "prompt", ""));
  if ((messages == nullptr) == item->prompt.empty()) {
    return BadFileError("expected one of \"prompt\" and \"messages\", found ", messages == nullptr ? "none" : "both");
  }
  if (messages == nullptr) {
    if (!IsScoredByLikelihood(item->match)) item->messages = {{"user", item->prompt}};
    return absl::OkStatus();
  }
  if (!messages->is_array() || messages->empty()) return BadFileError("\"messages\": expected a list of {\"role\", \"content\"}");
  if (IsScoredByLikelihood(item->match)) {
    return BadFileError("\"match\": ", MatchName(item->match), " is scored on running text: expected \"prompt\", found \"messages\"");
  }
  for (const Json& message : *messages) {
    ASSIGN_OR_RETURN(std::string role, GetString(message, "role"));
    ASSIGN_OR_RETURN(std::string content, GetString(message, "content"));
    if (std::find(std::begin(kRoles), std::end(kRoles), role) == std::end(kRoles)) {
      return BadFileError("\"role\": expected system, user or assistant, found \"", Printable(role), "\"");
    }
    absl::StrAppend(&item->prompt, item->prompt.empty() ? "" : "\n\n", content);
    item->messages.push_back({std::move(role), std::move(content)});
  }
  if (item->messages.back().role != "user") return BadFileError("\"messages\": expected the last one from the user");
  return absl::OkStatus();
}

// The gold choice is named by its index, its text or its letter.
absl::Status ReadUserGold(const Json& row, const std::vector<std::string>& answers, TaskItem* item) {
  const auto n = static_cast<int64_t>(item->choices.size());
  if (n < 2 || std::find(item->choices.begin(), item->choices.end(), "") != item->choices.end()) {
    return BadFileError("\"choices\": expected at least 2 texts that are not empty, found ", n);
  }
  const Json* answer = FindMember(row, "answer");
  if (answer != nullptr && answer->is_number()) {
    ASSIGN_OR_RETURN(item->gold, GetInt(row, "answer", 0, n - 1));
    return absl::OkStatus();
  }
  const std::string text = answers.size() == 1 ? answers[0] : "";
  const auto found = std::find(item->choices.begin(), item->choices.end(), text);
  item->gold = found - item->choices.begin();
  if (item->gold == n && text.size() == 1) item->gold = absl::ascii_toupper(static_cast<unsigned char>(text[0])) - 'A';
  if (item->gold < 0 || item->gold >= n) {
    return BadFileError("\"answer\": expected the index, the text or the letter of one of ", n, " choices, found \"", Printable(text),
                        "\"");
  }
  return absl::OkStatus();
}

absl::Status ReadUnitTest(const Json& row, TaskItem* item) {
  UnitTest test;
  ASSIGN_OR_RETURN(test.test, GetString(row, "test"));
  ASSIGN_OR_RETURN(test.entry_point, GetString(row, "entry_point", ""));
  if (!test.entry_point.empty() && absl::StrContains(item->prompt, absl::StrCat("def ", test.entry_point, "("))) test.prompt = item->prompt;
  item->unit_test = std::move(test);
  return absl::OkStatus();
}

absl::Status ReadAnswers(const Json& row, TaskItem* item) {
  ASSIGN_OR_RETURN(std::vector<std::string> answers, ReadList(row, "answer"));
  ASSIGN_OR_RETURN(item->choices, ReadList(row, "choices"));
  const bool code = item->match == MatchKind::kCode, choice = item->match == MatchKind::kChoice;
  if (!item->choices.empty() && !choice) return BadFileError("\"choices\": expected with \"match\": \"choice\" only");
  if ((FindMember(row, "test") != nullptr || FindMember(row, "entry_point") != nullptr) && !code) {
    return BadFileError("\"test\" and \"entry_point\": expected with \"match\": \"code\" only");
  }
  if (code && !answers.empty()) return BadFileError("\"answer\": expected none with \"match\": \"code\", found one");
  if (code) return ReadUnitTest(row, item);
  if (choice) return ReadUserGold(row, answers, item);
  if (answers.empty()) return BadFileError("\"answer\": expected a text, a number or a list of them, found none");
  for (std::string& answer : answers) {
    if (absl::StripAsciiWhitespace(answer).empty()) return BadFileError("\"answer\": expected a text, found an empty one");
    if (item->match == MatchKind::kRegex) {
      RETURN_IF_ERROR(Annotate(AnswerPattern::Parse(answer, item->ignore_case).status(), "\"answer\""));
    }
    if (item->match != MatchKind::kNumber) continue;
    const auto number = ParseReferenceNumber(answer);
    if (!number.has_value()) return BadFileError("\"answer\": expected a number, found \"", Printable(answer), "\"");
    answer = *number;
  }
  if (item->match == MatchKind::kContinuation && answers.size() != 1) {
    return BadFileError("\"answer\": expected one text with \"match\": \"continuation\", found ", answers.size());
  }
  item->answers = std::move(answers);
  return absl::OkStatus();
}

}  // namespace

bool IsUserRow(const TaskRecord& record) {
  const auto has = [&](absl::string_view key) { return FindMember(record.object, key) != nullptr; };
  return has("match") || ((has("prompt") || has("messages")) && (has("answer") || has("choices")));
}

absl::StatusOr<TaskQuestion> ReadUserRow(const TaskRecord& record, const std::string&) {
  const Json& row = record.object;
  TaskQuestion read;
  TaskItem& item = read.item;
  RETURN_IF_ERROR(CheckKeys(row));
  ASSIGN_OR_RETURN(const std::string match, GetString(row, "match"));
  const auto kind = MatchFromName(match);
  if (!kind.has_value()) return BadFileError("\"match\": unknown kind \"", Printable(match), "\": ", DidYouMean(match, MatchNames()));
  item.match = *kind;
  ASSIGN_OR_RETURN(item.id, GetString(row, "id", ""));
  ASSIGN_OR_RETURN(item.slice, GetString(row, "slice", kUserSlice));
  ASSIGN_OR_RETURN(item.language, GetString(row, "language", ""));
  ASSIGN_OR_RETURN(item.ignore_case, GetBool(row, "ignore_case", false));
  ASSIGN_OR_RETURN(item.max_tokens, GetInt(row, "max_tokens", 1, kMaxAnswerTokens, item.max_tokens));
  ASSIGN_OR_RETURN(item.stop, ReadList(row, "stop"));
  if (std::find(item.stop.begin(), item.stop.end(), "") != item.stop.end()) {
    return BadFileError("\"stop\": expected texts that are not empty, found an empty one");
  }
  RETURN_IF_ERROR(ReadMessages(row, &item));
  RETURN_IF_ERROR(ReadAnswers(row, &item));
  if (absl::StripAsciiWhitespace(item.prompt).empty()) return BadFileError("expected a question, found an empty one");
  if (item.slice.empty()) return BadFileError("\"slice\": expected a name, found an empty one");
  if (absl::ascii_isspace(static_cast<unsigned char>(item.prompt.back()))) item.delimiter = "";
  return read;
}

}  // namespace pith
