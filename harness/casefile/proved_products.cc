// Finds products, step by step.
#include "harness/casefile/proved_products.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/model/cross.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

/// A value that shows the elements of a tensor of the case: axis i of it is axis axes[i] of the tensor.
struct Seen {
  const TensorSpec* tensor = nullptr;
  std::vector<size_t> axes = {};
  bool is_cast = false;  ///< into another dtype
};

/// The names that a step gives its result.
std::vector<std::string> ResultsOf(const Step& step) {
  std::vector<std::string> names;
  if (!step.as.empty()) names.push_back(step.as);
  if (!step.out.empty()) names.push_back(step.out);
  return names;
}

std::optional<int64_t> IntegerAttr(const Step& step, const char* key) {
  const Attr* attr = step.Find(key);
  const int64_t* value = attr == nullptr ? nullptr : attr->If<int64_t>();
  return value == nullptr ? std::nullopt : std::optional(*value);
}

/// Finds the products of a program whose operands are tensors of the case.
class ProductFinder {
 public:
  explicit ProductFinder(const Case& one) : case_(one) {
    for (const TensorSpec& tensor : one.tensors) {
      Seen seen{.tensor = &tensor};
      for (size_t axis = 0; axis < tensor.shape.size(); ++axis) seen.axes.push_back(axis);
      seen_[tensor.name] = std::move(seen);
    }
    Walk(one.program);
  }

  ProvedProducts Take() { return {.products = std::move(products_), .sources = std::move(sources_)}; }

 private:
  /// The operands of one product step, for the gradients through it.
  struct Made {
    std::string op;
    std::string a, b;  ///< operand names
    Seen x, y;
  };

