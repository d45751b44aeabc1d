#include "cli/model_bundle.h"

#include <ctime>

#include "base/cpu_features.h"
#include "base/file.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/model_path.h"
#include "cli/version.h"
#include "tokenizer/prompt_encoding.h"

namespace pith {
namespace {

// The text of a token that tokenizer_config.json gives as a string or as {"content": ...}.
std::string TokenContent(const Json& config, absl::string_view key) {
  const Json* member = FindMember(config, key);
  if (member == nullptr) return "";
  if (member->is_string()) return member->get<std::string>();
  const Json* content = FindMember(*member, "content");
  return content != nullptr && content->is_string() ? content->get<std::string>() : "";
}

// chat_template of tokenizer_config.json: a string, or a list of named ones of which "default" is taken.
std::string TemplateSource(const TokenizerFiles& files, const Json& config) {
  if (!files.chat_template_jinja.empty()) return files.chat_template_jinja;
  const Json* member = FindMember(config, "chat_template");
  if (member == nullptr) return "";
  if (member->is_string()) return member->get<std::string>();
  if (!member->is_array()) return "";
  for (const Json& entry : *member) {
    if (GetString(entry, "name", "").value_or("") == "default") return GetString(entry, "template", "").value_or("");
  }
  return "";
}

std::vector<int32_t> StopTokenIds(const Json& generation_config, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  const auto add = [&](const Json& value) {
    if (value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() < tokenizer.vocab_size()) {
      ids.push_back(value.get<int32_t>());
    }
  };
  if (const Json* eos = FindMember(generation_config, "eos_token_id")) {
    if (eos->is_array()) {
      for (const Json& id : *eos) add(id);
    } else {
      add(*eos);
    }
  }
  if (ids.empty() && tokenizer.eos_id().has_value()) ids.push_back(*tokenizer.eos_id());
  return ids;
}

void PrintPrepackCache(const PrepackCacheReport& report) {
  if (!report.warning.empty()) spdlog::warn("prepack cache: {}", report.warning);
  if (report.used) spdlog::info("prepack cache: weights taken from {}", Printable(report.path, 500));
  if (report.bytes_written > 0 && ProgressEnabled()) {
    std::fprintf(stderr, "prepack cache: wrote %s (%s)\n", Printable(report.path, 500).c_str(),
                 HumanBytes(static_cast<int64_t>(report.bytes_written)).c_str());
  }
}

}  // namespace

GgufVocabulary MakeGgufVocabulary(const TokenizerFiles& files) {
  return {.model = files.gguf_model,
          .pre = files.gguf_pre,
          .tokens = files.tokens,
          .scores = files.scores,
          .token_types = files.token_types,
          .merges = files.merges,
          .bos_id = files.bos_id,
          .eos_id = files.eos_id,
          .unk_id = files.unk_id,
          .pad_id = files.pad_id,
          .eot_id = files.eot_id,
          .add_bos = files.add_bos,
          .add_eos = files.add_eos,
          .add_space_prefix = files.add_space_prefix,
          .chat_template = files.chat_template_jinja};
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const TokenizerFiles& files) {
  if (!files.gguf_model.empty()) return Tokenizer::FromGguf(MakeGgufVocabulary(files));
  if (files.tokenizer_json.empty()) return MissingInputError("tokenizer.json: expected a file in the model directory, found none");
  return Tokenizer::FromJson(files.tokenizer_json, files.tokenizer_config_json);
}

absl::StatusOr<ModelBundle> LoadModelFiles(const std::string& model) {
  ModelBundle bundle;
  bundle.name = ModelName(model);
  ASSIGN_OR_RETURN(bundle.reader, OpenModel(model));
  const std::string& path = bundle.reader->path();
  const TokenizerFiles& files = bundle.reader->tokenizer_files();
  auto tokenizer = MakeTokenizer(files);
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), path);
  bundle.tokenizer = *std::move(tokenizer);
  Json config = Json::object();
  if (!files.tokenizer_config_json.empty()) {
    auto parsed = ParseJson(files.tokenizer_config_json);
    if (!parsed.ok()) return Annotate(parsed.status(), JoinPath(path, "tokenizer_config.json"));
    config = *std::move(parsed);
  }
  bundle.bos_token = TokenContent(config, "bos_token");
  bundle.eos_token = TokenContent(config, "eos_token");
  if (bundle.bos_token.empty() && bundle.tokenizer->bos_id()) bundle.bos_token = bundle.tokenizer->TokenText(*bundle.tokenizer->bos_id());
  if (bundle.eos_token.empty() && bundle.tokenizer->eos_id()) bundle.eos_token = bundle.tokenizer->TokenText(*bundle.tokenizer->eos_id());
  bundle.stop_token_ids = StopTokenIds(bundle.reader->generation_config(), *bundle.tokenizer);
  if (const std::string source = TemplateSource(files, config); !source.empty()) {
    auto parsed = ChatTemplate::Parse(source);
    if (!parsed.ok()) return Annotate(BadFileError(parsed.status().message()), absl::StrCat(path, ": chat template"));
    bundle.chat_template = *std::move(parsed);
  }
  return bundle;
}

