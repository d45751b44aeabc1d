#include "artifact/safetensors_shards.h"

#include "artifact/test_files.h"
#include "base/file.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

// A file with one U8 [1] tensor per name; the byte is the first letter of the name.
std::string FileOf(const std::vector<std::string>& names) {
  std::string header = "{", data;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&header, i == 0 ? "" : ",", "\"", names[i], R"(":{"dtype":"U8","shape":[1],"data_offsets":[)", i, ",", i + 1, "]}");
    data += names[i][0];
  }
  return SafetensorsBytes(header + "}", data);
}

std::string IndexError(absl::string_view text) {
  const auto index = ParseSafetensorsIndex(text);
  return index.ok() ? "accepted" : std::string(index.status().message());
}

TEST(SafetensorsIndex, RoundTrip) {
  const std::map<std::string, std::string> map = {{"a", "model-00001-of-00002.safetensors"},
                                                  {"b.weight", "model-00002-of-00002.safetensors"}};
  const std::string text = MakeSafetensorsIndex(map, 12345);
  EXPECT_EQ(text,
            "{\n  \"metadata\": {\n    \"total_size\": 12345\n  },\n  \"weight_map\": {\n    \"a\": \"model-00001-of-00002.safetensors\",\n"
            "    \"b.weight\": \"model-00002-of-00002.safetensors\"\n  }\n}\n");
  EXPECT_EQ(*ParseSafetensorsIndex(text), map);
  EXPECT_EQ(ShardFileName(2, 12), "model-00002-of-00012.safetensors");
}

TEST(SafetensorsIndex, RefusesNamesThatLeaveTheDirectory) {
  for (const char* name : {"../m.safetensors", "/etc/m.safetensors", "sub/m.safetensors", "..\\\\m.safetensors", ".safetensors",
                           "..safetensors", "m\\u0000.safetensors", "m\\n.safetensors", "", "..", ".hidden.safetensors"}) {
    EXPECT_THAT(IndexError(absl::StrCat(R"({"weight_map":{"a":")", name, "\"}}")), HasSubstr("weight_map: expected")) << name;
  }
  EXPECT_THAT(IndexError(absl::StrCat(R"({"weight_map":{"a":")", std::string(300, 'x'), ".safetensors\"}}")), HasSubstr("1 to 255 bytes"));
  EXPECT_THAT(IndexError(R"({"weight_map":{"a":"pytorch_model-00001.bin"}})"), HasSubstr("unpickling runs code"));
  EXPECT_THAT(IndexError(R"({"weight_map":{"a":"m.gguf"}})"), HasSubstr("ending in .safetensors"));
}

