#include "compression/stage.h"

#include <map>

#include "absl/strings/numbers.h"

namespace pith {
namespace {

// 3 of "model.layers.3.mlp.down_proj"; -1 of what is in no layer.
int64_t LayerNumber(const std::string& name) {
  const size_t layers = name.find("layers.");
  if (layers == std::string::npos) return -1;
  const size_t begin = layers + 7, end = name.find('.', begin);
  int64_t number = -1;
  return end != std::string::npos && absl::SimpleAtoi(name.substr(begin, end - begin), &number) ? number : -1;
}

}  // namespace

std::vector<Stage> SplitStages(const CompressionPlan& plan) {
  std::map<int64_t, Stage> layers;
  Stage rest;
  const auto stage_of = [&](const std::string& name) -> Stage& {
    const int64_t number = LayerNumber(name);
    if (number < 0) return rest;
    Stage& stage = layers[number];
    stage.layer = number;
    return stage;
  };
  for (const PlannedModule& module : plan.modules) stage_of(module.name).modules.push_back(&module);
  for (const TensorSpec& tensor : plan.plain_tensors) stage_of(tensor.name).plain_tensors.push_back(&tensor);
  std::vector<Stage> stages;
  for (auto& [number, stage] : layers) stages.push_back(std::move(stage));
  stages.push_back(std::move(rest));
  return stages;
}

}  // namespace pith
