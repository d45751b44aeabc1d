#include "kernels/layout_fingerprint.h"

#include <set>

#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(LayoutFingerprint, IsTheSameEachTimeAndAnotherPerInstructionSet) {
  std::set<std::string> seen;
  for (int isa = 0; isa <= static_cast<int>(DetectIsa()); ++isa) {
    const std::string fingerprint = LayoutFingerprint(static_cast<Isa>(isa));
    EXPECT_EQ(fingerprint.size(), 64u);
    EXPECT_EQ(fingerprint, LayoutFingerprint(static_cast<Isa>(isa)));
    EXPECT_TRUE(seen.insert(fingerprint).second) << isa;
  }
}

}  // namespace
}  // namespace pith