TEST(SafetensorsIndex, RefusesOtherShapes) {
  EXPECT_THAT(IndexError("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(IndexError("{}"), HasSubstr("weight_map: expected an object"));
  EXPECT_THAT(IndexError(R"({"weight_map":[]})"), HasSubstr("weight_map: expected an object"));
  EXPECT_THAT(IndexError(R"({"weight_map":{}})"), HasSubstr("at least one tensor"));
  EXPECT_THAT(IndexError(R"({"weight_map":{"a":1}})"), HasSubstr("\"a\": expected a file name, found 1"));
  EXPECT_THAT(IndexError(R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})"), HasSubstr("duplicate key"));
  EXPECT_THAT(IndexError(R"({"weight_map":{"a":"x.safetensors"},"extra":1})"), HasSubstr("found \"extra\""));
  EXPECT_THAT(IndexError("<!DOCTYPE html>"), HasSubstr("found an HTML page"));
  EXPECT_THAT(IndexError(R"({"metadata":{"a":{"b":{"c":{}}}},"weight_map":{"a":"x.safetensors"}})"), HasSubstr("nested deeper"));
  EXPECT_EQ(IndexError(R"({"metadata":{"total_size":1.5e3},"weight_map":{"a":"x.safetensors"}})"), "accepted");
}

class SafetensorsShardsTest : public testing::Test {
 protected:
  void Index(const std::string& weight_map) {
    WriteTestFile(scratch_.File(kSafetensorsIndexName), absl::StrCat("{\"weight_map\":{", weight_map, "}}"));
  }
  std::string Error() {
    const auto shards = SafetensorsShards::Open(scratch_.path());
    return shards.ok() ? "accepted" : std::string(shards.status().message());
  }
  ScratchDirectory scratch_;
};

TEST_F(SafetensorsShardsTest, OpensASingleFile) {
  WriteTestFile(scratch_.File("model.safetensors"), FileOf({"b", "a"}));
  const auto shards = SafetensorsShards::Open(scratch_.path());
  ASSERT_TRUE(shards.ok()) << shards.status();
  ASSERT_EQ(shards->tensors().size(), 2u);
  EXPECT_EQ(shards->tensors()[0].tensor->name, "a");
  EXPECT_EQ(shards->Find("c").tensor, nullptr);
}

TEST_F(SafetensorsShardsTest, OpensShards) {
  WriteTestFile(scratch_.File("x.safetensors"), FileOf({"c", "a"}));
  WriteTestFile(scratch_.File("y.safetensors"), FileOf({"b"}));
  WriteTestFile(scratch_.File("consolidated.safetensors"), "not part of the index, so never opened");
  Index(R"("a":"x.safetensors","b":"y.safetensors","c":"x.safetensors")");
  auto opened = SafetensorsShards::Open(scratch_.path());
  ASSERT_TRUE(opened.ok()) << opened.status();
  const SafetensorsShards shards = *std::move(opened);  // entries stay valid after a move
  ASSERT_EQ(shards.tensors().size(), 3u);
  for (const char* name : {"a", "b", "c"}) {
    const ShardedTensor found = shards.Find(name);
    ASSERT_NE(found.tensor, nullptr);
    EXPECT_EQ(found.file->Bytes(*found.tensor)[0], name[0]);
  }
  EXPECT_EQ(BaseName(shards.Find("b").file->path()), "y.safetensors");
}

TEST_F(SafetensorsShardsTest, IndexAndShardsMustAgree) {
  WriteTestFile(scratch_.File("x.safetensors"), FileOf({"a", "c"}));
  WriteTestFile(scratch_.File("y.safetensors"), FileOf({"b"}));
  Index(R"("a":"x.safetensors","b":"y.safetensors")");
  EXPECT_THAT(Error(), HasSubstr("found no \"c\" of x.safetensors"));
  Index(R"("a":"x.safetensors","b":"x.safetensors","c":"x.safetensors")");
  EXPECT_THAT(Error(), HasSubstr("\"b\": expected it in x.safetensors, found it in no shard"));
  Index(R"("a":"y.safetensors","b":"y.safetensors","c":"x.safetensors")");
  EXPECT_THAT(Error(), HasSubstr("\"a\": expected it in y.safetensors, found it in x.safetensors"));
  Index(R"("a":"x.safetensors","b":"z.safetensors","c":"x.safetensors")");
  EXPECT_THAT(Error(), HasSubstr("z.safetensors: no such file"));
  WriteTestFile(scratch_.File("y.safetensors"), FileOf({"b", "a"}));
  Index(R"("a":"x.safetensors","b":"y.safetensors","c":"x.safetensors")");
  EXPECT_THAT(Error(), HasSubstr("y.safetensors: tensor \"a\": expected it in one shard, found it in x.safetensors too"));
}

TEST_F(SafetensorsShardsTest, SaysWhatIsThereInstead) {
  EXPECT_THAT(Error(), HasSubstr("expected model.safetensors or model.safetensors.index.json, found neither"));
  EXPECT_EQ(SafetensorsShards::Open(scratch_.path()).status().code(), absl::StatusCode::kNotFound);
  WriteTestFile(scratch_.File("pytorch_model.bin"), "x");
  EXPECT_THAT(Error(), HasSubstr("pytorch_model.bin"));
  WriteTestFile(scratch_.File("a.gguf"), "x");
  EXPECT_THAT(Error(), HasSubstr("give the path of the GGUF file itself"));
  WriteTestFile(scratch_.File("model.safetensors"), FileOf({"a"}));
  WriteTestFile(scratch_.File("x.safetensors"), FileOf({"a"}));
  Index(R"("a":"x.safetensors")");
  EXPECT_THAT(Error(), HasSubstr("found both"));
}

}  // namespace
}  // namespace pith
