#include "artifact/gguf_tokenizer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr char kTokens[] = "tokenizer.ggml.tokens", kTypes[] = "tokenizer.ggml.token_type", kScores[] = "tokenizer.ggml.scores",
               kMerges[] = "tokenizer.ggml.merges";
constexpr int32_t kByteToken = 6;
constexpr int64_t kNoToken = 0xFFFFFFFF;  // what some converters write for -1

bool IsByteToken(absl::string_view token) {
  return token.size() == 6 && absl::StartsWith(token, "<0x") && token[5] == '>' &&
         absl::ascii_isxdigit(static_cast<unsigned char>(token[3])) && absl::ascii_isxdigit(static_cast<unsigned char>(token[4]));
}

absl::Status CheckLength(absl::string_view key, size_t found, size_t num_tokens) {
  if (found == 0 || found == num_tokens) return absl::OkStatus();
  return BadFileError(key, ": expected ", num_tokens, " entries (one per token), found ", found);
}

absl::Status CheckTokens(const TokenizerFiles& files) {
  for (size_t i = 0; i < files.token_types.size(); ++i) {
    if (files.token_types[i] == kByteToken && !IsByteToken(files.tokens[i])) {
      return BadFileError(kTokens, "[", i, "]: expected a byte token of the form <0xHH>, found \"", Printable(files.tokens[i]), "\"");
    }
  }
  for (size_t i = 0; i < files.merges.size(); ++i) {
    const size_t space = files.merges[i].find(' ', 1);
    if (space == std::string::npos || space + 1 == files.merges[i].size()) {
      return BadFileError(kMerges, "[", i, "]: expected two parts with a space between, found \"", Printable(files.merges[i]), "\"");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReadTokenId(const GgufMetadata& metadata, absl::string_view name, size_t num_tokens) {
  const std::string key = absl::StrCat("tokenizer.ggml.", name, "_token_id");
  ASSIGN_OR_RETURN(const int64_t id, metadata.GetInt(key, -1, kNoToken, -1));
  if (id == kNoToken || id == -1) return -1;
  if (id >= static_cast<int64_t>(num_tokens)) {
    return BadFileError(key, ": expected an id below ", num_tokens, " (the number of tokens), found ", id);
  }
  return id;
}

}  // namespace

absl::StatusOr<TokenizerFiles> ReadGgufTokenizer(const GgufMetadata& metadata, int64_t vocab_size) {
  TokenizerFiles files;
  ASSIGN_OR_RETURN(files.chat_template_jinja, metadata.GetString("tokenizer.chat_template", ""));
  ASSIGN_OR_RETURN(files.gguf_model, metadata.GetString("tokenizer.ggml.model", ""));
  if (files.gguf_model.empty()) return files;
  ASSIGN_OR_RETURN(files.gguf_pre, metadata.GetString("tokenizer.ggml.pre", ""));
  ASSIGN_OR_RETURN(files.tokens, metadata.GetStrings(kTokens));
  const size_t num_tokens = files.tokens.size();
  if (num_tokens == 0 || static_cast<int64_t>(num_tokens) > vocab_size) {
    return BadFileError(kTokens, ": expected 1 to ", vocab_size, " tokens (rows of token_embd.weight), found ", num_tokens);
  }
  ASSIGN_OR_RETURN(files.scores, metadata.GetFloats(kScores));
  RETURN_IF_ERROR(CheckLength(kScores, files.scores.size(), num_tokens));
  ASSIGN_OR_RETURN(const std::vector<int64_t> types, metadata.GetInts(kTypes, 0, kByteToken));
  RETURN_IF_ERROR(CheckLength(kTypes, types.size(), num_tokens));
  files.token_types.assign(types.begin(), types.end());
  ASSIGN_OR_RETURN(files.merges, metadata.GetStrings(kMerges));
  RETURN_IF_ERROR(CheckTokens(files));
  ASSIGN_OR_RETURN(files.bos_id, ReadTokenId(metadata, "bos", num_tokens));
  ASSIGN_OR_RETURN(files.eos_id, ReadTokenId(metadata, "eos", num_tokens));
  ASSIGN_OR_RETURN(files.unk_id, ReadTokenId(metadata, "unknown", num_tokens));
  ASSIGN_OR_RETURN(files.pad_id, ReadTokenId(metadata, "padding", num_tokens));
  ASSIGN_OR_RETURN(files.eot_id, ReadTokenId(metadata, "eot", num_tokens));
  ASSIGN_OR_RETURN(files.add_bos, metadata.GetBool("tokenizer.ggml.add_bos_token"));
  ASSIGN_OR_RETURN(files.add_eos, metadata.GetBool("tokenizer.ggml.add_eos_token"));
  ASSIGN_OR_RETURN(files.add_space_prefix, metadata.GetBool("tokenizer.ggml.add_space_prefix"));
  return files;
}

}  // namespace pith
