#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "artifact/conversion.h"
#include "artifact/gguf_export.h"
#include "artifact/importance_matrix.h"
#include "artifact/stored_conversion.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/calibration_flag.h"
#include "cli/commands.h"
#include "cli/model_bundle.h"
#include "cli/model_path.h"
#include "cli/version.h"
#include "compression/importance_collection.h"
#include "model/weight_check.h"

namespace pith {
namespace {

constexpr char kBf16[] = "bf16", kGguf[] = "gguf", kImatrix[] = "imatrix", kLegacyImatrix[] = "imatrix-dat", kAuto[] = "auto";

struct Options {
  std::string input, output, format = kBf16, type = kAuto, imatrix;
  std::vector<std::string> calibration;
  CalibrationOptions samples;
  bool requantize = false;
};

bool IsImatrixFormat(absl::string_view format) { return format == kImatrix || format == kLegacyImatrix; }

absl::Status CheckFlags(const Options& options) {
  const bool gguf = options.format == kGguf;
  if (!gguf && (options.type != kAuto || !options.imatrix.empty() || options.requantize)) {
    return UsageError("--type, --imatrix and --requantize: expected with --format gguf only, found with ", options.format);
  }
  if (options.calibration.empty() || IsImatrixFormat(options.format)) return absl::OkStatus();
  if (!gguf) return UsageError("--calibration: expected with --format gguf or imatrix only, found with ", options.format);
  if (!options.imatrix.empty()) return UsageError("--calibration: expected no --imatrix, which weighs the errors already, found both");
  for (const char* exact : {kAuto, "BF16", "F16"}) {
    if (!absl::EqualsIgnoreCase(options.type, exact)) continue;
    return UsageError("--calibration: expected a --type of quantized blocks, whose errors it weighs, found ", options.type);
  }
  return absl::OkStatus();
}

// The tokenizer in the terms of GGUF.
absl::StatusOr<TokenizerFiles> MakeGgufTokenizer(const ArtifactReader& reader) {
  const TokenizerFiles& files = reader.tokenizer_files();
  if (!files.gguf_model.empty()) return files;
  if (files.tokenizer_json.empty()) return MissingInputError("tokenizer.json: expected a file in the model directory, found none");
  ASSIGN_OR_RETURN(GgufVocabulary gguf, GgufFromTokenizerJson(files.tokenizer_json, files.tokenizer_config_json));
  TokenizerFiles made;
  made.gguf_model = std::move(gguf.model);
  made.gguf_pre = std::move(gguf.pre);
  made.tokens = std::move(gguf.tokens);
  made.scores = std::move(gguf.scores);
  made.token_types = std::move(gguf.token_types);
  made.merges = std::move(gguf.merges);
  made.bos_id = gguf.bos_id;
  made.eos_id = gguf.eos_id;
  made.unk_id = gguf.unk_id;
  made.pad_id = gguf.pad_id;
  made.eot_id = gguf.eot_id;
  made.add_bos = gguf.add_bos;
  made.add_eos = gguf.add_eos;
  made.add_space_prefix = gguf.add_space_prefix;
  made.chat_template_jinja = files.chat_template_jinja.empty() ? std::move(gguf.chat_template) : files.chat_template_jinja;
  return made;
}

// The matrix of a model over calibration data, and what the data were.
struct CollectedMatrix {
  ImportanceMatrix matrix;
  OrderedJson calibration;
};

absl::StatusOr<CollectedMatrix> Collect(const ArtifactReader& reader, const Options& options, const CommonOptions& common,
                                        ThreadPool& pool) {
  PhaseProgress progress;
  ASSIGN_OR_RETURN(const CalibrationData data,
                   MakeCalibrationData(options.input, options.calibration, options.samples, reader, pool, progress));
  if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(DescribeCalibration(data)));
  ASSIGN_OR_RETURN(ImportanceMatrix matrix, CollectImportanceMatrix(reader, data, pool, progress.callback("passes")));
  return CollectedMatrix{std::move(matrix), ToJson(data)};
}

using ProgressFunction = std::function<absl::Status(int64_t, int64_t)>;

absl::StatusOr<ConversionReport> ConvertToGguf(const ArtifactReader& reader, const Options& options, const CommonOptions& common,
                                               ProgressFunction progress) {
  GgufExportOptions gguf{.mix = options.type, .requantize = options.requantize, .progress = std::move(progress)};
  ASSIGN_OR_RETURN(gguf.tokenizer, MakeGgufTokenizer(reader));
  gguf.name = BaseName(options.input);
  ThreadPool pool(common.threads);
  std::optional<ImportanceMatrix> importance;
  if (!options.imatrix.empty()) {
    ASSIGN_OR_RETURN(importance, ReadImportanceMatrix(options.imatrix));
    gguf.importance = &*importance;
  } else if (!options.calibration.empty()) {
    gguf.collect_importance = [&]() -> absl::StatusOr<ImportanceMatrix> {
      ASSIGN_OR_RETURN(CollectedMatrix collected, Collect(reader, options, common, pool));
      return std::move(collected.matrix);
    };
  }
  return ExportGguf(reader, options.output, gguf, pool);
}

absl::StatusOr<ConversionReport> Convert(const ArtifactReader& reader, const Options& options, const CommonOptions& common,
                                         ProgressFunction progress) {
  if (options.format == kGguf) return ConvertToGguf(reader, options, common, std::move(progress));
  ConversionOptions conversion{.pith_version = kVersion, .progress = std::move(progress)};
  if (reader.format() == "gguf") {
    ASSIGN_OR_RETURN(const TokenizerJsonFiles files, TokenizerJsonFromGguf(MakeGgufVocabulary(reader.tokenizer_files())));
    conversion.tokenizer_json = files.tokenizer_json;
    conversion.tokenizer_config_json = files.tokenizer_config_json;
  }
  if (options.format == kBf16) return ConvertToHuggingFace(reader, options.output, conversion);
  ASSIGN_OR_RETURN(const StoredTarget* target, FindStoredTarget(options.format));
  return ConvertStored(reader, *target, options.output, conversion);
}

// An importance matrix becomes one of the other form; a model's is collected.
absl::Status WriteMatrix(const Options& options, const CommonOptions& common) {
  ASSIGN_OR_RETURN(const bool given, IsImportanceMatrix(options.input));
  if (given && !options.calibration.empty()) return UsageError("--calibration: expected with a model, found with an importance matrix");
  if (FileExists(options.output)) return CannotCreateError(Printable(options.output, 500), ": expected no such file yet, found one");
  CollectedMatrix collected;
  if (given) {
    ASSIGN_OR_RETURN(collected.matrix, ReadImportanceMatrix(options.input));
  } else {
    ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader, OpenModel(options.input));
    ThreadPool pool(common.threads);
    ASSIGN_OR_RETURN(collected, Collect(*reader, options, common, pool));
  }
  const ImportanceMatrix& matrix = collected.matrix;
  RETURN_IF_ERROR(options.format == kImatrix ? WriteImportanceMatrix(matrix, options.output)
                                             : WriteLegacyImportanceMatrix(matrix, options.output));
  if (!common.json_to_stdout()) {
    RETURN_IF_ERROR(PrintResult(absl::StrFormat("%s: %d matrices\n", Printable(options.output, 500), matrix.entries.size())));
  }
  OrderedJson result = {
      {"input", options.input}, {"output", options.output}, {"format", options.format}, {"matrices", matrix.entries.size()}};
  if (!given) result["calibration"] = std::move(collected.calibration);
  return WriteJsonResult(common, result);
}

