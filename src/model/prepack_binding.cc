#include "model/prepack_binding.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/prepack_cache.h"
#include "model/prepack_key.h"

namespace pith {
namespace {

void AddLinear(const Linear& linear, PrepackDescription& description, std::map<std::string, PrepackedBytes>& bytes) {
  const std::string& name = linear.data_path()[0].name;
  PrepackedLayer& layer = description[name];
  for (const TensorDataPath& path : linear.data_path()) layer.parts.push_back(StorageOf(path));
  layer.matrices = linear.matrices();
  for (const PrepackedMatrix& matrix : layer.matrices) bytes[name].matrices.push_back(matrix.bytes);
}

void AddEmbedding(const Embedding& embedding, PrepackDescription& description, std::map<std::string, PrepackedBytes>& bytes) {
  if (!embedding.table().empty()) {
    const TensorDataPath storage = StorageOf(embedding.data_path());
    description[storage.name].parts.push_back(storage);
    bytes[storage.name].table = embedding.table();
  } else if (embedding.resident_bytes() > 0) {  // else tied: the head has them
    AddLinear(*embedding.matrix(), description, bytes);
  }
}

absl::StatusOr<uint64_t> Store(const BoundDecoder& decoder, const std::string& path, const std::string& key, ThreadPool& pool) {
  std::error_code error;
  std::filesystem::create_directories(DirName(path), error);
  if (error) return CannotCreateError(Printable(DirName(path), 500), ": cannot create: ", error.message());
  PrepackDescription description;
  std::map<std::string, PrepackedBytes> bytes;
  AddEmbedding(decoder.embedding, description, bytes);
  AddLinear(decoder.head.projection(), description, bytes);
  for (const DecoderLayer& layer : decoder.layers) {
    const Linear* const linears[] = {&layer.qkv, &layer.o, &layer.mlp.gate_up(), &layer.mlp.down()};
    for (const Linear* linear : linears) AddLinear(*linear, description, bytes);
  }
  return WritePrepackCache(path, key, description, bytes, pool);
}

}  // namespace

absl::StatusOr<BoundDecoder> BindWithPrepackCache(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                                  const ComputeContext& context, const std::function<void(int64_t, int64_t)>& progress,
                                                  const PrepackCacheOptions& options, PrepackCacheReport& report) {
  report = {};
  if (options.directory.empty() || reader.WeightFiles().empty()) return BindWeights(reader, config, map, context, progress);
  report.path = JoinPath(options.directory, PrepackFileName(reader, context));
  const std::string key = PrepackKey(reader, context, options.build);
  absl::StatusOr<PrepackCache> cache = PrepackCache::Open(report.path, key);
  absl::Status unused = cache.status();
  if (cache.ok()) {
    ComputeContext attempt = context;
    attempt.arena = std::make_shared<HugePageArena>();  // goes with the attempt when it fails
    absl::StatusOr<BoundDecoder> decoder = BindWeights(reader, config, map, attempt, progress, &*cache);
    report.used = decoder.ok();
    if (decoder.ok() || absl::IsCancelled(decoder.status())) return decoder;
    unused = decoder.status();
  }
  if (!absl::IsNotFound(unused)) report.warning = absl::StrCat("ignored: ", unused.message());
  ASSIGN_OR_RETURN(BoundDecoder decoder, BindWeights(reader, config, map, context, progress));
  const absl::StatusOr<uint64_t> written = Store(decoder, report.path, key, *context.pool);
  if (absl::IsCancelled(written.status())) return written.status();
  report.bytes_written = written.value_or(0);
  if (!written.ok()) absl::StrAppend(&report.warning, report.warning.empty() ? "" : "; ", "not written: ", written.status().message());
  return decoder;
}

}  // namespace pith
