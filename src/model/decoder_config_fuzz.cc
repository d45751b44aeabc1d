// config.json of any content: parsed or refused, and what is parsed keeps to the limits the forward pass relies on.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/json.h"
#include "model/decoder_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto json = pith::ParseJson({reinterpret_cast<const char*>(data), size}, {.max_depth = 16, .max_bytes = 1 << 20});
  if (!json.ok()) return 0;
  const auto config = pith::ParseDecoderConfig(*json);
  if (!config.ok()) return 0;
  CHECK(config->num_heads % config->num_kv_heads == 0);
  CHECK(config->head_dim % 2 == 0);
  CHECK(static_cast<int64_t>(config->layer_window.size()) == config->num_layers);
  for (const pith::RopeConfig* rope : {&config->rope, &config->rope_local}) {
    for (const float frequency : pith::RopeInverseFrequencies(*rope, config->head_dim)) CHECK(frequency >= 0.0f && frequency <= 1.0f);
  }
  return 0;
}
