"""Checkpoints of the live page that were saved with other values of the sliders."""


def test_a_checkpoint_of_before_a_slider_and_a_reset_is_loaded(desk):
    here = desk("heat", size="16x16")
    before = here.session.live.simulation.model.rate
    here.ask("save", what="checkpoint", name="early")
    here.ask("set", name="rate", value=0.05)
    here.ask("reset", seed=None)
    assert here.session.live.simulation.model.rate == 0.05
    here.ask("load", name="early")
    assert here.session.live.simulation.model.rate == before
    here.ask("reset", seed=None)
    assert here.session.live.simulation.model.rate == before


def test_a_checkpoint_of_a_moved_slider_is_loaded_by_the_command_that_was_copied(desk):
    first = desk("heat", size="16x16")
    first.ask("step", count=3)
    first.stopped_at(3)
    first.ask("set", name="rate", value=0.05)
    first.ask("save", what="checkpoint", name="moved")
    assert "--set rate=0.05" in first.session.live.command()
    for values in ({"rate": "0.05"}, {}):
        later = desk("heat", size="16x16", set=values)
        assert later.ask("load", name="moved")["type"] == "done"
        assert later.sim.step_count == 3 and later.sim.model.rate == 0.05
        later.ask("reset", seed=None)
        assert later.sim.model.rate == 0.05
