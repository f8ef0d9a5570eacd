"""Training a GPT: its optimizers, its data, its loop."""
