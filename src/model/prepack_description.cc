#include "model/prepack_description.h"

#include <cmath>
#include <limits>

#include "base/json.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr double kMaxBits = 1024;  // stored bits per weight

struct ProblemRange {
  const char* field;
  int64_t min, max;
};
// In the order of FieldsOf.
constexpr ProblemRange kProblem[] = {{"n", 1, kMax},
                                     {"k", 1, kMax},
                                     {"group_size", 0, kMax},
                                     {"bits", 1, 16},
                                     {"has_zero_point", 0, 1},
                                     {"has_min", 0, 1},
                                     {"scale", 0, static_cast<int64_t>(GemmScale::kI8)},
                                     {"unit_size", 0, kMax},
                                     {"activation", 0, static_cast<int64_t>(GemmActivation::kFp8)},
                                     {"activation_group", 0, kMax}};
static_assert(std::size(kProblem) == std::tuple_size_v<GemmProblemFields>);

Json ToJson(const TensorDataPath& part) {
  return {{"name", part.name},
          {"packing", part.packing},
          {"scheme", part.scheme},
          {"scale_dtype", part.scale_dtype},
          {"stored_bits", part.stored_bits},
          {"stored_bytes", part.stored_bytes}};
}

Json ToJson(const PrepackedMatrix& matrix) {
  Json json = {{"kernel", matrix.kernel}};
  const GemmProblemFields fields = FieldsOf(matrix.problem);
  for (size_t i = 0; i < fields.size(); ++i) json[kProblem[i].field] = fields[i];
  return json;
}

absl::StatusOr<std::string> GetText(const Json& object, const char* key) {
  ASSIGN_OR_RETURN(std::string text, GetString(object, key));
  if (Printable(text, 512) != text) return BadFileError(key, ": expected printable text, found \"", Printable(text), "\"");
  return text;
}

absl::StatusOr<TensorDataPath> ParsePart(const Json& json) {
  TensorDataPath part;
  ASSIGN_OR_RETURN(part.name, GetText(json, "name"));
  ASSIGN_OR_RETURN(part.packing, GetText(json, "packing"));
  ASSIGN_OR_RETURN(part.scheme, GetText(json, "scheme"));
  ASSIGN_OR_RETURN(part.scale_dtype, GetText(json, "scale_dtype"));
  ASSIGN_OR_RETURN(part.stored_bits, GetDouble(json, "stored_bits", 0, kMaxBits));
  ASSIGN_OR_RETURN(part.stored_bytes, GetInt(json, "stored_bytes", 0, kMax));
  return part;
}

absl::StatusOr<PrepackedMatrix> ParseMatrix(const Json& json) {
  PrepackedMatrix matrix;
  ASSIGN_OR_RETURN(matrix.kernel, GetText(json, "kernel"));
  GemmProblemFields fields{};
  for (size_t i = 0; i < fields.size(); ++i) {
    ASSIGN_OR_RETURN(fields[i], GetInt(json, kProblem[i].field, kProblem[i].min, kProblem[i].max));
  }
  matrix.problem = {.n = fields[0],
                    .k = fields[1],
                    .group_size = fields[2],
                    .bits = static_cast<int>(fields[3]),
                    .has_zero_point = fields[4] != 0,
                    .has_min = fields[5] != 0,
                    .scale = static_cast<GemmScale>(fields[6]),
                    .unit_size = fields[7],
                    .activation = static_cast<GemmActivation>(fields[8]),
                    .activation_group = fields[9]};
  return matrix;
}

// The elements of an array member, each through `parse`.
template <typename T>
absl::Status ParseArray(const Json& object, const char* key, absl::StatusOr<T> (*parse)(const Json&), std::vector<T>& out) {
  const Json* array = FindMember(object, key);
  if (array == nullptr || !array->is_array()) return BadFileError(key, ": expected an array, found none");
  for (const Json& element : *array) {
    absl::StatusOr<T> parsed = parse(element);
    if (!parsed.ok()) return Annotate(parsed.status(), absl::StrCat(key, "[", out.size(), "]"));
    out.push_back(*std::move(parsed));
  }
  return absl::OkStatus();
}

absl::StatusOr<PrepackedLayer> ParseLayer(const Json& json) {
  PrepackedLayer layer;
  RETURN_IF_ERROR(ParseArray(json, "parts", ParsePart, layer.parts));
  RETURN_IF_ERROR(ParseArray(json, "matrices", ParseMatrix, layer.matrices));
  if (layer.parts.empty()) return BadFileError("parts: expected at least one, found none");
  return layer;
}

}  // namespace

std::string MakePrepackDescription(const PrepackDescription& layers) {
  Json json = Json::object();
  for (const auto& [name, layer] : layers) {
    Json parts = Json::array(), matrices = Json::array();
    for (const TensorDataPath& part : layer.parts) parts.push_back(ToJson(part));
    for (const PrepackedMatrix& matrix : layer.matrices) matrices.push_back(ToJson(matrix));
    json[name] = {{"parts", parts}, {"matrices", matrices}};
  }
  return DumpJson(json);
}

absl::StatusOr<PrepackDescription> ParsePrepackDescription(absl::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  if (!json.is_object()) return BadFileError("description: expected an object, found none");
  PrepackDescription layers;
  for (const auto& [name, value] : json.items()) {
    absl::StatusOr<PrepackedLayer> layer = ParseLayer(value);
    if (!layer.ok()) return Annotate(layer.status(), Printable(name));
    if (layer->parts[0].name != name) {
      return BadFileError(Printable(name), ": expected the name of its first part, found ", layer->parts[0].name);
    }
    layers.emplace(name, *std::move(layer));
  }
  return layers;
}

}  // namespace pith
