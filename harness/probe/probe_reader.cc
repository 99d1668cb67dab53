// Reading a datasheet.
#include "harness/probe/probe_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/label.h"
#include "harness/probe/sum_tree.h"
#include "oracles/dot/bank.h"

namespace ulpscope {
namespace {

using State = DatasheetLine::State;
using Words = std::vector<std::string>;

double Pow2(int exponent) { return std::ldexp(1.0, exponent); }

void Insert(Words* words, const std::string& word) {
  if (!Contains(*words, word)) words->push_back(word);
}

std::string WithoutFlag(const std::string& word) { return word.substr(0, word.find('+')); }

std::string PhraseOf(std::string_view word) {
  if (word == "rne") return "to nearest, ties to even";
  if (word == "rz") return "towards zero";
  if (word == "rna") return "to nearest, ties away from zero";
  if (word == "odd") return "to odd: the last bit is set where anything is lost";
  if (word == "none") return "never rounded";
  return std::string(word);
}

class Reader {
 public:
  Reader(const ProbeQuestion& question, ProbeSession* session)
      : question_(question),
        session_(*session),
        bank_(DotBank::For(question.dtype, question.out)),
        alive_(bank_.models().size(), 1),
        witnesses_(bank_.models().size()) {}

  Datasheet Read() {
    sheet_.backend = question_.backend.Text();
    sheet_.dtype = std::string(Name(question_.dtype));
    sheet_.out_dtype = std::string(Name(question_.out));
    sheet_.form = question_.form;
    sheet_.k = question_.k;
    sheet_.models_tried = static_cast<int64_t>(bank_.models().size());
    AskGroups();
    if (Going()) AskMasks();
    if (Going()) AskRandom();
    if (Going()) AskOrder();
    if (Going()) AskSubnormals();
    if (Going()) AskConsumer();
    Conclude();
    return std::move(sheet_);
  }

 private:
  bool Going() const {
    return !session_.failure() && !session_.interrupted() && !session_.nondeterministic();
  }

  /// Every family but mask and fuse. The members of a group run at one coordinate, in launches of their own.
  void AskGroups() {
    std::map<size_t, std::vector<const ProbeGroup*>> by_members;
    for (const std::string& family : ProbeFamilies()) {
      if (family == "mask" || family == "fuse") continue;
      for (ProbeGroup& group : ProbeGroups(family, question_.dtype, question_.k))
        groups_.push_back(std::move(group));
    }
    for (const ProbeGroup& group : groups_) by_members[group.members.size()].push_back(&group);
    std::vector<ProbeDot> dots;
    std::vector<GroupOutputs> outputs;
    std::vector<std::vector<size_t>> places;
    const auto rows = static_cast<size_t>(session_.rows());
    for (const auto& [members, list] : by_members) {
      for (size_t first = 0; first < list.size(); first += rows) {
        const size_t base = dots.size();
        dots.resize(base + members * rows);
        for (size_t row = 0; row < std::min(rows, list.size() - first); ++row) {
          const ProbeGroup* group = list[first + row];
          outputs.push_back({.group = group, .outputs = {}, .same_coordinate = SameCoordinate::kYes});
          places.emplace_back();
          for (size_t member = 0; member < members; ++member) {
            places.back().push_back(base + member * rows + row);
            dots[places.back().back()] = group->members[member];
          }
          dots_of_[group->family] += static_cast<int64_t>(members);
        }
      }
    }
    const std::vector<double> results = session_.Run(dots);
    if (!Going()) return;
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (const size_t place : places[i]) outputs[i].outputs.push_back(results[place]);
    }
    bank_.Exclude(outputs, &alive_, &witnesses_);
    outputs_ = std::move(outputs);
  }

  void AskMasks() {
    decode_ = DecodeBlocks(question_.dtype, question_.k,
                           [&](std::span<const ProbeDot> dots) { return session_.Run(dots); });
    dots_of_["mask"] += decode_.dots;
    if (Going()) bank_.Exclude(decode_, question_.k, &alive_);
  }

