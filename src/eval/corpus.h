// Text to measure on: files cut into windows of tokens, grouped into slices.
//
// .txt, .raw and .utf8 files are one text each; .jsonl files one document per line: {"text": ...}, {"content": ...}, or a task's row, whose
// text is its "prompt" and what answers it ("canonical_solution" or "answer"). A folder is read in the order of its file names.
// The slice is the file's name without its extension. Windows do not overlap, and a rest shorter than the context is left out; documents of
// a .jsonl shorter than the context become one short window (at least two tokens). When the tokenizer adds a BOS token, every window starts
// with it in place of its first token, as llama-perplexity does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tokenizer/tokenizer.h"

namespace pith {

struct TokenWindow {
  std::string slice;
  int64_t document = 0;         // unit of the bootstrap: the .jsonl line, or the window itself for running text
  std::vector<int32_t> tokens;  // at most the context
};

struct Corpus {
  std::string source;  // path as given
  int64_t context = 0;
  bool bos = false;  // windows start with BOS
  std::vector<TokenWindow> windows;
  int64_t num_documents = 0;

  std::vector<std::string> slices() const;  // in order of appearance
};

struct CorpusOptions {
  int64_t context = 512;  // tokens per window, >= 2
  int64_t limit = 0;      // windows per slice; 0: all
};

// Errors: kNotFound (no such path), kDataLoss (not UTF-8, bad JSON, no readable file, nothing long enough: named).
absl::StatusOr<Corpus> LoadCorpus(const std::string& path, const Tokenizer& tokenizer, const CorpusOptions& options);
// The slices in the binary (builtin_slices.h); the source is "built-in slices".
absl::StatusOr<Corpus> LoadBuiltinCorpus(const Tokenizer& tokenizer, const CorpusOptions& options);

}  // namespace pith
