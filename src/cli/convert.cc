#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "artifact/conversion.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/model_bundle.h"
#include "cli/model_path.h"
#include "cli/version.h"

namespace pith {
namespace {

struct Options {
  std::string input, output, format = "bf16";
};

absl::Status Run(const Options& options, const CommonOptions& common) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader, OpenModel(options.input));
  ConversionOptions conversion{.pith_version = kVersion};
  if (reader->format() == "gguf") {
    ASSIGN_OR_RETURN(const TokenizerJsonFiles files, TokenizerJsonFromGguf(MakeGgufVocabulary(reader->tokenizer_files())));
    conversion.tokenizer_json = files.tokenizer_json;
    conversion.tokenizer_config_json = files.tokenizer_config_json;
  }
  std::optional<Progress> progress;
  conversion.progress = [&](int64_t done, int64_t total) {
    if (!progress.has_value()) progress.emplace("converting", total, "tensors");
    progress->Set(done);
    return CheckInterrupted();
  };
  ASSIGN_OR_RETURN(const ConversionReport report, ConvertToHuggingFace(*reader, options.output, conversion));
  progress.reset();
  if (!common.json_to_stdout()) {
    RETURN_IF_ERROR(PrintResult(absl::StrFormat("%s: %d tensors, %s in bf16 (from %s, %s)\n", options.output, report.num_tensors,
                                                HumanBytes(report.output_bytes), reader->format(), HumanBytes(report.input_bytes))));
  }
  return WriteJsonResult(common, {{"input", options.input},
                                  {"output", options.output},
                                  {"format", options.format},
                                  {"tensors", report.num_tensors},
                                  {"input_bytes", report.input_bytes},
                                  {"output_bytes", report.output_bytes}});
}

}  // namespace

CommandFunction SetupConvert(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("input", options->input, "model: a GGUF file, a Hugging Face directory, or ORG/NAME that pith pull fetched")->required();
  app.add_option("-o,--output", options->output, "new directory to write")->required();
  app.add_option("--format", options->format, "what to write: bf16 (a Hugging Face directory of bf16 safetensors)")
      ->check(CLI::IsMember({"bf16"}))
      ->capture_default_str();
  return [options](const CommonOptions& common) { return Run(*options, common); };
}

}  // namespace pith
