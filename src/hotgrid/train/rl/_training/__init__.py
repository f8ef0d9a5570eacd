"""The loop of off-policy learning."""
