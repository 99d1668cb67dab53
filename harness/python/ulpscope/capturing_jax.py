"""capture_jax(): a function on jax arrays as a case that computes the same.

jax.make_jaxpr gives the program in primitives; primitives_jax.py translates each into the case language. A call of a
function that JAX compiles by itself (jax.nn.silu) becomes the word with the same jaxpr if the language has one; else
it is entered. The case is run op by op and compiled, and compared in bits with the function (called directly, and
under jax.jit).
"""

from ulpscope import case as cases
from ulpscope import names, places, vocabulary
from ulpscope.capturing import name_of, _source_of, argument_names, word
from ulpscope.refusals import CaptureError, Reason

BACKENDS = ("jax-eager", "jax")


def capture_jax(f, args=(), kwargs=None, *, name=None, data="auto", verify=BACKENDS):
    """The Case of `f(*args, **kwargs)`, for a function of jax (or NumPy) arrays.

    Arrays among the arguments, wherever they are nested, and those that `f` closes over become tensors of the case;
    everything that `f` computes from constants alone is a constant. `data` as for capture().

    verify    "jax-eager", "jax" or both: the backends on which the case is run and compared in bits with `f`, called
              directly and under jax.jit. If `f` calls functions that JAX compiles by themselves, and that round differently
              as a whole than step by step, the case is compared with `f` under jax.disable_jit(), and its notes say so.

    Raises CaptureError for a program that a case cannot express, with the primitive and the line; Unfaithful, which
    is one.
    """
    import jax

    from ulpscope import primitives_jax
    places.find_sdk()
    args, kwargs = tuple(args), dict(kwargs or {})
    try:
        closed = jax.make_jaxpr(f)(*args, **kwargs)
    except jax.errors.ConcretizationTypeError as error:
        raise CaptureError("what the function does next depends on the values of an array, and a case is a straight line"
                           f"{primitives_jax.line_of(error, __file__)}: {str(error).splitlines()[0]}", Reason.DATA_DEPENDENT) from error
    inputs, known, taken = _inputs(f, args, kwargs, closed)
    walk = primitives_jax.Walk(__file__, taken)
    with jax.ensure_compile_time_eval():
        results = walk.results(closed, known)
    steps = vocabulary.needed(walk.steps, [each for each in results if isinstance(each, str)])
    inputs += walk.inputs
    renamed = names.rename(steps, [each.name for each in inputs], results)
    results = [renamed.get(each, each) if isinstance(each, str) else None for each in results]
    made = {step.name for step in cases.every(steps)}
    observe = list(dict.fromkeys(each for each in results if each in made))
    if not observe:
        raise CaptureError(f"{name_of(f)} gives no array that it computes", Reason.NOTHING_COMPUTED)
    used = {operand for step in cases.every(steps) for operand in step.of}
    case = cases.Case(name=word(name or name_of(f)), about=f"What does {name_of(f)} compute, and in which precision?",
                      inputs=[each for each in inputs if each.name in used], steps=steps, observe=observe, source=_source_of(f))
    case.results = results
    case.fit(data)
    for backend in [verify] if isinstance(verify, str) else verify:
        compare(case, f, args, kwargs, backend)
    return case


def is_jax(args, kwargs=None):
    """Whether an array among these arguments is JAX's."""
    import sys
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(each, jax.Array) for each in jax.tree_util.tree_leaves((tuple(args), kwargs or {})))


def _inputs(f, args, kwargs, closed):
    """(Inputs, the values of the jaxpr's variables, names that are taken)."""
    import jax
    import numpy

    from ulpscope import kernels
    leaves = jax.tree_util.tree_leaves((args, kwargs))
    labels = [label for label, value in argument_names(f, args, kwargs) if value is not None]
    if len(labels) != len(leaves):
        labels = [f"arg_{i}" for i in range(len(leaves))]
    inputs, known, taken = [], {}, set()
    for label, var, value in zip(labels, closed.jaxpr.invars, leaves):
        value = numpy.asarray(value).astype(var.aval.dtype)
        if value.size == 0:
            raise CaptureError(f"{label} has no element ({list(value.shape)}), and a tensor of a case has", Reason.EMPTY)
        known[var] = names.unique(word(label), taken)
        inputs.append(cases.Input(known[var], kernels.as_torch(value)))
    return inputs, known, taken


