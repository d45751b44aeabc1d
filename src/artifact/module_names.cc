#include "artifact/module_names.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace pith {
namespace {

// Places within a layer, in the order of execution. Parts are matched anywhere in the name behind the layer number.
constexpr absl::string_view kLayerParts[] = {
    "input_layernorm",  "self_attn.q_proj", "self_attn.k_proj",          "self_attn.v_proj",          "self_attn.q_norm",
    "self_attn.k_norm", "self_attn.o_proj", "post_attention_layernorm",  "pre_feedforward_layernorm", "mlp.gate_proj",
    "mlp.up_proj",      "mlp.down_proj",    "post_feedforward_layernorm"};

int PartRank(absl::string_view rest) {
  int rank = 0;
  for (const absl::string_view part : kLayerParts) {
    if (absl::StartsWith(rest, part)) return rank;
    ++rank;
  }
  return rank;
}

int GroupRank(absl::string_view name) {
  if (absl::StrContains(name, "embed_tokens")) return 0;
  if (absl::StrContains(name, "layers.")) return 1;
  if (absl::StartsWith(name, "model.norm")) return 2;
  if (absl::StartsWith(name, "lm_head")) return 3;
  return 4;
}

// Compares with digit runs as numbers: <0, 0, >0. Numbers of any length, so nothing can overflow.
int CompareNatural(absl::string_view a, absl::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(a[0])) && absl::ascii_isdigit(static_cast<unsigned char>(b[0]))) {
      const size_t a_digits = a.find_first_not_of("0123456789"), b_digits = b.find_first_not_of("0123456789");
      absl::string_view x = a.substr(0, a_digits), y = b.substr(0, b_digits);
      a.remove_prefix(x.size());
      b.remove_prefix(y.size());
      while (x.size() > 1 && x[0] == '0') x.remove_prefix(1);
      while (y.size() > 1 && y[0] == '0') y.remove_prefix(1);
      if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
      if (const int order = x.compare(y); order != 0) return order;
    } else if (a[0] != b[0]) {
      return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]) ? -1 : 1;
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() ? (b.empty() ? 0 : -1) : 1;
}

// "model.layers.12." + "mlp.up_proj" for a module of a layer; the whole name and "" otherwise.
std::pair<absl::string_view, absl::string_view> SplitLayer(absl::string_view name) {
  const size_t layers = name.find("layers.");
  if (layers == absl::string_view::npos) return {name, ""};
  const size_t dot = name.find('.', layers + 7);
  if (dot == absl::string_view::npos) return {name, ""};
  return {name.substr(0, dot + 1), name.substr(dot + 1)};
}

}  // namespace

std::pair<absl::string_view, absl::string_view> SplitTensorName(absl::string_view tensor_name) {
  const size_t dot = tensor_name.rfind('.');
  if (dot == absl::string_view::npos) return {"", tensor_name};
  return {tensor_name.substr(0, dot), tensor_name.substr(dot + 1)};
}

bool ModuleNameLess(absl::string_view a, absl::string_view b) {
  const int a_group = GroupRank(a), b_group = GroupRank(b);
  if (a_group != b_group) return a_group < b_group;
  const auto [a_layer, a_part] = SplitLayer(a);
  const auto [b_layer, b_part] = SplitLayer(b);
  if (const int order = CompareNatural(a_layer, b_layer); order != 0) return order < 0;
  const int a_rank = PartRank(a_part), b_rank = PartRank(b_part);
  if (a_rank != b_rank) return a_rank < b_rank;
  if (const int order = CompareNatural(a_part, b_part); order != 0) return order < 0;
  return a < b;  // "layers.02" and "layers.2" are equal as numbers
}

absl::string_view ModuleClassName(absl::string_view module_name) {
  if (absl::EndsWith(module_name, "embed_tokens")) return "Embedding";
  if (absl::EndsWith(module_name, "norm")) return "RMSNorm";
  return "Linear";
}

}  // namespace pith
