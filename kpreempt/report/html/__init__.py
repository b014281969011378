"""The parts all pages share: markup, style, the frame, and how a simulation is shown."""
