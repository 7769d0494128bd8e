"""Trains and scores the model `outcomes` in PyTorch on the same samples as poolcast.

    python3 ci/bench/outcomes_peer.py plain|batched TENSORS EPOCHS

`plain` is the usual code: three modules in turn, a DataLoader, AdamW. `batched` is the fastest way in PyTorch: the heads of all three
networks are one product of matrices, the rest are batched products, batches are slices, and AdamW is fused. TENSORS is written by
`cargo bench --bench outcomes`. Prints, like that benchmark, samples per CPU second in the fastest of EPOCHS passes, and a result.
"""

import glob
import sys
import time

import torch
from safetensors.torch import load_file
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MEMBERS, HEADS, WIDTH, BATCH = 3, 26, 32, 64
STATES = slice(11, 23)
INPUTS = 2 * HEADS + 7 + 8 + 8


def head_inputs(weight, values, mask, prior, question, code, words):
    weight = weight * mask
    sums = weight.sum(-2)
    rates = (weight * values).sum(-2) / (sums + nn.functional.softplus(prior) + 0.3)
    return torch.cat([rates, torch.log1p(sums), question, code, words], -1)


class Member(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.Linear(29, HEADS)
        self.values = nn.Parameter(torch.randn(12, HEADS) * 0.1)
        self.prior = nn.Parameter(torch.zeros(HEADS))
        self.code = nn.Embedding(32, 8)
        self.words = nn.Linear(64, 8, bias=False)
        self.hidden = nn.Linear(INPUTS, WIDTH)
        self.dropout = nn.Dropout(0.2)
        self.output = nn.Linear(WIDTH, 1)
        self.direct = nn.Linear(INPUTS, 1, bias=False)

    def forward(self, tokens, mask, question, code, words):
        weight = self.heads(tokens).clamp(-8, 6).exp()
        values = tokens[..., STATES] @ self.values.tanh()
        inputs = head_inputs(weight, values, mask.unsqueeze(-1), self.prior, question, self.code(code), self.words(words))
        hidden = self.dropout(nn.functional.gelu(self.hidden(inputs)))
        return (self.output(hidden) + self.direct(inputs)).squeeze(-1)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.members = nn.ModuleList(Member() for _ in range(MEMBERS))

    def forward(self, *batch):
        return torch.stack([member(*batch) for member in self.members])


class Batched(nn.Module):
    def __init__(self):
        super().__init__()
        drawn = lambda *dims: nn.Parameter(torch.randn(*dims) * 0.1)
        self.heads, self.bias = drawn(29, MEMBERS * HEADS), drawn(MEMBERS * HEADS)
        self.values, self.prior = drawn(12, MEMBERS * HEADS), drawn(MEMBERS * HEADS)
        self.code, self.words = drawn(32, MEMBERS * 8), drawn(64, MEMBERS * 8)
        self.hidden, self.hidden_bias = drawn(MEMBERS, INPUTS, WIDTH), drawn(MEMBERS, 1, WIDTH)
        self.output, self.output_bias = drawn(MEMBERS, WIDTH, 1), drawn(MEMBERS, 1, 1)
        self.direct = drawn(MEMBERS, INPUTS, 1)

    def forward(self, tokens, mask, question, code, words):
        b = len(code)
        flat = tokens.view(-1, 29)
        weight = torch.addmm(self.bias, flat, self.heads).clamp_(-8, 6).exp_().view(b, 64, -1)
        weight = weight * mask.unsqueeze(-1)
        values = (flat[:, STATES] @ self.values.tanh()).view(b, 64, -1)
        sums = weight.sum(1)
        rates = (weight * values).sum(1) / (sums + nn.functional.softplus(self.prior) + 0.3)
        by_member = lambda numbers: numbers.view(b, MEMBERS, -1).transpose(0, 1)
        question = question.expand(MEMBERS, -1, -1)
        parts = [by_member(rates), by_member(torch.log1p(sums)), question, by_member(self.code[code]), by_member(words @ self.words)]
        inputs = torch.cat(parts, -1)
        hidden = nn.functional.gelu(torch.baddbmm(self.hidden_bias, inputs, self.hidden))
        hidden = nn.functional.dropout(hidden, 0.2, self.training)
        return (torch.baddbmm(self.output_bias, hidden, self.output) + inputs @ self.direct).squeeze(-1)


def read(tensors):
    parts = []
    for path in sorted(glob.glob(f"{tensors}/train-*.safetensors")):
        shard = load_file(path)
        words = shard["reason_words"][shard["question_reason"].long()]
        code = shard["question_code"].long()
        parts.append((shard["tokens"].float(), shard["token_mask"].float(), shard["question"], code, words, shard["label"].float()))
    return [torch.cat(columns) for columns in zip(*parts)]


def measure(what, samples, epochs, run):
    best = float("inf")
    for _ in range(epochs):
        start = time.process_time()
        result = run()
        best = min(best, time.process_time() - start)
    print(f"{what} {samples / best:.1f} {result:.7f}", flush=True)


def main():
    kind, tensors, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    columns = read(tensors)
    n = len(columns[0])
    if kind == "plain":
        batches = DataLoader(TensorDataset(*columns), batch_size=BATCH)
        model = Plain()
    else:
        batches = list(zip(*(column.split(BATCH) for column in columns)))
        model = Batched()
    adam = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05, fused=kind != "plain")

    def score():
        model.eval()
        with torch.inference_mode():
            return sum(model(*batch[:-1]).mean(0).sum().item() for batch in batches) / n

    def train():
        model.train()
        total = 0.0
        for tokens, mask, *rest, labels in batches:
            mask = mask * (torch.rand_like(mask) >= 0.1)
            adam.zero_grad()
            found = model(tokens, mask, *rest)
            loss = nn.functional.binary_cross_entropy_with_logits(found, labels.expand_as(found))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.6)
            adam.step()
            total += loss.item() * len(labels)
        return total / n

    measure("infer", n, epochs, score)
    measure("train", n, epochs, train)


main()
