#include "artifact/gguf.h"

#include <rapidcheck.h>

#include <ctime>

#include "artifact/test_files.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

constexpr uint32_t kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ8_0 = 8, kQ4K = 12;

std::string Error(const std::string& bytes, absl::StatusCode code = absl::StatusCode::kDataLoss) {
  const auto file = GgufFile::Parse(bytes);
  if (file.ok()) return "accepted";
  EXPECT_EQ(file.status().code(), code) << file.status();
  return std::string(file.status().message());
}

std::string Floats(int n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i) + 0.5f;
  return RawBytes(values);
}

// Two tensors, the first not a multiple of the alignment.
GgufBuilder Good() {
  GgufBuilder builder;
  builder.Str("general.architecture", "llama")
      .Tensor("a", {3, 2}, kF32, Floats(6))
      .Tensor("b.weight", {32, 2}, kQ8_0, std::string(68, 'q'));
  return builder;
}

TEST(Gguf, ReadsTensorsInHuggingFaceOrder) {
  const ScratchDirectory scratch;
  WriteTestFile(scratch.File("m.gguf"), Good().Build());
  const auto file = GgufFile::Open(scratch.File("m.gguf"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(*file->metadata().GetString("general.architecture"), "llama");
  ASSERT_EQ(file->tensors().size(), 2u);
  const GgufTensor* a = file->Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->shape, Shape({2, 3}));
  EXPECT_EQ(a->type->name, "F32");
  EXPECT_EQ(a->begin % 32, 0u);
  const auto bytes = file->Bytes(*a);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), Floats(6));
  const GgufTensor* b = file->Find("b.weight");
  EXPECT_EQ(b->size, 68u);
  EXPECT_EQ(b->begin, a->begin + 32);
  EXPECT_EQ(file->Bytes(*b)[67], 'q');
  EXPECT_EQ(file->Find("c"), nullptr);
}

TEST(Gguf, AcceptsWhatTheRulesAllow) {
  EXPECT_EQ(Error(GgufBuilder().Build()), "accepted");
  EXPECT_EQ(Error(GgufBuilder().U32("a", 1).Build()), "accepted");
  EXPECT_EQ(Error(GgufBuilder().Tensor("s", {}, kF32, Floats(1)).Build()), "accepted");            // rank 0
  EXPECT_EQ(Error(GgufBuilder().Tensor("e", {32, 0}, kQ8_0, "").Build()), "accepted");             // nothing
  EXPECT_EQ(Error(GgufBuilder().Tensor("d", {2, 1, 1, 2}, kF32, Floats(4)).Build()), "accepted");  // rank 4
  EXPECT_EQ(Error(GgufBuilder().Tensor(std::string(63, 'n'), {1}, kF32, Floats(1)).Build()), "accepted");
  GgufBuilder old = Good();
  old.version = 2;
  EXPECT_EQ(Error(old.Build()), "accepted");
  GgufBuilder aligned;
  aligned.alignment = 256;
  EXPECT_EQ(Error(aligned.U32("general.alignment", 256).Tensor("a", {3}, kF32, Floats(3)).Tensor("b", {1}, kF32, Floats(1)).Build()),
            "accepted");
  // The padding behind the last tensor may be missing.
  const std::string padded = GgufBuilder().Tensor("a", {3}, kF32, Floats(3)).Build();
  EXPECT_EQ(Error(padded.substr(0, padded.size() - 20)), "accepted");
  EXPECT_NE(Error(padded.substr(0, padded.size() - 21)), "accepted");
}

