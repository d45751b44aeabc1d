// MMLU, ARC and HellaSwag: multiple choice by likelihood. Prompts and choices are those of lm-evaluation-harness, so that figures compare.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "base/status.h"
#include "eval/tasks/task_formats.h"

namespace pith {
namespace {

constexpr int64_t kMaxChoices = 26;  // letters

bool Has(const TaskRecord& record, absl::string_view key) { return FindMember(record.object, key) != nullptr; }

absl::StatusOr<std::vector<std::string>> ReadTexts(const Json& object, absl::string_view key) {
  const Json* list = FindMember(object, key);
  if (list == nullptr || !list->is_array()) {
    return BadFileError(key, ": expected a list of texts, found ", list == nullptr ? "none" : list->type_name());
  }
  std::vector<std::string> texts;
  for (const Json& value : *list) {
    if (!value.is_string() || absl::StripAsciiWhitespace(value.get_ref<const std::string&>()).empty()) {
      return BadFileError(key, ": expected texts that are not empty, found ", Printable(DumpJson(value)));
    }
    texts.push_back(value.get<std::string>());
  }
  const auto n = static_cast<int64_t>(texts.size());
  if (n < 2 || n > kMaxChoices) return BadFileError(key, ": expected 2 to ", kMaxChoices, " texts, found ", n);
  return texts;
}

// The index of the right choice: a number, or its digits as Hugging Face's HellaSwag stores it.
absl::StatusOr<int64_t> ReadGold(const Json& object, absl::string_view key, size_t num_choices) {
  const Json* value = FindMember(object, key);
  int64_t gold = -1;
  if (value != nullptr && value->is_number_integer()) {
    return GetInt(object, key, 0, static_cast<int64_t>(num_choices) - 1);
  }
  if (value == nullptr || !value->is_string() || !absl::SimpleAtoi(value->get_ref<const std::string&>(), &gold) || gold < 0 ||
      gold >= static_cast<int64_t>(num_choices)) {
    return BadFileError(key, ": expected the index of one of ", num_choices, " choices, found ",
                        value == nullptr ? "none" : Printable(DumpJson(*value)));
  }
  return gold;
}

TaskQuestion ChoiceQuestion(std::string prompt, std::vector<std::string> choices, int64_t gold) {
  TaskQuestion read;
  read.item.match = MatchKind::kChoice;
  read.item.prompt = std::move(prompt);
  read.item.choices = std::move(choices);
  read.item.gold = gold;
  return read;
}

// The question with lettered choices; what is scored are the letters.
TaskQuestion LetteredQuestion(absl::string_view subject, absl::string_view question, const std::vector<std::string>& choices,
                              int64_t gold) {
  std::string prompt;
  if (!subject.empty()) {
    prompt = absl::StrCat("The following are multiple choice questions (with answers) about ", absl::StrReplaceAll(subject, {{"_", " "}}),
                          ".\n\n");
  }
  absl::StrAppend(&prompt, absl::StripAsciiWhitespace(question), "\n");
  std::vector<std::string> letters;
  for (const std::string& choice : choices) {
    letters.emplace_back(1, static_cast<char>('A' + letters.size()));
    absl::StrAppend(&prompt, letters.back(), ". ", choice, "\n");
  }
  prompt += "Answer:";
  return ChoiceQuestion(std::move(prompt), std::move(letters), gold);
}

// Without the marks of WikiHow's layout: " [title]" ends a sentence, other marks in brackets vanish.
std::string CleanHellaSwag(absl::string_view text) {
  const std::string marked = absl::StrReplaceAll(absl::StripAsciiWhitespace(text), {{" [title]", ". "}});
  std::string clean;
  for (size_t i = 0; i < marked.size(); ++i) {
    const size_t end = marked[i] == '[' ? marked.find(']', i) : std::string::npos;
    const size_t line_end = marked.find('\n', i);
    if (end != std::string::npos && end < line_end) {
      i = end;
    } else {
      clean += marked[i];
    }
  }
  return absl::StrReplaceAll(clean, {{"  ", " "}});
}

std::string Capitalized(absl::string_view text) {
  std::string out = absl::AsciiStrToLower(text);
  if (!out.empty()) out[0] = absl::ascii_toupper(static_cast<unsigned char>(out[0]));
  return out;
}

// ARC's labels are letters, or digits from 1 on.
absl::StatusOr<int64_t> FindLabel(const std::vector<std::string>& labels, const std::string& key) {
  const auto found = std::find(labels.begin(), labels.end(), key);
  if (found == labels.end()) return BadFileError("answerKey: expected the label of a choice, found \"", Printable(key), "\"");
  return found - labels.begin();
}

// {"question": {"stem", "choices": [{"text", "label"}]}}, as AI2 publishes ARC.
absl::Status ReadArcStem(const Json& question, std::string* stem, std::vector<std::string>* texts, std::vector<std::string>* labels) {
  ASSIGN_OR_RETURN(*stem, GetString(question, "stem"));
  const Json* choices = FindMember(question, "choices");
  if (choices == nullptr || !choices->is_array()) return BadFileError("choices: expected a list, found none");
  for (const Json& choice : *choices) {
    ASSIGN_OR_RETURN(std::string text, GetString(choice, "text"));
    ASSIGN_OR_RETURN(std::string label, GetString(choice, "label"));
    texts->push_back(std::move(text));
    labels->push_back(std::move(label));
  }
  return absl::OkStatus();
}

std::string ArcPrompt(absl::string_view question) { return absl::StrCat("Question: ", question, "\nAnswer:"); }

absl::StatusOr<TaskQuestion> ReadLabelledArc(const TaskRecord& record) {
  std::string stem;
  std::vector<std::string> texts, labels;
  const Json* question = FindMember(record.object, "question");
  const Json* choices = FindMember(record.object, "choices");
  if (question != nullptr && question->is_object()) {
    RETURN_IF_ERROR(ReadArcStem(*question, &stem, &texts, &labels));
  } else {
    if (choices == nullptr || !choices->is_object()) return BadFileError("choices: expected {\"text\", \"label\"}, found another type");
    ASSIGN_OR_RETURN(stem, GetString(record.object, "question"));
    ASSIGN_OR_RETURN(texts, ReadTexts(*choices, "text"));
    ASSIGN_OR_RETURN(labels, ReadTexts(*choices, "label"));
  }
  if (texts.size() < 2 || texts.size() != labels.size() || std::find(texts.begin(), texts.end(), "") != texts.end()) {
    return BadFileError("choices: expected at least 2, each with a text and a label, found ", texts.size(), " texts and ", labels.size(),
                        " labels");
  }
  ASSIGN_OR_RETURN(const std::string key, GetString(record.object, "answerKey"));
  ASSIGN_OR_RETURN(const int64_t gold, FindLabel(labels, key));
  return ChoiceQuestion(ArcPrompt(stem), std::move(texts), gold);
}

}  // namespace

bool IsMmlu(const TaskRecord& record) {
  return Has(record, "question") && Has(record, "subject") && Has(record, "choices") && (Has(record, "answer") || Has(record, "gold"));
}

absl::StatusOr<TaskQuestion> ReadMmlu(const TaskRecord& record, const std::string&) {
  ASSIGN_OR_RETURN(const std::string question, GetString(record.object, "question"));
  ASSIGN_OR_RETURN(const std::string subject, GetString(record.object, "subject"));
  ASSIGN_OR_RETURN(const std::vector<std::string> choices, ReadTexts(record.object, "choices"));
  ASSIGN_OR_RETURN(const int64_t gold, ReadGold(record.object, Has(record, "gold") ? "gold" : "answer", choices.size()));
  return LetteredQuestion(subject, question, choices, gold);
}

bool IsMmluCsv(const TaskRecord& record) {
  return record.fields.size() == 6 && record.fields[5].size() == 1 && record.fields[5][0] >= 'A' && record.fields[5][0] <= 'D';
}

absl::StatusOr<TaskQuestion> ReadMmluCsv(const TaskRecord& record, const std::string&) {
  if (!IsMmluCsv(record)) {
    return BadFileError("expected a question, four choices and a letter A to D, found ", record.fields.size(), " fields, the last \"",
                        Printable(record.fields.back()), "\"");
  }
  return LetteredQuestion("", record.fields[0], {record.fields.begin() + 1, record.fields.begin() + 5}, record.fields[5][0] - 'A');
}

bool IsArc(const TaskRecord& record) {
  const Json* question = FindMember(record.object, "question");
  if (question == nullptr) return false;
  const bool nested = question->is_object() && FindMember(*question, "stem") != nullptr;
  return (nested || Has(record, "choices")) && (Has(record, "answerKey") || Has(record, "gold"));
}

absl::StatusOr<TaskQuestion> ReadArc(const TaskRecord& record, const std::string&) {
  ASSIGN_OR_RETURN(std::string id, GetString(record.object, "id", ""));
  absl::StatusOr<TaskQuestion> read;
  if (Has(record, "answerKey")) {
    read = ReadLabelledArc(record);
  } else {
    ASSIGN_OR_RETURN(const std::string question, GetString(record.object, "question"));
    ASSIGN_OR_RETURN(std::vector<std::string> choices, ReadTexts(record.object, "choices"));
    ASSIGN_OR_RETURN(const int64_t gold, ReadGold(record.object, "gold", choices.size()));
    read = ChoiceQuestion(ArcPrompt(question), std::move(choices), gold);
  }
  if (read.ok()) read->item.id = std::move(id);
  return read;
}

bool IsHellaSwag(const TaskRecord& record) {
  return Has(record, "ctx") && ((Has(record, "endings") && Has(record, "label")) || (Has(record, "choices") && Has(record, "gold")));
}

absl::StatusOr<TaskQuestion> ReadHellaSwag(const TaskRecord& record, const std::string&) {
  const Json& row = record.object;
  ASSIGN_OR_RETURN(std::string context, GetString(row, "ctx"));
  ASSIGN_OR_RETURN(std::string activity, GetString(row, "activity_label", ""));
  if (activity.empty()) {
    ASSIGN_OR_RETURN(activity, GetString(row, "activity", ""));
  }
  ASSIGN_OR_RETURN(const std::string first, GetString(row, "ctx_a", ""));
  ASSIGN_OR_RETURN(const std::string second, GetString(row, "ctx_b", ""));
  if (!first.empty()) context = absl::StrCat(first, " ", Capitalized(second));
  const bool published = Has(record, "endings");
  ASSIGN_OR_RETURN(std::vector<std::string> endings, ReadTexts(row, published ? "endings" : "choices"));
  for (std::string& ending : endings) {
    std::string clean = CleanHellaSwag(ending);
    if (!clean.empty()) ending = std::move(clean);
  }
  ASSIGN_OR_RETURN(const int64_t gold, ReadGold(row, published ? "label" : "gold", endings.size()));
  std::string prompt = CleanHellaSwag(activity.empty() ? context : absl::StrCat(activity, ": ", context));
  if (prompt.empty()) return BadFileError("ctx: expected a text, found none");
  return ChoiceQuestion(std::move(prompt), std::move(endings), gold);
}

}  // namespace pith
