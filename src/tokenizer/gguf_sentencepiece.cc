#include "tokenizer/gguf_sentencepiece.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr size_t kMetaspaceBytes = sizeof(kMetaspaceText) - 1;

// How many U+2581 a text is made of; 0 when there is anything else in it.
size_t CountMetaspaces(absl::string_view text) {
  for (size_t i = 0; i < text.size(); i += kMetaspaceBytes) {
    if (text.substr(i, kMetaspaceBytes) != kMetaspaceText) return 0;
  }
  return text.size() / kMetaspaceBytes;
}

struct RankedMerge {
  BpeMerge merge;
  size_t left_length, right_length;  // in characters
};

void AppendSplits(const Vocabulary& vocabulary, TokenId token, IsNormalToken is_normal, std::vector<RankedMerge>& splits) {
  const absl::string_view text = vocabulary.Text(token);
  const size_t length = static_cast<size_t>(CountUtf8(text));
  size_t split = 0;
  for (size_t left_length = 1; left_length < length; ++left_length) {
    DecodeUtf8(text, &split);
    const std::optional<TokenId> left = vocabulary.Find(text.substr(0, split));
    if (!left.has_value() || !is_normal(*left)) continue;
    const std::optional<TokenId> right = vocabulary.Find(text.substr(split));
    if (right.has_value() && is_normal(*right)) splits.push_back({{*left, *right, token}, left_length, length - left_length});
  }
}

bool LongerLeftPart(const RankedMerge& a, const RankedMerge& b) {
  return a.left_length != b.left_length ? a.left_length > b.left_length : a.right_length > b.right_length;
}

// The splits of one token that stand together, in the order of MergesFromScores.
std::vector<BpeMerge> OrderSplits(const Vocabulary& vocabulary, absl::Span<const BpeMerge> merges) {
  std::vector<BpeMerge> ordered(merges.begin(), merges.end());
  for (size_t begin = 0, end = 0; begin < ordered.size(); begin = end) {
    while (end < ordered.size() && ordered[end].merged == ordered[begin].merged) ++end;
    std::stable_sort(ordered.begin() + static_cast<int64_t>(begin), ordered.begin() + static_cast<int64_t>(end),
                     [&](const BpeMerge& a, const BpeMerge& b) { return vocabulary.Text(a.left).size() > vocabulary.Text(b.left).size(); });
  }
  return ordered;
}

bool SameMerge(const BpeMerge& a, const BpeMerge& b) { return a.left == b.left && a.right == b.right && a.merged == b.merged; }

// Where the pipeline puts a space that the text does not have.
struct SpacePrefix {
  bool before_text = false;
  bool approximate = false;  // Metaspace: GGUF says it otherwise
};

std::optional<SpacePrefix> RecognizeSpaces(const TokenizerDefinition& definition) {
  const NormalizerStep prepend{.kind = NormalizerStep::kPrepend, .content = kMetaspaceText};
  const NormalizerStep replace{.kind = NormalizerStep::kReplace, .pattern = {" "}, .content = kMetaspaceText};
  const std::vector<PreTokenizerStep>& steps = definition.pre_tokenizer;
  // A split at spaces finds none once they are replaced.
  const bool splits_nothing = steps.empty() || (steps.size() == 1 && steps[0].kind == PreTokenizerStep::kSplit &&
                                                steps[0].pattern == TextPattern{" "} && !steps[0].invert);
  if (splits_nothing && definition.normalizer == std::vector<NormalizerStep>{prepend, replace}) return SpacePrefix{.before_text = true};
  if (splits_nothing && definition.normalizer == std::vector<NormalizerStep>{replace}) return SpacePrefix{};
  const bool metaspace = definition.normalizer.empty() && steps.size() == 1 && steps[0].kind == PreTokenizerStep::kMetaspace &&
                         steps[0].replacement == kMetaspaceText && !steps[0].split;
  if (!metaspace) return std::nullopt;
  const bool prefix = steps[0].prepend != PreTokenizerStep::kNever;
  return SpacePrefix{.before_text = prefix, .approximate = prefix};
}

