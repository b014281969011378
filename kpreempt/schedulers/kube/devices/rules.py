"""Version and gate differences in device allocation."""

from __future__ import annotations

from typing import NamedTuple

from kpreempt.schedulers.kube.devices.pools import PoolRules
from kpreempt.schedulers.kube.versions import Behavior


class AllocatorRules(NamedTuple):
    """The features and peculiarities of an allocator.

    ``counts_every_share``: a device shared without any capacity already counts as shared. ``compares_all``: a distinct
    attribute is compared across all devices. ``fails_at_invalid_pools``: the search ends with an error if it reaches
    one. ``rejects_capacity``: an amount of capacity is an error instead of being ignored if devices cannot be shared;
    ``names_alternatives``: that error names the alternative instead of its request. ``names_devices``: a selector error
    names the device and suggests how to handle missing keys. ``leaves_alternatives``: after the first of all devices,
    the search continues with the first alternative. ``reports_limit_by_request``: exceeding the device limit is an
    error of the request.
    """

    pools: PoolRules
    admin_access: bool
    alternatives: bool
    binding_conditions: bool
    fractions: bool
    shares: bool
    taints: bool
    compares_all: bool
    counts_every_share: bool
    fails_at_invalid_pools: bool
    knows_distinct: bool
    names_alternatives: bool
    names_devices: bool
    leaves_alternatives: bool
    rejects_capacity: bool
    reports_limit_by_request: bool


def allocator_rules(behavior: Behavior) -> AllocatorRules:
    """Return the rules under the gates that are set.

    Of upstream's allocators, the oldest one with all enabled features is used (``structured/allocator.go``).
    """
    binding_conditions = behavior.dra_device_binding_conditions and behavior.dra_resource_claim_device_status
    shares = behavior.dra_consumable_capacity
    # In 1.34, the gate for device status is enough on its own.
    is_newer = (
        shares
        or binding_conditions
        or (behavior.allocates_from_incomplete_pools and behavior.dra_resource_claim_device_status)
    )
    is_latest = behavior.finds_shared_counters_everywhere
    return AllocatorRules(
        pools=PoolRules(
            partitions=behavior.dra_partitionable_devices,
            uses_incomplete=behavior.allocates_from_incomplete_pools,
            rejects_compatibility_groups=is_latest,
            finds_counters_everywhere=is_latest,
        ),
        admin_access=behavior.dra_admin_access,
        alternatives=behavior.dra_prioritized_list,
        binding_conditions=binding_conditions,
        fractions=behavior.dra_fractional_capacity_range and shares,
        shares=shares,
        taints=behavior.dra_device_taints,
        compares_all=behavior.compares_attributes_of_all_devices,
        counts_every_share=is_latest,
        fails_at_invalid_pools=behavior.allocates_from_incomplete_pools,
        knows_distinct=is_newer,
        rejects_capacity=is_newer and not shares,
        names_alternatives=not behavior.allocates_from_incomplete_pools,
        names_devices=behavior.reports_devices_of_errors,
        leaves_alternatives=behavior.leaves_alternatives_of_all_devices,
        reports_limit_by_request=behavior.reports_devices_of_errors,
    )