TEST(Gguf, Magic) {
  EXPECT_THAT(Error(""), HasSubstr("magic: expected \"GGUF\", found an empty file"));
  EXPECT_THAT(Error("GGML1234"), HasSubstr("magic: expected \"GGUF\", found \"GGML\""));
  EXPECT_THAT(Error("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("Git LFS pointer"));
  EXPECT_THAT(Error("<html>login"), HasSubstr("HTML page"));
  EXPECT_THAT(Error(SafetensorsBytes("{\"a\":1}", "")), HasSubstr("found a safetensors file"));
}

TEST(Gguf, Versions) {
  GgufBuilder builder = Good();
  for (const uint32_t version : {0u, 4u, 99u}) {
    builder.version = version;
    EXPECT_THAT(Error(builder.Build()), HasSubstr(absl::StrCat("version: expected 2 or 3, found ", version)));
  }
  builder.version = 1;
  EXPECT_THAT(Error(builder.Build()), HasSubstr("convert the model again"));
  builder.version = 0x03000000;
  EXPECT_THAT(Error(builder.Build()), HasSubstr("found a big-endian file"));
}

TEST(Gguf, CountsFitTheFile) {
  for (const int64_t delta : {int64_t{-3}, int64_t{1} << 40, std::numeric_limits<int64_t>::max() - 2}) {
    GgufBuilder tensors = Good();
    tensors.tensor_count_delta = delta;
    EXPECT_THAT(Error(tensors.Build()), HasSubstr("tensor count: expected 0 to ")) << delta;
    GgufBuilder values = Good();
    values.kv_count_delta = delta;
    EXPECT_THAT(Error(values.Build()), HasSubstr("metadata count: expected 0 to ")) << delta;
  }
  GgufBuilder one_more = Good();
  one_more.tensor_count_delta = 1;
  EXPECT_NE(Error(one_more.Build()), "accepted");
  one_more.tensor_count_delta = 0;
  one_more.kv_count_delta = 1;
  EXPECT_NE(Error(one_more.Build()), "accepted");
}

// A count that the file could not hold is refused before anything is reserved.
TEST(Gguf, HugeCountsAreRefusedAtOnce) {
  GgufBuilder builder;
  builder.Raw("tokenizer.ggml.tokens", 9, absl::StrCat(RawBytes<uint32_t>(8), RawBytes<uint64_t>(1'000'000'000), std::string(4096, '\0')));
  const std::string bytes = builder.Build();
  const std::clock_t start = std::clock();  // CPU time, here and elsewhere: the machine may be busy
  EXPECT_THAT(Error(bytes), HasSubstr("tokenizer.ggml.tokens: array length"));
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 10);
}

TEST(Gguf, Alignment) {
  const auto with = [](uint32_t type, absl::string_view raw) {
    return GgufBuilder().Raw("general.alignment", type, raw).Tensor("a", {1}, kF32, Floats(1)).Build();
  };
  EXPECT_EQ(Error(with(4, RawBytes<uint32_t>(32))), "accepted");
  EXPECT_THAT(Error(with(4, RawBytes<uint32_t>(0))), HasSubstr("general.alignment: expected an integer in [1, 1048576], found u32 0"));
  EXPECT_THAT(Error(with(4, RawBytes<uint32_t>(1u << 31))), HasSubstr("general.alignment: expected an integer"));
  EXPECT_THAT(Error(with(4, RawBytes<uint32_t>(48))), HasSubstr("general.alignment: expected a power of two, found 48"));
  EXPECT_THAT(Error(with(5, RawBytes<int32_t>(32))), HasSubstr("general.alignment: expected a u32, found i32"));
  EXPECT_THAT(Error(with(8, GgufBuilder::String("32"))), HasSubstr("general.alignment: expected a u32, found string"));
}

TEST(Gguf, TensorNames) {
  EXPECT_THAT(Error(GgufBuilder().Tensor("", {1}, kF32, Floats(1)).Build()),
              HasSubstr("tensor 1 of 1: expected a name of 1 to 63 bytes, found 0"));
  EXPECT_THAT(Error(GgufBuilder().Tensor(std::string(64, 'n'), {1}, kF32, Floats(1)).Build()), HasSubstr("found 64"));
  EXPECT_THAT(Error(GgufBuilder().Tensor("a", {8}, kF32, Floats(8)).Tensor("a", {1}, kF32, Floats(1)).Build()),
              HasSubstr("tensor \"a\": expected the name once, found it twice"));
  EXPECT_THAT(Error(GgufBuilder().Tensor("x\x1b[0m", {1}, 77, Floats(1)).Build(), absl::StatusCode::kUnimplemented),
              HasSubstr("tensor \"x\\x1B[0m\""));
}

TEST(Gguf, Dimensions) {
  const auto error = [](const std::vector<int64_t>& dims, uint32_t type = kF32) {
    return Error(GgufBuilder().Tensor("a", dims, type, Floats(8)).Build());
  };
  EXPECT_THAT(error({1, 1, 1, 1, 1}), HasSubstr("tensor \"a\": number of dimensions: expected at most 4, found 5"));
  EXPECT_THAT(error({-1}), HasSubstr("dimension 0: expected at least 0, found -1"));
  EXPECT_THAT(error({2, -8}), HasSubstr("dimension 1: expected at least 0"));
  EXPECT_THAT(error({int64_t{1} << 32, int64_t{1} << 32}), HasSubstr("product below 2^63"));  // wraps to 0
  EXPECT_THAT(error({1152, (int64_t{1} << 42) + 1, 1 << 12}), HasSubstr("product below 2^63"));
  EXPECT_THAT(error({1152, (int64_t{1} << 42) + 1}), HasSubstr("expected "));  // fits 2^63, not the file
  EXPECT_THAT(error({int64_t{1} << 62}), HasSubstr("tensor \"a\""));           // bytes wrap
  EXPECT_THAT(error({33}, kQ8_0), HasSubstr("tensor \"a\""));
  EXPECT_THAT(error({128, 4}, kQ4K), HasSubstr("tensor \"a\""));
  EXPECT_THAT(error({1}, kQ4_0), HasSubstr("tensor \"a\""));
  EXPECT_THAT(error({}, kQ4_0), HasSubstr("tensor \"a\""));
}

TEST(Gguf, Types) {
  for (const uint32_t type : {4u, 5u, 31u, 36u, 200u, 0xFFFFFFFFu}) {
    const std::string message = Error(GgufBuilder().Tensor("a", {32}, type, Floats(32)).Build(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(message, HasSubstr("tensor \"a\"")) << type;
  }
}

TEST(Gguf, OffsetsAreTheRunningPaddedSum) {
  const auto two = [](uint64_t first, uint64_t second) {
    return Error(GgufBuilder().TensorAt("a", {3}, kF32, first, Floats(3)).TensorAt("b", {1}, kF32, second, Floats(1)).Build());
  };
  EXPECT_EQ(two(0, 32), "accepted");
  EXPECT_THAT(two(32, 64), HasSubstr("tensor \"a\": offset: expected 0 (the padded end of the tensors before it), found 32"));
  EXPECT_THAT(two(0, 12), HasSubstr("tensor \"b\": offset: expected 32"));  // not padded
  EXPECT_THAT(two(0, 0), HasSubstr("tensor \"b\": offset: expected 32"));   // overlap
  EXPECT_THAT(two(0, 64), HasSubstr("tensor \"b\": offset: expected 32"));  // hole
  EXPECT_THAT(two(0, ~uint64_t{0} - 31), HasSubstr("tensor \"b\": offset: expected 32"));
}

TEST(Gguf, TensorsLieInsideTheFile) {
  EXPECT_THAT(Error(GgufBuilder().Tensor("a", {1024}, kF32, Floats(8)).Build()), HasSubstr("tensor \"a\": expected 4096 bytes"));
  // Small enough for the file as a number, but not behind the header.
  EXPECT_THAT(Error(GgufBuilder().Tensor("a", {16}, kF32, Floats(8)).Build()), HasSubstr("is the file truncated?"));
  // Sizes whose padded sum wraps 2^64: each alone is already larger than the file.
  GgufBuilder wrap;
  wrap.TensorAt("a", {int64_t{1} << 60, 3}, kF32, 0, "").TensorAt("b", {int64_t{1} << 60}, kF32, uint64_t{3} << 62, "");
  EXPECT_THAT(Error(wrap.Build()), HasSubstr("tensor \"a\""));
  EXPECT_THAT(Error(Good().Build() + "x"), HasSubstr("more bytes"));
  EXPECT_THAT(Error(GgufBuilder().U32("a", 1).Build() + std::string(32, '\0')), HasSubstr("expected the file to end at"));
}

TEST(Gguf, EveryTruncationIsRefused) {
  const std::string good = GgufBuilder().Str("k", "v").Array("n", 4, std::vector<uint32_t>{1, 2}).Tensor("a", {8}, kF32, Floats(8)).Build();
  ASSERT_EQ(Error(good), "accepted");
  for (size_t n = 0; n < good.size(); ++n) EXPECT_NE(Error(good.substr(0, n)), "accepted") << n;
}

TEST(Gguf, OpenNamesTheFile) {
  const ScratchDirectory scratch;
  EXPECT_EQ(GgufFile::Open(scratch.File("absent.gguf")).status().code(), absl::StatusCode::kNotFound);
  WriteTestFile(scratch.File("bad.gguf"), "GGUF");
  EXPECT_THAT(GgufFile::Open(scratch.File("bad.gguf")).status().message(), HasSubstr("bad.gguf: version: expected 4 bytes"));
}

// Whatever is written is read back.
TEST(Gguf, RoundTrip) {
  const bool held = rc::check([] {
    GgufBuilder builder;
    const auto alignment = static_cast<uint32_t>(1 << *rc::gen::inRange(3, 9));
    builder.alignment = alignment;
    builder.U32("general.alignment", alignment);
    const auto strings = *rc::gen::arbitrary<std::vector<std::string>>();
    const auto floats = *rc::gen::container<std::vector<float>>(
        rc::gen::map(rc::gen::inRange(-1000, 1000), [](int i) { return static_cast<float>(i) / 8; }));
    builder.Strings("strings", strings).Array("floats", 6, floats).Bool("flag", floats.size() % 2 == 0);
    struct Made {
      uint32_t type;
      Shape shape;
      std::string data;
    };
    std::vector<Made> made;
    const int count = *rc::gen::inRange(0, 5);
    for (int i = 0; i < count; ++i) {
      const int which = *rc::gen::inRange(0, 3);
      const uint32_t type = which == 0 ? kF32 : which == 1 ? kF16 : kQ8_0;
      const int64_t blocks = *rc::gen::inRange(0, 4), rows = *rc::gen::inRange(0, 4);
      const int64_t in = which == 2 ? blocks * 32 : blocks;
      const int64_t bytes = rows * (which == 0 ? in * 4 : which == 1 ? in * 2 : blocks * 34);
      made.push_back({type, {rows, in}, std::string(static_cast<size_t>(bytes), static_cast<char>('a' + i))});
      builder.Tensor(absl::StrCat("t", i), {in, rows}, type, made.back().data);
    }
    const std::string bytes = builder.Build();
    const auto file = GgufFile::Parse(bytes);
    RC_ASSERT(file.ok());
    RC_ASSERT(*file->metadata().GetStrings("strings") == strings);
    RC_ASSERT(*file->metadata().GetFloats("floats") == floats);
    RC_ASSERT(file->tensors().size() == made.size());
    for (size_t i = 0; i < made.size(); ++i) {
      const GgufTensor& tensor = file->tensors()[i];
      RC_ASSERT(tensor.type->id == made[i].type);
      RC_ASSERT(tensor.shape == made[i].shape);
      const auto data = file->Bytes(tensor);
      RC_ASSERT(std::string(data.begin(), data.end()) == made[i].data);
    }
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace pith
