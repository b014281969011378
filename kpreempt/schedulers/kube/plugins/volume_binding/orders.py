"""What orders of equal volumes other than the input order would change for nodes.

Upstream lists the volumes of each storage class once for a pod, in the order of a Go map (``ListPVs`` in
``GetPodVolumeClaims``, ``plugins/volumebinding/binder.go``, v1.36.3). So one order of a class applies to all its
claims, on all nodes and in the dry run. It decides between volumes of one size, and between several volumes prebound to
one claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, islice, product
from typing import NamedTuple

import msgspec

from kpreempt.model.node import Node
from kpreempt.model.storage import PersistentVolume, class_of_claim, storage_capacity
from kpreempt.schedulers.kube.framework.csi_translation import is_reachable, required_nodes
from kpreempt.schedulers.kube.plugins.volume_binding.binder import ClaimMatches, PodVolumes, VolumeBinder
from kpreempt.schedulers.kube.plugins.volume_binding.matching import VolumesByReach
from kpreempt.schedulers.volume_orders import Result, Wishes, results_of_orders
from kpreempt.verdict.chance import VolumeChoice, VolumeFit

# Volumes prebound to a claim come before all others.
_PREBOUND = -1


class OtherOrders(NamedTuple):
    """The nodes on which an order decides, and orders of volumes with other results than the input order.

    If it ``is_complete``, there is one order for each possible combined result on these nodes other than the input
    order's.
    """

    choices: list[VolumeChoice]
    orders: list[tuple[str, ...]]
    is_complete: bool


class _Alike(NamedTuple):
    """Nodes that can access the same volumes, and the claims' choices there; ``volumes`` are the numbers of these."""

    nodes: list[Node]
    volumes: list[int]
    wishes: Wishes


class _Undecided(NamedTuple):
    """Nodes on which an order decides, the contested volumes, and the possible results."""

    alike: _Alike
    contested: frozenset[int]
    results: list[Result]


class _Variant(NamedTuple):
    """The effect of an order of volumes on nodes: how many are rejected, and a key that distinguishes variants."""

    effect: tuple[Hashable, ...]
    num_rejected: int
    order: tuple[str, ...]


