"""The rules of the gate, told: all of them, or one with an example."""
