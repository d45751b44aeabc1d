#include "tokenizer/component_json.h"

#include <utility>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::pair<SplitBehavior, absl::string_view> kBehaviors[] = {{SplitBehavior::kIsolated, "Isolated"},
                                                                      {SplitBehavior::kRemoved, "Removed"},
                                                                      {SplitBehavior::kMergedWithPrevious, "MergedWithPrevious"},
                                                                      {SplitBehavior::kMergedWithNext, "MergedWithNext"},
                                                                      {SplitBehavior::kContiguous, "Contiguous"}};
constexpr std::pair<PreTokenizerStep::Prepend, absl::string_view> kPrepends[] = {
    {PreTokenizerStep::kNever, "never"}, {PreTokenizerStep::kFirst, "first"}, {PreTokenizerStep::kAlways, "always"}};

// Calls `read` with every leaf below `component`, in order; `list` is the member of a Sequence that holds its parts.
absl::Status ForEachLeaf(const Json& component, const std::string& path, const char* list, int depth,
                         absl::FunctionRef<absl::Status(const Json& leaf, const std::string& type)> read) {
  if (component.is_null()) return absl::OkStatus();
  if (depth > kMaxDepth) return BadFileError(path, ": expected at most ", kMaxDepth, " nested sequences, found more");
  if (!component.is_object()) return BadFileError(path, ": expected an object, found ", component.type_name());
  absl::StatusOr<std::string> type = GetString(component, "type");
  if (!type.ok()) return Annotate(type.status(), path);
  if (*type != "Sequence") return Annotate(read(component, *type), path);
  const Json* parts = FindMember(component, list);
  if (parts == nullptr || !parts->is_array()) {
    return BadFileError(path, ": ", list, ": expected an array, found ", parts == nullptr ? "none" : parts->type_name());
  }
  for (size_t i = 0; i < parts->size(); ++i) {
    RETURN_IF_ERROR(ForEachLeaf((*parts)[i], absl::StrCat(path, ".", list, "[", i, "]"), list, depth + 1, read));
  }
  return absl::OkStatus();
}

absl::Status UnknownType(const std::string& type, absl::string_view known) {
  return NotSupportedError("type '", Printable(type), "' is not supported (", known, ")");
}

absl::StatusOr<TextPattern> ReadPattern(const Json& component) {
  const Json* pattern = FindMember(component, "pattern");
  if (pattern == nullptr || !pattern->is_object() || pattern->size() != 1) {
    return BadFileError("pattern: expected {\"String\": text} or {\"Regex\": text}, found ",
                        pattern == nullptr ? "none" : Printable(DumpJson(*pattern)));
  }
  const bool is_regex = pattern->contains("Regex");
  ASSIGN_OR_RETURN(std::string text, GetString(*pattern, is_regex ? "Regex" : "String"));
  if (text.empty()) return BadFileError("pattern: expected a text, found ''");
  return TextPattern{std::move(text), is_regex};
}

absl::StatusOr<std::string> ReadCharacter(const Json& component, const char* key) {
  ASSIGN_OR_RETURN(std::string text, GetString(component, key));
  size_t end = 0;
  if (!text.empty()) DecodeUtf8(text, &end);
  if (text.empty() || end != text.size()) return BadFileError(key, ": expected one character, found '", Printable(text), "'");
  return text;
}

template <typename Value, size_t kCount>
absl::StatusOr<Value> ReadName(const Json& component, const char* key, absl::string_view default_name,
                               const std::pair<Value, absl::string_view> (&names)[kCount]) {
  ASSIGN_OR_RETURN(const std::string name, GetString(component, key, default_name));
  std::string known;
  for (const auto& [value, value_name] : names) {
    if (name == value_name) return value;
    absl::StrAppend(&known, known.empty() ? "" : ", ", value_name);
  }
  return BadFileError(key, ": expected one of ", known, ", found '", Printable(name), "'");
}

template <typename Value, size_t kCount> std::string NameOf(Value wanted, const std::pair<Value, absl::string_view> (&names)[kCount]) {
  for (const auto& [value, name] : names) {
    if (value == wanted) return std::string(name);
  }
  return "";
}

