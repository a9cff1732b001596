// Any bytes are a file of tensors or refused, each tensor too; what was read can be written and read again.
#include "safetensors.h"

#include "lamella/verify/case/compare.h"

#include "target.h"

namespace lamella::fuzz {
namespace {

std::map<std::string, Tensor> tensors_of(const tools::SafetensorsReader& reader) {
  std::map<std::string, Tensor> out;
  for (const std::string& name : reader.names()) try {
      out[name] = reader.tensor(name);
    } catch (const Error&) {}  // this one cannot be made: the others can
  std::erase_if(out, [](const auto& entry) { return !entry.second.defined(); });
  return out;
}

void run_safetensors(const uint8_t* data, size_t size) {
  answers([&] {
    const tools::SafetensorsReader reader(std::string(reinterpret_cast<const char*>(data), size));
    const std::map<std::string, Tensor> tensors = tensors_of(reader);
    try {
      const tools::SafetensorsReader again(tools::write_safetensors(tensors, reader.metadata()));
      for (const auto& [name, t] : tensors)
        if (const verify::Finding d = verify::differs(again.tensor(name), t); !d.empty())
          finding(name + ": " + d.text());
    } catch (const Error& e) {
      if (e.code() != ErrorCode::OutOfMemory) finding(e.what());
    }
  });
}

[[maybe_unused]] const bool safetensors_added = add_target("safetensors", run_safetensors);
}  // namespace
}  // namespace lamella::fuzz
