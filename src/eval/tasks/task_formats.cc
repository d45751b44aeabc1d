#include "eval/tasks/task_formats.h"

namespace pith {
namespace {

constexpr auto kJson = RecordContainer::kJsonLines;

constexpr TaskFormat kFormats[] = {
    {"gsm8k", "math", kJson, R"({"question", "answer" with "#### number"})", true, IsGsm8k, ReadGsm8k},
    {"mgsm", "multilingual", RecordContainer::kTabs, "question<TAB>number", true, IsMgsm, ReadMgsm},
    {"humaneval", "code", kJson, R"({"task_id", "prompt", "entry_point", "test"})", false, IsHumanEval, ReadHumanEval},
    {"hellaswag", "prose", kJson, R"({"ctx", "endings" or "choices", "label" or "gold"})", false, IsHellaSwag, ReadHellaSwag},
    {"mmlu", "knowledge", kJson, R"({"question", "subject", "choices", "answer" or "gold"})", false, IsMmlu, ReadMmlu},
    {"mmlu_csv", "knowledge", RecordContainer::kCommas, "question,A,B,C,D,letter", false, IsMmluCsv, ReadMmluCsv},
    {"arc", "knowledge", kJson, R"({"question", "choices", "answerKey" or "gold"})", false, IsArc, ReadArc},
    {"lambada", "prose", kJson, R"({"text" that ends with the word to predict})", false, IsLambada, ReadLambada},
    {"user", "", kJson, R"({"prompt" or "messages", "answer", "match"})", false, IsUserRow, ReadUserRow},
};

}  // namespace

absl::Span<const TaskFormat> TaskFormats() { return kFormats; }

}  // namespace pith