absl::StatusOr<NormalizerStep> ReadNormalizerStep(const Json& component, const std::string& type) {
  static constexpr std::pair<absl::string_view, NormalizerStep::Kind> kPlain[] = {{"NFC", NormalizerStep::kNfc},
                                                                                  {"NFD", NormalizerStep::kNfd},
                                                                                  {"NFKC", NormalizerStep::kNfkc},
                                                                                  {"NFKD", NormalizerStep::kNfkd},
                                                                                  {"Lowercase", NormalizerStep::kLowercase}};
  NormalizerStep step;
  for (const auto& [name, kind] : kPlain) {
    if (type != name) continue;
    step.kind = kind;
    return step;
  }
  if (type == "Strip") {
    step.kind = NormalizerStep::kStrip;
    ASSIGN_OR_RETURN(step.strip_left, GetBool(component, "strip_left", false));
    ASSIGN_OR_RETURN(step.strip_right, GetBool(component, "strip_right", false));
  } else if (type == "Replace") {
    step.kind = NormalizerStep::kReplace;
    ASSIGN_OR_RETURN(step.pattern, ReadPattern(component));
    ASSIGN_OR_RETURN(step.content, GetString(component, "content"));
  } else if (type == "Prepend") {
    step.kind = NormalizerStep::kPrepend;
    ASSIGN_OR_RETURN(step.content, GetString(component, "prepend"));
  } else {
    return UnknownType(type, "NFC, NFD, NFKC, NFKD, Lowercase, Strip, Replace, Prepend, Sequence");
  }
  return step;
}

absl::StatusOr<PreTokenizerStep> ReadMetaspace(const Json& component) {
  PreTokenizerStep step;
  step.kind = PreTokenizerStep::kMetaspace;
  ASSIGN_OR_RETURN(step.replacement, ReadCharacter(component, "replacement"));
  ASSIGN_OR_RETURN(step.prepend, ReadName(component, "prepend_scheme", "always", kPrepends));
  // Files from before prepend_scheme say the same with add_prefix_space.
  ASSIGN_OR_RETURN(const bool add_prefix_space, GetBool(component, "add_prefix_space", true));
  if (!add_prefix_space) step.prepend = PreTokenizerStep::kNever;
  ASSIGN_OR_RETURN(step.split, GetBool(component, "split", true));
  return step;
}

absl::StatusOr<PreTokenizerStep> ReadPreTokenizerStep(const Json& component, const std::string& type) {
  PreTokenizerStep step;
  if (type == "Metaspace") return ReadMetaspace(component);
  if (type == "Split") {
    step.kind = PreTokenizerStep::kSplit;
    ASSIGN_OR_RETURN(step.pattern, ReadPattern(component));
    ASSIGN_OR_RETURN(step.behavior, ReadName(component, "behavior", "", kBehaviors));
    ASSIGN_OR_RETURN(step.invert, GetBool(component, "invert", false));
  } else if (type == "ByteLevel") {
    step.kind = PreTokenizerStep::kByteLevel;
    ASSIGN_OR_RETURN(step.add_prefix_space, GetBool(component, "add_prefix_space", true));
    ASSIGN_OR_RETURN(step.use_regex, GetBool(component, "use_regex", true));
  } else if (type == "Digits") {
    step.kind = PreTokenizerStep::kDigits;
    ASSIGN_OR_RETURN(step.individual_digits, GetBool(component, "individual_digits", false));
  } else if (type == "Whitespace") {
    step.kind = PreTokenizerStep::kWhitespace;
  } else if (type == "WhitespaceSplit") {
    step.kind = PreTokenizerStep::kWhitespaceSplit;
  } else {
    return UnknownType(type, "Split, ByteLevel, Digits, Metaspace, Whitespace, WhitespaceSplit, Sequence");
  }
  return step;
}

absl::StatusOr<DecoderStep> ReadDecoderStep(const Json& component, const std::string& type) {
  constexpr int64_t kMaxStrip = 1'000'000;
  DecoderStep step;
  if (type == "ByteLevel") {
    step.kind = DecoderStep::kByteLevel;
  } else if (type == "ByteFallback") {
    step.kind = DecoderStep::kByteFallback;
  } else if (type == "Fuse") {
    step.kind = DecoderStep::kFuse;
  } else if (type == "Replace") {
    step.kind = DecoderStep::kReplace;
    ASSIGN_OR_RETURN(step.pattern, ReadPattern(component));
    ASSIGN_OR_RETURN(step.content, GetString(component, "content"));
  } else if (type == "Strip") {
    step.kind = DecoderStep::kStrip;
    ASSIGN_OR_RETURN(step.content, ReadCharacter(component, "content"));
    ASSIGN_OR_RETURN(step.start, GetInt(component, "start", 0, kMaxStrip));
    ASSIGN_OR_RETURN(step.stop, GetInt(component, "stop", 0, kMaxStrip));
  } else if (type == "Metaspace") {
    ASSIGN_OR_RETURN(const PreTokenizerStep metaspace, ReadMetaspace(component));
    step.kind = DecoderStep::kMetaspace;
    step.content = metaspace.replacement;
    step.drops_leading = metaspace.prepend != PreTokenizerStep::kNever;
  } else {
    return UnknownType(type, "ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, Sequence");
  }
  return step;
}

