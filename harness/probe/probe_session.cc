// Probes as programs.
#include "harness/probe/probe_session.h"

#include <algorithm>
#include <limits>

#include "harness/base/text.h"
#include "harness/casefile/generate.h"

namespace ulpscope {
namespace {

constexpr int64_t kProductRows = 64;
/// Rows and columns of one product of a batch.
constexpr int64_t kBatchSide = 16;
constexpr size_t kLaunchesPerCase = 16;

Attr Text(std::string text) { return {.value = std::move(text)}; }

Attr ShapeAttr(const Shape& shape) {
  Attr::List list(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) list[i].value = shape[i];
  return {.value = std::move(list)};
}

TensorSpec Spec(std::string name, const TensorData& data) {
  TensorSpec spec;
  spec.name = std::move(name);
  spec.dtype = data.dtype;
  spec.shape = data.shape;
  spec.fill = Text("zeros");
  return spec;
}

Operand Named(std::string name) { return {.name = std::move(name), .scalar = std::nullopt}; }

Step MakeStep(std::string op, std::vector<Operand> of, std::string as) {
  Step step;
  step.op = std::move(op);
  step.of = std::move(of);
  step.as = std::move(as);
  return step;
}

std::string Numbered(const char* name, size_t i) { return name + std::to_string(i); }

}  // namespace

const std::vector<std::string>& ProbeForms() {
  static const std::vector<std::string> forms{"matmul", "bmm", "dot"};
  return forms;
}

ProbeSession::ProbeSession(ProbeQuestion question, const Registry& registry)
    : question_(std::move(question)), rows_(kProductRows) {
  options_.repeat = 2;
  options_.trace = false;
  options_.timeout_s = question_.timeout_s;
  key_.backend = question_.backend;
  key_.knobs_asked = question_.backend.knobs;
  key_.row = InEnvironment(*registry.Find(question_.backend.name), question_.backend.knobs);
  using enum Asking;
  askings_ =
      question_.dtype == question_.out ? std::vector{kPlain} : std::vector{kOutDtype, kPreferred, kBuffer};
}

Result<std::unique_ptr<ProbeSession>> ProbeSession::Open(const ProbeQuestion& question,
                                                         const Registry& registry) {
  const RegistryRow* row = registry.Find(question.backend.name);
  if (row == nullptr) return Fail("unknown backend " + question.backend.name);
  std::unique_ptr<ProbeSession> session(new ProbeSession(question, registry));
  session->scratch_ = ULPSCOPE_TRY(Scratch::Create());
  session->runner_ = std::make_unique<CaseRunner>(session->key_, registry, *session->scratch_,
                                                  session->options_, session->interrupt_.fd());
  return session;
}

Shape ProbeSession::ShapeA() const {
  if (question_.form == "bmm") return {rows_ / kBatchSide, kBatchSide, question_.k};
  if (question_.form == "dot") return {rows_, 1, question_.k};
  return {rows_, question_.k};
}

Shape ProbeSession::ShapeB() const {
  if (question_.form == "bmm") return {rows_ / kBatchSide, question_.k, kBatchSide};
  if (question_.form == "dot") return {rows_, question_.k, 1};
  return {question_.k, rows_};
}

Shape ProbeSession::ShapeOut() const {
  if (question_.form == "bmm") return {rows_ / kBatchSide, kBatchSide, kBatchSide};
  if (question_.form == "dot") return {rows_, 1, 1};
  return {rows_, rows_};
}

int64_t ProbeSession::DiagonalOf(int64_t row) const {
  if (question_.form == "bmm")
    return (row / kBatchSide * kBatchSide + row % kBatchSide) * kBatchSide + row % kBatchSide;
  if (question_.form == "dot") return row;
  return row * rows_ + row;
}

ProbeSession::Launch ProbeSession::Empty() const {
  return {.a = TensorData::Zeros(question_.dtype, ShapeA()),
          .b = TensorData::Zeros(question_.dtype, ShapeB()),
          .addend = std::nullopt};
}

void ProbeSession::Place(const ProbeDot& dot, int64_t row, Launch* launch) const {
  const int64_t side = question_.form == "matmul" ? rows_ : question_.form == "bmm" ? kBatchSide : 1;
  const int64_t batch = row / side, column = row % side;
  for (const ProbeTerm& term : dot.terms) {
    launch->a.Set(row * question_.k + term.position, term.a);
    launch->b.Set((batch * question_.k + term.position) * side + column, term.b);
  }
  if (launch->addend) launch->addend->Set(DiagonalOf(row), dot.addend);
}

Case ProbeSession::MakeCase(std::span<const Launch> launches, Asking asking) const {
  Case c;
  c.id = "probe";
  const std::string out(Name(question_.out));
  for (size_t i = 0; i < launches.size(); ++i) {
    c.tensors.push_back(Spec(Numbered("a", i), launches[i].a));
    c.tensors.push_back(Spec(Numbered("b", i), launches[i].b));
    Step product = MakeStep(question_.form == "matmul" ? "matmul" : "bmm",
                            {Named(Numbered("a", i)), Named(Numbered("b", i))}, Numbered("y", i));
    if (asking == Asking::kOutDtype) product.attrs["out_dtype"] = Text(out);
    if (asking == Asking::kPreferred) product.attrs["preferred_element_type"] = Text(out);
    if (asking == Asking::kBuffer) {
      Step buffer = MakeStep("empty", {}, Numbered("o", i));
      buffer.attrs["shape"] = ShapeAttr(ShapeOut());
      buffer.attrs["dtype"] = Text(out);
      c.program.push_back(std::move(buffer));
      product.out = Numbered("o", i);
    }
    c.program.push_back(std::move(product));
    if (launches[i].addend) {
      c.tensors.push_back(Spec(Numbered("c", i), *launches[i].addend));
      c.program.push_back(
          MakeStep("add", {Named(Numbered("y", i)), Named(Numbered("c", i))}, Numbered("z", i)));
    }
    c.observe.push_back(Numbered(launches[i].addend ? "z" : "y", i));
  }
  return c;
}

std::optional<Observation> ProbeSession::Try(std::span<const Launch> launches, Asking asking) {
  sdk::TensorMap inputs;
  for (size_t i = 0; i < launches.size(); ++i) {
    inputs[Numbered("a", i)] = launches[i].a;
    inputs[Numbered("b", i)] = launches[i].b;
    if (launches[i].addend) inputs[Numbered("c", i)] = *launches[i].addend;
  }
  Case c = MakeCase(launches, asking);
  c.id += "/" + std::to_string(cases_++);
  auto observation = runner_->Run(c, inputs);
  if (!observation) interrupted_ = true;
  return observation;
}

std::vector<TensorData> ProbeSession::ExecuteSome(std::span<const Launch> launches) {
  while (!askings_.empty() && !interrupted_) {
    auto observation = Try(launches, askings_.front());
    if (!observation) break;
    const Outcome& outcome = observation->outcome;
    if (outcome.kind == OutcomeKind::kCompleted) {
      answered_ = true;
      launches_ += static_cast<int64_t>(launches.size());
      knobs_ = observation->knobs_effective;
      if (!observation->tainted.empty()) {
        failure_ =
            Outcome{.kind = OutcomeKind::kProtocolBroken, .error_class = "", .text = observation->tainted};
        return {};
      }
      if (!observation->unwritten.empty()) {
        failure_ = Outcome{.kind = OutcomeKind::kProtocolBroken,
                           .error_class = "",
                           .text = "elements of the result were never written"};
        return {};
      }
      for (const auto& [name, spread] : observation->nondeterministic) {
        nondeterministic_ = true;
        spread_ = std::max(spread_, spread);
      }
      std::vector<TensorData> results;
      for (size_t i = 0; i < launches.size(); ++i) {
        auto& value = observation->values[Numbered(launches[i].addend ? "z" : "y", i)];
        if (value.dtype != question_.out || value.shape != ShapeOut()) {
          failure_ = Outcome{.kind = OutcomeKind::kUnsupported,
                             .error_class = "",
                             .text = "asked for " + Describe(question_.out, ShapeOut()) + ", it gave " +
                                     Describe(value.dtype, value.shape)};
          return {};
        }
        results.push_back(std::move(value));
      }
      return results;
    }
    const bool refused = outcome.kind == OutcomeKind::kUnsupported || outcome.kind == OutcomeKind::kRaised;
    if (!refused || answered_ || askings_.size() == 1) {
      failure_ = outcome;
      if (!refusals_.empty()) failure_->text = refusals_ + "; " + failure_->text;
      return {};
    }
    // The adapter may take another way of requesting the out dtype.
    refusals_ += (refusals_.empty() ? "" : "; ") + outcome.text;
    askings_.erase(askings_.begin());
  }
  return {};
}

std::vector<TensorData> ProbeSession::Execute(std::span<const Launch> launches) {
  std::vector<TensorData> results;
  while (results.size() < launches.size() && !failure_ && !interrupted_) {
    const auto some =
        launches.subspan(results.size(), std::min(kLaunchesPerCase, launches.size() - results.size()));
    for (TensorData& result : ExecuteSome(some)) results.push_back(std::move(result));
  }
  return results;
}

std::vector<double> ProbeSession::Run(std::span<const ProbeDot> dots) {
  std::vector<double> outputs(dots.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<Launch> launches;
  for (size_t i = 0; i < dots.size(); ++i) {
    const auto row = static_cast<int64_t>(i) % rows_;
    if (row == 0) launches.push_back(Empty());
    Place(dots[i], row, &launches.back());
    dots_ += dots[i].terms.empty() ? 0 : 1;
  }
  const auto results = Execute(launches);
  for (size_t i = 0; i < dots.size(); ++i) {
    const size_t launch = i / static_cast<size_t>(rows_);
    if (launch < results.size()) outputs[i] = results[launch].At(DiagonalOf(static_cast<int64_t>(i) % rows_));
  }
  return outputs;
}

std::vector<std::vector<double>> ProbeSession::RunEverywhere(std::span<const ProbeDot> dots) {
  std::vector<std::vector<double>> outputs(
      dots.size(),
      std::vector<double>(static_cast<size_t>(coordinates()), std::numeric_limits<double>::quiet_NaN()));
  std::vector<Launch> launches;
  for (const ProbeDot& dot : dots) {
    launches.push_back(Empty());
    for (int64_t row = 0; row < rows_; ++row) Place(dot, row, &launches.back());
    ++dots_;
  }
  const auto results = Execute(launches);
  for (size_t i = 0; i < results.size(); ++i) {
    for (int64_t at = 0; at < coordinates(); ++at) outputs[i][static_cast<size_t>(at)] = results[i].At(at);
  }
  return outputs;
}

std::vector<double> ProbeSession::RunWithAddend(std::span<const ProbeDot> dots) {
  std::vector<double> outputs(dots.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<Launch> launches;
  for (size_t i = 0; i < dots.size(); ++i) {
    const auto row = static_cast<int64_t>(i) % rows_;
    if (row == 0) {
      launches.push_back(Empty());
      launches.back().addend = TensorData::Zeros(question_.out, ShapeOut());
    }
    Place(dots[i], row, &launches.back());
    ++dots_;
  }
  const auto results = Execute(launches);
  for (size_t i = 0; i < dots.size(); ++i) {
    const size_t launch = i / static_cast<size_t>(rows_);
    if (launch < results.size()) outputs[i] = results[launch].At(DiagonalOf(static_cast<int64_t>(i) % rows_));
  }
  return outputs;
}

ProbeSession::Random ProbeSession::RunRandom() {
  Random random;
  Launch launch = Empty();
  TensorSpec spec = Spec("a", launch.a);
  spec.fill = Text("normal");
  if (auto data = GenerateTensor(spec, 0)) launch.a = std::move(*data);
  spec = Spec("b", launch.b);
  spec.fill = Text("normal");
  if (auto data = GenerateTensor(spec, 0)) launch.b = std::move(*data);
  const auto results = Execute({&launch, 1});
  if (results.empty()) return random;
  // The first product of a batch; for a batch of dot products m = n = 1.
  random.m = question_.form == "matmul" ? rows_ : question_.form == "bmm" ? kBatchSide : 1;
  random.n = random.m;
  for (int64_t i = 0; i < random.m * question_.k; ++i) random.a.push_back(launch.a.At(i));
  for (int64_t i = 0; i < random.n * question_.k; ++i) random.b.push_back(launch.b.At(i));
  for (int64_t i = 0; i < random.m * random.n; ++i) random.y.push_back(results[0].At(i));
  dots_ += random.m * random.n;
  return random;
}

std::string ProbeSession::program() const {
  const std::string out(Name(question_.out));
  std::string text = std::string(Name(question_.dtype)) + " ";
  text += "[" + Join(ShapeA(), ", ") + "] @ [" + Join(ShapeB(), ", ") + "]";
  if (askings_.empty()) return text;
  switch (askings_.front()) {
    case Asking::kPlain:
      return text;
    case Asking::kOutDtype:
      return text + ", out_dtype=" + out;
    case Asking::kPreferred:
      return text + ", preferred_element_type=" + out;
    case Asking::kBuffer:
      return text + ", out= a " + out + " buffer";
  }
  return text;
}

std::map<std::string, std::string> ProbeSession::versions() const {
  return key_.info ? key_.info->versions : std::map<std::string, std::string>();
}

}  // namespace ulpscope
