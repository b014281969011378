"""Options, each declared once; requests, which are records of them; and the signatures that are made of requests.

Requests are loaded at every start, so they are plain classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from inspect import Parameter, Signature, get_annotations
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, dataclass_transform, get_args

from typer import Argument, Option

from kpreempt.scheduler_table import KUBE_RANGE, LEGACY_ROWS

if TYPE_CHECKING:
    from kpreempt.cli.extensions import Extensions
    from kpreempt.report.options import RenderOptions
    from kpreempt.snapshot.archives import Intake
    from kpreempt.snapshot.live.flags import ConnectionFlags

Command = Callable[..., int]
_Note = TypeVar("_Note")


class After(NamedTuple):
    """In a field's annotation: the inherited field that it follows in the help, as the new ones after it do."""

    name: str


class Group(NamedTuple):
    """In a field's annotation: the options that make one value, annotated as Typer reads them, and what makes it.

    ``make`` gets a value for each option, which is ``None`` or false where it was not given.
    """

    options: Mapping[str, Any]
    make: Callable[[dict[str, Any]], Any]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Request:
    """What the options of a command ask for: a field for each, with the annotation that Typer reads.

    The help has them in this order. A field that is declared anew keeps its place; new ones come first where they do
    not say ``After`` which. Inherited fields that are named by ``without`` are not offered, and keep their default.
    """

    _left_out: Iterable[str] = ()

    def __init_subclass__(cls, *, without: Iterable[str] = ()) -> None:
        """Leave fields out."""
        cls._left_out = without

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


_Text = str | None
_Texts = list[str] | None

Pod = Annotated[_Text, Argument(metavar="[pod/]NAME", help="A pod that is in the cluster, in -n NS.")]


def manifest_options(metavar: str, help: str) -> Group:
    """``-f`` and ``-k``, which make one list of paths; those of ``-k`` are each a ``Kustomization``."""
    return Group(
        {
            "files": Annotated[_Texts, Option("-f", "--filename", metavar=metavar, help=help)],
            "kustomizations": Annotated[
                _Texts,
                Option("-k", "--kustomize", metavar="DIR", help="What kubectl kustomize DIR builds. Repeatable."),
            ],
        },
        _manifests,
    )


def _manifests(given: dict[str, Any]) -> list[str]:
    files = list(given["files"] or ())
    if given["kustomizations"]:
        from kpreempt.cli.manifests import Kustomization

        files += map(Kustomization, given["kustomizations"])
    return files


Manifests = Annotated[
    list[str],
    manifest_options("FILE", "A manifest, file or URL: a pod or anything with a pod template. Repeatable."),
]


class NodeChanges(NamedTuple):
    """Nodes that come and go before the question is asked, as the options have them."""

    added: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def files(self) -> list[str]:
        """The files that nodes to be added are read from."""
        if not self.added:
            return []
        from kpreempt.analysis.nodes.changes import is_file

        names = [text.rpartition("=")[0] or text for text in self.added]
        return [name for name in names if is_file(name)]


_NODE_CHANGES: dict[str, Any] = {
    "add_nodes": Annotated[
        _Texts,
        Option(
            "--add-node",
            metavar="LIKE[=N]",
            help="What if there were N more nodes (default: 1) like node LIKE, or like the Node of a FILE. Repeatable.",
        ),
    ],
    "add_pools": Annotated[
        _Texts,
        Option(
            "--add-pool",
            metavar="NODEPOOL[=N]",
            help="What if there were N more nodes of this NodePool of Karpenter's. Repeatable.",
        ),
    ],
    "remove_nodes": Annotated[
        _Texts,
        Option("--remove-node", metavar="NODE", help="What if this node were gone, with its pods. Repeatable."),
    ],
}


def _node_changes(given: dict[str, Any]) -> NodeChanges:
    return NodeChanges(*(tuple(given[name] or ()) for name in _NODE_CHANGES))


