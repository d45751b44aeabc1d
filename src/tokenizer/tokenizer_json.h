// tokenizer.json and tokenizer_config.json to and from a TokenizerDefinition. See docs/formats/tokenizer_json.md.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_definition.h"

namespace pith {

// `config_json` may be empty. Errors: kDataLoss (bad file: field, expectation, finding), kUnimplemented (named, with what is known).
absl::StatusOr<TokenizerDefinition> ReadTokenizerJson(absl::string_view tokenizer_json, absl::string_view config_json);

// Files the Hugging Face tokenizers library loads as the same tokenizer.
TokenizerJsonFiles WriteTokenizerJson(const TokenizerDefinition& definition);

}  // namespace pith