absl::StatusOr<DecoderConfig> ReadDecoderConfig(const ModelBundle& bundle) {
  absl::StatusOr<DecoderConfig> config = ParseDecoderConfig(bundle.reader->config());
  if (!config.ok()) return Annotate(config.status(), bundle.reader->path());
  return config;
}

absl::Status CheckContextSize(const ModelBundle& bundle, int64_t context) {
  ASSIGN_OR_RETURN(const DecoderConfig config, ReadDecoderConfig(bundle));
  if (context <= config.max_position_embeddings) return absl::OkStatus();
  return UsageError("--ctx-size: expected at most ", config.max_position_embeddings, " tokens (max_position_embeddings), found ", context);
}

absl::StatusOr<std::string> FingerprintOf(ModelBundle& bundle) {
  if (bundle.fingerprint.empty()) {
    ASSIGN_OR_RETURN(bundle.fingerprint, bundle.reader->Fingerprint());
  }
  return bundle.fingerprint;
}

absl::Status LoadWeights(ModelBundle& bundle, ThreadPool& pool, WeightOnlyActivation activations, const std::string& prepack_cache) {
  const std::string& path = bundle.reader->path();
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  std::optional<Progress> progress;
  LoadOptions options{.pool = &pool, .isa = isa, .weight_only_activation = activations, .progress = [&](int64_t done, int64_t total) {
                        if (!progress.has_value()) progress.emplace(absl::StrCat("loading ", bundle.name), total, "tensors");
                        progress->Set(done);
                      }};
  if (const std::string build = BuildId(); !build.empty()) {
    options.prepack_cache = {.directory = prepack_cache, .build = build};
  } else if (!prepack_cache.empty()) {
    spdlog::warn("prepack cache: not used, for this binary has no build id that tells it from others");
  }
  options.prepack_report = &bundle.prepack_cache;
  ASSIGN_OR_RETURN(bundle.model, DecoderModel::Load(*bundle.reader, options));
  progress.reset();
  PrintPrepackCache(bundle.prepack_cache);
  if (bundle.tokenizer->vocab_size() > bundle.model->config().vocab_size) {
    return BadFileError(path, ": expected a tokenizer of at most vocab_size = ", bundle.model->config().vocab_size, " ids, found ",
                        bundle.tokenizer->vocab_size());
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelBundle> LoadModel(const std::string& model, ThreadPool& pool, WeightOnlyActivation activations,
                                      const std::string& prepack_cache) {
  ASSIGN_OR_RETURN(ModelBundle bundle, LoadModelFiles(model));
  RETURN_IF_ERROR(LoadWeights(bundle, pool, activations, prepack_cache));
  return bundle;
}

absl::StatusOr<std::vector<int32_t>> EncodeChat(const ModelBundle& bundle, const OrderedJson& messages) {
  if (!bundle.chat_template.has_value())
    return NotSupportedError(bundle.reader->path(), ": expected a model with a chat template, found none");
  ChatTemplateInputs inputs{.messages = messages, .bos_token = bundle.bos_token, .eos_token = bundle.eos_token};
  inputs.now_unix_seconds = static_cast<int64_t>(std::time(nullptr));
  auto tokens = EncodeChat(*bundle.tokenizer, *bundle.chat_template, inputs);
  if (!absl::IsInvalidArgument(tokens.status())) return tokens;
  // Either these messages are refused, or the template fails on whatever it is given: the simplest conversation tells.
  inputs.messages = OrderedJson::array({{{"role", "user"}, {"content", "Hi"}}});
  if (EncodeChat(*bundle.tokenizer, *bundle.chat_template, inputs).ok()) return tokens;
  return BadFileError(bundle.reader->path(), ": chat template: ", tokens.status().message());
}

}  // namespace pith
