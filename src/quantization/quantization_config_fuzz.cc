// The JSON of a quantization_config from an untrusted config.json: parsed or refused, and what is parsed survives a round trip.
#include <cstdlib>

#include "quantization/quantization_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pith;
  const absl::StatusOr<Json> json = ParseJson({reinterpret_cast<const char*>(data), size}, {.max_depth = 32, .max_bytes = 1 << 16});
  if (!json.ok()) return 0;
  const absl::StatusOr<QuantizationConfig> config = ParseQuantizationConfig(*json);
  if (!config.ok()) return 0;
  (void)CheckModules(*config, {{"model.layers.0.mlp.up_proj", "Linear", true}, {"lm_head", "Linear", false}});
  const absl::StatusOr<QuantizationConfig> again = ParseQuantizationConfig(ToJson(*config));
  if (!again.ok() || DumpJson(ToJson(*again)) != DumpJson(ToJson(*config))) std::abort();
  return 0;
}