class VolumeChoices:
    """The claims of a pod that choose among volumes, and the volumes among which an order may decide.

    ``use_of`` returns the storage use that the score depends on, if the plugin scores. Raises ``PluginError`` if a
    claim cannot be matched at all.
    """

    def __init__(
        self, binder: VolumeBinder, matches: ClaimMatches, use_of: Callable[[PodVolumes], object] | None
    ) -> None:
        self.matches = matches
        self._binder = binder
        self._use_of = use_of
        self.volumes: list[PersistentVolume] = []
        # By claim, in the order in which they choose, the tier of each volume.
        self._tiers: list[dict[str, int]] = []
        self._roles: list[tuple[int | None, ...]] = []
        self.is_open = self._look()
        if self.is_open:
            # Of volumes that all claims and nodes treat the same, keep no more than there are claims to take them.
            most = len(self.matches.to_match)
            numbers: Counter[Hashable] = Counter()
            kept = []
            for volume, role in zip(self.volumes, self._roles, strict=True):
                kind = (role, storage_capacity(volume).nano, msgspec.json.encode(required_nodes(volume)))
                numbers[kind] += 1
                if numbers[kind] <= most:
                    kept.append(volume)
            self.volumes = kept
            self._by_reach = VolumesByReach(self.volumes)
            self._number = {volume.metadata.name: number for number, volume in enumerate(self.volumes)}

    def _look(self) -> bool:
        """Return whether an order can matter anywhere: claims could take different ones of equal volumes."""
        claims = self.matches.to_match
        per_class = Counter(class_of_claim(claim) for claim in claims)
        suitable = [self.matches.suitable(claim, self._binder) for claim in claims]
        has_prebound = any(len(each.prebound) > 1 for each in suitable)
        if not has_prebound and max(per_class.values(), default=0) < 2:
            return False
        for each in suitable:
            tiers = dict.fromkeys((volume.metadata.name for volume in each.prebound), _PREBOUND)
            tiers |= {volume.metadata.name: storage_capacity(volume).nano for volume in each.available}
            self._tiers.append(tiers)
        is_open = has_prebound
        for name in per_class:
            equals: dict[int, Hashable] = {}
            for volume in self._binder.volumes_by_class.get(name, []):
                role = tuple(tiers.get(volume.metadata.name) for tiers in self._tiers)
                if any(tier is not None for tier in role):
                    self.volumes.append(volume)
                    self._roles.append(role)
                    first = equals.setdefault(storage_capacity(volume).nano, role)
                    is_open = is_open or (first != role and _PREBOUND not in role)
        return is_open

    def alike(self, nodes: Iterable[Node]) -> list[_Alike]:
        """Group the nodes by the volumes that they can access."""
        prebound = [
            number
            for number, volume in enumerate(self.volumes)
            if any(tiers.get(volume.metadata.name) == _PREBOUND for tiers in self._tiers)
        ]
        found: dict[Hashable, _Alike] = {}
        for node in nodes:
            reached = [self._number[volume.metadata.name] for volume in self._by_reach.reachable(node.labels)]
            lost = [each for each in prebound if not is_reachable(required_nodes(self.volumes[each]), node.labels)]
            key = (tuple(reached), tuple(lost))
            if key not in found:
                numbers = sorted({*reached, *lost})
                found[key] = _Alike([], numbers, self._wishes(numbers, lost))
            found[key].nodes.append(node)
        return list(found.values())

    def _wishes(self, numbers: Sequence[int], lost: Iterable[int]) -> Wishes:
        """Return the claims' choices among these volumes."""
        by_claim = []
        for tiers in self._tiers:
            by_tier: dict[int, list[int]] = {}
            for number in numbers:
                tier = tiers.get(self.volumes[number].metadata.name)
                if tier is not None:
                    by_tier.setdefault(tier, []).append(number)
            by_claim.append(tuple(tuple(by_tier[tier]) for tier in sorted(by_tier)))
        return Wishes(tuple(by_claim), frozenset(lost))

    def search(self, alike: Sequence[_Alike]) -> tuple[list[Result], frozenset[int]] | None:
        """Return all combined results on these nodes, and the volumes between which an order decides."""
        numbers = sorted({number for each in alike for number in each.volumes})
        local = {number: index for index, number in enumerate(numbers)}
        wishes = [
            Wishes(
                tuple(tuple(tuple(local[each] for each in tier) for tier in tiers) for tiers in each.wishes.tiers),
                frozenset(local[number] for number in each.wishes.lost),
            )
            for each in alike
        ]
        values = [storage_capacity(self.volumes[number]).nano if self._use_of else 0 for number in numbers]
        found = results_of_orders(wishes, values)
        if found is None:
            return None
        results = [
            Result(
                tuple(tuple(None if pick is None else numbers[pick] for pick in picks) for picks in result.picks),
                tuple(numbers[each] for each in result.order),
            )
            for result in found.results
        ]
        return results, frozenset(numbers[each] for each in found.volumes)

    def effect_on(self, node: Node, picks: Sequence[int | None]) -> tuple[list[str], object]:
        """Return why the node rejects the pod if the claims take these volumes, and the storage use for the score."""
        given = [None if pick is None else self.volumes[pick] for pick in picks]
        found = self._binder.find_pod_volumes(self.matches, node, given)
        return found.reasons, self._use_of(found) if self._use_of is not None else None

    def variants(self, alike: Sequence[_Alike], results: Iterable[Result]) -> list[_Variant]:
        """Return the results that change the outcome on a node, the input order's first."""
        found: dict[Hashable, _Variant] = {}
        for result in results:
            effects = [
                self.effect_on(node, picks)
                for each, picks in zip(alike, result.picks, strict=True)
                for node in each.nodes
            ]
            key = tuple((tuple(reasons), repr(use)) for reasons, use in effects)
            refused = sum(bool(reasons) for reasons, _ in effects)
            found.setdefault(key, _Variant(key, refused, self.names(result.order)))
        return list(found.values())

    def names(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the names of volumes."""
        return tuple(self.volumes[number].metadata.name for number in numbers)

    def choice(self, node: Node, fits: VolumeFit, numbers: Iterable[int]) -> VolumeChoice:
        """Return the evidence for a node on which an order decides between these volumes."""
        volumes = self.names(sorted(numbers))
        claims = dict.fromkeys(
            claim.key
            for claim, tiers in zip(self.matches.to_match, self._tiers, strict=True)
            if not tiers.keys().isdisjoint(volumes)
        )
        return VolumeChoice(node.name, list(claims), list(volumes), fits)


def other_orders(choices: VolumeChoices, nodes: Iterable[Node], limit: int) -> OtherOrders | None:
    """Return the effects of up to ``limit`` other orders on the nodes; ``None`` if no order changes anything."""
    if not choices.is_open:
        return None
    found_choices: list[VolumeChoice] = []
    undecided: list[_Undecided] = []
    blind: list[tuple[str, ...]] = []
    for alike in choices.alike(nodes):
        found = choices.search([alike])
        if found is None:
            found_choices += [choices.choice(node, VolumeFit.UNKNOWN, alike.volumes) for node in alike.nodes]
            blind.append(choices.names(reversed(alike.volumes)))
            continue
        results, contested = found
        varied = [
            (node, fits)
            for node in alike.nodes
            if (fits := _fit([choices.effect_on(node, result.picks[0]) for result in results])) is not None
        ]
        if varied:
            found_choices += [choices.choice(node, fits, contested) for node, fits in varied]
            undecided.append(_Undecided(alike._replace(nodes=[node for node, _ in varied]), contested, results))
    if not found_choices:
        return None
    groups = [_variants_of(choices, group) for group in _sharing(undecided)]
    orders, is_complete = _combined([variants for variants, _ in groups], limit)
    is_complete = is_complete and all(complete for _, complete in groups) and not blind
    return OtherOrders(found_choices, [*orders, *blind][:limit], is_complete)


def _fit(effects: Sequence[tuple[list[str], object]]) -> VolumeFit | None:
    """Return in which orders a node can have the volumes; ``None`` if the order makes no difference."""
    if all(effect == effects[0] for effect in effects):
        return None
    refused = sum(bool(reasons) for reasons, _ in effects)
    if not refused:
        return VolumeFit.EVERY_ORDER
    return VolumeFit.NO_ORDER if refused == len(effects) else VolumeFit.SOME_ORDERS


def _sharing(undecided: Sequence[_Undecided]) -> list[list[_Undecided]]:
    """Group the entries that share contested volumes, so that one order determines them together."""
    group_of: dict[int, list[_Undecided]] = {}
    for each in undecided:
        members = [each]
        for group in {
            id(group_of[volume]): group_of[volume] for volume in each.contested if volume in group_of
        }.values():
            members = group + members
        group_of.update((volume, members) for member in members for volume in member.contested)
    return list({id(group): group for group in group_of.values()}.values())


def _variants_of(choices: VolumeChoices, group: Sequence[_Undecided]) -> tuple[list[_Variant], bool]:
    """Return the effects of orders on nodes that share volumes, and whether these are all."""
    alike = [each.alike for each in group]
    if len(group) == 1:
        return choices.variants(alike, group[0].results), True
    found = choices.search(alike)
    if found is not None:
        return choices.variants(alike, found[0]), True
    # Each is possible, and its effect on the other nodes shows when it is tried.
    orders = dict.fromkeys(choices.names(result.order) for each in group for result in each.results)
    return [_Variant((number,), 0, order) for number, order in enumerate(orders)], False


def _combined(groups: Sequence[list[_Variant]], limit: int) -> tuple[list[tuple[str, ...]], bool]:
    """Return orders for all combinations but the first; beyond the limit, for the extremes and each alone."""
    number = 1
    for variants in groups:
        number *= len(variants)
    if number <= limit + 1:
        return [_joined(combination) for combination in islice(product(*groups), 1, None)], True
    first = [variants[0] for variants in groups]
    extremes = [[pick(variants, key=lambda each: each.num_rejected) for variants in groups] for pick in (max, min)]
    single = (
        [*first[:index], variant, *first[index + 1 :]]
        for index, variants in enumerate(groups)
        for variant in variants[1:]
    )
    others = (_joined(combination) for combination in chain(extremes, single) if combination != first)
    return list(dict.fromkeys(islice(others, limit))), False


def _joined(variants: Iterable[_Variant]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for variant in variants for name in variant.order))