  void AskRandom() {
    const bool any = Contains(alive_, 1);
    const auto random = session_.RunRandom();
    if (!Going()) return;
    bank_.Exclude(random.a, random.b, random.y, random.m, question_.k, random.n, &alive_);
    fell_to_random_ = any && !Contains(alive_, 1);
    dots_of_["random"] += random.m * random.n;
  }

  /// Units and masks as operands; `wide` masks absorb units in float64 too.
  ProbeDot MaskAt(int64_t i, int64_t j, int64_t window, const std::pair<int, int>& exponents) const {
    ProbeDot dot;
    const auto [unit, mask] = exponents;
    for (int64_t position = 0; position < window; ++position) {
      const double sign = position == i ? 1 : position == j ? -1 : 0;
      const int exponent = sign == 0 ? unit : mask;
      dot.terms.push_back({.position = position,
                           .a = (sign == 0 ? 1 : sign) * Pow2(exponent / 2),
                           .b = Pow2(exponent - exponent / 2)});
    }
    return dot;
  }

  /// One order, and the coordinates that sum so.
  struct Order {
    SumTree tree;
    int64_t coordinates = 0;
  };

  /// Reads the tree at `coordinate`. The pairs that are asked follow from the answers, so coordinates that
  /// answer alike all along have the same tree: they are taken off `open`.
  std::optional<Order> OrderAt(size_t coordinate, int64_t window, const std::pair<int, int>& exponents,
                               std::vector<size_t>* open) {
    bool counted = true;
    std::vector<size_t> alike = *open;
    const auto tree = RevealTree(window, [&](std::span<const std::pair<int64_t, int64_t>> pairs) {
      std::vector<ProbeDot> dots;
      for (const auto& [i, j] : pairs) dots.push_back(MaskAt(i, j, window, exponents));
      const auto results = session_.RunEverywhere(dots);
      order_dots_ += static_cast<int64_t>(dots.size());
      std::vector<int64_t> meets;
      for (const auto& result : results) {
        const double units = std::ldexp(result[coordinate], -exponents.first);
        counted =
            counted && units >= 0 && units <= static_cast<double>(window - 2) && units == std::floor(units);
        if (!counted) return std::vector<int64_t>();
        meets.push_back(window - static_cast<int64_t>(units));
        std::erase_if(alike, [&](size_t other) { return result[other] != result[coordinate]; });
      }
      return meets;
    });
    masks_counted_ = masks_counted_ || counted;
    if (!tree) return std::nullopt;
    std::erase_if(*open, [&](size_t other) { return Contains(alike, other); });
    return Order{.tree = *tree, .coordinates = static_cast<int64_t>(alike.size())};
  }

  /// The first coordinate, then one of those that sum otherwise, and so on.
  void AskOrder() {
    constexpr size_t kMostOrders = 8;
    const int64_t window = std::min(question_.k, kMaskWindow);
    if (window < 3) return;
    const bool narrow = question_.dtype == DType::kFloat16 || question_.out == DType::kFloat16;
    // The narrower pair first; then one that leaves more than 53 bits between; then one that float16 sums
    // hold.
    for (const std::pair<int, int>& exponents :
         {std::pair(kMaskUnitExponent, kMaskExponent), narrow ? std::pair(-24, 30) : std::pair(-12, 100),
          std::pair(-3, 15)}) {
      std::vector<size_t> open(static_cast<size_t>(session_.coordinates()));
      for (size_t i = 0; i < open.size(); ++i) open[i] = i;
      while (!open.empty() && orders_.size() < kMostOrders && Going()) {
        const auto order = OrderAt(open.front(), window, exponents, &open);
        if (!order) break;
        orders_.push_back(*order);
      }
      if (!orders_.empty() || !Going()) break;
    }
    dots_of_["mask"] += order_dots_;
  }

  struct Subnormal {
    std::string key, title;
    std::vector<ProbeDot> dots = {};
    std::vector<double> exact = {};
  };

