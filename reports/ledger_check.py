"""Books the ledgers of a run folder again from the stored tensors, and compares report.json with the result. Used by
`accounts`; shares nothing with the judge.

A ledger balances if its two walks begin at one tensor (the carrier's own stored result, if the carrier is a backend
of the run) and end at the two stored results, and each step between them at which a difference changes is an entry
with the share that these tensors give. Differences are exact (fractions), shares are compared to a part in 10^9.
"""
import fractions
import math
import struct

NAMES = {"F64": "<d", "F32": "<f", "F16": "<e"}
INTEGERS = {"I64": "<q", "I32": "<i", "I16": "<h", "I8": "<b", "U8": "<B", "BOOL": "<?"}
SMALL = {"F8_E5M2": (5, 2, 15, True), "F8_E4M3": (4, 3, 7, False)}


def small(byte, exponent_bits, fraction_bits, bias, has_inf):
    sign = -1.0 if byte & 0x80 else 1.0
    exponent, fraction = byte >> fraction_bits & (1 << exponent_bits) - 1, byte & (1 << fraction_bits) - 1
    if exponent == (1 << exponent_bits) - 1 and (has_inf or fraction == (1 << fraction_bits) - 1):
        return sign * math.inf if has_inf and fraction == 0 else math.nan
    if exponent == 0:
        return sign * math.ldexp(fraction, 1 - bias - fraction_bits)
    return sign * math.ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits)


def numbers(tensor):
    """The elements of (dtype, shape, bytes), each exactly as a Python number."""
    dtype, _, raw = tensor
    if dtype == "BF16":
        return [value for (value,) in struct.iter_unpack("<f", b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2)))]
    if dtype in SMALL:
        return [small(byte, *SMALL[dtype]) for byte in raw]
    return [value for (value,) in struct.iter_unpack({**NAMES, **INTEGERS}[dtype], raw)]


class Walk:
    """How one value of one backend comes to be: from the carrier's result, by the hybrids, to the backend's own."""

    def __init__(self, tensors, observations, value, end):
        of = {int(key.split("/", 1)[0]): tensor for key, tensor in tensors.items()
              if key.split("/", 1)[0].isdigit() and key.split("/", 1)[1] == value}
        self.start = of.pop(0, None)
        self.hybrids = {observations[f"step/{number}"]: tensor for number, tensor in sorted(of.items())}
        self.end = end


def same(a, b):
    return a == b or (a != a and b != b)


class Booked:
    """step -> (share, elements that change), and whether elements are counted in the place of sums."""

    def __init__(self, walks, order):
        places = [(*(walk.start for walk in walks), None)]
        for step in order:
            here = [walk.hybrids.get(step, place) for walk, place in zip(walks, places[-1])]
            if any(step in walk.hybrids for walk in walks):
                places.append((*here, step))
        places.append((*(walk.end for walk in walks), ""))
        decoded = {}
        at = [[decoded.setdefault(tensor, numbers(tensor)) for tensor in place[:2]] + [place[2]] for place in places]
        floating = walks[0].end[0] not in INTEGERS
        self.counted = not floating or any(not abs(x) < 2.0 ** 1000 for a, b, _ in at for x in a + b)
        whole = at[-1]
        if self.counted:
            total = sum(not same(a, b) for a, b in zip(whole[0], whole[1]))
        else:
            whole = [fractions.Fraction(b) - fractions.Fraction(a) for a, b in zip(whole[0], whole[1])]
            total = sum(x * x for x in whole)
        self.entries = {}
        for before, after in zip(at, at[1:]):
            moved, product = 0, fractions.Fraction(0)
            for i, (a, b, c, d) in enumerate(zip(before[0], before[1], after[0], after[1])):
                if self.counted:
                    moved += not (same(a, b) and same(c, d)) and not (same(a, c) and same(b, d))
                    product += (not same(c, d)) - (not same(a, b))
                elif (a, b) != (c, d):
                    change = (fractions.Fraction(d) - fractions.Fraction(c)) - (fractions.Fraction(b) - fractions.Fraction(a))
                    moved += change != 0
                    product += change * whole[i]
            if moved:
                self.entries[after[2]] = (float(product / total) if total else 0.0, moved)


def merged(one, other):
    """Two lists of steps, each in program order, as one."""
    one, other, both = list(one), list(other), []
    while one or other:
        first = one if one and (one[0] not in other or not other or one[0] == other[0]) else other
        both.append(first[0])
        for steps in (one, other):
            if steps and steps[0] == both[-1]:
                del steps[0]
    return both


def faults(folder, report, stored, tensors_of):
    """(entries of ledgers booked again, what is wrong with them). `stored`: folder -> (case, backend) -> record; `tensors_of`: path ->
    value -> (dtype, shape, bytes)."""
    own, hybrids = stored(folder), stored(folder / "ledger") if (folder / "ledger").is_dir() else {}
    booked, wrong = 0, []
    for ledger in report.get("ledgers", []):
        name = f"{ledger['case']} {ledger['value']}: {' against '.join(group[0] for group in ledger['backends'])}"
        if ledger["entries"] and abs(sum(entry["share"] for entry in ledger["entries"]) - 1) > 1e-9:
            wrong.append(f"{name}: the shares add up to {sum(entry['share'] for entry in ledger['entries'])}")
        if not ledger["carrier"]:
            booked += len(ledger["entries"])
            continue
        walks, order, starts = [], [], []
        for group in ledger["backends"]:
            record, result = hybrids[ledger["case"], group[0]], own[ledger["case"], group[0]]
            end = tensors_of(folder / result["tensors"]["file"])[ledger["value"]]
            observations = record["observation"]["observations"]
            walks.append(Walk(tensors_of(folder / "ledger" / record["tensors"]["file"]), observations, ledger["value"], end))
            starts.append(walks[-1].start)
            steps = [observations[f"step/{number}"] for number in range(1, sum(key.startswith("step/") for key in observations) + 1)]
            order.append(steps)
        if (ledger["case"], ledger["carrier"]) in own:
            starts.append(tensors_of(folder / own[ledger["case"], ledger["carrier"]]["tensors"]["file"])[ledger["value"]])
        if any(start != starts[0] for start in starts):
            wrong.append(f"{name}: the walks do not begin at one result of {ledger['carrier']}")
            continue
        again = Booked(walks, merged(*order))
        if again.counted != (ledger["measure"] == "elements"):
            wrong.append(f"{name}: measured in {ledger['measure']}")
        for entry in ledger["entries"]:
            booked += 1
            share, moved = again.entries.pop(entry["step"], (0.0, 0))
            if moved != entry["elements"] or abs(share - entry["share"]) > 1e-9 * max(1, abs(share)):
                wrong.append(f"{name}, step {entry['step'] or '(none)'}: the report has a share of {entry['share']} and {entry['elements']} "
                             f"elements, the stored tensors give {share} and {moved}")
        for step, (share, moved) in again.entries.items():
            wrong.append(f"{name}: no entry for step {step or '(none)'}, which moves {moved} elements (share {share})")
    return booked, wrong
