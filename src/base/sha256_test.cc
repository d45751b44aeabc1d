#include "base/sha256.h"

#include <string>

#include "base/file.h"
#include "base/test_util.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

// FIPS 180-4 examples.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSameAsTheWhole) {
  const std::string text(1000, 'q');
  for (const size_t cut : {0, 1, 63, 64, 65, 1000}) {
    Sha256 hash;
    hash.Update(absl::string_view(text).substr(0, cut));
    hash.Update(absl::string_view(text).substr(cut));
    EXPECT_EQ(hash.HexDigest(), Sha256Hex(text));
  }
}

TEST(Sha256, KnowsItsOwnDigits) {
  EXPECT_TRUE(IsSha256(Sha256Hex("abc")));
  EXPECT_FALSE(IsSha256(std::string(63, 'a')));
  EXPECT_FALSE(IsSha256(std::string(65, 'a')));
  EXPECT_FALSE(IsSha256(std::string(63, 'a') + "g"));
  EXPECT_FALSE(IsSha256(std::string(63, 'a') + "A"));
}

TEST(Sha256, OfAFile) {
  const ScratchDirectory scratch;
  ASSERT_TRUE(WriteFileAtomically(scratch.File("a"), "abc").ok());
  ASSERT_TRUE(WriteFileAtomically(scratch.File("empty"), "").ok());
  EXPECT_EQ(*Sha256OfFile(scratch.File("a")), Sha256Hex("abc"));
  EXPECT_EQ(*Sha256OfFile(scratch.File("empty")), Sha256Hex(""));
  EXPECT_EQ(Sha256OfFile(scratch.File("none")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace pith
