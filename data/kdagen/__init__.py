"""Builds the bundled fixtures: inputs from a counter, answers from an oracle of their own."""