  static ProbeDot One(double a, double b) {
    return {.terms = {{.position = 0, .a = a, .b = b}}, .addend = 0};
  }

  /// 1.5 2^exponent as a product of two normal operands; nothing where the operands' format does not reach.
  std::optional<ProbeTerm> NormalFactors(double significand, int exponent) const {
    const FloatFormat& in = *FormatOf(question_.dtype);
    const int first = std::max(exponent / 2, in.emin), second = exponent - first;
    if (second < in.emin || second > in.emax) return std::nullopt;
    return ProbeTerm{.position = 0, .a = significand * Pow2(first), .b = Pow2(second)};
  }

  /// Dots that subnormal operands, results and sums decide, with their exact results; none where these dtypes do not reach there.
  std::vector<Subnormal> SubnormalKinds() const {
    const FloatFormat& in = *FormatOf(question_.dtype);
    const FloatFormat& out = *FormatOf(question_.out);
    std::vector<Subnormal> kinds(3);
    kinds[0] = {
        .key = "subnormal_operands",
        .title = "subnormal operands",
    };
    const int back = std::min(2 - in.emin, in.emax - 8);
    for (const double sign : {1.0, -1.0}) {
      const double small = sign * 1.5 * Pow2(in.emin - 2);
      kinds[0].dots.push_back(One(small, Pow2(back)));
      kinds[0].dots.push_back(One(Pow2(back), small));
      kinds[0].exact.insert(kinds[0].exact.end(), 2, small * Pow2(back));
    }
    kinds[1] = {
        .key = "subnormal_results",
        .title = "subnormal results",
    };
    kinds[2] = {
        .key = "subnormal_sums",
        .title = "subnormal sums of normal products",
    };
    for (const double sign : {1.0, -1.0}) {
      if (const auto term = NormalFactors(sign * 1.5, out.emin - 2)) {
        kinds[1].dots.push_back(One(term->a, term->b));
        kinds[1].exact.push_back(sign * 1.5 * Pow2(out.emin - 2));
      }
      const auto more = NormalFactors(sign * 1.5, out.emin), less = NormalFactors(-sign * 1.25, out.emin);
      if (question_.k >= 2 && more && less) {
        ProbeDot dot = One(more->a, more->b);
        dot.terms.push_back({.position = 1, .a = less->a, .b = less->b});
        kinds[2].dots.push_back(std::move(dot));
        kinds[2].exact.push_back(sign * Pow2(out.emin - 2));
      }
    }
    return kinds;
  }

  void AskSubnormals() {
    const std::vector<Subnormal> kinds = SubnormalKinds();
    std::vector<ProbeDot> all;
    for (const Subnormal& kind : kinds) all.insert(all.end(), kind.dots.begin(), kind.dots.end());
    const auto results = session_.Run(all);
    if (!Going()) return;
    size_t next = 0;
    for (const Subnormal& kind : kinds) {
      DatasheetLine line{.key = kind.key,
                         .title = kind.title,
                         .state = State::kNotRead,
                         .text = "these dtypes do not reach there",
                         .probes = {"range"},
                         .dots = static_cast<int64_t>(kind.dots.size())};
      if (question_.k < 2 && kind.key == "subnormal_sums") line.text = "a sum of one term";
      for (size_t i = 0; i < kind.dots.size(); ++i, ++next)
        Insert(&line.words, results[next] == kind.exact[i] ? "kept"
                            : results[next] == 0           ? "flushed"
                                                           : "changed");
      if (!kind.dots.empty()) {
        line.state = State::kRead;
        line.text = line.words.size() > 1        ? "some kept, some not"
                    : line.words[0] == "kept"    ? "kept"
                    : line.words[0] == "flushed" ? "taken as zero"
                                                 : "changed";
      }
      subnormals_.push_back(std::move(line));
    }
  }

