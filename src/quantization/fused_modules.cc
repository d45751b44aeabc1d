#include "quantization/fused_modules.h"

#include "absl/strings/str_cat.h"

namespace pith {
namespace {

constexpr absl::string_view kQkv[] = {"q_proj", "k_proj", "v_proj"};
constexpr absl::string_view kGateUp[] = {"gate_proj", "up_proj"};
constexpr FusedModules kTable[] = {{"self_attn", "qkv_proj", kQkv}, {"mlp", "gate_up_proj", kGateUp}};

}  // namespace

absl::Span<const FusedModules> FusedModuleTable() { return kTable; }

std::string FusedModuleName(absl::string_view module) {
  const size_t dot = module.rfind('.');
  const size_t begin = dot == absl::string_view::npos ? 0 : dot + 1;
  for (const FusedModules& row : kTable) {
    for (const absl::string_view part : row.parts) {
      if (module.substr(begin) == part) return absl::StrCat(module.substr(0, begin), row.name);
    }
  }
  return std::string(module);
}

}  // namespace pith
