// The inputs of a decoder layer's linear modules, and where scales of their channels can be folded.
//
//   input                  read by             made by
//   normed hidden state    q_proj k_proj v_proj  attention norm
//   attention output       o_proj              v_proj: a row of it feeds one column per query head of its group
//   normed hidden state    gate_proj up_proj   MLP norm
//   activation             down_proj           up_proj
// Source: Lin et al. 2023 (arXiv 2306.00978), section 4.1 and AutoAWQ's lists of layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/decoder_config.h"
#include "model/weight_map.h"

namespace pith {

struct LayerInput {
  std::vector<std::string> consumers;  // modules that read it, all of them
  std::string producer;                // the module whose output channels are its columns
  bool producer_is_norm = false;
  std::vector<int32_t> tied_columns;  // which of the producer's channels each column is; empty: the one of its number
};

// In the order in which a layer computes them.
std::vector<LayerInput> LayerInputs(const DecoderConfig& config, const WeightMap& map, int64_t layer);

}  // namespace pith
