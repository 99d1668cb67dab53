// Buffer: aligned, uninitialised, growing memory for numbers.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace ulpscope::fast {

template <class T>
class Buffer {
 public:
  /// At least `count` elements; the contents are lost if it has to grow.
  T* Need(int64_t count) {
    if (count > size_) {
      constexpr size_t kAlignment = 64;
      const size_t bytes =
          (static_cast<size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
      data_.reset(static_cast<T*>(std::aligned_alloc(kAlignment, bytes)));
      if (data_ == nullptr) throw std::bad_alloc();
      size_ = count;
    }
    return data_.get();
  }
  T* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0;
};

}  // namespace ulpscope::fast
