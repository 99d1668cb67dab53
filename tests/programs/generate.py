"""Random programs of 2 to 12 steps as a file of cases, from a seed; each observes its last one or two values.

usage: generate.py [--seed S] [--count N] [--first I] [-o FILE] [--truth FILE --backends NAME,... --inputs FOLDER]

With --truth: what each backend of the emulator does in each program, as JSON, from the inputs that the adapter kept (its knob `keep`).
"""

import argparse
import json
import pathlib
import sys
from dataclasses import dataclass

import numpy as np
import tools  # noqa: F401  (the path of the SDK)
from arithmetic import VIEWS
from emulator import Plan, apply, given, result_dtype, truth
from plans import BACKENDS, generator, plan
from tools import store
from ulpscope_adapter.request import Step
from ulpscope_adapter.tensor import read_safetensors

LOWS, WIDE = ("bfloat16", "float16"), "float32"
FEWEST, MOST = 2, 12
# Sizes stay between these: nothing overflows float16, and most of what is computed is no subnormal.
SMALL, LARGE = 2.0**-9, 2.0**9
SCALARS = (0.1, 0.3, 0.7, 0.9, 1.1, 1.702, 0.044715, 0.5, 2.0, -1.3)
TINY = (7.1e-38, 3.3e-38, -2.9e-38)


@dataclass(frozen=True)
class Program:
    name: str
    tensors: dict  # name -> (dtype, shape)
    steps: tuple
    observe: tuple

    def dtypes(self):
        return {name: dtype for name, (dtype, _) in self.tensors.items()}


