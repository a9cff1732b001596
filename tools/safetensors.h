// Reading and writing .safetensors files, complex tensors included.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/tensor.h"

namespace lamella::tools {

/// A parsed file. Tensors are made when asked for, so that one that cannot be made does not spoil the rest.
///
/// A complex tensor is stored as a real one with a last dim of 2, its name ending in "#complex"; here it is
/// complex and keeps that name.
class SafetensorsReader {
 public:
  /// Takes the bytes of a whole file. Error value when the header is malformed, exceeds the file, or gives a
  /// tensor bytes outside it or in a number that its shape does not explain. Ranges may overlap.
  explicit SafetensorsReader(std::string bytes);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return entries_.count(name); }
  /// A fresh contiguous tensor. Errors: value (no such name, a bool byte other than 0 and 1), and
  /// make_tensor's.
  Tensor tensor(const std::string& name) const;

 private:
  struct Entry {
    DType dtype;
    std::vector<int64_t> sizes;
    size_t begin, bytes;
  };
  void add_entry(std::string name, const std::string& dtype, std::vector<int64_t> sizes, uint64_t begin,
                 uint64_t end);

  std::string bytes_;
  size_t data_ = 0;  // where tensor data begins
  std::map<std::string, std::string> metadata_;
  std::map<std::string, Entry> entries_;
};

/// The bytes of a file that holds these (plain) tensors, in the order of their names. Error value unless
/// exactly the complex ones have names ending in "#complex".
std::string write_safetensors(const std::map<std::string, Tensor>& tensors,
                              const std::map<std::string, std::string>& metadata);

}  // namespace lamella::tools
