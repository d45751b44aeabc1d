// How the text of a model is tokenized, rendered and ended: what both sources of calibration data (files, the model itself) need of it.
// Nothing here depends on the clock, so that the same text gives the same ids on every day.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace pith {

// What templates are told the time is: 2025-01-01 00:00 UTC. Some write the date into their prompt.
constexpr int64_t kCalibrationUnixSeconds = 1'735'689'600;

// Borrows tokenizer and template. Thread-safe to read.
struct ModelText {
  const Tokenizer& tokenizer;
  const ChatTemplate* chat_template = nullptr;  // null: a base model
  std::string bos_token, eos_token;             // their texts, for the template
  std::vector<int32_t> stop_token_ids;          // of generation_config.json; empty: the tokenizer's EOS alone
};

// BOS where the tokenizer puts it before every text, else nullopt.
std::optional<TokenId> AddedBos(const Tokenizer& tokenizer);

// Ids of a text without BOS and EOS. Errors: kDataLoss when it is no UTF-8.
absl::StatusOr<std::vector<TokenId>> EncodeText(const ModelText& model_text, absl::string_view text);

// Ids of [{"role": ..., "content": ...}, ...] as the template renders them; it writes its own BOS and EOS. With `add_generation_prompt`
// they end where the model would answer. Errors: kUnimplemented without a template; kDataLoss when the template refuses the messages, or a
// message is no UTF-8.
absl::StatusOr<std::vector<TokenId>> EncodeConversation(const ModelText& model_text, const OrderedJson& messages,
                                                        bool add_generation_prompt);

}  // namespace pith
