#include "model/weight_map.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace pith {
namespace {

struct Prefix {
  const char* body;
  const char* head;
};

constexpr Prefix kPrefixes[] = {
    {"model.", "lm_head"},
    {"language_model.model.", "language_model.lm_head"},
    {"model.language_model.", "lm_head"},
};

}  // namespace

std::string WeightMap::Layer(int64_t layer, absl::string_view module) const { return absl::StrCat(prefix, "layers.", layer, ".", module); }

absl::StatusOr<WeightMap> MakeWeightMap(const ArtifactReader& reader, const LayerNormNames& norms) {
  for (const Prefix& candidate : kPrefixes) {
    WeightMap map{.norms = norms, .prefix = candidate.body, .head = candidate.head};
    if (reader.HasWeight(map.Embedding())) return map;
  }
  return BadFileError(reader.path(), ": model.embed_tokens.weight: expected the token embedding, found no such tensor");
}

}  // namespace pith