  /// x + y rounded to the store and then cancelled by an addend, or cancelled before it is rounded.
  void AskConsumer() {
    consumer_ = {.key = "rounding_before_consumer",
                 .title = "rounding before an addition",
                 .state = State::kNotRead,
                 .text = "",
                 .probes = {"fuse"},
                 .dots = 0};
    const FloatFormat& out = *FormatOf(question_.out);
    std::vector<ProbeDot> dots;
    for (const ProbeGroup& group : ProbeGroups("fuse", question_.dtype, question_.k))
      dots.push_back(group.members.front());
    if (dots.empty() || out.precision >= 24) {
      consumer_.text = dots.empty() ? "no such probe for these operands" : "the result is as wide as a sum";
      return;
    }
    const auto before = session_.failure();
    const auto results = session_.RunWithAddend(dots);
    if (session_.failure() && !before) {
      consumer_.text = "the backend refuses an addition after the product: " + session_.failure()->text;
      consumer_refused_ = true;
      return;
    }
    bool rounded = true, kept = true;
    for (size_t i = 0; i < dots.size(); ++i) {
      double sum = 0;
      for (const ProbeTerm& term : dots[i].terms) sum += term.a * term.b;
      rounded = rounded && results[i] == RoundTo(RoundTo(sum, out) + dots[i].addend, out);
      kept = kept && results[i] == RoundTo(sum + dots[i].addend, out);
    }
    consumer_.dots = static_cast<int64_t>(dots.size());
    dots_of_["fuse"] += consumer_.dots;
    if (rounded == kept) {
      consumer_.text = rounded ? "these values do not show it" : "neither rounded once nor twice";
      return;
    }
    consumer_.state = State::kRead;
    consumer_.words = {rounded ? std::string(Name(question_.out)) : "none"};
    consumer_.text = rounded ? "the product is rounded to " + consumer_.words[0] + " before it is added to"
                             : "the product goes unrounded into the addition";
  }

  Words Facet(const std::function<std::string(const DotModel&)>& word) const {
    Words words;
    for (size_t i = 0; i < alive_.size(); ++i) {
      if (alive_[i]) Insert(&words, word(bank_.models()[i]));
    }
    return words;
  }

  std::vector<AccSpec> Accumulators() const {
    std::vector<AccSpec> accs;
    for (size_t i = 0; i < alive_.size(); ++i) {
      const AccSpec& acc = bank_.models()[i].name.acc;
      if (alive_[i] && !Contains(accs, acc)) accs.push_back(acc);
    }
    return accs;
  }

  int64_t Dots(const Words& families) const {
    int64_t count = 0;
    for (const auto& family : families) {
      count += LookupOr(dots_of_, family, 0);
    }
    return count;
  }

  void Add(std::string key, std::string title, Words words, std::string text, Words probes) {
    const State state = words.empty() ? State::kNotRead : words.size() == 1 ? State::kRead : State::kPartly;
    sheet_.lines.push_back({.key = std::move(key),
                            .title = std::move(title),
                            .state = state,
                            .words = std::move(words),
                            .text = std::move(text),
                            .probes = probes,
                            .dots = Dots(probes)});
  }

  void AddNotRead(std::string key, std::string title, std::string why, Words probes) {
    Add(std::move(key), std::move(title), {}, std::move(why), std::move(probes));
  }

  static std::string AnyOf(const Words& words) {
    return words.size() == 1 ? words[0] : "one of " + Join(words, ", ");
  }

