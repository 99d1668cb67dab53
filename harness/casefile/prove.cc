// From a case to its companions.
#include "harness/casefile/prove.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/open.h"
#include "harness/model/cross.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

constexpr char kTilde = '~';
/// Results that a probe has to show before it counts as asked: a few hundred random significands leave no rival by luck.
constexpr int64_t kWantedResults = 192;
/// Companions of one product and probe, and of one case.
constexpr int64_t kMostRounds = 6;
constexpr size_t kMostCompanions = 30;
/// Shorter sums are not split: the bank of models holds no split of them either.
constexpr int64_t kLeastSplitLength = 128;

/// A value that shows the elements of a tensor of the case: axis i of it is axis axes[i] of the tensor.
struct Seen {
  const TensorSpec* tensor = nullptr;
  std::vector<size_t> axes = {};
  bool is_cast = false;  ///< into another dtype
};

/// One operand of a product: a tensor, and the dimension of it that is summed over.
struct ProvedOperand {
  const TensorSpec* tensor = nullptr;
  size_t dim = 0;

  int64_t k() const { return tensor->shape[dim]; }
  int64_t lines() const { return ElementCount(tensor->shape) / std::max<int64_t>(1, k()); }
};

/// A matrix product of two tensors of the case, or a sum of one.
struct ProvedProduct {
  std::string value;        ///< the value that it makes: product, w.grad
  std::string buffer;       ///< the other name that out= gives it
  ProvedOperand a, b = {};  ///< of a sum b has no tensor
  int64_t results = 0;
  const TensorSpec* addend = nullptr;
  std::string probe = {};  ///< the only one of an op around a sum; else empty
  bool is_short = false;   ///< of 16-bit operands, and stored as such

  bool IsSum() const { return b.tensor == nullptr; }
};

/// A fill, not a crossed probe: among the inputs of ops' own, of 16-bit operands, and of sums of fewer than kFewTerms.
constexpr char kOrdinary[] = "normal";
constexpr int64_t kFewTerms = 3;
/// Another one: numbers of sizes that float16 does not hold.
constexpr char kRange[] = "range";

/// And numbers far from zero beside how they differ: a mean that is rounded to 16 bits moves everything.
constexpr char kShifted[] = "shifted";
/// The probe of ops that take a mean away.
constexpr char kOpposed[] = "opposed";

bool IsFill(std::string_view probe) { return probe == kOrdinary || probe == kRange || probe == kShifted; }

Attr FillOf(std::string_view probe) {
  if (probe == kOrdinary) return Attr{.value = std::string(kOrdinary)};
  Attr::Map parameters, fill;
  const bool shifted = probe == kShifted;
  parameters[shifted ? "mean" : "low"] = Attr{.value = std::string(shifted ? "8" : "-30")};
  parameters[shifted ? "scale" : "high"] = Attr{.value = std::string(shifted ? "1" : "30")};
  fill[shifted ? "normal" : "wide_exponent"] = Attr{.value = std::move(parameters)};
  return Attr{.value = std::move(fill)};
}

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

  std::vector<ProvedProduct> Take() { return std::move(products_); }
  /// Names of values on whose path the value lies, itself included; tensors and gradients among them.
  std::set<std::string> PathOf(const std::string& value) const {
    std::set<std::string> path;
    const std::function<void(const std::string&)> visit = [&](const std::string& name) {
      if (!path.insert(name).second) return;
      if (const auto sources = sources_.find(name); sources != sources_.end()) {
        for (const std::string& source : sources->second) visit(source);
      }
    };
    visit(value);
    return path;
  }

 private:
  /// What one product step was made of, for the gradients through it.
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

  /// Where values come from, and which of them show a tensor's own elements.
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

/// What each probe reads. Accumulators are asked for whatever facet is demanded: a rounding after the sum is told from one in
/// it only where the sum itself is known.
std::vector<std::string> ProbesFor(const ValueDemand& demand, const ProvedProduct& product) {
  if (demand.facets.empty()) return {};
  const int64_t k = product.a.k();
  if (!product.probe.empty()) {
    if (product.probe != kOrdinary && k < LeastCrossLength(product.probe)) return {};
    // Around a large mean one-pass forms err by more than float32 stores hide.
    if (product.probe == kOpposed && product.is_short) return {product.probe, kShifted};
    return {product.probe};
  }
  // What tells narrow sums of products are the products' own bits; a sum of single values needs a tie.
  std::vector<std::string> probes =
      product.IsSum() ? std::vector<std::string>{"tie", "swamp", "wide", "half"}
                      : std::vector<std::string>{"single", "cancel", "swamp", "wide", "half"};
  // Single values of 16 bits are stored between chunks as they are: their split leaves no trace.
  const FloatFormat* format = FormatOf(product.a.tensor->dtype);
  const bool traced = !product.IsSum() || (format != nullptr && format->precision > Binary16().precision);
  if (k >= kLeastSplitLength && traced) probes.emplace_back("chunk");
  // Of two products and their sum ordinary numbers tell as much. Behind a 16-bit store they tell how near sums come to exact ones.
  if (k < kFewTerms || product.is_short) probes.emplace_back(kOrdinary);
  // Sums of so few have no lines that leave float16's range.
  if (k < kFewTerms && product.IsSum() && format != nullptr && format->emax > Binary16().emax)
    probes.emplace_back(kRange);
  std::erase_if(probes,
                [&](const std::string& probe) { return !IsFill(probe) && k < LeastCrossLength(probe); });
  return probes;
}

