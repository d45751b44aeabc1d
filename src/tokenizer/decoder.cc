#include "tokenizer/decoder.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Replaces every run of byte tokens by the text it spells, or by one U+FFFD for every byte.
std::vector<std::string> DecodeByteTokens(const std::vector<std::string>& tokens) {
  std::vector<std::string> result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (IsValidUtf8(bytes)) {
      result.push_back(bytes);
    } else {
      for (size_t i = 0; i < bytes.size(); ++i) result.push_back(kReplacementUtf8);
    }
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    if (const int byte = ParseByteToken(token); byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
    } else {
      flush();
      result.push_back(token);
    }
  }
  flush();
  return result;
}

// Removes up to `start` and `stop` times the character `content` at the ends.
std::string StripEnds(absl::string_view token, const DecoderStep& step) {
  for (int64_t i = 0; i < step.start && absl::ConsumePrefix(&token, step.content); ++i) {
  }
  for (int64_t i = 0; i < step.stop && absl::ConsumeSuffix(&token, step.content); ++i) {
  }
  return std::string(token);
}

std::string ReplaceOrKeep(const SplitPattern& pattern, const DecoderStep& step, absl::string_view token) {
  absl::StatusOr<std::string> replaced = ReplaceMatches(pattern, step.content, token);
  return replaced.ok() ? *std::move(replaced) : std::string(token);
}

std::string JoinByteLevel(const std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) AppendByteLevelBytes(token, &bytes);
  return ReplaceInvalidUtf8(bytes);
}

}  // namespace

int ParseByteToken(absl::string_view token) {
  if (token.size() != 6 || !absl::StartsWith(token, "<0x") || token[5] != '>') return -1;
  const int high = HexDigit(token[3]), low = HexDigit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

absl::StatusOr<Decoder> Decoder::Create(const std::optional<std::vector<DecoderStep>>& steps) {
  Decoder decoder;
  decoder.joins_with_spaces_ = !steps.has_value();
  if (!steps.has_value()) return decoder;
  bool fused = false;
  for (const DecoderStep& step : *steps) {
    CompiledStep compiled = {step, {}};
    if (step.kind == DecoderStep::kReplace) {
      ASSIGN_OR_RETURN(compiled.pattern, SplitPattern::Create(step.pattern));
    }
    fused |= step.kind == DecoderStep::kFuse;
    decoder.strips_leading_space_ |= fused && step.kind == DecoderStep::kStrip && step.content == " " && step.start > 0;
    decoder.strips_leading_space_ |= step.kind == DecoderStep::kMetaspace && step.drops_leading;
    decoder.steps_.push_back(std::move(compiled));
  }
  return decoder;
}

std::string Decoder::Decode(std::vector<std::string> tokens) const {
  if (joins_with_spaces_) return absl::StrJoin(tokens, " ");
  for (const auto& [step, pattern] : steps_) {
    switch (step.kind) {
      case DecoderStep::kByteLevel: tokens = {JoinByteLevel(tokens)}; break;
      case DecoderStep::kReplace:
        for (std::string& token : tokens) token = ReplaceOrKeep(pattern, step, token);
        break;
      case DecoderStep::kByteFallback: tokens = DecodeByteTokens(tokens); break;
      case DecoderStep::kFuse: tokens = {absl::StrJoin(tokens, "")}; break;
      case DecoderStep::kStrip:
        for (std::string& token : tokens) token = StripEnds(token, step);
        break;
      case DecoderStep::kMetaspace:
        for (size_t i = 0; i < tokens.size(); ++i) {
          tokens[i] = absl::StrReplaceAll(tokens[i], {{step.content, i == 0 && step.drops_leading ? "" : " "}});
        }
        break;
    }
  }
  return absl::StrJoin(tokens, "");
}

std::string Decoder::TokenBytes(absl::string_view token) const {
  std::string result(token);
  for (const auto& [step, pattern] : steps_) {
    switch (step.kind) {
      case DecoderStep::kByteLevel: {
        std::string bytes;
        AppendByteLevelBytes(result, &bytes);
        return bytes;
      }
      case DecoderStep::kReplace: result = ReplaceOrKeep(pattern, step, result); break;
      case DecoderStep::kByteFallback:
        if (const int byte = ParseByteToken(result); byte >= 0) return std::string(1, static_cast<char>(byte));
        break;
      case DecoderStep::kFuse: return result;  // what follows is about the ends of the whole text
      case DecoderStep::kStrip: result = StripEnds(result, step); break;
      case DecoderStep::kMetaspace: result = absl::StrReplaceAll(result, {{step.content, " "}}); break;
    }
  }
  return result;
}

}  // namespace pith
