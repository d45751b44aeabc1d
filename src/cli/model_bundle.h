// What most commands need of one model: its files, tokenizer, chat template, and the model itself ready to run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "model/decoder_model.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace pith {

// Owns everything; the pool is shared and must outlive it.
struct ModelBundle {
  std::string name;  // to show and to serve it by: ORG/NAME of a repository, else the last part of its path
  std::unique_ptr<ArtifactReader> reader;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;  // absent: a base model
  std::string bos_token, eos_token;           // texts, for the template
  std::vector<int32_t> stop_token_ids;        // generation_config's eos ids, else the tokenizer's
  std::unique_ptr<DecoderModel> model;        // null with LoadModelFiles
  PrepackCacheReport prepack_cache;           // of the load of its weights
  std::string fingerprint;                    // of FingerprintOf; empty until it is asked for
};

// ArtifactReader::Fingerprint, which reads every byte of the model: once.
absl::StatusOr<std::string> FingerprintOf(ModelBundle& bundle);

// Opens the files and the tokenizer of a path or a repository in the cache (model_path.h), but loads no weights.
absl::StatusOr<ModelBundle> LoadModelFiles(const std::string& model);
// What the bundle's config.json says of the decoder, to be asked before its weights are loaded. Errors: those of ParseDecoderConfig, with
// the path.
absl::StatusOr<DecoderConfig> ReadDecoderConfig(const ModelBundle& bundle);
// --ctx-size of a command that serves up to so many tokens; 0: not given. Errors: kInvalidArgument beyond max_position_embeddings.
absl::Status CheckContextSize(const ModelBundle& bundle, int64_t context);
// The weights of a bundle that LoadModelFiles opened, with progress on stderr. `activations`: what weight-only quantized matrices are
// multiplied with. `prepack_cache`: a directory to take prepacked weights from, or to keep them in; empty: none. A file written to it is
// noted on stderr, and so is why one was not used.
absl::Status LoadWeights(ModelBundle& bundle, ThreadPool& pool, WeightOnlyActivation activations = {},
                         const std::string& prepack_cache = "");
// Both.
absl::StatusOr<ModelBundle> LoadModel(const std::string& model, ThreadPool& pool, WeightOnlyActivation activations = {},
                                      const std::string& prepack_cache = "");

// The tokenizer and the metadata it needs, from whichever container.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const TokenizerFiles& files);
GgufVocabulary MakeGgufVocabulary(const TokenizerFiles& files);

// Ids of a chat prompt: template text with special tokens parsed, user text without. Errors: kInvalidArgument when the template refuses
// these messages, kDataLoss when it refuses a plain question too, kUnimplemented when the model has no chat template.
absl::StatusOr<std::vector<int32_t>> EncodeChat(const ModelBundle& bundle, const OrderedJson& messages);

}  // namespace pith
