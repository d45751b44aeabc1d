// What decides the prepacked bytes of a model, as one hash, and the file of a cache directory that they are kept in.
//
// The key is the SHA-256 of: the build of this program, the instruction set, what weight-only matrices are multiplied with, config.json;
// name, inode, size and times of every weight file; name, type, shape, bytes and file of every stored tensor. No weight is read for it.
#pragma once

#include <string>

#include "artifact/artifact_reader.h"
#include "nn/compute_context.h"

namespace pith {

// 64 hex digits. `build`: text that another build of this program does not share.
std::string PrepackKey(const ArtifactReader& reader, const ComputeContext& context, const std::string& build);

// "qwen2.5-W4A16.int16.avx512_vnni.3f2c90aa7d51.safetensors": one file for a path, an instruction set and a kind of activations, so that a
// changed model or build takes the place of its own file instead of leaving it behind. The digits are of the whole path.
std::string PrepackFileName(const ArtifactReader& reader, const ComputeContext& context);

}  // namespace pith