  void Walk(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      Walk(step.steps);
      Note(step);
      if (step.op == "matmul" || step.op == "mm" || step.op == "bmm" || step.op == "linear")
        AddProduct(step, 0, 1, step.of.size() > 2 ? step.of[2].name : "");
      else if ((step.op == "addmm" || step.op == "baddbmm") && step.of.size() == 3)
        AddProduct(step, 1, 2, step.of[0].name);
      else if (step.op == "sum" || step.op == "mean")
        AddSum(step, {});
      else if (const std::string_view own = OwnInput(step.op); !own.empty())
        AddSum(step, std::string(own));
      else if (step.op == "backward")
        AddGradients(step);
    }
  }

  /// The origin of each value, and the values that show a tensor's own elements.
  void Note(const Step& step) {
    for (const std::string& name : ResultsOf(step)) {
      for (const Operand& operand : step.of) {
        if (!operand.IsScalar()) sources_[name].insert(operand.name);
      }
      if (!step.as.empty() && name != step.as) sources_[name].insert(step.as);
      seen_.erase(name);
    }
    if (step.as.empty() || step.of.empty()) return;
    const auto from = seen_.find(step.of[0].name);
    if (from == seen_.end()) return;
    Seen seen = from->second;
    const auto rank = static_cast<int64_t>(seen.axes.size());
    const auto swap = [&](int64_t x, int64_t y) {
      x += x < 0 ? rank : 0;
      y += y < 0 ? rank : 0;
      if (x < 0 || y < 0 || x >= rank || y >= rank) return false;
      std::swap(seen.axes[static_cast<size_t>(x)], seen.axes[static_cast<size_t>(y)]);
      return true;
    };
    const bool kept = step.op == "cast" || step.op == "clone" || step.op == "detach" ||
                      (step.op == "t" && (rank < 2 || swap(0, 1))) ||
                      (step.op == "transpose" &&
                       swap(IntegerAttr(step, "dim0").value_or(0), IntegerAttr(step, "dim1").value_or(1)));
    seen.is_cast = seen.is_cast || step.op == "cast";
    if (kept) seen_[step.as] = std::move(seen);
  }

  std::optional<Seen> SeenAs(const std::string& name) const {
    const auto found = seen_.find(name);
    if (found == seen_.end() || found->second.axes.empty()) return std::nullopt;
    const FloatFormat* format = FormatOf(found->second.tensor->dtype);
    if (format == nullptr || format->precision < kLeastCrossBits) return std::nullopt;
    return found->second;
  }

  /// A value of 16 bits that a step makes of 16-bit operands.
  bool IsShort(const Step& step, const Seen& operand) const {
    const FloatFormat* format = FormatOf(operand.tensor->dtype);
    const TensorSpec* buffer = step.out.empty() ? nullptr : case_.FindTensor(step.out);
    return format != nullptr && format->precision <= Binary16().precision && !operand.is_cast &&
           step.Find("out_dtype") == nullptr && step.Find("dtype") == nullptr &&
           (buffer == nullptr || buffer->dtype == operand.tensor->dtype);
  }

  void Add(const Step& step, const std::string& value, const Seen& a, size_t a_axis, const Seen& b,
           size_t b_axis, int64_t results, const std::string& addend, const std::string& buffer = {}) {
    ProvedProduct product{.value = value,
                          .buffer = buffer,
                          .a = {.tensor = a.tensor, .dim = a.axes[a_axis]},
                          .b = {.tensor = b.tensor, .dim = b.axes[b_axis]},
                          .results = results,
                          .addend = addend.empty() ? nullptr : case_.FindTensor(addend),
                          .is_short = IsShort(step, a) && IsShort(step, b)};
    // A square of one tensor has no two operands to fill.
    if (product.a.tensor == product.b.tensor || product.a.k() != product.b.k()) return;
    products_.push_back(std::move(product));
  }

  void AddProduct(const Step& step, size_t first, size_t second, const std::string& addend) {
    const std::string a = step.of[first].name, b = step.of[second].name;
    const auto x = SeenAs(a), y = SeenAs(b);
    if (!x || !y) return;
    for (const std::string& name : ResultsOf(step))
      made_[name] = {.op = step.op, .a = a, .b = b, .x = *x, .y = *y};
    const size_t x_axis = x->axes.size() - 1;
    const size_t y_axis =
        step.op == "linear" || y->axes.size() == 1 ? y->axes.size() - 1 : y->axes.size() - 2;
    const ProvedOperand left{.tensor = x->tensor, .dim = x->axes[x_axis]},
        right{.tensor = y->tensor, .dim = y->axes[y_axis]};
    // Batches pair line by line, not all with all.
    int64_t batch = 1;
    if (x->axes.size() > 2 && y->axes.size() > 2) {
      for (size_t axis = 0; axis + 2 < y->axes.size(); ++axis) batch *= y->tensor->shape[y->axes[axis]];
    }
    const int64_t results = left.lines() * right.lines() / std::max<int64_t>(1, batch);
    Add(step, step.as.empty() ? step.out : step.as, *x, x_axis, *y, y_axis, results, addend, step.out);
  }

  /// A sum along one dimension, or over all of a vector; or an op around one.
  void AddSum(const Step& step, std::string probe) {
    const auto x = step.of.empty() ? std::nullopt : SeenAs(step.of[0].name);
    if (!x) return;
    const auto rank = static_cast<int64_t>(x->axes.size());
    const Attr* attr = step.Find("dim");
    std::optional<int64_t> dim =
        attr == nullptr && rank == 1 ? std::optional<int64_t>(0) : IntegerAttr(step, "dim");
    if (probe == kOrdinary) {
      dim = rank - 1;
    } else if (const Attr* last = step.Find("normalized_shape"); last != nullptr) {
      const auto* sizes = last->If<Attr::List>();
      dim = sizes == nullptr || sizes->size() == 1 ? std::optional<int64_t>(-1) : std::nullopt;
    }
    if (attr != nullptr && attr->If<Attr::List>() != nullptr && attr->If<Attr::List>()->size() == 1) {
      if (const int64_t* only = attr->If<Attr::List>()->front().If<int64_t>()) dim = *only;
    }
    if (!dim || *dim < -rank || *dim >= rank) return;
    const ProvedOperand operand{.tensor = x->tensor,
                                .dim = x->axes[static_cast<size_t>(*dim < 0 ? *dim + rank : *dim)]};
    products_.push_back({.value = step.as.empty() ? step.out : step.as,
                         .buffer = step.out,
                         .a = operand,
                         .results = operand.lines() * (probe.empty() ? 1 : 2),
                         .addend = nullptr,
                         .probe = std::move(probe),
                         .is_short = IsShort(step, *x)});
  }

  /// The gradients of a product of two matrices that the loss is the value of.
  void AddGradients(const Step& step) {
    const Attr* attr = step.Find("grad");
    const std::string* grad = attr == nullptr ? nullptr : attr->If<std::string>();
    const auto made = step.of.empty() ? made_.end() : made_.find(step.of[0].name);
    if (made == made_.end()) return;
    const auto& [op, a, b, x, y] = made->second;
    for (const std::string& leaf : {a, b}) {
      auto& sources = sources_[leaf + ".grad"];
      sources.insert({a, b});
      if (grad != nullptr) sources.insert(*grad);
    }
    if (grad == nullptr || x.axes.size() != 2 || y.axes.size() != 2) return;
    const auto g = SeenAs(*grad);
    if (!g || g->axes.size() != 2) return;
    const auto extent = [](const Seen& seen, size_t axis) { return seen.tensor->shape[seen.axes[axis]]; };
    // y = x w: x.grad = g w^T, w.grad = x^T g; linear holds w transposed, and its gradient g^T x.
    const size_t inner = op == "linear" ? 0 : 1;  // the axis of w that g's last one meets
    Add(step, a + ".grad", *g, 1, y, inner, extent(*g, 0) * extent(y, 1 - inner), "");
    if (op == "linear")
      Add(step, b + ".grad", *g, 0, x, 0, extent(*g, 1) * extent(x, 1), "");
    else
      Add(step, b + ".grad", x, 0, *g, 0, extent(x, 1) * extent(*g, 1), "");
  }

  const Case& case_;
  std::map<std::string, Seen> seen_;
  std::map<std::string, Made> made_;
  std::map<std::string, std::set<std::string>> sources_;
  std::vector<ProvedProduct> products_;
};

}  // namespace

ProvedProducts FindProducts(const Case& one) { return ProductFinder(one).Take(); }

std::set<std::string> ProvedProducts::PathOf(const std::string& value) const {
  std::set<std::string> path;
  const std::function<void(const std::string&)> visit = [&](const std::string& name) {
    if (!path.insert(name).second) return;
    if (const auto found = sources.find(name); found != sources.end()) {
      for (const std::string& source : found->second) visit(source);
    }
  };
  visit(value);
  return path;
}

}  // namespace ulpscope