  void Conclude() {
    using enum Datasheet::Outcome;
    sheet_.dots = session_.dots();
    sheet_.launches = session_.launches();
    sheet_.program = session_.program();
    sheet_.versions = session_.versions();
    sheet_.knobs = session_.knobs();
    if (session_.failure() && !consumer_refused_) {
      const Outcome& failure = *session_.failure();
      const bool refused = failure.kind == OutcomeKind::kUnsupported || failure.kind == OutcomeKind::kRaised;
      sheet_.outcome = refused ? kRefused : kBroken;
      sheet_.reason =
          fmt::format("{}{}{}", Name(failure.kind), failure.text.empty() ? "" : ": ", failure.text);
      return;
    }
    if (session_.nondeterministic()) {
      sheet_.outcome = kNondeterministic;
      sheet_.reason = fmt::format(
          "the same launch gave other bits when it was repeated (up to {:.6g} ulp apart); what rests on "
          "single bits is not read",
          session_.spread());
      return;
    }
    for (size_t i = 0; i < alive_.size(); ++i) {
      if (alive_[i]) sheet_.models.push_back(bank_.models()[i].name.Name());
      if (!alive_[i] && witnesses_[i])
        sheet_.excluded[bank_.models()[i].name.Name()] = Told(*witnesses_[i], "it gives");
    }
    if (sheet_.models.empty()) {
      sheet_.outcome = kUnmodelled;
      sheet_.reason = "no precision model gives these outputs" + NearestModel();
    }
    DescribeRoundings();
    DescribeBlocks();
    for (DatasheetLine& line : subnormals_) sheet_.lines.push_back(std::move(line));
    DescribeOrder();
    DescribeSplits();
    DescribeStores();
    sheet_.lines.push_back(
        {.key = "determinism",
         .title = "repeated launches",
         .state = State::kRead,
         .words = {"same_bits"},
         .text = fmt::format("the same bits, each of {} launches run twice", sheet_.launches),
         .dots = sheet_.dots});
  }

  /// The model that the fewest probes disprove, with the first that does: where arithmetic is almost a known
  /// one, that is what a person looks at first. Asked of the models that the masks allow, of all where they
  /// allow none; plain ones (operands as they are, no rounding in between) before others that do as well.
  std::string NearestModel() const {
    std::vector<char> allowed(alive_.size(), 1);
    bank_.Exclude(decode_, question_.k, &allowed);
    if (!Contains(allowed, 1)) allowed.assign(alive_.size(), 1);
    const auto rounds = [&](size_t i) {
      const PrecisionModel& name = bank_.models()[i].name;
      return !name.in.empty() + !name.prod.none() + !name.mid.none();
    };
    std::optional<size_t> best;
    int64_t fewest = static_cast<int64_t>(outputs_.size()) + 1;
    std::optional<ProbeWitness> first;
    for (size_t i = 0; i < alive_.size(); ++i) {
      if (!allowed[i]) continue;
      int64_t fell = 0;
      std::optional<ProbeWitness> mine;
      for (size_t group = 0; group < outputs_.size() && fell <= fewest; ++group) {
        std::vector<char> alive(alive_.size(), 0);
        alive[i] = 1;
        std::vector<std::optional<ProbeWitness>> witnesses(alive_.size());
        bank_.Exclude({&outputs_[group], 1}, &alive, &witnesses);
        fell += alive[i] ? 0 : 1;
        if (!mine) mine = witnesses[i];
      }
      if (fell > fewest || (fell == fewest && rounds(i) >= rounds(*best))) continue;
      best = i;
      fewest = fell;
      first = mine;
    }
    if (!best) return "";
    const std::string name = bank_.models()[*best].name.Name();
    if (!first)
      return fmt::format("; {} gives all {} groups of probes, and fell to {}", name, outputs_.size(),
                         fell_to_random_ ? "random data" : "the masks");
    return fmt::format("; the nearest, {}, gives {} of {} groups of probes, not {}", name,
                       static_cast<int64_t>(outputs_.size()) - fewest, outputs_.size(),
                       Told(*first, "it gives"));
  }

  static std::string Told(const ProbeWitness& witness, std::string_view gives) {
    const auto list = [](const std::vector<double>& values) {
      std::string text;
      for (size_t v = 0; v < std::min<size_t>(values.size(), 6); ++v)
        text += fmt::format("{}{:a}", v == 0 ? "" : " ", values[v]);
      return text;
    };
    return fmt::format("{} ({}): observed {}, {} {}", witness.family, witness.group, list(witness.observed),
                       gives, list(witness.predicted));
  }

  /// What the models that are left say of a facet; that none is left, where they say nothing.
  void AddFacet(const char* key, const char* title, const Words& words, const std::string& text,
                const Words& probes) {
    if (words.empty()) return AddNotRead(key, title, "no model survives", probes);
    Add(key, title, words, text, probes);
  }