ChangingNodes = Annotated[NodeChanges, Group(_NODE_CHANGES, _node_changes)]
Select = Annotated[list[str], Option(metavar="KIND/NAME", help="Of the manifest, only this one. Repeatable.")]
Without = Annotated[
    list[str], Option(metavar="KIND/[NS/]NAME", help="What if this were not in the cluster. Repeatable.")
]
Additions = Annotated[
    list[str], Option("--with", metavar="FILE", help="What if these objects were in the cluster, too. Repeatable.")
]
_DIFFERENCES = "(default: auto, that of the cluster's own version); kpreempt algorithms says how they differ."
_ALGORITHMS = "|".join(("auto", *LEGACY_ROWS, KUBE_RANGE))
Algorithm = Annotated[
    _Text, Option("--algorithm", metavar=_ALGORITHMS, help=f"Which version's scheduler decides {_DIFFERENCES}")
]
# For commands that ask Volcano, too.
AnyAlgorithm = Annotated[
    _Text,
    Option(
        "--algorithm",
        metavar=f"{_ALGORITHMS}|volcano-1.8",
        help=f"Which scheduler decides {_DIFFERENCES}",
    ),
]
# For the one command that asks Kueue, too.
AnyQueueingAlgorithm = Annotated[
    _Text,
    Option(
        "--algorithm",
        metavar="auto|kube-VERSION|volcano-1.8|kueue-0.19",
        help=f"Which scheduler decides {_DIFFERENCES}",
    ),
]
VolcanoActions = Annotated[
    _Text,
    Option(
        "--actions",
        metavar="NAME,NAME,...",
        help="What if Volcano's actions were these: enqueue,allocate,backfill,preempt,reclaim (volcano-1.8).",
    ),
]
# A simulation takes from a few milliseconds to a second: more would never end.
MAX_RUNS = 10_000
Runs = Annotated[
    int, Option("--runs", metavar="N", min=0, max=MAX_RUNS, help="Run N sessions with chance drawn anew (volcano-1.8).")
]
Seed = Annotated[int, Option("--seed", metavar="NUMBER", help="What the draws of --runs start from (default: 0).")]
Strict = Annotated[bool, Option("--strict", help="Exit 1 where the answer rests on something that is not modelled.")]
Now = Annotated[
    _Text, Option("--now", metavar="TIME", help="Count ages up to this time (2026-11-21T03:12:00Z), not the clock's.")
]
Jobs = Annotated[
    int | None,
    Option("--jobs", metavar="N", min=1, help="Work on so many cores where that pays. Default: all there are."),
]
ProfileJson = Annotated[
    _Text, Option("--profile-json", metavar="FILE", help="Write where the time goes to FILE: seconds by phase, memory.")
]

_EXTENSIONS: dict[str, Any] = {
    "plugin": Annotated[
        _Texts,
        Option(
            "--plugin",
            metavar="MODULE:CLASS",
            help="A plugin of your own: MODULE:CLASS, FILE.py:CLASS or the NAME of one that is installed. It runs "
            "where --scheduler-config enables it, and without a configuration after the default ones. Repeatable.",
        ),
    ],
    "call_extenders": Annotated[
        bool,
        Option("--call-extenders", help="Ask the extenders of the configuration, over HTTP. Without it none is."),
    ],
}
# kubectl's, by their names in ``ConnectionFlags``.
_CONNECTION: dict[str, Any] = {
    "kubeconfig": Annotated[_Text, Option("--kubeconfig", metavar="FILE", help="The kubeconfig, not $KUBECONFIG.")],
    "context": Annotated[
        _Text,
        Option(
            "--context", metavar="NAME", help="The context of the kubeconfig; several for pending and budgets: a,b."
        ),
    ],
    "cluster": Annotated[_Text, Option("--cluster", metavar="NAME", help="The cluster of the kubeconfig.")],
    "user": Annotated[_Text, Option("--user", metavar="NAME", help="The user of the kubeconfig.")],
    "server": Annotated[_Text, Option("-s", "--server", metavar="URL", help="Address of the API server.")],
    "token": Annotated[_Text, Option("--token", metavar="TOKEN", help="Bearer token for the API server.")],
    "certificate_authority": Annotated[
        _Text, Option("--certificate-authority", metavar="FILE", help="Certificate of the server's authority.")
    ],
    "insecure_skip_tls_verify": Annotated[
        bool, Option("--insecure-skip-tls-verify", help="Do not check the server's certificate: insecure.")
    ],
    "tls_server_name": Annotated[
        _Text, Option("--tls-server-name", metavar="NAME", help="The name that the server's certificate is for.")
    ],
    "as_user": Annotated[_Text, Option("--as", metavar="USER", help="User or service account to impersonate.")],
    "as_groups": Annotated[_Texts, Option("--as-group", metavar="GROUP", help="Group to impersonate. Repeatable.")],
    "as_uid": Annotated[_Text, Option("--as-uid", metavar="UID", help="UID to impersonate.")],
    "request_timeout": Annotated[
        _Text, Option("--request-timeout", metavar="TIME", help="For one request: 30s, 2m; 0 is without end.  [1m]")
    ],
    "no_cache": Annotated[
        bool,
        Option("--no-cache", help="When TAB is pressed: keep no names in the cache. KPREEMPT_NO_CACHE=1 does, too."),
    ],
}


