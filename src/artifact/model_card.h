// README.md of an artifact: a model card, as the Hugging Face hub shows it, written from the manifest and what has been measured.
//
// What pith wrote stands between two comment lines and is written anew whenever evidence is attached; everything outside them is the
// user's and stays. The card belongs to no manifest: it may change without changing the artifact.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "artifact/evidence.h"
#include "artifact/manifest.h"

namespace pith {

inline constexpr char kModelCardName[] = "README.md";

// The whole card of a new artifact. The same manifest gives the same text: neither its place nor the date is in it.
std::string RenderModelCard(const Manifest& manifest, const std::optional<Evidence>& evidence);

// `card` with what stands between the marks replaced; nullopt when it has no marks.
std::optional<std::string> UpdateModelCard(absl::string_view card, const Manifest& manifest, const std::optional<Evidence>& evidence);

// Brings the card of a directory up to date with its manifest and evidence. Writes one where there is none; leaves alone what has no marks
// (somebody else's card) and a directory without a manifest. Errors: kDataLoss (manifest or evidence), kPermissionDenied, kAborted.
absl::Status RefreshModelCard(const std::string& directory);

}  // namespace pith
