#include "artifact/safetensors_writer.h"

#include <rapidcheck.h>

#include <numeric>
#include <set>

#include "artifact/test_files.h"
#include "base/python_process.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

std::vector<uint8_t> Bytes(size_t n, int seed = 1) {
  std::vector<uint8_t> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(i * 31 + static_cast<size_t>(seed));
  return bytes;
}

const std::vector<TensorSpec> kSpecs = {
    {"z", DType::kU8, {3}}, {"b", DType::kBF16, {2, 2}}, {"a", DType::kBF16, {1}}, {"m", DType::kI64, {2}}, {"f", DType::kF32, {}}};

TEST(SafetensorsWriter, LaysOutLargestElementsFirstThenNames) {
  const auto layout = LayOutSafetensors(kSpecs, {{"format", "pt"}});
  ASSERT_TRUE(layout.ok()) << layout.status();
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"m":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},"f":{"dtype":"F32","shape":[],"data_offsets":[16,20]},)"
      R"("a":{"dtype":"BF16","shape":[1],"data_offsets":[20,22]},"b":{"dtype":"BF16","shape":[2,2],"data_offsets":[22,30]},)"
      R"("z":{"dtype":"U8","shape":[3],"data_offsets":[30,33]}})";
  EXPECT_EQ(layout->prefix.size() % 8, 0u);
  EXPECT_EQ(layout->prefix.substr(0, 8), RawBytes<uint64_t>(layout->prefix.size() - 8));
  EXPECT_EQ(layout->prefix.substr(8, header.size()), header);
  EXPECT_EQ(layout->prefix.substr(8 + header.size()), std::string(layout->prefix.size() - 8 - header.size(), ' '));
  EXPECT_EQ(layout->file_size, layout->prefix.size() + 33);
}

TEST(SafetensorsWriter, RefusesWhatTheReaderWould) {
  EXPECT_EQ(LayOutSafetensors({{"a", DType::kU8, {1}}, {"a", DType::kF32, {1}}}, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(LayOutSafetensors({{"__metadata__", DType::kU8, {1}}}, {}).ok());
  EXPECT_FALSE(LayOutSafetensors({{"__metadata__", DType::kU8, {1}}}, {{"format", "pt"}}).ok());
  EXPECT_FALSE(LayOutSafetensors({{"a\xff", DType::kU8, {1}}}, {}).ok());
  EXPECT_FALSE(LayOutSafetensors({{"a", DType::kF64, {int64_t{1} << 31, int64_t{1} << 31}}}, {}).ok());
  EXPECT_FALSE(
      LayOutSafetensors(
          {{"a", DType::kF64, {int64_t{1} << 60}}, {"b", DType::kF64, {int64_t{1} << 60}}, {"c", DType::kU8, {int64_t{1} << 61}}}, {})
          .ok());
}

TEST(SafetensorsWriter, AnyOrderGivesTheSameFileAndHash) {
  const ScratchDirectory scratch;
  const std::map<std::string, size_t> sizes = {{"z", 3}, {"b", 8}, {"a", 2}, {"m", 16}, {"f", 4}};
  std::set<std::string> contents, hashes;
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"m", "f", "a", "b", "z"}, {"z", "b", "a", "f", "m"}, {"b", "m", "z", "a", "f"}}) {
    const std::string path = scratch.File("m.safetensors");
    auto writer = SafetensorsWriter::Create(path, kSpecs, {});
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const std::string& name : order) ASSERT_TRUE(writer->Write(name, Bytes(sizes.at(name), name[0])).ok());
    EXPECT_FALSE(FileExists(path));
    const auto hash = writer->Commit();
    ASSERT_TRUE(hash.ok()) << hash.status();
    contents.insert(ReadTestFile(path));
    hashes.insert(*hash);
    EXPECT_EQ(ReadTestFile(path).size(), writer->file_size());
    EXPECT_EQ(*hash, Sha256Hex(ReadTestFile(path)));
    std::filesystem::remove(path);
  }
  EXPECT_EQ(contents.size(), 1u);
  EXPECT_EQ(hashes.size(), 1u);
  EXPECT_EQ(ListDirectory(scratch.path())->size(), 0u);
}