// Runs of spaces that are added tokens are cut out of a text, the longest first, before anything is merged. Merges make the same of them
// if they come before all others, every run grows space by space rather than two single spaces being joined, and nothing is made of runs.
// With a space before the text there would be one behind each run, too.
absl::Status CheckSpaceRuns(const TokenizerDefinition& definition, bool space_before_text, absl::FunctionRef<bool(TokenId)> is_run,
                            IsNormalToken is_normal) {
  constexpr absl::string_view kExpected = "expected runs of spaces that are added tokens to grow space by space before all other merges";
  const Vocabulary& vocabulary = definition.vocabulary;
  size_t longest = 1;
  for (const AddedToken& token : definition.added_tokens) {
    if (is_run(token.id)) longest = std::max(longest, CountMetaspaces(token.content));
  }
  if (longest > 1 && space_before_text) {
    return NotSupportedError(
        "tokenizer.json: expected no runs of spaces among the added tokens beside a space before the text, found one of ", longest);
  }
  std::map<size_t, size_t> growth;  // rank of the merge of a run of so many spaces with one more
  bool others = false;
  for (size_t rank = 0; rank < definition.merges.size(); ++rank) {
    const BpeMerge& merge = definition.merges[rank];
    const bool of_runs = is_run(merge.left) || is_run(merge.right);
    if ((is_run(merge.merged) && others) || (of_runs && is_normal(merge.merged))) {
      return NotSupportedError("tokenizer.json: merges[", rank, "]: ", kExpected, ", found \"", Printable(vocabulary.Text(merge.left)),
                               "\" \"", Printable(vocabulary.Text(merge.right)), "\"");
    }
    if (is_run(merge.merged) && vocabulary.Text(merge.right) == kMetaspaceText) growth[CountMetaspaces(vocabulary.Text(merge.left))] = rank;
    others |= is_normal(merge.merged);
  }
  for (size_t length = 1; length < longest; ++length) {
    if (growth.contains(length) && growth[length] <= growth[1]) continue;
    return NotSupportedError("tokenizer.json: merges: ", kExpected, ", found none, or a later one, for a run of ", length);
  }
  return absl::OkStatus();
}

absl::Status MarkBytes(const Vocabulary& vocabulary, GgufVocabulary& gguf) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string token = absl::StrFormat("<0x%02X>", byte);
    const std::optional<TokenId> id = vocabulary.Find(token);
    if (!id.has_value()) return NotSupportedError("tokenizer.json: vocab: expected the token ", token, ", found none");
    gguf.token_types[static_cast<size_t>(*id)] = kByteToken;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<BpeMerge> MergesFromScores(const Vocabulary& vocabulary, absl::Span<const float> scores, IsNormalToken is_normal) {
  std::vector<TokenId> order;
  for (TokenId id = 0; id < vocabulary.end_id(); ++id) {
    if (vocabulary.Has(id) && is_normal(id)) order.push_back(id);
  }
  const auto score = [&](TokenId id) { return scores[static_cast<size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return score(a) > score(b); });
  std::vector<BpeMerge> merges;
  std::vector<RankedMerge> group;  // of tokens with one score
  for (size_t i = 0; i < order.size(); ++i) {
    AppendSplits(vocabulary, order[i], is_normal, group);
    if (i + 1 < order.size() && score(order[i + 1]) == score(order[i])) continue;
    std::stable_sort(group.begin(), group.end(), LongerLeftPart);
    for (const RankedMerge& ranked : group) merges.push_back(ranked.merge);
    group.clear();
  }
  return merges;
}

