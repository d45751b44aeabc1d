#include "tokenizer/tokenizer_json.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/json.h"
#include "base/status.h"
#include "simdjson.h"
#include "tokenizer/component_json.h"

namespace pith {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kMaxFileBytes = size_t{1} << 30;
constexpr size_t kMaxDepth = 64;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

using Element = std::optional<dom::element>;

// nullopt when the member is absent or null.
Element Member(dom::object object, std::string_view key) {
  dom::element element;
  if (object.at_key(key).get(element) != simdjson::SUCCESS || element.is_null()) return std::nullopt;
  return element;
}

template <typename Value> bool Get(const Element& element, Value* value) {
  return element.has_value() && element->get(*value) == simdjson::SUCCESS;
}

std::string Shown(const Element& element) { return element.has_value() ? Printable(simdjson::minify(*element)) : "nothing"; }

// The small components go through the strict reader of base/json.h, which refuses repeated keys.
absl::StatusOr<Json> AsJson(const Element& element) {
  if (!element.has_value()) return Json(nullptr);
  return ParseJson(simdjson::minify(*element));
}

absl::Status RefuseRepeatedKeys(dom::object object) {
  absl::flat_hash_set<std::string_view> seen;
  for (const dom::key_value_pair entry : object) {
    if (!seen.insert(entry.key).second) return BadFileError("expected every key once, found '", Printable(View(entry.key)), "' twice");
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ReadFlag(dom::object model, std::string_view key) {
  const Element element = Member(model, key);
  bool flag = false;
  if (!element.has_value() || Get(element, &flag)) return flag;
  return BadFileError(View(key), ": expected true or false, found ", Shown(element));
}

absl::Status ReadVocabulary(const Element& element, Vocabulary* vocabulary) {
  dom::object entries;
  if (!Get(element, &entries)) return BadFileError("vocab: expected an object, found ", Shown(element));
  vocabulary->Reserve(entries.size());
  // The table by id is as long as the largest id, which a short file must not make large.
  const int64_t max_id = std::min<int64_t>(kMaxTokenId, 4 * static_cast<int64_t>(entries.size()) + 65536);
  for (const dom::key_value_pair entry : entries) {
    int64_t id = 0;
    if (entry.value.get(id) != simdjson::SUCCESS || id < 0 || id > max_id) {
      return BadFileError("vocab: '", Printable(View(entry.key)), "': expected an id from 0 to ", max_id, ", found ", Shown(entry.value));
    }
    RETURN_IF_ERROR(Annotate(vocabulary->Add(View(entry.key), static_cast<TokenId>(id)), "vocab"));
  }
  return absl::OkStatus();
}

// A merge is "left right" or ["left", "right"].
absl::Status SplitMerge(dom::element element, size_t rank, absl::string_view* left, absl::string_view* right) {
  std::string_view text;
  dom::array pair;
  if (element.get(text) == simdjson::SUCCESS) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(View(text), absl::MaxSplits(' ', 1));
    std::tie(*left, *right) = parts;
    if (!left->empty() && !right->empty() && right->find(' ') == absl::string_view::npos) return absl::OkStatus();
  } else if (element.get(pair) == simdjson::SUCCESS && pair.size() == 2) {
    std::string_view first, second;
    if (pair.at(0).get(first) == simdjson::SUCCESS && pair.at(1).get(second) == simdjson::SUCCESS && !first.empty() && !second.empty()) {
      *left = View(first);
      *right = View(second);
      return absl::OkStatus();
    }
  }
  return BadFileError("merges[", rank, "]: expected two texts, found ", Shown(element));
}

absl::Status ReadMerges(const Element& element, TokenizerDefinition* definition) {
  dom::array entries;
  if (!Get(element, &entries)) return BadFileError("merges: expected an array, found ", Shown(element));
  const Vocabulary& vocabulary = definition->vocabulary;
  definition->merges.reserve(entries.size());
  std::string merged;
  size_t rank = 0;
  for (const dom::element entry : entries) {
    absl::string_view left, right;
    RETURN_IF_ERROR(SplitMerge(entry, rank, &left, &right));
    merged.clear();
    absl::StrAppend(&merged, left, right);
    const std::optional<TokenId> left_id = vocabulary.Find(left), right_id = vocabulary.Find(right), merged_id = vocabulary.Find(merged);
    if (!left_id.has_value() || !right_id.has_value() || !merged_id.has_value()) {
      const absl::string_view missing = !left_id.has_value() ? left : !right_id.has_value() ? right : absl::string_view(merged);
      return BadFileError("merges[", rank, "]: expected tokens of the vocabulary, found '", Printable(missing), "'");
    }
    definition->merges.push_back({*left_id, *right_id, *merged_id});
    ++rank;
  }
  return absl::OkStatus();
}

// What we do not run is refused unless it is absent, null, zero or empty.
absl::Status RefuseOptions(dom::object model) {
  const Element dropout = Member(model, "dropout");
  double probability = 0;
  if (dropout.has_value() && (!Get(dropout, &probability) || probability != 0)) {
    return NotSupportedError("dropout ", Shown(dropout), " is not supported (null)");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Element element = Member(model, key);
    std::string_view text;
    if (element.has_value() && (!Get(element, &text) || !text.empty())) {
      return NotSupportedError(key, " ", Shown(element), " is not supported (null)");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadModel(const Element& element, TokenizerDefinition* definition) {
  dom::object model;
  if (!Get(element, &model)) return BadFileError("expected an object, found ", Shown(element));
  RETURN_IF_ERROR(RefuseRepeatedKeys(model));
  // Old files have no type; a BPE is then known by its merges.
  std::string_view type = Member(model, "merges").has_value() ? "BPE" : "";
  if (const Element given = Member(model, "type"); given.has_value() && !Get(given, &type)) type = "";
  if (type != "BPE") return NotSupportedError("type '", Printable(View(type)), "' is not supported (BPE)");
  RETURN_IF_ERROR(RefuseOptions(model));
  ASSIGN_OR_RETURN(definition->byte_fallback, ReadFlag(model, "byte_fallback"));
  ASSIGN_OR_RETURN(definition->fuse_unk, ReadFlag(model, "fuse_unk"));
  ASSIGN_OR_RETURN(definition->ignore_merges, ReadFlag(model, "ignore_merges"));
  RETURN_IF_ERROR(ReadVocabulary(Member(model, "vocab"), &definition->vocabulary));
  RETURN_IF_ERROR(ReadMerges(Member(model, "merges"), definition));
  const Element unk = Member(model, "unk_token");
  if (!unk.has_value()) return absl::OkStatus();
  std::string_view name;
  if (Get(unk, &name)) definition->unk_id = definition->vocabulary.Find(View(name));
  if (!definition->unk_id.has_value()) return BadFileError("unk_token: expected a token of the vocabulary, found ", Shown(unk));
  return absl::OkStatus();
}

absl::Status ReadAddedTokens(const Json& tokens, TokenizerDefinition* definition) {
  if (tokens.is_null()) return absl::OkStatus();
  if (!tokens.is_array()) return BadFileError("expected an array, found ", tokens.type_name());
  definition->added_tokens.reserve(tokens.size());
  for (const Json& entry : tokens) {
    AddedToken token;
    ASSIGN_OR_RETURN(token.content, GetString(entry, "content"));
    if (token.content.empty()) continue;  // can never match
    ASSIGN_OR_RETURN(const int64_t id, GetInt(entry, "id", 0, kMaxTokenId));
    token.id = static_cast<TokenId>(id);
    ASSIGN_OR_RETURN(token.special, GetBool(entry, "special", false));
    ASSIGN_OR_RETURN(token.single_word, GetBool(entry, "single_word", false));
    ASSIGN_OR_RETURN(token.lstrip, GetBool(entry, "lstrip", false));
    ASSIGN_OR_RETURN(token.rstrip, GetBool(entry, "rstrip", false));
    ASSIGN_OR_RETURN(token.normalized, GetBool(entry, "normalized", !token.special));
    definition->added_tokens.push_back(std::move(token));
  }
  return absl::OkStatus();
}

absl::Status ReadComponents(dom::object file, TokenizerDefinition* definition) {
  ASSIGN_OR_RETURN(const Json added_tokens, AsJson(Member(file, "added_tokens")));
  RETURN_IF_ERROR(Annotate(ReadAddedTokens(added_tokens, definition), "added_tokens"));
  ASSIGN_OR_RETURN(const Json normalizer, AsJson(Member(file, "normalizer")));
  ASSIGN_OR_RETURN(definition->normalizer, ReadNormalizer(normalizer));
  ASSIGN_OR_RETURN(const Json pre_tokenizer, AsJson(Member(file, "pre_tokenizer")));
  ASSIGN_OR_RETURN(definition->pre_tokenizer, ReadPreTokenizer(pre_tokenizer));
  ASSIGN_OR_RETURN(const Json post_processor, AsJson(Member(file, "post_processor")));
  ASSIGN_OR_RETURN(SequenceTemplate around, ReadPostProcessor(post_processor));
  definition->prefix_ids = std::move(around.prefix_ids);
  definition->suffix_ids = std::move(around.suffix_ids);
  ASSIGN_OR_RETURN(const Json decoder, AsJson(Member(file, "decoder")));
  ASSIGN_OR_RETURN(definition->decoder, ReadDecoder(decoder));
  return absl::OkStatus();
}

absl::StatusOr<TokenizerDefinition> ReadFile(absl::string_view text) {
  if (text.size() > kMaxFileBytes) return BadFileError("expected at most ", kMaxFileBytes, " bytes, found ", text.size());
  if (text.empty()) return BadFileError("expected a JSON object, found nothing");
  dom::parser parser;
  if (const auto error = parser.allocate(text.size(), kMaxDepth); error != simdjson::SUCCESS) {
    return OutOfMemoryError("expected memory for ", text.size(), " bytes of JSON: ", simdjson::error_message(error));
  }
  dom::object file;
  if (const auto error = parser.parse(text.data(), text.size()).get(file); error != simdjson::SUCCESS) {
    return BadFileError("expected a JSON object, found: ", simdjson::error_message(error));
  }
  RETURN_IF_ERROR(RefuseRepeatedKeys(file));
  TokenizerDefinition definition;
  RETURN_IF_ERROR(Annotate(ReadModel(Member(file, "model"), &definition), "model"));
  RETURN_IF_ERROR(ReadComponents(file, &definition));
  return definition;
}

// bos_token and the like: a text, or an object with its content.
absl::StatusOr<std::optional<TokenId>> ReadNamedToken(const Json& config, const char* key, const TokenizerDefinition& definition) {
  const Json* value = FindMember(config, key);
  if (value == nullptr) return std::optional<TokenId>();
  const Json* content = value->is_object() ? FindMember(*value, "content") : value;
  if (content == nullptr || !content->is_string()) {
    return BadFileError(key, ": expected a text or an object with content, found ", Printable(DumpJson(*value)));
  }
  const std::string& name = content->get_ref<const std::string&>();
  if (const std::optional<TokenId> id = definition.vocabulary.Find(name); id.has_value()) return id;
  for (const AddedToken& token : definition.added_tokens) {
    if (token.content == name) return std::optional<TokenId>(token.id);
  }
  return BadFileError(key, ": expected a token of tokenizer.json, found '", Printable(name), "'");
}

absl::Status ReadConfig(absl::string_view text, TokenizerDefinition* definition) {
  ASSIGN_OR_RETURN(const Json config, ParseJson(text));
  if (!config.is_object()) return BadFileError("expected an object, found ", config.type_name());
  ASSIGN_OR_RETURN(definition->bos_id, ReadNamedToken(config, "bos_token", *definition));
  ASSIGN_OR_RETURN(definition->eos_id, ReadNamedToken(config, "eos_token", *definition));
  ASSIGN_OR_RETURN(definition->pad_id, ReadNamedToken(config, "pad_token", *definition));
  if (const Json* chat_template = FindMember(config, "chat_template"); chat_template != nullptr && chat_template->is_string()) {
    definition->chat_template = chat_template->get<std::string>();
  }
  return absl::OkStatus();
}

void AppendJsonString(absl::string_view text, std::string* out) {
  out->push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (static_cast<uint8_t>(c) < 0x20) {
      absl::StrAppendFormat(out, "\\u%04x", c);
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

void AppendVocabulary(const Vocabulary& vocabulary, std::string* out) {
  const char* separator = "{";
  for (TokenId id = 0; id < vocabulary.end_id(); ++id) {
    if (!vocabulary.Has(id)) continue;
    absl::StrAppend(out, separator, "\n   ");
    AppendJsonString(vocabulary.Text(id), out);
    absl::StrAppend(out, ": ", id);
    separator = ",";
  }
  absl::StrAppend(out, vocabulary.size() == 0 ? "{}" : "\n  }");
}

// "left right", or pairs when a token has a space in it.
void AppendMerges(const TokenizerDefinition& definition, std::string* out) {
  const Vocabulary& vocabulary = definition.vocabulary;
  bool as_pairs = false;
  for (const BpeMerge& merge : definition.merges) as_pairs |= vocabulary.Text(merge.merged).find(' ') != absl::string_view::npos;
  out->push_back('[');
  const char* separator = "\n   ";
  for (const BpeMerge& merge : definition.merges) {
    out->append(separator);
    separator = ",\n   ";
    const absl::string_view left = vocabulary.Text(merge.left), right = vocabulary.Text(merge.right);
    if (as_pairs) {
      out->push_back('[');
      AppendJsonString(left, out);
      out->append(", ");
      AppendJsonString(right, out);
      out->push_back(']');
    } else {
      AppendJsonString(absl::StrCat(left, " ", right), out);
    }
  }
  out->append(definition.merges.empty() ? "]" : "\n  ]");
}

void AppendAddedTokens(const std::vector<AddedToken>& tokens, std::string* out) {
  out->push_back('[');
  const char* separator = "\n  ";
  for (const AddedToken& token : tokens) {
    const OrderedJson entry = {{"id", token.id},          {"content", token.content}, {"single_word", token.single_word},
                               {"lstrip", token.lstrip},  {"rstrip", token.rstrip},   {"normalized", token.normalized},
                               {"special", token.special}};
    absl::StrAppend(out, separator, DumpJson(entry));
    separator = ",\n  ";
  }
  out->append(tokens.empty() ? "]" : "\n ]");
}

std::string WriteConfig(const TokenizerDefinition& definition) {
  const auto name = [&](std::optional<TokenId> id) -> OrderedJson {
    if (!id.has_value()) return nullptr;
    return std::string(DefinitionTokenText(definition, *id));
  };
  const auto is_added = [&](std::optional<TokenId> id, const std::vector<TokenId>& ids) {
    return id.has_value() && std::find(ids.begin(), ids.end(), *id) != ids.end();
  };
  OrderedJson config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  config["add_bos_token"] = is_added(definition.bos_id, definition.prefix_ids);
  config["add_eos_token"] = is_added(definition.eos_id, definition.suffix_ids);
  config["bos_token"] = name(definition.bos_id);
  config["eos_token"] = name(definition.eos_id);
  config["pad_token"] = name(definition.pad_id);
  config["unk_token"] = name(definition.unk_id);
  config["clean_up_tokenization_spaces"] = false;
  if (!definition.chat_template.empty()) config["chat_template"] = definition.chat_template;
  return DumpJson(config, 1);
}

}  // namespace

absl::StatusOr<TokenizerDefinition> ReadTokenizerJson(absl::string_view tokenizer_json, absl::string_view config_json) {
  absl::StatusOr<TokenizerDefinition> definition = ReadFile(tokenizer_json);
  if (!definition.ok()) return Annotate(definition.status(), "tokenizer.json");
  if (!config_json.empty()) RETURN_IF_ERROR(Annotate(ReadConfig(config_json, &*definition), "tokenizer_config.json"));
  RETURN_IF_ERROR(Annotate(CheckDefinition(*definition), "tokenizer.json"));
  return definition;
}

TokenizerJsonFiles WriteTokenizerJson(const TokenizerDefinition& definition) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  std::string out = "{\n \"version\": \"1.0\",\n \"truncation\": null,\n \"padding\": null,\n \"added_tokens\": ";
  AppendAddedTokens(definition.added_tokens, &out);
  absl::StrAppend(&out, ",\n \"normalizer\": ", DumpJson(WriteNormalizer(definition.normalizer)));
  absl::StrAppend(&out, ",\n \"pre_tokenizer\": ", DumpJson(WritePreTokenizer(definition.pre_tokenizer)));
  absl::StrAppend(&out, ",\n \"post_processor\": ", DumpJson(WritePostProcessor(definition)));
  absl::StrAppend(&out, ",\n \"decoder\": ", DumpJson(WriteDecoder(definition.decoder)));
  absl::StrAppend(&out, ",\n \"model\": {\n  \"type\": \"BPE\",\n  \"dropout\": null,\n  \"unk_token\": ");
  if (definition.unk_id.has_value()) {
    AppendJsonString(definition.vocabulary.Text(*definition.unk_id), &out);
  } else {
    out.append("null");
  }
  absl::StrAppend(&out,
                  ",\n  \"continuing_subword_prefix\": null,\n  \"end_of_word_suffix\": null,\n  \"fuse_unk\": ", flag(definition.fuse_unk),
                  ",\n  \"byte_fallback\": ", flag(definition.byte_fallback), ",\n  \"ignore_merges\": ", flag(definition.ignore_merges),
                  ",\n  \"vocab\": ");
  AppendVocabulary(definition.vocabulary, &out);
  out.append(",\n  \"merges\": ");
  AppendMerges(definition, &out);
  out.append("\n }\n}\n");
  return {std::move(out), WriteConfig(definition)};
}

}  // namespace pith
