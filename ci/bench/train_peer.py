"""Trains and scores the LSTM in PyTorch on the same samples as poolcast.

    python3 ci/bench/train_peer.py plain|bag SIZE EPOCHS FILE

`plain` is the usual code: dense one-hot samples in f32, nn.LSTM, BCEWithLogitsLoss, Adam. `bag` is the fastest way in PyTorch
for such codes: an embedding bag instead of the first layer's inputs, whose sums enter that layer through an identity, and
the fused Adam. FILE is written by `cargo bench --bench train -- SIZE 1 FILE`. Prints, like that benchmark, samples per
CPU second in the fastest of EPOCHS passes, a result, and the peak memory so far in MB.
"""

import resource
import sys
import time

import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

E = 48
# name: frames m, jobs j, width h, layers, batch size, as in benches/train.rs
SIZES = {"S": (20, 20, 32, 1, 64), "M": (60, 50, 64, 2, 64), "L": (100, 100, 128, 4, 128)}


class Plain(nn.Module):
    def __init__(self, j, h, layers):
        super().__init__()
        self.lstm = nn.LSTM(E * j, h, layers, batch_first=True)
        self.linear = nn.Linear(h, 1)

    def forward(self, one_hot):
        states, _ = self.lstm(one_hot)
        return self.linear(states[:, -1]).squeeze(1)


class Bag(nn.Module):
    def __init__(self, j, h, layers):
        super().__init__()
        bound = h**-0.5
        uniform = lambda *dims: nn.Parameter(torch.empty(*dims).uniform_(-bound, bound))
        self.table, self.recurrent = uniform(E * j, 4 * h), uniform(4 * h, h)
        self.bias_ih, self.bias_hh = uniform(4 * h), uniform(4 * h)
        self.register_buffer("identity", torch.eye(4 * h))
        self.register_buffer("first_row", torch.arange(j, dtype=torch.int32) * E)
        self.above = nn.LSTM(h, h, layers - 1, batch_first=True) if layers > 1 else None
        self.linear = nn.Linear(h, 1)

    def forward(self, codes):
        # No cell of these samples is empty.
        b, m, j = codes.shape
        rows = (codes.int() + self.first_row).view(b * m, j)
        sums = nn.functional.embedding_bag(rows, self.table, mode="sum").view(b, m, -1)
        zero = sums.new_zeros(1, b, self.recurrent.shape[1])
        weights = (self.identity, self.recurrent, self.bias_ih, self.bias_hh)
        states, _, _ = torch.lstm(sums, (zero, zero), weights, True, 1, 0.0, self.training, False, True)
        if self.above is not None:
            states, _ = self.above(states)
        return self.linear(states[:, -1]).squeeze(1)


def measure(what, samples, epochs, run):
    best = float("inf")
    for _ in range(epochs):
        start = time.process_time()
        result = run()
        best = min(best, time.process_time() - start)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(f"{what} {samples / best:.1f} {result:.7f} {peak_mb:.1f}", flush=True)


def main():
    kind, size, file = sys.argv[1], sys.argv[2], sys.argv[4]
    epochs = int(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    m, j, h, layers, batch_size = SIZES[size]
    cells = numpy.fromfile(file, dtype=numpy.uint8)
    n = len(cells) // (m * j + 1)
    codes = torch.from_numpy(cells[: n * m * j].reshape(n, m, j))
    labels = torch.from_numpy(cells[n * m * j :]).float()
    if kind == "plain":
        one_hot = torch.zeros(n, m, j * E)
        one_hot.view(n, m, j, E).scatter_(3, codes.long().unsqueeze(3), 1.0)
        batches = DataLoader(TensorDataset(one_hot, labels), batch_size=batch_size)
        model = Plain(j, h, layers)
        adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    else:
        batches = list(zip(codes.split(batch_size), labels.split(batch_size)))
        model = Bag(j, h, layers)
        adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loss = nn.BCEWithLogitsLoss()

    def score():
        with torch.inference_mode():
            return sum(model(batch).sum().item() for batch, _ in batches) / n

    def train():
        total = 0.0
        for batch, targets in batches:
            adam.zero_grad()
            found = loss(model(batch), targets)
            found.backward()
            adam.step()
            total += found.item() * len(targets)
        return total / n

    measure("infer", n, epochs, score)
    measure("train", n, epochs, train)


main()