def results(f, args, kwargs, case, backend, apart=False):
    """name -> what the function itself gives for each value that the case observes; `apart`: what it jits taken apart."""
    import contextlib

    import jax

    from ulpscope import kernels
    with jax.disable_jit() if apart else contextlib.nullcontext():
        outputs = jax.tree_util.tree_leaves((jax.jit(f) if backend == "jax" else f)(*args, **(kwargs or {})))
    return {name: kernels.as_torch(value) for name, value in zip(case.results, outputs) if name in case.observe}


def differences(case, f, args, kwargs, backend, found):
    """value -> '' or how `found` differs from what the function gives; a note where it had to be taken apart for that."""
    from ulpscope.faithful import difference
    own = results(f, args, kwargs, case, backend)
    said = {name: difference(own[name], found[name], "by the function", "by the case") for name in case.observe}
    if any(said.values()) and backend == "jax-eager":
        apart = results(f, args, kwargs, case, backend, apart=True)
        if not any(difference(apart[name], found[name]) for name in case.observe):
            parted = "; ".join(f"{name}: {text}" for name, text in said.items() if text)
            note = f"functions that JAX compiles by themselves are run step by step here; called as they stand they round otherwise ({parted})."
            if note not in case.notes:
                case.notes.append(note)
            return dict.fromkeys(case.observe, "")
    return said


def _beside(case, f, args, kwargs, backend):
    """differences() of the case, run with as many threads as this process has: XLA's sums depend on their number."""
    from ulpscope import adapters
    own = results(f, args, kwargs, case, backend)  # starts XLA's threads, which can be counted then
    del own
    with adapters.Link(f"{backend}:threads={threads()}") as link:
        return differences(case, f, args, kwargs, backend, link.run(case))


def differences_in_run(case, f, args, kwargs, backend, found):
    """differences() of a run's results, which used one thread; differences caused by the number of threads are labelled
    as such."""
    said = differences(case, f, args, kwargs, backend, found)
    if any(said.values()) and threads() > 1:
        same = {name for name, text in _beside(case, f, args, kwargs, backend).items() if not text}
        return {name: text + f"; with {threads()} threads, as here, the case has the function's bits" if text and name in same else text
                for name, text in said.items()}
    return said


def threads():
    """The threads of XLA's pool in this process, counted by their names; 1 where they cannot be."""
    import pathlib

    def name(task):
        try:
            return (task / "comm").read_text(encoding="utf-8").strip()
        except OSError:  # a thread that has just ended
            return ""

    tasks = pathlib.Path("/proc/self/task")
    return max(1, sum(name(task) == "tf_XLAEigen" for task in tasks.iterdir()) if tasks.is_dir() else 1)


def compare(case, f, args, kwargs, backend):
    """Raises Unfaithful where the case, on `backend`, has other bits than the function."""
    from ulpscope import adapters
    from ulpscope.faithful import Unfaithful
    if backend not in BACKENDS:
        raise CaptureError(f"verify: {backend} runs no function of JAX; one of {', '.join(BACKENDS)}", Reason.VERIFY)
    try:
        said = _beside(case, f, args, kwargs, backend)
    except adapters.AdapterFailed as error:
        raise Unfaithful(f"the function runs and the case does not: {error}", backend, "", None) from error
    for name, text in said.items():
        if text:
            step = next(step for step in case.all_steps() if step.name == name)
            raise Unfaithful(f"{backend}: the case does not compute {name} as {case.name} does: {text} ({step.place()})", backend, name, step)
