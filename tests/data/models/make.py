"""Makes the fixtures of tests/models.rs: the outputs of PyTorch's nn.LSTM, nn.GRU and nn.Linear for codes and static features.

    ci/venv torch tests/data/models/make.py

A case is a safetensors file, named after its model. It has the weights (`weight/`), samples (`codes` [n, m, j], `statics` [n, s],
`targets` [n]), the logits [n], the gradient of the mean cross-entropy of all samples (`gradient/`), and `loss` [2]: that mean
before and after an epoch of Adam over batches of four samples in order. All computations use f64, so the program under test
causes the only rounding. The weights are the nearest f32 values.
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

EMPTY = 255
BATCH = 4
LEARNING_RATE = 1e-2

# model and name: samples n, types e, frames m, jobs j, static features s, width h, layers
CASES = {
    "lstm-one-layer": (13, 6, 9, 5, 3, 8, 1),
    "lstm-two-layers": (9, 5, 40, 4, 0, 11, 2),
    "lstm-three-layers": (10, 4, 7, 9, 1, 5, 3),
    "lstm-four-layers": (6, 3, 5, 3, 2, 17, 4),
    "lstm-one-of-each": (3, 1, 1, 1, 0, 1, 1),
    "gru-one-layer": (19, 6, 9, 5, 0, 8, 1),
    "gru-two-layers": (9, 5, 40, 4, 1, 11, 2),
    "gru-one-of-each": (3, 1, 1, 1, 0, 1, 1),
    "mlp-one-layer": (19, 6, 3, 5, 3, 8, 1),
    "mlp-three-layers": (9, 4, 1, 7, 2, 5, 3),
}


class Recurrent(nn.Module):
    """nn.LSTM or nn.GRU over one-hot codes; nn.Linear over the last state and the static features."""

    def __init__(self, kind, e, j, s, h, layers):
        super().__init__()
        modules = {"lstm": nn.LSTM, "gru": nn.GRU}
        self.add_module(kind, modules[kind](e * j, h, layers, batch_first=True))
        self.linear = nn.Linear(h + s, 1)
        self.kind, self.e = kind, e

    def forward(self, codes, statics):
        states, _ = self.get_submodule(self.kind)(one_hot(codes, self.e).flatten(2))
        return self.linear(torch.cat([states[:, -1], statics], 1)).squeeze(1)


class Mlp(nn.Module):
    """Layers over the last frame's codes (one-hot of the first job, mean of all jobs) and the static features."""

    def __init__(self, e, s, h, layers):
        super().__init__()
        inputs = [2 * e + s] + [h] * (layers - 1)
        self.hidden = nn.ModuleList(nn.Linear(n, h) for n in inputs)
        self.linear = nn.Linear(h, 1)
        self.e = e

    def forward(self, codes, statics):
        jobs = one_hot(codes[:, -1], self.e)
        values = torch.cat([jobs[:, 0], jobs.mean(1), statics], 1)
        for hidden in self.hidden:
            values = nn.functional.relu(hidden(values))
        return self.linear(values).squeeze(1)


def one_hot(codes, e):
    known = (codes != EMPTY).unsqueeze(-1)
    return (nn.functional.one_hot(codes.long().clamp(max=e - 1), e) * known).double()


def samples(n, e, m, j, s):
    """Returns codes that persist for some frames, with an empty frame and an empty job in each sample."""
    codes = torch.randint(0, e + 1, (n, m, j))
    stays = torch.rand(n, m, j) < 0.7
    for frame in range(1, m):
        codes[:, frame] = torch.where(stays[:, frame], codes[:, frame - 1], codes[:, frame])
    codes[codes == e] = EMPTY
    if m > 1:
        codes[torch.arange(n), torch.randint(0, m, (n,))] = EMPTY
    if j > 1:
        codes[torch.arange(n), :, torch.randint(0, j, (n,))] = EMPTY
    # fractions that f32 represents exactly
    statics = torch.randint(-64, 65, (n, s)) / 64
    return codes.to(torch.uint8), statics.double(), (torch.arange(n) % 3 == 0).double()


def case(kind, n, e, m, j, s, h, layers):
    codes, statics, targets = samples(n, e, m, j, s)
    model = Mlp(e, s, h, layers) if kind == "mlp" else Recurrent(kind, e, j, s, h, layers)
    model = model.float().double()
    loss = nn.BCEWithLogitsLoss()
    tensors = {f"weight/{name}": value.detach().float() for name, value in model.named_parameters()}
    logits = model(codes, statics)
    before = loss(logits, targets)
    before.backward()
    tensors |= {f"gradient/{name}": value.grad.float() for name, value in model.named_parameters()}
    adam = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    for start in range(0, n, BATCH):
        batch = slice(start, start + BATCH)
        adam.zero_grad()
        loss(model(codes[batch], statics[batch]), targets[batch]).backward()
        adam.step()
    after = loss(model(codes, statics), targets)
    tensors |= {"codes": codes, "statics": statics.float(), "targets": targets.float(), "logits": logits.float()}
    tensors["loss"] = torch.stack([before, after]).float()
    tensors = {name: value.detach().contiguous() for name, value in tensors.items()}
    return tensors, {"sizes": f"{e} {h} {layers}"}


def main():
    torch.manual_seed(1)
    for name, sizes in CASES.items():
        tensors, metadata = case(name.split("-")[0], *sizes)
        save_file(tensors, Path(__file__).parent / f"{name}.safetensors", metadata)


main()
