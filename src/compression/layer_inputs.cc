#include "compression/layer_inputs.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "quantization/fused_modules.h"

namespace pith {
namespace {

// Column h * head_dim + d of the attention output comes from dimension d of the values of query head h's group.
std::vector<int32_t> ValueRows(const DecoderConfig& config) {
  if (config.num_heads == config.num_kv_heads) return {};
  const int64_t group = config.num_heads / config.num_kv_heads;
  std::vector<int32_t> rows;
  for (int64_t head = 0; head < config.num_heads; ++head) {
    for (int64_t d = 0; d < config.head_dim; ++d) rows.push_back(static_cast<int32_t>(head / group * config.head_dim + d));
  }
  return rows;
}

// The row of the table of fused modules for a block of a layer: what reads the block's input.
absl::Span<const absl::string_view> PartsOf(absl::string_view block) {
  for (const FusedModules& row : FusedModuleTable()) {
    if (row.block == block) return row.parts;
  }
  CHECK(false);
}

}  // namespace

std::vector<LayerInput> LayerInputs(const DecoderConfig& config, const WeightMap& map, int64_t layer) {
  const auto name = [&](const char* module) { return map.Layer(layer, module); };
  const auto parts = [&](absl::string_view block) {
    std::vector<std::string> names;
    for (const absl::string_view part : PartsOf(block)) names.push_back(map.Layer(layer, absl::StrCat(block, ".", part)));
    return names;
  };
  return {{.consumers = parts("self_attn"), .producer = name(map.norms.attention_norm), .producer_is_norm = true},
          {.consumers = {name("self_attn.o_proj")}, .producer = name("self_attn.v_proj"), .tied_columns = ValueRows(config)},
          {.consumers = parts("mlp"), .producer = name(map.norms.mlp_norm), .producer_is_norm = true},
          {.consumers = {name("mlp.down_proj")}, .producer = name("mlp.up_proj")}};
}

}  // namespace pith