TEST(SafetensorsWriter, PartsAndMistakes) {
  const ScratchDirectory scratch;
  auto writer = SafetensorsWriter::Create(scratch.File("m.safetensors"), {{"a", DType::kU8, {10}}, {"b", DType::kU8, {2}}}, {});
  ASSERT_TRUE(writer.ok());
  const std::vector<uint8_t> bytes = Bytes(10);
  EXPECT_EQ(writer->Write("absent", bytes).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(writer->Write("a", absl::MakeConstSpan(bytes).subspan(0, 9)).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(writer->WritePart("a", 6, absl::MakeConstSpan(bytes).subspan(6)).ok());
  EXPECT_EQ(writer->WritePart("a", 7, absl::MakeConstSpan(bytes).subspan(0, 4)).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(writer->WritePart("a", 0, absl::MakeConstSpan(bytes).subspan(0, 6)).ok());
  EXPECT_EQ(writer->WritePart("a", 0, absl::MakeConstSpan(bytes).subspan(0, 1)).code(), absl::StatusCode::kInternal);
  const auto early = writer->Commit();
  EXPECT_EQ(early.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(early.status().message(), HasSubstr("tensor \"b\": expected 2 bytes written, found 0"));
  EXPECT_TRUE(writer->Write("b", absl::MakeConstSpan(bytes).subspan(0, 2)).ok());
  ASSERT_TRUE(writer->Commit().ok());
  const auto file = SafetensorsFile::Open(scratch.File("m.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->Bytes(*file->Find("a")), absl::MakeConstSpan(bytes));
}

TEST(SafetensorsWriter, LeavesNothingWithoutCommit) {
  const ScratchDirectory scratch;
  {
    auto writer = SafetensorsWriter::Create(scratch.File("m.safetensors"), kSpecs, {});
    ASSERT_TRUE(writer.ok());
    EXPECT_EQ(ListDirectory(scratch.path())->size(), 1u);  // the partial file
    EXPECT_FALSE(FileExists(scratch.File("m.safetensors")));
  }
  EXPECT_TRUE(ListDirectory(scratch.path())->empty());
  EXPECT_EQ(SafetensorsWriter::Create(scratch.File("absent/m.safetensors"), kSpecs, {}).status().code(),
            absl::StatusCode::kPermissionDenied);
}

// Whatever is written is read back: names, types, shapes, bytes, metadata.
TEST(SafetensorsWriter, RoundTrip) {
  const bool held = rc::check([] {
    const auto names = *rc::gen::unique<std::vector<std::string>>(rc::gen::suchThat(
        rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)), [](const std::string& name) { return name != "__metadata__"; }));
    const auto metadata = *rc::gen::container<std::map<std::string, std::string>>(
        rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)), rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)));
    std::vector<TensorSpec> specs;
    std::map<std::string, std::vector<uint8_t>> data;
    for (const std::string& name : names) {
      TensorSpec spec{name, static_cast<DType>(*rc::gen::inRange(0, static_cast<int>(DType::kF64) + 1)), {}};
      const int rank = *rc::gen::inRange(0, 4);
      for (int i = 0; i < rank; ++i) spec.shape.push_back(*rc::gen::inRange(0, 5));
      data[name] = Bytes(static_cast<size_t>(NumElements(spec.shape) * ByteSize(spec.dtype)), *rc::gen::inRange(0, 255));
      specs.push_back(spec);
    }
    const ScratchDirectory scratch;
    auto writer = SafetensorsWriter::Create(scratch.File("m.safetensors"), specs, metadata);
    RC_ASSERT(writer.ok());
    for (const TensorSpec& spec : specs) RC_ASSERT(writer->Write(spec.name, data[spec.name]).ok());
    const auto hash = writer->Commit();
    RC_ASSERT(hash.ok());
    RC_ASSERT(*hash == *Sha256OfFile(scratch.File("m.safetensors")));
    const auto file = SafetensorsFile::Open(scratch.File("m.safetensors"));
    RC_ASSERT(file.ok());
    RC_ASSERT(file->tensors().size() == specs.size());
    RC_ASSERT(file->metadata() == metadata);
    for (const TensorSpec& spec : specs) {
      const SafetensorsTensor* tensor = file->Find(spec.name);
      RC_ASSERT(tensor != nullptr);
      RC_ASSERT(tensor->dtype == spec.dtype);
      RC_ASSERT(tensor->shape == spec.shape);
      RC_ASSERT(file->Bytes(*tensor) == absl::MakeConstSpan(data[spec.name]));
      RC_ASSERT(tensor->begin % static_cast<uint64_t>(ByteSize(spec.dtype)) == 0u);  // aligned for its type
    }
  });
  EXPECT_TRUE(held);
}

