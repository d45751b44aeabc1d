#include "cli/calibration_flag.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cli/command.h"
#include "compression/self_sampling.h"

namespace pith {

void AddCalibrationFlags(CLI::App& app, std::vector<std::string>& paths, CalibrationOptions& samples, const std::string& use) {
  app.add_option("--calibration", paths, absl::StrCat("texts ", use, ": .txt, .raw, .utf8 or .jsonl files, or folders of them"));
  app.add_option("--num-samples", samples.num_samples, "samples of calibration data")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--sequence-length", samples.sequence_length, "tokens of a sample")->check(CLI::Range(2, 1 << 20))->capture_default_str();
}

ModelText ModelTextOf(const ModelBundle& bundle) {
  return {.tokenizer = *bundle.tokenizer,
          .chat_template = bundle.chat_template.has_value() ? &*bundle.chat_template : nullptr,
          .bos_token = bundle.bos_token,
          .eos_token = bundle.eos_token,
          .stop_token_ids = bundle.stop_token_ids};
}

absl::StatusOr<CalibrationData> MakeCalibrationData(const std::string& model, const std::vector<std::string>& paths,
                                                    const CalibrationOptions& samples, const ArtifactReader& reader, ThreadPool& pool,
                                                    PhaseProgress& progress) {
  ASSIGN_OR_RETURN(const ModelBundle bundle, LoadModelFiles(model));
  if (!paths.empty()) return LoadCalibrationData(paths, ModelTextOf(bundle), samples);
  auto data = SampleCalibrationData(reader, ModelTextOf(bundle), samples, pool, progress.callback("steps"));
  progress.End();
  return data;
}

std::string DescribeCalibration(const CalibrationData& data) {
  const auto domain = [](std::string* out, const auto& entry) { absl::StrAppend(out, entry.first, " ", entry.second); };
  return absl::StrFormat("calibration: %s, %s; tokens by domain: %s\n", Plural(static_cast<int64_t>(data.sequences.size()), "sample"),
                         data.files.empty() ? "drawn from the model itself" : absl::StrCat("from ", absl::StrJoin(data.files, ", ")),
                         absl::StrJoin(data.domain_tokens, ", ", domain));
}

}  // namespace pith
