"""Networks and learners against plain torch, and what is independent of what."""

import itertools

import pytest
import torch
from torch import nn

from hotgrid.errors import ArgumentError
from hotgrid.train import Constant, LinearDecay, rl

SEEDS, ROWS = 3, 16
TWO = rl.Discrete(2)
TORQUE = rl.Box((-2.0,), (2.0,))


def plain(sizes, weights):
    """The same network of one seed, as modules of torch."""
    layers = []
    parts = iter(weights.split(rl.Dense(sizes).parts))
    for a, b in itertools.pairwise(sizes):
        linear = nn.Linear(a, b)
        linear.weight.data = next(parts).view(a, b).T.clone()
        linear.bias.data = next(parts).clone()
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def a_batch(actions, seed=0, rows=ROWS, seeds=SEEDS):
    draws = rl.Draws(seed, "cpu")
    action = draws.below(2, seeds, rows)
    if isinstance(actions, rl.Box):
        action = 4 * draws.uniform(seeds, rows, 1) - 2
    return rl.Batch(
        draws.normal(seeds, rows, 4),
        action,
        draws.normal(seeds, rows),
        0.9 * (draws.uniform(seeds, rows) > 0.3),
        draws.normal(seeds, rows, 4),
    )


def begun(learner, actions, seeds=SEEDS):
    return learner.begin(4, actions, seeds, rl.Draws(7, "cpu"))


def test_a_dense_network_is_torchs_for_every_seed():
    net = rl.Dense((4, 8, 6, 3))
    weights = net.initial(SEEDS, rl.Draws(0, "cpu"))
    x = torch.randn(SEEDS, 5, 4, generator=torch.Generator().manual_seed(0))
    found = net(weights, x)
    for seed in range(SEEDS):
        torch.testing.assert_close(found[seed], plain(net.sizes, weights[seed])(x[seed]))
    # As `nn.Linear` begins.
    first = weights[:, : 4 * 8]
    assert 0.4 < first.abs().max() <= 0.5


@pytest.mark.parametrize("double", [True, False])
def test_dqn_is_a_plain_dqn_of_torch(double):
    """Several updates, compared with modules, Adam and a loop over target weights."""
    learner = rl.DQN(hidden=(8,), rate=0.01, tau=0.1, clip=0.5, double=double)
    agent = begun(learner, TWO)
    start = agent.policy()["online"].clone()
    online = [plain((4, 8, 2), start[seed]) for seed in range(SEEDS)]
    target = [plain((4, 8, 2), start[seed]) for seed in range(SEEDS)]
    optimizers = [torch.optim.AdamW(n.parameters(), lr=0.01, weight_decay=0) for n in online]
    for step in range(5):
        batch = a_batch(TWO, seed=step)
        found = agent.learn(batch, rl.Draws(0, "cpu"))
        for seed in range(SEEDS):
            with torch.no_grad():
                chooser = online[seed] if double else target[seed]
                best = chooser(batch.following[seed]).argmax(-1)
                value = target[seed](batch.following[seed])[torch.arange(ROWS), best]
                goal = batch.reward[seed] + batch.discount[seed] * value
            value = online[seed](batch.observation[seed])
            value = value[torch.arange(ROWS), batch.action[seed]]
            loss = nn.functional.smooth_l1_loss(value, goal)
            optimizers[seed].zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(online[seed].parameters(), 0.5)
            optimizers[seed].step()
            for a, b in zip(target[seed].parameters(), online[seed].parameters(), strict=True):
                a.data.lerp_(b.data, 0.1)
            assert found.values["loss"][seed].item() == pytest.approx(loss.item(), rel=1e-4)
    weights = agent.policy()["online"]
    for seed in range(SEEDS):
        x = torch.randn(20, 4, generator=torch.Generator().manual_seed(1))
        torch.testing.assert_close(
            rl.Dense((4, 8, 2))(weights[seed : seed + 1], x[None])[0],
            online[seed](x),
            rtol=1e-3,
            atol=1e-4,
        )


def projected_slowly(agent, reward, discount, chances):
    """C51's projection of one row, atom by atom, as in the paper."""
    atoms, found = agent._returns.tolist(), [0.0] * len(agent._returns)
    low, high, gap = atoms[0], atoms[-1], atoms[1] - atoms[0]
    for atom, chance in zip(atoms, chances, strict=True):
        place = (min(high, max(low, reward + discount * atom)) - low) / gap
        left = min(int(place), len(atoms) - 2)
        found[left] += chance * (left + 1 - place)
        found[left + 1] += chance * (place - left)
    return found


def test_a_distribution_is_projected_as_in_the_paper():
    agent = begun(rl.DQN(hidden=(8,), atoms=11, low=-2.0, high=3.0), TWO)
    batch = a_batch(TWO)
    logits = torch.randn(SEEDS, ROWS, 11, generator=torch.Generator().manual_seed(2))
    goal = agent._goal(batch, logits)
    torch.testing.assert_close(goal.sum(-1), torch.ones(SEEDS, ROWS))
    for row in range(ROWS):
        expected = projected_slowly(
            agent,
            batch.reward[1, row].item(),
            batch.discount[1, row].item(),
            logits[1, row].softmax(-1).tolist(),
        )
        assert goal[1, row].tolist() == pytest.approx(expected, abs=1e-5)


