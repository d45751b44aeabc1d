#include "artifact/model_card.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr absl::string_view kBegin = "<!-- pith: from here on written by `pith quantize`, `pith convert` and `pith eval --attach` -->\n";
constexpr absl::string_view kEnd = "<!-- pith: to here -->\n";
constexpr size_t kMaxCardBytes = size_t{4} << 20;

// A text of the file in one line of a table.
std::string Cell(absl::string_view text) {
  std::string cell;
  for (const char c : Printable(text, 200)) {
    if (c == '|' || c == '<' || c == '`') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string TextOf(const OrderedJson& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return "";
  const OrderedJson& value = object.at(key);
  return value.is_string() ? value.get<std::string>() : value.is_number_integer() ? absl::StrCat(value.get<int64_t>()) : "";
}

double NumberOf(const OrderedJson& object, const char* key) {
  return object.is_object() && object.contains(key) && object.at(key).is_number() ? object.at(key).get<double>() : std::nan("");
}

void AddRow(absl::string_view what, absl::string_view value, std::string* out) {
  if (!value.empty()) absl::StrAppend(out, "| ", what, " | ", value, " |\n");
}

// "c4 4096, code 2560".
std::string Domains(const OrderedJson& calibration) {
  if (!calibration.contains("domain_tokens") || !calibration.at("domain_tokens").is_object()) return "";
  std::vector<std::string> parts;
  for (const auto& [name, tokens] : calibration.at("domain_tokens").items()) {
    if (tokens.is_number_integer()) parts.push_back(absl::StrCat(Cell(name), " ", tokens.get<int64_t>()));
  }
  return absl::StrJoin(parts, ", ");
}

void AddCalibration(const OrderedJson& recipe, std::string* out) {
  if (!recipe.is_object() || !recipe.contains("calibration") || !recipe.at("calibration").is_object()) return;
  const OrderedJson& calibration = recipe.at("calibration");
  const std::string domains = Domains(calibration);
  AddRow("calibration",
         absl::StrCat(TextOf(calibration, "source") == "model" ? "text sampled from the model itself" : "files", ", ",
                      TextOf(calibration, "tokens"), " tokens in ", TextOf(calibration, "samples"), " samples",
                      domains.empty() ? "" : absl::StrCat(" (", domains, ")")),
         out);
}

void AddLayerErrors(const OrderedJson& layers, std::string* out) {
  double sum = 0, worst = -1;
  int64_t count = 0;
  std::string worst_name;
  for (const OrderedJson& layer : layers) {
    const double error = NumberOf(layer, "relative_error");
    if (!std::isfinite(error)) continue;
    sum += error;
    ++count;
    if (error <= worst) continue;
    worst = error;
    worst_name = TextOf(layer, "name");
  }
  if (count == 0) return;
  AddRow("relative error of the weights",
         absl::StrFormat("%.4f on average over %d matrices, worst %.4f (%s)", sum / static_cast<double>(count), count, worst,
                         Cell(worst_name)),
         out);
}

std::string Title(const OrderedJson& recipe) {
  const std::string scheme = TextOf(recipe, "scheme"), method = TextOf(recipe, "method");
  if (scheme.empty()) return "A model converted by pith";
  return absl::StrCat(Cell(scheme), method.empty() ? "" : absl::StrCat(" by ", Cell(method)));
}

void AddArtifact(const Manifest& manifest, std::string* out) {
  uint64_t bytes = 0;
  for (const auto& [name, file] : manifest.files) bytes += file.size;
  absl::StrAppend(out, "| | |\n|---|---|\n");
  AddRow("scheme", Cell(TextOf(manifest.recipe, "scheme")), out);
  AddRow("method", Cell(TextOf(manifest.recipe, "method")), out);
  AddRow("KV cache", Cell(TextOf(manifest.recipe, "kv_cache")), out);
  AddCalibration(manifest.recipe, out);
  AddLayerErrors(manifest.layers, out);
  AddRow("files", absl::StrFormat("%d, %.1f MB", manifest.files.size(), static_cast<double>(bytes) / 1e6), out);
  AddRow("made from", absl::StrCat("fingerprint ", Cell(manifest.source_fingerprint)), out);
  AddRow("pith", Cell(manifest.pith_version), out);
  absl::StrAppend(out,
                  "\n`pith.json` has everything that decided the bytes, a hash of every file and the errors of every layer; `pith inspect`",
                  " shows the data path.\n");
}

void AddEvidence(const std::optional<Evidence>& evidence, std::string* out) {
  absl::StrAppend(out, "\n## What it kept\n\n");
  if (!evidence.has_value() || evidence->records.empty()) {
    absl::StrAppend(out, "Nothing has been measured yet: `pith eval THIS --reference SOURCE --attach`.\n");
    return;
  }
  absl::StrAppend(
      out, "Against the reference with fingerprint ", Cell(evidence->reference_sha256), ":\n\n",
      "| metric | slice | temperature | context | KV cache | n | value [95 %] | verdict |\n|---|---|---:|---:|---|---:|---|---|\n");
  for (const EvidenceRecord& record : evidence->records) {
    const EvidenceConditions& at = record.conditions;
    absl::StrAppendFormat(out, "| %s | %s | %s | %d | %s | %d | %.4g [%.4g, %.4g] | %s |\n", Cell(at.metric), Cell(at.slice),
                          at.temperature.has_value() ? absl::StrCat(*at.temperature) : "-", at.context, Cell(at.kv_cache), record.n,
                          record.value, record.low, record.high, EvidenceVerdictName(record.verdict));
  }
  absl::StrAppend(out, "\n`evidence.json` has the data path and the command of each figure.\n");
}

std::string Body(const Manifest& manifest, const std::optional<Evidence>& evidence) {
  std::string body = absl::StrCat("# ", Title(manifest.recipe), "\n\n");
  AddArtifact(manifest, &body);
  AddEvidence(evidence, &body);
  return body;
}

}  // namespace

std::string RenderModelCard(const Manifest& manifest, const std::optional<Evidence>& evidence) {
  const std::string scheme = TextOf(manifest.recipe, "scheme");
  return absl::StrCat("---\ntags:\n- pith\n", scheme.empty() ? "" : "- quantized\n", "---\n", kBegin, Body(manifest, evidence), kEnd);
}

std::optional<std::string> UpdateModelCard(absl::string_view card, const Manifest& manifest, const std::optional<Evidence>& evidence) {
  const size_t begin = card.find(kBegin);
  const size_t end = begin == absl::string_view::npos ? begin : card.find(kEnd, begin);
  if (end == absl::string_view::npos) return std::nullopt;
  return absl::StrCat(card.substr(0, begin), kBegin, Body(manifest, evidence), card.substr(end));
}

absl::Status RefreshModelCard(const std::string& directory) {
  ASSIGN_OR_RETURN(const std::optional<Manifest> manifest, ReadManifest(directory));
  if (!manifest.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<Evidence> evidence, ReadEvidence(directory));
  const std::string path = JoinPath(directory, kModelCardName);
  if (!FileExists(path)) return WriteFileAtomically(path, RenderModelCard(*manifest, evidence));
  ASSIGN_OR_RETURN(const std::string card, ReadFile(path, kMaxCardBytes));
  const std::optional<std::string> fresh = UpdateModelCard(card, *manifest, evidence);
  return !fresh.has_value() || *fresh == card ? absl::OkStatus() : WriteFileAtomically(path, *fresh);
}

}  // namespace pith
