// How texts begin that a model is asked to go on with, to be calibrated on its own words: a few words each, of several kinds of text and
// languages, written for this project. Constant data, UTF-8.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

struct SampleStart {
  absl::string_view domain;  // "prose", "code", "math", "questions", "dialogue" or "multilingual"
  absl::string_view text;
};

// Of running text. None ends in a space, which would split the word that follows in two for most tokenizers.
absl::Span<const SampleStart> RawStarts();
// What a user says first.
absl::Span<const SampleStart> UserMessages();

}  // namespace pith
