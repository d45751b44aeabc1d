#include "artifact/huggingface_files.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/file.h"
#include "base/foreign_file.h"
#include "base/log.h"
#include "base/model_files.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr size_t kMaxConfigBytes = size_t{16} << 20;
constexpr size_t kMaxTokenizerBytes = size_t{256} << 20;

bool IsSideFile(absl::string_view name) {
  const absl::Span<const absl::string_view> table = SideFileTable();
  return std::find(table.begin(), table.end(), name) != table.end() || IsLegalText(name);
}

// A JSON object of a file. Errors name the path.
absl::StatusOr<Json> ReadObject(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxConfigBytes));
  absl::StatusOr<Json> json = ParseJson(text);
  if (!json.ok()) return BadFileError(Printable(path, 500), ": ", json.status().message(), FoundContent(text));
  if (!json->is_object()) return BadFileError(Printable(path, 500), ": expected an object, found ", Printable(DumpJson(*json), 40));
  return json;
}

absl::Status AddQuantizationFile(const std::string& directory, Json& config) {
  for (const QuantizationFile& file : QuantizationFileTable()) {
    const std::string path = JoinPath(directory, file.name);
    if (!FileExists(path)) continue;
    ASSIGN_OR_RETURN(Json quantization, ReadObject(path));
    if (FindMember(quantization, "quant_method") == nullptr) quantization["quant_method"] = std::string(file.method);
    config["quantization_config"] = std::move(quantization);
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

// Content of a JSON file that another module will parse; empty when absent.
absl::StatusOr<std::string> ReadJsonText(const std::string& directory, absl::string_view name) {
  const std::string path = JoinPath(directory, name);
  if (!FileExists(path)) return std::string();
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxTokenizerBytes));
  if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{")) {
    const std::string found = FoundContent(text);
    return BadFileError(Printable(path, 500), ": expected a JSON object", found.empty() ? ", found other text" : found);
  }
  return text;
}

}  // namespace

absl::StatusOr<Json> ReadModelConfig(const std::string& directory) {
  const std::string path = JoinPath(directory, "config.json");
  if (!FileExists(path)) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
    const auto gguf = std::find_if(names.begin(), names.end(), [](const std::string& name) { return absl::EndsWith(name, ".gguf"); });
    return MissingInputError(Printable(path, 500), ": expected a model's config.json, found none",
                             gguf == names.end() ? "" : absl::StrCat(" (for ", Printable(*gguf), " give the path of that file)"));
  }
  ASSIGN_OR_RETURN(Json config, ReadObject(path));
  const auto model_type = GetString(config, "model_type");
  if (!model_type.ok()) return Annotate(model_type.status(), Printable(path, 500));
  if (FindMember(config, "auto_map") != nullptr) {
    spdlog::warn("{}: auto_map names code to download and run; it is ignored", Printable(path, 500));
  }
  if (FindMember(config, "quantization_config") == nullptr) RETURN_IF_ERROR(AddQuantizationFile(directory, config));
  return config;
}

absl::StatusOr<Json> ReadGenerationConfig(const std::string& directory, const Json& config) {
  const std::string path = JoinPath(directory, "generation_config.json");
  if (FileExists(path)) return ReadObject(path);
  Json generation = Json::object();
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    if (const Json* id = FindMember(config, key); id != nullptr) generation[key] = *id;
  }
  return generation;
}

absl::StatusOr<TokenizerFiles> ReadTokenizerFiles(const std::string& directory) {
  TokenizerFiles files;
  ASSIGN_OR_RETURN(files.tokenizer_json, ReadJsonText(directory, "tokenizer.json"));
  ASSIGN_OR_RETURN(files.tokenizer_config_json, ReadJsonText(directory, "tokenizer_config.json"));
  ASSIGN_OR_RETURN(files.special_tokens_map_json, ReadJsonText(directory, "special_tokens_map.json"));
  const std::string chat_template = JoinPath(directory, "chat_template.jinja");
  if (FileExists(chat_template)) {
    ASSIGN_OR_RETURN(files.chat_template_jinja, ReadFile(chat_template, kMaxConfigBytes));
  }
  return files;
}

absl::StatusOr<std::vector<std::string>> SideFileNames(const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  std::vector<std::string> side_files;
  for (const std::string& name : names) {
    if (IsSideFile(name) && !IsDirectory(JoinPath(directory, name))) side_files.push_back(name);
  }
  return side_files;
}

}  // namespace pith