absl::StatusOr<std::vector<float>> ScoresFromMerges(const Vocabulary& vocabulary, absl::Span<const BpeMerge> merges,
                                                    IsNormalToken is_normal) {
  const std::vector<BpeMerge> ordered = OrderSplits(vocabulary, merges);
  const size_t num_ids = static_cast<size_t>(vocabulary.end_id());
  std::vector<size_t> behind_last(num_ids);  // behind the last merge that makes the token
  for (size_t i = 0; i < ordered.size(); ++i) behind_last[static_cast<size_t>(ordered[i].merged)] = i + 1;
  // A score lasts until all tokens whose merges have begun are done.
  std::vector<float> scores(num_ids);
  float score = 0;
  size_t end = 0;
  for (size_t i = 0; i < ordered.size(); ++i) {
    if (i == end && i > 0) score -= 1;
    end = std::max(end, behind_last[static_cast<size_t>(ordered[i].merged)]);
    scores[static_cast<size_t>(ordered[i].merged)] = score;
  }
  for (size_t id = 0; id < num_ids; ++id) {
    if (behind_last[id] == 0) scores[id] = score - 1;
  }
  const std::vector<BpeMerge> implied = MergesFromScores(vocabulary, scores, is_normal);
  for (size_t i = 0; i < std::max(implied.size(), ordered.size()); ++i) {
    if (i < implied.size() && i < ordered.size() && SameMerge(implied[i], ordered[i])) continue;
    const auto show = [&](const std::vector<BpeMerge>& list) {
      return i < list.size()
                 ? absl::StrCat("\"", Printable(vocabulary.Text(list[i].left)), "\" \"", Printable(vocabulary.Text(list[i].right)), "\"")
                 : std::string("none");
    };
    return NotSupportedError("tokenizer.json: merges: expected every split of every token, token by token, as scores give them: merge ", i,
                             " would be ", show(implied), ", found ", show(ordered));
  }
  return scores;
}

bool IsSentencePiece(const TokenizerDefinition& definition) { return definition.byte_fallback && !definition.ignore_merges; }

std::vector<DecoderStep> SentencePieceDecoder(bool strips_space) {
  std::vector<DecoderStep> steps = {{.kind = DecoderStep::kReplace, .pattern = {kMetaspaceText}, .content = " "},
                                    {.kind = DecoderStep::kByteFallback},
                                    {.kind = DecoderStep::kFuse}};
  if (strips_space) steps.push_back({.kind = DecoderStep::kStrip, .content = " ", .start = 1});
  return steps;
}

absl::Status AddSentencePiece(const TokenizerDefinition& definition, GgufVocabulary& gguf) {
  const std::optional<SpacePrefix> spaces = RecognizeSpaces(definition);
  if (!spaces.has_value() || definition.decoder != SentencePieceDecoder(spaces->before_text)) {
    return NotSupportedError("tokenizer.json: expected the normalizer, pre-tokenizer and decoder of SentencePiece, found others");
  }
  if (spaces->approximate) {
    spdlog::warn(
        "tokenizer.json: Metaspace puts a space before a text, unless it begins with one; loaders of GGUF files put one there always, and "
        "behind every added token");
  }
  const Vocabulary& vocabulary = definition.vocabulary;
  RETURN_IF_ERROR(MarkBytes(vocabulary, gguf));
  if (definition.unk_id.has_value()) gguf.token_types[static_cast<size_t>(*definition.unk_id)] = kUnknownToken;
  const auto type = [&](TokenId id) { return gguf.token_types[static_cast<size_t>(id)]; };
  const auto is_normal = [&](TokenId id) { return type(id) == kNormalToken; };
  const auto is_run = [&](TokenId id) { return type(id) == kUserDefinedToken && CountMetaspaces(vocabulary.Text(id)) > 0; };
  RETURN_IF_ERROR(CheckSpaceRuns(definition, spaces->before_text, is_run, is_normal));
  std::vector<BpeMerge> merges;
  for (const BpeMerge& merge : definition.merges) {
    if (is_normal(merge.left) && is_normal(merge.right) && is_normal(merge.merged)) merges.push_back(merge);
  }
  ASSIGN_OR_RETURN(gguf.scores, ScoresFromMerges(vocabulary, merges, is_normal));
  gguf.scores.resize(gguf.tokens.size(), *std::min_element(gguf.scores.begin(), gguf.scores.end()));
  for (TokenId id = 0; id < vocabulary.end_id(); ++id) {
    if (is_run(id)) gguf.tokens[static_cast<size_t>(id)] = std::string(CountMetaspaces(vocabulary.Text(id)), ' ');
  }
  gguf.model = "llama";
  gguf.pre = "default";
  gguf.add_space_prefix = spaces->before_text;
  return absl::OkStatus();
}

}  // namespace pith
