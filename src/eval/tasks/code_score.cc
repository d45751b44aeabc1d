#include "eval/tasks/code_score.h"

#include <openssl/rand.h>

#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/json.h"
#include "base/status.h"
#include "eval/tasks/code_extraction.h"

namespace pith {
namespace {

constexpr size_t kProofBytes = 16;

absl::StatusOr<std::string> MakeProof() {
  unsigned char bytes[kProofBytes];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return IoError("random numbers: expected some of the system, found none");
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes), sizeof(bytes)));
}

// A program that runs `program` as a module of its own, so that what stands under "if __name__ == '__main__'" is not run, and then writes
// the proof. A JSON text without escapes for what is not ASCII is a Python literal too.
std::string AsModule(const std::string& program, const std::string& proof) {
  return absl::StrCat("import os, sys, types\nsys.modules['answer'] = types.ModuleType('answer')\nexec(compile(", DumpJson(Json(program)),
                      ", 'answer', 'exec'), sys.modules['answer'].__dict__)\nos.write(1, b'\\n", proof, "\\n')\n");
}

// The last line that is not blank: where a traceback says what was raised.
std::string LastLine(const std::string& output) {
  const std::vector<absl::string_view> lines = absl::StrSplit(output, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const absl::string_view text = absl::StripAsciiWhitespace(*line);
    if (!text.empty()) return Printable(text, 200);
  }
  return "";
}

std::string ReasonOf(const SandboxRun& run) {
  switch (run.outcome) {
    case SandboxOutcome::kTimedOut: return absl::StrFormat("timed out after %.1f s", run.seconds);
    case SandboxOutcome::kSignalled: return absl::StrCat("killed by signal ", run.code, " (", strsignal(run.code), ")");
    case SandboxOutcome::kExited: break;
  }
  if (run.code == 0) return "ended before the test did";
  const std::string line = LastLine(run.output);
  return line.empty() ? absl::StrCat("exit status ", run.code) : line;
}

}  // namespace

absl::StatusOr<CodeScore> ScoreCode(const TaskItem& item, absl::string_view answer, const CodeSandbox& sandbox) {
  if (!item.unit_test.has_value()) return BugError(item.id, ": expected an item with a unit test, found none");
  const UnitTest& test = *item.unit_test;
  CodeScore score;
  score.program = absl::StrCat(ExtractPython(answer, test), "\n", test.test, "\n");
  if (!test.entry_point.empty()) absl::StrAppend(&score.program, "\ncheck(", test.entry_point, ")\n");
  ASSIGN_OR_RETURN(const std::string proof, MakeProof());
  ASSIGN_OR_RETURN(const SandboxRun run, sandbox.RunPython(AsModule(score.program, proof)));
  score.passed = run.outcome == SandboxOutcome::kExited && run.code == 0 && absl::StrContains(run.output, absl::StrCat("\n", proof, "\n"));
  if (!score.passed) score.reason = ReasonOf(run);
  return score;
}

double PassAtK(int64_t n, int64_t c, int64_t k) {
  CHECK(c >= 0 && c <= n && k >= 1 && k <= n);
  if (n - c < k) return 1;
  double all_fail = 1;  // product over i in (n-c, n] of (1 - k/i), which overflows nowhere
  for (int64_t i = n - c + 1; i <= n; ++i) all_fail *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - all_fail;
}

double MeanPassAtK(absl::Span<const TaskPasses> tasks, int64_t k) {
  double sum = 0;
  for (const TaskPasses& task : tasks) sum += PassAtK(task.samples, task.passed, k);
  return tasks.empty() ? 0 : sum / static_cast<double>(tasks.size());
}

}  // namespace pith