  void DescribeRoundings() {
    const Words single{"single", "range", "residual"};
    const Words in = Facet([](const DotModel& model) {
      return model.name.in.empty() ? std::string("as_is")
                                   : WithoutFlag(InWord(model.name.in.begin()->second));
    });
    AddFacet("input_rounding", "input rounding", in,
             in == Words{"as_is"} ? "none: every bit of an operand takes part" : AnyOf(in), single);
    const Words prod = Facet([](const DotModel& model) { return ProdWord(model.name.prod); });
    AddFacet("product", "product", prod, prod == Words{"exact"} ? "exact" : AnyOf(prod), single);
    const Words sums{"swamp", "mode", "wide", "pair", "mask", "random"};
    const Words acc = Facet([](const DotModel& model) { return AccWord(model.name.acc); });
    if (acc.empty() || question_.k < 2) {
      const std::string why = acc.empty() ? "no model survives" : "a sum of one term has none";
      AddNotRead("accumulator", "accumulator", why, sums);
      AddNotRead("accumulator_rounding", "accumulator rounding", why, {"mode", "swamp", "mask"});
      return;
    }
    const std::string joined = JoinAccumulators(Accumulators());
    Add("accumulator", "accumulator", acc, acc.size() == 1 ? acc[0] : joined + ": " + AnyOf(acc), sums);
    const Words rounding = Facet([](const DotModel& model) {
      return model.acc.exact() ? std::string("none") : std::string(Name(model.acc.rounding));
    });
    std::string phrase;
    for (const auto& word : rounding) phrase += (phrase.empty() ? "" : ", or ") + PhraseOf(word);
    Add("accumulator_rounding", "accumulator rounding", rounding, phrase, {"mode", "swamp", "mask"});
  }

  void DescribeBlocks() {
    using Kind = BlockDecode::Kind;
    const auto add = [&](const char* key, const char* title, std::string word, std::string text) {
      sheet_.lines.push_back({.key = key,
                              .title = title,
                              .state = word.empty() ? State::kNotRead : State::kRead,
                              .words = word.empty() ? Words{} : Words{std::move(word)},
                              .text = std::move(text),
                              .probes = {"mask"},
                              .dots = decode_.dots});
    };
    if (question_.k < 3 || decode_.kind == Kind::kUnclear) {
      const std::string why =
          question_.k < 3
              ? "needs sums of three terms or more"
              : "the masks do not show it: they overflow, nothing absorbs the units, or a cut moves them";
      // A tree that was read with wider masks tells as much.
      const int64_t widest = orders_.empty() ? 0 : orders_.front().tree.WidestNode();
      if (widest > 0 && question_.k >= 3)
        add("group_size", "products joined at once", std::to_string(widest == 2 ? 1 : widest),
            widest == 2 ? "one product at a time" : std::to_string(widest));
      else
        add("group_size", "products joined at once", "", why);
      add("alignment_bits", "extra alignment bits", "", why);
      return;
    }
    if (decode_.kind == Kind::kNotFused) {
      add("group_size", "products joined at once", "1", "one product at a time");
      add("alignment_bits", "extra alignment bits", "0", "none: every addition is rounded on its own");
      return;
    }
    add("group_size", "products joined at once", std::to_string(decode_.n),
        decode_.n_is_least ? "at least " + std::to_string(decode_.n) + ", all that a sum of this length has"
                           : std::to_string(decode_.n));
    if (decode_.fraction == 0)
      add("alignment_bits", "extra alignment bits", "", "narrower or wider than the probes look");
    else
      add("alignment_bits", "extra alignment bits", std::to_string(decode_.fraction - 23),
          fmt::format("{} (terms are cut at {} fraction bits)", decode_.fraction - 23, decode_.fraction));
  }