absl::Status Run(const Options& options, const CommonOptions& common) {
  RETURN_IF_ERROR(CheckFlags(options));
  if (IsImatrixFormat(options.format)) return WriteMatrix(options, common);
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader, OpenModel(options.input));
  RETURN_IF_ERROR(CheckKnownWeights(*reader));  // before anything is written
  std::optional<Progress> progress;
  const auto report_progress = [&](int64_t done, int64_t total) {
    if (!progress.has_value()) progress.emplace("converting", total, "tensors");
    progress->Set(done);
    return CheckInterrupted();
  };
  ASSIGN_OR_RETURN(const ConversionReport report, Convert(*reader, options, common, report_progress));
  progress.reset();
  if (!common.json_to_stdout()) {
    RETURN_IF_ERROR(
        PrintResult(absl::StrFormat("%s: %d tensors, %s in %s (from %s, %s)\n", Printable(options.output, 500), report.num_tensors,
                                    HumanBytes(report.output_bytes), options.format, reader->format(), HumanBytes(report.input_bytes))));
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
  app.add_option(
         "input", options->input,
         "model: a GGUF file, a Hugging Face directory, dense or quantized, or ORG/NAME that pith pull fetched; or an importance matrix")
      ->required();
  app.add_option("-o,--output", options->output, "new directory (gguf, imatrix: new file) to write")->required();
  std::vector<std::string> names = {kBf16, kGguf, kImatrix, kLegacyImatrix};
  std::string help =
      "what to write; bf16: a dense Hugging Face directory; gguf: a GGUF file; imatrix: an importance matrix of the model over calibration "
      "data, or of the matrix given; imatrix-dat: the same in llama.cpp's old form. "
      "The others keep the codes of a quantized model as they are";
  for (const StoredTarget& target : StoredTargets()) {
    names.emplace_back(target.name);
    absl::StrAppend(&help, "; ", target.name, ": ", target.holds);
  }
  app.add_option("--format", options->format, help)->check(CLI::IsMember(names))->capture_default_str();
  std::vector<std::string> types = {kAuto};
  for (const GgufMix& mix : GgufMixes()) types.emplace_back(mix.name);
  app.add_option("--type", options->type, "gguf: blocks of the matrices; auto: codes as they are (Q4_0, Q8_0), dense ones as BF16")
      ->check(CLI::IsMember(types, CLI::ignore_case))
      ->capture_default_str();
  app.add_option("--imatrix", options->imatrix, "gguf: importance matrix of llama.cpp (.dat or .gguf) that weighs the errors");
  AddCalibrationFlags(app, options->calibration, options->samples,
                      "whose importance matrix is collected: weighs the errors of gguf, is what imatrix writes (there the default is text "
                      "sampled from the model itself)");
  AddSeedFlag(app, options->samples.seed, "seed of the choice of samples");
  app.add_flag("--requantize", options->requantize, "gguf: quantize weights again that the type does not hold as they are");
  return [options](const CommonOptions& common) { return Run(*options, common); };
}

}  // namespace pith
