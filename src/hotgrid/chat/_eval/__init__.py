"""Measuring a model: how well it predicts text, chooses, and answers."""