// The reference implementation reads what we write, and we read what it writes.
TEST(SafetensorsWriter, AgreesWithThePythonPackage) {
  if (!PythonHas("numpy, safetensors.numpy")) GTEST_SKIP() << "needs Python with numpy and safetensors (set PITH_TEST_PYTHON)";
  const ScratchDirectory scratch;
  auto writer = SafetensorsWriter::Create(
      scratch.File("ours.safetensors"),
      {{"x", DType::kF32, {2, 3}}, {"q", DType::kI8, {5}}, {"shape", DType::kI64, {2}}, {"e", DType::kF16, {0, 7}}}, {{"format", "pt"}});
  ASSERT_TRUE(writer.ok());
  const auto write = [&](const std::string& name, const std::string& raw) {
    return writer->Write(name, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(raw.data()), raw.size())).ok();
  };
  ASSERT_TRUE(write("x", RawBytes(std::vector<float>{0, 1, 2, 3, 4, 5.5f})));
  ASSERT_TRUE(write("q", RawBytes(std::vector<int8_t>{-8, -1, 0, 1, 7})));
  ASSERT_TRUE(write("shape", RawBytes(std::vector<int64_t>{4096, 1376})));
  ASSERT_TRUE(write("e", ""));
  ASSERT_TRUE(writer->Commit().ok());
  const PythonResult result = RunPython(
      R"(
import sys, numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
t = load_file(sys.argv[1])
assert sorted(t) == ["e", "q", "shape", "x"], sorted(t)
assert t["x"].dtype == np.float32 and t["x"].tolist() == [[0, 1, 2], [3, 4, 5.5]]
assert t["q"].dtype == np.int8 and t["q"].tolist() == [-8, -1, 0, 1, 7]
assert t["shape"].tolist() == [4096, 1376] and t["e"].shape == (0, 7)
assert safe_open(sys.argv[1], "np").metadata() == {"format": "pt"}
save_file({"w": np.arange(12, dtype=np.float64).reshape(3, 4), "u": np.array([1, 2, 65535], np.uint16), "s": np.array(7, np.int32)},
          sys.argv[2], metadata={"who": "python"})
)",
      absl::StrCat("'", scratch.File("ours.safetensors"), "' '", scratch.File("theirs.safetensors"), "'"));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto theirs = SafetensorsFile::Open(scratch.File("theirs.safetensors"));
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  EXPECT_EQ(theirs->metadata().at("who"), "python");
  const TensorView w = *theirs->View(*theirs->Find("w"));
  EXPECT_EQ(w.shape, Shape({3, 4}));
  EXPECT_EQ(w.as<double>()[11], 11.0);
  EXPECT_EQ(theirs->View(*theirs->Find("u"))->as<uint16_t>()[2], 65535);
  EXPECT_EQ(theirs->Find("s")->shape, Shape({}));
}

// Python's writer sorts exactly as ours for one element size: the files are the same bytes.
TEST(SafetensorsWriter, SameBytesAsThePythonPackage) {
  if (!PythonHas("numpy, safetensors.numpy")) GTEST_SKIP() << "needs Python with numpy and safetensors (set PITH_TEST_PYTHON)";
  const ScratchDirectory scratch;
  auto writer = SafetensorsWriter::Create(scratch.File("ours"), {{"b", DType::kF32, {2}}, {"a", DType::kF32, {1}}, {"c", DType::kU8, {3}}},
                                          {{"format", "pt"}});
  ASSERT_TRUE(writer.ok());
  const std::string a = RawBytes(std::vector<float>{7}), b = RawBytes(std::vector<float>{1, 2}), c = "\1\2\3";
  const auto span = [](const std::string& raw) { return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(raw.data()), raw.size()); };
  ASSERT_TRUE(writer->Write("a", span(a)).ok() && writer->Write("b", span(b)).ok() && writer->Write("c", span(c)).ok());
  ASSERT_TRUE(writer->Commit().ok());
  const PythonResult result = RunPython(R"(
import sys, numpy as np
from safetensors.numpy import save_file
save_file({"c": np.array([1, 2, 3], np.uint8), "a": np.array([7], np.float32), "b": np.array([1, 2], np.float32)}, sys.argv[2], metadata={"format": "pt"})
assert open(sys.argv[1], "rb").read() == open(sys.argv[2], "rb").read()
)",
                                        absl::StrCat("'", scratch.File("ours"), "' '", scratch.File("theirs"), "'"));
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

}  // namespace
}  // namespace pith