def test_the_density_of_a_squashed_action_is_that_of_torch():
    agent = begun(rl.SAC(hidden=(8,)), TORQUE)
    seen = a_batch(TORQUE).observation
    action, density = agent._sampled(seen, rl.Draws(3, "cpu"))
    mean, spread = agent._actor_net(agent._actor.value, seen).chunk(2, -1)
    spread = (-5 + 3.5 * (torch.tanh(spread) + 1)).exp()
    normal = torch.distributions.Normal(mean, spread)
    squash = torch.distributions.TanhTransform()
    peer = torch.distributions.TransformedDistribution(normal, squash)
    torch.testing.assert_close(density, peer.log_prob(action).sum(-1), rtol=1e-3, atol=1e-3)


LEARNERS = {
    "dqn": (rl.DQN(hidden=(8,)), TWO),
    "duelling": (rl.DQN(hidden=(8,), duelling=True), TWO),
    "c51": (rl.DQN(hidden=(8,), atoms=5, duelling=True), TWO),
    "sac": (rl.SAC(hidden=(8,)), TORQUE),
}
every_learner = pytest.mark.parametrize(("learner", "actions"), LEARNERS.values(), ids=LEARNERS)


@every_learner
def test_seeds_do_not_see_each_other(learner, actions):
    """Another batch for one seed changes only that seed."""
    found = []
    for changed in (False, True):
        agent = begun(learner, actions)
        for step in range(3):
            batch = a_batch(actions, seed=step)
            if changed:
                batch.reward[1] += 5
            agent.learn(batch, rl.Draws(step, "cpu"))
        found.append({name: x.clone() for name, x in agent.policy().items()})
    for name, x in found[0].items():
        assert torch.equal(x[0], found[1][name][0])
        assert torch.equal(x[2], found[1][name][2])
        assert not torch.equal(x[1], found[1][name][1])


@every_learner
def test_a_row_without_weight_does_not_count(learner, actions):
    agents = [begun(learner, actions) for _ in range(2)]
    for agent, more in zip(agents, (0.0, 50.0), strict=True):
        batch = a_batch(actions)
        weight = torch.ones(SEEDS, ROWS)
        weight[:, 0] = 0
        batch.reward[:, 0] += more
        batch = rl.Batch(*[getattr(batch, f) for f in ("observation", "action", "reward",
                           "discount", "following")], weight)  # fmt: skip
        loss = agent.learn(batch, rl.Draws(0, "cpu")).values["loss"]
    first, second = (agent.learn(a_batch(actions, 1), rl.Draws(1, "cpu")) for agent in agents)
    torch.testing.assert_close(first.values["loss"], second.values["loss"])
    assert torch.isfinite(loss).all()


@every_learner
def test_what_is_saved_is_everything(learner, actions):
    """A fresh agent with the tensors of another learns what the other learns."""
    first = begun(learner, actions)
    first.learn(a_batch(actions), rl.Draws(0, "cpu"))
    second = learner.begin(4, actions, SEEDS, rl.Draws(99, "cpu"))
    for name, x in second.tensors().items():
        x.copy_(first.tensors()[name])
    for agent in (first, second):
        agent.learn(a_batch(actions, 5), rl.Draws(1, "cpu"))
    for name, x in first.tensors().items():
        assert torch.equal(x, second.tensors()[name]), name


@every_learner
def test_random_actions_are_uniform_and_others_are_not(learner, actions):
    agent = begun(learner, actions, seeds=1)
    seen = torch.zeros(1, 4000, 4)
    wild = agent.explore(seen, torch.ones(()), rl.Draws(0, "cpu")).float().flatten()
    best = agent.act(seen).float().flatten()
    assert best.unique().numel() == 1
    if isinstance(actions, rl.Discrete):
        assert wild.mean().item() == pytest.approx(0.5, abs=0.05)
        tame = agent.explore(seen, torch.full((), 0.1), rl.Draws(0, "cpu")).flatten()
        assert (tame != best).float().mean().item() == pytest.approx(0.05, abs=0.02)
    else:
        assert wild.std().item() == pytest.approx(4 / 12**0.5, abs=0.05)
        assert wild.abs().max() <= 2


@every_learner
def test_a_learner_is_data(learner, actions):
    assert rl.learner_from_json(rl.learner_to_json(learner)) == learner


def test_a_schedule_of_exploration_is_data_too():
    learner = rl.DQN(chance=LinearDecay(steps=10, start=1.0, end=0.1).then(Constant(0.1)))
    assert rl.learner_from_json(rl.learner_to_json(learner)) == learner
    assert learner.chance_at(5) == pytest.approx(0.55)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: rl.DQN(rate=0), "rate"),
        (lambda: rl.SAC(gamma=1.5), "gamma"),
        (lambda: rl.DQN(n_steps=0), "n_steps"),
        (lambda: rl.DQN(atoms=1), "atoms"),
        (lambda: rl.Dense((4,)), "sizes"),
        (lambda: rl.find_learner("dqm"), "dqn"),
        (lambda: begun(rl.DQN(), TORQUE), "use SAC"),
        (lambda: begun(rl.SAC(), TWO), "use DQN"),
        (lambda: rl.Box((1.0,), (0.0,)), "low"),
        (lambda: rl.Box((float("nan"),), (0.0,)), "low"),
        (lambda: rl.Box((0.0,), 1.0), r"`high` is 1.0; expected numbers"),
        (lambda: rl.Box(("a",), (1.0,)), r"`low` is \('a',\); expected numbers"),
        (lambda: rl.OffPolicy(copies=0), "copies"),
        (lambda: rl.RLTrainer("cartpole", steps=0), "steps"),
        (lambda: rl.RLTrainer("carpole"), "did you mean|cartpole"),
        (lambda: rl.RLTrainer(3), "expected an Environment"),
    ],
)
def test_what_makes_no_sense_is_refused(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()
