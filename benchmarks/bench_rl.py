"""Claim: training of DQN on CartPole is at least 3x faster than Gymnasium + a plain torch DQN.

Both have the same hyperparameters, network, optimizer, replay, n steps, batches and updates,
and both are measured in the same run, in turns; the best round of each counts. The rival is
what one writes with Gymnasium's fastest vector environment of CartPole (its own NumPy one,
and the one that steps copies in turn), modules of torch, fused AdamW, and replay in NumPy. On
a CPU it is also measured without oneDNN, which is slow for small matrices on ARM. Ours is
measured for one seed and for many side by side: rates are of all seeds together, since the
rival trains one seed after the other.

`--whole` adds whole runs of one seed by the recipe, from the first step to the last: the
fastest rival as it is, without evaluations, and ours with its log, the last evaluation, and
all that it does before rounds are replayed.

    python benchmarks/bench_rl.py [--device cpu] [--seeds 1 10 100] [--rounds 5] [--whole]
"""

import collections
import contextlib
import dataclasses
import itertools
import time
import warnings

import gymnasium
import numpy as np
import torch
from options import parser
from report import report
from torch import nn

from hotgrid.train import rl

HOW = rl.recipe_for("cartpole")
LEARNER, SETTINGS = HOW.learner, HOW.settings


def now(device: str) -> float:
    """The time when all work so far is done."""
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter()


