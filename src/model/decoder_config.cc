#include "model/decoder_config.h"

#include <algorithm>

#include "base/status.h"
#include "model/architectures/architecture.h"

namespace pith {
namespace {

absl::Status CheckClassName(const Json& config, const Architecture& architecture) {
  const Json* classes = FindMember(config, "architectures");
  if (classes == nullptr) return absl::OkStatus();
  if (!classes->is_array()) return BadFileError("architectures: expected a list of names, found ", Printable(DumpJson(*classes)));
  if (classes->empty() || std::find(classes->begin(), classes->end(), architecture.class_name) != classes->end()) return absl::OkStatus();
  return NotSupportedError("architectures: expected ", architecture.class_name, " for model_type ", architecture.model_type, ", found ",
                           Printable(DumpJson(*classes)));
}

absl::StatusOr<DecoderConfig> Parse(const Json& config) {
  if (!config.is_object()) return BadFileError("expected an object, found ", config.type_name());
  ASSIGN_OR_RETURN(const std::string model_type, GetString(config, "model_type"));
  ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(model_type));
  RETURN_IF_ERROR(CheckClassName(config, *architecture));
  ASSIGN_OR_RETURN(DecoderConfig parsed, architecture->parse(config));
  parsed.model_type = model_type;
  return parsed;
}

}  // namespace

absl::StatusOr<DecoderConfig> ParseDecoderConfig(const Json& config) {
  absl::StatusOr<DecoderConfig> parsed = Parse(config);
  if (!parsed.ok()) return Annotate(parsed.status(), "config.json");
  return parsed;
}

}  // namespace pith
