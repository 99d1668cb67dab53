"""Blocks of width 64 as people write them, for tests/python/capture_table.py: name -> (function or module, arguments, options of capture)."""
import math

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, KEPT, LENGTH = 64, 4, 2, 16


class RmsNorm(nn.Module):
    def __init__(self, width, dtype):
        super().__init__()
        self.weight = nn.Parameter(1 + torch.randn(width, dtype=dtype) / 8)

    def forward(self, x):
        wide = x.to(torch.float32)
        variance = wide.pow(2).mean(-1, keepdim=True)
        wide = wide * torch.rsqrt(variance + 1e-6)
        return self.weight * wide.to(x.dtype)


def rotated(x, cos, sin):
    first, second = x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class LlamaBlock(nn.Module):
    """RMSNorm, rotary positions, grouped-query attention, SwiGLU."""
    def __init__(self, dtype=torch.bfloat16):
        super().__init__()
        head = WIDTH // HEADS
        self.q_proj = nn.Linear(WIDTH, WIDTH, bias=False, dtype=dtype)
        self.k_proj = nn.Linear(WIDTH, KEPT * head, bias=False, dtype=dtype)
        self.v_proj = nn.Linear(WIDTH, KEPT * head, bias=False, dtype=dtype)
        self.o_proj = nn.Linear(WIDTH, WIDTH, bias=False, dtype=dtype)
        self.gate_proj = nn.Linear(WIDTH, 2 * WIDTH, bias=False, dtype=dtype)
        self.up_proj = nn.Linear(WIDTH, 2 * WIDTH, bias=False, dtype=dtype)
        self.down_proj = nn.Linear(2 * WIDTH, WIDTH, bias=False, dtype=dtype)
        self.input_norm, self.post_norm = RmsNorm(WIDTH, dtype), RmsNorm(WIDTH, dtype)

    def attend(self, x, cos, sin):
        length = x.shape[1]
        q = self.q_proj(x).view(1, length, HEADS, -1).transpose(1, 2)
        k = self.k_proj(x).view(1, length, KEPT, -1).transpose(1, 2)
        v = self.v_proj(x).view(1, length, KEPT, -1).transpose(1, 2)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        k = k.repeat_interleave(HEADS // KEPT, dim=1)
        v = v.repeat_interleave(HEADS // KEPT, dim=1)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(WIDTH // HEADS)
        mask = torch.full((length, length), float("-inf"), dtype=x.dtype).triu(1)
        weights = F.softmax(scores + mask, dim=-1, dtype=torch.float32).to(x.dtype)
        mixed = torch.matmul(weights, v).transpose(1, 2).reshape(1, length, WIDTH)
        return self.o_proj(mixed)

    def forward(self, x, cos, sin):
        x = x + self.attend(self.input_norm(x), cos, sin)
        h = self.post_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


class Gpt2Block(nn.Module):
    """Fused qkv, dropout in eval mode, tanh gelu."""
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc, self.proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(width, dim=2)
        q, k, v = (each.view(batch, length, HEADS, -1).transpose(1, 2) for each in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.0, is_causal=False)
        y = y.transpose(1, 2).contiguous().view(batch, length, width)
        x = x + self.drop(self.c_proj(y))
        return x + self.drop(self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh")))


class PatchEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, WIDTH, 8, 8)
        self.first = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.positions = nn.Parameter(torch.randn(1, 17, WIDTH))

    def forward(self, image):
        patches = self.conv(image).flatten(2).transpose(1, 2)
        return torch.cat((self.first, patches), 1) + self.positions


class Router(nn.Module):
    """The two best of eight experts, found by comparisons."""
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, 8, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        logits = self.gate(x)
        chances = F.softmax(logits, dim=-1, dtype=torch.float32)
        best = chances.amax(-1, keepdim=True)
        rest = chances.masked_fill(chances == best, 0)
        second = rest.amax(-1, keepdim=True)
        kept = torch.where(chances >= second, chances, 0.0)
        return (kept / kept.sum(-1, keepdim=True)).to(x.dtype)


class RouterTopk(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, 8, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        chances = F.softmax(self.gate(x), dim=-1, dtype=torch.float32)
        weights, chosen = torch.topk(chances, 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        return weights.to(x.dtype), chosen


class BertEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(50, WIDTH), nn.Embedding(32, WIDTH)
        self.kinds, self.norm = nn.Embedding(2, WIDTH), nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, tokens, kinds):
        positions = torch.arange(tokens.shape[1])
        embedded = self.words(tokens) + self.positions(positions) + self.kinds(kinds)
        return self.norm(embedded)


class Classifier(nn.Module):
    """Differentiated: the loss, and the gradients of all parameters."""
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, x, labels):
        logits = self.second(F.relu(self.first(x)))
        return F.cross_entropy(logits, labels)


def adamw(weight, gradient, mean, square):
    weight = weight * (1 - 1e-3 * 0.01)
    mean = mean.lerp(gradient, 0.1)
    square = square.mul(0.999).addcmul(gradient, gradient, value=0.001)
    denominator = (square.sqrt() / math.sqrt(1 - 0.999**3)).add(1e-8)
    weight = weight.addcdiv(mean, denominator, value=-1e-3 / (1 - 0.9**3))
    return weight, mean, square


def preferred(a, b):
    """seeds/preferred_element_type: a product of bfloat16, wanted in float32."""
    return (a @ b).to(torch.float32)


def wgrad(total, gradient, x):
    """seeds/wgrad_accumulate, as the unfused path has it."""
    return total + (gradient.t() @ x).to(torch.float32)


def autocast(x, weight):
    """seeds/autocast: a region, and what comes after it."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = x @ weight
    return product + x


def matmul_out(a, b):
    """seeds/matmul_out: a float32 buffer for operands of bfloat16; PyTorch eager refuses it."""
    product = torch.empty(a.shape[0], b.shape[1], dtype=torch.float32)
    torch.matmul(a, b, out=product)
    return product


def made():
    """The blocks with their arguments, from one seed."""
    torch.manual_seed(11)
    half = torch.bfloat16
    angles = torch.arange(LENGTH)[:, None] / 10000**(torch.arange(0, WIDTH // HEADS, 2) / (WIDTH // HEADS))
    angles = torch.cat((angles, angles), -1)
    labels = torch.randint(10, (8, ))
    square = [torch.randn(WIDTH, WIDTH) for _ in range(3)] + [torch.rand(WIDTH, WIDTH)]
    return {
        "llama_block": (LlamaBlock(), (torch.randn(1, LENGTH, WIDTH).to(half), angles.cos().to(half), angles.sin().to(half)), {}),
        "gpt2_block": (Gpt2Block().eval(), (torch.randn(1, LENGTH, WIDTH), ), {}),
        "patch_embedding": (PatchEmbedding(), (torch.randn(1, 3, 32, 32), ), {}),
        "router_compared": (Router(), (torch.randn(LENGTH, WIDTH).to(half), ), {}),
        "router_topk": (RouterTopk(), (torch.randn(LENGTH, WIDTH).to(half), ), {}),
        "bert_embedding": (BertEmbedding(), (torch.randint(50, (2, LENGTH)), torch.randint(2, (2, LENGTH))), {}),
        "classifier": (Classifier(), (torch.randn(8, WIDTH), labels), {"backward": True}),
        "adamw": (adamw, tuple(square), {}),
        "preferred": (preferred, (torch.randn(WIDTH, WIDTH).to(half), torch.randn(WIDTH, WIDTH).to(half)), {}),
        "wgrad": (wgrad, (torch.randn(WIDTH, WIDTH), torch.randn(8, WIDTH).to(half), torch.randn(8, WIDTH).to(half)), {}),
        "autocast": (autocast, (torch.randn(WIDTH, WIDTH), torch.randn(WIDTH, WIDTH)), {}),
        "matmul_out": (matmul_out, (torch.randn(WIDTH, WIDTH).to(half), torch.randn(WIDTH, WIDTH).to(half)), {}),
    }
