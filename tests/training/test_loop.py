import errno
import hashlib
import json
import math
from dataclasses import replace
from unittest.mock import Mock

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save, save_file
from torch import nn

from repro.settings import StepTwoConfig, TrainConfig
from repro.training.loop import LoopConfig, TrainingDiverged, train
from repro.types import InputError


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 1))


def task(module, *, until=math.inf):
    """A regression whose batch is chosen by the step; stops as a killed run would, without
    warning.
    """

    def loss_at(step):
        if step >= until:
            raise KeyboardInterrupt
        x = torch.randn(16, 6, generator=torch.Generator().manual_seed(step))
        return (module(x).squeeze(1) - x.sum(1)).square().mean()

    return loss_at


CONFIG = LoopConfig(steps=20, learning_rate=0.05, check_every=4, save_every=3, seed=1)


def run(config=CONFIG, *, until=math.inf, seed=0, **options):
    module = network(seed)
    options |= {"progress": False, "check": lambda: math.sin(1e3 * module[0].weight[0, 0].item())}
    return module, train(module, task(module, until=until), config, **options)


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0.1, "warmup": 0.25, "weight_decay": 0.1, "clip_norm": 0.5},
        {"learning_rate": 0.03, "betas": (0.5, 0.9), "clip_norm": 2.0},
        {"weight_decay": 0.5, "betas": (0.9, 0.98), "clip_norm": 0.0},
        {},
    ],
    ids=str,
)
def test_equals_a_plain_adam_loop(settings):
    mine, plain = nn.Linear(6, 1), nn.Linear(6, 1)
    plain.load_state_dict(mine.state_dict())

    def loss_of(module, step):
        """Of small and of large gradients: were all clipped, Adam would not know to what norm."""
        return 10.0 ** (step % 3 - 1) * task(nn.Sequential(module))(step)

    config = LoopConfig(steps=12, **settings)
    train(mine, lambda step: loss_of(mine, step), config, progress=False, rates={"bi": 3.0})
    learning_rate, warm = settings.get("learning_rate", 1e-5), 12 * settings.get("warmup", 0.0)
    decay, clip_norm = settings.get("weight_decay", 0.0), settings.get("clip_norm", 1.0)
    groups = [{"params": [plain.weight], "weight_decay": decay}]
    groups.append({"params": [plain.bias], "weight_decay": 0.0})
    optimiser = torch.optim.AdamW(groups, betas=settings.get("betas", (0.9, 0.999)))
    for step in range(12):
        optimiser.zero_grad()
        loss_of(plain, step).backward()
        if clip_norm:
            torch.nn.utils.clip_grad_norm_(plain.parameters(), clip_norm)
        for group, factor in zip(optimiser.param_groups, (1, 3), strict=True):
            share = (step + 1) / warm if step < warm else (12 - step) / (12 - warm)
            group["lr"] = factor * learning_rate * share
        optimiser.step()
    for a, b in zip(mine.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_a_loop_takes_every_setting_of_a_training_under_its_name():
    one = {"learning_rate": 7e-4, "warmup": 0.2, "check_every": 11, "save_every": 13, "seed": 5}
    one["bf16"] = True
    two = {"clip_norm": 0.3, "patience": 4, "check_every": 9, "seed": 8}
    assert LoopConfig.of(TrainConfig(**one), steps=3) == LoopConfig(steps=3, **one)
    assert LoopConfig.of(StepTwoConfig(**two), steps=3) == LoopConfig(steps=3, **two)


@pytest.mark.parametrize("bf16", [False, True])
def test_products_are_in_bfloat16_where_it_is_asked_for_and_weights_never(bf16):
    module, seen = network(), set()
    loss_of = task(module)

    def loss_at(step):
        seen.add(module[0](torch.ones(1, 6)).dtype)
        return loss_of(step)

    train(module, loss_at, replace(CONFIG, bf16=bf16), progress=False)
    assert seen == {torch.bfloat16 if bf16 else torch.float32}
    assert {weight.dtype for weight in module.parameters()} == {torch.float32}


def test_every_step_draws_anew():
    module, drawn = network(), []
    good = task(module)
    train(
        module,
        lambda step: drawn.append(torch.rand(1).item()) or good(step),
        CONFIG,
        progress=False,
    )
    assert len(set(drawn)) == CONFIG.steps


def test_a_state_of_another_version_is_refused_in_words(tmp_path):
    """The libraries may have been upgraded since, and call a weight or a setting otherwise."""
    path = tmp_path / "state.safetensors"
    with pytest.raises(KeyboardInterrupt):
        run(until=8, state_path=path)
    with safe_open(path, "pt") as file:
        notes = json.loads(file.metadata()["loop"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    weight = next(name for name in tensors if name.startswith("weights/"))
    renamed = {f"{name}s" if name == weight else name: X for name, X in tensors.items()}
    longer = notes | {"history": notes["history"] | {"rate": 1.0}}
    unset = {name: value for name, value in notes.items() if name != "config"}
    for changed, numbers, told in (
        (notes, renamed, "by another version"),
        (longer, tensors, "by another version"),
        (unset, tensors, "other settings"),
    ):
        said = json.dumps(changed)
        digest = hashlib.sha256(said.encode() + save(numbers)).hexdigest()
        save_file(numbers, path, metadata={"loop": said, "sha256": digest})
        with pytest.raises(InputError, match=f"{told}.*: remove it to start anew"):
            run(state_path=path)


@pytest.mark.parametrize("killed_at", [8, 19])
def test_a_killed_run_resumes_to_the_same_bytes(killed_at, tmp_path, bytes_of):
    whole, expected = run()
    assert bytes_of(run(replace(CONFIG, seed=2))[0]) != bytes_of(whole), (
        "another seed is another run"
    )
    torch.rand(17)  # The global stream plays no part
    state = tmp_path / "state.safetensors"
    with pytest.raises(KeyboardInterrupt):
        run(until=killed_at, state_path=state)
    resumed, history = run(state_path=state, seed=7)  # The new process starts from other weights
    assert bytes_of(resumed) == bytes_of(whole)
    assert replace(history, seconds=0, resumed_at=0) == replace(expected, seconds=0)
    assert history.resumed_at == killed_at // 3 * 3
    assert list(tmp_path.iterdir()) == [state]
    with pytest.raises(InputError, match="holds a run with other settings: remove it"):
        run(replace(CONFIG, learning_rate=0.1), state_path=state)


def test_nothing_is_saved_after_the_last_step(tmp_path):
    state = tmp_path / "state.safetensors"
    run(replace(CONFIG, save_every=CONFIG.steps), state_path=state)
    assert not state.exists()
    run(replace(CONFIG, save_every=CONFIG.steps - 1), state_path=state)
    assert state.exists()


def test_a_run_goes_on_from_a_state_however_often_states_are_saved(tmp_path, bytes_of):
    state = tmp_path / "state.safetensors"
    with pytest.raises(KeyboardInterrupt):
        run(until=8, state_path=state)
    resumed, history = run(replace(CONFIG, save_every=5), state_path=state)
    assert history.resumed_at == 6 and bytes_of(resumed) == bytes_of(run()[0])


def test_no_flipped_bit_of_a_state_is_trained_on(tmp_path, caplog):
    state = tmp_path / "state.safetensors"
    run(state_path=state)
    whole = state.read_bytes()
    for at in range(0, len(whole), 307):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        state.write_bytes(damaged)
        with pytest.raises(KeyboardInterrupt):
            run(until=0, state_path=state)
    assert caplog.text.count("starting anew") == len(range(0, len(whole), 307))


def test_memory_that_runs_out_does_not_cost_a_state(tmp_path, monkeypatch):
    state = tmp_path / "state.safetensors"
    run(state_path=state)
    whole = state.read_bytes()
    error = OSError(errno.ENOMEM, "no memory")
    monkeypatch.setattr("repro.training.state.safe_open", Mock(side_effect=error))
    with pytest.raises(OSError, match="no memory"):
        run(state_path=state)
    assert state.read_bytes() == whole


@pytest.mark.parametrize(
    ("scores", "first", "best"),
    [
        ([0.1, 0.5, 0.9, 0.3, 0.2], False, 12),
        # The earliest of equal ones, and never a NaN
        ([math.nan, 0.4, 0.4, math.nan, 0.1], False, 8),
        ([1.0, 0.5, 0.5, 0.5, 0.5, 0.5], True, 0),  # The untrained weights
    ],
)
def test_the_best_check_is_kept(scores, first, best, bytes_of):
    module, seen = network(), {}

    def check():
        seen[(len(seen) + (not first)) * 4] = bytes_of(module)
        return scores[len(seen) - 1]

    history = train(
        module,
        task(module),
        replace(CONFIG, check_first=first),
        check=check,
        progress=False,
    )
    assert [step for step, _ in history.checks] == list(seen) and history.best_step == best
    assert bytes_of(module) == seen[best] != seen[20] and not module.training


@pytest.mark.parametrize(("check_every", "checked"), [(0, [10]), (4, [4, 8, 10]), (5, [5, 10])])
def test_the_last_step_is_always_checked(check_every, checked):
    config = LoopConfig(steps=10, check_every=check_every)
    assert [step for step, _ in run(config)[1].checks] == checked


def test_patience_ends_the_run_even_when_it_is_resumed(tmp_path):
    config = LoopConfig(steps=20, learning_rate=0.05, check_every=2, save_every=2, patience=2)
    scores = iter([0.5, 0.9, 0.1, 0.2])
    for _ in range(2):  # Killed after the check that ended it, before the artefact was sealed
        module = network()
        told = {"state_path": tmp_path / "s", "progress": False}
        found = train(module, task(module), config, check=lambda: next(scores), **told)
        assert [step for step, _ in found.checks] == [2, 4, 6, 8]
        assert (found.best_step, len(found.losses)) == (4, 8)


def test_a_loss_that_is_not_finite_names_its_step():
    module = network()
    good = task(module)
    with pytest.raises(
        TrainingDiverged,
        match="my run: the loss is nan at step 7: lower the learning rate",
    ):
        train(
            module,
            lambda s: good(s) * (math.nan if s == 7 else 1),
            CONFIG,
            description="my run",
            progress=False,
        )


def test_frozen_parameters_stay_and_all_frozen_is_an_error(bytes_of):
    module = network()
    module[0].requires_grad_(False)
    before = bytes_of(module[0])
    train(module, task(module), CONFIG, progress=False)
    assert bytes_of(module[0]) == before
    module.requires_grad_(False)
    with pytest.raises(InputError, match="every parameter is frozen"):
        train(module, task(module), CONFIG, progress=False)
