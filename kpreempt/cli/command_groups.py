"""The commands as bare ``kpreempt`` lists them, and the options that ``-h`` shows of each; ``--help`` shows all.

Kept apart from the requests: only the help loads it.
"""

from __future__ import annotations

from collections.abc import Mapping

# By heading, each command with its summary: at most 50 characters.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "On call": {
        "explain": "Show where a pod lands and which pods it evicts",
        "pending": "List pending pods, and what would happen to each",
        "who-evicted": "Find the pod that caused an eviction",
        "at-risk": "List running pods that may be preempted",
        "queue": "Show the scheduling queue",
        "history": "Show what happened to a pod, a node or a PDB",
    },
    "Before a change": {
        "check": "Simulate a rollout and check it against rules",
        "drain": "Simulate draining, upgrading or removing nodes",
        "rules": "List the rules, or explain one",
        "compare": "Compare schedulers, or preview an upgrade",
    },
    "Fleet": {
        "budgets": "Audit PodDisruptionBudgets",
        "sweep": "Run queries across many clusters",
    },
    "Schedulers": {
        "algorithms": "List the schedulers that are modeled",
        "plugins": "List the plugins and extenders that would run",
        "volcano": "Run a session of Volcano's scheduler",
        "verify": "Compare recorded decisions with predictions",
    },
    "Data": {
        "snapshot": "Save a snapshot of a cluster to a file",
        "record": "Record a cluster and its changes",
        "batch": "Answer scenarios given as JSON lines",
        "mcp": "Run an MCP server for AI assistants",
    },
    "Other": {
        "completion": "Print a shell completion script",
        "help": "Show the help of a command",
        "version": "Show the versions of kpreempt and its schedulers",
    },
}

# By command, its summary.
SUMMARIES: Mapping[str, str] = {name: text for group in GROUPS.values() for name, text in group.items()}

# By long name, the options that ``-h`` shows, wherever a command has them.
EVERYDAY = frozenset(
    {
        *("--filename", "--namespace", "--all-namespaces", "--selector", "--snapshot", "--context", "--algorithm"),
        *("--output", "--verbose", "--strict"),
        # What if.
        *("--priority", "--replicas", "--set", "--with", "--without", "--add-node", "--remove-node"),
        # What is shown.
        *("--node", "--capacity", "--aftermath", "--brief", "--limit", "--watch", "--before"),
        # Gates.
        *("--base", "--delete", "--prune", "--config", "--waive", "--report-only", "--max-pdb-violations"),
        *("--max-victims", "--max-pending", "--forbid-victims", "--fail-on", "--fail-on-difference", "--exit-code"),
        *("--compare-with", "--baseline"),
        # Drains.
        *("--pool", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--surge", "--max-unavailable"),
        *("--remove",),
        # Other commands.
        *("--algorithms", "--upgrade-to", "--events", "--snapshots", "--contexts", "--query", "--to"),
        *("--redact", "--for", "--keep", "--info", "--fail-below"),
    }
)
