"""``kpreempt plugins``: the plugins and extenders that would run, and where each is from."""

from __future__ import annotations

from kpreempt.cli.options import (
    Algorithm,
    AnswerOutputs,
    CallExtenders,
    Colour,
    FeatureGates,
    Plugins,
    SchedulerConfig,
)


def plugins(
    scheduler_config: SchedulerConfig = None,
    feature_gates: FeatureGates = None,
    plugin: Plugins = None,
    call_extenders: CallExtenders = False,
    algorithm: Algorithm = None,
    output: AnswerOutputs = None,
    color: Colour = "auto",
) -> int:
    """List the plugins that would run, by extension point and in order, where each is from, and the extenders.

    No plugin is started, no extender called, and no cluster read. Plugins that are installed, and that no profile
    enables, are listed, too; docs/writing-plugins.md says how to write one.
    """
    from kpreempt.cli.extensions import Extensions
    from kpreempt.cli.plugins_run import run_plugins

    return run_plugins(
        scheduler_config=scheduler_config,
        feature_gates=feature_gates or [],
        extensions=Extensions(tuple(plugin or ()), call_extenders),
        algorithm=algorithm,
        outputs=output or [],
        colour=color,
    )
