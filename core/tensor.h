// Tensor: a counted handle to sizes, strides, dtype, keys and a storage. Views share the storage.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "lamella/core/check.h"
#include "lamella/core/dims.h"
#include "lamella/core/pool.h"
#include "lamella/core/scalar.h"
#include "lamella/core/storage.h"
#include "lamella/core/view.h"

LAMELLA_API_BEGIN
namespace lamella {

class Tensor;
class Index;
class Subscript;
struct Family;
struct TensorLayout;

/// What a transform or base autograd adds to a tensor. Lives in the tensor's own block or on the heap.
struct TensorExtra {
  virtual ~TensorExtra() = default;
  virtual std::string str() const { return ""; }  ///< how a wrapper prints; never throws
  bool in_block = false;
};

/// NOTE: [small tensors] Header, shape and up to 64 bytes of data share one pooled block. Blocks wait in
/// their pool as whole objects: creating a tensor writes only what differs from tensor to tensor. Full blocks
/// hold an embedded storage, which keeps the block alive when a view outlives the header; shells hold none
/// and leave room for a wrapper's data; bare ones, of views and large tensors, end with the header: tapes
/// keep many.
struct TensorImpl : RefCounted {
  static constexpr size_t kBlock = 320, kBareBlock = 192;
  static constexpr size_t kInlineBytes = 64;

  uint64_t keys = 0;           ///< the KeySet of dispatch
  Storage* storage = nullptr;  ///< counted; null for wrappers, meta tensors and those of another layout
  int64_t offset = 0;          ///< elements from the storage's start
  int64_t numel = 0;
  TensorExtra* wrap = nullptr;     ///< who follows it: a level's wrapper, or base autograd's record
  TensorLayout* layout = nullptr;  ///< what it is, counted: see NOTE: [layouts]; null: elements in a storage
  DType dtype = DType::F32;
  Device device = Device::CPU;
  uint8_t rank = 0;
  bool contiguous = true;
  bool number = false;  ///< stands for a Scalar: promotes weakly
  bool full = false;    ///< the block has an embedded storage, used or not
  bool bare = false;    ///< the block has no suffix
  union {
    int64_t dims[10];  ///< sizes then strides when rank <= 5
    int64_t* heap;     ///< 2 * rank of them otherwise
  };
  Family* family_ = nullptr;  ///< counted; NOTE: [families]
  Family* family() const {
    return std::atomic_ref(const_cast<Family*&>(family_)).load(std::memory_order_acquire);
  }

  static constexpr int kInlineRank = 5;
  const int64_t* sizes() const { return rank <= kInlineRank ? dims : heap; }
  const int64_t* strides() const { return rank <= kInlineRank ? dims + kInlineRank : heap + rank; }
  int64_t* mutable_sizes() { return const_cast<int64_t*>(sizes()); }
  int64_t* mutable_strides() { return const_cast<int64_t*>(strides()); }
  void set_shape(Ints sizes, Ints strides);
  void set_contiguous(Ints sizes);
  void set_shape_of(const TensorImpl& other);
  bool has_shape_of(const TensorImpl& other) const {
    if (rank != other.rank) return false;
    const int64_t *a = sizes(), *b = other.sizes();
    for (int d = 0; d < rank; ++d)
      if (a[d] != b[d]) return false;
    return true;
  }
  void* data() const { return static_cast<char*>(storage->data) + offset * itemsize(dtype); }

