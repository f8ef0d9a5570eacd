"""_trials: candidates compared and timed, and the rankings that are kept."""