# What may be read, by the names in ``Intake``.
_INTAKE: dict[str, Any] = {
    "follow_links": Annotated[
        bool, Option("--follow-links", help="In folders: follow links that lead out of them, which is refused.")
    ],
    "max_unpacked": Annotated[
        _Text,
        Option("--max-unpacked", metavar="SIZE", help="How much all inputs together may unpack to: 4Gi.  [1Gi]"),
    ],
}


def _intake(given: dict[str, Any]) -> Intake:
    from kpreempt.snapshot.archives import MAX_UNPACKED, Intake, parse_size

    size = parse_size(given["max_unpacked"]) if given["max_unpacked"] is not None else MAX_UNPACKED
    return Intake(size, follows_links=given["follow_links"])


def _extensions(given: dict[str, Any]) -> Extensions:
    from kpreempt.cli.extensions import Extensions

    return Extensions(tuple(given["plugin"] or ()), given["call_extenders"])


def _connection(given: dict[str, Any]) -> ConnectionFlags:
    from kpreempt.snapshot.live.flags import ConnectionFlags

    # What TAB may keep says nothing about the connection.
    values = {name: value for name, value in given.items() if value and name != "no_cache"}
    if "as_groups" in values:
        values["as_groups"] = tuple(values["as_groups"])
    return ConnectionFlags(**values)


Extending = Annotated["Extensions", Group(_EXTENSIONS, _extensions)]
Inputs = Annotated["Intake", Group(_INTAKE, _intake)]
Connecting = Annotated["ConnectionFlags", Group(_CONNECTION, _connection)]

# Of commands that write a page, too.
PageOutputs = Annotated[
    list[str],
    Option(
        "-o",
        "--output",
        metavar="FORMAT[=FILE]",
        help="text (default), json, yaml, jsonl, name, markdown or html, into FILE if given. Repeatable.",
    ),
]


class ClusterRequest(Request):
    """What is asked of a cluster, in snapshots or at the end of a connection."""

    snapshots: Annotated[
        list[str],
        Option(
            "--snapshot",
            metavar="PATH",
            help="What kubectl get, cluster-info dump, kwokctl or kpreempt record wrote: file, directory or archive, "
            "- for standard input. Repeatable; all are merged.",
        ),
    ] = []
    at: Annotated[
        _Text,
        Option(
            "--at",
            metavar="TIME",
            help="Of a recording (kpreempt record), the cluster at this time, or just before the scheduler decided on "
            "pod/NAMESPACE/NAME.  [its end]",
        ),
    ] = None
    skip_bad_objects: Annotated[
        bool, Option("--skip-bad-objects", help="Skip unreadable objects and files instead of failing, and list them.")
    ] = False
    assume_none: Annotated[
        list[str],
        Option(
            "--assume-none",
            metavar="KIND",
            help="The cluster has no object of this kind, although the snapshot doesn't say so: pdb, quota, hpa. "
            "Repeatable.",
        ),
    ] = []
    intake: Inputs
    connection: Connecting


