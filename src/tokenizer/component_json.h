// The small components of tokenizer.json (normalizer, pre_tokenizer, post_processor, decoder) to and from plain steps.
// Nested Sequences become one list. A component that is absent or null has no steps.
// Errors of the readers: kUnimplemented for a type we do not know, named beside those we do; kDataLoss for a bad or missing field;
// both with the path of the component.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json.h"
#include "tokenizer/tokenizer_definition.h"

namespace pith {

absl::StatusOr<std::vector<NormalizerStep>> ReadNormalizer(const Json& component);
absl::StatusOr<std::vector<PreTokenizerStep>> ReadPreTokenizer(const Json& component);
absl::StatusOr<std::optional<std::vector<DecoderStep>>> ReadDecoder(const Json& component);  // nullopt for null

// Ids the post-processor puts around one sequence.
struct SequenceTemplate {
  std::vector<TokenId> prefix_ids, suffix_ids;
};
absl::StatusOr<SequenceTemplate> ReadPostProcessor(const Json& component);

// null without steps, the step itself for one, a Sequence for more.
OrderedJson WriteNormalizer(const std::vector<NormalizerStep>& steps);
OrderedJson WritePreTokenizer(const std::vector<PreTokenizerStep>& steps);
OrderedJson WriteDecoder(const std::optional<std::vector<DecoderStep>>& steps);
OrderedJson WritePostProcessor(const TokenizerDefinition& definition);

}  // namespace pith