// One entry of special_tokens: {"id": name, "ids": [...], "tokens": [...]}.
absl::Status AppendTemplateToken(const Json& component, const std::string& name, std::vector<TokenId>* ids) {
  const Json* tokens = FindMember(component, "special_tokens");
  const Json* token = tokens == nullptr ? nullptr : FindMember(*tokens, name);
  const Json* token_ids = token == nullptr ? nullptr : FindMember(*token, "ids");
  if (token_ids == nullptr || !token_ids->is_array()) {
    return BadFileError("special_tokens: expected an entry with ids for '", Printable(name), "', found none");
  }
  for (const Json& id : *token_ids) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > kMaxTokenId) {
      return BadFileError("special_tokens: '", Printable(name), "': expected ids from 0 to ", kMaxTokenId, ", found ", DumpJson(id));
    }
    ids->push_back(id.get<TokenId>());
  }
  return absl::OkStatus();
}

absl::Status ReadTemplate(const Json& component, SequenceTemplate* result) {
  const Json* single = FindMember(component, "single");
  if (single == nullptr || !single->is_array()) return BadFileError("single: expected an array, found none");
  SequenceTemplate added;
  int sequences = 0;
  for (const Json& piece : *single) {
    const Json* token = FindMember(piece, "SpecialToken");
    if (token == nullptr) {
      if (FindMember(piece, "Sequence") == nullptr) {
        return BadFileError("single: expected SpecialToken or Sequence, found ", Printable(DumpJson(piece)));
      }
      ++sequences;
      continue;
    }
    ASSIGN_OR_RETURN(const std::string name, GetString(*token, "id"));
    RETURN_IF_ERROR(AppendTemplateToken(component, name, sequences == 0 ? &added.prefix_ids : &added.suffix_ids));
  }
  if (sequences != 1) return NotSupportedError("single: a template with ", sequences, " sequences is not supported (1)");
  result->prefix_ids.insert(result->prefix_ids.begin(), added.prefix_ids.begin(), added.prefix_ids.end());
  result->suffix_ids.insert(result->suffix_ids.end(), added.suffix_ids.begin(), added.suffix_ids.end());
  return absl::OkStatus();
}

OrderedJson WriteSequence(const char* list, std::vector<OrderedJson> steps) {
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return std::move(steps[0]);
  OrderedJson sequence = {{"type", "Sequence"}};
  sequence[list] = std::move(steps);
  return sequence;
}

OrderedJson WritePattern(const TextPattern& pattern) { return OrderedJson{{pattern.is_regex ? "Regex" : "String", pattern.text}}; }

OrderedJson WriteNormalizerStep(const NormalizerStep& step) {
  switch (step.kind) {
    case NormalizerStep::kNfc: return {{"type", "NFC"}};
    case NormalizerStep::kNfd: return {{"type", "NFD"}};
    case NormalizerStep::kNfkc: return {{"type", "NFKC"}};
    case NormalizerStep::kNfkd: return {{"type", "NFKD"}};
    case NormalizerStep::kLowercase: return {{"type", "Lowercase"}};
    case NormalizerStep::kStrip: return {{"type", "Strip"}, {"strip_left", step.strip_left}, {"strip_right", step.strip_right}};
    case NormalizerStep::kReplace: return {{"type", "Replace"}, {"pattern", WritePattern(step.pattern)}, {"content", step.content}};
    case NormalizerStep::kPrepend: return {{"type", "Prepend"}, {"prepend", step.content}};
  }
  return nullptr;
}

OrderedJson WritePreTokenizerStep(const PreTokenizerStep& step) {
  switch (step.kind) {
    case PreTokenizerStep::kSplit:
      return {{"type", "Split"},
              {"pattern", WritePattern(step.pattern)},
              {"behavior", NameOf(step.behavior, kBehaviors)},
              {"invert", step.invert}};
    case PreTokenizerStep::kByteLevel:
      return {{"type", "ByteLevel"}, {"add_prefix_space", step.add_prefix_space}, {"trim_offsets", true}, {"use_regex", step.use_regex}};
    case PreTokenizerStep::kDigits: return {{"type", "Digits"}, {"individual_digits", step.individual_digits}};
    case PreTokenizerStep::kMetaspace:
      return {{"type", "Metaspace"},
              {"replacement", step.replacement},
              {"prepend_scheme", NameOf(step.prepend, kPrepends)},
              {"split", step.split}};
    case PreTokenizerStep::kWhitespace: return {{"type", "Whitespace"}};
    case PreTokenizerStep::kWhitespaceSplit: return {{"type", "WhitespaceSplit"}};
  }
  return nullptr;
}