class AnswerRequest(ClusterRequest):
    """What is asked of a scheduler and a cluster, and answered in one or several formats."""

    # Offered by commands with what-ifs.
    node_changes = NodeChanges()

    namespace: Annotated[
        _Text, After("snapshots"), Option("-n", "--namespace", metavar="NS", help="Only pods of this namespace.")
    ] = None
    all_namespaces: Annotated[bool, Option("-A", "--all-namespaces", help="Pods of all namespaces.")] = False
    selector: Annotated[
        _Text, Option("-l", "--selector", metavar="SELECTOR", help="Only pods with these labels: app=web,tier!=db")
    ] = None
    algorithm: Algorithm = None
    scheduler_config: Annotated[
        _Text, Option(metavar="FILE", help="The scheduler has this KubeSchedulerConfiguration: FILE, or eks.")
    ] = None
    policy_config: Annotated[
        _Text,
        Option(metavar="FILE", help="The scheduler has this Policy file; for kube-1.8, kube-1.13 and kube-1.18."),
    ] = None
    feature_gates: Annotated[
        list[str], Option(metavar="GATE=true,...", help="These feature gates are set so. Repeatable.")
    ] = []
    extensions: Extending
    outputs: Annotated[
        list[str],
        Option(
            "-o",
            "--output",
            metavar="FORMAT[=FILE]",
            help="text (default), json, yaml, jsonl, name or markdown, into FILE if given. Repeatable. "
            "Or, as kubectl has them, jsonpath=TEMPLATE and custom-columns=HEADER:PATH,...",
        ),
    ] = []
    verbose: Annotated[bool, Option("-v", "--verbose", help="List everything, however long.")] = False
    colour: Annotated[
        str, Option("--color", metavar="WHEN", help="auto (a terminal, and NO_COLOR is not set), always or never.")
    ] = "auto"
    strict: Strict = False
    now: Annotated[Now, After("skip_bad_objects")] = None
    jobs: Jobs = None
    profile_json: ProfileJson = None

    def lengthened(self, options: RenderOptions) -> RenderOptions:
        """The options with how much the answer is to tell."""
        import msgspec

        from kpreempt.report.options import Extent

        extent = Extent.REPORT if self.verbose else Extent.SCREEN
        return msgspec.structs.replace(options, verbose=self.verbose, extent=extent)

    def lengthened_for_log(self, options: RenderOptions) -> RenderOptions:
        """The same for a file, or a reader that is no terminal."""
        return self.lengthened(options)


def with_options(command: Callable[[Any], int]) -> Command:
    """The command as Typer is to see it: with the options of the ``Request`` that is its parameter ``request``."""
    request = command.__globals__[command.__annotations__["request"]]
    groups: dict[str, Group] = {}
    parameters: list[Parameter] = []
    for name, annotation in _fields(request).items():
        if group := _note(annotation, Group):
            groups[name] = group
            parameters += [_parameter(*each, False if _is_flag(each[1]) else None) for each in group.options.items()]
        else:
            parameters.append(_parameter(name, annotation, getattr(request, name, Parameter.empty)))

    def run(**values: Any) -> int:
        for name, group in groups.items():
            values[name] = group.make({option: values.pop(option) for option in group.options})
        return command(request(**values))

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


@cache
def _fields(request: type[Request]) -> dict[str, Any]:
    """The annotations of all fields that are offered, in the order of the help."""
    if request is Request:
        return {}
    own = get_annotations(request, eval_str=True)
    inherited = _fields(request.__base__)
    found = [name for name in inherited if name not in request._left_out]
    place = 0
    for name, annotation in own.items():
        if after := _note(annotation, After):
            place = found.index(after.name) + 1
        if name in found:
            place = found.index(name)
        else:
            found.insert(place, name)
        place += 1
    return {name: own.get(name, inherited.get(name)) for name in found}


def _note(annotation: Any, kind: type[_Note]) -> _Note | None:
    """What of this kind is in an annotation."""
    return next((each for each in get_args(annotation) if isinstance(each, kind)), None)


def _is_flag(option: Any) -> bool:
    return get_args(option)[0] is bool


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
