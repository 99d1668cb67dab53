"""A decoder block in bfloat16 as models write it: norms in float32, attention by hand, a gated MLP; and the same in float64."""
import torch

TOKENS, WIDTH, HEADS, HIDDEN = 16, 64, 4, 128


def norm(x, weight, narrow):
    wide = x.float() if narrow else x
    variance = wide.pow(2).mean(-1, keepdim=True)
    return weight * (wide * torch.rsqrt(variance + 1e-6)).to(x.dtype)


def layer(x, wq, wk, wv, wo, w1, w2, w3, n1, n2, narrow):
    h = norm(x, n1, narrow)
    q = (h @ wq).view(TOKENS, HEADS, -1).transpose(0, 1)
    k = (h @ wk).view(TOKENS, HEADS, -1).transpose(0, 1)
    v = (h @ wv).view(TOKENS, HEADS, -1).transpose(0, 1)
    scores = (q @ k.transpose(1, 2)) * 0.25
    p = torch.softmax(scores.float() if narrow else scores, -1).to(x.dtype)
    o = (p @ v).transpose(0, 1).reshape(TOKENS, WIDTH)
    x = x + o @ wo
    h = norm(x, n2, narrow)
    return x + (torch.nn.functional.silu(h @ w1) * (h @ w2)) @ w3


def block(x, wq, wk, wv, wo, w1, w2, w3, n1, n2):
    return layer(x, wq, wk, wv, wo, w1, w2, w3, n1, n2, True)


def exact(*arguments):
    """The same mathematics in float64, with no intermediate rounded."""
    return layer(*(each.double() for each in arguments), False)


def arguments():
    torch.manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.bfloat16)

    return (normal(TOKENS, WIDTH), *(normal(WIDTH, WIDTH) / 8 for _ in range(4)), normal(WIDTH, HIDDEN) / 8, normal(WIDTH, HIDDEN) / 8,
            normal(HIDDEN, WIDTH) / 11, 1 + normal(WIDTH) / 10, 1 + normal(WIDTH) / 10)