  TensorImpl() : dims{} {}
  static TensorImpl* make_on_cpu(Ints sizes, DType dtype);  ///< make_tensor
  static TensorImpl* make_slowly(Ints sizes, DType dtype, Device device);
  static TensorImpl* create();       ///< a shell with one reference; shape, keys and storage are the caller's
  static TensorImpl* create_bare();  ///< likewise, without room for a wrapper's data
  static void destroy(TensorImpl* impl);
  static void destroy_slowly(TensorImpl* impl);
  static void destroy_rarely(TensorImpl* impl);
  /// Where a wrapper's data may be constructed in a shell: kSuffix bytes after the header.
  void* suffix() { return reinterpret_cast<char*>(this) + kHeader; }
  static constexpr size_t kHeader = 176;
  static constexpr size_t kSuffix = kBlock - kHeader;
};
static_assert(sizeof(TensorImpl) <= TensorImpl::kHeader && TensorImpl::kHeader <= TensorImpl::kBareBlock);
static_assert(sizeof(Storage) + TensorImpl::kInlineBytes <= TensorImpl::kSuffix);
static_assert((TensorImpl::kHeader + sizeof(Storage)) % 64 == 0);  // embedded data is aligned like large data

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  static Tensor adopt(TensorImpl* impl) { return Tensor(Ref<TensorImpl>::adopt(impl)); }