class _Writer:
    """One program under construction, simulated on data of the same kind so that its numbers stay ordinary."""

    def __init__(self, name, rng, tiny):
        self.name, self.rng = name, rng
        self.tensors, self.steps, self.values, self.used = {}, [], {}, set()
        self.rows, self.columns = int(rng.choice([4, 8, 12])), int(rng.choice([16, 24, 32, 48]))
        self.tiny = tiny
        self.dtype = WIDE if self.tiny and rng.random() < 0.7 else str(rng.choice(["bfloat16", "float16", "float32"], p=[0.5, 0.2, 0.3]))
        if self.tiny and self.dtype == "float16":
            self.dtype = "bfloat16"

    def tensor(self, shape, dtype=None):
        name = f"x{len(self.tensors)}"
        dtype = dtype or self.dtype
        self.tensors[name] = (dtype, tuple(shape))
        self.values[name] = given(store(self.rng.standard_normal(shape), dtype))
        return name

    def shape(self, name):
        return self.values[name].stored.shape

    def pick(self, wanted=lambda name: True):
        """A value of the program: the latest one most of the time, now and then one that is used already."""
        names = [step.name for step in self.steps if wanted(step.name)]
        if not names:
            names = [name for name in self.tensors if wanted(name)]
        if not names:
            return None
        unused = [name for name in names if name not in self.used]
        draw = self.rng.random()
        if unused and draw < 0.75:
            return unused[-1]
        return names[-1] if draw < 0.85 else names[int(self.rng.integers(len(names)))]

    def matrix(self):
        return self.pick(lambda name: len(self.shape(name)) == 2)

    def other(self, name, same_type=False):
        """A second operand for a pointwise step with `name`: a value that broadcasts to its shape, else a new tensor."""
        shape, kind = self.shape(name), self.values[name].dtype
        fits = [x for x in self.values if x != name and _broadcasts(self.shape(x), shape)
                and (not same_type or self.values[x].dtype == kind) and (x in self.tensors or self.rng.random() < 0.8)]
        steps = [x for x in fits if x not in self.tensors]
        if steps and self.rng.random() < 0.6:
            return steps[int(self.rng.integers(len(steps)))]
        if fits and self.rng.random() < 0.3:
            return fits[int(self.rng.integers(len(fits)))]
        if self.rng.random() < 0.15:
            return name
        return self.tensor(shape if self.rng.random() < 0.7 or len(shape) < 2 else shape[-1:], kind)

    def propose(self):
        """(op, of, attrs) of a step that is well typed, or None."""
        ops = {"mul": 2, "add": 2, "sub": 1, "relu": 1} if self.tiny else {
            "linear": 3, "matmul": 2, "mul": 4, "add": 4, "sub": 1.5, "silu": 1.5, "gelu": 1.5, "relu": 0.7, "sigmoid": 1, "tanh": 1,
            "exp": 1, "softmax": 1.2, "layer_norm": 1.2, "sum": 1, "mean": 1, "cast": 2, "transpose": 0.8, "reshape": 0.5
        }
        weights = np.array(list(ops.values()))
        op = str(self.rng.choice(list(ops), p=weights / weights.sum()))
        return getattr(self, f"_{op}", self._unary)(op)

    def _unary(self, op):
        name = self.pick()
        attrs = {"approximate": "tanh"} if op == "gelu" and self.rng.random() < 0.4 else {}
        return (op, (name, ), attrs) if name else None

    def _binary(self, op):
        name = self.pick()
        if not name:
            return None
        if self.tiny and not self.steps:
            return "mul", (name, float(self.rng.choice(TINY))), {}
        if self.rng.random() < (0.7 if self.tiny else 0.3):
            if self.tiny and op != "mul":
                return None
            return op, (name, float(self.rng.choice(SCALARS))), {}
        if self.tiny:  # sums of a tiny value and another one of its kind
            steps = [x for x in self.values if x not in self.tensors and self.shape(x) == self.shape(name)]
            return (op, (name, steps[int(self.rng.integers(len(steps)))]), {}) if steps and op != "mul" else None
        pair = [name, self.other(name)]
        if self.rng.random() < 0.5:
            pair.reverse()
        return op, tuple(pair), {}

    _mul = _add = _sub = _binary

    def _linear(self, op):
        name = self.matrix()
        if not name:
            return None
        kind, (_, k), n = self.values[name].dtype, self.shape(name), int(self.rng.choice([8, 16, 24]))
        bias = (self.tensor((n, ), kind), ) if self.rng.random() < 0.4 else ()
        return op, (name, self.tensor((n, k), kind), *bias), {}

    def _matmul(self, op):
        name = self.matrix()
        if not name:
            return None
        kind, (m, k) = self.values[name].dtype, self.shape(name)
        steps = [x for x in self.values if x != name and x not in self.tensors and self.values[x].dtype == kind and len(self.shape(x)) == 2]
        right, left = [x for x in steps if self.shape(x)[0] == k], [x for x in steps if self.shape(x)[1] == m]
        if right and self.rng.random() < 0.7:
            return op, (name, right[-1]), {}
        if left and self.rng.random() < 0.7:
            return op, (left[-1], name), {}
        if self.rng.random() < 0.5:
            return op, (name, self.tensor((k, int(self.rng.choice([8, 16])))  , kind)), {}
        return op, (self.tensor((int(self.rng.choice([4, 8])), m), kind), name), {}

    def _softmax(self, op):
        name = self.pick(lambda name: len(self.shape(name)) >= 1 and self.shape(name)[-1] >= 4)
        if not name:
            return None
        widen = self.values[name].dtype in LOWS and self.rng.random() < 0.3
        return op, (name, ), {"dim": len(self.shape(name)) - 1, **({"dtype": WIDE} if widen else {})}

    def _layer_norm(self, op):
        name = self.matrix()
        if not name or self.shape(name)[-1] < 8:
            return None
        k, kind, draw = self.shape(name)[-1], self.values[name].dtype, self.rng.random()
        more = [self.tensor((k, ), kind) for _ in range(0 if draw < 0.3 else 1 if draw < 0.5 else 2)]
        return op, (name, *more), {"normalized_shape": [k], "eps": 1e-5}

    def _sum(self, op):
        name = self.matrix()
        if not name:
            return None
        widen = self.values[name].dtype in LOWS and self.rng.random() < 0.25
        keep = self.rng.random() < 0.6
        return op, (name, ), {"dim": int(self.rng.integers(2)), "keepdim": bool(keep), **({"dtype": WIDE} if widen else {})}

    _mean = _sum

    def _cast(self, op):
        name = self.pick()
        if not name:
            return None
        kind = self.values[name].dtype
        return op, (name, ), {"dtype": WIDE if kind != WIDE else str(self.rng.choice(LOWS, p=[0.75, 0.25]))}

    def _transpose(self, op):
        name = self.matrix()
        return (op, (name, ), {"dim0": 0, "dim1": 1}) if name else None

    def _reshape(self, op):
        name = self.matrix()
        if not name:
            return None
        m, n = self.shape(name)
        return (op, (name, ), {"shape": [m * 2, n // 2] if n % 2 == 0 and self.rng.random() < 0.7 else [n, m]})

    def take(self, op, of, attrs):
        """Adds the step unless its numbers are no ordinary ones."""
        step = Step(op=op, of=of, name=f"v{len(self.steps)}", attrs=attrs)
        try:
            value = apply(step, self.values, Plan(order="pairwise"))
        except ValueError:  # shapes that do not broadcast
            return False
        size = np.abs(value.stored)
        shrunk = size.size and np.median(size) or 0.0
        low, high = (2.0**-140, LARGE) if self.tiny else (SMALL, LARGE)
        flat = value.stored.size > 1 and len(np.unique(value.stored)) < min(8, value.stored.size)
        if not np.isfinite(value.stored).all() or size.max(initial=0.0) > high or not (low < shrunk or op == "relu") or flat:
            return False
        self.steps.append(step)
        self.values[step.name] = value
        self.used |= {x for x in of if isinstance(x, str)}
        return True

    def write(self, length):
        if not self.tensors:
            self.tensor((self.rows, self.columns))
        for _ in range(40 * length):
            if len(self.steps) == length:
                break
            before = dict(self.tensors), set(self.values)
            proposed = self.propose()
            if not proposed or not self.take(*proposed):
                self.tensors = before[0]
                self.values = {name: self.values[name] for name in self.values if name in before[1]}
        return self.finished()

    def finished(self):
        """The steps and tensors that the observed values rest on; None if that is too little."""
        computing = [step for step in self.steps if step.op not in VIEWS]
        if not computing:
            return None
        last = self.steps[-1].name
        observe = [last]
        if len(self.steps) > 2 and self.rng.random() < 0.35:
            loose = [step.name for step in self.steps[:-1] if step.name not in self.used] or [self.steps[-2].name]
            observe.insert(0, loose[-1])
        needed = set(observe)
        for step in reversed(self.steps):
            if step.name in needed:
                needed |= {x for x in step.of if isinstance(x, str)}
        steps = tuple(step for step in self.steps if step.name in needed)
        tensors = {name: row for name, row in self.tensors.items() if name in needed}
        if not FEWEST <= len(steps) <= MOST or not tensors:
            return None
        return Program(self.name, tensors, steps, tuple(observe))


def _broadcasts(small, large):
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(small[::-1], large[::-1]))


def program(seed, index):
    """The program number `index` of a seed."""
    tiny = generator("tiny", seed, index).random() < 0.1
    for attempt in range(200):
        rng = generator("program", seed, index, attempt)
        made = _Writer(f"p{seed}_{index}", rng, tiny).write(int(rng.integers(FEWEST, MOST + 1)))
        if made:
            return made
    raise RuntimeError(f"no program {seed}_{index}")


def yaml(programs):
    """A file of cases; flow style is JSON, which YAML reads."""
    lines = ["# Random programs for an emulator whose arithmetic is known (tests/programs/generate.py).",
             "about: What does each step of a random program read and round?",
             "contract: {status: unspecified, accept: any}", "cases:"]
    for each in programs:
        lines += [f"  - name: {each.name}", "    tags: [ci]", "    tensors:"]
        lines += [f"      {name}: {{dtype: {dtype}, shape: {list(shape)}, fill: normal}}" for name, (dtype, shape) in each.tensors.items()]
        lines.append("    program:")
        lines += [f"      - {_step(step)}" for step in each.steps]
        lines.append(f"    observe: [{', '.join(each.observe)}]")
    return "\n".join(lines) + "\n"


def _step(step):
    attrs = "".join(f"{name}: {json.dumps(value)}, " for name, value in step.attrs.items())
    return f"{{op: {step.op}, of: [{', '.join(x if isinstance(x, str) else repr(x) for x in step.of)}], {attrs}as: {step.name}}}"


def truth_rows(each, backend, inputs):
    """The truth about one program on one backend. inputs: name -> array."""
    chosen = plan(backend, each.name, each.steps, each.dtypes())
    rows = truth(each.steps, inputs, chosen.opened())
    return {"program": each.name, "backend": backend, "opened_differs": chosen.opened_differs, "observe": list(each.observe), "steps": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("-o", "--out", help="the file of cases; without it they are printed")
    parser.add_argument("--truth", help="write the truth there, as JSON")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--inputs", help="folder in which the adapter kept NAME.safetensors")
    options = parser.parse_args()
    made = [program(options.seed, index) for index in range(options.first, options.first + options.count)]
    if options.out:
        pathlib.Path(options.out).write_text(yaml(made))
    else:
        sys.stdout.write(yaml(made))
    if options.truth:
        rows = []
        for each in made:
            tensors = read_safetensors(pathlib.Path(options.inputs) / f"{each.name}.safetensors")
            inputs = {name: tensor.numpy() for name, tensor in tensors.items()}
            rows += [truth_rows(each, backend, inputs) for backend in options.backends.split(",")]
        pathlib.Path(options.truth).write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