Attr CrossFill(const std::string& name, const char* role, const ProvedOperand& operand, int64_t from) {
  Attr::Map parameters;
  parameters["name"] = Attr{.value = name};
  parameters["role"] = Attr{.value = std::string(role)};
  parameters["dim"] = Attr{.value = std::to_string(operand.dim)};
  parameters["from"] = Attr{.value = std::to_string(from)};
  Attr::Map fill;
  fill["cross"] = Attr{.value = std::move(parameters)};
  return Attr{.value = std::move(fill)};
}

void Refill(Case* one, const TensorSpec* tensor, Attr fill) {
  for (TensorSpec& each : one->tensors) {
    if (each.name == tensor->name) each.fill = std::move(fill);
  }
}

Companion MakeCompanion(const Case& base, const ProvedProduct& product, const std::string& probe,
                        int64_t round, std::string name) {
  Companion companion{.name = std::move(name), .probe = probe, .test_case = base};
  Case& one = companion.test_case;
  one.companion_of = base.id;
  one.id += kTilde + companion.name;
  one.asked_of = base.contract.values;
  one.contract = {};
  one.expect.clear();
  if (IsFill(probe)) {
    for (const TensorSpec* tensor : {product.a.tensor, product.b.tensor, product.addend}) {
      if (tensor != nullptr) Refill(&one, tensor, FillOf(probe));
    }
    return companion;
  }
  Refill(&one, product.a.tensor,
         CrossFill(probe, product.IsSum() ? "sum" : "a", product.a, round * product.a.lines()));
  if (product.IsSum()) return companion;
  Refill(&one, product.b.tensor, CrossFill(probe, "b", product.b, round * product.b.lines()));
  // An addend is looked at beside single products; elsewhere it would bury what is left of the sum, and small products too.
  if ((probe != "single" || round % 2 == 1) && product.addend != nullptr &&
      product.addend != product.a.tensor && product.addend != product.b.tensor)
    Refill(&one, product.addend, Attr{.value = std::string("zeros")});
  return companion;
}

/// Runs of one probe until enough results have shown it, and until every line of its own was there.
int64_t RoundsOf(const ProvedProduct& product, const std::string& probe) {
  if (IsFill(probe)) return 1;
  int64_t rounds = (kWantedResults + product.results - 1) / std::max<int64_t>(1, product.results);
  if (probe == "single" && product.addend != nullptr) rounds = std::max<int64_t>(rounds, 2);
  if (probe == "chunk") {
    const auto partners = static_cast<int64_t>(ChunkPartners(product.a.k()).size());
    const int64_t lines = std::max<int64_t>(1, product.IsSum() ? product.a.lines() : product.b.lines());
    rounds = std::max(rounds, (partners + lines - 1) / lines);
  }
  return std::clamp<int64_t>(rounds, 1, kMostRounds);
}

/// The products that a demanded value depends on. Gradients do not depend on the forward value's own sum.
bool IsOnPath(const ProvedProduct& product, const std::string& value, const std::set<std::string>& path) {
  if (product.value == value) return true;
  return !value.ends_with(".grad") && path.contains(product.value);
}

}  // namespace

std::vector<Companion> CompanionsOf(const Case& test_case) {
  std::vector<Companion> companions;
  if (!test_case.contract.prove) return companions;
  ProductFinder finder(test_case);
  const auto products = finder.Take();
  std::vector<std::pair<const ProvedProduct*, std::vector<std::string>>> asked;
  for (const ProvedProduct& product : products) {
    std::vector<std::string> probes;
    for (const auto& [value, demand] : test_case.contract.values) {
      if (!IsOnPath(product, value, finder.PathOf(value))) continue;
      for (const std::string& probe : ProbesFor(demand, product)) {
        if (!Contains(probes, probe)) probes.push_back(probe);
      }
    }
    if (!probes.empty()) asked.emplace_back(&product, std::move(probes));
  }
  // Each probe once before any a second time: where there are too many, none is left out.
  for (int64_t round = 0; round < kMostRounds; ++round) {
    for (const auto& [product, probes] : asked) {
      for (const std::string& probe : probes) {
        if (round >= RoundsOf(*product, probe) || companions.size() >= kMostCompanions) continue;
        std::string name = asked.size() > 1 ? product->value + "." + probe : probe;
        if (round > 0) name += "." + std::to_string(round + 1);
        companions.push_back(MakeCompanion(test_case, *product, probe, round, std::move(name)));
      }
    }
  }
  return companions;
}

std::set<std::string> Provable(const Case& test_case) {
  const auto products = ProductFinder(test_case).Take();
  std::set<std::string> values;
  for (const auto& [value, demand] : test_case.contract.values) {
    for (const ProvedProduct& product : products) {
      if ((product.value == value || product.buffer == value) && !ProbesFor(demand, product).empty())
        values.insert(value);
    }
  }
  return values;
}

std::vector<Case> WithCompanions(const std::vector<Case>& cases, Steps steps) {
  std::vector<Case> all;
  for (const Case& one : cases) {
    all.push_back(one);
    for (Companion& companion : CompanionsOf(one)) all.push_back(std::move(companion.test_case));
    if (auto opened = steps == Steps::kOpened ? Opened(one) : std::nullopt) all.push_back(std::move(*opened));
  }
  return all;
}

bool IsOrdinary(const Case& companion) {
  const auto ends_with = [&](char before) { return companion.id.ends_with(before + std::string(kOrdinary)); };
  return !companion.companion_of.empty() && (ends_with(kTilde) || ends_with('.'));
}

std::string_view BaseOf(std::string_view id) {
  const size_t tilde = id.rfind(kTilde);
  return tilde == id.npos ? std::string_view() : id.substr(0, tilde);
}

}  // namespace ulpscope
