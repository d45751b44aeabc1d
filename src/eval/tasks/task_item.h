// One question of a task: what is put to the model and how its answer is judged. Plain data: no engine, no tokenizer, no files.
// Formats, prompts and scoring rules: docs/tasks.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

enum class MatchKind {
  // Of generated text.
  kExact,        // the whole text is one of the answers
  kContains,     // one of the answers occurs in the text
  kContainsAll,  // the share of the answers that occur in the text (RULER's string_match_all)
  kRegex,        // one of the answers, a regular expression, is found in the text
  kNumber,       // the final number of the text is one of the answers
  kCode,         // the code of the text passes the unit test
  // Of likelihoods.
  kChoice,        // the gold choice is the likeliest continuation of the prompt
  kContinuation,  // the answer is what greedy decoding writes after the prompt (LAMBADA)
};

absl::string_view MatchName(MatchKind kind);  // "contains_all"
std::optional<MatchKind> MatchFromName(absl::string_view name);
absl::Span<const absl::string_view> MatchNames();
// Whether items of this kind are scored by the likelihood of given text, and nothing is generated.
bool IsScoredByLikelihood(MatchKind kind);

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;

  friend bool operator==(const ChatMessage&, const ChatMessage&) = default;
};

// A program that decides about generated Python code: it fails by raising.
struct UnitTest {
  std::string prompt;       // code the answer continues or repeats; may be empty
  std::string entry_point;  // function under test; empty: the test calls what it likes
  std::string test;         // code run after the answer; with an entry point it defines check(candidate)

  friend bool operator==(const UnitTest&, const UnitTest&) = default;
};

struct TaskItem {
  std::string id;        // "HumanEval/0", "gsm8k/17": unique within its file
  std::string task;      // "gsm8k"; the name of the format it came in
  std::string slice;     // "math", "code", "long_context", "multilingual", "prose", "knowledge", or a user's word
  std::string language;  // two letters (ISO 639-1) where numbers are written by its customs; empty: English

  // What is asked: as running text, and as a conversation for a model with a chat template. Items scored by likelihood have no messages:
  // the published figures are of running text.
  std::string prompt;
  std::vector<ChatMessage> messages;

  MatchKind match = MatchKind::kExact;
  std::vector<std::string> answers;  // any of them counts (kContainsAll: all); empty for kChoice and kCode
  bool ignore_case = false;          // kExact, kContains, kContainsAll, kRegex
  std::vector<std::string> choices;  // kChoice
  int64_t gold = -1;                 // index of the right choice
  std::string delimiter = " ";       // between the prompt and a choice or continuation
  std::optional<UnitTest> unit_test;

  std::vector<std::string> stop;  // where generation after `prompt` ends; a turn of a conversation ends by itself
  int64_t max_tokens = 256;       // generated at most

  friend bool operator==(const TaskItem&, const TaskItem&) = default;
};

}  // namespace pith
