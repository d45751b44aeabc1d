// Any bytes as a file of questions: refused with one printable message, or every item can be asked and, by its kind, scored.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "eval/tasks/task_file.h"
#include "eval/tasks/task_score.h"

namespace {

void CheckItem(const pith::TaskItem& item) {
  using pith::MatchKind;
  CHECK(!item.id.empty() && !item.slice.empty() && !item.prompt.empty() && item.max_tokens > 0);
  CHECK(pith::IsScoredByLikelihood(item.match) == item.messages.empty());
  if (item.match == MatchKind::kChoice) {
    CHECK(item.choices.size() >= 2 && item.gold >= 0 && item.gold < static_cast<int64_t>(item.choices.size()));
  } else if (item.match == MatchKind::kCode) {
    CHECK(item.unit_test.has_value());
  } else {
    CHECK(!item.answers.empty());
    const auto score = pith::ScoreAnswer(item, item.answers[0], nullptr);
    CHECK(!score.ok() || (score->value >= 0 && score->value <= 1));
    if (item.match == MatchKind::kNumber && item.language.empty()) CHECK(score->value == 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view content(reinterpret_cast<const char*>(data), size);
  const auto file = pith::ParseTaskFile("file", content, {.limit = 8});
  (void)pith::RecognizeTaskFormat(content);
  if (!file.ok()) {
    CHECK(absl::IsDataLoss(file.status()));
    for (const char c : file.status().message()) CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
    return 0;
  }
  CHECK(!file->items.empty());
  for (const pith::TaskItem& item : file->items) CheckItem(item);
  return 0;
}
