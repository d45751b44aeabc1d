// GSM8K, MGSM, HumanEval and LAMBADA: rows that are answered by generated text, and the word after a passage.
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/status.h"
#include "eval/tasks/language.h"
#include "eval/tasks/number_match.h"
#include "eval/tasks/task_formats.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr char kGsm8kMark[] = "####";
constexpr int64_t kReasoningTokens = 512;  // worked solutions of small models seldom pass 300
constexpr int64_t kFunctionTokens = 768;

bool IsText(const Json& object, absl::string_view key) {
  const Json* value = FindMember(object, key);
  return value != nullptr && value->is_string();
}

// GSM8K marks its arithmetic for a calculator: <<16-3=13>>.
std::string WithoutCalculator(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t begin = text.find("<<");
    const size_t end = begin == absl::string_view::npos ? begin : text.find(">>", begin);
    absl::StrAppend(&out, text.substr(0, end == absl::string_view::npos ? end : begin));
    if (end == absl::string_view::npos) break;
    text.remove_prefix(end + 2);
  }
  return out;
}

absl::StatusOr<TaskQuestion> NumberQuestion(absl::string_view question, absl::string_view reference, const LanguageCustoms& customs) {
  const auto number = ParseReferenceNumber(reference);
  if (absl::StripAsciiWhitespace(question).empty()) return BadFileError("question: expected a text, found none");
  if (!number.has_value()) return BadFileError("answer: expected a number, found \"", Printable(reference), "\"");
  TaskQuestion read;
  read.item.match = MatchKind::kNumber;
  read.item.answers = {*number};
  read.item.max_tokens = kReasoningTokens;
  read.item.prompt = absl::StrCat(customs.question_word, ": ", question, "\n", customs.answer_word, ":");
  read.item.stop = {absl::StrCat("\n", customs.question_word, ":"), "\n\n\n"};
  return read;
}

}  // namespace

bool IsGsm8k(const TaskRecord& record) {
  const Json* answer = FindMember(record.object, "answer");
  return IsText(record.object, "question") && answer != nullptr && answer->is_string() &&
         absl::StrContains(answer->get_ref<const std::string&>(), kGsm8kMark);
}

absl::StatusOr<TaskQuestion> ReadGsm8k(const TaskRecord& record, const std::string&) {
  ASSIGN_OR_RETURN(const std::string question, GetString(record.object, "question"));
  ASSIGN_OR_RETURN(const std::string answer, GetString(record.object, "answer"));
  const size_t mark = answer.rfind(kGsm8kMark);
  if (mark == std::string::npos) return BadFileError("answer: expected \"#### number\" at its end, found none");
  ASSIGN_OR_RETURN(TaskQuestion read, NumberQuestion(question, absl::string_view(answer).substr(mark + 4), CustomsOf("en")));
  read.item.messages = {{"user", absl::StrCat(question,
                                              "\n\nSolve the problem step by step. On the last line, write \"#### \" and then "
                                              "only the number.")}};
  read.solution = read.solution_message = WithoutCalculator(answer);
  return read;
}

bool IsMgsm(const TaskRecord& record) { return record.fields.size() == 2 && ParseReferenceNumber(record.fields[1]).has_value(); }

absl::StatusOr<TaskQuestion> ReadMgsm(const TaskRecord& record, const std::string& language) {
  if (record.fields.size() != 2) return BadFileError("expected a question and a number, found ", record.fields.size(), " fields");
  const LanguageCustoms& customs = CustomsOf(language);
  ASSIGN_OR_RETURN(TaskQuestion read, NumberQuestion(record.fields[0], record.fields[1], customs));
  read.item.language = language;
  read.item.messages = {{"user", absl::StrCat(record.fields[0], "\n\n", customs.instruction)}};
  read.solution = record.fields[1];
  read.solution_message = absl::StrCat(customs.answer_word, ": ", record.fields[1]);
  return read;
}

bool IsHumanEval(const TaskRecord& record) {
  return IsText(record.object, "prompt") && IsText(record.object, "entry_point") && IsText(record.object, "test") &&
         FindMember(record.object, "match") == nullptr;
}

absl::StatusOr<TaskQuestion> ReadHumanEval(const TaskRecord& record, const std::string&) {
  TaskQuestion read;
  TaskItem& item = read.item;
  UnitTest test;
  ASSIGN_OR_RETURN(item.id, GetString(record.object, "task_id"));
  ASSIGN_OR_RETURN(test.prompt, GetString(record.object, "prompt"));
  ASSIGN_OR_RETURN(test.entry_point, GetString(record.object, "entry_point"));
  ASSIGN_OR_RETURN(test.test, GetString(record.object, "test"));
  if (test.entry_point.empty() || !absl::StrContains(test.prompt, absl::StrCat("def ", test.entry_point, "("))) {
    return BadFileError("prompt: expected the head of the function \"", Printable(test.entry_point), "\", found none");
  }
  item.match = MatchKind::kCode;
  item.prompt = test.prompt;
  item.messages = {{"user", absl::StrCat("Complete this Python function. Answer with the whole function, imports included, in one code "
                                         "block and nothing else.\n\n```python\n",
                                         absl::StripTrailingAsciiWhitespace(test.prompt), "\n```")}};
  item.stop = {"\nclass ", "\ndef ", "\n#", "\nif ", "\nprint(", "\n@", "\n```"};
  item.max_tokens = kFunctionTokens;
  item.unit_test = std::move(test);
  return read;
}

// A passage is cut before its last word, which no punctuation follows; a document for perplexity ends otherwise.
bool IsLambada(const TaskRecord& record) {
  if (!IsText(record.object, "text") || record.object.size() > (record.object.contains("domain") ? 2u : 1u)) return false;
  const std::string& text = record.object["text"].get_ref<const std::string&>();
  if (text.empty() || !IsValidUtf8(text) || !absl::StrContains(text, ' ')) return false;
  size_t last = PreviousUtf8(text, text.size());
  return HasUnicodeClass(DecodeUtf8(text, &last), kClassWord);
}

absl::StatusOr<TaskQuestion> ReadLambada(const TaskRecord& record, const std::string&) {
  ASSIGN_OR_RETURN(const std::string text, GetString(record.object, "text"));
  const absl::string_view passage = absl::StripAsciiWhitespace(text);
  const size_t space = passage.rfind(' ');
  if (space == absl::string_view::npos || space == 0) return BadFileError("text: expected words and a last one to predict, found one word");
  TaskQuestion read;
  read.item.match = MatchKind::kContinuation;
  read.item.prompt = std::string(passage.substr(0, space));
  read.item.answers = {std::string(passage.substr(space + 1))};
  read.item.max_tokens = 16;
  return read;
}

}  // namespace pith
