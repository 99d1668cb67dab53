"""JAX functions as people write them, which the tests capture. test_capture_jax.py looks at line breaks and names."""
import jax
import jax.numpy as jnp


def mlp(x, gate, up, down):
    """SwiGLU: its silu is a function that jax compiles by itself."""
    g = jax.nn.silu(x @ gate)
    h = g * (x @ up)
    return h @ down


def softmax(x):
    return jax.nn.softmax(x, axis=-1)


def rms_norm(x, weight):
    wide = x.astype(jnp.float32)
    variance = jnp.mean(jnp.square(wide), axis=-1, keepdims=True)
    normed = wide * jax.lax.rsqrt(variance + 1e-6)
    return normed.astype(x.dtype) * weight


def attention(q, k, v):
    """[batch, length, heads, width], as JAX has it; a causal mask, softmax in float32."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1]).astype(q.dtype)
    seen = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), dtype=bool))
    scores = jnp.where(seen, scores, -jnp.inf)
    weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(q.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def adam(weight, gradient, mean, square):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    step = (mean / (1 - 0.9**3)) / (jnp.sqrt(square / (1 - 0.999**3)) + 1e-8)
    return weight - 1e-3 * step, mean, square


def cross_entropy(logits, labels):
    logs = jax.nn.log_softmax(logits.astype(jnp.float32))
    picked = jnp.take_along_axis(logs, labels[:, None], axis=-1)
    return -jnp.mean(picked)


def one_hot_loss(logits, labels):
    logs = jax.nn.log_softmax(logits)
    return -jnp.sum(jax.nn.one_hot(labels, logits.shape[-1], dtype=logs.dtype) * logs, axis=-1)


def embedded(tokens, table, weight):
    hidden = table[tokens]
    return jax.nn.logsumexp(hidden @ weight, axis=-1)


def layer_norm(x, weight, bias):
    mean = x.mean(-1, keepdims=True)
    spread = jnp.var(x, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(spread + 1e-5) * weight + bias


def activations(x):
    return jax.nn.gelu(x), jax.nn.relu(x), jax.nn.softplus(x), jnp.clip(x, -1, 1), x[1:, ::2], jnp.concatenate([x, -x]), jnp.cumsum(x, 0)


def wanted(a, b):
    return jax.lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)


def halves(x):
    def halve(x):
        return x / 2

    return jax.lax.while_loop(lambda x: jnp.max(x) > 1, halve, x)


def scanned(x):
    return jax.lax.scan(lambda carry, row: (carry + row, carry), jnp.zeros_like(x[0]), x)[0]


def branches(x):
    return jax.lax.cond(x[0, 0] > 0, lambda x: x * 2, lambda x: x, x)


def dropped(x):
    keep = jax.random.bernoulli(jax.random.key(0), 0.5, x.shape)
    return jnp.where(keep, x, 0)


def inverse(x):
    return jax.lax.erf_inv(x)


def depends(x):
    if x.sum() > 0:
        return x * 2
    return x


def tiled(x):
    from jax.experimental import pallas

    def kernel(block, out):
        out[...] = block[...] * (pallas.program_id(0) + 1)

    return pallas.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(1, ), interpret=True)(x)


def folded(x):
    return jax.lax.reduce(x, x.dtype.type(0), lambda a, b: a + b * 2, (0, ))


def doubled(x):
    return x * 2