  bool defined() const { return bool(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  /// REQUIRES of these, as of the views and aliases below: a defined tensor. They are read millions of times
  /// a second. Operators, data(), item() and to_vector() refuse an undefined one.
  int rank() const { return impl_->rank; }
  Ints sizes() const { return {impl_->sizes(), impl_->rank}; }
  Ints strides() const { return {impl_->strides(), impl_->rank}; }
  /// Of dim d, negative from the end. Errors: dim_out_of_range, undefined.
  int64_t size(int d) const { return impl(d, "size")->sizes()[d < 0 ? d + impl_->rank : d]; }
  int64_t stride(int d) const { return impl(d, "stride")->strides()[d < 0 ? d + impl_->rank : d]; }
  int64_t numel() const { return impl_->numel; }
  DType dtype() const { return impl_->dtype; }
  Device device() const { return impl_->device; }
  bool is_contiguous() const { return impl_->contiguous; }
  uint64_t keys() const { return impl_ ? impl_->keys : 0; }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  /// Whether both tensors are views of one storage (of plain tensors).
  bool shares_storage(const Tensor& o) const { return impl_->storage && impl_->storage == o.impl_->storage; }

  /// First element. Errors: level when a transform wraps the tensor (its values are not visible), device when
  /// the host cannot read its memory.
  template <class T> T* data() const { return static_cast<T*>(checked_data(dtype_of<T>)); }
  void* raw_data() const { return impl_->data(); }
  View view_of() const {
    return {impl_->storage ? impl_->data() : nullptr, impl_->dtype, impl_->rank, impl_->sizes(),
            impl_->strides()};
  }
  /// The single element of a plain tensor with numel 1, converted to T. Waits for its device.
  template <class T> T item() const { return item_scalar().template to<T>(); }
  Scalar item_scalar() const;
  /// All elements in row-major order, converted to double (real part). Waits for their device.
  std::vector<double> to_vector() const;

  /// A part of it, to be read or written: see NOTE: [subscripts] in ops/subscript.h.
  Subscript operator[](std::initializer_list<Index> indices) const;
  Subscript operator[](const Index& index) const;

  /// What people type most. Of operators core names these alone; all are functions as well, whose docs say
  /// more (lamella/ops/functions.h). Defined in ops/methods.cpp, backward in transforms/base_backward.cpp.
  Tensor sum(OptionalInts dim = {}, bool keepdim = false, std::optional<DType> dtype = std::nullopt) const;
  Tensor mean(OptionalInts dim = {}, bool keepdim = false, std::optional<DType> dtype = std::nullopt) const;
  Tensor reshape(IntArg size) const;
  Tensor view(IntArg size) const;
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor to(DType dtype, std::optional<Device> device = std::nullopt) const;
  Tensor to(Device device) const;  ///< to_device
  void backward() const;           ///< of one element

 private:
  /// Not null, and with a dim d.
  const TensorImpl* impl(int d, const char* asked) const {
    const int rank = impl_ ? impl_->rank : 0;
    if (unsigned(d < 0 ? d + rank : d) >= unsigned(rank)) [[unlikely]]
      refuse_dim(d, asked);
    return impl_.get();
  }
  [[noreturn, gnu::cold]] void refuse_dim(int d, const char* asked) const;
  void* checked_data(DType wanted) const;
  Ref<TensorImpl> impl_;
};

using Tensors = std::vector<Tensor>;
using TensorSpan = std::span<const Tensor>;

/// New contiguous tensor, elements uninitialised. Errors: shape (negative size), overflow, out_of_memory,
/// dtype and device for what is none.
inline Tensor make_tensor(Ints sizes, DType dtype, Device device = Device::CPU) {
  return Tensor::adopt(device == Device::CPU ? TensorImpl::make_on_cpu(sizes, dtype)
                                             : TensorImpl::make_slowly(sizes, dtype, device));
}
/// Another view of base's storage, in base's family. Errors: storage when any element would lie outside,
/// shape for a negative size or stride, usage when base carries derivatives, which arithmetic on strides
/// would lose.
Tensor make_view(const Tensor& base, Ints sizes, Ints strides, int64_t offset);
/// The same memory read as elements of `dtype`, which strides and offset count: base's own, or that of its
/// real and imaginary parts. Error dtype for others.
Tensor make_view(const Tensor& base, Ints sizes, Ints strides, int64_t offset, DType dtype);
/// make_view without the checks, for callers whose arithmetic proves them.
Tensor make_view_unchecked(const Tensor& base, Ints sizes, Ints strides, int64_t offset);
Tensor make_view_unchecked(const Tensor& base, Ints sizes, Ints strides, int64_t offset, DType dtype);
/// A header of its own for the same elements, without keys of autograd or levels and in no family.
Tensor make_alias(const Tensor& t);
/// Contiguous tensor holding `values` (row-major). Errors: shape when the count differs from the product of
/// sizes, overflow for a value that does not fit the dtype (Scalar::fits).
Tensor tensor_of(Ints sizes, std::span<const double> values, DType dtype = DType::F32);
Tensor tensor_of(std::initializer_list<int64_t> sizes, std::initializer_list<double> values,
                 DType dtype = DType::F32);
/// Error overflow likewise.
Tensor scalar_tensor(const Scalar& value, DType dtype, Device device = Device::CPU);

/// An element by its multi-index, checked; T must be the dtype's type.
template <class T, int N> class Accessor {
 public:
  explicit Accessor(const Tensor& t)
      : data_(t.data<T>()), sizes_(t.impl()->sizes()), strides_(t.impl()->strides()) {
    LAMELLA_CHECK(t.rank() == N, Shape, "accessor: got rank {}, expected {}", t.rank(), N);
  }
  template <class... I> T& operator()(I... index) const {
    static_assert(sizeof...(I) == N);
    const int64_t at[] = {int64_t(index)..., 0};
    int64_t offset = 0;
    for (int d = 0; d < N; ++d) {
      LAMELLA_CHECK(at[d] >= 0 && at[d] < sizes_[d], IndexOutOfRange,
                    "accessor: index = {} is out of range for dim {} of size {}", at[d], d, sizes_[d]);
      offset += at[d] * strides_[d];
    }
    return data_[offset];
  }

 private:
  T* data_;
  const int64_t* sizes_;
  const int64_t* strides_;
};

/// "f32[2,3]"
std::string type_str(DType dtype, Ints sizes);
std::string type_str(const Tensor& t);
/// Type and values; a wrapped tensor shows its levels. Never throws.
std::string str(const Tensor& t);
std::ostream& operator<<(std::ostream& out, const Tensor& t);  ///< type_str: what error texts show
std::ostream& operator<<(std::ostream& out, DType d);

/// Whether two elements of `t` may share memory (a stride 0 over a size above 1, or interleaved strides).
bool overlaps_itself(const Tensor& t);
enum class Overlap { None, Same, Partial };
/// How the memory of two plain tensors meets; Same = the very same elements in the same order.
Overlap overlap(const Tensor& a, const Tensor& b);

}  // namespace lamella
LAMELLA_API_END