class Plain:
    """Gymnasium and a DQN in plain torch; double, over n steps, one seed."""

    def __init__(self, device: str, mode: str, onednn: bool = True) -> None:
        self.onednn = onednn
        kwargs = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}
        if mode == "vector_entry_point":
            kwargs = {}
        self.envs = gymnasium.make_vec(
            "CartPole-v1",
            num_envs=SETTINGS.copies,
            vectorization_mode=mode,
            **({"vector_kwargs": kwargs} if kwargs else {}),
        )
        self.seen, _ = self.envs.reset(seed=0)
        self.device, self.random = device, np.random.default_rng(0)
        sizes = (4, *LEARNER.hidden, 2)
        self.online, self.target = (self.network(sizes) for _ in range(2))
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.AdamW(
            self.online.parameters(), lr=LEARNER.rate, weight_decay=0, fused=True
        )
        capacity = SETTINGS.replay.capacity
        self.columns = {
            "seen": np.zeros((capacity, 4), np.float32),
            "next": np.zeros((capacity, 4), np.float32),
            "action": np.zeros(capacity, np.int64),
            "reward": np.zeros(capacity, np.float32),
            "discount": np.zeros(capacity, np.float32),
        }
        self.window = collections.deque(maxlen=LEARNER.n_steps)
        self.at = self.size = 0

    def network(self, sizes):
        """Modules of torch."""
        layers = []
        for a, b in itertools.pairwise(sizes):
            layers += [nn.Linear(a, b), nn.ReLU()]
        return nn.Sequential(*layers[:-1]).to(self.device)

    def collect(self, chance: float) -> None:
        """A step of every copy."""
        with torch.no_grad():
            values = self.online(torch.as_tensor(self.seen, device=self.device))
        action = values.argmax(-1).cpu().numpy()
        wild = self.random.random(len(action)) < chance
        action[wild] = self.random.integers(0, 2, int(wild.sum()))
        after, reward, terminated, truncated, info = self.envs.step(action)
        following = after
        if "final_obs" in info:
            following = after.copy()
            for place in np.nonzero(info["_final_obs"])[0]:
                following[place] = info["final_obs"][place]
        step = (self.seen, action, reward, terminated, terminated | truncated, following)
        self.seen = after
        self.window.append(step)
        if len(self.window) == LEARNER.n_steps:
            self.store()

    def store(self) -> None:
        """The oldest step of the window with the rewards of those after it."""
        first = self.window[0]
        total, discount = np.zeros(len(first[1])), np.ones(len(first[1]))
        going, following = np.ones(len(first[1]), bool), first[5]
        for _, _, reward, terminated, over, after in self.window:
            total += going * discount * reward
            discount = np.where(going, discount * LEARNER.gamma * ~terminated, discount)
            following = np.where(going[:, None], after, following)
            going &= ~over
        places = (self.at + np.arange(len(total))) % SETTINGS.replay.capacity
        row = (first[0], following, first[1], total, discount)
        for column, values in zip(self.columns.values(), row, strict=True):
            column[places] = values
        self.at += len(total)
        self.size = min(self.at, SETTINGS.replay.capacity)

    def update(self) -> None:
        """An update, and the target network a little further."""
        index = self.random.integers(0, self.size, SETTINGS.batch)
        seen, after, action, reward, discount = (
            torch.as_tensor(column[index]).to(self.device) for column in self.columns.values()
        )
        with torch.no_grad():
            best = self.online(after).argmax(-1, keepdim=True)
            goal = reward + discount * self.target(after).gather(-1, best)[:, 0]
        found = self.online(seen).gather(-1, action[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(found, goal)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.optimizer.step()
        with torch.no_grad():
            for a, b in zip(self.target.parameters(), self.online.parameters(), strict=True):
                a.lerp_(b, LEARNER.tau)

    def round(self, chance: float = 0.1) -> None:
        """What one round of ours does."""
        with contextlib.nullcontext() if self.onednn else without_onednn():
            for _ in range(SETTINGS.collect):
                self.collect(chance)
            for _ in range(SETTINGS.updates):
                self.update()

    def run(self) -> None:
        """What a whole run of ours does, without evaluations."""
        for step in range(0, HOW.steps, SETTINGS.per_round):
            if step < SETTINGS.warmup:
                self.collect(1.0)
            else:
                self.round(LEARNER.chance_at(step))


@contextlib.contextmanager
def without_onednn():
    """What torch offers for it; its warning is about other hardware."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.backends.mkldnn.flags(enabled=False):
            yield


def ours(device: str, seeds: int) -> rl.Rounds:
    draws, env = rl.Draws(0, device), rl.CartPole()
    world = rl.Copies(env, seeds, SETTINGS.copies, draws)
    agent = LEARNER.begin(env.observations, env.actions, seeds, draws, env.units)
    ring = rl.replay_of(
        SETTINGS.replay,
        rl.Rows(env.observations, env.actions),
        seeds,
        SETTINGS.copies,
        steps=LEARNER.n_steps,
        gamma=LEARNER.gamma,
        device=device,
    )
    return rl.Rounds(world, agent, ring, draws, SETTINGS, captured=True)


def whole(device: str, name: str, mode: str, onednn: bool) -> list[dict[str, object]]:
    """Whole runs of one seed, from making everything to the last step."""
    begin = now(device)
    Plain(device, mode, onednn).run()
    middle = now(device)
    once = dataclasses.replace(SETTINGS, evaluate_every=HOW.steps)
    rl.RLTrainer("cartpole", settings=once, device=device, show=False).run()
    end = now(device)
    runs = {name: middle - begin, "hotgrid, 1 seed": end - middle}
    return [
        {
            "what": f"a whole run of {HOW.steps:,} steps: {each}",
            "seconds": seconds,
            "times the best rival": runs[name] / seconds,
        }
        for each, seconds in runs.items()
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 10])
    options.add_argument("--rounds", type=int, default=5, help="times each is measured")
    options.add_argument("--threads", type=int, default=None)
    options.add_argument("--whole", action="store_true", help="also make whole runs")
    given = options.parse_args()
    device = given.device
    if given.threads:
        torch.set_num_threads(given.threads)
    contestants, rivals = {}, {}
    for mode, onednn in itertools.product(
        ("sync", "vector_entry_point"), (True, False) if device == "cpu" else (True,)
    ):
        plain = Plain(device, mode, onednn)
        for _ in range(SETTINGS.warmup // SETTINGS.copies):
            plain.collect(1.0)
        name = f"Gymnasium ({mode}) + torch{'' if onednn else ' without oneDNN'}"
        contestants[name], rivals[name] = (1, plain.round), (mode, onednn)
    for seeds in given.seeds:
        rounds = ours(device, seeds)
        for _ in range(SETTINGS.warmup // SETTINGS.copies):
            rounds.make(1.0, learn=False)
        made = lambda rounds=rounds: rounds.make(0.1, learn=True)
        contestants[f"hotgrid, {seeds} seed{'s' if seeds > 1 else ''}"] = (seeds, made)
    best = dict.fromkeys(contestants, float("inf"))
    for _, call in contestants.values():
        for _ in range(10):
            call()
    for _ in range(given.rounds):
        for name, (_, call) in contestants.items():
            begin = now(device)
            for _ in range(50):
                call()
            best[name] = min(best[name], (now(device) - begin) / 50)
    fastest = min(rivals, key=lambda name: best[name])
    rival = best[fastest]
    rows = [
        {
            "what": name,
            "milliseconds a round": best[name] * 1e3,
            "environment steps a second": seeds * SETTINGS.per_round / best[name],
            "updates a second": seeds * SETTINGS.updates / best[name],
            "times the best rival": seeds * rival / best[name],
        }
        for name, (seeds, _) in contestants.items()
    ]
    if given.whole:
        rows += whole(device, fastest, *rivals[fastest])
    report(
        f"rl-{device}",
        rows,
        settings=str(SETTINGS),
        learner=str(LEARNER),
        threads=torch.get_num_threads(),
    )


if __name__ == "__main__":
    main()