OrderedJson WriteDecoderStep(const DecoderStep& step) {
  switch (step.kind) {
    case DecoderStep::kByteLevel: return {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
    case DecoderStep::kReplace: return {{"type", "Replace"}, {"pattern", WritePattern(step.pattern)}, {"content", step.content}};
    case DecoderStep::kByteFallback: return {{"type", "ByteFallback"}};
    case DecoderStep::kFuse: return {{"type", "Fuse"}};
    case DecoderStep::kStrip: return {{"type", "Strip"}, {"content", step.content}, {"start", step.start}, {"stop", step.stop}};
    case DecoderStep::kMetaspace:
      return {{"type", "Metaspace"},
              {"replacement", step.content},
              {"prepend_scheme", step.drops_leading ? "always" : "never"},
              {"split", true}};
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<NormalizerStep>> ReadNormalizer(const Json& component) {
  std::vector<NormalizerStep> steps;
  const auto read = [&](const Json& leaf, const std::string& type) -> absl::Status {
    ASSIGN_OR_RETURN(NormalizerStep step, ReadNormalizerStep(leaf, type));
    steps.push_back(std::move(step));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachLeaf(component, "normalizer", "normalizers", 0, read));
  return steps;
}

absl::StatusOr<std::vector<PreTokenizerStep>> ReadPreTokenizer(const Json& component) {
  std::vector<PreTokenizerStep> steps;
  const auto read = [&](const Json& leaf, const std::string& type) -> absl::Status {
    ASSIGN_OR_RETURN(PreTokenizerStep step, ReadPreTokenizerStep(leaf, type));
    steps.push_back(std::move(step));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachLeaf(component, "pre_tokenizer", "pretokenizers", 0, read));
  return steps;
}

absl::StatusOr<std::optional<std::vector<DecoderStep>>> ReadDecoder(const Json& component) {
  if (component.is_null()) return std::optional<std::vector<DecoderStep>>();
  std::vector<DecoderStep> steps;
  const auto read = [&](const Json& leaf, const std::string& type) -> absl::Status {
    ASSIGN_OR_RETURN(DecoderStep step, ReadDecoderStep(leaf, type));
    steps.push_back(std::move(step));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachLeaf(component, "decoder", "decoders", 0, read));
  return std::optional<std::vector<DecoderStep>>(std::move(steps));
}

absl::StatusOr<SequenceTemplate> ReadPostProcessor(const Json& component) {
  SequenceTemplate result;
  const auto read = [&](const Json& leaf, const std::string& type) {
    if (type == "ByteLevel") return absl::OkStatus();  // trims offsets, which we do not have
    if (type == "TemplateProcessing") return ReadTemplate(leaf, &result);
    return UnknownType(type, "TemplateProcessing, ByteLevel, Sequence");
  };
  RETURN_IF_ERROR(ForEachLeaf(component, "post_processor", "processors", 0, read));
  return result;
}

OrderedJson WriteNormalizer(const std::vector<NormalizerStep>& steps) {
  std::vector<OrderedJson> written;
  for (const NormalizerStep& step : steps) written.push_back(WriteNormalizerStep(step));
  return WriteSequence("normalizers", std::move(written));
}

OrderedJson WritePreTokenizer(const std::vector<PreTokenizerStep>& steps) {
  std::vector<OrderedJson> written;
  for (const PreTokenizerStep& step : steps) written.push_back(WritePreTokenizerStep(step));
  return WriteSequence("pretokenizers", std::move(written));
}

OrderedJson WriteDecoder(const std::optional<std::vector<DecoderStep>>& steps) {
  if (!steps.has_value()) return nullptr;
  std::vector<OrderedJson> written;
  for (const DecoderStep& step : *steps) written.push_back(WriteDecoderStep(step));
  return WriteSequence("decoders", std::move(written));
}

OrderedJson WritePostProcessor(const TokenizerDefinition& definition) {
  if (definition.prefix_ids.empty() && definition.suffix_ids.empty()) return nullptr;
  OrderedJson special_tokens = OrderedJson::object();
  const auto token = [&](TokenId id, int type_id) -> OrderedJson {
    const std::string text(DefinitionTokenText(definition, id));
    special_tokens[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
    return {{"SpecialToken", {{"id", text}, {"type_id", type_id}}}};
  };
  const auto append = [&](const char* sequence, int type_id, OrderedJson* pieces) {
    for (const TokenId id : definition.prefix_ids) pieces->push_back(token(id, type_id));
    pieces->push_back({{"Sequence", {{"id", sequence}, {"type_id", type_id}}}});
    for (const TokenId id : definition.suffix_ids) pieces->push_back(token(id, type_id));
  };
  OrderedJson single = OrderedJson::array(), pair = OrderedJson::array();
  append("A", 0, &single);
  append("A", 0, &pair);
  append("B", 1, &pair);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special_tokens}};
}

}  // namespace pith
