// From sampled tokens to the text a client may see: detokenized in pieces that are valid UTF-8, ended before the first stop string, and
// with any suffix held back that could still become one. One per choice; not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tokenizer/tokenizer.h"

namespace pith {

// Finds the earliest stop string in a text that arrives in pieces.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Text that can be shown now. After a match (stopped() is true) nothing more comes.
  std::string Append(absl::string_view piece);
  // The text is over: what was held back, unless a stop string matched.
  std::string Finish();
  bool stopped() const { return stopped_; }

 private:
  const std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

class TextGeneration {
 public:
  TextGeneration(const Tokenizer& tokenizer, std::vector<std::string> stops) : detokenizer_(tokenizer), matcher_(std::move(stops)) {}

  // Text to show after one more token.
  std::string Append(TokenId token) { return matcher_.Append(detokenizer_.Append(token)); }
  std::string Finish() { return matcher_.Append(detokenizer_.Finish()) + matcher_.Finish(); }
  bool stopped() const { return matcher_.stopped(); }

 private:
  StreamDetokenizer detokenizer_;
  StopMatcher matcher_;
};

}  // namespace pith
