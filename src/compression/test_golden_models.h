// For tests only: the tiny models of tests/golden.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "artifact/artifact_reader.h"
#include "gtest/gtest.h"

namespace pith {

inline std::unique_ptr<ArtifactReader> OpenGolden(const std::string& name) {
  auto reader = ArtifactReader::Open(absl::StrCat(PITH_SOURCE_DIR, "/tests/golden/models/", name));
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *std::move(reader);
}

}  // namespace pith