  void DescribeOrder() {
    DatasheetLine line{.key = "order",
                       .title = "order of summation",
                       .state = State::kNotRead,
                       .text = "",
                       .probes = {"mask"},
                       .dots = order_dots_};
    if (question_.k < 3) {
      line.text = "needs sums of three terms or more";
    } else if (orders_.empty()) {
      const Words rounding = Facet([](const DotModel& model) {
        return std::string(model.acc.exact() ? "none" : Name(model.acc.rounding));
      });
      line.text = rounding == Words{"rz"}     ? "a sum that is cut is moved by the masks"
                  : rounding == Words{"none"} ? "an exact sum has none"
                  : masks_counted_ ? "the masks show no tree: nothing absorbs the units, or launches differ"
                                   : "the masks overflow the accumulator";
    } else {
      line.state = State::kRead;
      sheet_.tree = orders_.front().tree.Text();
      const int64_t all = session_.coordinates();
      int64_t read = 0;
      for (const Order& order : orders_) {
        const std::string name = order.tree.Name();
        Insert(&line.words, name.empty() ? "other" : name);
        line.text += line.text.empty() ? "" : "; ";
        line.text += name.empty() ? "none of the known ones, " + Shortened(order.tree.Text()) : name;
        if (orders_.size() > 1 || order.coordinates < all)
          line.text += fmt::format(" at {} of {} coordinates", order.coordinates, all);
        read += order.coordinates;
      }
      if (read < all)
        line.text += fmt::format("; {} coordinates sum otherwise", all - read);
      else if (orders_.size() == 1)
        line.text += fmt::format(", at all {} coordinates", all);
      if (question_.k > kMaskWindow)
        line.text += fmt::format(" (the first {} of {} terms)", kMaskWindow, question_.k);
    }
    sheet_.lines.push_back(std::move(line));
  }

  static std::string Shortened(const std::string& tree) {
    return tree.size() <= 100 ? tree : tree.substr(0, 97) + "...";
  }

  void DescribeSplits() {
    const Words probes{"swamp", "residual"};
    Words words;
    bool none = false;
    for (const auto& acc : Facet([](const DotModel& model) { return AccWord(model.name.acc); })) {
      if (acc.starts_with("split_k"))
        Insert(&words, acc);
      else
        none = true;
    }
    if (none) words.insert(words.begin(), "none");
    if (question_.k < 4 || words.empty())
      return AddNotRead("split_k", "partial sums",
                        words.empty() ? "no model survives" : "needs sums of four terms or more", probes);
    Add("split_k", "partial sums", words,
        words == Words{"none"} ? "none is stored in a narrower format" : AnyOf(words), probes);
  }

  void DescribeStores() {
    const Words probes{"single", "double_round", "pair", "wide"};
    const Words mid = Facet([](const DotModel& model) { return MidWord(model.name.mid); });
    AddFacet("intermediate_rounding", "rounding before the store", mid,
             mid == Words{"none"} ? "none" : AnyOf(mid), probes);
    const Words out = Facet([](const DotModel& model) { return OutWord(model.name.out); });
    AddFacet("final_rounding", "final rounding", out, AnyOf(out), probes);
    sheet_.lines.push_back(consumer_);
  }

  const ProbeQuestion& question_;
  ProbeSession& session_;
  const DotBank& bank_;
  std::vector<char> alive_;
  std::vector<std::optional<ProbeWitness>> witnesses_;
  std::vector<ProbeGroup> groups_;
  std::vector<GroupOutputs> outputs_;  ///< of every group
  bool fell_to_random_ = false;        ///< the last model did
  std::map<std::string, int64_t> dots_of_;
  BlockDecode decode_;
  std::vector<Order> orders_;
  int64_t order_dots_ = 0;
  bool masks_counted_ = false, consumer_refused_ = false;
  std::vector<DatasheetLine> subnormals_;
  DatasheetLine consumer_;
  Datasheet sheet_;
};

}  // namespace

Datasheet ReadDatasheet(const ProbeQuestion& question, ProbeSession* session) {
  return Reader(question, session).Read();
}

}  // namespace ulpscope
